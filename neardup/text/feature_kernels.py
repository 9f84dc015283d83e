"""Loops over hashed words: frequencies, shingles and the min-wise sketch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup import native

if TYPE_CHECKING:
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_THIRTY_THREE = np.uint64(33)

_FEW = 64
"""Elements that a sketch may be drawn from as often as it takes: at most twice for each of its places."""


def _mix(values: Hashes) -> Hashes:
    """A fixed permutation of the 64-bit integers that looks random (the finaliser of murmur3)."""
    values = (values ^ (values >> _THIRTY_THREE)) * _FIRST
    values = (values ^ (values >> _THIRTY_THREE)) * _SECOND
    return values ^ (values >> _THIRTY_THREE)


@native.twin
def count(hashes: Hashes, salt: np.uint64) -> tuple[Hashes, npt.NDArray[np.float64]]:
    """The distinct hashes in the order they come first, and how often each occurs; shapes (m,).

    ``salt`` should be secret. The result does not depend on ``salt``. But without a salt, words can be chosen
    whose hashes all want one slot of the native table. For 40,000 such words the time was 1.2 s, and the time
    grows with the square.
    """
    distinct, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    order = np.argsort(first)
    return distinct[order], counts[order].astype(np.float64)


@native.twin
def shingles(hashes: Hashes, width: int) -> Hashes:
    """A hash for each run of ``width`` words, in their order; one of all words if they are fewer. Shape (n −
    width + 1,).

    Raises ValueError if ``width`` is below 1.
    """
    if width < 1:
        raise ValueError(f"a shingle has one word or more, not {width}")
    length = min(width, hashes.size)
    if length == 0:
        return np.empty(0, dtype=np.uint64)
    size = hashes.size - length + 1
    values = np.full(size, length, dtype=np.uint64)
    for j in range(length):
        # Adding the step makes the place of a word count: "a b" and "b a" are two shingles.
        values = _mix(values + _STEP) ^ hashes[j : j + size]
    return _mix(values)


def minwise(elements: Hashes, size: int) -> Hashes:
    """The sketch that :func:`draw` makes."""
    return draw(elements, size)[0]


@native.twin
def draw(elements: Hashes, size: int) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """The sketch of a non-empty set of hashes, in any order and repeated at will, and its :func:`holders`.

    See :func:`neardup.fingerprint.sketch.minwise`.

    The sketch takes few turns, unless hashes are repeated or chosen so that a place stays empty. Then
    repeated hashes are drawn once. After ``_FEW`` draws a place, only the least ``_FEW`` hashes are drawn.
    That many draws leave one of 1,024 places empty for one set in 10^24.

    Raises ValueError if there are no elements, no places, or 2^32 places or more.
    """
    if elements.size == 0 or not 0 < size < 1 << 32:
        raise ValueError("a sketch needs at least one element and one place, and fewer than 2**32 places")
    nothing = np.uint64(0xFFFFFFFFFFFFFFFF)
    values = np.full(size, nothing)
    left, turn = elements, 0
    while (values == nothing).any():
        if left.size > _FEW and left.size * turn > _FEW * size:
            left = np.unique(left)
            if left.size * turn > _FEW * size:
                left = left[:_FEW]
        # A turn too many does no harm: what it draws is above all that was drawn before.
        turns = np.arange(turn, turn + (1 if left.size > _FEW else _FEW), dtype=np.uint64)[:, None]
        places, drawn = _drawn(left, turns, size)
        np.minimum.at(values, places, drawn)
        turn += turns.size
    return values, holders(elements, values)


def _drawn(elements: Hashes, turns: Hashes, size: int) -> tuple[Hashes, Hashes]:
    """The place of each element in some turns, shape (t, 1), and what stands there; shapes (t, n)."""
    half = np.uint64(32)
    drawn = _mix(elements + turns * _STEP)
    fixed = np.minimum(turns - np.uint64(size), np.uint64(size - 1))
    places = np.where(turns < size, ((drawn >> half) * np.uint64(size)) >> half, fixed)
    return places, (turns << half) | (drawn & np.uint64(0xFFFFFFFF))


def holders(elements: Hashes, sketch: Hashes) -> npt.NDArray[np.int64]:
    """The row of the element that holds each place of a sketch that :func:`draw` drew of the elements; of
    equal elements the last. Shape (size,).

    An element holds a place that has its hash of the turn in which the place was filled. The turns are those
    of :func:`draw`, with the same elements.
    """
    made = np.empty(sketch.size, dtype=np.int64)
    rows = np.arange(elements.size)
    turn, turns = 0, int(sketch.max() >> np.uint64(32)) + 1
    while turn < turns:
        if elements.size > _FEW and elements.size * turn > _FEW * sketch.size:
            _, last = np.unique(elements[::-1], return_index=True)
            last = elements.size - 1 - last
            if last.size * turn > _FEW * sketch.size:
                last = last[:_FEW]
            elements, rows = elements[last], rows[last]
        end = turns if elements.size <= _FEW else min(turns, _FEW * sketch.size // elements.size + 1)
        found = match(elements, sketch, turn, end)
        held = found >= 0
        made[held] = rows[found[held]]
        turn = end
    return made


@native.twin
def match(elements: Hashes, sketch: Hashes, first: int, end: int) -> npt.NDArray[np.int64]:
    """The row of the last element that holds each place of a sketch; shape (size,).

    The row is -1 at the places that were not filled in the turns ``[first, end)``.
    """
    found = np.full(sketch.size, -1)
    for turn in range(first, end):
        places, drawn = _drawn(elements, np.array([[turn]], dtype=np.uint64), sketch.size)
        rows = np.flatnonzero(sketch[places[0]] == drawn[0])
        found[places[0][rows]] = rows
    return found
