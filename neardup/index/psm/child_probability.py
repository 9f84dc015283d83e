"""How the probability that a near-duplicate lies below a node is shared among its children. Compiled by
numba; the caller owns every array.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import lean
from neardup.index.psm.tree import CHILDREN, STEP

if TYPE_CHECKING:
    import numpy.typing as npt

LEVELS = 22
"""Levels of the tree, the root's and the deepest included; the last has one bit."""

PAD = STEP
"""Zeros before the sums of a level, for budgets that are overdrawn."""

FLIPPED = np.array([pattern.bit_count() for pattern in range(CHILDREN)], dtype=np.int64)


@lean
def sums_behind(
    odds: npt.NDArray[np.float64],
    max_distance: int,
    behind: npt.NDArray[np.float64],
    patterns: npt.NDArray[np.float64],
) -> None:
    """behind[level, PAD + s]: sum over all sets of s bits behind that level's prefix of the product of their
    odds.

    patterns[level, b]: product of the odds of the bits of a level that are set in b. Shapes: ``odds`` (64,),
    ``behind`` (LEVELS + 1, more than PAD + max_distance), zeros before PAD; ``patterns`` (LEVELS, at least
    8).
    """
    behind[LEVELS, PAD] = 1.0
    for level in range(LEVELS - 1, -1, -1):
        bit = STEP * level
        high, middle, low = odds[bit], 0.0, 0.0
        if bit + 2 < 64:
            middle, low = odds[bit + 1], odds[bit + 2]
        row = patterns[level]
        row[0], row[1], row[2], row[3] = 1.0, low, middle, middle * low
        row[4], row[5], row[6], row[7] = high, high * low, high * middle, high * (middle * low)
        ones, twos, threes = (high + middle) + low, row[3] + (row[5] + row[6]), row[7]
        below, sums = behind[level + 1], behind[level]
        for s in range(PAD, PAD + max_distance + 1):
            sums[s] = (below[s] + ones * below[s - 1]) + (twos * below[s - 2] + threes * below[s - 3])


@lean
def divide_among_children(
    level: int,
    max_distance: int,
    behind: npt.NDArray[np.float64],
    patterns: npt.NDArray[np.float64],
    chances: npt.NDArray[np.float64],
) -> None:
    """chances[level, budget, b]: the probability of a child reached by flipping b, divided by the product of
    the odds of the bits flipped before.

    ``budget``: bits that are left to flip at the level. Shape of ``chances``: (at least LEVELS, more than
    max_distance, 8).
    """
    sums, row = behind[level + 1], patterns[level]
    for budget in range(max_distance + 1):
        s = budget + PAD
        none, one, two, three = sums[s], sums[s - 1], sums[s - 2], sums[s - 3]
        share = chances[level, budget]
        share[0], share[1], share[2], share[3] = none, row[1] * one, row[2] * one, row[3] * two
        share[4], share[5], share[6], share[7] = row[4] * one, row[5] * two, row[6] * two, row[7] * three
