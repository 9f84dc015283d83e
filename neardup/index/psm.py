"""Probabilistic SimHash Matching (Sood, chapters IV and V.A) on a table that grows in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.errors import ConfigurationError
from neardup.index import kernels
from neardup.index.base import Match, ProbeStats, check_max_distance

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.simhash import Fingerprint

_FEWEST_PREFIX_BITS = 7
_FULL = 5
"""Entries per bucket of 8 slots, on average, at which the table doubles. Linear probing slows down beyond that."""

_FIRST_MATCHES = 64


class PSMIndex:
    """Finds stored fingerprints within ``max_distance`` of a query by flipping the query's weakest bits.

    The p leading bits of a fingerprint choose its bucket. A query probes its own bucket, then those reached by
    flipping combinations of its weak bits among the p, in falling probability (eq. 4.6, algorithm 2), and compares
    whole fingerprints there. It stops when the combinations probed cover ``recall`` of the probability that a pair at
    exactly ``max_distance`` differs in just these bits: a page with clear weights needs few probes, one with many weak bits more.

    Where this leaves the thesis: its table is sorted and built once, with 2^p offsets; here buckets of a hash table, which
    take an ``add`` after each query, and p grows with the table (p ≈ log2(n) - 2, a few candidates a probe).
    The number of probes is chosen per query from a recall target instead of a fixed k, and the flip probabilities of eq. 4.5 are
    scaled to measured ones (see :data:`neardup.index.kernels.FLIP_SLOPE`).

    Growing doubles the table in one step: a pause of about 50 ms at a million fingerprints.
    """

    def __init__(self, *, max_distance: int = 3, recall: float = 0.95) -> None:
        if not 0.0 < recall <= 1.0:
            raise ConfigurationError(f"recall must be above 0 and at most 1, not {recall}")
        self.max_distance = check_max_distance(max_distance)
        self.recall = recall
        self.stats = ProbeStats()
        self.prefix_bits = _FEWEST_PREFIX_BITS
        self._size = 0
        self._table = _empty_table(self.prefix_bits)

    def __len__(self) -> int:
        return self._size

    def __contains__(self, value: int) -> bool:
        return bool(kernels.contains(self._table, self.prefix_bits, np.uint64(value)))

    def add(self, value: int, row: int) -> None:
        self._make_room(1)
        kernels.insert(self._table, self.prefix_bits, np.uint64(value), row)
        self._size += 1

    def extend(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> None:
        self._make_room(len(values))
        kernels.insert_many(self._table, self.prefix_bits, values, rows)
        self._size += len(values)

    def remove(self, value: int, row: int) -> bool:
        removed = bool(kernels.delete(self._table, self.prefix_bits, np.uint64(value), row))
        self._size -= removed
        return removed

    def find_first(self, query: Fingerprint) -> Match | None:
        matches, found = self._search(query, room=1, only_first=True)
        return _match(matches[0]) if found else None

    def find_all(self, query: Fingerprint) -> list[Match]:
        matches, found = self._search(query, room=_FIRST_MATCHES, only_first=False)
        return [_match(matches[i]) for i in range(found)]

    def _search(
        self, query: Fingerprint, *, room: int, only_first: bool
    ) -> tuple[npt.NDArray[np.uint64], int]:
        relative = query.relative_weights()
        while True:
            matches = np.empty((room, 3), dtype=np.uint64)
            counts = np.zeros(3, dtype=np.int64)
            found = kernels.search(
                self._table, self.prefix_bits, np.uint64(query.value), relative, self.max_distance,
                self.recall, only_first, matches, counts,
            )  # fmt: skip
            if found <= room:
                break
            room = found
        self.stats.queries += 1
        self.stats.probes += int(counts[0])
        self.stats.empty_probes += int(counts[1])
        self.stats.candidates += int(counts[2])
        return matches, found

    def _make_room(self, entries: int) -> None:
        prefix_bits = self.prefix_bits
        while self._size + entries > _FULL << prefix_bits:
            prefix_bits += 1
        if prefix_bits > self.prefix_bits:
            table = _empty_table(prefix_bits)
            kernels.rehash(self._table, table, prefix_bits)
            self._table, self.prefix_bits = table, prefix_bits


def _empty_table(prefix_bits: int) -> npt.NDArray[np.uint64]:
    return np.zeros((kernels.BUCKET << prefix_bits, 2), dtype=np.uint64)


def _match(row_value_distance: npt.NDArray[np.uint64]) -> Match:
    row, value, distance = row_value_distance
    return Match(int(row), int(value), int(distance))
