"""The hot loops of PSM, compiled by numba. No Python object is touched; the caller owns every array.

The table is an array of shape (slots, 2), dtype uint64: column 0 holds a fingerprint, column 1 its row number plus one,
0 marking an empty slot, so that a probe touches one run of memory. ``slots`` is 2^p buckets of ``BUCKET`` slots: a
fingerprint's home is the bucket of its p leading bits, and what does not fit goes to the next free slots (linear probing).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled

if TYPE_CHECKING:
    import numpy.typing as npt

BUCKET = 8

FLIP_SLOPE = 40.0
"""Decay of a bit's flip odds with its relative weight: odds(j) = exp(-FLIP_SLOPE · |W_j| / ‖W‖).

Eq. 4.5 estimates the flip probability as 1 - |W_j|/‖W‖, which ranks the bits but gives an average bit (relative weight
0.1) a probability of 0.9. Its exponential form keeps the ranking; the slope was fitted to the pairs at distance 1 to 3
of the LLVM 15 and 16 manuals, the hardest of four real sets (most pairs at distance 3): targets of 0.90, 0.95 and 0.99
reached 0.904, 0.950 and 0.990 there with p = 22.
"""

_MIXER = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)


@compiled
def popcount(bits: np.uint64) -> int:
    """Number of ones, by the textbook sums in parallel."""
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def home(value: np.uint64, prefix_bits: int) -> int:
    """First slot of the bucket of a fingerprint's prefix.

    The prefix is mixed, not used as it is: real fingerprints are skewed, and buckets that neighbour each other would
    overflow into each other. An odd multiplier modulo 2^p is a bijection: no two prefixes share a bucket.
    """
    prefix = value >> np.uint64(64 - prefix_bits)
    return int((prefix * _MIXER) & ((_ONE << np.uint64(prefix_bits)) - _ONE)) * BUCKET


@compiled
def insert(table: npt.NDArray[np.uint64], prefix_bits: int, value: np.uint64, row: int) -> None:
    """Put a fingerprint into the first free slot from its home on; the table must have one."""
    mask = table.shape[0] - 1
    slot = home(value, prefix_bits)
    while table[slot, 1] != 0:
        slot = (slot + 1) & mask
    table[slot, 0] = value
    table[slot, 1] = np.uint64(row + 1)


@compiled
def insert_many(
    table: npt.NDArray[np.uint64],
    prefix_bits: int,
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.int64],
) -> None:
    for i in range(values.size):
        insert(table, prefix_bits, values[i], rows[i])


@compiled
def rehash(old: npt.NDArray[np.uint64], new: npt.NDArray[np.uint64], prefix_bits: int) -> None:
    """Move everything from an old table to an empty one with ``prefix_bits``."""
    for slot in range(old.shape[0]):
        if old[slot, 1] != 0:
            insert(new, prefix_bits, old[slot, 0], int(old[slot, 1]) - 1)


@compiled
def delete(table: npt.NDArray[np.uint64], prefix_bits: int, value: np.uint64, row: int) -> bool:
    """Take out an entry and close the gap, so that no run of slots is cut in two (no tombstones)."""
    mask = table.shape[0] - 1
    gap = home(value, prefix_bits)
    while table[gap, 1] != 0 and not (table[gap, 0] == value and int(table[gap, 1]) == row + 1):
        gap = (gap + 1) & mask
    if table[gap, 1] == 0:
        return False
    slot = gap
    while True:
        slot = (slot + 1) & mask
        if table[slot, 1] == 0:
            break
        # An entry may move into the gap only if its home is not behind the gap.
        if ((slot - home(table[slot, 0], prefix_bits)) & mask) >= ((slot - gap) & mask):
            table[gap, 0] = table[slot, 0]
            table[gap, 1] = table[slot, 1]
            gap = slot
    table[gap, 1] = 0
    return True


@compiled
def _up_to_size(odds: npt.NDArray[np.float64], first: int, largest: int) -> npt.NDArray[np.float64]:
    """Sums over all sets of s bits from ``first`` on of the product of their odds, s = 0 … largest."""
    sums = np.zeros(largest + 1)
    sums[0] = 1.0
    for j in range(first, 64):
        for size in range(largest, 0, -1):
            sums[size] += odds[j] * sums[size - 1]
    return sums


@compiled
def _weakest_first(relative: npt.NDArray[np.float64], prefix_bits: int) -> npt.NDArray[np.int64]:
    """Positions of the p leading bits, weakest first."""
    order = np.empty(prefix_bits, dtype=np.int64)
    for position in range(prefix_bits):
        at = position
        while at > 0 and relative[order[at - 1]] > relative[position]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = position
    return order


@compiled
def _push(
    costs: npt.NDArray[np.float64], sets: npt.NDArray[np.uint64], size: int, cost: float, ranks: np.uint64
) -> int:
    at = size
    while at > 0 and costs[(at - 1) >> 1] > cost:
        parent = (at - 1) >> 1
        costs[at], sets[at] = costs[parent], sets[parent]
        at = parent
    costs[at], sets[at] = cost, ranks
    return size + 1


@compiled
def _pop(costs: npt.NDArray[np.float64], sets: npt.NDArray[np.uint64], size: int) -> int:
    """Drop the cheapest entry, which the caller has read at index 0."""
    size -= 1
    cost, ranks = costs[size], sets[size]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and costs[child + 1] < costs[child]:
            child += 1
        if costs[child] >= cost:
            break
        costs[at], sets[at] = costs[child], sets[child]
        at = child
    costs[at], sets[at] = cost, ranks
    return size


@compiled
def successors(ranks: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Function *next* (Sood, algorithm 2) on a combination written as a set of ranks, bit r for the r-th weakest bit.

    The first successor moves the strongest member up by one. The second exists only if, below the run of neighbouring
    ranks that ends at the strongest member, exactly one rank is free and the one under it is a member: that member
    moves up into the free rank. 0 stands for *null*. Each combination has exactly one predecessor.
    """
    top = _ONE
    while top <= ranks >> _ONE:
        top = top << _ONE
    first = (ranks ^ top) | (top << _ONE)
    free = top
    while free & ranks:
        free = free >> _ONE
    below = free >> _ONE
    if below & ranks:
        return first, (ranks ^ below) | free
    return first, np.uint64(0)


