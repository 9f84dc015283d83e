"""The tree of the PSM index, compiled by numba. No Python object is touched; the caller owns every array.

The fingerprints stand in a tree of prefixes, three bits a level:

- ``heads`` (uint64): ``heads[0]`` is the root; node k has its eight children at ``heads[8 k : 8 k + 8]``, one
  cache line. A head is a node or a leaf. A node has bit 63 set, and its number in the lower 32 bits. A leaf
  has the number of its fingerprints in the lower 32 bits and, above them, the line where these fingerprints
  begin.
- ``lows`` (uint32): the lower 32 bits of each fingerprint. A probe reads these bits only, 16 in a cache line,
  and the rest of the fingerprints that are near enough in these bits.
- ``rests`` (uint64): the upper 32 bits of each fingerprint and, below them, its row.
- ``free`` (uint8): 1 for a line that is not in use (:mod:`neardup.index.psm.leaf_allocator`).
- ``state`` (int64): the numbers named below, and those of :mod:`neardup.index.psm.leaf_allocator`.

``lows`` and ``rests`` stand in lines of eight slots. The fingerprints of a leaf stand together in an extent
of lines, whose size follows from the number of fingerprints (:func:`lines_for`).

A leaf that is full (``LIMITS``) becomes a node. So the number of prefix bits (p of the thesis) is a local
one. The number is larger where fingerprints are dense, and grows with the index, one leaf at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import lean
from neardup.index.psm.leaf_allocator import LINE, TOP, allocate, allocate_free, extend, lines_for, release

if TYPE_CHECKING:
    import numpy.typing as npt

STEP = 3
"""Bits a level."""

CHILDREN = 1 << STEP

DEEPEST = 21
"""Level at which no bits are left that could divide a leaf (but the last): 63 bits are prefix."""

LIMITS = np.array([160, 208, 270, 350, 454, 588, 763, 988], dtype=np.int64)
"""Fingerprints a leaf may hold, one of these by its place. Comparing is cheap, sixteen at a time; probing
more leaves is not.

The limits are an eighth of a factor of eight apart. With one limit for all, the leaves of evenly spread
fingerprints would all divide at once and grow together. Free memory would then always be of the wrong size.
"""

SIZE, NODES, DEPTH = 0, 3, 4
"""Places in ``state``: fingerprints stored; nodes in use, the root's line included; deepest level."""
QUERIES, PROBES, EMPTY_PROBES, CANDIDATES = range(5, 9)
COSTS = slice(QUERIES, CANDIDATES + 1)
"""What searching has cost."""

FULLEST = int(LIMITS.max())
COPIES_FROM = 8
"""Level from which on a leaf of mostly copies may hold any number."""
_LOOKS = 16

_ONE = np.uint64(1)
NODE = np.uint64(1 << 63)
COUNT = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)
_UPPER = np.uint64(0xFFFFFFFF00000000)
"""Parts of a head: the mark of a node; the number of its fingerprints, or of the node; how far up its first
line stands.
"""
_CHILD = np.uint64(CHILDREN - 1)


@lean
def signed(number: np.uint64) -> int:
    """A signed integer: numba turns an unsigned one with a signed one into a float."""
    return np.int64(number)  # type: ignore[return-value]


@lean
def popcount(bits: np.uint64) -> int:
    """Number of ones, by the textbook sums in parallel (which LLVM knows as one instruction)."""
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@lean
def fingerprint_at(lows: npt.NDArray[np.uint32], rests: npt.NDArray[np.uint64], slot: int) -> np.uint64:
    """The fingerprint stored in a slot."""
    return np.uint64((rests[slot] & _UPPER) | np.uint64(lows[slot]))


@lean
def row_at(rests: npt.NDArray[np.uint64], slot: int) -> int:
    """The row under which it is stored."""
    return signed(rests[slot] & ~_UPPER)


