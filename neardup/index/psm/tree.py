"""The tree of prefixes of the PSM index: the Python twin of ``_tree.pyx``.

The fingerprints stand in a tree of prefixes, three bits a level. A leaf that is full (:data:`LIMITS`) becomes
a node of eight children. So the number of prefix bits (p of the thesis) is a local one. The number is larger
where fingerprints are dense, and grows with the index, one leaf at a time.

The native tree has the lower 32 bits of a leaf's fingerprints side by side. A probe reads these bits only, 16
in a cache line, and the rest of the fingerprints that are near enough in these bits. How many fingerprints a
leaf has stands in the node above. So an insertion writes to the leaf, but waits for nothing from it.
"""

from __future__ import annotations

from array import array
from operator import index
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from neardup import native
from neardup.index.base import ANY_NUMBER, Match, ProbeStats, check_max_distance, check_rows
from neardup.index.psm.child_probability import DEEPEST, STEP
from neardup.index.psm.walk import Learned, Search

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from neardup.fingerprint.simhash import Fingerprint

LIMITS = (160, 208, 270, 350, 454, 588, 763, 988)
"""Fingerprints a leaf may hold, one of these by its prefix. Comparing is cheap, sixteen at a time; probing
more leaves is not.

The limits are an eighth of a factor of eight apart. With one limit for all, the leaves of evenly spread
fingerprints would all divide at once and grow together. So would the time of a search, and memory.
"""

COPIES_FROM = 8
"""Level from which on a leaf of mostly copies may hold any number."""

_LOOKS = 16
_PART = 1 << 15
"""Fingerprints that a part of a scan has, or a few more."""
_GOLDEN = 0x9E3779B97F4A7C15
_BITS = (1 << 64) - 1


