"""Opening what is plain or gzip, and seeing in time that a place can be written to."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def open_data(path: Path) -> Iterator[BufferedIOBase]:
    """Open a plain or gzip file for reading."""
    with path.open("rb") as file:
        if file.peek(2)[:2] != GZIP_MAGIC:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path}: the gzip file is damaged ({error})") from error


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to before the work begins, not after."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{path}: there is no directory {folder}")
    if path.exists() and not path.is_file():  # a device, say, which must not be replaced
        raise OSError(f"{path}: is not a regular file")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: the directory {folder} cannot be written to")
