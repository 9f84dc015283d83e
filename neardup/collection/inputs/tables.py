"""Rows with pages: JSON Lines, Parquet, and the feeds that Scrapy exports (JSON Lines, JSON, CSV, XML)."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any

from lxml import etree

from neardup.collection.inputs.found import (
    PART_BYTES,
    PART_ROWS,
    End,
    Origin,
    Page,
    Record,
    Skipped,
    Text,
    Unreadable,
    Why,
)
from neardup.errors import ConfigurationError
from neardup.parquet import DAMAGE as OF_ARROW
from neardup.parquet import arrow_module, reading_parquet
from neardup.text.folders import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO

UNKNOWN_SIZE = 1 << 40
_ROWS_AT_ONCE = 64
_SKIPPED_AT_ONCE = 1 << 20
_BEGINNING = 64
_BUFFER = 1 << 20
"""Bytes that are read at once. A line longer than the buffer is put together of pieces."""

_NOT_OF_LINES = b" \t\r\n[],"
"""What a feed in JSON has around the objects of its lines."""

_END_OF_FEED = "\x1eend of the feed\x1e"
"""A row behind the last one of a feed in CSV: it becomes part of a field whose quote is not closed."""

_ITEM = b"<item"
_BEFORE_ITEM = re.compile(rb"(?=<item[\s>])")
"""In front of an item of a feed in XML: a < within a text is written otherwise."""

_LINES_LOOKED_AT = 1000
"""Lines of which one must be an object, so that a file is a feed that is damaged, and nothing else."""

_TEXT, _BYTES, _NOTHING = "text", "bytes", "nothing"
"""Types of columns; those of others have their own names."""

_OF_PARQUET = (OSError, *OF_ARROW)
_DAMAGE = (OSError, EOFError, ValueError, zlib.error, csv.Error, etree.XMLSyntaxError, RecursionError)


@dataclass(frozen=True, slots=True)
class Names:
    """The columns that hold the URL of a page, its HTML, or else its visible text, and its date."""

    url: str = "url"
    html: str = "html"
    text: str = "text"
    date: str = "date"

    def missing(self, found: Mapping[str, object] | list[str]) -> Unreadable | None:
        """What stands for a table with these columns; None: it has pages by these names."""
        there = ", ".join(map(str, found)) or "none"
        if self.url not in found:
            lacks = f"no column {self.url!r} with URLs (--url-column)"
        elif self.html not in found and self.text not in found:
            lacks = (
                f"neither a column {self.html!r} with HTML (--html-column) nor {self.text!r} with text"
                " (--text-column)"
            )
        else:
            return None
        return Unreadable(Why.NO_COLUMNS, f"has {lacks}; it has {there}")

    def unfit(self, found: Mapping[str, str]) -> Unreadable | None:
        """What stands for a table that has values of other types than pages have; None: it has pages.

        ``found``: the types of its columns, ``_TEXT``, ``_BYTES``, ``_NOTHING`` or any other name.
        """
        wanted = {self.url: ("url", [_TEXT]), self.html: ("html", [_TEXT, _BYTES])}
        if found.get(self.html, _NOTHING) == _NOTHING:  # else rows with HTML are pages
            wanted[self.text] = ("text", [_TEXT])
        for column, (of, types) in wanted.items():
            if (kind := found.get(column, _NOTHING)) not in {_NOTHING, *types}:
                detail = f"has {kind} in the column {column!r}, not {' or '.join(types)} (--{of}-column)"
                return Unreadable(Why.NO_COLUMNS, detail)
        return None

    def record(self, place: int, row: Mapping[str, Any]) -> Record:
        """A row as a page."""
        url, html, text = row.get(self.url), row.get(self.html), row.get(self.text)
        if not isinstance(url, str) or not url:
            return Skipped(place, Why.NO_URL, _other_than_text(self.url, url))
        given = row.get(self.date)
        found = _date(given)
        undated = found is None and given is not None and given != ""
        origin = Origin(place=place, url=url, date=found, undated=undated)
        # CSV has an empty cell where there is nothing.
        has_html = isinstance(html, str | bytes) and len(html) > 0 and not html.isspace()
        if isinstance(text, str) and not has_html:
            return Text(origin, text)
        if isinstance(html, str):
            body = html.encode("utf-8", "replace")
            return Page(origin, 200, b"Content-Type: text/html; charset=utf-8", body)
        if isinstance(html, bytes):
            return Page(origin, 200, b"Content-Type: text/html", html)
        return Skipped(place, Why.NO_CONTENT, _other_than_text(self.text, text))


@dataclass(frozen=True, slots=True)
class JsonLines:
    """A file with an object a line, as Scrapy's feeds in JSON have, too. ``packed``: by gzip, in one part."""

    path: Path
    names: Names
    packed: bool
    size: int

    @property
    def starts(self) -> list[int]:
        return [0] if self.packed else [0, *range(PART_BYTES, self.size, PART_BYTES)]

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        with _open(self.path, packed=self.packed) as file:
            place = start
            if start:
                file.seek(start - 1)
                place += _skipped_line(file, b"") - 1
            line = last = b""
            try:
                while place < end and (line := file.readline(MOST_BYTES)):
                    last = line.strip() or last
                    if len(line) < MOST_BYTES:
                        if text := line.strip(_NOT_OF_LINES):
                            yield self._record(place, text)
                        place += len(line)
                    else:
                        yield Skipped(place, Why.TOO_LARGE, f"a line of {MOST_BYTES:,} bytes or more")
                        place += len(line) + _skipped_line(file, line)
                at_end = not line or place >= self.size
                if at_end and last and not last.endswith(b"]") and self._is_array():
                    yield Skipped(place, Why.DAMAGED, "the feed is cut off, it does not end with ]")
            except _DAMAGE as exc:
                yield Skipped(place, Why.DAMAGED, str(exc))
        yield End(place)

    def _is_array(self) -> bool:
        """Whether the file is a feed in JSON, and not one in JSON Lines."""
        with _open(self.path, packed=self.packed) as file:
            return bool(file.read(_BEGINNING).lstrip().startswith(b"["))

    def missing(self) -> Unreadable | None:
        """What stands for a file that is no feed: none of its first lines is an object, or may be a page."""
        damage: str | None = None
        unfit: Unreadable | None = None
        with _open(self.path, packed=self.packed) as file:
            try:
                for line in islice(iter(lambda: file.readline(MOST_BYTES), b""), _LINES_LOOKED_AT):
                    if text := line.strip(_NOT_OF_LINES):
                        found = _object(text)
                        if not isinstance(found, dict):
                            damage = damage or found
                            continue
                        if unfit is None and (missing := self.names.missing(found)):
                            return missing
                        types = {name: _type_of(value) for name, value in found.items()}
                        if (problem := self.names.unfit(types)) is None:
                            return None
                        unfit = unfit or problem
            except _DAMAGE as exc:
                damage = damage or str(exc)
        if unfit is not None or damage is None:
            return unfit
        return Unreadable(Why.DAMAGED, f"has no JSON object a line: {damage}")

    def _record(self, place: int, line: bytes) -> Record:
        found = _object(line)
        return (
            self.names.record(place, found) if isinstance(found, dict) else Skipped(place, Why.DAMAGED, found)
        )


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed in CSV or XML, in one part; places are numbers of items."""

    path: Path
    names: Names
    packed: bool
    form: str
    size: int = UNKNOWN_SIZE

    @property
    def starts(self) -> list[int]:
        return [0]

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        place = start
        with _open(self.path, packed=self.packed) as file:
            try:
                for row in self._rows(file):
                    if isinstance(row, Exception):
                        yield Skipped(place, Why.DAMAGED, str(row))
                    else:
                        yield self.names.record(place, row)
                    place += 1
            except _DAMAGE as exc:
                yield Skipped(place, Why.DAMAGED, str(exc))
        yield End(place)

    def missing(self) -> Unreadable | None:
        """What stands for a file that is no feed: it has no item, or its first item is no page."""
        damage: Exception | None = None
        with _open(self.path, packed=self.packed) as file:
            try:
                for row in self._rows(file):
                    if not isinstance(row, Exception):
                        return self.names.missing(row)
                    damage = damage or row
            except _DAMAGE as exc:
                damage = damage or exc
        if damage is None:
            return None
        return Unreadable(Why.DAMAGED, f"is no feed in {self.form.upper()}: {damage}")

    def _rows(self, file: BinaryIO) -> Iterator[dict[str, Any] | Exception]:
        """The items, and what is wrong where others cannot be read."""
        if self.form == "csv":
            csv.field_size_limit(MOST_BYTES)
            lines = iter(lambda: file.readline(MOST_BYTES), b"")
            texts = chain((line.decode("utf-8", "replace") for line in lines), [_END_OF_FEED])
            yield from _dicts(csv.reader(texts))
        else:
            yield from _items(file)


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """A Parquet file; a part is one of its row groups, or some of them."""

    path: Path
    names: Names
    size: int
    groups: tuple[int, ...]
    """The numbers of the first rows of all row groups."""

    @classmethod
    def of(cls, path: Path, names: Names) -> ParquetTable | Unreadable:
        """The table, or what stands for a file that is damaged or has no pages."""
        parquet = arrow_module("pyarrow.parquet", path)
        try:
            with parquet.ParquetFile(path) as file:
                types = {field.name: _name_of_type(field.type, path) for field in file.schema_arrow}
                if missing := names.missing(list(types)) or names.unfit(types):
                    return missing
                ends = [0]
                for number in range(file.metadata.num_row_groups):
                    ends.append(ends[-1] + file.metadata.row_group(number).num_rows)
        except _OF_PARQUET as exc:
            return Unreadable(Why.DAMAGED, f"is not a Parquet file, or is damaged: {exc}")
        return cls(path, names, ends[-1], tuple(ends[:-1]))

    @property
    def starts(self) -> list[int]:
        starts = [0]
        for first in self.groups:
            if first - starts[-1] >= PART_ROWS:
                starts.append(first)
        return starts

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        parquet = arrow_module("pyarrow.parquet", self.path)
        with (
            reading_parquet(self.path),
            parquet.ParquetFile(self.path, page_checksum_verification=True) as file,
        ):
            for group, (first, behind) in enumerate(pairwise([*self.groups, self.size])):
                if start <= first < end:
                    yield from self._group(file, group, first, behind)
        yield End(min(end, self.size))

    def _group(self, file: Any, group: int, place: int, behind: int) -> Iterator[Record]:
        """The records of a row group. Behind damage, a batch that can be unpacked is read; no other is."""
        wanted = {self.names.url, self.names.html, self.names.text, self.names.date}
        columns = [name for name in file.schema_arrow.names if name in wanted]
        batches = file.iter_batches(batch_size=_ROWS_AT_ONCE, row_groups=[group], columns=columns)
        while place < behind:
            lost = behind - place
            try:
                batch = next(batches, None)
                if batch is None:
                    raise ValueError("the row group has fewer rows than it says")
                lost = batch.num_rows
                rows = batch.to_pylist()
            except _OF_PARQUET as exc:
                yield Skipped(place, Why.DAMAGED, f"{lost:,} rows cannot be read: {exc}")
            else:
                for at, row in enumerate(rows, place):
                    yield self.names.record(at, row)
            place += lost


def _name_of_type(of: Any, path: Path) -> str:
    """What :meth:`Names.unfit` calls an Arrow type."""
    kinds = arrow_module("pyarrow.types", path)
    of = of.value_type if kinds.is_dictionary(of) else of
    if kinds.is_null(of):
        return _NOTHING
    if kinds.is_string(of) or kinds.is_large_string(of) or kinds.is_string_view(of):
        return _TEXT
    if "binary" in str(of):
        return _BYTES
    return str(of)


def _type_of(value: object) -> str:
    """What :meth:`Names.unfit` calls the type of a value in JSON."""
    return _TEXT if isinstance(value, str) else _NOTHING if value is None else type(value).__name__


def _other_than_text(column: str, value: object) -> str:
    """Why a value is not taken for text; empty: it is text, or nothing."""
    return "" if value is None or isinstance(value, str) else f"{column} is {type(value).__name__}, not text"


def _object(line: bytes) -> dict[str, Any] | str:
    """The object of a line, or why it has none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as exc:
        return str(exc)
    return found if isinstance(found, dict) else "the line is no object"


