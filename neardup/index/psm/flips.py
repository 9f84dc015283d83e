"""Which bits to flip for a query, most probable combinations first.

The bits of a near-duplicate's fingerprint that differ are weak bits (Sood, section IV.A). The flip
probability of each bit is estimated from the query's own bit weights. Combinations of bits are written down
in falling probability until the wanted share of all near-duplicates is covered.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from neardup import native

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    Reals = npt.NDArray[np.float64]

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

_BAND = 0.25
_SORTED_AT_ONCE = 48
_NEGLIGIBLE = 1e-15


def flip_odds(weights: Reals, max_distance: int) -> Reals:
    """Odds of each bit to differ in a near-duplicate at ``max_distance``; ``weights`` and odds have shape
    (64,).
    """
    # A cumulated sum is rounded after each addition, as in a loop.
    squares = np.cumsum(weights * weights)[-1]
    scale = FLIP_SLOPE / ((max_distance + 1) * math.sqrt(squares)) if squares > 0.0 else 0.0
    falling = 1.0 / (1.0 + scale * np.abs(weights))
    falling *= falling
    falling *= falling
    return np.asarray(falling * falling)


@native.twin
def plan_flips(
    weights: Reals, prefix_bits: int, max_distance: int, recall: float, most: int
) -> tuple[npt.NDArray[np.uint64], Reals]:
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

    - ``weights``: shape (64,), finite.
    - ``prefix_bits``: 0 to 64; ``max_distance``: 0 to 16.
    - ``most``: combinations that are written down at most, 1 or more.

    Returns the combinations as masks of fingerprint bits and their probabilities, unnormalised, both of shape
    (m,). The native twin raises ValueError for arguments that are not of this form.
    """
    odds = flip_odds(weights, max_distance)
    order = np.argsort(-odds[:prefix_bits], kind="stable")
    weakest = [(float(odds[j]), 1 << (63 - int(j))) for j in order]
    front = _sums_of_products(odds[:prefix_bits], max_distance)
    behind = _sums_of_products(odds[prefix_bits:], max_distance)[::-1]
    whole = _sum((front * behind).tolist())
    found = [(float(behind[0]), 0)]
    if behind[0] < recall * whole and weakest and max_distance > 0:
        _add_bands(_Walk(weakest, behind.tolist()), found, recall, whole, most)
    chances, flips = zip(*found, strict=True)
    return np.array(flips, dtype=np.uint64), np.array(chances)


def _sums_of_products(odds: Reals, largest: int) -> Reals:
    """Sums over all sets of s bits of the product of their odds, s = 0 … largest."""
    sums = np.zeros(largest + 1)
    sums[0] = 1.0
    for odd in odds:
        sums[1:] += odd * sums[:-1]
    return sums


def _sum(numbers: Iterable[float]) -> float:
    """The sum, rounded after each addition: ``sum`` is more exact from Python 3.12 on."""
    return functools.reduce(operator.add, numbers, 0.0)


class _Walk:
    """The way through all combinations of the prefix's bits.

    - ``weakest``: odds and mask of each bit, weakest first.
    - ``behind``: E(h - s) at s, for s = 0 … h.
    """

    def __init__(self, weakest: list[tuple[float, int]], behind: list[float]) -> None:
        self._weakest, self._behind = weakest, behind
        self._largest = min(len(weakest), len(behind) - 1)
        self._best = self._best_below()
        self.highest = self._best[0][0]
        """The largest probability of a combination that is not empty."""

    def _best_below(self) -> list[list[float]]:
        """best[s][r]: what a set of s bits gains at most by taking in the bit of rank r and any of higher
        ranks.

        Falls with r, so the walk may turn back at the first rank that does not reach the threshold.
        """
        best = [[0.0] * (len(self._weakest) + 1) for _ in range(self._largest + 1)]
        for size in range(self._largest - 1, -1, -1):
            for rank, (odd, _) in enumerate(self._weakest):
                best[size][rank] = odd * max(self._behind[size + 1], best[size + 1][rank + 1])
        return best

    def band(
        self, low: float, high: float, size: int = 0, rank: int = 0, product: float = 1.0, flipped: int = 0
    ) -> Iterator[tuple[float, int]]:
        """Probabilities in [low, high) and their combinations, in the order of index vectors.

        The combinations take in one or more bits from ``rank`` on, besides the ``size`` bits ``flipped``.
        """
        for following in range(rank, len(self._weakest)):
            if product * self._best[size][following] < low:
                return
            odd, mask = self._weakest[following]
            chance = product * odd * self._behind[size + 1]
            if low <= chance < high:
                yield chance, flipped | mask
            if size + 1 < self._largest:
                yield from self.band(low, high, size + 1, following + 1, product * odd, flipped | mask)


def _add_bands(walk: _Walk, found: list[tuple[float, int]], recall: float, whole: float, most: int) -> None:
    """Add combinations to ``found``, which has the empty one, until they cover ``recall`` of the whole."""
    target, covered = recall * whole, found[0][0]
    high, low = math.inf, walk.highest * _BAND if recall < 1.0 else 0.0
    while len(found) < most:
        band = list(itertools.islice(walk.band(low, high), most - len(found)))
        mass = _sum(chance for chance, _ in band)
        if covered + mass >= target and recall < 1.0:
            top = min(high, walk.highest)
            if len(band) <= _SORTED_AT_ONCE or low > 0.99 * top:
                found += _cut(band, covered, target)
                return
            low = math.sqrt(low * top)
            continue
        found += band
        covered += mass
        if low <= whole * _NEGLIGIBLE:
            return
        high, low = low, low * _BAND


def _cut(band: list[tuple[float, int]], covered: float, target: float) -> list[tuple[float, int]]:
    """The most probable of the last band, one after the other, until the target is covered (selection)."""
    for taken in range(len(band)):
        # Of equally probable ones the first.
        top = max(range(taken, len(band)), key=lambda place: band[place][0])
        band[taken], band[top] = band[top], band[taken]
        covered += band[taken][0]
        if covered >= target:
            return band[: taken + 1]
    return band
