"""Probabilistic SimHash Matching (Sood, chapters IV and V.A) on an index that grows while it is searched."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import ConfigurationError
from neardup.index.base import ANY_NUMBER, MOST_ROWS, Match, check_rows
from neardup.index.psm.tree import PrefixTree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

    from neardup.fingerprint.simhash import Fingerprint

_match: Callable[[Iterable[int]], Match] = partial(tuple.__new__, Match)
"""A match of row, value and distance, in two thirds of the time."""
_BLOCK = 1 << 10
"""Queries that a thread takes on at once."""
_PAUSE_SECONDS = 1e-4
"""What a long scan leaves to other threads between its parts."""

RECALL = 0.98
"""Share of the pairs at exactly ``max_distance`` to be found, unless said otherwise.

Measured on the pairs at distance 1 to 8 of the LLVM manuals (1,702 fingerprints):

- target 0.95: .982 of the pairs found, with 4.1 probes;
- target 0.98: .995 found, with 5.3 probes;
- target 0.99: .998 found, with 6.3 probes.
"""


class PSMIndex(PrefixTree):
    """Finds stored fingerprints within ``max_distance`` of a query by flipping the query's weakest bits.

    Fingerprints with the same leading bits stand together in a leaf of a tree of prefixes. A query looks into
    the leaf of its own prefix first, so that an exact twin is always found. Then come the leaves reached by
    flipping combinations of the query's weak bits, in falling probability (eq. 4.6). The fingerprints in
    these leaves are compared with the query.

    All leaves that are probable enough are probed. What is enough follows from the queries before. On
    average, queries shall cover ``recall`` of the probability that a pair at exactly ``max_distance`` differs
    in just these bits. A page with clear weights needs few probes, one with many weak bits more.

    This index leaves the thesis in four points. The table of the thesis is sorted and built once, with one
    number p of prefix bits for all. Here a full leaf is divided by three more bits. So p is larger where
    fingerprints are dense, and grows with the index, one leaf at a time. The number of probes is chosen per
    query from a recall target instead of a fixed k. The flip probabilities of eq. 4.5 are calibrated
    (:data:`neardup.index.psm.flips.FLIP_SLOPE`). There is no heap: see :mod:`neardup.index.psm.walk`.

    Skewed fingerprints: a leaf holds at most 988, unless about half of them or more are copies of one, or
    they agree in 63 bits. So a probe compares at most some 2,000 fingerprints that are not copies of each
    other. Dividing a leaf moves no more of them either. A path has at most 21 steps.

    Memory: 12 bytes a fingerprint, about 14 with all that belongs to it (``nbytes``), some more after many
    have been taken out. Nodes of the tree stay where there are no fingerprints any more. An index is for one
    thread at a time; only :meth:`nearest` may be called from another.
    """

    def __init__(self, *, max_distance: int = 3, recall: float = RECALL) -> None:
        if not 0.0 < recall <= 1.0:
            raise ConfigurationError(f"recall must be above 0 and at most 1, not {recall}")
        super().__init__(max_distance=max_distance, recall=recall)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has the same fingerprints, and has searched for nothing."""
        return _again, (self.max_distance, self.recall, *self.contents())

    def extend(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> None:
        """See :class:`neardup.index.base.Index`; ValueError for arrays of other shapes or kinds."""
        if values.ndim != 1 or rows.shape != values.shape:
            raise ValueError(f"values and rows must have one shape (n,), not {values.shape} and {rows.shape}")
        if values.dtype.kind not in "iu" or rows.dtype.kind not in "iu":
            raise ValueError(f"values and rows must be integers, not {values.dtype} and {rows.dtype}")
        if len(values) == 0:
            return
        check_rows(int(rows.min()), int(rows.max()))
        self.add_many(np.ascontiguousarray(values, np.uint64), np.ascontiguousarray(rows, np.uint32))

    def find_all(self, query: Fingerprint) -> list[Match]:
        """All matches found, in no particular order (PSM_A)."""
        return list(map(_match, self.match_table(query).tolist()))

    def match_many(
        self,
        values: npt.NDArray[np.uint64],
        weights: npt.NDArray[np.float64],
        *,
        every: bool = False,
        threads: int = 1,
    ) -> npt.NDArray[np.uint64]:
        """Matches of many queries in one call: columns query, row, value, distance, shape (n, 4), ordered by
        query.

        - ``values``: fingerprints, (m,).
        - ``weights``: the weights of their bits, (m, 64).
        - ``every``: as :meth:`find_all` (PSM_A), else as :meth:`find_first`.

        The search runs without the interpreter's lock, on so many threads. Nothing may be added or taken out
        meanwhile. Raises ValueError for other shapes.
        """
        if values.ndim != 1 or weights.shape != (len(values), 64):
            raise ValueError(
                f"m queries are values of shape (m,) and weights of shape (m, 64), not {values.shape} and"
                f" {weights.shape}"
            )
        if values.dtype.kind not in "iu":
            raise ValueError(f"values must be integers, not {values.dtype}")
        if threads < 1:
            raise ValueError(f"threads must be at least 1, not {threads}")
        asked = np.ascontiguousarray(values, dtype=np.uint64)
        weighted = np.ascontiguousarray(weights, dtype=np.float64)
        most, threshold = ANY_NUMBER if every else 1, self.learned[0]

        def match(start: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], float]:
            block = slice(start, start + _BLOCK)
            found, costs, then = self.match_block(asked[block], weighted[block], most, threshold)
            found[:, 0] += np.uint64(start)
            return found, costs, then

        blocks = range(0, len(asked), _BLOCK)
        if threads == 1:
            answers = list(map(match, blocks))
        else:
            with ThreadPoolExecutor(threads, thread_name_prefix="neardup-index") as pool:
                answers = list(pool.map(match, blocks))
        for _, costs, _ in answers:
            self.count_costs(costs)
        known = [then for _, _, then in answers if then > 0.0]
        if known:
            self.learned = float(np.exp(np.mean(np.log(known)))), self.learned[1]
        return np.concatenate([found for found, _, _ in answers] or [np.empty((0, 4), dtype=np.uint64)])

    def nearest(self, value: int, *, rows: int, but: int) -> int:
        """Distance of the nearest fingerprint stored under a row below ``rows`` other than ``but``; 65 if
        there is none.

        Everything is compared, about 1 ms a million and a pause now and then. The method may be called from
        another thread. What is added or taken out meanwhile may be seen or not.
        """
        smallest, cursor = self.nearest_from(0, value, rows, but)
        while cursor is not None:
            time.sleep(_PAUSE_SECONDS)
            nearer, cursor = self.nearest_from(cursor, value, rows, but)
            smallest = min(smallest, nearer)
        return smallest

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that :meth:`from_arrays` needs to make the index again: ``values`` uint64 and ``rows`` uint32,
        of shape (n,).
        """
        values, rows = self.contents()
        return {"values": values, "rows": rows}

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, npt.NDArray[Any]],
        *,
        max_distance: int,
        recall: float,
        pages: int = MOST_ROWS,
    ) -> PSMIndex:
        """The index that gave these :meth:`arrays`, of rows below ``pages``, searched with settings of its
        own.

        ValueError: they do not fit together, or a row is not below ``pages``.
        """
        values, rows = arrays.get("values"), arrays.get("rows")
        if (
            values is None
            or rows is None
            or values.dtype != np.uint64
            or rows.dtype != np.uint32
            or values.ndim != 1
            or rows.shape != values.shape
            or (rows.size and int(rows.max()) >= pages)
        ):
            raise ValueError("the arrays of the index do not fit together")
        return _again(max_distance, recall, values, rows)


def _again(
    max_distance: int, recall: float, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]
) -> PSMIndex:
    index = PSMIndex(max_distance=max_distance, recall=recall)
    index.add_many(values, rows)
    return index
