"""The figures of the first page, counted in the background: all of a store takes seconds, a page must not."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from threading import Condition
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.collection.stored_mirrors import mirrors_of
from neardup.store.cluster_table import ClusterTable
from neardup.store.explore import first_rank
from neardup.store.summary import summarise
from neardup.web.background import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from neardup.collection.mirrors import Mirror
    from neardup.detection.rule import Rule
    from neardup.errors import NeardupError
    from neardup.store.store import Store
    from neardup.store.summary import HostFigures, Summary

CLUSTERS = "clusters"
"""What is counted first."""

_SHARE = 10
"""Counting takes a tenth of the time at most, while a crawl writes."""


class Counted(NamedTuple):
    """All that is counted of a store, ``hosts`` by their names."""

    summary: Summary
    hosts: Mapping[str, HostFigures]
    mirrors: list[Mirror]


class ReadClusters(NamedTuple):
    """All clusters as they were ``at`` a time; ``is_current``: whether nothing has been written since."""

    table: ClusterTable
    at: datetime
    is_current: bool


class Current(NamedTuple):
    """The last figures, None before the first; ``counting`` says what is counted now, None if nothing is."""

    counted: Counted | None
    counting: str | None


def count(store: Store, rule: Rule, progress: Callable[[str], None]) -> Counted:
    """Count all that a report shows; ``progress`` is told what is counted next."""
    summary, hosts = summarise(store, rule, progress)
    progress("mirrors")
    return Counted(summary, hosts, mirrors_of(store).found)


class Figures:
    """Counts what a store holds, again when crawls have written to it."""

    def __init__(self, store: Store, rule: Rule) -> None:
        self._store, self._rule = store, rule
        self._lock = Condition()
        self._task: Task | None = None
        self._counted: Counted | None = None
        self._clusters: tuple[ClusterTable, datetime] | None = None
        self._counting: str | None = None
        self._state: list[Any] | None = None
        self._clusters_state: list[Any] | None = None
        self._next, self._next_clusters = 0.0, 0.0
        """When each may be counted again."""
        self._failure: NeardupError | None = None

    def current(self) -> Current:
        """What is known now. NeardupError: counting has failed; the next call tries again."""
        state = self._state_now()
        with self._lock:
            self._raise_failure()
            is_old = self._counted is None or (state != self._state and monotonic() >= self._next)
            if is_old and self._counting is None:
                self._start(state, all_figures=True)
            return Current(self._counted, self._counting)

    def clusters(self, patience: float) -> ReadClusters | None:
        """All clusters as they were read last. None: they are not read yet.

        What is being read is waited for, so many seconds. NeardupError: as :meth:`current`.
        """
        state = self._state_now()
        with self._lock:
            self._raise_failure()
            is_old = state != self._clusters_state and monotonic() >= self._next_clusters
            if is_old and self._counting is None:
                self._start(state, all_figures=self._counted is None)
            self._lock.wait_for(lambda: self._counting != CLUSTERS, patience)
            if self._clusters is None:
                return None
            return ReadClusters(*self._clusters, is_current=self._clusters_state == state)

    def wait(self) -> None:
        """Until what is being counted is counted."""
        if self._task is not None:
            self._task.wait()

    def stop(self) -> None:
        """End what is being counted, for good."""
        if self._task is not None:
            self._task.stop()

    def _state_now(self) -> list[Any]:
        # PageRank is of no crawl.
        with self._store.looking() as connection:
            ranked = first_rank(connection)
        return [*self._store.state(but=0), ranked]

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _start(self, state: list[Any], *, all_figures: bool) -> None:
        """Count all, or only read clusters, which takes a tenth of the time or less."""
        self._counting = CLUSTERS
        work = partial(_count if all_figures else _read_clusters, self._store.opener(), self._rule)
        begun = monotonic(), datetime.now(UTC)
        hear, ended = partial(self._hear, state, begun), partial(self._ended, state, begun[0])
        self._task = Task("counting", work, hear, ended)

    def _hear(self, state: list[Any], begun: tuple[float, datetime], told: ClusterTable | str) -> None:
        with self._lock:
            if isinstance(told, ClusterTable):
                self._clusters, self._clusters_state = (told, begun[1]), state
                self._next_clusters = _next(begun[0])
            else:
                self._counting = told
            self._lock.notify_all()

    def _ended(
        self, state: list[Any], begun: float, counted: Counted | None, failure: NeardupError | None
    ) -> None:
        with self._lock:
            if counted is not None:
                self._counted, self._state = counted, state
                self._next = _next(begun)
            self._failure, self._counting = failure, None
            self._lock.notify_all()


def _next(begun: float) -> float:
    """When that may be counted again which is counted now."""
    now = monotonic()
    return now + _SHARE * (now - begun)


def _count(
    open_store: Callable[[], Store], rule: Rule, tell: Callable[[ClusterTable | str], None]
) -> Counted:
    """Tells all clusters, then what is counted next."""
    with open_store() as store:
        with store.reading() as connection:
            tell(ClusterTable.load(connection))
        return count(store, rule, tell)


def _read_clusters(
    open_store: Callable[[], Store], rule: Rule, tell: Callable[[ClusterTable | str], None]
) -> None:
    """Tells all clusters."""
    with open_store() as store, store.reading() as connection:
        tell(ClusterTable.load(connection))