@lean
def put(
    lows: npt.NDArray[np.uint32], rests: npt.NDArray[np.uint64], slot: int, value: np.uint64, row: int
) -> None:
    """Store a fingerprint and its row in a slot."""
    lows[slot] = value & ~_UPPER
    rests[slot] = (value & _UPPER) | np.uint64(row)


@lean
def _move(lows: npt.NDArray[np.uint32], rests: npt.NDArray[np.uint64], slot: int, to: int) -> None:
    lows[to], rests[to] = lows[slot], rests[slot]


@lean
def limit_of(place: int) -> int:
    """How many fingerprints the leaf whose head stands there may hold."""
    return int(LIMITS[signed((np.uint64(place) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(61))])


@lean
def child_of(value: np.uint64, level: int) -> int:
    """The three bits of a fingerprint that choose a child at a level."""
    return signed((value >> np.uint64(64 - STEP - STEP * level)) & _CHILD)


@lean
def leaf(line: int, count: int) -> np.uint64:
    """Head of a leaf."""
    return (np.uint64(line) << SHIFT) | np.uint64(count)


@lean
def resized(
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    head: np.uint64,
    count: int,
) -> np.uint64:
    """Head of a leaf after its extent has been made to fit another number of fingerprints."""
    line, before = signed(head >> SHIFT), signed(head & COUNT)
    if 0 < before < count and (before - 1) // LINE == (count - 1) // LINE:
        return leaf(line, count)  # the last line has room, as it has seven times out of eight
    old, new = lines_for(before), lines_for(count)
    if new == old or (new > old > 0 and extend(free, rests, state, line + old, new - old)):
        return leaf(line, count)
    # A leaf that shrinks moves, too: what it leaves is then as long as those that grow again ask for, and not
    # in two pieces.
    moved = allocate(free, rests, state, new) if new > old else allocate_free(free, rests, state, new)
    if moved < 0:
        release(free, rests, state, line + new, old - new)
        return leaf(line, count)
    for i in range(min(before, count)):
        _move(lows, rests, line * LINE + i, moved * LINE + i)
    release(free, rests, state, line, old)
    return leaf(moved, count)


@lean
def divide(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    place: int,
    level: int,
) -> None:
    """Turn a full leaf into a node and deal its fingerprints out to its children."""
    line, count = signed(heads[place] >> SHIFT), signed(heads[place] & COUNT)
    first, end = line * LINE, line * LINE + count
    node = state[NODES]
    state[NODES] = node + 1
    state[DEPTH] = max(state[DEPTH], level + 1)
    children = heads[node * CHILDREN : (node + 1) * CHILDREN]
    children[:] = np.uint64(0)
    for slot in range(first, end):
        children[child_of(fingerprint_at(lows, rests, slot), level)] += _ONE
    for child in range(CHILDREN):
        children[child] |= (
            np.uint64(allocate(free, rests, state, lines_for(signed(children[child])))) << SHIFT
        )
    for slot in range(first, end):
        child = child_of(fingerprint_at(lows, rests, slot), level)
        # The lower half counts down, so the first slots are filled last.
        children[child] -= _ONE
        to = signed(children[child] >> SHIFT) * LINE + signed(children[child] & COUNT)
        _move(lows, rests, slot, to)
    for slot in range(first, end):
        children[child_of(fingerprint_at(lows, rests, slot), level)] += _ONE
    release(free, rests, state, line, lines_for(count))
    heads[place] = NODE | np.uint64(node)


@lean
def place_of(heads: npt.NDArray[np.uint64], value: np.uint64) -> tuple[int, int]:
    """Where the head of a fingerprint's leaf stands, and its level."""
    place, level = 0, 0
    while heads[place] & NODE:
        place = signed(heads[place] & COUNT) * CHILDREN + child_of(value, level)
        level += 1
    return place, level


ADDED, NO_ROOM = 0, 1
"""What :func:`add` answers. ``NO_ROOM``: it is not stored, though leaves may have been divided; an array must
grow first.
"""


@lean
def has_room(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    count: int,
) -> bool:
    """Whether a leaf of ``count`` can be divided, and one can be given an extent for one more.

    The children of the leaf take a line more each than the leaf has, and a quarter more for the sizes of
    extents. Twice that is asked for, so that there are always some lines behind the last one in use. A
    comparison of sixteen reads beyond the end of a leaf.
    """
    lines = state[TOP] + 2 * ((max(count, FULLEST) + 1) // LINE + 1 + CHILDREN) * 5 // 4
    if lines > free.size or lines * LINE > lows.size or lines * LINE > rests.size:
        return False
    return bool((state[NODES] + 1) * CHILDREN <= heads.size)


@lean
def is_full(
    lows: npt.NDArray[np.uint32], rests: npt.NDArray[np.uint64], head: np.uint64, place: int, level: int
) -> bool:
    """Whether a leaf is to be divided: the leaf is full, and its fingerprints are not mostly copies of one.

    Dividing a leaf does not part copies. Copies would go down to the last level, where too few bits are left
    behind the prefix to look for anything but the very same. Sixteen fingerprints are looked at (the majority
    vote of Boyer and Moore 1981). Above :data:`COPIES_FROM` copies go on down, out of the way of others.
    """
    count = signed(head & COUNT)
    if count < limit_of(place) or level == DEEPEST:
        return False
    if level < COPIES_FROM:
        return True
    first = signed(head >> SHIFT) * LINE
    candidate, votes, equal = np.uint64(0), 0, 0
    for look in range(_LOOKS):
        value = fingerprint_at(lows, rests, first + look * count // _LOOKS)
        if votes == 0:
            candidate = value
        votes += 1 if value == candidate else -1
    for look in range(_LOOKS):
        equal += fingerprint_at(lows, rests, first + look * count // _LOOKS) == candidate
    return equal * 2 < _LOOKS


@lean
def add(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    value: np.uint64,
    row: int,
    place: int,
    level: int,
) -> int:
    """Store a fingerprint in its leaf, which is divided first if it is full.

    ``place`` and ``level`` are those of a head on the way to that leaf. They may also be those of a head that
    was the leaf's before others were divided. 0 and 0 are those of the root.
    """
    while heads[place] & NODE:
        place = signed(heads[place] & COUNT) * CHILDREN + child_of(value, level)
        level += 1
    count = signed(heads[place] & COUNT)
    while has_room(heads, lows, rests, free, state, count):
        if not is_full(lows, rests, heads[place], place, level):
            break
        divide(heads, lows, rests, free, state, place, level)
        place = signed(heads[place] & COUNT) * CHILDREN + child_of(value, level)
        count = signed(heads[place] & COUNT)
        level += 1
    else:
        return NO_ROOM
    heads[place] = resized(lows, rests, free, state, heads[place], count + 1)
    slot = signed(heads[place] >> SHIFT) * LINE + count
    put(lows, rests, slot, value, row)
    state[SIZE] += 1
    return ADDED


@lean
def locate(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    value: np.uint64,
    row: int,
) -> int:
    """Slot of a stored fingerprint, or -1; ``row`` -1: under any row."""
    head = heads[place_of(heads, value)[0]]
    first = signed(head >> SHIFT) * LINE
    for slot in range(first, first + signed(head & COUNT)):
        if fingerprint_at(lows, rests, slot) == value and (row < 0 or row_at(rests, slot) == row):
            return slot
    return -1


@lean
def remove(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    value: np.uint64,
    row: int,
) -> bool:
    """Take a fingerprint out; the last of its leaf takes its slot. False: it is not there."""
    slot = locate(heads, lows, rests, value, row)
    if slot < 0:
        return False
    place, _ = place_of(heads, value)
    head = heads[place]
    last = signed(head >> SHIFT) * LINE + signed(head & COUNT) - 1
    _move(lows, rests, last, slot)
    heads[place] = resized(lows, rests, free, state, head, signed(head & COUNT) - 1)
    state[SIZE] -= 1
    return True
