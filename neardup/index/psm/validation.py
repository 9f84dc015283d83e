"""Whether the arrays of a PSM index, read from a file, are one. Compiled by numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled
from neardup.index.psm.leaf_allocator import FREE, LINE, lines_for
from neardup.index.psm.tree import (
    CHILDREN,
    COPIES_FROM,
    COUNT,
    DEEPEST,
    DEPTH,
    FULLEST,
    NODE,
    NODES,
    SHIFT,
    SIZE,
    signed,
)

if TYPE_CHECKING:
    import numpy.typing as npt


@compiled
def is_valid(
    heads: npt.NDArray[np.uint64],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    pages: int,
) -> bool:
    """Whether a tree read from a file leads nowhere outside of itself.

    - Each node has one place.
    - Each line is free or belongs to one leaf.
    - No leaf is fuller than it may be.
    - Each row is below ``pages``.
    - ``state`` says the same.

    The arrays must be as long as ``state`` says.
    """
    met, taken = np.zeros(state[NODES], dtype=np.bool_), free != 0
    freed, size, deepest = np.count_nonzero(taken), 0, 0
    stack = np.zeros((CHILDREN * (DEEPEST + 1), 2), dtype=np.int64)  # of places and levels, first the root's
    waiting = 1
    while waiting > 0:
        waiting -= 1
        place, level = stack[waiting]
        head = heads[place]
        if head & NODE:
            node = signed(head & COUNT)
            if not 0 < node < met.size or met[node] or level == DEEPEST:
                return False
            met[node] = True
            deepest = max(deepest, level + 1)
            for child in range(CHILDREN):
                stack[waiting, 0], stack[waiting, 1] = node * CHILDREN + child, level + 1
                waiting += 1
        else:
            line, count = signed(head >> SHIFT), signed(head & COUNT)
            end = line + lines_for(count)
            if end > taken.size or (count > FULLEST and level < COPIES_FROM) or (count == 0 and line > 0):
                return False
            if taken[line:end].any() or (rests[line * LINE :][:count] & COUNT >= pages).any():
                return False
            taken[line:end] = True
            size += count
    whole = met[1:].all() and taken.all()
    return bool(whole and state[SIZE] == size and state[FREE] == freed and state[DEPTH] == deepest)
