"""Storing many fingerprints in the tree of the PSM index, compiled by numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled, inlined, lean
from neardup.index.psm.instructions import prefetch
from neardup.index.psm.leaf_allocator import LINE
from neardup.index.psm.tree import (
    ADDED,
    CHILDREN,
    COUNT,
    DEEPEST,
    NODE,
    SHIFT,
    SIZE,
    STEP,
    add,
    child_of,
    divide,
    has_room,
    is_full,
    limit_of,
    put,
    resized,
    signed,
)

if TYPE_CHECKING:
    import numpy.typing as npt

_AHEAD = 32
_ORDERED, _SECOND = 8, 12
"""Levels by whose bits fingerprints are ordered before they are added; bits by which they are in the second
of two rounds.
"""
_PLACE, _LEVEL, _START, _END = range(4)
"""Of a part: where the head is that it belongs below, and at what level; which of the fingerprints it is."""
_BEGIN, _STOP = range(2)
"""Of bounds: which of the fingerprints belong below each of the eight children of a node."""


def workspace() -> npt.NDArray[np.int64]:
    """Scratch memory of :func:`add_many`: places and levels of leaves."""
    return np.zeros((_AHEAD, 2), dtype=np.int64)


@lean
def add_many(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    new_values: npt.NDArray[np.uint64],
    new_rows: npt.NDArray[np.int64],
    start: int,
    places: npt.NDArray[np.int64],
) -> int:
    """:func:`neardup.index.psm.tree.add` one after the other from ``start`` on, until there is no room;
    returns how many are done with.

    ``places``: of :func:`workspace`.
    """
    for i in range(start, new_values.size):
        if (i - start) % _AHEAD == 0:
            _find_leaves(heads, lows, rests, new_values[i : i + _AHEAD], places)
        at = (i - start) % _AHEAD
        value, row = new_values[i], int(new_rows[i])
        if add(heads, lows, rests, free, state, value, row, places[at, 0], places[at, 1]) != ADDED:
            return i
    return new_values.size


@inlined
def _find_leaves(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    values: npt.NDArray[np.uint64],
    places: npt.NDArray[np.int64],
) -> None:
    """Where the heads of the leaves of a few fingerprints stand, and their levels.

    Most of the time of an insertion is waiting for memory. So all fingerprints go down a level at a time, and
    the ends of their leaves are asked for.
    """
    places[: values.size] = 0
    level, going = 0, values.size
    while going > 0:
        going = 0
        for i in range(values.size):
            if places[i, 1] != level:
                continue
            head = heads[places[i, 0]]
            if head & NODE:
                place = signed(head & COUNT) * CHILDREN + child_of(values[i], level)
                prefetch(heads, place)
                places[i, 0], places[i, 1] = place, level + 1
                going += 1
            else:
                _fetch_end(lows, rests, head)
        level += 1


@inlined
def _fetch_end(lows: npt.NDArray[np.uint32], rests: npt.NDArray[np.uint64], head: np.uint64) -> None:
    """Ask for where the next fingerprint of a leaf will stand."""
    slot = signed(head >> SHIFT) * LINE + signed(head & COUNT)
    prefetch(lows, slot)
    prefetch(rests, slot)


@compiled
def _order(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.int64],
    shift: int,
    bits: int,
    ordered_values: npt.NDArray[np.uint64],
    ordered_rows: npt.NDArray[np.int64],
) -> None:
    """Copy fingerprints and rows, ordered by so many bits from ``shift`` on; what is alike in these keeps its
    order.
    """
    right, mask = np.uint64(shift), np.uint64((1 << bits) - 1)
    places = np.zeros((1 << bits) + 1, dtype=np.int64)
    for i in range(values.size):
        places[signed((values[i] >> right) & mask) + 1] += 1
    for bucket in range(1 << bits):
        places[bucket + 1] += places[bucket]
    for i in range(values.size):
        bucket = signed((values[i] >> right) & mask)
        to = places[bucket]
        ordered_values[to], ordered_rows[to] = values[i], rows[i]
        places[bucket] = to + 1


def gathered(
    values: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Copies in the order that :func:`add_gathered` asks for: that of the leading bits, as many as belong to
    :data:`_ORDERED` levels.
    """
    once = np.empty_like(values), np.empty_like(rows)
    twice = np.empty_like(values), np.empty_like(rows)
    lower = STEP * _ORDERED - _SECOND
    _order(values, rows, 64 - _SECOND - lower, lower, *once)
    _order(*once, 64 - _SECOND, _SECOND, *twice)
    return twice


def whole(fingerprints: int) -> npt.NDArray[np.int64]:
    """Parts for :func:`add_gathered`: one, of so many fingerprints, that belongs to the root."""
    # Of each level there wait at most the parts of one node; behind them, bounds.
    parts = np.zeros((CHILDREN * (DEEPEST + 1) + CHILDREN, 4), dtype=np.int64)
    parts[0, _END] = fingerprints
    return parts


