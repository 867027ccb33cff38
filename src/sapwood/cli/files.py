"""Opening what is plain, gzip or standard input, and seeing in time that a place can be written to."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import BufferedIOBase
from pathlib import Path
from tempfile import NamedTemporaryFile

GZIP_MAGIC = b"\x1f\x8b"
STANDARD_STREAM = Path("-")


@contextmanager
def readable_again(path: Path) -> Iterator[Path]:
    """Give a file that can be opened more than once: what comes through a pipe is kept in one for as long."""
    if path != STANDARD_STREAM and not path.is_fifo() and not path.is_char_device():
        yield path
        return
    with NamedTemporaryFile(prefix="sapwood-") as copy:
        with nullcontext(sys.stdin.buffer) if path == STANDARD_STREAM else path.open("rb") as pipe:
            shutil.copyfileobj(pipe, copy)
        copy.flush()
        yield Path(copy.name)


@contextmanager
def open_data(path: Path, name: str) -> Iterator[BufferedIOBase]:
    """Open a plain or gzip file for reading; errors call it `name`."""
    with path.open("rb") as file:
        if file.peek(2)[:2] != GZIP_MAGIC:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{name}: the gzip file is damaged ({error})") from error


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to before the work begins, not after."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{path}: there is no directory {folder}")
    if path.exists() and not path.is_file():  # a device, say, which must not be replaced
        raise OSError(f"{path}: is not a regular file")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: the directory {folder} cannot be written to")
