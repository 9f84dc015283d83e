"""The search of the PSM index, compiled by numba: which leaves of the tree to probe for a query, most
probable first.

The bits in which a near-duplicate's fingerprint differs are weak bits (Sood, section IV.A). The odds of each
bit to flip are estimated from the query's own bit weights. Every branch, to a node or a leaf, has the
probability that a near-duplicate at exactly ``max_distance`` lies below it. Branches wait
(:mod:`neardup.index.psm.search_queue`). The most probable branch is taken next, as long as its probability
reaches a threshold. From a branch the walk goes down to the leaf in which nothing more is flipped. Branches
that turn off on the way, with enough probability to matter, wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import inlined, lean
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.index.psm.child_probability import FLIPPED, LEVELS, PAD, divide_among_children, sums_behind
from neardup.index.psm.flips import FLIP_SLOPE
from neardup.index.psm.instructions import prefetch, reaching, trailing_zeros
from neardup.index.psm.leaf_allocator import LINE, LOWS_A_LINE
from neardup.index.psm.leaves import compare
from neardup.index.psm.search_queue import (
    BUDGET,
    BUDGET_BITS,
    BUDGETS,
    FILLED,
    QUEUE,
    clear,
    exponent,
    pop,
    push,
    space,
)
from neardup.index.psm.tree import (
    CANDIDATES,
    CHILDREN,
    COUNT,
    EMPTY_PROBES,
    NODE,
    PROBES,
    QUERIES,
    SHIFT,
    STEP,
    child_of,
    place_of,
    signed,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    Workspace = tuple[
        npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]
    ]

_LOWER = 1.0 / 64.0
"""Where leaves of a threshold cover too little, those of this part of it come next."""
_FIRST_FLOOR = 0.005
"""What a leaf must have before there is a threshold; less, if that covers too little."""
_STEP = 0.02
"""How much a search that covers everything raises the threshold."""
_FARTHEST = -50.0
"""And how much one lowers it at most, in the same unit."""
MARGIN = 0.05
"""Part of what need not be covered that is covered on average all the same, so that no debt comes from
chance.
"""
_MOST_SAVED = 1.0
"""Searches: what more has been covered is not kept for harder queries that may come."""
_NEGLIGIBLE = 1e-12
_UPPER_BITS = 32
_LEAST = 1e-290
"""Above 0, and below whatever the odds of some bits can be."""

_GATHERED = 4
"""Leaves that are asked for before the first of them is compared with."""
_RING, _WITHIN, _READY, _QUEUE = QUEUE, QUEUE + _GATHERED, QUEUE + 2 * _GATHERED, QUEUE + 2 * _GATHERED + 1
"""Parts of the queue: leaves asked for, and in how many of their lower bits matches can differ; levels whose
chances are there.
"""

_ODDS, _BEHIND, _PATTERNS, _TABLES = 0, 1, 2 + LEVELS, 2 + 2 * LEVELS

THRESHOLD, SAVED, LEARNED = (LEVELS, 0, 0), (LEVELS, 0, 1), (LEVELS, 0, slice(2))
"""Where among the chances stands what was learned from the searches before.

