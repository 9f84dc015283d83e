"""WARC and ARC files, whole and damaged.

Records are read one after the other up to the first damage. Reading goes on at the next place that begins a
record: no library goes on behind a damaged member of gzip. ``fastwarc`` reads WARC records, and ARC records
are read here.

A record counts when the next one, or the end of the file, stands where it should. So it does when a member
of gzip holds the record and nothing else. Any other record has a wrong length, or stands right before damage,
and is skipped.
"""

from __future__ import annotations

import importlib
import re
import zipfile
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from io import SEEK_CUR, SEEK_END, SEEK_SET, BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from neardup.collection.inputs import gzip_members
from neardup.collection.inputs.found import (
    PART_BYTES,
    Capture,
    End,
    Origin,
    Other,
    Page,
    Record,
    Reference,
    Revisit,
    Skipped,
    Text,
    Why,
)
from neardup.collection.inputs.http_message import page_of, status_of
from neardup.errors import ConfigurationError
from neardup.text.folders import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from io import FileIO
    from pathlib import Path
    from typing import BinaryIO

WARC, ARC = FORMS = ("warc", "arc")

_WARC = re.compile(rb"\s*WARC/\d\.\d+\r*\n")
_ARC = re.compile(
    rb"\s*([a-z][a-z0-9+.-]*:[^\r\n]*?) (\S+) (\d{14})\d* (\S+)(?: \d{3} \S+ \S+ \d+ \S+)? (-?\d+)\r?\n",
    re.IGNORECASE,
)
IN_FILE = {
    WARC: re.compile(rb"\n(?=WARC/\d\.\d+\r*\n[A-Za-z-]+:)"),
    ARC: re.compile(rb"\n(?=" + _ARC.pattern.removeprefix(rb"\s*") + rb")", re.IGNORECASE),
}
"""The line end in front of a record. A search for what must stand behind one takes thirty times as long."""
BEGINS = {WARC: _WARC, ARC: _ARC}
_FRAME = re.compile(rb"\x28\xb5\x2f\xfd|\x04\x22\x4d\x18|[\x50-\x5f]\x2a\x4d\x18")
"""What a frame of zstd, one of lz4, and one that either of them skips begin with."""
_PAGES = frozenset({"response", "resource", "conversion"})
_REVISIT = "revisit"
_SAME_PAYLOAD = "identical-payload-digest"
"""In the profile of a revisit whose digest is that of the page referred to, not that of an empty answer."""
_NOT_MODIFIED = 304
_READ = _PAGES | {_REVISIT}
LONGEST_LINE = 1 << 16
_SCANNED = 1 << 20
_BUFFER = 1 << 20

DAMAGE = (OSError, EOFError, ValueError, zlib.error, zipfile.BadZipFile)
"""What fastwarc, zlib, zipfile and the code below raise at damage."""


