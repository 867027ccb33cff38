"""What the command line says beside its results: all of it to standard error, a line each."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

FAILURE, USAGE, INTERRUPTED = 1, 2, 130

# typer names only this one of the errors that it raises for what was typed wrong.
UsageError: Any = typer.BadParameter.__mro__[1]


class OneLineErrors(TyperGroup):
    """Commands whose errors are one line, without a traceback."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the groups of commands first: one trains before one predicts."""
        return sorted(self.commands, key=lambda name: not isinstance(self.commands[name], TyperGroup))

    def main(self, *args: Any, **extra: Any) -> NoReturn:
        """Run the command that was typed and exit with its code."""
        try:
            code = super().main(*args, **{**extra, "standalone_mode": False})
        except KeyboardInterrupt:
            code = INTERRUPTED
        except UsageError as error:
            _fail(_usage_message(error), USAGE)
        except (OSError, ValueError, MemoryError) as error:
            _fail(_message(error), FAILURE)
        if code == INTERRUPTED:
            _fail("interrupted", INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)


def say(message: str) -> None:
    """Tell the person something that is not a result."""
    _stderr().print(message, markup=False, highlight=False, soft_wrap=True)


def status(doing: str) -> AbstractContextManager[Any]:
    """Show in a terminal what is being done, for as long as it is."""
    return _stderr().status(escape(doing))


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = perf_counter()

    def seconds(self) -> float:
        """Give the seconds so far."""
        return perf_counter() - self._start


def _stderr() -> Console:
    return Console(stderr=True)  # made anew: tests and callers may have replaced sys.stderr


def _fail(message: str, code: int) -> NoReturn:
    if message:
        typer.echo(f"sapwood: {' '.join(message.split())}", err=True)
    sys.exit(code)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or type(error).__name__


def _usage_message(error: Any) -> str:
    message = error.format_message().rstrip(".")
    if not message:  # typed without a command: typer has shown the help
        return ""
    command = error.ctx.command_path if error.ctx else "sapwood"
    return f"{message}. See '{command} --help'."
