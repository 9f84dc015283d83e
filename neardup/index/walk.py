"""The search of the PSM index, compiled by numba: which leaves of the tree to probe for a query, most probable first.

The bits in which a near-duplicate's fingerprint differs are weak bits (Sood, section IV.A). Their odds to flip are estimated
from the query's own bit weights; a walk down the tree carries the probability that a near-duplicate at exactly
``max_distance`` lies below a node, and turns back where it is below a threshold. The threshold falls by bands until the leaves
probed cover the wanted share of that probability.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled
from neardup.index.flips import flip_odds, take_in
from neardup.index.kernels import (
    ADDED,
    CANDIDATES,
    CHILDREN,
    COUNT,
    DEPTH,
    EMPTY_PROBES,
    LINE,
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
from neardup.index.prefetch import prefetch

if TYPE_CHECKING:
    import numpy.typing as npt

LEVELS = 22
"""Levels of the tree, the root's and the deepest included."""

_BAND = 0.5
"""The threshold falls by this from one band to the next."""
_START = 2.0
"""The first threshold, in those that recent searches ended at on average."""
_MEMORY = 0.05
_FIRST_GUESS = 0.02
_KEPT = 1.0 / 8.0
"""Turnings below the threshold, but above this part of it, are kept to go on from there."""
_NEGLIGIBLE = 1e-12
_GATHERED = 64
_ROOM = 1 << 12
_STACK = CHILDREN * LEVELS
_BEHIND, _PATTERNS, _TABLES = 1, 2 + LEVELS, 2 + 2 * LEVELS
_BUDGET_BITS = 5

FLIPPED = np.array([pattern.bit_count() for pattern in range(CHILDREN)], dtype=np.int64)


def workspace() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Scratch memory of :func:`search`, one for each thread.

    Tables of odds; products and chances of turnings (and, at [3, 0], the threshold that searches ended at); their heads.
    """
    chances = np.zeros((4, _ROOM + _STACK))
    chances[3, 0] = _FIRST_GUESS
    return np.zeros((_TABLES, 64)), chances, np.zeros((5, _ROOM + _STACK), dtype=np.int64)


@compiled
def sums_behind(
    odds: npt.NDArray[np.float64], max_distance: int, levels: int, behind: npt.NDArray[np.float64]
) -> None:
    """behind[level, s]: sum over all sets of s bits behind that level's prefix of the product of their odds."""
    sums = behind[LEVELS]
    sums[: max_distance + 1] = 0.0
    sums[0] = 1.0
    for j in range(63, -1, -1):
        take_in(odds[j], max_distance, sums)
        if j % STEP == 0 and j <= levels * STEP:
            behind[j // STEP, : max_distance + 1] = sums[: max_distance + 1]


@compiled
def products_of_patterns(
    odds: npt.NDArray[np.float64], levels: int, patterns: npt.NDArray[np.float64]
) -> None:
    """patterns[level, b]: product of the odds of the bits of a level that are set in b."""
    for level in range(levels):
        high, middle, low = odds[STEP * level], odds[STEP * level + 1], odds[STEP * level + 2]
        patterns[level, 0] = 1.0
        patterns[level, 1] = low
        patterns[level, 2] = middle
        patterns[level, 3] = middle * low
        patterns[level, 4] = high
        patterns[level, 5] = high * low
        patterns[level, 6] = high * middle
        patterns[level, 7] = high * middle * low


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
    chances: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
) -> int:
    """Probe leaves in falling probability until ``recall`` of the probability is covered, or ``most`` matches are found.

    A near-duplicate at exactly ``max_distance`` (h) differs in the set B of a leaf's prefix bits with probability
    odds(B) · E(h - |B|) / E', where E(s) sums the odds of all sets of s bits behind the prefix and E' those of all sets of h
    bits (eq. 4.6 under the condition that h bits differ). Nearer ones are found sooner. The leaf of the query's own
    prefix comes first, so an exact twin is always found.

    ``weights``: shape (64,). Scratch: :func:`workspace`. ``matches``: shape (m, 3), receives row, value and distance of the first
    m matches. Adds to the costs in ``state``; returns the number of matches.
    """
    state[QUERIES] += 1
    place, level = place_of(heads, value)
    found = _compare_counted(values, rows, state, heads[place], value, max_distance, most, matches, 0)
    if found >= most or max_distance == 0 or level == 0:
        return found
    behind, patterns = tables[_BEHIND:_PATTERNS], tables[_PATTERNS:]
    levels = int(state[DEPTH])
    flip_odds(weights, tables[0])
    sums_behind(tables[0], max_distance, levels, behind)
    products_of_patterns(tables[0], levels, patterns)
    whole = behind[0, max_distance]
    wanted = recall * whole - behind[level, max_distance]
    high = np.inf
    low = _START * chances[3, 0] * whole if recall < 1.0 else 0.0
    pending, floor = 0, np.inf
    while wanted > 0.0:
        if low <= floor:
            # Nothing was kept below: start at the root, and pass by the leaves that are done.
            turnings[0, 0], turnings[1, 0], chances[0, 0] = np.int64(heads[0]), max_distance, 1.0
            stacked, pending, floor = 1, 0, low * _KEPT
        else:
            stacked, pending = _take_up(chances, turnings, pending, low)
        pending, mass, found = _descend(
            heads, values, rows, state, value, max_distance, most, behind, patterns, chances, turnings,
            matches, stacked, pending, low, floor, high, wanted, found,
        )  # fmt: skip
        wanted -= mass
        if pending == _ROOM:
            floor = low  # some may have been dropped: start at the root again
        if found >= most or low <= whole * _NEGLIGIBLE:
            return found
        high, low = low, low * _BAND
    if high < np.inf:
        chances[3, 0] += _MEMORY * (high / whole - chances[3, 0])
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
    chances: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
) -> tuple[int, int]:
    """:func:`search` for one match; if there is none, :func:`neardup.index.kernels.add`, with its answer."""
    found = search(
        heads, values, rows, state, value, weights, max_distance, recall, 1, tables, chances, turnings,
        matches,
    )  # fmt: skip
    if found > 0:
        return found, ADDED
    return 0, add(heads, values, rows, free, state, value, row)