def _items(file: BinaryIO) -> Iterator[dict[str, Any] | Exception]:
    """The items of a feed in XML. Behind damage, reading goes on with the next item that begins."""
    parser: Any = _item_parser()
    head, is_head = b"", True
    for piece in _pieces(file):
        begins = piece.startswith(_ITEM)
        is_head = is_head and not begins
        head += piece if is_head else b""
        if parser is None:
            parser = _begun(head, piece) if begins else None
            yield from _ended(parser)
            continue
        try:
            parser.feed(piece)
        except etree.XMLSyntaxError as exc:
            ended = list(_ended(parser))
            yield from ended
            yield exc
            # What is wrong may stand in front of the item.
            parser = _begun(head, piece) if begins and not ended else None
        yield from _ended(parser)
    try:
        if parser is not None:
            parser.close()
    except etree.XMLSyntaxError as exc:
        yield exc


def _begun(head: bytes, item: bytes) -> Any:
    """A parser behind the beginning of an item; None: this is damaged. ``head``: what the feed begins with,
    such as its charset, unless that is damaged.
    """
    for before in (head, b"<items>"):
        parser = _item_parser()
        with suppress(etree.XMLSyntaxError):
            parser.feed(before)
            parser.feed(item)
            return parser
    return None


def _item_parser() -> Any:
    return etree.XMLPullParser(events=("end",), tag="item", huge_tree=True, resolve_entities=False)


