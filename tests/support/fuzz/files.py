"""The target ``files``: fingerprints and queries, labelled pairs, and exports, read from files of any
content.

The first byte chooses the reader, the rest is the file. ConfigurationError is the answer to what cannot be
read; what can is read twice.
"""

from __future__ import annotations

import functools
import gzip
import io
import tempfile
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet as pq

from neardup.collection.fingerprint_files import open_fingerprints, read_queries
from neardup.errors import ConfigurationError
from neardup.evaluation.labelled import read_pairs, text_of
from neardup.store.archive import formats
from neardup.store.archive.layout import Header, Kind
from neardup.store.schema import REVISION
from neardup.store.transfer import EXPORTED
from tests.support.places import PAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from neardup.store.archive.layout import Batch, Column, Table

_HEADER = Header(revision=REVISION, scheme="s", rows={}, made_at="2026-01-01T00:00:00+00:00", export="0" * 16)
_PACKED = 48


def read(data: bytes) -> None:
    """Read a file by the reader that the first byte names."""
    if not data:
        return
    name, reader = READERS[data[0] % len(READERS)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # NumPy's, at headers that Python 2 wrote
        path = Path(folder) / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data[1:])
        try:
            first = reader(path)
        except ConfigurationError:
            return
        assert repr(first) == repr(reader(path)), "another content the second time"


def seeds() -> Iterator[bytes]:
    for number, (name, _) in enumerate(READERS):
        for content in _contents(name):
            yield bytes([number]) + content


def _fingerprints(path: Path) -> object:
    file = open_fingerprints(path)
    chunks = [chunk.tolist() for chunk in file.chunks(0, 5)]
    assert sum(map(len, chunks)) == file.rows, "another number of fingerprints"
    assert all(len(chunk) == 5 for chunk in chunks[:-1]), "a chunk that is too short"
    rest = [value for chunk in file.chunks(2, 3) for value in chunk.tolist()]
    assert rest == [value for chunk in chunks for value in chunk][2:], "other fingerprints from the third on"
    ids = file.ids(np.arange(file.rows)[::-1][:7])
    return chunks, None if ids is None else ids.tolist()


def _queries(path: Path) -> object:
    queries = read_queries(path)
    for more in (queries.weak_bits, queries.ids):
        assert more is None or len(more) == len(queries.values), "other numbers of rows"
    weak_bits, ids = queries.weak_bits, queries.ids
    return (
        queries.values.tolist(),
        weak_bits is not None and weak_bits.tolist(),
        ids is not None and ids.tolist(),
    )


def _weak_bits(path: Path) -> object:
    values = path.with_name("values.npy")
    np.save(values, np.arange(3, dtype=np.uint64))
    queries = read_queries(values, path)
    assert queries.weak_bits is not None
    return queries.weak_bits.tolist()


def _pairs(path: Path) -> object:
    return [
        (pair, [text_of(path, pair, side) for side in (pair.a, pair.b)], pair.a.key(), pair.b.key())
        for pair in read_pairs(path, graded=True)
    ]


def _lines(path: Path) -> object:
    archive = formats.open_archive(path, EXPORTED)
    batches = list(archive.batches())
    again = path.with_name(f"again-{path.name}")
    again.unlink(missing_ok=True)
    formats.save(again, archive.header, EXPORTED, _as_tuples(batches))
    written = formats.open_archive(again, EXPORTED)
    assert written.header == archive.header, "another header when written again"
    rows = [row for batch in batches for row in batch.rows]
    assert rows == [row for batch in written.batches() for row in batch.rows], "other rows when written again"
    return archive.header, rows


def _folder(path: Path) -> object:
    """A folder whose other tables are sound."""
    for table in EXPORTED:
        other = path.with_name(f"{table.name}.parquet")
        if other != path:
            other.write_bytes(_export(".parquet")[other.name])
    archive = formats.open_archive(path.parent, EXPORTED)
    return archive.header, [batch.rows for batch in archive.batches()]


