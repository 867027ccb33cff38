"""Files that appear complete or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` once it is complete and on the disk.

    If the body raises, `path` is as it was. Errors name `path`, not the file that is to become it.
    """
    target = os.path.realpath(path)  # a link stays, what it points to is replaced
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".sapwood-{secrets.token_hex(8)}.tmp")
    try:
        if os.path.isdir(target):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
        _sync_folder(folder)
    except OSError as error:
        if error.errno is None or error.filename not in (None, temporary):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None
    finally:
        with suppress(FileNotFoundError):  # as it should be
            os.unlink(temporary)


def _sync_folder(folder: str) -> None:
    """Make a rename in the folder outlast a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
