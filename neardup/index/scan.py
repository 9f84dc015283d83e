"""Linear scan: every stored fingerprint is compared. Exact, and the oracle of the other indexes' tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.fingerprint import hamming
from neardup.index.base import ANY_NUMBER, Match, ProbeStats, check_max_distance, check_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.fingerprint.simhash import Fingerprint

_FIRST_CAPACITY = 1024


class LinearScan:
    """Exact index: recall 1 at the price of n comparisons a query (about 1 ns each).

    A scan has no probes: ``stats.candidates`` counts all comparisons.
    """

    def __init__(self, *, max_distance: int = 3) -> None:
        self.max_distance = check_max_distance(max_distance)
        self.stats = ProbeStats()
        self._values = np.empty(_FIRST_CAPACITY, dtype=np.uint64)
        self._rows = np.empty(_FIRST_CAPACITY, dtype=np.int64)
        self._size = 0

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._rows.nbytes

    def __len__(self) -> int:
        return self._size

    def __contains__(self, value: int) -> bool:
        return bool(np.any(self._values[: self._size] == np.uint64(value)))

    def add(self, value: int, row: int) -> None:
        self.extend(np.array([value], dtype=np.uint64), np.array([row], dtype=np.int64))

    def extend(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> None:
        if len(values):
            check_rows(int(rows.min()), int(rows.max()))
        end = self._size + len(values)
        if end > len(self._values):
            capacity = max(end, 2 * len(self._values))
            self._values = np.concatenate(
                [self._values, np.empty(capacity - len(self._values), dtype=np.uint64)]
            )
            self._rows = np.concatenate([self._rows, np.empty(capacity - len(self._rows), dtype=np.int64)])
        self._values[self._size : end] = values
        self._rows[self._size : end] = rows
        self._size = end

    def remove(self, value: int, row: int) -> bool:
        here = (self._values[: self._size] == np.uint64(value)) & (self._rows[: self._size] == row)
        if not here.any():
            return False
        position, last = int(here.argmax()), self._size - 1
        self._values[position], self._rows[position] = self._values[last], self._rows[last]
        self._size = last
        return True

    def find_first(self, query: Fingerprint) -> Match | None:
        return min(self.find_all(query), key=lambda match: match.distance, default=None)

    def find_all(self, query: Fingerprint) -> list[Match]:
        return [Match(*match) for match in self.match_table(query).tolist()]

    def match_table(self, query: Fingerprint, most: int = ANY_NUMBER) -> npt.NDArray[np.uint64]:
        stored = self._values[: self._size]
        distances = hamming.distances(stored, query.value)
        self.stats.queries += 1
        self.stats.candidates += self._size
        near = np.flatnonzero(distances <= self.max_distance)[:most]
        return np.column_stack((self._rows[near].astype(np.uint64), stored[near], distances[near]))