@compiled
def _take_up(
    chances: npt.NDArray[np.float64], turnings: npt.NDArray[np.int64], pending: int, low: float
) -> tuple[int, int]:
    """Move the kept turnings that now reach the threshold to the stack; returns the sizes of both."""
    stacked, kept = 0, 0
    for i in range(pending):
        if chances[2, i] >= low:
            chances[0, stacked] = chances[1, i]
            turnings[0, stacked], turnings[1, stacked] = turnings[2, i], turnings[3, i]
            stacked += 1
        else:
            chances[1, kept], chances[2, kept] = chances[1, i], chances[2, i]
            turnings[2, kept], turnings[3, kept] = turnings[2, i], turnings[3, i]
            kept += 1
    return stacked, kept


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
    chances: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
    stacked: int,
    pending: int,
    low: float,
    floor: float,
    high: float,
    wanted: float,
    found: int,
) -> tuple[int, float, int]:
    """Walk down from the turnings on the stack; returns the number of those kept, the probability covered, the matches."""
    gathered, mass = 0, 0.0
    while stacked > 0 and mass < wanted:
        stacked -= 1
        head, code, product = np.uint64(turnings[0, stacked]), turnings[1, stacked], chances[0, stacked]
        level, budget = code >> _BUDGET_BITS, code & ((1 << _BUDGET_BITS) - 1)
        if not head & NODE:
            chance = product * behind[level, budget]
            if budget < max_distance and chance < high:
                mass += chance
                turnings[4, gathered] = np.int64(head)
                gathered += 1
                if gathered == _GATHERED:
                    found = _compare_gathered(
                        values,
                        rows,
                        state,
                        turnings,
                        gathered,
                        value,
                        max_distance,
                        most,
                        matches,
                        found,
                    )
                    if found >= most:
                        return pending, mass, found
                    gathered = 0
            continue
        stacked, pending = _turn(
            heads, values, head, child_of(value, level), level, budget, product, behind, patterns, chances,
            turnings, stacked, pending, low, floor,
        )  # fmt: skip
    found = _compare_gathered(
        values, rows, state, turnings, gathered, value, max_distance, most, matches, found
    )
    return pending, mass, found


@compiled
def _turn(
    heads: npt.NDArray[np.uint64],
    values: npt.NDArray[np.uint64],
    head: np.uint64,
    own: int,
    level: int,
    budget: int,
    product: float,
    behind: npt.NDArray[np.float64],
    patterns: npt.NDArray[np.float64],
    chances: npt.NDArray[np.float64],
    turnings: npt.NDArray[np.int64],
    stacked: int,
    pending: int,
    low: float,
    floor: float,
) -> tuple[int, int]:
    """Put the children of a node on the stack, or keep them for later, or leave them; returns the sizes of both."""
    first = signed(head & COUNT) * CHILDREN
    for pattern in range(CHILDREN):
        rest = budget - FLIPPED[pattern]
        if rest >= 0:
            share = product * patterns[level, pattern]
            chance = share * behind[level + 1, rest]
            if chance >= floor:
                child = heads[first + (own ^ pattern)]
                code = ((level + 1) << _BUDGET_BITS) + rest
                if chance >= low:
                    _fetch(heads, values, child)
                    turnings[0, stacked], turnings[1, stacked] = np.int64(child), code
                    chances[0, stacked] = share
                    stacked += 1
                elif pending < _ROOM:
                    turnings[2, pending], turnings[3, pending] = np.int64(child), code
                    chances[1, pending], chances[2, pending] = share, chance
                    pending += 1
    return stacked, pending


@compiled
def _fetch(
    heads: npt.NDArray[np.uint64],
    values: npt.NDArray[np.uint64],
    head: np.uint64,
) -> None:
    """Ask for the memory that a turning leads to."""
    if head & NODE:
        prefetch(heads, signed(head & COUNT) * CHILDREN)
    else:
        line = signed(head >> SHIFT)
        for ahead in range((signed(head & COUNT) + LINE - 1) // LINE):
            prefetch(values, (line + ahead) * LINE)


@compiled
def _compare_gathered(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    state: npt.NDArray[np.int64],
    turnings: npt.NDArray[np.int64],
    gathered: int,
    value: np.uint64,
    max_distance: int,
    most: int,
    matches: npt.NDArray[np.uint64],
    found: int,
) -> int:
    for i in range(gathered):
        head = np.uint64(turnings[4, i])
        found = _compare_counted(values, rows, state, head, value, max_distance, most, matches, found)
        if found >= most:
            break
    return found


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
