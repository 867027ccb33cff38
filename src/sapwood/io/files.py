"""Files as blocks of bytes: plain or gzip, read piece by piece, replaced as a whole."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol

from sapwood import _core
from sapwood._replacing import replacing
from sapwood.io.errors import ParseError

Path = str | os.PathLike[str]

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WBITS = 31  # how zlib is told to expect a gzip header and to check the sums
_BLOCK_SIZE = 1 << 18  # bytes; what is parsed next is still in the cache


class Parser(Protocol):
    """What the parsers of the core have in common."""

    def feed(self, block: bytes, /) -> None:
        """Take the next bytes of the text."""

    def position(self) -> tuple[int, int]:
        """Return the line and column where the text fed so far ends."""


@contextmanager
def parse_errors_name(path: Path) -> Iterator[None]:
    """Add the file's name to the errors of the core."""
    try:
        yield
    except _core.ParseError as error:
        raise ParseError(os.fspath(path), *error.args) from None


def feed_file(parser: Parser, path: Path, *, block_size: int = _BLOCK_SIZE) -> None:
    """Feed a file to a parser, decompressed if it begins as gzip files do."""
    with open(path, "rb") as file:
        is_gzip = file.peek(2)[:2] == _GZIP_MAGIC
        try:
            for block in (_decompressed if is_gzip else _plain)(file, block_size):
                parser.feed(block)
        except (EOFError, zlib.error) as error:
            line, column = parser.position()
            message = f"the gzip data are damaged after this point: {error}"
            raise ParseError(os.fspath(path), line, column, message) from error


def _plain(file: BinaryIO, block_size: int) -> Iterator[bytes]:
    while block := file.read(block_size):
        yield block


def _decompressed(file: BinaryIO, block_size: int) -> Iterator[bytes]:
    """Like ``gzip.GzipFile``, but give all there is before an error, so that its place is known."""
    member, data = None, b""
    while data := data or file.read(block_size):
        member = member or zlib.decompressobj(wbits=_GZIP_WBITS)
        yield member.decompress(data, block_size)
        data = member.unconsumed_tail
        if member.eof:
            data = member.unused_data.lstrip(b"\0")  # another member, or padding
            member = None
    if member is not None:
        raise EOFError("they end too early")


def write_file(path: Path, blocks: Iterable[bytes]) -> None:
    """Write blocks to a file, compressed if its name ends in ``.gz``."""
    with replacing(path) as file:
        if not os.fspath(path).endswith(".gz"):
            file.writelines(blocks)
            return
        # Neither a name nor a time in the header: the same data give the same file.
        with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0) as compressed:
            compressed.writelines(blocks)
