"""The hot loops of batch mode, compiled by numba. No Python object is touched; the caller owns every array.

A *table* is a chunk of the file of fingerprints, grouped by p chosen bits. These bits are called the prefix,
as in the index, though they need not lead. A table has three arrays:

- ``chunk`` (uint64): the fingerprints, and ``PAD`` more values behind their end, since eight are compared at
  a time;
- ``rows`` (uint32): where in the chunk each fingerprint stood in the file; of size 0 where ``chunk`` is in
  the file's order;
- ``offsets`` (int64, 2^p + 1): the fingerprints of prefix b stand in ``chunk[offsets[b] : offsets[b + 1]]``.

Grouping is all that a probe needs. Within a prefix the order is the file's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled
from neardup.fingerprint.simhash import WEAK_BITS_STORED, WEIGHT_STEP
from neardup.index.psm.flips import plan_flips
from neardup.index.psm.instructions import prefetch
from neardup.index.psm.tree import popcount, signed

if TYPE_CHECKING:
    import numpy.typing as npt

PAD = 8
_PREFETCHED = 32
"""Probes of a query whose fingerprints are fetched ahead; later ones are rarely reached when the first match
ends it.
"""


@compiled
def unpack_weights(weak_bits: npt.NDArray[np.uint8], weights: npt.NDArray[np.float64]) -> None:
    """Magnitudes of the bit weights, shape (64,), of packed weak bits, shape (48,), as ``Fingerprint.unpack``
    has them.
    """
    rest = 1.0
    for i in range(WEAK_BITS_STORED):
        stored = weak_bits[WEAK_BITS_STORED + i] * WEIGHT_STEP
        rest -= stored * stored
    weights[:] = np.sqrt(max(0.0, rest) / (64 - WEAK_BITS_STORED))
    for i in range(WEAK_BITS_STORED):
        weights[weak_bits[i]] = weak_bits[WEAK_BITS_STORED + i] * WEIGHT_STEP


@compiled
def plan_block(
    weak_bits: npt.NDArray[np.uint8],
    start: int,
    bits: npt.NDArray[np.int64],
    prefix_bits: int,
    max_distance: int,
    recall: float,
    work: npt.NDArray[np.float64],
    chances: npt.NDArray[np.float64],
    starts: npt.NDArray[np.int64],
    flips: npt.NDArray[np.uint32],
) -> int:
    """Plan the probes of queries ``start``, … of a block (Sood, section V.B: before the search, not for every
    chunk).

    ``weak_bits``: (b, 48). Query i gets ``flips[starts[i] : starts[i + 1]]``: masks over the p bits of a
    prefix, the empty one first, at most ``chances.size`` of them. Returns the first query that ``flips`` had
    no room for, or b.
    """
    weights, arranged = np.empty(64), np.empty(64)
    masks = np.empty(192, dtype=np.uint64)
    wide = np.empty(chances.size, dtype=np.uint64)
    shift = np.uint64(64 - prefix_bits)
    used = starts[start]
    for i in range(start, weak_bits.shape[0]):
        unpack_weights(weak_bits[i], weights)
        for j in range(64):
            arranged[j] = weights[bits[j]]
        count = plan_flips(arranged, prefix_bits, max_distance, recall, work, masks, wide, chances)
        if used + count > flips.size:
            return int(i)
        for j in range(count):
            flips[used + j] = np.uint32(wide[j] >> shift)
        used += count
        starts[i + 1] = used
    return int(weak_bits.shape[0])


@compiled
def choose_bits(sample: npt.NDArray[np.uint64], allowed: np.uint64, chosen: npt.NDArray[np.int64]) -> None:
    """Choose the bits that tell ``sample`` apart best, one after the other: that which leaves the fewest
    pairs together.

    Single bits of real fingerprints are one-sided and go together, so that the leading p bits group them far
    less evenly than chosen ones.

    - ``sample``: (n,).
    - ``allowed``: mask of the bits to choose from.
    - ``chosen``: receives positions, counted from the most significant bit.

    The choice takes n × 64 × ``chosen.size`` steps.
    """
    size = sample.size
    groups = np.zeros(size, dtype=np.int64)
    number = 1
    left = allowed
    for step in range(chosen.size):
        best, fewest, most_balanced = -1, np.inf, np.inf
        for j in range(64):
            bit = np.uint64(63 - j)
            if not (left >> bit) & np.uint64(1):
                continue
            counts = np.zeros((number, 2), dtype=np.int64)
            for i in range(size):
                counts[groups[i], signed((sample[i] >> bit) & np.uint64(1))] += 1
            together, ones = 0.0, 0.0
            for g in range(number):
                together += float(counts[g, 0]) * counts[g, 0] + float(counts[g, 1]) * counts[g, 1]
                ones += counts[g, 1]
            balance = abs(2.0 * ones - size)
            if together < fewest or (together == fewest and balance < most_balanced):
                best, fewest, most_balanced = j, together, balance
        chosen[step] = best
        left &= ~(np.uint64(1) << np.uint64(63 - best))
        number = _split(sample, np.uint64(63 - best), groups, number)


@compiled
def _split(sample: npt.NDArray[np.uint64], bit: np.uint64, groups: npt.NDArray[np.int64], number: int) -> int:
    """Divide every group by a bit and number the groups that are not empty; returns how many they are."""
    names = np.full(2 * number, -1, dtype=np.int64)
    found = 0
    for i in range(sample.size):
        name = 2 * groups[i] + signed((sample[i] >> bit) & np.uint64(1))
        if names[name] < 0:
            names[name] = found
            found += 1
        groups[i] = names[name]
    return found


@compiled
def spread_bits(bits: npt.NDArray[np.int64], spread: npt.NDArray[np.uint32]) -> None:
    """Tables for :func:`prefix_of`: ``spread`` (8, 256) gets what each byte, the lowest first, contributes to
    the prefix.

    ``bits``: (p,), positions counted from the most significant bit; the first becomes the prefix's highest.
    """
    spread[:] = 0
    for i in range(bits.size):
        bit = 63 - bits[i]
        for byte in range(256):
            if byte >> (bit & 7) & 1:
                spread[bit >> 3, byte] |= np.uint32(1) << np.uint32(bits.size - 1 - i)


@compiled
def prefix_of(value: np.uint64, spread: npt.NDArray[np.uint32]) -> int:
    """The chosen bits of a fingerprint, side by side."""
    prefix = np.uint32(0)
    for i in range(8):
        prefix |= spread[i, signed((value >> np.uint64(8 * i)) & np.uint64(255))]
    return signed(np.uint64(prefix))


@compiled
def prefixes_of(values: npt.NDArray[np.uint64], spread: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """:func:`prefix_of` all of ``values`` (n,)."""
    prefixes = np.empty(values.size, dtype=np.uint32)
    for i in range(values.size):
        prefixes[i] = prefix_of(values[i], spread)
    return prefixes


@compiled
def group(
    values: npt.NDArray[np.uint64],
    spread: npt.NDArray[np.uint32],
    prefixes: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.int64],
    chunk: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
) -> None:
    """Fill a table from ``values`` (n,) by a counting sort over their prefixes; stable.

    ``prefixes``: scratch, (n,); ``offsets``: zeros, (2^p + 1,).
    """
    for i in range(values.size):
        prefix = prefix_of(values[i], spread)
        prefixes[i] = prefix
        offsets[prefix + 1] += 1
    for prefix in range(offsets.size - 1):
        offsets[prefix + 1] += offsets[prefix]
    free = offsets[:-1].copy()
    for i in range(values.size):
        slot = free[prefixes[i]]
        free[prefixes[i]] = slot + 1
        chunk[slot] = values[i]
        rows[slot] = i


@compiled
def probe(
    queries: npt.NDArray[np.uint64],
    which: npt.NDArray[np.int64],
    start: int,
    starts: npt.NDArray[np.int64],
    flips: npt.NDArray[np.uint32],
    spread: npt.NDArray[np.uint32],
    chunk: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.int64],
    earlier: npt.NDArray[np.uint64],
    radii: npt.NDArray[np.int64],
    max_distance: int,
    only_first: bool,
    found: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """Probe one table for the queries ``queries[which[start:]]``, each with its own flips or, if ``starts``
    has two entries, all with the same.

    Whoever differs within ``earlier[s]`` (masks) in at most ``radii[s]`` bits has been found in table s
    already and is left out. ``only_first``: the first match in probing order (PSM_F), else all (PSM_A).
    ``found``: (room, 3), receives query (index in ``queries``), row in the chunk, distance. Returns the place
    in ``which`` of the first query whose matches found no room, or ``which.size``, and the number of matches.
    """
    shared = starts.size == 2
    count = 0
    for place in range(start, which.size):
        query = which[place]
        value = queries[query]
        prefix = prefix_of(value, spread)
        first, last = (starts[0], starts[1]) if shared else (starts[query], starts[query + 1])
        for j in range(first, min(last, first + _PREFETCHED)):
            prefetch(chunk, offsets[prefix ^ signed(np.uint64(flips[j]))])
        before = count
        for j in range(first, last):
            at = prefix ^ signed(np.uint64(flips[j]))
            count = _compare(
                chunk, rows, offsets[at], offsets[at + 1], value, earlier, radii, max_distance, only_first,
                query, found, count,
            )  # fmt: skip
            if count > found.shape[0]:
                return place, before
            if only_first and count > before:
                break
    return which.size, count


@compiled
def _compare(
    chunk: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    slot: int,
    end: int,
    value: np.uint64,
    earlier: npt.NDArray[np.uint64],
    radii: npt.NDArray[np.int64],
    max_distance: int,
    only_first: bool,
    query: int,
    found: npt.NDArray[np.int64],
    count: int,
) -> int:
    """Number of matches after those of one prefix; one more than ``found`` has room for says that there was
    none.
    """
    while slot < end:
        nearest = 64
        for i in range(PAD):
            nearest = min(nearest, popcount(chunk[slot + i] ^ value))
        if nearest <= max_distance:
            for near in range(slot, min(slot + PAD, end)):
                differing = chunk[near] ^ value
                distance = popcount(differing)
                if distance <= max_distance and not _met(differing, earlier, radii):
                    if count >= found.shape[0]:
                        return int(found.shape[0] + 1)
                    found[count, 0] = query
                    found[count, 1] = rows[near] if rows.size > 0 else near
                    found[count, 2] = distance
                    count += 1
                    if only_first:
                        return count
        slot += PAD
    return count


@compiled
def _met(differing: np.uint64, earlier: npt.NDArray[np.uint64], radii: npt.NDArray[np.int64]) -> bool:
    for i in range(earlier.size):  # noqa: SIM110
        if popcount(differing & earlier[i]) <= radii[i]:
            return True
    return False
