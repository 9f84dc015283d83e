"""Archives that gzip has packed in one piece, or in few: members that hold many records.

Such a file can be entered nowhere but at its beginning. So each process unpacks the file from its beginning,
and goes on from one of its parts to the next. What belongs to parts of others, or to parts that are done, is
unpacked and left alone.

A part is a range of the packed file. Its records are those whose first byte comes out of this range. A place
is an offset in what comes out. Memory is bounded: some states of the unpacker are kept, to go back where a
record turns out to be damaged.
"""

from __future__ import annotations

import zlib
from bisect import bisect_right
from collections import deque
from contextlib import closing
from dataclasses import dataclass
from io import BufferedReader
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.collection.inputs import archives, gzip_members
from neardup.collection.inputs.found import PART_BYTES, End, Skipped, Why

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from neardup.collection.inputs.archives import Archive
    from neardup.collection.inputs.found import Record

_AT_ONCE = 1 << 16
_APART = 1 << 18
"""Bytes between two states of the unpacker that are kept."""

_BACK = 1 << 19
"""How far back a state is kept; more than what a parser has read ahead of a record that it tells of."""


def is_one_piece(archive: Archive) -> bool:
    """Whether the first member of a packed archive holds more than one record."""
    with archive.open() as file:
        try:
            begun = 0
            for found in _parsed(archive, gzip_members.Member(file, 0), quirks=False):
                begun += isinstance(found, int)
                if begun > 1:
                    return True
        except archives.DAMAGE:
            return False
    return False


@dataclass(frozen=True, slots=True)
class OnePiece:
    """A packed archive whose members hold many records."""

    archive: Archive

    @property
    def size(self) -> int:
        """Bytes of the packed file."""
        return self.archive.size

    @property
    def starts(self) -> list[int]:
        """Places in the packed file."""
        return [0, *range(PART_BYTES, self.size, PART_BYTES)]

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        """See :class:`neardup.collection.inputs.found.Input`; ``start`` and ``end`` are in the file."""
        with closing(Unpacking(self.archive)) as unpacking:
            yield from unpacking.records(start, end)


