"""Comparing a fingerprint with those of leaves, compiled by numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled, lean
from neardup.index.psm.instructions import SIXTEEN, near_of_sixteen, trailing_zeros
from neardup.index.psm.leaf_allocator import LINE
from neardup.index.psm.tree import (
    CHILDREN,
    COUNT,
    DEEPEST,
    NODE,
    SHIFT,
    fingerprint_at,
    popcount,
    row_at,
    signed,
)

if TYPE_CHECKING:
    import numpy.typing as npt


@lean
def compare(
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    head: np.uint64,
    value: np.uint64,
    within: int,
    max_distance: int,
    most: int,
    matches: npt.NDArray[np.uint64],
    found: int,
) -> int:
    """Compare a fingerprint with those of one leaf, until there are ``most`` matches; returns their number so
    far.

    ``within``: in how many of their lower 32 bits matches can differ, at most ``max_distance``.
    """
    first, count = signed(head >> SHIFT) * LINE, signed(head & COUNT)
    low = np.uint32(value & COUNT)
    for at in range(0, count, SIXTEEN):
        # Beyond the last one there is memory, of other leaves or not in use.
        near = near_of_sixteen(lows, first + at, low, within) & ((1 << min(count - at, SIXTEEN)) - 1)
        while near:
            slot = first + at + trailing_zeros(near)
            near &= near - 1
            other = fingerprint_at(lows, rests, slot)
            distance = popcount(other ^ value)
            if distance <= max_distance:
                if found < matches.shape[0]:
                    matches[found, 0] = row_at(rests, slot)
                    matches[found, 1] = other
                    matches[found, 2] = np.uint64(distance)
                found += 1
                if found >= most:
                    return found
    return found


@compiled
def nearest(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    value: np.uint64,
    rows: int,
    but: int,
) -> int:
    """Smallest distance to any fingerprint under a row below ``rows`` other than ``but``; 65 if there is
    none.

    Another thread may change the tree meanwhile, and exchange the arrays for larger ones: nothing is read
    outside of these.
    """
    stack = np.empty(CHILDREN * (DEEPEST + 2), dtype=np.uint64)
    stack[0] = heads[0]
    waiting, smallest = 1, 65
    while waiting > 0:
        waiting -= 1
        head = stack[waiting]
        if head & NODE:
            first = signed(head & COUNT) * CHILDREN
            if first + CHILDREN <= heads.size and waiting + CHILDREN <= stack.size:
                for place in range(first, first + CHILDREN):
                    stack[waiting] = heads[place]
                    waiting += 1
        else:
            first = signed(head >> SHIFT) * LINE
            for slot in range(first, min(first + signed(head & COUNT), lows.size, rests.size)):
                distance = popcount(fingerprint_at(lows, rests, slot) ^ value)
                if distance < smallest and row_at(rests, slot) < rows and row_at(rests, slot) != but:
                    smallest = distance
    return smallest
