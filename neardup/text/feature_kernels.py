"""Loops over hashed words: frequencies, shingles and the min-wise sketch (numba)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled

if TYPE_CHECKING:
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_THIRTY_THREE = np.uint64(33)

_FEW = 64
"""Elements that a sketch may be drawn from as often as it takes: at most twice for each of its places."""


@compiled
def mix(value: np.uint64) -> np.uint64:
    """A fixed permutation of the 64-bit integers that looks random (the finaliser of murmur3)."""
    value = (value ^ (value >> _THIRTY_THREE)) * _FIRST
    value = (value ^ (value >> _THIRTY_THREE)) * _SECOND
    return value ^ (value >> _THIRTY_THREE)


@compiled
def count(hashes: Hashes, salt: np.uint64) -> tuple[Hashes, npt.NDArray[np.float64]]:
    """The distinct hashes in the order they come first, and how often each occurs; shapes (m,).

    ``salt`` should be secret. The result does not depend on ``salt``. But without a salt, words can be chosen
    whose hashes all want one slot. For 40,000 such words the time was 1.2 s, and the time grows with the
    square.
    """
    slots = 16
    while slots < 2 * hashes.size:
        slots *= 2
    mask = np.uint64(slots - 1)
    place_of = np.full(slots, -1, dtype=np.int64)
    distinct = np.empty(hashes.size, dtype=np.uint64)
    counts = np.empty(hashes.size, dtype=np.float64)
    found = 0
    for i in range(hashes.size):
        value = hashes[i]
        slot = mix(value ^ salt) & mask
        while place_of[slot] >= 0 and distinct[place_of[slot]] != value:
            slot = (slot + np.uint64(1)) & mask
        place = place_of[slot]
        if place < 0:
            place_of[slot] = found
            distinct[found] = value
            counts[found] = 1.0
            found += 1
        else:
            counts[place] += 1.0
    return distinct[:found].copy(), counts[:found].copy()


@compiled
def shingles(hashes: Hashes, width: int) -> Hashes:
    """A hash for each run of ``width`` words, in their order; one of all words if they are fewer. Shape (n −
    width + 1,).
    """
    length = min(width, hashes.size)
    if length == 0:
        return np.empty(0, dtype=np.uint64)
    made = np.empty(hashes.size - length + 1, dtype=np.uint64)
    for i in range(made.size):
        value = np.uint64(length)
        for j in range(length):
            # Adding the step makes the place of a word count: "a b" and "b a" are two shingles.
            value = mix(value + _STEP) ^ hashes[i + j]
        made[i] = mix(value)
    return made


@compiled
def minwise(elements: Hashes, size: int) -> Hashes:
    """The sketch of a non-empty set of hashes, in any order and repeated at will; see
    :func:`neardup.fingerprint.sketch.minwise`.

    The sketch takes few turns, unless hashes are repeated or chosen so that a place stays empty. Then
    repeated hashes are drawn once. After ``_FEW`` draws a place, only the least ``_FEW`` hashes are drawn.
    That many draws leave one of 1,024 places empty for one set in 10^24.
    """
    nothing = ~np.uint64(0)
    values = np.full(size, nothing, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    empty = size
    turn = 0
    while empty > 0:
        if elements.size > _FEW and elements.size * turn > _FEW * size:
            elements = np.unique(elements)
            if elements.size * turn > _FEW * size:
                elements = elements[:_FEW].copy()
        salt = np.uint64(turn) * _STEP
        stamp = np.uint64(turn) << half
        for i in range(elements.size):
            drawn = mix(elements[i] + salt)
            place = np.int64(turn - size)
            if turn < size:
                place = np.int64(((drawn >> half) * np.uint64(size)) >> half)
            value = stamp | (drawn & low)
            if value < values[place]:
                if values[place] == nothing:
                    empty -= 1
                values[place] = value
        turn += 1
    return values
