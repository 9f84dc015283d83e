"""Probabilistic SimHash Matching (Sood, chapters IV and V.A) on an index that grows while it is searched."""

from __future__ import annotations

from array import array
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import ConfigurationError
from neardup.index.base import ANY_NUMBER, MOST_ROWS, Match, ProbeStats, check_max_distance, check_rows
from neardup.index.psm import bulk, calls, leaf_allocator, leaves, many, tree, walk
from neardup.index.psm.pool import fill_soon, grown
from neardup.index.psm.validation import is_valid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

    from neardup.fingerprint.simhash import Fingerprint

_FIRST_SLOTS = 1 << 12
_FIRST_MATCHES = 64
_MOST_WAITING = 256
_FEW = 1 << 14
"""Fewer fingerprints at once than this are stored one after the other."""
_AT_ONCE = 1 << 22
"""More fingerprints than this are stored in parts: copies of them, ordered, take 64 MB each."""
_match: Callable[[Iterable[int]], Match] = partial(tuple.__new__, Match)
"""A match of row, value and distance, in two thirds of the time."""
_NO_FIT = "the arrays of the index do not fit together"


RECALL = 0.98
"""Share of the pairs at exactly ``max_distance`` to be found, unless said otherwise.

Measured on the pairs at distance 1 to 8 of the LLVM manuals (1,702 fingerprints):

- target 0.95: .982 of the pairs found, with 4.1 probes;
- target 0.98: .995 found, with 5.3 probes;
- target 0.99: .998 found, with 6.3 probes.
"""


