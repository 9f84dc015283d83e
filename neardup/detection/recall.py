"""The recall of a running crawl, seen live: a share of its queries is also answered exactly, in a thread of
its own.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from neardup.detection.interval import wilson

if TYPE_CHECKING:
    from neardup.index.base import Match
    from neardup.index.psm.psm_index import PSMIndex

logger = logging.getLogger(__name__)

_MOST_WAITING = 64
_FEWEST_TO_WARN = 20


class Estimate(NamedTuple):
    """``found`` of ``checked`` near-duplicates were found; ``low`` and ``high`` bound the recall with 95 %
    confidence.
    """

    checked: int
    found: int
    recall: float
    low: float
    high: float


class RecallMonitor:
    """Estimates the share of queries with a match that the index finds (R of PSM_F; Sood, eq. 7.4).

    Every 1/``share``-th query counts. If the index found a match, that is a hit. If not, everything stored at
    that time is compared, off the caller's thread and without the interpreter's lock. A match found by that
    scan is a miss.

    As in the thesis, exact twins do not count: they are always found, and would flatter the figure. Copies of
    the same text do not even ask the index. While scans pile up, which takes a large index and many queries,
    samples are left out.

    One warning is logged when the recall is below the index's target beyond doubt.
    """

    def __init__(self, index: PSMIndex, *, share: float) -> None:
        self.index = index
        self.share = share
        self._due = 0.0
        self._waiting = 0
        self._found = 0
        self._missed = 0
        self._warned = False
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="neardup-recall")

    def query_answered(self, value: int, match: Match | None, *, rows: int, row: int) -> None:
        """Tell of a query: what was found, how many rows were known then, and the row of the
        page that asked.
        """
        self._due += self.share
        if self._due < 1.0:
            return
        self._due -= 1.0
        if match is not None:
            self._found += match.distance > 0
        elif self._waiting < _MOST_WAITING:
            self._waiting += 1
            self._pool.submit(self._scan, value, rows, row)

    def estimate(self) -> Estimate | None:
        """The recall so far; None before the first near-duplicate was seen."""
        checked = self._found + self._missed
        if checked == 0:
            return None
        rate = wilson(self._found, checked)
        assert rate is not None
        return Estimate(checked, self._found, *rate)

    def close(self) -> None:
        """Finish the scans that wait."""
        self._pool.shutdown()
        self._warn_if_low()

    def _scan(self, value: int, rows: int, row: int) -> None:
        nearest = self.index.nearest(value, rows=rows, but=row)
        self._missed += 1 <= nearest <= self.index.max_distance
        self._waiting -= 1
        self._warn_if_low()

    def _warn_if_low(self) -> None:
        estimate = self.estimate()
        if (
            estimate is not None
            and not self._warned
            and estimate.checked >= _FEWEST_TO_WARN
            and estimate.high < self.index.recall
        ):
            self._warned = True
            logger.warning(
                "neardup: recall is %(recall).3f (%(low).3f to %(high).3f; %(found)d of %(checked)d sampled"
                " near-duplicates"
                " found), below the target of %(target)g: raise NEARDUP_RECALL, or choose an exact index"
                " with NEARDUP_INDEX",
                {**estimate._asdict(), "target": self.index.recall},
            )
