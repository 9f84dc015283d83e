"""Gzip files member by member, so that a damaged member costs no other one."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

MAGIC = b"\x1f\x8b\x08"
GZIP = 31
_AT_ONCE = 1 << 14
_SCANNED = 1 << 20
_PACKED_BEGINNING = 1 << 12
_BEGINNING = 1 << 10
"""Bytes of a member, unpacked, that tell whether it begins a record."""


class Member:
    """One member, unpacked as it is read.

    Reading raises zlib.error if the member is damaged, EOFError if it ends too early. ``read`` is what
    fastwarc and io ask of a file.
    """

    def __init__(self, file: IO[bytes], offset: int) -> None:
        file.seek(offset)
        self._file = file
        self._unpacker = zlib.decompressobj(GZIP)
        self._waiting = b""
        self._position = offset
        self._read = 0

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return b"".join(iter(lambda: self.read(_SCANNED), b""))
        while size and not self._unpacker.eof:
            packed = self._waiting
            if not packed:
                packed = self._file.read(_AT_ONCE)
                self._position += len(packed)
                if not packed:
                    raise EOFError("the file ends within a gzip member")
            unpacked = self._unpacker.decompress(packed, size)
            self._waiting = self._unpacker.unconsumed_tail
            if unpacked:
                self._read += len(unpacked)
                return unpacked
        return b""

    def finish(self) -> int:
        """Read what is left; returns the offset behind the member."""
        while self.read(_SCANNED):
            pass
        return self._position - len(self._unpacker.unused_data)

    def tell(self) -> int:
        return self._read

    def seek(self, offset: int, whence: int = 0) -> int:
        raise OSError("a gzip member is read from its beginning to its end")

    def close(self) -> None:
        """The file is open for the next member."""


def beginning(file: IO[bytes], offset: int) -> bytes:
    """The first bytes of the member at an offset, unpacked; none if there is no member."""
    file.seek(offset)
    try:
        return zlib.decompressobj(GZIP).decompress(file.read(_PACKED_BEGINNING), _BEGINNING)
    except zlib.error:
        return b""


def next_member(file: IO[bytes], offset: int, end: int, is_begin: Callable[[bytes], object]) -> int | None:
    """The offset of the first member in ``[offset, end)`` whose first bytes begin a record; None: there is
    none.
    """
    while offset < end:
        file.seek(offset)
        block = file.read(_SCANNED)
        at = block.find(MAGIC)
        while 0 <= at < end - offset:
            if is_begin(beginning(file, offset + at)):
                return offset + at
            at = block.find(MAGIC, at + 1)
        if len(block) < _SCANNED:
            return None
        offset += len(block) - len(MAGIC) + 1
    return None