def _ended(parser: Any) -> Iterator[dict[str, Any]]:
    """The items that have ended since the last call."""
    for _, item in parser.read_events() if parser is not None else ():
        yield {field.tag: field.text or "" for field in item}
        item.clear()


def _pieces(file: Any) -> Iterator[bytes]:
    """A file in pieces of which each item begins one; a long item has more than one."""
    waiting = b""
    while block := file.read1(_BUFFER):  # what gzip unpacks before damage comes out
        *pieces, waiting = _BEFORE_ITEM.split(waiting + block)
        yield from filter(None, pieces)
        if len(waiting) > _BUFFER:
            yield waiting[: -len(_ITEM)]
            waiting = waiting[-len(_ITEM) :]
    yield waiting


def _dicts(rows: Iterator[list[str]]) -> Iterator[dict[str, Any]]:
    """The rows of a feed in CSV, by the names of its first row; ValueError if a quote is not closed."""
    names: list[str] | None = None
    for row in rows:
        if row == [_END_OF_FEED]:
            return
        if row and row[-1].endswith(_END_OF_FEED):
            raise ValueError("a quote is not closed: all behind it is one field")
        if names is None:
            names = row or None
        elif row:
            yield dict(zip(names, row, strict=False))


def _skipped_line(file: BinaryIO, line: bytes) -> int:
    """Skip what is left of a line that was read in part; returns how many bytes that was."""
    skipped = 0
    while not line.endswith(b"\n") and (line := file.readline(_SKIPPED_AT_ONCE)):
        skipped += len(line)
    return skipped


def _open(path: Path, *, packed: bool) -> Any:
    try:
        return gzip.open(path) if packed else path.open("rb", buffering=_BUFFER)
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror or exc}") from exc


def _date(value: Any) -> datetime | None:
    """A time as a feed has it: ISO 8601, or seconds since 1970; without a zone it is UTC."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        elif isinstance(value, int | float):
            value = datetime.fromtimestamp(value, UTC)
        elif isinstance(value, date) and not isinstance(value, datetime):  # a day, as Parquet has it
            value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
