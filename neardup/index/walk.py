"""The search of the PSM index, compiled by numba: which leaves of the tree to probe for a query, most probable first.

The bits in which a near-duplicate's fingerprint differs are weak bits (Sood, section IV.A). Their odds to flip are estimated
from the query's own bit weights. Every turning, to a node or a leaf, has the probability that a near-duplicate at exactly
``max_distance`` lies below it. Turnings wait in buckets by that probability, and the most probable is taken next, until the leaves
probed cover the wanted share. The thesis takes combinations of bits out of a heap (section IV.B, algorithm 2); buckets, four
to a factor of two, order them nearly as well, and nothing is compared. From a turning the walk goes down to the leaf in which
nothing more is flipped, and what turns off on the way, with enough probability to matter, waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import inlined, lean
from neardup.index.extents import LINE, LOWS_A_LINE
from neardup.index.flips import flip_odds
from neardup.index.instructions import prefetch, reaching, trailing_zeros
from neardup.index.kernels import (
    ADDED,
    CANDIDATES,
    CHILDREN,
    COUNT,
    EMPTY_PROBES,
    NODE,
    PROBES,
    QUERIES,
    SHIFT,
    STEP,
    add,
    child_of,
    place_of,
    signed,
)
from neardup.index.leaves import compare
from neardup.index.shares import FLIPPED, LEVELS, PAD, share_among_children, sums_behind

if TYPE_CHECKING:
    import numpy.typing as npt

    Workspace = tuple[
        npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]
    ]

_BELOW = 0.25
"""Turnings are kept if they reach this part of the probability at which recent searches ended."""
_LOWER = 1.0 / 64.0
"""Where that was too much, this part of it comes next."""
_MEMORY = 0.05
_FIRST_GUESS = 0.02
_LEAST_GUESS = 1e-9
_NEGLIGIBLE = 1e-12
_UPPER_BITS = 32
_LEAST = 1e-290
"""Above 0, and below whatever the odds of some bits can be."""

_ROOM = 1 << 12
_BUDGET_BITS = 5
_BUDGET = (1 << _BUDGET_BITS) - 1

_HEAD, _CODE, _WEIGHT, _NEXT, _FIELDS = range(5)
"""Of a turning: the head it leads to; its level, and the number of bits left to flip; of a leaf its probability, of a node the product of the
odds of the bits flipped so far (floats, by their bits); the next one of its bucket, or of the free ones."""

_BUCKETS = 64
"""As many as an integer has bits. All that is less probable than their 2^-16 is in the last one, in no order."""
_BUCKET_SHIFT = np.uint64(50)
"""A bucket by the exponent of the probability and two bits more: four to a factor of two."""
_GATHERED = 4
"""Leaves that are asked for before the first of them is compared with."""
_RING, _WITHIN = _BUCKETS, _BUCKETS + _GATHERED
_FREE, _USED, _WAITING, _READY, _FILLED, _QUEUE = range(_WITHIN + _GATHERED, _WITHIN + _GATHERED + 6)
"""Parts of the queue: first turnings of the buckets; leaves asked for, and in how many of their lower bits matches can differ; the first free
turning; turnings ever used; turnings that wait; levels whose shares are there; which buckets are not empty, one bit each."""

_ODDS, _BEHIND, _PATTERNS, _TABLES = 0, 1, 2 + LEVELS, 2 + 2 * LEVELS

ENDED_AT = LEVELS, 0, 0
"""Where among the shares the probability stands that recent searches ended at."""


def workspace() -> Workspace:
    """Scratch memory of :func:`search`, one for each thread.

    Tables of odds; shares of children (and what is :data:`ENDED_AT`); turnings; their queue.
    """
    shares = np.zeros((LEVELS + 1, _BUDGET + 1, CHILDREN))
    shares[ENDED_AT] = _FIRST_GUESS
    turnings = np.zeros((_ROOM + CHILDREN * LEVELS, _FIELDS), dtype=np.int64)
    return np.zeros((_TABLES, 64)), shares, turnings, np.zeros(_QUEUE, dtype=np.int64)


@lean
def search(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    asked: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.float64],
    max_distance: int,
    recall: float,
    most: int,
    tables: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
) -> int:
    """Probe leaves in falling probability until ``recall`` of the probability is covered, or ``most`` matches are found.

    A near-duplicate at exactly ``max_distance`` (h) differs in the set B of a leaf's prefix bits with probability
    odds(B) · E(h - |B|) / E', where E(s) sums the odds of all sets of s bits behind the prefix and E' those of all sets of h
    bits (eq. 4.6 under the condition that h bits differ). Nearer ones are found sooner, but in leaves so deep that fewer bits are behind
    their prefix than are left to flip; these are probed for a recall of 1 only. The leaf of the query's own prefix comes first, so an exact
    twin is always found.

    ``asked``: shape (1,), the query's fingerprint; ``weights``: shape (64,). Scratch: :func:`workspace`. ``matches``: shape (m, 3), receives row, value and distance of the first
    m matches. Adds to the costs in ``state``; returns the number of matches.
    """
    state[QUERIES] += 1
    value = asked[0]
    for bit in range(0, 64, LINE):
        prefetch(weights, bit)  # comes while the tree is read
    place, level = place_of(heads, value)
    head = heads[place]
    if max_distance == 0 or level == 0:
        return _compare_counted(lows, rests, state, head, value, max_distance, max_distance, most, matches, 0)
    _fetch_leaf(lows, head)
    behind, patterns = tables[_BEHIND:_PATTERNS], tables[_PATTERNS:]
    flip_odds(weights, max_distance, tables[_ODDS])
    sums_behind(tables[_ODDS], max_distance, behind, patterns)
    found = _compare_counted(lows, rests, state, head, value, max_distance, max_distance, most, matches, 0)
    whole = behind[0, PAD + max_distance]
    wanted, floor = np.inf, 0.0  # of a recall of 1: all
    if recall < 1.0:
        wanted = recall * whole - behind[level, PAD + max_distance]
        floor = max(_BELOW * max(shares[ENDED_AT], _LEAST_GUESS) * whole, _LEAST)
    done, last, queue[_READY] = np.inf, np.inf, 0
    while wanted > 0.0 and found < most:
        mass, last, found = _descend(
            heads, lows, rests, state, value, place, max_distance, most, behind, patterns, shares, turnings, queue,
            matches, wanted, floor, done, found,
        )  # fmt: skip
        wanted -= mass
        if not floor > whole * _NEGLIGIBLE:  # also if that is no number, of weights that are none
            return found
        done, floor = floor, floor * _LOWER
    if last < np.inf and found < most:
        shares[ENDED_AT] += _MEMORY * (last / whole - shares[ENDED_AT])
    return found


@lean
def search_or_add(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    asked: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.float64],
    max_distance: int,
    recall: float,
    row: int,
    tables: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
) -> tuple[int, int]:
    """:func:`search` for one match; if there is none, :func:`neardup.index.kernels.add`, with its answer."""
    found = search(
        heads, lows, rests, state, asked, weights, max_distance, recall, 1, tables, shares, turnings, queue,
        matches,
    )  # fmt: skip
    if found > 0:
        return found, ADDED
    return 0, add(heads, lows, rests, free, state, asked[0], row, 0, 0)


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
    shares: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
    wanted: float,
    floor: float,
    done: float,
    found: int,
) -> tuple[float, float, int]:
    """Take turnings of at least ``floor``, most probable first, and pass by the leaves that have ``done``, and that at ``own_place``.

    Returns the probability covered, that of the last leaf, and the number of matches.
    """
    queue[:_BUCKETS] = -1
    queue[_FREE], queue[_USED], queue[_WAITING], queue[_FILLED] = -1, 0, 0, 0
    whole = behind[0, PAD + max_distance]
    top = _exponent(whole)
    first, end = 0, 0
    mass, chance = 0.0, np.inf
    if whole >= floor:
        _push(heads[0], 0, max_distance, 1.0, whole, turnings, queue, 0, top)
    while queue[_FILLED] != 0 and mass < wanted:
        bucket, head, code, weight = _take(turnings, queue)
        if head & NODE:
            _follow(
                heads, head, value, own_place, code, weight, max_distance, behind, patterns, shares, turnings, queue, bucket, top,
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
            within = code & _BUDGET if (code >> _BUDGET_BITS) * STEP <= _UPPER_BITS else max_distance
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
    shares: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    bucket: int,
    top: int,
    floor: float,
) -> None:
    """Go down from a node to its leaf in which no more bits are flipped; that leaf and all that turns off go into the queue."""
    level, budget = code >> _BUDGET_BITS, code & _BUDGET
    place, chance = 0, 0.0
    while head & NODE:
        if level == queue[_READY]:
            share_among_children(level, max_distance, behind, patterns, shares)
            queue[_READY] += 1
        first, own = signed(head & COUNT) * CHILDREN, child_of(value, level)
        share = shares[level, budget]
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
            _push(child, level, rest, farther, product * share[pattern], turnings, queue, bucket, top)
        chance = product * share[0]
        if not chance >= floor:
            return
        place = first + own
        head = heads[place]
    if place != own_place:
        _push(head, level, budget, product, chance, turnings, queue, bucket, top)


@inlined
def _push(
    head: np.uint64,
    level: int,
    budget: int,
    product: float,
    chance: float,
    turnings: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    bucket: int,
    top: int,
) -> None:
    """Put a turning into its bucket, which is ``bucket`` or a later one; ``top``: the exponent of bucket 0."""
    at = queue[_FREE]
    if at >= 0:
        queue[_FREE] = turnings[at, _NEXT]
    else:
        at = queue[_USED]
        queue[_USED] += 1
    # When many wait, into the present bucket: what is taken next is then one of these, and going down like that needs little room.
    to = bucket
    if queue[_WAITING] < _ROOM:
        to = max(bucket, min(top - _exponent(chance), _BUCKETS - 1))
    turnings[at, _HEAD] = np.int64(head)
    turnings[at, _CODE] = (level << _BUDGET_BITS) + budget
    turnings[at, _WEIGHT] = np.float64(product if head & NODE else chance).view(np.int64)
    turnings[at, _NEXT] = queue[to]
    queue[to] = at
    queue[_FILLED] |= 1 << to
    queue[_WAITING] += 1


@inlined
def _take(turnings: npt.NDArray[np.int64], queue: npt.NDArray[np.int64]) -> tuple[int, np.uint64, int, float]:
    """A turning out of the first bucket that has any (one has): that bucket, then head, code and weight."""
    filled = queue[_FILLED]
    bucket = trailing_zeros(filled)
    at = queue[bucket]
    after = turnings[at, _NEXT]
    queue[bucket] = after
    queue[_FILLED] = filled & ~((1 << bucket) if after < 0 else 0)
    queue[_FREE], turnings[at, _NEXT] = at, queue[_FREE]
    queue[_WAITING] -= 1
    head, weight = np.uint64(turnings[at, _HEAD]), np.int64(turnings[at, _WEIGHT]).view(np.float64)
    return bucket, head, int(turnings[at, _CODE]), weight


@inlined
def _exponent(chance: float) -> int:
    """Of a probability, in quarters."""
    return signed(np.float64(chance).view(np.uint64) >> _BUCKET_SHIFT)


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