``THRESHOLD``: the least probability, of all, of a leaf that is worth a probe (0: not known yet). ``SAVED``:
by how much the searches have covered more than asked for, in whole searches. ``LEARNED``: both.
"""


def workspace() -> Workspace:
    """Scratch memory of :func:`search`, one for each thread.

    Tables of odds; chances of children (and what is :data:`LEARNED`); branches; their queue.
    """
    chances = np.zeros((LEVELS + 1, BUDGETS, CHILDREN))
    return np.zeros((_TABLES, FINGERPRINT_BITS)), chances, space(), np.zeros(_QUEUE, dtype=np.int64)


@lean
def flip_odds(weights: npt.NDArray[np.float64], max_distance: int, odds: npt.NDArray[np.float64]) -> None:
    """:func:`neardup.index.psm.flips.flip_odds` for what numba compiles."""
    squares = 0.0
    for j in range(64):
        squares += weights[j] * weights[j]
    scale = FLIP_SLOPE / ((max_distance + 1) * np.sqrt(squares)) if squares > 0.0 else 0.0
    for j in range(64):
        falling = 1.0 / (1.0 + scale * abs(weights[j]))
        falling *= falling
        falling *= falling
        odds[j] = falling * falling


@lean
def search(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    value: np.uint64,
    weights: npt.NDArray[np.float64],
    max_distance: int,
    recall: float,
    most: int,
    tables: npt.NDArray[np.float64],
    chances: npt.NDArray[np.float64],
    branches: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
) -> int:
    """Probe leaves in falling probability until ``most`` matches are found; on average, searches cover
    ``recall`` of the probability.

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

    - ``value``: the query's fingerprint.
    - ``weights``: shape (64,).
    - Scratch: :func:`workspace`.
    - ``matches``: shape (m, 3), receives row, value and distance of the first m matches.

    Adds to the costs in ``state``. Returns the number of matches.
    """
    state[QUERIES] += 1
    for bit in range(0, 64, LINE):
        prefetch(weights, bit)  # comes while the tree is read
    place, level = place_of(heads, value)
    head = heads[place]
    if max_distance == 0 or level == 0:
        return _compare_counted(lows, rests, state, head, value, max_distance, max_distance, most, matches, 0)
    _fetch_leaf(lows, head)
    behind, patterns = tables[_BEHIND:_PATTERNS], tables[_PATTERNS:]
    flip_odds(weights, max_distance, tables[_ODDS])
    found = _compare_counted(lows, rests, state, head, value, max_distance, max_distance, most, matches, 0)
    if found >= most:
        return found
    sums_behind(tables[_ODDS], max_distance, behind, patterns)
    return _probe_others(
        heads, lows, rests, state, value, place, level, max_distance, recall, most, behind, patterns,
        chances, branches, queue,
        matches, found,
    )  # fmt: skip


@inlined
def _probe_others(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    value: np.uint64,
    place: int,
    level: int,
    max_distance: int,
    recall: float,
    most: int,
    behind: npt.NDArray[np.float64],
    patterns: npt.NDArray[np.float64],
    chances: npt.NDArray[np.float64],
    branches: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
    found: int,
) -> int:
    """Probe all leaves above the threshold but the query's own, at ``place``, and more if too little has been
    covered so far.
    """
    whole = behind[0, PAD + max_distance]
    covered = behind[level, PAD + max_distance]
    threshold = min(chances[THRESHOLD], 1.0)  # more would never end
    wanted, floor, least = np.inf, 0.0, np.inf  # of a recall of 1: all
    if recall < 1.0:
        floor = max((threshold if threshold > 0.0 else _FIRST_FLOOR) * whole, _LEAST)
        least = recall * whole if chances[SAVED] <= 0.0 else 0.0
        wanted = np.inf if threshold > 0.0 else least - covered
    above, last, done, queue[_READY] = -1.0, np.inf, np.inf, 0
    while found < most:
        mass, last, found = _descend(
            heads, lows, rests, state, value, place, max_distance, most, behind, patterns, chances, branches,
            queue,
            matches, wanted, floor, done, found,
        )  # fmt: skip
        covered += mass
        above = covered if above < 0.0 else above
        wanted = least - covered
        # Not so if they are no numbers, of weights that are none.
        goes_on = wanted > 0.0 and floor > whole * _NEGLIGIBLE
        if not goes_on:
            break
        done, floor = floor, floor * _LOWER
    if recall < 1.0 and found < most and whole > 0.0:
        _learn(chances, recall, above / whole, covered / whole, last / whole)
    return found


@inlined
def _learn(
    chances: npt.NDArray[np.float64], recall: float, above: float, covered: float, last: float
) -> None:
    """Take in a search that covered ``above`` with what reached the threshold, and ``covered`` in all, the
    ``last`` leaf included.
    """
    if chances[THRESHOLD] > 0.0:
        more = (above - recall) / (1.0 - recall) - MARGIN
        # No leaf has more than 1; without a limit, searches that need no other leaf than their own would
        # raise it for ever.
        chances[THRESHOLD] = min(chances[THRESHOLD] * np.exp(_STEP * max(more, _FARTHEST)), 1.0)
    elif last < np.inf:
        chances[THRESHOLD] = min(last, 1.0)
    chances[SAVED] = min(chances[SAVED] + covered - recall, _MOST_SAVED)


@lean
def _descend(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    value: np.uint64,
    own_place: int,
    max_distance: int,
    most: int,
    behind: npt.NDArray[np.float64],
    patterns: npt.NDArray[np.float64],
    chances: npt.NDArray[np.float64],
    branches: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
    wanted: float,
    floor: float,
    done: float,
    found: int,
) -> tuple[float, float, int]:
    """Take branches of at least ``floor``, most probable first, and pass by the leaves that have ``done``,
    and that at ``own_place``.

    Returns the probability covered, that of the last leaf, and the number of matches.
    """
    clear(queue)
    whole = behind[0, PAD + max_distance]
    top = exponent(whole)
    first, end = 0, 0
    mass, chance = 0.0, np.inf
    if whole >= floor:
        push(heads[0], 0, max_distance, 1.0, whole, branches, queue, 0, top)
    while queue[FILLED] != 0 and mass < wanted:
        bucket, head, code, weight = pop(branches, queue)
        if head & NODE:
            _follow(
                heads, head, value, own_place, code, weight, max_distance, behind, patterns, chances,
                branches, queue, bucket, top,
                floor,
            )  # fmt: skip
            continue
        chance = weight
        if chance < done:
            mass += chance
            _fetch_leaf(lows, head)
            if end - first == _GATHERED:
                found = _compare_gathered(
                    lows, rests, state, queue, first, value, max_distance, most, matches, found
                )
                if found >= most:
                    return mass, chance, found
                first += 1
            # What is flipped in the upper half leaves less for the lower one.
            within = code & BUDGET if (code >> BUDGET_BITS) * STEP <= _UPPER_BITS else max_distance
            queue[_RING + end % _GATHERED], queue[_WITHIN + end % _GATHERED] = np.int64(head), within
            end += 1
    while first < end and found < most:
        found = _compare_gathered(lows, rests, state, queue, first, value, max_distance, most, matches, found)
        first += 1
    return mass, chance, found


@inlined
def _follow(
    heads: npt.NDArray[np.uint64],
    head: np.uint64,
    value: np.uint64,
    own_place: int,
    code: int,
    product: float,
    max_distance: int,
    behind: npt.NDArray[np.float64],
    patterns: npt.NDArray[np.float64],
    chances: npt.NDArray[np.float64],
    branches: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    bucket: int,
    top: int,
    floor: float,
) -> None:
    """Go down from a node to its leaf in which no more bits are flipped.

    That leaf and all branches that turn off on the way go into the queue.
    """
    level, budget = code >> BUDGET_BITS, code & BUDGET
    place, chance = 0, 0.0
    while head & NODE:
        if level == queue[_READY]:
            divide_among_children(level, max_distance, behind, patterns, chances)
            queue[_READY] += 1
        first, own = signed(head & COUNT) * CHILDREN, child_of(value, level)
        share = chances[level, budget]
        level += 1
        turned_to = reaching(share, product, floor) & ~1
        while turned_to:
            pattern = trailing_zeros(turned_to)
            turned_to &= turned_to - 1
            rest = budget - FLIPPED[pattern]
            if rest < 0:
                continue  # without a floor all are turned to
            child = heads[first + (own ^ pattern)]
            # Of a leaf for nothing, but asking would take longer.
            prefetch(heads, signed(child & COUNT) * CHILDREN)
            farther = product * patterns[level - 1, pattern]
            push(child, level, rest, farther, product * share[pattern], branches, queue, bucket, top)
        chance = product * share[0]
        if not chance >= floor:
            return
        place = first + own
        head = heads[place]
    if place != own_place:
        push(head, level, budget, product, chance, branches, queue, bucket, top)


@inlined
def _fetch_leaf(lows: npt.NDArray[np.uint32], head: np.uint64) -> None:
    """Ask for the lower halves of the fingerprints of a leaf."""
    first = signed(head >> SHIFT) * LINE
    for slot in range(first & -LOWS_A_LINE, first + signed(head & COUNT), LOWS_A_LINE):
        prefetch(lows, slot)


@inlined
def _compare_gathered(
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    number: int,
    value: np.uint64,
    max_distance: int,
    most: int,
    matches: npt.NDArray[np.uint64],
    found: int,
) -> int:
    """Compare with a leaf that was asked for."""
    head, within = np.uint64(queue[_RING + number % _GATHERED]), queue[_WITHIN + number % _GATHERED]
    return _compare_counted(lows, rests, state, head, value, within, max_distance, most, matches, found)


@inlined
def _compare_counted(
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    head: np.uint64,
    value: np.uint64,
    within: int,
    max_distance: int,
    most: int,
    matches: npt.NDArray[np.uint64],
    found: int,
) -> int:
    """Compare with one leaf and count what it cost."""
    met = signed(head & COUNT)
    state[PROBES] += 1
    state[EMPTY_PROBES] += met == 0
    state[CANDIDATES] += met
    return compare(lows, rests, head, value, within, max_distance, most, matches, found)