READERS: tuple[tuple[str, Callable[[Path], object]], ...] = (
    ("a.npy", _fingerprints),
    ("a.parquet", _fingerprints),
    ("a.npz", _queries),
    ("q.parquet", _queries),
    ("weak.npy", _weak_bits),
    ("a.jsonl", _pairs),
    ("a.csv", _pairs),
    ("a.csv.gz", _pairs),
    ("n.jsonl", _lines),
    ("n.jsonl.gz", _lines),
    *((f"n.parquet/{table.name}.parquet", _folder) for table in EXPORTED),
)
"""The reader goes by the name of the file as well."""


def _as_tuples(batches: list[Batch]) -> Iterator[tuple[Table, list[tuple[Any, ...]]]]:
    tables = {table.name: table for table in EXPORTED}
    for batch in batches:
        table = tables[batch.table]
        yield table, [tuple(row[column.name] for column in table.columns) for row in batch.rows]


def _contents(name: str) -> Iterator[bytes]:
    """Sound files of a name."""
    values = np.arange(7, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    packed = np.arange(7 * _PACKED, dtype=np.uint8).reshape(7, _PACKED) % 64
    if name.startswith("n.parquet/"):
        yield _export(".parquet")[name.partition("/")[2]]
    elif name.startswith("n."):
        yield _export(name[1:])[name]
    elif name.endswith((".jsonl", ".csv", ".csv.gz")):
        yield from _labelled(name)
    elif name.endswith(".parquet"):
        columns = {"hash_value": values, "id": np.arange(7), "weak_bits": [row.tobytes() for row in packed]}
        yield _parquet(columns)
        yield _parquet({"hash_value": values.view(np.int64)})
    else:
        out = io.BytesIO()
        if name.endswith(".npz"):
            np.savez(out, values=values, weak_bits=packed)
        else:
            np.save(out, packed[:3] if name == "weak.npy" else values)
        yield out.getvalue()


def _parquet(columns: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, row_group_size=3)
    return out.getvalue()


def _labelled(name: str) -> Iterator[bytes]:
    page = min(PAGES.rglob("*.html"), key=lambda path: (path.stat().st_size, path)).read_text()
    contents = [
        b'{"a_text": "one  page", "b_html": "<p>two", "label": 1}\n{"a": "x", "b": "~/y", "label": 0.5}\n',
        (
            b'{"a": "file:///no-such", "b_path": "a.jsonl", "label": "1"}\n\n'
            b'{"a": "<p>\\ud800", "b": "", "label": 0}\n'
        ),
    ]
    if ".csv" in name:
        contents = [
            b'a_text,b_html,label\n"one, page",<p>two,1\n,<b>,0\n',
            b"a,b_path,b_text,label\nx,a.csv,,0.25\nfile:y,,z,1\n",
            f'a_html,b,label\n"{page.replace(chr(34), chr(34) * 2)}",text,1\n'.encode(),
        ]
    for content in contents:
        yield gzip.compress(content, mtime=0) if name.endswith(".gz") else content


@functools.cache
def _export(suffix: str) -> dict[str, bytes]:
    """The files of an export with one row of each table, and one with all that may be missing."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"n{suffix}"
        rows = [
            [tuple(_value(column, empty=empty) for column in table.columns) for empty in (False, True)]
            for table in EXPORTED
        ]
        formats.save(path, _HEADER, EXPORTED, zip(EXPORTED, rows, strict=True))
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        return {file.name: file.read_bytes() for file in files}


def _value(column: Column, *, empty: bool) -> Any:
    if empty and column.nullable:
        return None
    return {
        Kind.INTEGER: 1,
        Kind.NUMBER: 0.5,
        Kind.TEXT: "text",
        Kind.BYTES: bytes(column.length or 8),
        Kind.TIME: datetime(2026, 1, 1, tzinfo=UTC),
        Kind.FINGERPRINT: (1 << 64) - 1,
    }[column.kind]
