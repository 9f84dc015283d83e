from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest

from neardup.detection.recall import RecallMonitor
from neardup.fingerprint.simhash import Fingerprint
from neardup.index.base import Match
from neardup.index.psm.psm_index import PSMIndex

if TYPE_CHECKING:
    import numpy.typing as npt

ALL_ONES = 2**64 - 1


def filled(recall: float = 0.95) -> tuple[PSMIndex, npt.NDArray[np.uint64]]:
    values = np.random.default_rng(1).integers(0, ALL_ONES, size=20_000, dtype=np.uint64)
    index = PSMIndex(recall=recall)
    index.extend(values, np.arange(20_000))
    return index, values


class TestNearest:
    def test_equals_a_scan_of_all(self) -> None:
        index, values = filled()
        for value in np.random.default_rng(2).integers(0, ALL_ONES, size=50, dtype=np.uint64):
            expected = int(np.bitwise_count(values ^ value).min())
            assert index.nearest(int(value), rows=20_000, but=-1) == expected

    def test_sees_neither_later_rows_nor_the_page_itself(self) -> None:
        index = PSMIndex()
        index.add(0b0, 0)
        index.add(0b1, 1)
        index.add(0b111, 2)

        assert index.find_first(Fingerprint(0, -np.ones(64))) is not None
        assert index.nearest(0, rows=3, but=-1) == 0
        assert index.nearest(0, rows=3, but=0) == 1
        assert index.nearest(0b111, rows=2, but=-1) == 2
        assert index.nearest(0, rows=0, but=-1) == 65

    def test_what_was_removed_is_not_seen(self) -> None:
        index, values = filled()
        for row in range(100):
            assert index.remove(int(values[row]), row)
            assert index.nearest(int(values[row]), rows=20_000, but=-1) > 3

    def test_while_another_thread_adds(self) -> None:
        index, values = filled()
        stop = threading.Event()
        found: list[int] = []

        def scan() -> None:
            while not stop.is_set():
                found.append(index.nearest(int(values[7]), rows=20_000, but=-1))

        thread = threading.Thread(target=scan)
        thread.start()
        more = np.random.default_rng(3).integers(0, ALL_ONES, size=300_000, dtype=np.uint64)
        for start in range(0, len(more), 1000):
            index.extend(more[start : start + 1000], np.arange(20_000 + start, 21_000 + start))
        stop.set()
        thread.join()

        assert len(found) > 1
        assert set(found) == {0}


class TestMonitor:
    def test_hits_misses_and_what_does_not_count(self) -> None:
        index, values = filled()
        monitor = RecallMonitor(index, share=1.0)
        for i in range(30):
            value = int(values[i])
            monitor.query_answered(value ^ 1, Match(i, value, 1), rows=20_000, row=-1)  # found
            monitor.query_answered(value ^ 1, None, rows=20_000, row=-1)  # there, but not found
            monitor.query_answered(value, Match(i, value, 0), rows=20_000, row=-1)  # an exact twin
            monitor.query_answered(value ^ 1, None, rows=i, row=-1)  # stored later
            monitor.query_answered(value ^ 1, None, rows=20_000, row=i)  # the page itself
        monitor.close()

        estimate = monitor.estimate()
        assert estimate is not None
        assert estimate.found == 30
        assert 30 < estimate.checked <= 60  # samples are left out while scans pile up
        assert estimate.low < estimate.recall < estimate.high

    def test_share(self) -> None:
        monitor = RecallMonitor(filled()[0], share=0.1)
        for _ in range(1000):
            monitor.query_answered(1, Match(0, 3, 1), rows=1, row=1)
        monitor.close()

        estimate = monitor.estimate()
        assert estimate is not None
        assert estimate.checked in {99, 100}

    def test_nothing_seen_nothing_said(self) -> None:
        monitor = RecallMonitor(filled()[0], share=1.0)
        monitor.close()

        assert monitor.estimate() is None

    @pytest.mark.parametrize(("hits", "misses", "warns"), [(95, 5, False), (60, 40, True), (3, 3, False)])
    def test_one_warning_below_the_target(
        self, hits: int, misses: int, warns: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.WARNING)
        index, values = filled(recall=0.95)
        monitor = RecallMonitor(index, share=1.0)
        for _ in range(hits):
            monitor.query_answered(1, Match(0, 3, 1), rows=1, row=1)
        for i in range(misses):
            monitor.query_answered(int(values[i]) ^ 1, None, rows=20_000, row=-1)
        monitor.close()

        assert len(caplog.records) == warns
        assert not warns or "below the target of 0.95" in caplog.text

    @pytest.mark.slow
    def test_measured_recall_is_that_of_the_index(self) -> None:
        # A target of 0.5 must show: the estimate is made from the crawl's own queries.
        rng = np.random.default_rng(5)
        weights = rng.normal(size=(5000, 64))
        values = np.packbits(weights > 0, axis=1).view(">u8").ravel().astype(np.uint64)
        fill = rng.integers(0, ALL_ONES, size=200_000, dtype=np.uint64)
        index = PSMIndex(max_distance=3, recall=0.5)
        index.extend(np.concatenate([values, fill]), np.arange(205_000))
        monitor = RecallMonitor(index, share=1.0)
        monitor._pool.submit(lambda: None).result()
        found = near = 0
        for row in range(0, 5000, 4):
            edited = weights[row] + rng.normal(scale=0.12, size=64)
            value = int(np.packbits(edited > 0).view(">u8")[0])
            distances = np.bitwise_count(values ^ np.uint64(value))
            if 1 <= distances.min() <= 3:
                match = index.find_first(Fingerprint(value, edited))
                near += 1
                found += match is not None
                monitor.query_answered(value, match, rows=205_000, row=-1)
                while monitor._waiting > 8:
                    pass
        monitor.close()

        estimate = monitor.estimate()
        assert estimate is not None
        assert near > 100
        assert (estimate.checked, estimate.found) == (near, found)
        assert 0.5 <= estimate.recall < 0.97