@compiled
def _flips(ranks: np.uint64, order: npt.NDArray[np.int64]) -> np.uint64:
    """The fingerprint bits to flip for a combination of ranks."""
    flips = np.uint64(0)
    rank = 0
    while ranks:
        if ranks & _ONE:
            flips = flips | (_ONE << np.uint64(63 - order[rank]))
        ranks = ranks >> _ONE
        rank += 1
    return flips


@compiled
def _cost(ranks: np.uint64, order: npt.NDArray[np.int64], relative: npt.NDArray[np.float64]) -> float:
    """Negative logarithm of a combination's odds: the product of eq. 4.6 as a sum (section VII.E)."""
    cost = 0.0
    rank = 0
    while ranks:
        if ranks & _ONE:
            cost += FLIP_SLOPE * relative[order[rank]]
        ranks = ranks >> _ONE
        rank += 1
    return cost


@compiled
def search(
    table: npt.NDArray[np.uint64],
    prefix_bits: int,
    value: np.uint64,
    relative: npt.NDArray[np.float64],
    max_distance: int,
    recall: float,
    only_first: bool,
    matches: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
) -> int:
    """Probe the table in falling probability of the combinations until ``recall`` of the probability is covered.

    A pair at distance exactly ``max_distance`` flips the set B of prefix bits with probability
    odds(B) · E(h - |B|) / E', where E(s) sums the odds of all sets of s bits behind the prefix and E' those of all sets of
    h bits. That is the order of the probes, and their sum the part of the recall reached. Pairs at smaller distances
    are found sooner. The first probe flips nothing, so an exact twin is always found.

    ``relative``: shape (64,), |W_j|/‖W‖. ``matches``: shape (m, 3), receives row, value and distance of the first m
    matches. ``counts``: shape (3,), receives probes, empty probes, candidates. Returns the number of matches.
    """
    odds = np.exp(-FLIP_SLOPE * relative)
    behind = _up_to_size(odds, prefix_bits, max_distance)
    whole = _up_to_size(odds, 0, max_distance)[max_distance]
    order = _weakest_first(relative, prefix_bits)
    costs = np.empty(256)
    sets = np.empty(256, dtype=np.uint64)
    heap_size = 0
    for size in range(1, min(max_distance, prefix_bits) + 1):
        if behind[max_distance - size] > 0.0:
            ranks = (_ONE << np.uint64(size)) - _ONE
            cost = _cost(ranks, order, relative) - np.log(behind[max_distance - size])
            heap_size = _push(costs, sets, heap_size, cost, ranks)
    limit = _ONE << np.uint64(prefix_bits)
    covered = behind[max_distance] / whole
    flips = np.uint64(0)
    found = 0
    while True:
        found = _probe(table, prefix_bits, value, flips, max_distance, only_first, matches, counts, found)
        if covered >= recall or heap_size == 0 or (only_first and found > 0):
            return found
        cost, ranks = costs[0], sets[0]
        heap_size = _pop(costs, sets, heap_size)
        covered += np.exp(-cost) / whole
        flips = _flips(ranks, order)
        if heap_size + 2 > costs.size:
            costs = np.concatenate((costs, np.empty(costs.size)))
            sets = np.concatenate((sets, np.empty(sets.size, dtype=np.uint64)))
        first, second = successors(ranks)
        offset = np.log(behind[max_distance - popcount(ranks)])
        if first < limit:
            heap_size = _push(costs, sets, heap_size, _cost(first, order, relative) - offset, first)
        if second:
            heap_size = _push(costs, sets, heap_size, _cost(second, order, relative) - offset, second)


@compiled
def _probe(
    table: npt.NDArray[np.uint64],
    prefix_bits: int,
    value: np.uint64,
    flips: np.uint64,
    max_distance: int,
    only_first: bool,
    matches: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.int64],
    found: int,
) -> int:
    """Compare the query with all fingerprints that share the probed prefix; returns the matches found so far."""
    mask = table.shape[0] - 1
    shift = np.uint64(64 - prefix_bits)
    wanted = (value ^ flips) >> shift
    slot = home(value ^ flips, prefix_bits)
    candidates = 0
    while table[slot, 1] != 0:
        stored = table[slot, 0]
        if stored >> shift == wanted:
            candidates += 1
            distance = popcount(stored ^ value)
            if distance <= max_distance:
                if found < matches.shape[0]:
                    matches[found, 0] = table[slot, 1] - _ONE
                    matches[found, 1] = stored
                    matches[found, 2] = np.uint64(distance)
                found += 1
                if only_first:
                    break
        slot = (slot + 1) & mask
    counts[0] += 1
    counts[1] += candidates == 0
    counts[2] += candidates
    return found


@compiled
def contains(table: npt.NDArray[np.uint64], prefix_bits: int, value: np.uint64) -> bool:
    mask = table.shape[0] - 1
    slot = home(value, prefix_bits)
    while table[slot, 1] != 0:
        if table[slot, 0] == value:
            return True
        slot = (slot + 1) & mask
    return False