class PSMIndex:
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

    Memory: 12 bytes a slot, 14 to 19 a fingerprint with all that belongs to it (``nbytes``), some more after
    many have been taken out. Nodes of the tree stay where there are no fingerprints any more. An index is for
    one thread at a time.
    """

    def __init__(self, *, max_distance: int = 3, recall: float = RECALL) -> None:
        if not 0.0 < recall <= 1.0:
            raise ConfigurationError(f"recall must be above 0 and at most 1, not {recall}")
        self.max_distance = check_max_distance(max_distance)
        self.recall = recall
        self._heads = np.zeros(_FIRST_SLOTS, dtype=np.uint64)
        self._lows = np.zeros(_FIRST_SLOTS, dtype=np.uint32)
        self._rests = np.zeros(_FIRST_SLOTS, dtype=np.uint64)
        self._free = np.zeros(_FIRST_SLOTS // leaf_allocator.LINE, dtype=np.uint8)
        self._state = np.zeros(leaf_allocator.STATE_SIZE, dtype=np.int64)
        self._state[tree.NODES] = 1
        # Calling compiled code costs more than storing a fingerprint, so those added one by one wait for each
        # other here.
        self._waiting = array("Q", bytes(8 * _MOST_WAITING))
        self._waiting_rows = array("I", bytes(4 * _MOST_WAITING))
        self._waiting_count = 0
        self._workspace = walk.workspace()
        self._matches = np.zeros((_FIRST_MATCHES, 3), dtype=np.uint64)

        # Known again when something is looked up; not cached properties, which make storing in all others
        # slower.
        self._addresses: calls.Addresses | None = None
        self._search: calls.Search
        self._first: npt.NDArray[np.uint64]

    def _known_addresses(self) -> calls.Addresses:
        if self._addresses is None:
            self._first = self._matches[0]
            self._search = calls.searching()
            self._addresses = calls.addresses_of((*self._arrays(), *self._workspace, self._matches))
        return self._addresses

    def _forget_addresses(self) -> None:
        """To be called before an array is exchanged, for whatever happens then: compiled code would go on
        with the memory of the old one.
        """
        self._addresses = None

    def __getstate__(self) -> dict[str, Any]:
        """A copy finds its own addresses, and machine code cannot be pickled."""
        state = self.__dict__ | {"_addresses": None}
        state.pop("_search", None)
        return state

    @property
    def stats(self) -> ProbeStats:
        queries, probes, empty_probes, candidates = self._state[tree.COSTS].tolist()
        return ProbeStats(queries, probes, empty_probes, candidates)

    @property
    def nbytes(self) -> int:
        self._flush()
        nodes, lines = self._state[[tree.NODES, leaf_allocator.TOP]].tolist()
        return int(8 * tree.CHILDREN * nodes + (12 * leaf_allocator.LINE + 1) * lines)

    def __len__(self) -> int:
        return int(self._state[tree.SIZE]) + self._waiting_count

    def __contains__(self, value: int) -> bool:
        self._flush()
        return bool(tree.locate(self._heads, self._lows, self._rests, np.uint64(value), -1) >= 0)

    def add(self, value: int, row: int) -> None:
        count = self._waiting_count
        if count == _MOST_WAITING:
            self._flush()
            count = 0
        try:
            self._waiting_rows[count] = row
        except OverflowError:
            check_rows(row, row)
            raise
        self._waiting[count] = value
        self._waiting_count = count + 1

    def _flush(self) -> None:
        """Store what waits; every method that looks at what is stored calls this first."""
        if count := self._waiting_count:
            values = np.frombuffer(self._waiting, dtype=np.uint64, count=count)
            rows = np.frombuffer(self._waiting_rows, dtype=np.uint32, count=count)
            before = int(self._state[tree.SIZE])
            try:
                self._add_many(values, rows.astype(np.int64))
            finally:  # if memory was short, the others go on waiting
                stored = int(self._state[tree.SIZE]) - before
                if stored < count:
                    for waiting in (values, rows):
                        waiting[: count - stored] = waiting[stored:]
                self._waiting_count = count - stored

    def extend(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> None:
        if values.ndim != 1 or rows.shape != values.shape:
            raise ValueError(f"values and rows must have one shape (n,), not {values.shape} and {rows.shape}")
        if values.dtype.kind not in "iu" or rows.dtype.kind not in "iu":
            raise ValueError(f"values and rows must be integers, not {values.dtype} and {rows.dtype}")
        if len(values) == 0:
            return
        check_rows(int(rows.min()), int(rows.max()))
        values, rows = values.astype(np.uint64, copy=False), rows.astype(np.int64, copy=False)
        self._flush()
        for start in range(0, len(values), _AT_ONCE):
            block = slice(start, start + _AT_ONCE)
            if len(values[block]) < _FEW:
                self._add_many(values[block], rows[block])
                continue
            self._fill_soon(len(values[block]))
            gathered = bulk.gathered(values[block], rows[block])
            parts, waiting = bulk.whole(len(gathered[0])), 1
            while waiting := bulk.add_gathered(*self._arrays(), *gathered, parts, waiting):
                self._grow()

    def _fill_soon(self, fingerprints: int) -> None:
        """Let so many more find room, in large pages."""
        first = int(self._state[leaf_allocator.TOP]) * leaf_allocator.LINE
        while min(len(self._lows), len(self._rests)) < first + fingerprints:
            self._grow()
        for slots in (self._lows, self._rests):
            fill_soon(slots, first, first + fingerprints)

    def _add_many(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> None:
        done = 0
        places = bulk.workspace()
        while (done := bulk.add_many(*self._arrays(), values, rows, done, places)) < len(values):
            self._grow()

    def remove(self, value: int, row: int) -> bool:
        self._flush()
        return row >= 0 and bool(tree.remove(*self._arrays(), np.uint64(value), row))

    def find_first(self, query: Fingerprint) -> Match | None:
        if self._waiting_count:
            self._flush()
        addresses = self._known_addresses()
        if self._search(addresses, query.value, query.weights, self.max_distance, self.recall, 1):
            return _match(self._first.tolist())
        return None

    def find_all(self, query: Fingerprint) -> list[Match]:
        return list(map(_match, self.match_table(query).tolist()))

    def match_table(self, query: Fingerprint, most: int = ANY_NUMBER) -> npt.NDArray[np.uint64]:
        self._flush()
        learned = self._workspace[1][walk.LEARNED]
        costs, learned_before = self._state[tree.COSTS].copy(), learned.copy()
        while True:
            addresses = self._known_addresses()
            found = self._search(addresses, query.value, query.weights, self.max_distance, self.recall, most)
            if found <= len(self._matches):
                break
            self._forget_addresses()
            self._matches = np.zeros((2 * found, 3), dtype=np.uint64)
            self._state[tree.COSTS], learned[:] = costs, learned_before
        return self._matches[:found].copy()

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
        self._flush()
        asked = np.ascontiguousarray(values, dtype=np.uint64)
        weighted = np.ascontiguousarray(weights, dtype=np.float64)
        arrays, most = (self._heads, self._lows, self._rests), ANY_NUMBER if every else 1
        threshold = float(self._workspace[1][walk.THRESHOLD])

        def match(start: int) -> npt.NDArray[np.uint64]:
            block = slice(start, start + many.BLOCK)
            found, costs, then = many.match_block(
                arrays, asked[block], weighted[block], self.max_distance, self.recall, most, threshold
            )
            found[:, 0] += np.uint64(start)
            all_costs.append(costs)
            thresholds[start] = then
            return found

        all_costs: list[npt.NDArray[np.int64]] = []
        thresholds: dict[int, float] = {}
        blocks = range(0, len(asked), many.BLOCK)
        if threads == 1:
            found = list(map(match, blocks))
        else:
            with ThreadPoolExecutor(threads, thread_name_prefix="neardup-index") as pool:
                found = list(pool.map(match, blocks))
        self._state[tree.COSTS] += np.sum(all_costs, axis=0, dtype=np.int64)
        known = [thresholds[start] for start in blocks if thresholds[start] > 0.0]
        if known:
            self._workspace[1][walk.THRESHOLD] = np.exp(np.mean(np.log(known)))
        return np.concatenate(found) if found else np.empty((0, 4), dtype=np.uint64)

    def nearest(self, value: int, *, rows: int, but: int) -> int:
        """Distance of the nearest fingerprint stored under a row below ``rows`` other than ``but``; 65 if
        there is none.

        Everything is compared, about 1 ms a million, without the interpreter's lock. The method may be called
        from another thread. What is added, moved or taken out meanwhile may be seen or not. Very rarely, one
        half of a fingerprint is seen with another half.
        """
        return int(leaves.nearest(self._heads, self._lows, self._rests, np.uint64(value), rows, but))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All that :meth:`from_arrays` needs to make the same index again; the arrays are the index's own."""
        self._flush()
        return {"state": self._state, **{name: full[:used] for name, full, used in self._in_use()}}

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

        ValueError: they do not fit together, or to follow them would lead out of them.
        """
        index = cls(max_distance=max_distance, recall=recall)
        _check_array(arrays, "state", index._state, leaf_allocator.STATE_SIZE)
        index._state[:] = arrays["state"]
        index._state[tree.COSTS] = 0
        if index._state[tree.NODES] < 1:
            raise ValueError(_NO_FIT)
        for name, full, used in index._in_use():
            _check_array(arrays, name, full, used)
            larger = grown(
                full, used + leaf_allocator.LINE
            )  # a comparison of sixteen may begin with the last eight
            fill_soon(larger, 0, used)
            larger[:used] = arrays[name]
            setattr(index, f"_{name}", larger)
        used_lines = int(index._state[leaf_allocator.TOP])
        if not is_valid(index._heads, index._rests, index._free[:used_lines], index._state, pages):
            raise ValueError(_NO_FIT)
        leaf_allocator.link_all(index._free, index._rests, index._state)
        return index

    def _in_use(self) -> list[tuple[str, npt.NDArray[Any], int]]:
        """Name, array and number of elements in use."""
        nodes, lines = self._state[[tree.NODES, leaf_allocator.TOP]].tolist()
        return [
            ("heads", self._heads, nodes * tree.CHILDREN),
            ("lows", self._lows, lines * leaf_allocator.LINE),
            ("rests", self._rests, lines * leaf_allocator.LINE),
            ("free", self._free, lines),
        ]

    def _arrays(
        self,
    ) -> tuple[
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint8],
        npt.NDArray[np.int64],
    ]:
        return self._heads, self._lows, self._rests, self._free, self._state

    def _grow(self) -> None:
        """Double what little is left of (:func:`neardup.index.psm.tree.has_room`)."""
        self._forget_addresses()
        if (int(self._state[tree.NODES]) + 1) * tree.CHILDREN > len(self._heads):
            self._heads = grown(self._heads, 0)
            return
        # Address space may have been enough for one of them and not for another.
        lines = 2 * min(
            len(self._lows) // leaf_allocator.LINE, len(self._rests) // leaf_allocator.LINE, len(self._free)
        )
        if len(self._lows) < lines * leaf_allocator.LINE:
            self._lows = grown(self._lows, lines * leaf_allocator.LINE)
        if len(self._rests) < lines * leaf_allocator.LINE:
            self._rests = grown(self._rests, lines * leaf_allocator.LINE)
        if len(self._free) < lines:
            self._free = grown(self._free, lines)


def _check_array(
    arrays: Mapping[str, npt.NDArray[Any]], name: str, sample: npt.NDArray[Any], length: int
) -> None:
    array = arrays.get(name)
    if array is None or array.dtype != sample.dtype or array.shape != (length,):
        raise ValueError(_NO_FIT)
