"""The files of batch mode: fingerprints and queries to read, matches to write, and the progress of an
interrupted search.

Fingerprints stand in one of two kinds of file:

- a ``.npy`` file: uint64, shape (n,), mapped into memory and never read as a whole;
- a Parquet file: column ``hash_value``, 64 bits signed or unsigned, and an optional column ``id`` of whole
  numbers. A row whose fingerprint is null, such as that of a page without words, is left out.

Queries may also be an ``.npz`` file with ``values`` and ``weak_bits``. In Parquet, queries may have a column
``weak_bits`` of 48 bytes each, as :meth:`neardup.fingerprint.simhash.Fingerprint.pack_weak_bits` writes them.
Parquet needs the extra ``neardup[parquet]``.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from neardup.errors import ConfigurationError
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.fingerprint.simhash import WEAK_BITS_STORED
from neardup.parquet import DAMAGE, arrow_module, reading_parquet
from neardup.store.whole_file import target, written_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

    import numpy.typing as npt

MATCH = np.dtype([("query", "<i8"), ("row", "<i8"), ("distance", "<i8")])
"""A match: position of the query, position in the file, both from 0, and in how many bits they differ."""

PAIR = np.dtype([("first", "<i8"), ("second", "<i8"), ("distance", "<i8")])
"""Two near-duplicates of one collection; ``first`` < ``second``."""

OUTPUTS = (".npy", ".parquet", ".csv")
_AT_ONCE = 1 << 16
_PACKED = 2 * WEAK_BITS_STORED

_ZIP = b"PK\3\4"
_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries read from a file.

    ``values``: uint64, (m,); ``weak_bits``: uint8, (m, 48), or None; ``ids``: int64, (m,), or None.
    ``without``: the rows of the file that have no fingerprint, and are no queries; int64, rising.
    """

    values: npt.NDArray[np.uint64]
    weak_bits: npt.NDArray[np.uint8] | None
    ids: npt.NDArray[np.int64] | None
    without: npt.NDArray[np.int64]

    def places(self, queries: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The rows of the file that some queries stand in."""
        return _places(queries, self.without)


class Fingerprints(Protocol):
    """A file of fingerprints, read from front to back. Rows without a fingerprint do not count as rows."""

    @property
    def rows(self) -> int: ...

    @property
    def without(self) -> npt.NDArray[np.int64]:
        """The rows of the file that have no fingerprint; int64, rising."""

    def chunks(self, start: int, size: int) -> Iterator[npt.NDArray[np.uint64]]:
        """Fingerprints from row ``start`` on, ``size`` at a time, the last fewer."""

    def ids(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        """The ids of some rows, or None if the file has none."""

    def places(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers that rows have in the file, where those without a fingerprint count as well."""


class ArrayFingerprints:
    """Fingerprints in an array, which may be mapped from a file; uint64, (n,)."""

    def __init__(self, values: npt.NDArray[np.uint64], name: str = "the array of fingerprints") -> None:
        self._values = as_fingerprints(values, name)
        self.rows = len(self._values)
        self.without = _NONE

    def chunks(self, start: int, size: int) -> Iterator[npt.NDArray[np.uint64]]:
        for first in range(start, self.rows, size):
            yield self._values[first : first + size]

    def ids(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        return None

    def places(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return rows


class ParquetFingerprints:
    """Fingerprints in the column ``hash_value`` of a Parquet file, and the ids beside them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with reading_parquet(path), _open_parquet(path) as file:
            self._names: list[str] = file.schema_arrow.names
            _need_column(path, self._names, "hash_value")
            groups = file.metadata
            self._ends = np.cumsum(
                [groups.row_group(i).num_rows for i in range(groups.num_row_groups)], dtype=int
            )
            self._all_rows = int(groups.num_rows)
            may_lack = _may_lack(groups, "hash_value")
        self.without = self._rows_without() if may_lack else _NONE
        self.rows = self._all_rows - len(self.without)

    def _rows_without(self) -> npt.NDArray[np.int64]:
        found, first = [_NONE], 0
        for column in self._columns("hash_value", 0, 1 << 20):
            found.append(first + _nulls(column))
            first += len(column)
        return np.concatenate(found)

    def _columns(self, name: str, start: int, size: int) -> Iterator[Any]:
        """Arrow columns of at most ``size`` rows, from row ``start`` on; reads no row group before it.

        ConfigurationError at the end if they were not as many rows as the file says it has.
        """
        first = int(np.searchsorted(self._ends, start, side="right"))
        skipped = start - (int(self._ends[first - 1]) if first else 0)
        groups = list(range(first, len(self._ends)))
        left = self._all_rows - start
        # A reader of its own: ids are asked for while another thread reads chunks, and two threads that share
        # one crash the process.
        with reading_parquet(self._path), _open_parquet(self._path) as file:
            for batch in file.iter_batches(batch_size=size, row_groups=groups, columns=[name]):
                column = batch.column(0)
                if skipped:
                    dropped = min(skipped, len(column))
                    column, skipped = column.slice(dropped), skipped - dropped
                left -= len(column)
                if len(column):
                    yield column
            if left:
                read = self._all_rows - left
                raise ValueError(f"{self._all_rows} rows by its footer, but {read} by column {name}")

    def chunks(self, start: int, size: int) -> Iterator[npt.NDArray[np.uint64]]:
        waiting: list[npt.NDArray[np.uint64]] = []
        first = int(self.places(np.array([start]))[0]) if start < self.rows else self._all_rows
        for column in self._columns("hash_value", first, size):
            values = _column_of_fingerprints(column.drop_null(), self._path)
            while sum(map(len, waiting)) + len(values) >= size:
                room = size - sum(map(len, waiting))
                yield np.concatenate([*waiting, values[:room]])
                waiting, values = [], values[room:]
            if len(values):
                waiting.append(values)
        if waiting:
            yield np.concatenate(waiting)

    def ids(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
        if "id" not in self._names:
            return None
        rows = self.places(rows)
        found = np.empty(len(rows), dtype=np.int64)
        order = np.argsort(rows, kind="stable")
        at, first = 0, 0
        for column in self._columns("id", 0, 1 << 20):
            end = int(np.searchsorted(rows, first + len(column), sorter=order))
            found[order[at:end]] = _column_of_ids(column, self._path)[rows[order[at:end]] - first]
            at, first = end, first + len(column)
        return found

    def places(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return _places(rows, self.without)


def open_fingerprints(path: Path) -> Fingerprints:
    """A ``.npy`` or Parquet file of fingerprints; ConfigurationError says what is wrong with it."""
    if path.suffix == ".parquet":
        return ParquetFingerprints(path)
    return ArrayFingerprints(_load_array(path), str(path))


def read_queries(path: Path, weak_bits: Path | None = None) -> Queries:
    """Queries from a ``.npy``, ``.npz`` or Parquet file, their weak bits from there or from a ``.npy`` file
    of its own.

    ConfigurationError says what is wrong with a file.
    """
    packed: npt.NDArray[Any] | None = None
    ids, without = None, _NONE
    if path.suffix == ".npz":
        values, packed = _load_archive(path)
    elif path.suffix == ".parquet":
        values, packed, ids, without = _load_parquet_queries(path)
    else:
        values = _load_array(path)
    made = as_fingerprints(values, str(path))
    if weak_bits is not None:
        beside = as_weak_bits(_load_array(weak_bits), len(made) + len(without), str(weak_bits))
        return Queries(made, np.delete(beside, without, axis=0), ids, without)
    return Queries(made, None if packed is None else as_weak_bits(packed, len(made), str(path)), ids, without)


def as_fingerprints(values: npt.NDArray[Any], name: str) -> npt.NDArray[np.uint64]:
    """``values`` if they are fingerprints: uint64, one dimension; else ConfigurationError."""
    if values.ndim != 1 or values.dtype != np.uint64:
        way_out = (
            "view signed ones as uint64"
            if values.dtype == np.int64
            else "give an array of unsigned 64-bit numbers"
        )
        raise ConfigurationError(
            f"{name}: fingerprints are uint64 of shape (n,), not {values.dtype} of shape {values.shape};"
            f" {way_out}"
        )
    return values


def as_weak_bits(packed: npt.NDArray[Any], count: int, name: str) -> npt.NDArray[np.uint8]:
    """``packed`` if it is the weak bits of ``count`` queries; else ConfigurationError."""
    if packed.dtype != np.uint8 or packed.shape != (count, _PACKED):
        raise ConfigurationError(
            f"{name}: weak bits of {count} queries are uint8 of shape ({count}, {_PACKED}), as"
            f" Fingerprint.pack_weak_bits() writes them, not {packed.dtype} of shape {packed.shape}"
        )
    if count and int(packed[:, :WEAK_BITS_STORED].max()) >= FINGERPRINT_BITS:
        row = int(np.argmax(packed[:, :WEAK_BITS_STORED].max(axis=1) >= FINGERPRINT_BITS))
        raise ConfigurationError(
            f"{name}: the weak bits of query {row} name bit {int(packed[row, :WEAK_BITS_STORED].max())} of a"
            f" {FINGERPRINT_BITS}-bit fingerprint; they are not of the form that"
            " Fingerprint.pack_weak_bits() writes"
        )
    return packed


def _load_array(path: Path) -> npt.NDArray[Any]:
    try:
        with path.open("rb") as file:
            several = file.read(len(_ZIP)) == _ZIP
        if not several:
            return np.lib.format.open_memmap(path, mode="r")
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    except DAMAGE as exc:
        raise _unreadable(path, exc) from exc
    raise ConfigurationError(f"{path} holds several arrays; a file of fingerprints is .npy or .parquet")


def _unreadable(path: Path, exc: Exception) -> ConfigurationError:
    return ConfigurationError(
        f"{path} is not a NumPy file, or is damaged ({exc}); write one with numpy.save(), or give Parquet"
        " named .parquet"
    )


def _load_archive(path: Path) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    try:
        # Opened here, because NumPy does not close a file that turns out to be damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if "values" not in archive:
                raise ConfigurationError(
                    f"{path} has no array 'values', only {', '.join(archive) or 'none'};"
                    " write it with numpy.savez(file, values=…, weak_bits=…)"
                )
            values, packed = archive["values"], archive.get("weak_bits")
            if not isinstance(values, np.ndarray) or not isinstance(packed, np.ndarray | None):
                raise TypeError("what it holds is no array")  # but bytes, if it does not begin like one
            return values, packed
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    except ConfigurationError:
        raise
    except DAMAGE as exc:
        raise _unreadable(path, exc) from exc


def _open_parquet(path: Path) -> Any:
    parquet = arrow_module("pyarrow.parquet", path)
    with reading_parquet(path):
        return parquet.ParquetFile(path, memory_map=True)


def _need_column(path: Path, names: list[str], column: str) -> None:
    if column not in names:
        raise ConfigurationError(
            f"{path} has no column {column}, only {', '.join(names)}; rename the one meant"
        )


def _may_lack(groups: Any, column: str) -> bool:
    """Whether values of a column may be null, by what the footer of a Parquet file tells."""
    of_column = [
        found
        for group in range(groups.num_row_groups)
        for found in map(groups.row_group(group).column, range(groups.num_columns))
        if found.path_in_schema == column
    ]
    counts = [one.statistics.null_count if one.is_stats_set else None for one in of_column]
    return any(count is None or count > 0 for count in counts)


def _nulls(column: Any) -> npt.NDArray[np.int64]:
    """The places of nulls in an Arrow column."""
    return np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).astype(np.int64)


def _places(rows: npt.NDArray[np.int64], without: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """What rows are called where those that are left out count as well."""
    before = without - np.arange(len(without))  # how many rows with a fingerprint stand in front of each
    return rows + np.searchsorted(before, rows, side="right")


def _column_of_fingerprints(column: Any, path: Path) -> npt.NDArray[np.uint64]:
    if str(column.type) not in {"uint64", "int64"}:
        raise ConfigurationError(f"{path}: column hash_value must be int64 or uint64, not {column.type}")
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    # The databases' signed form has the same bits.
    return values.view(np.uint64)


def _column_of_ids(column: Any, path: Path) -> npt.NDArray[np.int64]:
    if not str(column.type).removeprefix("u").startswith("int") or column.null_count:
        raise ConfigurationError(
            f"{path}: column id must be whole numbers without nulls, not {column.type} with"
            f" {column.null_count} nulls"
        )
    ids: npt.NDArray[np.int64] = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return ids


def _load_parquet_queries(
    path: Path,
) -> tuple[
    npt.NDArray[np.uint64], npt.NDArray[np.uint8] | None, npt.NDArray[np.int64] | None, npt.NDArray[np.int64]
]:
    """Values, weak bits, ids, and the rows that have no fingerprint and are left out."""
    file = _open_parquet(path)
    with reading_parquet(path):
        names: list[str] = file.schema_arrow.names
        _need_column(path, names, "hash_value")
        table = file.read(
            columns=[n for n in ("hash_value", "weak_bits", "id") if n in names]
        ).combine_chunks()
        without = _nulls(table.column("hash_value"))
        table = table.filter(table.column("hash_value").is_valid())
        columns = {n: table.column(n).combine_chunks() for n in table.column_names}
        values = _column_of_fingerprints(columns["hash_value"], path)
        packed = _column_of_weak_bits(columns["weak_bits"], path) if "weak_bits" in columns else None
        ids = _column_of_ids(columns["id"], path) if "id" in columns else None
        return values, packed, ids, without


def _column_of_weak_bits(column: Any, path: Path) -> npt.NDArray[np.uint8]:
    if str(column.type) not in {"binary", "large_binary", f"fixed_size_binary[{_PACKED}]"}:
        raise ConfigurationError(f"{path}: column weak_bits must be binary, not {column.type}")
    texts: list[bytes | None] = column.to_pylist()
    for row, one in enumerate(texts):
        if one is None or len(one) != _PACKED:
            length = "null" if one is None else f"{len(one)} bytes"
            raise ConfigurationError(f"{path}: weak_bits of row {row} must be {_PACKED} bytes, not {length}")
    return np.frombuffer(b"".join(filter(None, texts)), dtype=np.uint8).reshape(-1, _PACKED)


def check_output(path: Path, *inputs: Path | None) -> None:
    """Find out before a long search whether its result can be written; else ConfigurationError."""
    if path.suffix not in OUTPUTS:
        raise ConfigurationError(
            f"{path}: the output must be named {', '.join(OUTPUTS)}, not {path.suffix or 'nothing'}"
        )
    if path.resolve() in {one.resolve() for one in inputs if one is not None}:
        raise ConfigurationError(f"{path} is also an input and would be overwritten; name another file")
    if not path.parent.is_dir():
        raise ConfigurationError(f"{path}: there is no folder {path.parent}; make it first")
    target(path)
    if path.suffix == ".parquet":
        arrow_module("pyarrow.parquet", path)


def write_records(path: Path, records: npt.NDArray[Any], **more: npt.NDArray[np.int64] | None) -> None:
    """Write matches or pairs, by the path's extension, all or nothing: beside it first, then renamed.

    ``more``: further columns (ids), of the same length; None is left out.
    """
    columns = {name: records[name] for name in records.dtype.names or ()}
    columns.update({name: column for name, column in more.items() if column is not None})
    try:
        with written_whole(path) as started:
            if path.suffix == ".npy":
                whole = np.empty(len(records), dtype=[(name, "<i8") for name in columns])
                for name, column in columns.items():
                    whole[name] = column
                with started.open("wb") as out:
                    np.save(out, whole)
            elif path.suffix == ".parquet":
                table = arrow_module("pyarrow", path).table(
                    {n: np.ascontiguousarray(c) for n, c in columns.items()}
                )
                arrow_module("pyarrow.parquet", path).write_table(table, started)
            else:
                with started.open("w", newline="") as text:
                    write_csv(text, columns)
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be written: {exc.strerror or exc}") from exc


def write_csv(out: IO[str], columns: dict[str, npt.NDArray[Any]], *, header: bool = True) -> None:
    """Columns of one length as CSV, some rows at a time."""
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(columns)
    for first in range(0, len(next(iter(columns.values()))), _AT_ONCE):
        parts = [column[first : first + _AT_ONCE].tolist() for column in columns.values()]
        writer.writerows(zip(*parts, strict=True))
