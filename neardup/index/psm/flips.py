"""Which bits to flip for a query, most probable combinations first. Compiled by numba; the caller owns every
array.

The bits of a near-duplicate's fingerprint that differ are weak bits (Sood, section IV.A). The flip
probability of each bit is estimated from the query's own bit weights. Combinations of bits are written down
in falling probability until the wanted share of all near-duplicates is covered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled, lean

if TYPE_CHECKING:
    import numpy.typing as npt

FLIP_SLOPE = 28.0
"""How fast a bit's flip odds fall with its relative weight.

Let x = |W_j|/‖W‖ be the relative weight. Among pairs at distance h, the odds are (1 + FLIP_SLOPE / (h + 1) ·
x)^-8.

Eq. 4.5 estimates the flip probability as 1 - x. That ranks the bits but gives an average bit (x = 0.1) a
probability of 0.9. Pairs differ by edits of very different sizes, so the normal curve of eq. 4.4 is too thin
in its tail.

The farther apart pairs are, the less do the bits in which they differ have to be weak ones. The factor of x
can be fitted at each distance by itself. The likeliest factors at distance 1 to 10 are then 12, 8, 6, 5, 5,
4, 4, 3, 3 and 3.

Three forms with their slopes were tried on 155,000 pairs at distance 1 to 10. The pairs are from six Debian
manuals: libstdc++, OpenJDK, cppreference, Linux, Erlang, PostgreSQL with Python. This form and its slope have
nearly the largest likelihood. The pages of Clang, Kafka and LLVM, on which recall is reported, were kept out.
"""

WORK_ROWS = 24
_BAND = 0.25
_SORTED_AT_ONCE = 48
_NEGLIGIBLE = 1e-15
_ONE = np.uint64(1)


def workspace() -> npt.NDArray[np.float64]:
    """Scratch memory of :func:`plan_flips`; one for each thread."""
    return np.zeros((WORK_ROWS, 66))


@lean
def flip_odds(weights: npt.NDArray[np.float64], max_distance: int, odds: npt.NDArray[np.float64]) -> None:
    """Odds of each bit to differ in a near-duplicate at ``max_distance``; ``weights`` and ``odds`` have shape
    (64,).
    """
    squares = 0.0
    for j in range(64):
        squares += weights[j] * weights[j]
    scale = FLIP_SLOPE / ((max_distance + 1) * np.sqrt(squares)) if squares > 0.0 else 0.0
    for j in range(64):
        falling = 1.0 / (1.0 + scale * abs(weights[j]))
        falling *= falling
        falling *= falling
        odds[j] = falling * falling


@lean
def _sort_weakest_first(
    odds: npt.NDArray[np.float64],
    prefix_bits: int,
    weakest: npt.NDArray[np.float64],
    masks: npt.NDArray[np.uint64],
) -> None:
    """Odds of the p leading bits in falling order, and the fingerprint bit each belongs to."""
    for position in range(prefix_bits):
        value = odds[position]
        at = position
        while at > 0 and weakest[at - 1] < value:
            weakest[at] = weakest[at - 1]
            masks[at] = masks[at - 1]
            at -= 1
        weakest[at] = value
        masks[at] = _ONE << np.uint64(63 - position)


@lean
def take_in(odd: float, largest: int, sums: npt.NDArray[np.float64]) -> None:
    """Add a bit to sums[s], the sums over all sets of s bits of the product of their odds, s =
    0 … largest.
    """
    for size in range(largest, 0, -1):
        sums[size] += odd * sums[size - 1]


@lean
def _sums_of_products(
    odds: npt.NDArray[np.float64], first: int, last: int, largest: int, sums: npt.NDArray[np.float64]
) -> None:
    """Sums over all sets of s bits in [first, last) of the product of their odds, s = 0 … largest."""
    sums[: largest + 1] = 0.0
    sums[0] = 1.0
    for j in range(first, last):
        take_in(odds[j], largest, sums)


@compiled
def plan_flips(
    weights: npt.NDArray[np.float64],
    prefix_bits: int,
    max_distance: int,
    recall: float,
    work: npt.NDArray[np.float64],
    masks: npt.NDArray[np.uint64],
    flips: npt.NDArray[np.uint64],
    chances: npt.NDArray[np.float64],
) -> int:
    """Write down the combinations of prefix bits to flip, in falling probability, until they cover
    ``recall``.

    Let E(s) be the sum of the odds of all sets of s bits behind the prefix. Let E' be that of all sets of h
    bits. A near-duplicate at exactly ``max_distance`` (h) differs in the set B of prefix bits with
    probability odds(B) · E(h - |B|) / E'. This is eq. 4.6 under the condition that h bits differ. Nearer
    duplicates are found sooner, if more than h bits are behind the prefix. The first combination is the empty
    one, so that an exact twin is always found.

    The thesis takes combinations out of a heap (section IV.B, algorithm 2). Here a walk over index vectors
    (r1 < r2 < …, weakest bit first) writes down the combinations above a threshold. The walk turns back where
    nothing below can reach the threshold, and the threshold falls by bands. The order is the same.

    - ``work``: of :func:`workspace`.
    - ``masks``: shape (192,).
    - ``flips``, ``chances``: same shape (m,); ``flips`` receives the combinations as masks of fingerprint
      bits, ``chances`` the probabilities of the combinations, unnormalised.

    Returns the number of combinations, at most m.
    """
    odds, weakest, behind, front = work[0], work[1], work[2], work[3]
    flip_odds(weights, max_distance, odds)
    _sort_weakest_first(odds, prefix_bits, weakest, masks)
    _sums_of_products(odds, prefix_bits, 64, max_distance, behind)
    _sums_of_products(odds, 0, prefix_bits, max_distance, front)
    whole = 0.0
    for size in range(max_distance + 1):
        whole += front[size] * behind[max_distance - size]
    target = recall * whole
    flips[0] = np.uint64(0)
    chances[0] = covered = behind[max_distance]
    count = 1
    largest = min(max_distance, prefix_bits)
    if covered >= target or largest == 0:
        return count
    best = work[4:]
    _best_below(weakest, prefix_bits, largest, max_distance, behind, best)
    high = np.inf
    low = best[0, 0] * _BAND if recall < 1.0 else 0.0
    while count < flips.size:
        end, mass = _walk(
            weakest, prefix_bits, largest, max_distance, behind, best, low, high, masks, flips, chances, count
        )
        if covered + mass >= target and recall < 1.0:
            top = min(high, best[0, 0])
            if end - count <= _SORTED_AT_ONCE or low > 0.99 * top:
                return _cut(flips, chances, count, end, covered, target)
            low = np.sqrt(low * top)
            continue
        covered += mass
        count = end
        if low <= whole * _NEGLIGIBLE:
            break
        high = low
        low *= _BAND
    return count


@lean
def _best_below(
    weakest: npt.NDArray[np.float64],
    prefix_bits: int,
    largest: int,
    max_distance: int,
    behind: npt.NDArray[np.float64],
    best: npt.NDArray[np.float64],
) -> None:
    """best[s, r]: what a set of s bits gains at most by taking in the bit of rank r and any of higher ranks.

    Falls with r, so the walk may turn back at the first rank that does not reach the threshold.
    """
    best[largest, : prefix_bits + 1] = 0.0
    for size in range(largest - 1, -1, -1):
        best[size, prefix_bits] = 0.0
        alone = behind[max_distance - size - 1]
        for rank in range(prefix_bits - 1, -1, -1):
            best[size, rank] = weakest[rank] * max(alone, best[size + 1, rank + 1])


@compiled
def _walk(
    weakest: npt.NDArray[np.float64],
    prefix_bits: int,
    largest: int,
    max_distance: int,
    behind: npt.NDArray[np.float64],
    best: npt.NDArray[np.float64],
    low: float,
    high: float,
    masks: npt.NDArray[np.uint64],
    flips: npt.NDArray[np.uint64],
    chances: npt.NDArray[np.float64],
    count: int,
) -> tuple[int, float]:
    """Append all combinations with a chance in [low, high); returns their new number and the sum of their
    chances.
    """
    products = np.empty(17)
    ranks = np.empty(17, dtype=np.int64)
    flipped = masks[64:]
    products[0] = 1.0
    flipped[0] = np.uint64(0)
    ranks[0] = 0
    mass = 0.0
    size = 0
    while size >= 0:
        rank = ranks[size]
        if rank < prefix_bits and products[size] * best[size, rank] >= low:
            ranks[size] = rank + 1
            product = products[size] * weakest[rank]
            flip = flipped[size] | masks[rank]
            chance = product * behind[max_distance - size - 1]
            if low <= chance < high:
                if count == flips.size:
                    break
                flips[count] = flip
                chances[count] = chance
                count += 1
                mass += chance
            if size + 1 < largest:
                size += 1
                products[size] = product
                flipped[size] = flip
                ranks[size] = rank + 1
        else:
            size -= 1
    return count, mass


@lean
def _cut(
    flips: npt.NDArray[np.uint64],
    chances: npt.NDArray[np.float64],
    start: int,
    end: int,
    covered: float,
    target: float,
) -> int:
    """Take the most probable of the last band, one after the other, until the target is covered
    (selection).
    """
    for taken in range(start, end):
        top = taken
        for i in range(taken + 1, end):
            if chances[i] > chances[top]:
                top = i
        flips[taken], flips[top] = flips[top], flips[taken]
        chances[taken], chances[top] = chances[top], chances[taken]
        covered += chances[taken]
        if covered >= target:
            return taken + 1
    return end
