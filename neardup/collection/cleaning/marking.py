"""Near-duplicates among the results of queries, marked (Pi et al., II.B and II.C)."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from neardup.collection import workers
from neardup.collection.cleaning.given import FiledSearch, LiveSearch
from neardup.collection.cleaning.indexes import Engine, open_index
from neardup.collection.cleaning.pages import CleanPages, stars
from neardup.collection.cleaning.work import Batch, Mark, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from neardup.collection.cleaning.pages import Rows
    from neardup.collection.cleaning.rules import Rules
    from neardup.collection.cleaning.work import Query, Work
    from neardup.collection.dataset import Collection

    Task = tuple[int, list[Query]]


class Search(Protocol):
    """Finds pages by queries."""

    def results(self, query: Query) -> Iterator[Rows]:
        """The rows of the results, the best first, some at a time; -1 for pages that are not known."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a process needs to mark pages. ``results``: an index of the collection, a URL, or the path of a
    file. ``work``: the path of the file of :class:`Work`, which says where results stand in that.
    """

    collection: Collection
    rules: Rules
    results: Engine | str | Path
    url_field: str
    work: Path

    def open_search(self, pages: CleanPages) -> Search:
        if isinstance(self.results, Engine):
            return open_index(self.collection, self.results, pages)
        if isinstance(self.results, str):
            deepest = max(step.value for step in self.rules.depths.steps)
            return LiveSearch(self.results, self.url_field, pages, deepest)
        return FiledSearch(self.results, self.work, self.url_field, pages)


class Marked(NamedTuple):
    """What one query has found: how many results, how many more that are not known, and marks."""

    results: int
    unknown: int
    marks: list[Mark]


class Marker:
    """Marks the near-duplicates among the results of a query."""

    def __init__(self, pages: CleanPages, search: Search, rules: Rules) -> None:
        self._pages, self._search, self._rules = pages, search, rules

    def mark(self, query: Query, gone: npt.NDArray[np.bool_] | None = None) -> Marked:
        """The pages are near-duplicates of canonical pages with a PageRank as high or higher.

        ``gone``, shape (pages,): those that are not in the repository any more; this query is done then, and
        what it marks is gone, too.
        """
        pages, rules = self._pages, self._rules
        rows, unknown = self._results(query, gone)
        places = np.unique(pages.places[rows[pages.compared[rows]]])
        if rows.size < rules.min_results or places.size < 2:
            return Marked(rows.size, unknown, [])
        ordered = pages.order[places]
        distance = rules.max_distance(query.place, rows.size)
        heads = stars(pages.values[ordered], pages.kept[ordered], distance)
        marked = np.flatnonzero(heads != np.arange(heads.size))
        if gone is not None:
            gone[ordered[marked]] = True
        ids = pages.ids[ordered]
        pairs = zip(ids[marked].tolist(), ids[heads[marked]].tolist(), strict=True)
        marks = [Mark(page, canonical, query.place, distance) for page, canonical in pairs]
        return Marked(rows.size, unknown, marks)

    def _results(self, query: Query, gone: npt.NDArray[np.bool_] | None) -> tuple[Rows, int]:
        """The results down to the depth of the query, the best first, and how many are not known."""
        depth, share = self._rules.depths.at(query.place), self._rules.depth_share
        found = [np.empty(0, dtype=np.int64)]
        size = unknown = 0
        for some in self._search.results(query):
            known = some[some >= 0]
            unknown += some.size - known.size
            found.append(known if gone is None else known[~gone[known]])
            size += found[-1].size
            if size >= depth and not share:
                break
        return np.concatenate(found)[: max(depth, round(share * size))], unknown


def mark_sequentially(job: Job, work: Work, on_progress: Callable[[int], None]) -> None:
    """Do the queries one after the other, each on what those before have left."""
    pages = CleanPages(job.collection, job.rules)
    gone = np.zeros(len(pages), dtype=np.bool_)
    gone[pages.rows_of(np.array(work.marked(Way.SEQUENTIAL), dtype=np.int64))] = True
    for number, queries in work.missing(Way.SEQUENTIAL):
        work.add(_batch(job, pages, Batch(Way.SEQUENTIAL, number, len(queries)), queries, gone))
        on_progress(queries[-1].place)


def mark_in_parallel(job: Job, work: Work, processes: int, on_progress: Callable[[int], None]) -> None:
    """Do the queries in any order, each on the whole repository. So the marks do not depend on the number of
    processes.
    """
    done = 0
    missing = work.missing(Way.PARALLEL)
    for batch in workers.run(partial(_Worker, job), missing, processes, lambda _: None):
        work.add(batch)
        done += batch.queries
        on_progress(done)


class _Worker:
    """Does batches, in a process of its own."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._pages = CleanPages(job.collection, job.rules)

    def __call__(self, task: Task, tell: Callable[[Any], None]) -> Batch:
        number, queries = task
        return _batch(self._job, self._pages, Batch(Way.PARALLEL, number, len(queries)), queries, None)

    def close(self) -> None:
        """Nothing is open between batches."""


def _batch(
    job: Job, pages: CleanPages, batch: Batch, queries: list[Query], gone: npt.NDArray[np.bool_] | None
) -> Batch:
    """The same batch, done. The search is opened for each, so that an index that is gone is missed."""
    marks: dict[tuple[int, int], Mark] = {}
    started = time.process_time()
    with closing(job.open_search(pages)) as search:
        marker = Marker(pages, search, job.rules)
        for query in queries:
            found = marker.mark(query, gone)
            batch.hit += found.results > 0
            batch.results += found.results
            batch.unknown += found.unknown
            for mark in found.marks:
                marks.setdefault((mark.page, mark.canonical), mark)
    batch.seconds = time.process_time() - started
    batch.marks = list(marks.values())
    return batch
