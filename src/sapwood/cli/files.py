"""Opening what is plain or gzip, and writing so that no half file is ever seen."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import IO

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


@contextmanager
def written_whole(path: Path) -> Iterator[IO[str]]:
    """Open `path` for writing under a temporary name, and rename it when all went well."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():  # a pipe or a device cannot be renamed over
        with target.open("w", encoding="utf-8") as file:
            yield file
        return
    partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            yield file
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to before the work begins, not after."""
    folder = path.resolve().parent
    if not folder.is_dir():
        raise NotADirectoryError(f"{path}: there is no directory {folder}")
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a directory")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"{path}: the directory {folder} cannot be written to")
