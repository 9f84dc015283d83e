"""The marks of a clean-up as a file, and what they come to."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection.cleaning.work import BATCH
from neardup.collection.dataset import identity, page_files
from neardup.collection.failing import failing
from neardup.errors import ConfigurationError
from neardup.fingerprint import sketch
from neardup.parquet import arrow_module, reading_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from neardup.collection.cleaning.pages import CleanPages
    from neardup.collection.cleaning.work import Batch, Mark, Way, Work
    from neardup.collection.dataset import Collection

RIGHT = 0.8
"""Resemblance from which on a mark is right."""

BETTER_RANK, EQUAL_RANK = "lower PageRank", "same PageRank, later id"
"""Why a page is marked, and its canonical page is not."""

_ROWS_AT_ONCE = 1 << 16
_NOTE = b"neardup"


@dataclass(slots=True)
class Range:
    """The queries of some frequencies: the first and the last, and what they came to.

    ``hit``: queries with results. ``marked``: pages that no earlier query has marked. ``seconds`` of
    processor time.
    """

    first: int
    last: int
    queries: int = 0
    hit: int = 0
    results: int = 0
    unknown: int = 0
    marked: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Share:
    """Pages that were marked first with this maximum distance, and how many of the marks are right."""

    max_distance: int
    marked: int = 0
    right: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """What one way of a clean-up has marked."""

    way: Way
    ranges: list[Range]
    shares: list[Share]

    @property
    def marked(self) -> int:
        return sum(share.marked for share in self.shares)


def marks_file(collection: Collection) -> Path:
    """Where the marks of a collection stand."""
    return collection.folder / "clean" / "marks.parquet"


def write(collection: Collection, pages: CleanPages, work: Work, ways: Sequence[Way]) -> list[Summary]:
    """Write the marks, by way and page; returns what each way has come to.

    NeardupError: the file cannot be written.
    """
    path = marks_file(collection)
    arrow, parquet = arrow_module("pyarrow", path), arrow_module("pyarrow.parquet", path)
    begun = path.with_name(f"{path.name}.{os.getpid()}.writing")
    note = {"pages": identity(collection, page_files(collection)), "ways": list(ways)}
    schema = _schema(arrow).with_metadata({_NOTE: json.dumps(note)})
    summaries = []
    with failing(path):
        try:
            with parquet.ParquetWriter(begun, schema, compression="zstd") as writer:
                for way in ways:
                    summary = _Summing(way, work.batches(way))
                    for some in work.marks(way, _ROWS_AT_ONCE):
                        columns = _columns(pages, [mark for mark, _ in some])
                        columns |= {"way": [way.value] * len(some), "query": [query for _, query in some]}
                        writer.write_table(arrow.table(columns).select(schema.names).cast(schema))
                        summary.add([mark for mark, _ in some], columns["resemblance"])
                    summaries.append(summary.finish())
            begun.replace(path)
        finally:
            begun.unlink(missing_ok=True)
    return summaries


def read(collection: Collection, way: Way) -> tuple[Any, list[list[Any]]]:
    """The marks of one way as an Arrow table, and the identity of the files of pages that were marked.

    ConfigurationError: there are none, or the file is damaged.
    """
    path = marks_file(collection)
    if not path.is_file():
        raise ConfigurationError(f"{path} is not there: mark pages first, with --queries LOG")
    parquet = arrow_module("pyarrow.parquet", path)
    with reading_parquet(path):
        table = parquet.read_table(path, filters=[("way", "=", way.value)])
        note = json.loads(parquet.read_schema(path).metadata[_NOTE])
    if way.value not in note["ways"]:
        raise ConfigurationError(f"{path} has no marks of the {way} way: mark pages with --way {way} first")
    return table, note["pages"]


def _schema(arrow: Any) -> Any:
    return arrow.schema(
        [
            ("way", arrow.string()),
            ("page_id", arrow.int64()),
            ("url", arrow.string()),
            ("canonical_id", arrow.int64()),
            ("canonical_url", arrow.string()),
            ("query", arrow.string()),
            ("place", arrow.int64()),
            ("max_distance", arrow.int16()),
            ("distance", arrow.int16()),
            ("resemblance", arrow.float64()),
            ("pagerank", arrow.float64()),
            ("canonical_pagerank", arrow.float64()),
            ("reason", arrow.string()),
        ]
    )


def _columns(pages: CleanPages, marks: list[Mark]) -> dict[str, Any]:
    ids = np.array([mark[:2] for mark in marks], dtype=np.int64)
    rows = pages.rows_of(ids.reshape(-1)).reshape(-1, 2)
    different, at = np.unique(rows, return_inverse=True)
    at = at.reshape(-1, 2)
    urls, sketches = pages.urls_and_sketches(different)
    ranks = pages.ranks[rows]
    return {
        "page_id": ids[:, 0],
        "canonical_id": ids[:, 1],
        "url": [urls[place] for place in at[:, 0].tolist()],
        "canonical_url": [urls[place] for place in at[:, 1].tolist()],
        "place": [mark.place for mark in marks],
        "max_distance": [mark.max_distance for mark in marks],
        "distance": np.bitwise_count(pages.values[rows[:, 0]] ^ pages.values[rows[:, 1]]),
        "resemblance": sketch.paired_estimates(sketches[at[:, 0]], sketches[at[:, 1]]),
        "pagerank": ranks[:, 0],
        "canonical_pagerank": ranks[:, 1],
        "reason": np.where(ranks[:, 0] < ranks[:, 1], BETTER_RANK, EQUAL_RANK),
    }


class _Summing:
    """Sums up marks, which come by their pages. A page counts for the first query that has marked it."""

    def __init__(self, way: Way, batches: list[Batch]) -> None:
        self._way = way
        self._ranges: list[Range] = []
        for batch in batches:
            first = batch.number * BATCH + 1
            if not self._ranges or first > self._ranges[-1].last:
                self._ranges.append(Range(*_range_of(first)))
            found = self._ranges[-1]
            for name in ("queries", "hit", "results", "unknown", "seconds"):
                setattr(found, name, getattr(found, name) + getattr(batch, name))
        self._lasts = np.array([found.last for found in self._ranges])
        self._shares: dict[int, Share] = {}
        self._first: tuple[Mark, float] | None = None

    def add(self, marks: list[Mark], estimates: Iterable[float]) -> None:
        for mark, estimate in zip(marks, estimates, strict=True):
            if self._first is None or self._first[0].page != mark.page:
                self._count()
                self._first = mark, estimate
            elif mark.place < self._first[0].place:
                self._first = mark, estimate

    def finish(self) -> Summary:
        self._count()
        self._first = None
        shares = sorted(self._shares.values(), key=lambda share: -share.max_distance)
        return Summary(self._way, self._ranges, shares)

    def _count(self) -> None:
        if self._first is None:
            return
        mark, estimate = self._first
        self._ranges[int(np.searchsorted(self._lasts, mark.place))].marked += 1
        share = self._shares.setdefault(mark.max_distance, Share(mark.max_distance))
        share.marked += 1
        share.right += int(estimate >= RIGHT)


def _range_of(place: int) -> tuple[int, int]:
    """The range of queries that one stands in, as in table I of the paper and on.

    >>> [_range_of(place) for place in (1, 401, 501, 1001, 2001, 5001)]
    [(1, 100), (401, 500), (501, 1000), (1001, 2000), (2001, 5000), (5001, 10000)]
    """
    if place <= 500:
        return (first := (place - 1) // 100 * 100 + 1), first + 99
    last, steps = 1000, (2.0, 2.5, 2.0)
    first, number = 501, 0
    while place > last:
        first, last, number = last + 1, round(last * steps[number % 3]), number + 1
    return first, last