@dataclass(frozen=True, slots=True)
class Archive:
    """A WARC or ARC file.

    It may stand in a zip file at ``path``: as it is, from the offset ``begins`` on, or packed once more, by
    the name ``member``.
    """

    path: Path
    member: str | None
    form: str
    packed: bool
    size: int
    splits: bool
    """Whether reading may begin within the file. It may not in a zip file that has packed it once more, and
    not in what zstd or lz4 has packed.
    """
    begins: int = 0

    @property
    def starts(self) -> list[int]:
        return [0, *range(PART_BYTES, self.size, PART_BYTES)] if self.splits else [0]

    def records(self, start: int, end: int, *, exact: bool = False) -> Iterator[Record | End]:
        """See :class:`Input`. ``exact``: a record begins at ``start``."""
        with self.open() as file:
            at: int | None = start
            if start and not exact:
                at = self.next_begin(file, start, end)
                at = end if at is None else at
            while at is not None and at < end:
                at = yield from self._stretch(file, at, end)
            yield End(self.size if at is None else at)

    def open(self) -> BinaryIO:
        try:
            if self.member is None and not self.begins:
                return self.path.open("rb", buffering=_BUFFER)
            if self.member is None:
                file = self.path.open("rb", buffering=0)
                return cast("BinaryIO", BufferedReader(_Within(file, self.begins, self.size), _BUFFER))
            archive = zipfile.ZipFile(self.path)  # stays open as long as what is read of it
            found: Any = archive.open(self.member)
        except (OSError, zipfile.BadZipFile, KeyError) as exc:
            raise ConfigurationError(f"{self.path} cannot be read: {exc}") from exc
        return cast("BinaryIO", BufferedReader(found, _BUFFER))

    def _stretch(
        self, file: BinaryIO, start: int, end: int, *, quirks: bool = False
    ) -> Generator[Record, None, int | None]:
        """The records from an offset on, up to ``end`` or the first damage.

        Returns where the next record begins, None if there is none.
        """
        file.seek(start)
        held: tuple[int, _Raw] | None = None
        place, begun = start, False
        try:
            for raw in self._parsed(file, quirks=quirks):
                if isinstance(raw, _Raw):
                    held = place, raw
                    continue
                if held is not None:
                    yield record_of(*held)
                    held = None
                # All records of one member of gzip have its place, or another one that says nothing. So have
                # those of a frame of zstd or lz4: their places may pass the end of the file.
                place = max(raw, place + begun)
                begun = True
                if self.splits and place >= end and self._is_begin(place):
                    return place
            if held is None:
                raise ValueError("no record begins here")
        except DAMAGE as exc:
            if not begun and not quirks and self.form == WARC:
                return (yield from self._stretch(file, start, end, quirks=True))
            if held is not None and (after := self._end_of_member(file, place)) is not None:
                yield record_of(*held)
                if self._is_begin(after):
                    return after
                place = after
            yield Skipped(place, Why.DAMAGED, str(exc))
            return self.next_begin(file, place + 1, self.size)
        yield record_of(*held)
        return None

    def _parsed(self, file: BinaryIO, *, quirks: bool) -> Iterator[int | _Raw]:
        """For each record its offset, as soon as its header is read, then the record itself."""
        if self.form == WARC:
            return warc_records(file, quirks=quirks)
        return _packed_arc_records(file) if self.packed else arc_records(file)

    def _end_of_member(self, file: BinaryIO, offset: int) -> int | None:
        """Where a member of gzip ends that holds records and nothing else, all whole; None: it does not."""
        if not self.packed:
            return None
        member = gzip_members.Member(file, offset)
        try:
            if self.form == WARC:
                found = sum(1 for _ in warc_records(member, quirks=False))
            else:
                found = sum(1 for _ in arc_records(BufferedReader(Raws(member))))
            after = member.finish()
        except DAMAGE:
            return None
        return after if found else None

    def _is_begin(self, offset: int) -> bool:
        """Whether a part may begin at the offset of a record: not within a member of gzip."""
        if not self.packed:
            return True
        with self.open() as file:
            return BEGINS[self.form].match(gzip_members.beginning(file, offset)) is not None

    def next_begin(self, file: BinaryIO, offset: int, end: int) -> int | None:
        """The offset of the first record, or member with a record, in ``[offset, end)``; None: there is none.

        Nobody looks behind ``end``: of a record of 10 GB, each of 150 parts would look for its end.
        """
        try:
            if self.packed:
                return gzip_members.next_member(file, offset, end, BEGINS[self.form].match)
            return self._next_plain(file, offset, end)
        except DAMAGE:  # a zip file that has packed the archive once more, or a disk that fails
            return None

    def _next_plain(self, file: BinaryIO, offset: int, end: int) -> int | None:
        pattern = IN_FILE[self.form]
        offset = max(0, offset - 1)  # a record begins behind a line end
        while offset < end:
            file.seek(offset)
            block = file.read(_SCANNED)
            found = pattern.search(block)
            if found is not None:
                return offset + found.end() if offset + found.end() < end else None
            if len(block) < _SCANNED:
                return None
            offset += _SCANNED - LONGEST_LINE
        return None


class _Within(RawIOBase):
    """A part of a file as a file."""

    def __init__(self, file: FileIO, begins: int, size: int) -> None:
        self._file, self._begins, self._size = file, begins, size
        file.seek(begins)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._file.tell() - self._begins

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        at = {SEEK_SET: 0, SEEK_CUR: self.tell(), SEEK_END: self._size}[whence]
        return self._file.seek(self._begins + at + offset) - self._begins

    def readinto(self, into: Any) -> int:
        return self._file.readinto(memoryview(into)[: max(0, self._size - self.tell())]) or 0

    def close(self) -> None:
        self._file.close()
        super().close()


class _Raw(NamedTuple):
    """A record as it stands. ``content`` is None if it is too large to be a page."""

    kind: str
    url: str
    date: datetime | None
    ip: str | None
    type: str
    content: bytes | None
    capture: Capture
    refers_to: Reference | None


_UNREAD = _Raw("", "", None, None, "", None, Capture("", ""), None)
"""A record of another kind, such as a request."""


