"""The search of the PSM index, compiled by numba: which leaves of the tree to probe for a query, most probable first.

The bits in which a near-duplicate's fingerprint differs are weak bits (Sood, section IV.A). Their odds to flip are estimated
from the query's own bit weights. Every turning, to a node or a leaf, has the probability that a near-duplicate at exactly
``max_distance`` lies below it. Turnings wait in buckets by that probability, and the most probable is taken next, until the leaves
probed cover the wanted share. The thesis takes combinations of bits out of a heap (section IV.B, algorithm 2); buckets, four
to a factor of two, order them nearly as well, and nothing is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled
from neardup.index.flips import flip_odds
from neardup.index.kernels import (
    ADDED,
    CANDIDATES,
    CHILDREN,
    COUNT,
    EMPTY_PROBES,
    LINE,
    NODE,
    PROBES,
    QUERIES,
    SHIFT,
    add,
    child_of,
    place_of,
    signed,
)
from neardup.index.leaves import compare
from neardup.index.prefetch import prefetch
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
_LEAST = 1e-290
"""Above 0, and below whatever the odds of some bits can be."""

_ROOM = 1 << 12
_BUDGET_BITS = 5
_BUDGET = (1 << _BUDGET_BITS) - 1

_HEAD, _CODE, _PRODUCT, _CHANCE, _NEXT, _FIELDS = range(6)
"""Of a turning: the head it leads to; its level, and the number of bits left to flip; the product of the odds of the bits flipped so far,
and its probability (floats, by their bits); the next one of its bucket, or of the free ones."""

_BUCKETS = 256
_BUCKET_SHIFT = np.uint64(50)
"""A bucket by the exponent of the probability and two bits more: four to a factor of two."""
_GATHERED = 8
"""Leaves that are asked for before the first of them is compared with."""
_RING, _CHOSEN = _BUCKETS, _BUCKETS + _GATHERED
_FREE, _USED, _WAITING, _READY, _QUEUE = range(_CHOSEN + CHILDREN, _CHOSEN + CHILDREN + 5)
"""Parts of the queue: first turnings of the buckets; leaves asked for; patterns that are turned to; the first free turning; turnings ever
used; turnings that wait; levels whose shares are there."""

_ODDS, _BEHIND, _PATTERNS, _TABLES = 0, 1, 2 + LEVELS, 2 + 2 * LEVELS


def workspace() -> Workspace:
    """Scratch memory of :func:`search`, one for each thread.

    Tables of odds; shares of children (and, at [LEVELS, 0, 0], the probability that searches ended at); turnings; their queue.
    """
    shares = np.zeros((LEVELS + 1, _BUDGET + 1, CHILDREN))
    shares[LEVELS, 0, 0] = _FIRST_GUESS
    turnings = np.zeros((_ROOM + CHILDREN * LEVELS, _FIELDS), dtype=np.int64)
    return np.zeros((_TABLES, 64)), shares, turnings, np.zeros(_QUEUE, dtype=np.int64)


@compiled
def search(
    heads: npt.NDArray[np.uint64],
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    state: npt.NDArray[np.int64],
    value: np.uint64,
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

    ``weights``: shape (64,). Scratch: :func:`workspace`. ``matches``: shape (m, 3), receives row, value and distance of the first
    m matches. Adds to the costs in ``state``; returns the number of matches.
    """
    state[QUERIES] += 1
    place, level = place_of(heads, value)
    head = heads[place]
    if max_distance == 0 or level == 0:
        return _compare_counted(values, rows, state, head, value, max_distance, most, matches, 0)
    _fetch_leaf(values, head)
    behind, patterns = tables[_BEHIND:_PATTERNS], tables[_PATTERNS:]
    flip_odds(weights, tables[_ODDS])
    sums_behind(tables[_ODDS], max_distance, behind, patterns)
    found = _compare_counted(values, rows, state, head, value, max_distance, most, matches, 0)
    whole = behind[0, PAD + max_distance]
    wanted, floor = np.inf, 0.0  # of a recall of 1: all
    if recall < 1.0:
        wanted = recall * whole - behind[level, PAD + max_distance]
        floor = max(_BELOW * max(shares[LEVELS, 0, 0], _LEAST_GUESS) * whole, _LEAST)
    done, last, queue[_READY] = np.inf, np.inf, 0
    while wanted > 0.0 and found < most:
        mass, last, found = _descend(
            heads, values, rows, state, value, max_distance, most, behind, patterns, shares, turnings, queue,
            matches, wanted, floor, done, found,
        )  # fmt: skip
        wanted -= mass
        if not floor > whole * _NEGLIGIBLE:  # also if that is no number, of weights that are none
            return found
        done, floor = floor, floor * _LOWER
    if last < np.inf and found < most:
        shares[LEVELS, 0, 0] += _MEMORY * (last / whole - shares[LEVELS, 0, 0])
    return found


@compiled
def search_or_add(
    heads: npt.NDArray[np.uint64],
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    value: np.uint64,
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
        heads, values, rows, state, value, weights, max_distance, recall, 1, tables, shares, turnings, queue,
        matches,
    )  # fmt: skip
    if found > 0:
        return found, ADDED
    return 0, add(heads, values, rows, free, state, value, row)


