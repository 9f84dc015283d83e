"""The search of the PSM index, in Python: which leaves of the tree to probe for a query, most probable first.

The bits in which a near-duplicate's fingerprint differs are weak bits (Sood, section IV.A). The odds of each
bit to flip are estimated from the query's own bit weights. Every branch, to a node or a leaf, has the
probability that a near-duplicate at exactly ``max_distance`` lies below it. Branches wait in buckets by their
probability. The thesis takes combinations of bits out of a heap (section IV.B, algorithm 2). Buckets, four to
a factor of two, order combinations nearly as well, and nothing is compared.

The native search is in ``_tree.pyx``: the same leaves in the same order.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from neardup.index.psm.child_probability import PAD, STEP, shares_of_children, sums_behind
from neardup.index.psm.flips import flip_odds

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from neardup.index.base import Match, ProbeStats
    from neardup.index.psm.tree import Below, Leaf

MARGIN = 0.05
"""Part of what need not be covered that is covered on average all the same, so that no debt comes from
chance.
"""
_LOWER = 1.0 / 64.0
"""Where leaves of a threshold cover too little, those of this part of it come next."""
_FIRST_FLOOR = 0.005
"""What a leaf must have before there is a threshold; less, if that covers too little."""
_STEP = 0.02
"""How much a search that covers everything raises the threshold."""
_FARTHEST = -50.0
"""And how much one lowers it at most, in the same unit."""
_MOST_SAVED = 1.0
"""Searches: what more has been covered is not kept for harder queries that may come."""
_NEGLIGIBLE = 1e-12
_LEAST = 1e-290
"""Above 0, and below whatever the odds of some bits can be."""

_BUCKETS = 64
"""All that is less probable than the first one's 2^-16 is in the last one, in no order."""
_MOST_WAITING = 1 << 12
_EXPONENT_SHIFT = 50
"""A bucket by the exponent of the probability and two bits more: four to a factor of two."""


@dataclass(slots=True)
class Learned:
    """What searches have taught those that follow.

    ``threshold``: the least probability, of all, of a leaf that is worth a probe (0: not known yet).
    ``saved``: by how much the searches have covered more than asked for, in whole searches.
    """

    threshold: float
    saved: float

    def take_in(self, recall: float, above: float, covered: float, last: float) -> None:
        """Take in a search that covered ``above`` with what reached the threshold, and ``covered`` in all,
        the ``last`` leaf included.
        """
        if self.threshold > 0.0:
            more = (above - recall) / (1.0 - recall) - MARGIN
            # No leaf has more than 1; without a limit, searches that need no other leaf than their own would
            # raise it for ever.
            self.threshold = min(self.threshold * math.exp(_STEP * max(more, _FARTHEST)), 1.0)
        elif last < math.inf:
            self.threshold = min(last, 1.0)
        self.saved = min(self.saved + covered - recall, _MOST_SAVED)


class _Branch(NamedTuple):
    head: Below
    weight: float
    """Of a leaf its probability, of a node the product of the odds of the bits flipped so far."""
    level: int
    budget: int
    """Bits left to flip."""


class _Queue:
    """Branches that wait, in buckets by their probability."""

    def __init__(self, whole: float) -> None:
        self._top = _exponent(whole)
        self._buckets: list[list[_Branch]] = [[] for _ in range(_BUCKETS)]
        self._waiting = 0

    def push(self, branch: _Branch, chance: float, bucket: int) -> None:
        """Let a branch wait in its bucket, which is the present one or a later one.

        When many wait, it waits in the present bucket. What is taken next is then one of these, and going
        down like that needs little room.
        """
        if self._waiting < _MOST_WAITING:
            bucket = max(bucket, min(self._top - _exponent(chance), _BUCKETS - 1))
        self._buckets[bucket].append(branch)
        self._waiting += 1

    def pop(self) -> tuple[int, _Branch] | None:
        """A branch out of the first bucket that has any, and that bucket; None: nothing waits."""
        for bucket, branches in enumerate(self._buckets):
            if branches:
                self._waiting -= 1
                return bucket, branches.pop()
        return None