def warc_records(file: Any, *, quirks: bool) -> Iterator[int | _Raw]:
    for record in _fastwarc().ArchiveIterator(file, parse_http=False, quirks_mode=quirks):
        yield record.stream_pos
        get = record.headers.get
        kind = get("WARC-Type") or ""
        content = None
        if kind in _READ and record.content_length <= MOST_BYTES:
            content = record.reader.read()
        # What is not read must be there as well: fastwarc skips to the end of the file without a word.
        found = record.reader.consume() if content is None else len(content)
        if found < record.content_length:
            raise EOFError(f"the record has {found} of {record.content_length} bytes")
        if kind not in _READ:
            yield _UNREAD
            continue
        yield _Raw(
            kind=kind,
            url=(get("WARC-Target-URI") or "").strip("<> "),
            date=record.record_date,
            ip=get("WARC-IP-Address"),
            type=get("Content-Type") or "",
            content=content,
            capture=Capture(get("WARC-Record-ID") or "", get("WARC-Payload-Digest") or ""),
            refers_to=_reference(get) if kind == _REVISIT else None,
        )


def _packed_arc_records(file: BinaryIO) -> Iterator[int | _Raw]:
    offset = file.tell()
    while file.read(1):
        member = gzip_members.Member(file, offset)
        for found in arc_records(BufferedReader(Raws(member))):
            yield offset if isinstance(found, int) else found
        offset = member.finish()
        file.seek(offset)


def arc_records(reader: Any) -> Iterator[int | _Raw]:
    while line := reader.readline(LONGEST_LINE):
        if not line.strip():
            continue
        offset = reader.tell() - len(line)
        header = _ARC.match(line)
        length = int(header[5]) if header else -1
        if header is None or length < 0:
            raise ValueError(f"no header of a record: {line[:80]!r}")
        yield offset
        content = None
        if length <= MOST_BYTES:
            content = reader.read(length)
            length -= len(content)
        while length and (skipped := reader.read(min(length, _SCANNED))):
            length -= len(skipped)
        if length:
            raise EOFError(f"the record has {length} bytes less than its header says")
        url = header[1].decode("utf-8", "replace")
        yield _Raw(
            kind="filedesc" if url.startswith("filedesc:") else "response",
            url=url,
            date=_arc_date(header[3]),
            ip=header[2].decode("utf-8", "replace"),
            type="",
            content=content,
            capture=Capture("", ""),
            refers_to=None,
        )


class Raws(RawIOBase):
    """A member of a gzip file for io."""

    def __init__(self, member: gzip_members.Member) -> None:
        self._member = member

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._member.tell()

    def readinto(self, into: Any) -> int:
        data = self._member.read(len(into))
        into[: len(data)] = data
        return len(data)


def _arc_date(digits: bytes) -> datetime | None:
    try:
        return datetime.strptime(digits.decode(), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def record_of(place: int, raw: _Raw) -> Record:
    if raw.kind not in _READ:
        return Other(place)
    if raw.content is None or not raw.url:
        return Skipped(place, Why.NO_URL if raw.content is not None else Why.TOO_LARGE)
    origin = Origin(place=place, url=raw.url, date=raw.date, ip=raw.ip, capture=raw.capture)
    if raw.refers_to is not None:
        return _revisit(origin, raw.content, raw.refers_to)
    if raw.kind == "response":
        return page_of(origin, raw.content)
    if raw.kind == "conversion" and raw.type.startswith("text/plain"):
        return Text(origin, raw.content.decode("utf-8", "replace"))
    return Page(origin, 200, f"Content-Type: {raw.type}".encode(), raw.content)


def _revisit(origin: Origin, response: bytes, refers_to: Reference) -> Revisit | Skipped:
    status = status_of(response)  # a revisit may come without the headers of its response
    if status is not None and not 200 <= status < 300 and status != _NOT_MODIFIED:
        return Skipped(origin.place, Why.ERROR_PAGE)
    return Revisit(origin, refers_to)


def _reference(get: Callable[[str], str | None]) -> Reference:
    is_same_payload = _SAME_PAYLOAD in (get("WARC-Profile") or "")
    return Reference(
        record=get("WARC-Refers-To") or "",
        url=(get("WARC-Refers-To-Target-URI") or "").strip("<> "),
        date=_warc_date(get("WARC-Refers-To-Date") or ""),
        digest=(get("WARC-Payload-Digest") or "") if is_same_payload else "",
    )


def _warc_date(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def need_reader(form: str) -> None:
    """Raise ConfigurationError if files of this form need what is not installed."""
    if form == WARC:
        _fastwarc()


def _fastwarc() -> Any:
    try:
        return importlib.import_module("fastwarc.warc")
    except ImportError as exc:
        raise ConfigurationError("WARC files need fastwarc: pip install 'neardup[warc]'") from exc


def is_in_frames(beginning: bytes) -> bool:
    """Whether zstd or lz4 has packed a file, by its first bytes. ``fastwarc`` unpacks it."""
    return _FRAME.match(beginning) is not None


def form_of(beginning: bytes) -> str | None:
    """``WARC`` or ``ARC`` by the first bytes of a file, unpacked; None: it is neither."""
    return next((form for form, pattern in BEGINS.items() if pattern.match(beginning)), None)