class Leaf:
    """Fingerprints with the same prefix, and their rows."""

    __slots__ = ("rows", "values")

    def __init__(self) -> None:
        self.values = array("Q")
        self.rows = array("I")

    def near(self, value: int, max_distance: int) -> Iterator[Match]:
        """The fingerprints within the distance, in the order in which they stand."""
        values = np.frombuffer(self.values[:], dtype=np.uint64)  # a copy, which another thread cannot change
        distances = np.bitwise_count(values ^ np.uint64(value))
        for place in np.flatnonzero(distances <= max_distance).tolist():
            yield Match(self.rows[place], self.values[place], int(distances[place]))

    def nearest(self, value: int, rows: int, but: int) -> int:
        """Smallest distance under a row below ``rows`` other than ``but``; 65 if there is none."""
        # Copies again: what another thread adds between the two is left out.
        stored = np.frombuffer(self.values[:], dtype=np.uint64)
        its_rows = np.frombuffer(self.rows[:], dtype=np.uint32)[: stored.size].astype(np.int64)
        wanted = stored[: its_rows.size][(its_rows < rows) & (its_rows != but)]
        return int(np.bitwise_count(wanted ^ np.uint64(value)).min(initial=65))

    def place(self, value: int, row: int | None) -> int:
        """Where a fingerprint stands, under a row or, with None, under any; -1 if it is not there."""
        for place, (stored, its_row) in enumerate(zip(self.values, self.rows, strict=True)):
            if stored == value and row in {None, its_row}:
                return place
        return -1

    def is_full(self, value: int, level: int) -> bool:
        """Whether the leaf is to be divided: it is full, and its fingerprints are not mostly copies of one.

        Dividing a leaf does not part copies. Copies would go down to the last level, where too few bits are
        left behind the prefix to look for anything but the very same. Sixteen fingerprints are looked at (the
        majority vote of Boyer and Moore 1981). Above :data:`COPIES_FROM` copies go on down, out of the way of
        others.
        """
        if len(self.values) < limit_of(value, level) or level == DEEPEST:
            return False
        if level < COPIES_FROM:
            return True
        looked_at = [self.values[look * len(self.values) // _LOOKS] for look in range(_LOOKS)]
        candidate, votes = 0, 0
        for other in looked_at:
            if votes == 0:
                candidate = other
            votes += 1 if other == candidate else -1
        return looked_at.count(candidate) * 2 < _LOOKS


Below: TypeAlias = "Leaf | list[Below]"
"""What stands below a prefix: a leaf, or the eight children of a node."""


def child_of(value: int, level: int) -> int:
    """The three bits of a fingerprint that choose a child at a level."""
    return value >> (64 - STEP - STEP * level) & 7


def limit_of(value: int, level: int) -> int:
    """How many fingerprints a leaf at a level may hold that has this one's prefix."""
    prefix = value >> (64 - STEP * level)
    return LIMITS[(prefix * _GOLDEN & _BITS) >> 61]


@native.twin
class PrefixTree:
    """Fingerprints in a tree of prefixes, and the search among them."""

    def __init__(self, *, max_distance: int, recall: float) -> None:
        self.max_distance = check_max_distance(max_distance)
        self.recall = recall
        self.stats = ProbeStats()
        self._learned = Learned(0.0, 0.0)
        self._root: Below = Leaf()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, value: int) -> bool:
        return self._leaf_of(value)[0].place(value, None) >= 0

    @property
    def nbytes(self) -> int:
        """Bytes of the fingerprints, their rows, and the nodes."""
        return sum(12 * len(leaf.values) for leaf in _leaves(self._root)) + 128 * _nodes(self._root)

    @property
    def learned(self) -> tuple[float, float]:
        """What the searches before have taught: :class:`neardup.index.psm.walk.Learned`."""
        return self._learned.threshold, self._learned.saved

    @learned.setter
    def learned(self, learned: tuple[float, float]) -> None:
        self._learned = Learned(*learned)

    def add(self, value: int, row: int) -> None:
        """See :class:`neardup.index.base.Index`."""
        row = index(row)  # or a float would be found out too late
        check_rows(row, row)
        if not 0 <= value <= _BITS:
            raise OverflowError(f"a fingerprint has 64 bits, which {value} has not")
        parent: list[Below] = [self._root]
        child, level = 0, 0
        while True:
            head = parent[child]
            if isinstance(head, Leaf):
                if not head.is_full(value, level):
                    break
                parent[child] = head = _divided(head, level)
                if level == 0:
                    self._root = head
            parent, child, level = head, child_of(value, level), level + 1
        head.values.append(value)
        head.rows.append(row)
        self._size += 1

    def add_many(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32]) -> None:
        """Store many, both of shape (n,), as if they were added one after the other."""
        if rows.shape != values.shape:
            raise ValueError(f"{values.size} values take as many rows, not {rows.size}")
        for value, row in zip(values.tolist(), rows.tolist(), strict=True):
            self.add(value, row)

    def remove(self, value: int, row: int) -> bool:
        """Take a fingerprint out; the last of its leaf takes its place. False: it is not there."""
        leaf, _ = self._leaf_of(value)
        place = leaf.place(value, row)
        if place < 0:
            return False
        leaf.values[place], leaf.rows[place] = leaf.values[-1], leaf.rows[-1]
        leaf.values.pop()
        leaf.rows.pop()
        self._size -= 1
        return True

    def find_first(self, query: Fingerprint) -> Match | None:
        """Any one match, or None (PSM_F)."""
        matches = self._search(query.value, query.weights, 1)
        return matches[0] if matches else None

    def match_table(self, query: Fingerprint, most: int = ANY_NUMBER) -> npt.NDArray[np.uint64]:
        """See :class:`neardup.index.base.Index`."""
        matches = self._search(query.value, query.weights, most)
        return np.array(matches, dtype=np.uint64).reshape(-1, 3)

    def match_block(
        self, values: npt.NDArray[np.uint64], weights: npt.NDArray[np.float64], most: int, threshold: float
    ) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], float]:
        """Matches of queries, values (m,) and weights (m, 64), in a tree that nobody changes meanwhile.

        Returns three things:

        - the matches, in columns query, row, value, distance, shape (n, 4);
        - the costs: queries, probes, empty probes, candidates;
        - the threshold at the end.

        A block starts with the threshold given, but with nothing saved. So each block meets the recall by
        itself.
        """
        if weights.shape != (len(values), 64):
            raise ValueError(f"{len(values)} queries have weights of shape ({len(values)}, 64)")
        costs, learned = ProbeStats(), Learned(threshold, 0.0)
        found = [
            (query, *match)
            for query, value in enumerate(values.tolist())
            for match in self._searched(value, weights[query], most, costs, learned)
        ]
        table = np.array(found, dtype=np.uint64).reshape(-1, 4)
        spent = np.array([costs.queries, costs.probes, costs.empty_probes, costs.candidates])
        return table, spent, learned.threshold

    def count_costs(self, costs: npt.NDArray[np.int64]) -> None:
        """Add what a block has cost to :attr:`stats`."""
        queries, probes, empty_probes, candidates = costs.tolist()
        self.stats.queries += queries
        self.stats.probes += probes
        self.stats.empty_probes += empty_probes
        self.stats.candidates += candidates

    def nearest_from(self, cursor: int, value: int, rows: int, but: int) -> tuple[int, int | None]:
        """Smallest distance from ``value`` in a part of the tree, which begins at the prefix of ``cursor``.

        Rows below ``rows`` other than ``but`` count; 65 if there is none. The second result says where the
        next part begins; None: nowhere.
        """
        smallest, met = 65, 0
        while met < _PART:
            leaf, level = self._leaf_of(cursor)
            smallest = min(smallest, leaf.nearest(value, rows, but))
            met += len(leaf.values) + 1
            shift = 64 - STEP * level
            cursor = ((cursor >> shift) + 1) << shift
            if cursor > _BITS:
                return smallest, None
        return smallest, cursor

    def contents(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """All fingerprints and their rows, shape (n,), in the order of their prefixes."""
        values, rows = array("Q"), array("I")
        for leaf in _leaves(self._root):
            values.extend(leaf.values)
            rows.extend(leaf.rows)
        return np.array(values, dtype=np.uint64), np.array(rows, dtype=np.uint32)

    def _leaf_of(self, value: int) -> tuple[Leaf, int]:
        """The leaf of a fingerprint, and its level."""
        head, level = self._root, 0
        while not isinstance(head, Leaf):
            head, level = head[child_of(value, level)], level + 1
        return head, level

    def _search(self, value: int, weights: npt.NDArray[np.float64], most: int) -> list[Match]:
        return self._searched(value, weights, most, self.stats, self._learned)

    def _searched(
        self, value: int, weights: npt.NDArray[np.float64], most: int, costs: ProbeStats, learned: Learned
    ) -> list[Match]:
        leaf, level = self._leaf_of(value)
        search = Search(value, weights, self.max_distance, self.recall, most, costs, learned)
        search.run(self._root, leaf, level)
        return search.found


def _divided(leaf: Leaf, level: int) -> list[Below]:
    """The children of the node that a full leaf becomes."""
    children = [Leaf() for _ in range(8)]
    for value, row in zip(leaf.values, leaf.rows, strict=True):
        child = children[child_of(value, level)]
        child.values.append(value)
        child.rows.append(row)
    return [*children]


def _leaves(head: Below) -> Iterator[Leaf]:
    if isinstance(head, Leaf):
        yield head
    else:
        for child in head:
            yield from _leaves(child)


def _nodes(head: Below) -> int:
    return 0 if isinstance(head, Leaf) else 1 + sum(map(_nodes, head))