@compiled
def _descend(
    heads: npt.NDArray[np.uint64],
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    state: npt.NDArray[np.int64],
    value: np.uint64,
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
    """Take turnings of at least ``floor``, most probable first, and pass by the leaves that have ``done``.

    Returns the probability covered, that of the last leaf, and the number of matches.
    """
    top = _leave_own_path(heads, value, max_distance, behind, patterns, shares, turnings, queue, floor)
    bucket, first, end = 0, 0, 0
    mass, chance = 0.0, np.inf
    while queue[_WAITING] > 0 and mass < wanted:
        while queue[bucket] < 0:
            bucket += 1
        at = queue[bucket]
        queue[bucket] = turnings[at, _NEXT]
        queue[_FREE], turnings[at, _NEXT] = at, queue[_FREE]
        queue[_WAITING] -= 1
        head, code = np.uint64(turnings[at, _HEAD]), turnings[at, _CODE]
        if head & NODE:
            product = np.int64(turnings[at, _PRODUCT]).view(np.float64)
            if code >> _BUDGET_BITS == queue[_READY]:
                share_among_children(queue[_READY], max_distance, behind, patterns, shares)
                queue[_READY] += 1
            _turn(heads, head, value, code, product, 0, patterns, shares, turnings, queue, bucket, top, floor)
            continue
        chance = np.int64(turnings[at, _CHANCE]).view(np.float64)
        if chance < done:
            mass += chance
            _fetch_leaf(values, head)
            if end - first == _GATHERED:
                oldest = np.uint64(queue[_RING + first % _GATHERED])
                found = _compare_counted(
                    values, rows, state, oldest, value, max_distance, most, matches, found
                )
                if found >= most:
                    return mass, chance, found
                first += 1
            queue[_RING + end % _GATHERED] = np.int64(head)
            end += 1
    while first < end and found < most:
        oldest = np.uint64(queue[_RING + first % _GATHERED])
        found = _compare_counted(values, rows, state, oldest, value, max_distance, most, matches, found)
        first += 1
    return mass, chance, found


@compiled
def _leave_own_path(
    heads: npt.NDArray[np.uint64],
    value: np.uint64,
    max_distance: int,
    behind: npt.NDArray[np.float64],
    patterns: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    floor: float,
) -> int:
    """Empty the queue and put into it what turns off from the path on which no bit is flipped; returns the exponent of bucket 0."""
    queue[:_BUCKETS] = -1
    queue[_FREE], queue[_USED], queue[_WAITING] = -1, 0, 0
    top = signed(np.float64(behind[0, PAD + max_distance]).view(np.uint64) >> _BUCKET_SHIFT)
    head, level = heads[0], 0
    while head & NODE and behind[level, PAD + max_distance] >= floor:
        if level == queue[_READY]:
            share_among_children(level, max_distance, behind, patterns, shares)
            queue[_READY] += 1
        code = (level << _BUDGET_BITS) + max_distance
        _turn(heads, head, value, code, 1.0, 1, patterns, shares, turnings, queue, 0, top, floor)
        head = heads[signed(head & COUNT) * CHILDREN + child_of(value, level)]
        level += 1
    return top


@compiled
def _turn(
    heads: npt.NDArray[np.uint64],
    head: np.uint64,
    value: np.uint64,
    code: int,
    product: float,
    lowest: int,
    patterns: npt.NDArray[np.float64],
    shares: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    bucket: int,
    top: int,
    floor: float,
) -> None:
    """Put the children of a node that reach the floor into their buckets, which are ``bucket`` or later ones; patterns from ``lowest`` on.

    The shares of its level are there: both callers see to that, because done in here it makes searches take a third longer.
    """
    level, budget = code >> _BUDGET_BITS, code & _BUDGET
    first, own = signed(head & COUNT) * CHILDREN, child_of(value, level)
    share, chosen = shares[level, budget], queue[_CHOSEN:]
    count = 0
    # Without a branch: which children reach the floor cannot be foreseen.
    for pattern in range(lowest, CHILDREN):
        chosen[count] = pattern
        count += product * share[pattern] >= floor
    for i in range(count):
        pattern = chosen[i]
        rest = budget - FLIPPED[pattern]
        if rest < 0:
            continue  # without a floor all are chosen
        chance = product * share[pattern]
        child = heads[first + (own ^ pattern)]
        at = queue[_FREE]
        if at >= 0:
            queue[_FREE] = turnings[at, _NEXT]
        else:
            at = queue[_USED]
            queue[_USED] += 1
        # When many wait, into the present bucket: what is taken next is then one of these, and going down like that needs little room.
        to = bucket
        if queue[_WAITING] < _ROOM:
            fall = top - signed(np.float64(chance).view(np.uint64) >> _BUCKET_SHIFT)
            to = max(bucket, min(fall, _BUCKETS - 1))
        turnings[at, _HEAD] = np.int64(child)
        turnings[at, _CODE] = ((level + 1) << _BUDGET_BITS) + rest
        turnings[at, _PRODUCT] = np.float64(product * patterns[level, pattern]).view(np.int64)
        turnings[at, _CHANCE] = np.float64(chance).view(np.int64)
        turnings[at, _NEXT] = queue[to]
        queue[to] = at
        queue[_WAITING] += 1
        # Of a leaf for nothing, but asking would take longer.
        prefetch(heads, signed(child & COUNT) * CHILDREN)


@compiled
def _fetch_leaf(values: npt.NDArray[np.uint64], head: np.uint64) -> None:
    """Ask for the fingerprints of a leaf."""
    line = signed(head >> SHIFT)
    for ahead in range((signed(head & COUNT) + LINE - 1) // LINE):
        prefetch(values, (line + ahead) * LINE)


@compiled
def _compare_counted(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    state: npt.NDArray[np.int64],
    head: np.uint64,
    value: np.uint64,
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
    return compare(values, rows, head, value, max_distance, most, matches, found)