class Search:
    """One search: probe leaves in falling probability until ``most`` matches are found. On average, searches
    cover ``recall`` of the probability.

    Let E(s) be the sum of the odds of all sets of s bits behind the prefix. Let E' be that of all sets of h
    bits. A near-duplicate at exactly ``max_distance`` (h) differs in the set B of a leaf's prefix bits with
    probability odds(B) · E(h - |B|) / E'. This is eq. 4.6 under the condition that h bits differ. Nearer
    duplicates are found sooner, but in leaves so deep that fewer bits are behind the prefix than are left to
    flip. Such leaves are probed for a recall of 1 only. The leaf of the query's own prefix comes first, so an
    exact twin is always found.

    All leaves above one threshold are probed, whatever their probabilities sum up to. Of all ways to cover as
    much on average, this way takes the fewest probes (the argument of Neyman and Pearson's lemma). A search
    that ends without enough matches moves the threshold towards the recall. While all searches together have
    covered less than the recall, each search goes on until it has covered the recall by itself.
    """

    def __init__(
        self,
        value: int,
        weights: npt.NDArray[np.float64],
        max_distance: int,
        recall: float,
        most: int,
        costs: ProbeStats,
        learned: Learned,
    ) -> None:
        """``weights``: shape (64,). ``costs`` and ``learned`` are added to."""
        self.found: list[Match] = []
        self._value, self._max_distance, self._recall, self._most = value, max_distance, recall, most
        self._costs, self._learned = costs, learned
        self._weights = weights

    def run(self, root: Below, own: Leaf, level: int) -> None:
        """Search below ``root``; ``own`` is the leaf of the query's own prefix, at a level."""
        self._costs.queries += 1
        if self._compare(own) or self._max_distance == 0 or level == 0:
            return
        self._root, self._own = root, own
        self._behind, self._patterns = sums_behind(
            flip_odds(self._weights, self._max_distance).tolist(), self._max_distance
        )
        self._probe_others(self._behind[level][PAD + self._max_distance])

    def _probe_others(self, covered: float) -> None:
        """Probe all leaves above the threshold but the query's own, and more if too little has been covered
        so far, ``covered`` by its own leaf.
        """
        whole = self._behind[0][PAD + self._max_distance]
        recall, learned = self._recall, self._learned
        threshold = min(learned.threshold, 1.0)  # more would never end
        wanted, floor, least = math.inf, 0.0, math.inf  # of a recall of 1: all
        if recall < 1.0:
            floor = max((threshold if threshold > 0.0 else _FIRST_FLOOR) * whole, _LEAST)
            least = recall * whole if learned.saved <= 0.0 else 0.0
            wanted = math.inf if threshold > 0.0 else least - covered
        above, done = -1.0, math.inf
        while True:
            answer = self._descend(wanted, floor, done)
            if answer is None:
                return
            mass, last = answer
            covered += mass
            above = covered if above < 0.0 else above
            wanted = least - covered
            if not (wanted > 0.0 and floor > whole * _NEGLIGIBLE):  # so that it ends if they are no numbers
                break
            done, floor = floor, floor * _LOWER
        if recall < 1.0 and whole > 0.0:
            learned.take_in(recall, above / whole, covered / whole, last / whole)

    def _descend(self, wanted: float, floor: float, done: float) -> tuple[float, float] | None:
        """Take branches of at least ``floor``, most probable first, until ``wanted`` is covered, and pass by
        the leaves that have ``done``.

        Returns the probability covered and that of the last leaf; None if enough is found.
        """
        whole = self._behind[0][PAD + self._max_distance]
        queue = _Queue(whole)
        mass, last = 0.0, math.inf
        if whole >= floor:
            queue.push(_Branch(self._root, 1.0, 0, self._max_distance), whole, 0)
        while mass < wanted and (taken := queue.pop()):
            bucket, branch = taken
            if isinstance(branch.head, list):
                self._follow(branch, bucket, floor, queue)
                continue
            last = branch.weight
            if last < done:
                mass += last
                if self._compare(branch.head):
                    return None
        return mass, last

    def _follow(self, branch: _Branch, bucket: int, floor: float, queue: _Queue) -> None:
        """Go down from a node to its leaf in which no more bits are flipped.

        That leaf and all branches that turn off on the way go into the queue.
        """
        head, product, level, budget = branch
        chance = 0.0
        while isinstance(head, list):
            patterns = self._patterns[level]
            shares = shares_of_children(self._behind[level + 1], patterns, budget)
            own = self._value >> (64 - STEP - STEP * level) & 7
            level += 1
            for pattern in range(1, 8):
                rest = budget - pattern.bit_count()
                chance = shares[pattern] * product
                if chance >= floor and rest >= 0:
                    child = head[own ^ pattern]
                    weight = product * patterns[pattern] if isinstance(child, list) else chance
                    queue.push(_Branch(child, weight, level, rest), chance, bucket)
            chance = product * shares[0]
            if not chance >= floor:
                return
            head = head[own]
        if head is not self._own:
            queue.push(_Branch(head, chance, level, budget), chance, bucket)

    def _compare(self, leaf: Leaf) -> bool:
        """Compare with a leaf; returns whether the search has found enough."""
        self._costs.probes += 1
        self._costs.empty_probes += not leaf.values
        self._costs.candidates += len(leaf.values)
        for match in leaf.near(self._value, self._max_distance):
            self.found.append(match)
            if len(self.found) >= self._most:
                return True
        return False


def _exponent(chance: float) -> int:
    """Of a probability, in quarters."""
    bits: int = struct.unpack("<Q", struct.pack("<d", chance))[0]
    return bits >> _EXPONENT_SHIFT