@lean
def add_gathered(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    new_values: npt.NDArray[np.uint64],
    new_rows: npt.NDArray[np.int64],
    parts: npt.NDArray[np.int64],
    waiting: int,
) -> int:
    """Store fingerprints leaf by leaf, so that each leaf is sought, and given memory, once; until there is no
    room.

    - ``new_values`` and ``new_rows``: as :func:`gathered`; where the tree is deeper, they are ordered on the
      way.
    - ``parts``: of :func:`whole`; the first ``waiting`` are still to be stored. Each part has the place and
      level of a head, and where the fingerprints that belong below this head begin and end.

    Returns how many parts wait.
    """
    while waiting > 0:
        place, level = parts[waiting - 1, _PLACE], parts[waiting - 1, _LEVEL]
        start, end = parts[waiting - 1, _START], parts[waiting - 1, _END]
        head = heads[place]
        if not head & NODE:
            count = signed(head & COUNT)
            full = is_full(lows, rests, head, place, level)
            room = limit_of(place) - count
            if room <= 0:  # of copies: looked at again when there are a quarter more
                room = count // 4 + 1
            taken = 0 if full else min(end - start, room)
            if not has_room(heads, lows, rests, free, state, count + taken):
                return waiting
            if not full:
                heads[place] = resized(lows, rests, free, state, head, count + taken)
                slot = signed(heads[place] >> SHIFT) * LINE + count
                for i in range(taken):
                    put(lows, rests, slot + i, new_values[start + i], new_rows[start + i])
                state[SIZE] += taken
                parts[waiting - 1, _START] += taken
                waiting -= start + taken == end
                continue
            divide(heads, lows, rests, free, state, place, level)
        first = signed(heads[place] & COUNT) * CHILDREN
        waiting = _part(
            heads, lows, rests, first, level, start, end, new_values, new_rows, parts, waiting - 1
        )
    return 0


@lean
def _part(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    first: int,
    level: int,
    start: int,
    end: int,
    new_values: npt.NDArray[np.uint64],
    new_rows: npt.NDArray[np.int64],
    parts: npt.NDArray[np.int64],
    waiting: int,
) -> int:
    """Let the fingerprints of each child of a node wait; returns how many parts wait."""
    bounds = parts[CHILDREN * (DEEPEST + 1) :]
    _find_bounds(new_values, level, start, end, bounds)
    for child in range(CHILDREN):
        begin = bounds[child, _BEGIN] = start if child == 0 else bounds[child - 1, _STOP]
        if begin == bounds[child, _STOP]:
            continue
        parts[waiting, _PLACE], parts[waiting, _LEVEL] = first + child, level + 1
        parts[waiting, _START], parts[waiting, _END] = begin, bounds[child, _STOP]
        waiting += 1
        if not heads[first + child] & NODE:
            _fetch_end(lows, rests, heads[first + child])
    if level >= _ORDERED:
        _order_in_place(new_values, new_rows, level, bounds)
    return waiting


@lean
def _find_bounds(
    new_values: npt.NDArray[np.uint64], level: int, start: int, end: int, bounds: npt.NDArray[np.int64]
) -> None:
    """bounds[child, _STOP]: where the fingerprints of each of eight children end when they are in order."""
    if level < _ORDERED:
        for child in range(CHILDREN):
            low, high = start, end
            while low < high:
                middle = (low + high) // 2
                if child_of(new_values[middle], level) <= child:
                    low = middle + 1
                else:
                    high = middle
            bounds[child, _STOP] = start = low
        return
    bounds[:] = 0
    for i in range(start, end):
        bounds[child_of(new_values[i], level), _STOP] += 1
    for child in range(CHILDREN):
        bounds[child, _STOP] += start if child == 0 else bounds[child - 1, _STOP]


@lean
def _order_in_place(
    new_values: npt.NDArray[np.uint64],
    new_rows: npt.NDArray[np.int64],
    level: int,
    bounds: npt.NDArray[np.int64],
) -> None:
    """Swap each fingerprint to where its child's begin, until all stand right (American flag sort, McIlroy,
    Bostic & McIlroy 1993).
    """
    for child in range(CHILDREN):
        while bounds[child, _BEGIN] < bounds[child, _STOP]:
            here = bounds[child, _BEGIN]
            value, row = new_values[here], new_rows[here]
            other = child_of(value, level)
            there = bounds[other, _BEGIN]
            bounds[other, _BEGIN] = there + 1
            new_values[here], new_rows[here] = new_values[there], new_rows[there]
            new_values[there], new_rows[there] = value, row
