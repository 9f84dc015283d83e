"""Rows with pages: JSON Lines, Parquet, and the feeds that Scrapy exports (JSON Lines, JSON, CSV, XML)."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
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
    Why,
)
from neardup.errors import ConfigurationError
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

_DAMAGE = (OSError, EOFError, ValueError, zlib.error, csv.Error, etree.XMLSyntaxError, RecursionError)


@dataclass(frozen=True, slots=True)
class Names:
    """The columns that hold the URL of a page, its HTML, or else its visible text, and its date."""

    url: str = "url"
    html: str = "html"
    text: str = "text"
    date: str = "date"

    def check(self, path: Path, found: Mapping[str, object] | list[str]) -> None:
        """Raise ConfigurationError if a table has no pages by these names."""
        there = ", ".join(map(str, found)) or "none"
        if self.url not in found:
            raise ConfigurationError(
                f"{path} has no column {self.url!r} with URLs (--url-column); it has {there}"
            )
        if self.html not in found and self.text not in found:
            raise ConfigurationError(
                f"{path} has neither a column {self.html!r} with HTML (--html-column) nor {self.text!r} with"
                f" text (--text-column); it has {there}"
            )

    def record(self, place: int, row: Mapping[str, Any]) -> Record:
        """A row as a page."""
        url, html, text = row.get(self.url), row.get(self.html), row.get(self.text)
        if not isinstance(url, str) or not url:
            return Skipped(place, Why.NO_URL)
        origin = Origin(place=place, url=url, date=_date(row.get(self.date)))
        if isinstance(html, str):
            body = html.encode("utf-8", "replace")
            return Page(origin, 200, b"Content-Type: text/html; charset=utf-8", body)
        if isinstance(html, bytes):
            return Page(origin, 200, b"Content-Type: text/html", html)
        if isinstance(text, str):
            return Text(origin, text)
        return Skipped(place, Why.NO_CONTENT)


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

    def check(self) -> None:
        """Raise ConfigurationError unless the first line is an object with a page."""
        for found in islice(self.records(0, 2), 1):
            if isinstance(found, Skipped) and found.why is Why.DAMAGED:
                raise ConfigurationError(f"{self.path} has no JSON object a line: {found.detail}")
        with _open(self.path, packed=self.packed) as file:
            lines = (line.strip(_NOT_OF_LINES) for line in iter(lambda: file.readline(MOST_BYTES), b""))
            first = next(filter(None, lines), None)
        if first is not None:
            self.names.check(self.path, json.loads(first))

    def _record(self, place: int, line: bytes) -> Record:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as exc:
            return Skipped(place, Why.DAMAGED, str(exc))
        if not isinstance(row, dict):
            return Skipped(place, Why.DAMAGED, "the line is no object")
        return self.names.record(place, row)


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
                    yield self.names.record(place, row)
                    place += 1
            except _DAMAGE as exc:
                yield Skipped(place, Why.DAMAGED, str(exc))
        yield End(place)

    def check(self) -> None:
        """Raise ConfigurationError unless the first item is a page."""
        with _open(self.path, packed=self.packed) as file:
            try:
                first = next(self._rows(file), None)
            except _DAMAGE as exc:
                raise ConfigurationError(f"{self.path} is no feed in {self.form.upper()}: {exc}") from exc
        if first is not None:
            self.names.check(self.path, first)

    def _rows(self, file: BinaryIO) -> Iterator[dict[str, Any]]:
        if self.form == "csv":
            csv.field_size_limit(MOST_BYTES)
            lines = iter(lambda: file.readline(MOST_BYTES), b"")
            texts = chain((line.decode("utf-8", "replace") for line in lines), [_END_OF_FEED])
            yield from _dicts(csv.reader(texts))
            return
        for _, item in etree.iterparse(file, tag="item", huge_tree=True, resolve_entities=False):
            yield {field.tag: field.text or "" for field in item}
            item.clear()


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """A Parquet file; a part is one of its row groups, or some of them."""

    path: Path
    names: Names
    size: int
    groups: tuple[int, ...]
    """The numbers of the first rows of all row groups."""

    @classmethod
    def of(cls, path: Path, names: Names) -> ParquetTable:
        """ConfigurationError if the file is damaged, or has no pages."""
        parquet = arrow_module("pyarrow.parquet", path)
        with reading_parquet(path), parquet.ParquetFile(path) as file:
            names.check(path, file.schema_arrow.names)
            ends = [0]
            for number in range(file.metadata.num_row_groups):
                ends.append(ends[-1] + file.metadata.row_group(number).num_rows)
        return cls(path, names, ends[-1], tuple(ends[:-1]))

    @property
    def starts(self) -> list[int]:
        starts = [0]
        for first in self.groups:
            if first - starts[-1] >= PART_ROWS:
                starts.append(first)
        return starts

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        groups = [number for number, first in enumerate(self.groups) if start <= first < end]
        place = start
        parquet = arrow_module("pyarrow.parquet", self.path)
        with reading_parquet(self.path), parquet.ParquetFile(self.path) as file:
            wanted = {self.names.url, self.names.html, self.names.text, self.names.date}
            columns = [name for name in file.schema_arrow.names if name in wanted]
            batches = file.iter_batches(batch_size=_ROWS_AT_ONCE, row_groups=groups, columns=columns)
            for batch in batches if groups else ():
                for row in batch.to_pylist():
                    yield self.names.record(place, row)
                    place += 1
        yield End(place)


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
    except (ValueError, OverflowError, OSError):
        return None
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
