"""Thresholds that somebody tries: judging a store by them takes minutes, so it is done in the background."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.collection import rethreshold
from neardup.store import removal
from neardup.store.page_report import store_sizes
from neardup.web.background import Task
from neardup.web.site import BadRequest

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.collection.rethreshold import Changes, Outcome
    from neardup.detection.detector import DetectorOptions
    from neardup.detection.rule import Rule
    from neardup.errors import NeardupError
    from neardup.store.store import Store

_PAGES_AT_ONCE = 1_000
"""Pages that are judged before the number is told."""


class Thresholds(NamedTuple):
    """What may be tried: bits, a resemblance, distinct words."""

    max_distance: int
    verify: float
    min_features: int


class Judged(NamedTuple):
    """What a store would hold; ``state`` is that of the store when it was judged."""

    outcome: Outcome
    changes: Changes
    state: list[list[Any]]


@dataclass(slots=True)
class Trial:
    """How far the judging by some thresholds is: ``pages_judged`` of ``pages``.

    ``judged`` is None until all are judged. ``failure`` says why they are not.
    """

    thresholds: Thresholds
    pages: int
    pages_judged: int = 0
    judged: Judged | None = None
    applying: bool = False
    applied: bool = False
    failure: NeardupError | None = None


class Trials:
    """One trial at a time. A new one ends that before, unless that is being applied; the last is kept."""

    def __init__(self, store: Store, rule: Rule) -> None:
        self._store, self._rule = store, rule
        self._lock = Lock()
        self._trial: Trial | None = None
        self._task: Task | None = None

    def of(self, thresholds: Thresholds) -> Trial | None:
        """The trial of these thresholds, if it is the last one."""
        trial = self._trial
        return trial if trial is not None and trial.thresholds == thresholds else None

    def wait(self, seconds: float | None = None) -> None:
        """Until nothing is being judged, or for so long."""
        if self._task is not None:
            self._task.wait(seconds)

    def stop(self) -> None:
        """End what is being judged; what is being applied comes to its end."""
        with self._lock:
            self._stop()
        self.wait()

    def start(self, thresholds: Thresholds, options: DetectorOptions, *, apply: bool) -> None:
        """Have a store judged, and what was found applied. BadRequest: other thresholds are being applied, or
        a crawl runs that would go on by its own.
        """
        state = self._store.state(but=0)
        with self._store.looking() as connection:
            pages = store_sizes(connection)["simhash_values"]
            running = removal.running(connection) if apply else []
        if running:
            raise BadRequest(f"crawl {running[0]} seems to be running; wait for its end")
        with self._lock:
            last = self._trial
            if last is not None and last.applying:
                raise BadRequest("thresholds are being applied; wait for the end of that")
            same = last if last is not None and last.thresholds == thresholds and not last.failure else None
            known = None if same is None else same.judged
            if same is not None and not apply and (known is None or known.state == state):
                return
            self._stop()
            trial = Trial(thresholds, pages, applying=apply)
            if same is not None and known is not None and known.state == state:
                trial.pages_judged, trial.judged = same.pages_judged, known
            work = partial(_try, self._store.opener(), self._rule, options, known=trial.judged, apply=apply)
            self._trial = trial
            self._task = Task("judging", work, partial(_hear, trial), partial(_ended, trial))

    def _stop(self) -> None:
        if self._task is not None and self._trial is not None and not self._trial.applying:
            self._task.stop()
            self._trial = None


def _hear(trial: Trial, told: Judged | int) -> None:
    if isinstance(told, Judged):
        trial.judged = told
    else:
        trial.pages_judged = told


def _ended(trial: Trial, returned: None, failure: NeardupError | None) -> None:
    trial.failure = failure
    trial.applied, trial.applying = trial.applying and failure is None, False


def _try(
    open_store: Callable[[], Store],
    rule: Rule,
    options: DetectorOptions,
    tell: Callable[[Judged | int], None],
    *,
    known: Judged | None,
    apply: bool,
) -> None:
    """Judge a store, unless that is ``known``, and apply what was found."""
    with open_store() as store:
        judged = known
        if judged is None:
            judged = _judged(store, rule, options, tell)
            tell(judged)
        if apply:
            if store.state(but=0) != judged.state:
                raise BadRequest("the store has changed meanwhile; try the thresholds again")
            rethreshold.apply(store, judged.changes)


def _judged(store: Store, rule: Rule, options: DetectorOptions, tell: Callable[[int], None]) -> Judged:
    state = store.state(but=0)

    def progress(pages: int) -> None:
        if pages % _PAGES_AT_ONCE == 0:
            tell(pages)

    outcome, changes = rethreshold.rethreshold(store, options, rule, progress)
    return Judged(outcome, changes, state)
