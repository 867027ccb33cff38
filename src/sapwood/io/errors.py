"""What is raised for a file that cannot be read as what it should be."""


class ParseError(ValueError):
    """A file does not hold what its format asks for.

    Attributes
    ----------
    path : str
        The file.
    line, column : int
        Where in its text the error is, counted from 1; columns count bytes.
    message : str
        What is wrong there.
    """

    def __init__(self, path: str, line: int, column: int, message: str) -> None:
        super().__init__(path, line, column, message)
        self.path = path
        self.line = line
        self.column = column
        self.message = message

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}, column {self.column}: {self.message}"
