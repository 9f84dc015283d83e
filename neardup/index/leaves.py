"""Comparing a fingerprint with those of leaves, compiled by numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled, lean
from neardup.index.kernels import CHILDREN, COUNT, DEEPEST, LINE, NODE, SHIFT, popcount, signed

if TYPE_CHECKING:
    import numpy.typing as npt

_LINE_BITS = np.uint64(3)


@lean
def compare(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    head: np.uint64,
    value: np.uint64,
    max_distance: int,
    most: int,
    matches: npt.NDArray[np.uint64],
    found: int,
) -> int:
    """Compare a fingerprint with those of one leaf, until there are ``most`` matches; returns their number so far."""
    first, count = head >> SHIFT << _LINE_BITS, head & COUNT
    near = 0
    for i in range(count):  # unsigned, and nothing but a sum: this becomes vector code
        near += popcount(values[first + np.uint64(i)] ^ value) <= max_distance
    if near > 0:
        for slot in range(signed(first), signed(first + count)):
            distance = popcount(values[slot] ^ value)
            if distance <= max_distance:
                if found < matches.shape[0]:
                    matches[found, 0] = rows[slot]
                    matches[found, 1] = values[slot]
                    matches[found, 2] = np.uint64(distance)
                found += 1
                if found >= most:
                    break
    return found


@compiled
def nearest(
    heads: npt.NDArray[np.uint64],
    values: npt.NDArray[np.uint64],
    numbers: npt.NDArray[np.uint32],
    value: np.uint64,
    rows: int,
    but: int,
) -> int:
    """Smallest distance to any fingerprint under a row below ``rows`` other than ``but``; 65 if there is none.

    Another thread may change the tree meanwhile, and exchange the arrays for larger ones: nothing is read outside of these.
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
            for slot in range(first, min(first + signed(head & COUNT), values.size, numbers.size)):
                distance = popcount(values[slot] ^ value)
                if distance < smallest and np.int64(numbers[slot]) < rows and np.int64(numbers[slot]) != but:
                    smallest = distance
    return smallest
