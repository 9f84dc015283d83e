"""An export as JSON Lines, perhaps packed: the header, then an object a row with the name of its table.

Fingerprints are hexadecimal texts, because many readers of JSON round 64-bit numbers. Times are ISO 8601 in
UTC, bytes are Base64.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import zlib
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

from neardup.errors import ConfigurationError
from neardup.store.archive.layout import Batch, Header, Kind
from neardup.store.whole_file import written_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from neardup.store.archive.layout import Table

_ROWS_AT_ONCE = 1_000
_BYTES_AT_ONCE = 1 << 24
_LONGEST_LINE = 1 << 26
_FINGERPRINT = re.compile("0x[0-9a-f]{16}")

_WRITTEN: dict[Kind, Callable[[Any], Any]] = {
    Kind.FINGERPRINT: lambda value: f"{value:#018x}",
    Kind.TIME: lambda value: value.astimezone(UTC).isoformat(),
    Kind.BYTES: lambda value: base64.b64encode(value).decode(),
}


def _fingerprint(text: str) -> int:
    if not _FINGERPRINT.fullmatch(text):
        raise ValueError(text)
    return int(text, 16)


_READ: dict[Kind, Callable[[str], Any]] = {
    Kind.FINGERPRINT: _fingerprint,
    Kind.TIME: datetime.fromisoformat,
    Kind.BYTES: lambda text: base64.b64decode(text, validate=True),
}


def save(path: Path, header: Header, batches: Iterable[tuple[Table, list[tuple[Any, ...]]]]) -> None:
    """Write an export, first under another name; OSError if that is not possible."""
    with written_whole(path) as started, _open(started, "wb", packed=path.suffix == ".gz") as out:
        out.write(_line(header.as_dict()))
        for table, rows in batches:
            written = [_WRITTEN.get(column.kind) for column in table.columns]
            for row in rows:
                record: dict[str, Any] = {"table": table.name}
                for column, write, value in zip(table.columns, written, row, strict=True):
                    record[column.name] = value if write is None or value is None else write(value)
                out.write(_line(record))


class JsonLines:
    """An export that was written by :func:`save`, with the tables that are expected in it."""

    def __init__(self, path: Path, tables: Sequence[Table]) -> None:
        self._path = path
        self._tables = {table.name: table for table in tables}
        with self._opened() as lines:
            self.header = Header.from_dict(self._record(1, next(lines, b"")), f"{path}, line 1")

    def batches(self) -> Iterator[Batch]:
        """All rows in their order; ConfigurationError names the line at fault."""
        with self._opened() as lines:
            next(lines, b"")
            batch: Batch | None = None
            read = 0
            for number, line in enumerate(lines, start=2):
                name, row = self._row(number, line)
                full = batch is not None and (len(batch.rows) == _ROWS_AT_ONCE or read >= _BYTES_AT_ONCE)
                if batch is not None and (full or batch.table != name):
                    yield batch
                    batch = None
                if batch is None:
                    batch, read = Batch(name, [], []), 0
                read += len(line)
                batch.rows.append(row)
                batch.places.append(f"{self._path}, line {number}")
            if batch is not None:
                yield batch

    def _opened(self) -> _Lines:
        return _Lines(self._path)

    def _record(self, number: int, line: bytes) -> Any:
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as exc:
            raise self._error(number, f"no JSON: {exc}") from exc

    def _row(self, number: int, line: bytes) -> tuple[str, dict[str, Any]]:
        record = self._record(number, line)
        if not isinstance(record, dict):
            raise self._error(number, f"no row of a table but {record!r:.100}")
        name = record.pop("table", None)
        table = self._tables.get(name) if isinstance(name, str) else None
        if table is None:
            raise self._error(number, f"no row of {', '.join(self._tables)}, but of {name!r:.100}")
        names = {column.name for column in table.columns}
        if record.keys() != names:
            others = ", ".join(sorted(record.keys() ^ names))
            raise self._error(number, f"a row of {name} with other columns ({others:.200})")
        for column in table.columns:
            value = record[column.name]
            read = _READ.get(column.kind)
            if read is not None and isinstance(value, str):
                try:
                    record[column.name] = value = read(value)
                except ValueError as exc:
                    problem = f"{column.name} must be {column.kind.value}, not {value!r:.100}"
                    raise self._error(number, problem) from exc
            elif read is not None and value is not None:
                raise self._error(number, f"{column.name} must be a text, not {value!r:.100}")
            if (wrong := column.problem(value)) is not None:
                raise self._error(number, wrong)
        return table.name, record

    def _error(self, number: int, problem: str) -> ConfigurationError:
        return ConfigurationError(f"{self._path}, line {number}: {problem}")


class _Lines:
    """The lines of a file; ConfigurationError, with the line, where it cannot be read or unpacked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._number = 0
        try:
            self._file = _open(path, "rb", packed=path.suffix == ".gz")
        except OSError as exc:
            raise ConfigurationError(f"{path} cannot be read: {exc.strerror or exc}") from exc

    def __enter__(self) -> Iterator[bytes]:
        return self._lines()

    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def _lines(self) -> Iterator[bytes]:
        while True:
            self._number += 1
            try:
                line = self._file.readline(_LONGEST_LINE)
            except (OSError, EOFError, zlib.error) as exc:
                raise ConfigurationError(
                    f"{self._path}, line {self._number}: damaged or cut off: {exc}"
                ) from exc
            if not line:
                return
            if not line.endswith(b"\n"):
                raise ConfigurationError(
                    f"{self._path}, line {self._number}: the line is cut off, or longer than any row"
                )
            yield line


def _open(path: Path, mode: str, *, packed: bool) -> IO[bytes]:
    return gzip.open(path, mode) if packed else path.open(mode)  # type: ignore[return-value]


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
