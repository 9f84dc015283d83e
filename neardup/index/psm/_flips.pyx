"""Which bits to flip for a query, most probable combinations first; see flips.py."""

import numpy as np

from libc.math cimport INFINITY, sqrt
from libc.stdint cimport uint64_t


cdef double BAND = 0.25
cdef double NEGLIGIBLE = 1e-15
cdef Py_ssize_t SORTED_AT_ONCE = 48


# The bits of the prefix, weakest first, and what a walk over their combinations needs.
cdef struct Prefix:
    int bits
    int largest
    double[64] odds
    uint64_t[64] masks
    double[MOST_DISTANCE + 1] behind  # behind[s]: what is left to differ where s bits of the prefix do
    double[MOST_DISTANCE + 1][65] best  # best[s][r]: what a set of s bits gains at most by ranks from r on


# Chances from ``low`` to below ``high``.
cdef struct Band:
    double low
    double high


def plan_flips(const double[::1] weights, int prefix_bits, int max_distance, double recall, Py_ssize_t most):
    check(weights, prefix_bits, max_distance)
    if most < 1:
        raise ValueError(f"there must be room for a combination at least, not for {most}")
    masks, chances = np.empty(most, dtype=np.uint64), np.empty(most)
    cdef uint64_t[::1] all_masks = masks
    cdef double[::1] all_chances = chances
    cdef Flips flips = Flips(&all_masks[0], &all_chances[0], most, 0)
    with nogil:
        write_flips(&weights[0], Wanted(prefix_bits, max_distance, recall), &flips)
    return masks[:flips.count].copy(), chances[:flips.count].copy()


cdef check(const double[::1] weights, int prefix_bits, int max_distance):
    if weights.shape[0] != 64:
        raise ValueError(f"weights must be those of 64 bits, not of {weights.shape[0]}")
    if not 0 <= prefix_bits <= 64:
        raise ValueError(f"a prefix has 0 to 64 bits, not {prefix_bits}")
    if not 0 <= max_distance <= MOST_DISTANCE:
        raise ValueError(f"max_distance must be between 0 and {MOST_DISTANCE}, not {max_distance}")


cdef void write_flips(const double *weights, Wanted wanted, Flips *flips) noexcept nogil:
    cdef Prefix prefix
    cdef double whole = prepare(weights, wanted, &prefix)
    cdef double target = wanted.recall * whole
    cdef double covered = prefix.behind[0]
    cdef bint all_of_them = not wanted.recall < 1.0
    flips.masks[0] = 0
    flips.chances[0] = covered
    flips.count = 1
    if not covered < target or prefix.largest == 0:  # nor if a weight is no number
        return
    cdef double most = best_below(&prefix)
    cdef Band band = Band(low=0.0 if all_of_them else most * BAND, high=INFINITY)
    cdef Py_ssize_t start
    cdef double mass, top
    while flips.count < flips.most:
        start = flips.count
        mass = walk(&prefix, band, flips)
        if covered + mass >= target and not all_of_them:
            top = min(band.high, most)
            if flips.count - start <= SORTED_AT_ONCE or band.low > 0.99 * top:
                cut(flips, start, covered, target)
                return
            band.low = sqrt(band.low * top)
            flips.count = start
            continue
        covered += mass
        if band.low <= whole * NEGLIGIBLE:
            return
        band.high = band.low
        band.low *= BAND


cdef double prepare(const double *weights, Wanted wanted, Prefix *prefix) noexcept nogil:
    """Fill ``prefix`` but for ``best``; returns the sum of the odds of all sets of ``max_distance`` bits."""
    cdef double[64] odds
    cdef double[MOST_DISTANCE + 1] front
    cdef double[MOST_DISTANCE + 1] sums
    cdef double whole = 0.0
    cdef int size
    flip_odds(weights, wanted.max_distance, odds)
    prefix.bits = wanted.prefix_bits
    prefix.largest = min(wanted.max_distance, wanted.prefix_bits)
    sort_weakest_first(odds, prefix)
    sum_products(odds, 0, wanted.prefix_bits, wanted.max_distance, front)
    sum_products(odds, wanted.prefix_bits, 64, wanted.max_distance, sums)
    for size in range(wanted.max_distance + 1):
        prefix.behind[size] = sums[wanted.max_distance - size]
        whole += front[size] * prefix.behind[size]
    return whole


