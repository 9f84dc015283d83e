"""Thresholds that somebody tries: judging a store by them takes minutes, so it is done in the background."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.collection import rethreshold
from neardup.errors import NeardupError
from neardup.store import removal
from neardup.store.page_report import store_sizes
from neardup.web.site import BadRequest

if TYPE_CHECKING:
    from neardup.collection.rethreshold import Outcome
    from neardup.detection.detector import DetectorOptions
    from neardup.detection.rule import Rule
    from neardup.store.store import Store


class Thresholds(NamedTuple):
    """What may be tried: bits, a resemblance, distinct words."""

    max_distance: int
    verify: float
    min_features: int


@dataclass(slots=True)
class Trial:
    """How far the judging by some thresholds is: ``judged`` of ``pages``.

    ``outcome`` is None until all are judged. ``failure`` says why they are not.
    """

    thresholds: Thresholds
    pages: int
    judged: int = 0
    outcome: Outcome | None = None
    applying: bool = False
    applied: bool = False
    failure: NeardupError | None = None
    state: list[list[Any]] | None = None
    """That of the store when it was judged."""


class Trials:
    """One trial at a time. A new one ends that before, unless that is being applied; the last is kept."""

    def __init__(self, store: Store, rule: Rule) -> None:
        self._store, self._rule = store, rule
        self._lock = Lock()
        self._trial: Trial | None = None
        self._thread: Thread | None = None

    def of(self, thresholds: Thresholds) -> Trial | None:
        """The trial of these thresholds, if it is the last one."""
        trial = self._trial
        return trial if trial is not None and trial.thresholds == thresholds else None

    def wait(self, seconds: float | None = None) -> None:
        """Until nothing is being judged, or for so long."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def stop(self) -> None:
        """End what is being judged; what is being applied comes to its end."""
        with self._lock:
            if self._trial is not None and not self._trial.applying:
                self._trial = None
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
            if same is not None and not apply and same.state in (None, state):
                return
            trial = Trial(thresholds, pages, applying=apply)
            if same is not None and same.state == state:
                trial.judged, trial.outcome, trial.state = same.judged, same.outcome, same.state
            self._trial = trial
            self._thread = Thread(target=self._run, args=(trial, options), daemon=True, name="neardup trial")
            self._thread.start()

    def _run(self, trial: Trial, options: DetectorOptions) -> None:
        try:
            outcome = self._judged(trial, options)
            if trial.applying:
                if self._store.state(but=0) != trial.state:
                    raise BadRequest("the store has changed meanwhile; try the thresholds again")
                rethreshold.apply(self._store, outcome)
                trial.applied = True
        except _Stopped:
            pass
        except NeardupError as exc:
            trial.failure = exc
        finally:
            trial.applying = False

    def _judged(self, trial: Trial, options: DetectorOptions) -> Outcome:
        if trial.outcome is not None:
            return trial.outcome
        state = self._store.state(but=0)

        def progress(judged: int) -> None:
            trial.judged = judged
            if self._trial is not trial:
                raise _Stopped

        outcome = rethreshold.rethreshold(self._store, options, self._rule, progress)
        trial.outcome, trial.state = outcome, state
        return outcome


class _Stopped(Exception):
    """Somebody tries other thresholds."""
