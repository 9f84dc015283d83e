"""How the probability that a near-duplicate lies below a node is shared among its children.

The native search (``_tree.pyx``) has the same sums, in the same order.
"""

from __future__ import annotations

STEP = 3
"""Bits a level of the tree."""

DEEPEST = 21
"""Level at which no bits are left that could divide a leaf (but the last): 63 bits are prefix."""

LEVELS = DEEPEST + 1
"""Levels of the tree, the root's and the deepest included; the last has one bit."""

PAD = STEP
"""Zeros before the sums of a level, for budgets that are overdrawn."""


def sums_behind(odds: list[float], max_distance: int) -> tuple[list[list[float]], list[list[float]]]:
    """Sums of products of the 64 odds that bits differ.

    Every set of s bits behind a level's prefix has a product of odds. The first result,
    ``behind[level][PAD + s]``, is the sum of these products, for s up to ``max_distance``. The second result,
    ``patterns[level][b]``, is the product of the odds of the bits of a level that are set in b.
    """
    behind = [[0.0] * (PAD + max_distance + 1) for _ in range(LEVELS + 1)]
    behind[LEVELS][PAD] = 1.0
    patterns = []
    for level in range(LEVELS - 1, -1, -1):
        bit = STEP * level
        high, middle, low = (*odds[bit : bit + STEP], 0.0, 0.0)[:STEP]
        row = [1.0, low, middle, middle * low, high, high * low, high * middle, high * (middle * low)]
        ones, twos, threes = (high + middle) + low, row[3] + (row[5] + row[6]), row[7]
        below = behind[level + 1]
        for s in range(PAD, PAD + max_distance + 1):
            behind[level][s] = (below[s] + ones * below[s - 1]) + (
                twos * below[s - 2] + threes * below[s - 3]
            )
        patterns.append(row)
    return behind, patterns[::-1]


def shares_of_children(behind: list[float], patterns: list[float], budget: int) -> list[float]:
    """Probability of each of eight children, by the bits that are flipped to reach it.

    The probability is divided by the product of the odds of the bits flipped before.

    - ``behind``: the sums of the children's level.
    - ``patterns``: those of the level itself.
    - ``budget``: bits that are left to flip.
    """
    return [
        chance * behind[budget + PAD - pattern.bit_count()] if pattern else behind[budget + PAD]
        for pattern, chance in enumerate(patterns)
    ]