cdef void sort_weakest_first(const double *odds, Prefix *prefix) noexcept nogil:
    cdef int position, at
    for position in range(prefix.bits):
        at = position
        while at > 0 and prefix.odds[at - 1] < odds[position]:
            prefix.odds[at] = prefix.odds[at - 1]
            prefix.masks[at] = prefix.masks[at - 1]
            at -= 1
        prefix.odds[at] = odds[position]
        prefix.masks[at] = <uint64_t>1 << (63 - position)


cdef void sum_products(const double *odds, int first, int last, int largest, double *sums) noexcept nogil:
    """Sums over all sets of s bits in [first, last) of the product of their odds, s = 0 … largest."""
    cdef double[64] below  # sums over sets of ``size`` bits, before each bit
    cdef double one, two, three, four, before
    cdef double[4] made
    cdef int j, size, i
    sums[0] = 1.0
    for j in range(first, last):
        below[j] = 1.0
    for size in range(0, largest, 4):
        # Four sums that stay in registers.
        one = two = three = four = 0.0
        for j in range(first, last):
            before = four
            four += odds[j] * three
            three += odds[j] * two
            two += odds[j] * one
            one += odds[j] * below[j]
            below[j] = before
        made[0], made[1], made[2], made[3] = one, two, three, four
        for i in range(min(4, largest - size)):
            sums[size + 1 + i] = made[i]


cdef double best_below(Prefix *prefix) noexcept nogil:
    """Fill ``prefix.best``; returns the largest chance."""
    cdef int size, rank
    for rank in range(prefix.bits + 1):
        prefix.best[prefix.largest][rank] = 0.0
    for size in range(prefix.largest - 1, -1, -1):
        prefix.best[size][prefix.bits] = 0.0
        for rank in range(prefix.bits - 1, -1, -1):
            prefix.best[size][rank] = prefix.odds[rank] * max(
                prefix.behind[size + 1], prefix.best[size + 1][rank + 1]
            )
    return prefix.best[0][0]


# A place of the walk: the bits flipped so far, and the rank of the next one.
cdef struct Branch:
    double product
    uint64_t flipped
    int rank


cdef double walk(const Prefix *prefix, Band band, Flips *flips) noexcept nogil:
    """Append the combinations of a band, so far as there is room; returns the sum of their chances."""
    cdef Branch[MOST_DISTANCE] left
    cdef Branch here = Branch(1.0, 0, 0)
    cdef Branch further
    cdef double chance, mass = 0.0
    cdef int size = 0
    while True:
        # The bound behind the last rank is 0, which a threshold of 0 does not rule out.
        if here.rank == prefix.bits or here.product * prefix.best[size][here.rank] < band.low:
            if size == 0:
                return mass
            size -= 1
            here = left[size]
            continue
        further.product = here.product * prefix.odds[here.rank]
        further.flipped = here.flipped | prefix.masks[here.rank]
        here.rank += 1
        further.rank = here.rank
        chance = further.product * prefix.behind[size + 1]
        if band.low <= chance < band.high:
            if flips.count == flips.most:
                return mass
            flips.masks[flips.count] = further.flipped
            flips.chances[flips.count] = chance
            flips.count += 1
            mass += chance
        if size + 1 < prefix.largest:
            left[size] = here
            here = further
            size += 1


cdef void cut(Flips *flips, Py_ssize_t start, double covered, double target) noexcept nogil:
    """Keep the most probable of the last band, until they cover the target (selection)."""
    cdef Py_ssize_t taken, top, i
    for taken in range(start, flips.count):
        top = taken
        for i in range(taken + 1, flips.count):
            if flips.chances[i] > flips.chances[top]:
                top = i
        flips.masks[taken], flips.masks[top] = flips.masks[top], flips.masks[taken]
        flips.chances[taken], flips.chances[top] = flips.chances[top], flips.chances[taken]
        covered += flips.chances[taken]
        if covered >= target:
            flips.count = taken + 1
            return
