"""An export as a folder of Parquet files, one a table, each with the header in its metadata."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from neardup.errors import ConfigurationError
from neardup.parquet import arrow_module, reading_parquet
from neardup.store.archive.layout import Batch, Header, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from neardup.store.archive.layout import Table

_ROWS_AT_ONCE = 1_000
_ROWS_OF_A_GROUP = 50_000
_BYTES_OF_A_GROUP = 64 << 20
_KEY = b"neardup"


def save(
    path: Path,
    header: Header,
    tables: Sequence[Table],
    batches: Iterable[tuple[Table, list[tuple[Any, ...]]]],
) -> None:
    """Write an export, first under another name; OSError if that is not possible."""
    started = path.with_name(f"{path.name}.writing")
    _remove(started, tables)
    started.mkdir()
    try:
        writers = {table.name: _TableFile(_file(started, table), table, header) for table in tables}
        try:
            for table, rows in batches:
                writers[table.name].add(rows)
        finally:
            for writer in writers.values():
                writer.close()
        started.replace(path)
    finally:
        _remove(started, tables)


class _TableFile:
    """Rows gather to groups, because small ones make large and slow files."""

    def __init__(self, path: Path, table: Table, header: Header) -> None:
        self._arrow = _arrow("pyarrow", path)
        self._schema = _schema(table, path).with_metadata({_KEY: json.dumps(header.as_dict())})
        self._file = _arrow("pyarrow.parquet", path).ParquetWriter(path, self._schema)
        self._parts: list[Any] = []
        self._gathered = 0
        self._bytes = 0

    def add(self, rows: list[tuple[Any, ...]]) -> None:
        columns = [
            self._arrow.array(list(column), type=of.type)
            for column, of in zip(zip(*rows, strict=True), self._schema, strict=True)
        ]
        self._parts.append(self._arrow.record_batch(columns, schema=self._schema))
        self._gathered += len(rows)
        self._bytes += self._parts[-1].nbytes
        if self._gathered >= _ROWS_OF_A_GROUP or self._bytes >= _BYTES_OF_A_GROUP:
            self._write()

    def close(self) -> None:
        if self._parts:
            self._write()
        self._file.close()

    def _write(self) -> None:
        self._file.write_table(self._arrow.Table.from_batches(self._parts), row_group_size=self._gathered)
        self._parts, self._gathered, self._bytes = [], 0, 0


class ParquetFolder:
    """An export that was written by :func:`save`, with the tables that are expected in it."""

    def __init__(self, path: Path, tables: Sequence[Table]) -> None:
        self._files = [(table, _file(path, table)) for table in tables]
        headers = [_checked(table, file)[1] for table, file in self._files]
        self.header = headers[0]
        for (_, file), header in zip(self._files, headers, strict=True):
            if header != self.header:
                raise ConfigurationError(
                    f"{file} is of the export {header.export} of {header.made_at}, but {self._files[0][1]} of"
                    f" {self.header.export} of {self.header.made_at}; all files must be of one"
                )

    def batches(self) -> Iterator[Batch]:
        """All rows in their order; ConfigurationError names file and row at fault."""
        for table, file in self._files:
            found, _ = _checked(table, file)
            first = 1
            for rows in _rows(found, file):
                places = [f"{file}, row {number}" for number in range(first, first + len(rows))]
                for place, row in zip(places, rows, strict=True):
                    for column in table.columns:
                        if (wrong := column.problem(row[column.name])) is not None:
                            raise ConfigurationError(f"{place}: {wrong}")
                yield Batch(table.name, rows, places)
                first += len(rows)


def _rows(found: Any, file: Path) -> Iterator[list[dict[str, Any]]]:
    with reading_parquet(file):
        for group in range(found.num_row_groups):  # iter_batches keeps those that it has left behind
            for batch in found.read_row_group(group).to_batches(max_chunksize=_ROWS_AT_ONCE):
                yield batch.to_pylist()


def _checked(table: Table, file: Path) -> tuple[Any, Header]:
    """A file that holds what it should, and its header."""
    parquet = _arrow("pyarrow.parquet", file)
    with reading_parquet(file):
        found = parquet.ParquetFile(file)
        schema = found.schema_arrow
    try:
        read = json.loads((schema.metadata or {}).get(_KEY, b"null"))
    except (ValueError, RecursionError):
        read = None
    header = Header.from_dict(read, str(file))
    if not schema.equals(_schema(table, file)):
        columns = ", ".join(f"{column.name} {column.type}" for column in schema)
        raise ConfigurationError(f"{file} has other columns than this neardup exports: {columns:.500}")
    return found, header


def _arrow(module: str, path: Path) -> Any:
    return arrow_module(module, path, instead=".jsonl")


def _schema(table: Table, path: Path) -> Any:
    arrow = _arrow("pyarrow", path)
    types = {
        Kind.INTEGER: arrow.int64(),
        Kind.NUMBER: arrow.float64(),
        Kind.TEXT: arrow.string(),
        Kind.BYTES: arrow.binary(),
        Kind.TIME: arrow.timestamp("us", tz="UTC"),
        Kind.FINGERPRINT: arrow.uint64(),
    }
    return arrow.schema([arrow.field(one.name, types[one.kind]) for one in table.columns])


def _file(folder: Path, table: Table) -> Path:
    return folder / f"{table.name}.parquet"


def _remove(started: Path, tables: Sequence[Table]) -> None:
    """What an interrupted export has left, and nothing else."""
    if started.is_dir():
        for table in tables:
            _file(started, table).unlink(missing_ok=True)
        started.rmdir()
