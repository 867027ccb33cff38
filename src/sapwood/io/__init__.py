"""Read and write data files: svmlight text and the format of the extreme classification repository."""

from sapwood.io.errors import ParseError
from sapwood.io.svmlight import read_svmlight, write_svmlight
from sapwood.io.xmc import read_xmc, write_xmc

__all__ = ["ParseError", "read_svmlight", "read_xmc", "write_svmlight", "write_xmc"]