class Unpacking:
    """An archive that is read once, part after part; parts may be left out."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._stream = _Unpacked(archive.open())
        self._found = self._all()
        self._next: tuple[int, Record] | None = None
        self.behind = 0
        """Where the last part ended, in the packed file: only parts behind it can be read."""

    @property
    def reached(self) -> int:
        """How far the packed file is read."""
        return self._stream.position

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        """The records of a part, and where the first one behind it begins in what was unpacked."""
        self.behind = end
        while True:
            self._next = self._next or next(self._found, None)
            if self._next is None:
                yield End(self._stream.offset)
                return
            place, record = self._next
            at = self._stream.part_of(place)
            if at >= end:
                yield End(place)
                return
            self._next = None
            if at >= start:
                yield record

    def close(self) -> None:
        self._stream.file.close()

    def _all(self) -> Iterator[tuple[int, Record]]:
        """The records and their places."""
        stream, quirks = self._stream, False
        while True:
            held: tuple[int, Any] | None = None
            start = place = stream.offset
            begun = False
            stream.pin(start)
            try:
                for raw in _parsed(self._archive, stream, quirks=quirks):
                    if not isinstance(raw, int):
                        held = place, raw
                        continue
                    if held is not None:
                        yield held[0], archives.record_of(*held)
                        held = None
                    place, begun = raw, True
                    stream.pin(place)
                if held is None:
                    raise ValueError("no record begins here")
            except archives.DAMAGE as exc:
                if not (begun or quirks or stream.failed) and self._archive.form == archives.WARC:
                    stream.rewind(start)
                    quirks = True
                    continue
                quirks = False
                if held is not None and stream.failed and held[0] < stream.begun_at:
                    # The damage is in another member, and the checksum of this one was right.
                    yield held[0], archives.record_of(*held)
                    place = stream.begun_at
                goes_on = self._go_behind(place)
                lost = 0 if goes_on or not stream.failed else self._archive.size - stream.behind_damage
                told = f"; of gzip, the last {lost:,} bytes cannot be read" if lost else ""
                yield place, Skipped(place, Why.DAMAGED, f"{exc}{told}")
                if not goes_on:
                    return
            else:
                yield held[0], archives.record_of(*held)
                return

    def _go_behind(self, place: int) -> bool:
        """Go to the next record behind a damaged one; returns whether there is any.

        It is in the same member, or begins another one where no more comes out of this.
        """
        stream = self._stream
        if not stream.failed:
            try:
                found = self._next_in_member(place)
            except archives.DAMAGE:
                if not stream.failed:
                    raise
            else:
                if found is not None:
                    stream.rewind(found)
                return found is not None
        member = self._archive.next_begin(stream.file, stream.behind_damage, self._archive.size)
        if member is not None:
            stream.jump(member)
        return member is not None

    def _next_in_member(self, place: int) -> int | None:
        stream, pattern = self._stream, archives.IN_FILE[self._archive.form]
        stream.rewind(place)
        at, block = place, b""
        while more := stream.read(_AT_ONCE):
            block += more
            if found := pattern.search(block):
                return at + found.end()
            at += max(0, len(block) - archives.LONGEST_LINE)
            block = block[-archives.LONGEST_LINE :]
        return None


def _parsed(archive: Archive, stream: Any, *, quirks: bool) -> Iterator[Any]:
    if archive.form == archives.WARC:
        return archives.warc_records(stream, quirks=quirks)
    return archives.arc_records(BufferedReader(archives.Raws(stream)))


class _State(NamedTuple):
    """An unpacker between two bytes that come out."""

    offset: int
    position: int
    waiting: bytes
    unpacker: Any


class _Unpacked:
    """What comes out of all members of a file, as one stream.

    ``offset``: how much has come out, of the member at hand from ``begun_at`` on. ``position``: how much of
    the file has gone in. ``failed``: whether reading has raised for damage of gzip.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.offset = self.begun_at = self.position = 0
        self._member = self._block = 0  # where what is unpacked begins, and what went in last
        self.failed = False
        self._waiting = b""
        self._unpacker = zlib.decompressobj(gzip_members.GZIP)
        self._begins: list[int] = []
        self._states = deque([self._state()])
        self._pinned = self._states[0]

    @property
    def behind_damage(self) -> int:
        """From where on the next member may begin, once reading has failed."""
        return max(self._member + 1, self._block)

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            return b"".join(iter(lambda: self.read(_AT_ONCE), b""))
        if self.offset - self._states[-1].offset >= _APART:
            self._states.append(self._state())
            while len(self._states) > 1 and self._states[1].offset < self.offset - _BACK:
                self._states.popleft()
        try:
            return self._read(size)
        except (zlib.error, EOFError):
            self.failed = True
            raise

    def tell(self) -> int:
        return self.offset

    def seek(self, offset: int, whence: int = 0) -> int:
        raise OSError("gzip is read from its beginning to its end")

    def close(self) -> None:
        """The file is open for what comes behind damage."""

    def part_of(self, place: int) -> int:
        """Where the part begins, in the packed file, that a byte comes out of."""
        return PART_BYTES * bisect_right(self._begins, place)

    def pin(self, offset: int) -> None:
        """Keep what it takes to go back to an offset, until another one is pinned."""
        self._pinned = max((state for state in self._all_states() if state.offset <= offset), key=_offset)

    def rewind(self, offset: int) -> None:
        """Go back to an offset that was pinned, or was read a moment ago."""
        before = max((state for state in self._all_states() if state.offset <= offset), key=_offset)
        self.offset, self.position, self._waiting, unpacker = before
        self._unpacker = unpacker.copy()
        self._states = deque([before])
        self.file.seek(self.position)
        while self.offset < offset:
            self._read(min(_AT_ONCE, offset - self.offset))

    def jump(self, position: int) -> None:
        """Go on at another member."""
        self.offset += 1  # what comes out there has another place than all before
        self.begun_at = self.offset
        self.position = self._member = self._block = position
        self._waiting, self.failed = b"", False
        self._unpacker = zlib.decompressobj(gzip_members.GZIP)
        self._begins += [self.offset] * (position // PART_BYTES - len(self._begins))
        self.file.seek(position)
        self._states = deque([self._state()])
        self._pinned = self._states[0]

    def _all_states(self) -> list[_State]:
        return [self._pinned, *self._states]

    def _state(self) -> _State:
        return _State(self.offset, self.position, self._waiting, self._unpacker.copy())

    def _read(self, size: int) -> bytes:
        while size:
            if self._unpacker.eof and not self._begin_member():
                break
            if not self._waiting:
                # All that has gone in comes out first, so that it is certain which part it is of.
                if unpacked := self._unpacker.decompress(b"", size):
                    self.offset += len(unpacked)
                    return unpacked
                self._waiting = self._next_bytes()
                if not self._waiting:
                    raise EOFError("the file ends within a gzip member")
            unpacked = self._unpacker.decompress(self._waiting, size)
            self._waiting = self._unpacker.unconsumed_tail
            if unpacked:
                self.offset += len(unpacked)
                return unpacked
        return b""

    def _next_bytes(self) -> bytes:
        left = PART_BYTES - self.position % PART_BYTES
        self._block = self.position
        packed = self.file.read(min(_AT_ONCE, left))
        if packed and self.position // PART_BYTES > len(self._begins):
            self._begins.append(self.offset)
        self.position += len(packed)
        return packed

    def _begin_member(self) -> bool:
        """Begin the next member; returns whether there is one. Zeros between members are nothing."""
        packed = self._unpacker.unused_data.lstrip(b"\0")
        while not packed:
            more = self._next_bytes()
            if not more:
                return False
            packed = more.lstrip(b"\0")
        self._unpacker = zlib.decompressobj(gzip_members.GZIP)
        self._waiting, self.begun_at = packed, self.offset
        self._member = self.position - len(packed)
        return True


def _offset(state: _State) -> int:
    return state.offset
