"""Batch mode: a batch of queries against a file of fingerprints larger than memory (Sood, sections V.B and
VI.B.2).

The file is read in chunks from front to back. Each chunk is grouped by some bits of its fingerprints and
probed for the queries that are still open. The next chunk is read and grouped meanwhile, so the time is the
larger of reading and computing (eq. 6.20). What to probe for is planned once, before the first chunk.

This mode leaves the thesis in one point. The file of the thesis is a collection of sorted chunks, so that
reading need not sort. Here a chunk is only grouped by the bits that tell the queries apart best. One counting
sort groups a chunk, in whatever order the file is (7 to 30 ns a fingerprint, for up to 20 bits). The file
stays as it is, and rows keep their places. A batch is appended by writing it at the end.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection import matching_kernels as kernels
from neardup.collection.fingerprint_files import (
    MATCH,
    ArrayFingerprints,
    as_fingerprints,
    as_weak_bits,
    open_fingerprints,
)
from neardup.collection.flip_plan import Plan, make_plan, plan_queries
from neardup.collection.matching_kernels import Table
from neardup.errors import ConfigurationError
from neardup.index.base import check_max_distance

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from neardup.collection.fingerprint_files import Fingerprints
    from neardup.collection.matching_kernels import Flips

CHUNK_ROWS = 1 << 22
SEARCHES = ("auto", "psm", "blocks")

_BLOCK = 1 << 14
"""Queries planned and matched in one call, by one thread."""

_PLANNED_FLIPS = 1 << 28
"""Flips kept for the whole search (1 GiB); blocks of queries beyond it are planned anew for each chunk."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to search.

    - ``recall``: share of the near-duplicates at ``max_distance`` to be found, below 1.
    - ``exact``: all near-duplicates are found. A search without weak bits is always exact, because nothing
      tells then which bits to flip.
    - ``every``: all matches of a query (PSM_A), else the first match met (PSM_F).
    - ``threads``: None means one for each core.
    - ``search``: how a chunk is searched. "auto" is the cheaper of "psm" and "blocks" (exact).

    Raises ConfigurationError for a value that is not allowed.
    """

    max_distance: int = 3
    recall: float = 0.95
    exact: bool = False
    every: bool = False
    chunk_rows: int = CHUNK_ROWS
    threads: int | None = None
    search: str = "auto"

    def __post_init__(self) -> None:
        check_max_distance(self.max_distance)
        if not 0.0 < self.recall < 1.0:
            raise ConfigurationError(
                f"recall must be above 0 and below 1, not {self.recall}; exact=True (--exact) finds all"
            )
        if not 1 <= self.chunk_rows < 1 << 32:
            raise ConfigurationError(f"a chunk must have 1 to 2^32 - 1 rows, not {self.chunk_rows}")
        check_threads(self.threads)
        if self.search not in SEARCHES:
            raise ConfigurationError(f"search must be one of {', '.join(SEARCHES)}, not {self.search!r}")


def check_threads(threads: int | None) -> int:
    """Number of threads; None: one for each core that this process may use."""
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if threads < 1:
        raise ConfigurationError(f"threads must be at least 1, not {threads}")
    return threads


def match(
    queries: npt.NDArray[np.uint64],
    file: npt.NDArray[np.uint64] | Path | str,
    *,
    weak_bits: npt.NDArray[np.uint8] | None = None,
    options: Options | None = None,
) -> npt.NDArray[Any]:
    """The matches of a batch of queries in a file of fingerprints.

    - ``queries``: uint64, (m,).
    - ``weak_bits``: uint8, (m, 48), as ``Fingerprint.pack_weak_bits`` writes them.
    - ``file``: an array (uint64, (n,), memory-mapped or not), or the path of a ``.npy`` or Parquet file.

    Returns an array of dtype ``MATCH``, chunk by chunk, within a chunk by query, then row. The array is the
    same for any number of threads.

    Memory:

    - 12 bytes a row and table, of a chunk and the next one. There is one table, or up to ``max_distance`` + 1
      where exact;
    - 4 bytes a planned flip, up to 1 GiB;
    - 24 bytes a match; those of one chunk some three times.

    Raises ConfigurationError for arguments that are not of this form.
    """
    source = ArrayFingerprints(file) if isinstance(file, np.ndarray) else open_fingerprints(Path(file))
    matcher = Matcher(queries, weak_bits, source.rows, options or Options())
    parts = [found.matches for found in matcher.run(source)]
    found = np.concatenate(parts) if parts else np.empty(0, dtype=MATCH)
    found["row"] = source.places(found["row"])
    return found


@dataclass(frozen=True, slots=True)
class ChunkMatches:
    """The state of a search after a chunk.

    ``rows`` is the number of rows of the file that are done. ``matches`` are those of the last chunk, dtype
    ``MATCH``.
    """

    rows: int
    matches: npt.NDArray[Any]


class Matcher:
    """One search of a batch of queries, chunk by chunk.

    ``rows`` is the number of rows of the file, to plan by. After :meth:`run` has ended or been given up, the
    matcher is used up.
    """

    def __init__(
        self,
        queries: npt.NDArray[np.uint64],
        weak_bits: npt.NDArray[np.uint8] | None,
        rows: int,
        options: Options,
    ) -> None:
        self._options = options
        as_fingerprints(queries, "queries")
        if len(queries) >= 1 << 31:
            raise ConfigurationError(f"{len(queries):,} queries are too many for one call; split them")
        if weak_bits is not None:
            as_weak_bits(weak_bits, len(queries), "weak_bits")
        if weak_bits is None and options.search == "psm":
            raise ConfigurationError("search 'psm' needs the queries' weak bits; give them, or search 'auto'")
        self._threads = check_threads(options.threads)
        self._open = np.ones(len(queries), dtype=np.bool_)
        self.plan = (
            make_plan(
                queries,
                weak_bits,
                rows=rows,
                chunk_rows=options.chunk_rows,
                max_distance=options.max_distance,
                recall=options.recall,
                search="blocks" if options.exact or weak_bits is None else options.search,
            )
            if len(queries)
            else Plan([], 0.0, "no queries")
        )
        if self.plan.tables:
            # Queries under one prefix one after the other find its fingerprints in the processor's cache.
            keys = kernels.prefixes_of(np.ascontiguousarray(queries), self.plan.tables[0].prefix)
            self._order = np.argsort(keys, kind="stable")
        else:
            self._order = np.empty(0, dtype=np.int64)
        self._queries = queries[self._order]
        self._weak_bits = weak_bits
        self._planned: dict[int, Flips] = {}

    @property
    def open(self) -> int:
        """Queries without a match so far; with ``every``, all."""
        return int(np.count_nonzero(self._open))

    def drop(self, matched: npt.NDArray[np.int64]) -> None:
        """Queries (positions) that have their match from an earlier run; not with ``every``."""
        if not self._options.every:
            self._open &= ~np.isin(self._order, matched)

    def run(self, source: Fingerprints, start: int = 0) -> Iterator[ChunkMatches]:
        """Search the file from row ``start`` on; ends with the file, or when no query is open."""
        chunks = source.chunks(start, self._options.chunk_rows)
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="neardup-batch")
        try:
            if not self.plan.tables or not self.open:
                return
            self._plan_all(pool)
            waiting = pool.submit(self._next_tables, chunks)
            while self.open and (tables := waiting.result()):
                waiting = pool.submit(self._next_tables, chunks)
                blocks = range(0, len(self._queries), _BLOCK)
                parts = [
                    part
                    for found in pool.map(lambda at: self._match_block(at, tables), blocks)
                    for part in found
                ]
                yield ChunkMatches(start + len(tables[0]), self._records(parts, start))
                start += len(tables[0])
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _plan_all(self, pool: ThreadPoolExecutor) -> None:
        """Plan the flips of all queries, so far as there is room for them."""
        if self.plan.exact:
            return
        room = _PLANNED_FLIPS
        step = _BLOCK * 2 * self._threads
        for first in range(0, len(self._queries), step):
            blocks = range(first, min(first + step, len(self._queries)), _BLOCK)
            for at, planned in zip(blocks, pool.map(self._plan_block, blocks), strict=True):
                room -= planned[1].size
                if room < 0:
                    return
                self._planned[at] = planned

    def _plan_block(self, at: int) -> Flips:
        assert self._weak_bits is not None
        packed = np.ascontiguousarray(self._weak_bits[self._order[at : at + _BLOCK]])
        return plan_queries(packed, self.plan.tables[0], self._options.max_distance, self._options.recall)

    def _next_tables(self, chunks: Iterator[npt.NDArray[np.uint64]]) -> list[Table]:
        """Read a chunk and group it; none at the end of the file."""
        values = next(chunks, None)
        if values is None:
            return []
        # A copy of what may be mapped from a file: read once, in order.
        values = np.array(values, order="C")
        earlier = [(plan.mask, plan.radius) for plan in self.plan.tables]
        return [Table(values, plan.prefix, earlier[:number]) for number, plan in enumerate(self.plan.tables)]

    def _match_block(self, at: int, tables: list[Table]) -> list[npt.NDArray[np.uint32]]:
        """(number, 3) arrays of query (in this matcher's order), row in the chunk, distance."""
        queries, still_open = self._queries[at : at + _BLOCK], self._open[at : at + _BLOCK]
        which = np.flatnonzero(still_open)
        if not which.size:
            return []
        parts = []
        only_first = not self._options.every
        for plan, table in zip(self.plan.tables, tables, strict=True):
            flips = plan.flips or self._planned.get(at) or self._plan_block(at)
            found = table.probe(queries, which, flips, self._options.max_distance, only_first)
            if only_first:
                still_open[found[:, 0]] = False
                which = which[still_open[which]]
            found[:, 0] += at
            parts.append(found)
        return parts

    def _records(self, parts: list[npt.NDArray[np.uint32]], start: int) -> npt.NDArray[Any]:
        found = np.concatenate(parts) if parts else np.empty((0, 3), dtype=np.uint32)
        matches = np.empty(len(found), dtype=MATCH)
        matches["query"] = self._order[found[:, 0]]
        matches["row"] = found[:, 1]
        matches["row"] += start
        matches["distance"] = found[:, 2]
        # One key in place of two sorts three times as fast; a chunk's rows and the queries have 32 bits each.
        return matches[np.argsort(matches["query"] << 32 | found[:, 1])]
