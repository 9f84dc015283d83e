"""What a crawl starts with: the pages of earlier crawls, from a snapshot if it is still true, else from the
tables.
"""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any

from neardup.detection import snapshot
from neardup.detection.detector_arrays import arrays_of, restore_arrays
from neardup.detection.reconciliation import unresolved
from neardup.detection.snapshot import SnapshotError, SnapshotMissing

if TYPE_CHECKING:
    from datetime import timedelta
    from pathlib import Path

    from neardup.detection.detector import Detector
    from neardup.store.store import Store

logger = logging.getLogger(__name__)

_KIND = "crawl"


class Restart:
    """Fills a detector at the start of a crawl and keeps a snapshot of it at the end.

    What crawls have learned of hosts is read from the tables, whatever the pages are read from.

    A snapshot belongs to the state of the database that it was taken of. If any crawl has written since, the
    snapshot is out of date, and the tables are read. No snapshot is taken if another crawl has written
    meanwhile, because this detector does not know that crawl's pages.
    """

    def __init__(
        self,
        detector: Detector,
        store: Store,
        crawl_id: int,
        path: Path | None,
        *,
        max_age: timedelta | None = None,
    ) -> None:
        self.detector = detector
        self.store = store
        self.crawl_id = crawl_id
        self.path = path if max_age is None else None  # what is fresh changes while nobody writes
        self.max_age = max_age
        self._state_at_start = [] if self.path is None else store.state(but=crawl_id)

    def load(self) -> None:
        """Fill the detector; the log says from where, with how much and how long it took."""
        started = perf_counter()
        source = "snapshot"
        if not self._load_snapshot():
            source = "tables"
            self.detector.restore(self.store.known_pages(max_age=self.max_age))
        # Else a row that cannot be read would stay until this crawl has counted as many pages.
        if damaged := self.store.load_frequencies(self.detector.verifier.frequencies):
            self.store.remove_frequencies(damaged)
        decisions = self.detector.verifier.decisions = self.store.decisions()
        # What a crawl that died has left unresolved is resolved at the end of this one.
        left = unresolved(self.detector.pages, self.detector.rule.max_distance, decisions)
        self.detector.no_longer_canonical.update(left)
        logger.info(
            "neardup: crawl %(crawl)d on %(database)s: %(known)d known pages,"
            " %(canonical)d of them canonical, loaded from the %(source)s in %(seconds).2f s",
            {
                "crawl": self.crawl_id,
                "database": self.store.location,
                "known": len(self.detector.pages),
                "canonical": len(self.detector.index),
                "source": source,
                "seconds": perf_counter() - started,
            },
        )

    def _load_snapshot(self) -> bool:
        if self.path is None or not self._state_at_start:
            return False
        try:
            found = snapshot.load(self.path, kind=_KIND)
            if found.meta != self._meta(self._state_at_start):
                logger.info("neardup: snapshot %(path)s is out of date", {"path": self.path})
                return False
            restore_arrays(self.detector, found.arrays)
        except SnapshotMissing:
            return False
        except (SnapshotError, ValueError) as exc:
            logger.warning("neardup: %(problem)s; the tables are read instead", {"problem": exc})
            return False
        return True

    def save(self, batches: int) -> None:
        """Keep a snapshot; after everything has been written, in so many transactions, and before the store
        is closed.
        """
        if self.path is None:
            return
        try:
            state = self.store.state(but=0)
            others = [entry for entry in state if entry[0] != self.crawl_id]
            # Pages that are removed meanwhile may be counted for this crawl.
            counted = sum(entry[2] for entry in state if entry[0] == self.crawl_id)
            if others != self._state_at_start or counted != batches:
                logger.info("neardup: another crawl has written meanwhile, so no snapshot is kept")
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            snapshot.save(self.path, kind=_KIND, meta=self._meta(state), arrays=arrays_of(self.detector))
        except (SnapshotError, OSError) as exc:
            logger.warning("neardup: %(problem)s; the next crawl will read the tables", {"problem": exc})

    def _meta(self, state: list[list[Any]]) -> dict[str, object]:
        return {
            "scheme": self.store.scheme,
            "min_features": self.detector.options.min_features,
            "scope": self.detector.options.scope,
            "state": state,
        }
