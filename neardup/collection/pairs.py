"""All near-duplicates within one collection of fingerprints, exactly.

Two fingerprints at most h bits apart are equal in one of h + 1 disjoint sets of bits (pigeonhole). So the
fingerprints are grouped by each of h + 1 sets in turn, and only those of one group are compared. A group that
is too large for that is divided in the same way, by bits not yet used. These bits are chosen to divide *this*
group best, since real fingerprints are skewed. A pair that several sets bring together is reported for the
first of them only.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection.fingerprint_files import PAIR, as_fingerprints
from neardup.collection.matching import check_threads
from neardup.collection.matching_kernels import PAD, choose_bits, prefix_of, spread_bits
from neardup.compiled import compiled
from neardup.errors import ConfigurationError
from neardup.index.base import check_max_distance
from neardup.index.psm.tree import popcount, signed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

_TARGET = 32
"""Fingerprints that a group should have after it is divided."""

_COMPARED = 512
"""A group of at most so many is compared each with each (0.06 ms); dividing it saves little."""

_WORTH = 0.75
"""A group is divided if that leaves at most so much of the comparisons, by a sample. Otherwise great numbers
of fingerprints close to each other would be divided again and again, by h + 1 sets each time, and stay
together.
"""

_SMALLEST_SAMPLE, _LARGEST_SAMPLE = 64, 1 << 13
_MOST_BITS = 22
_DEEPEST = 64
_WORKS_PER_THREAD = 64
_ONE = np.uint64(1)


def pairs(
    values: npt.NDArray[np.uint64],
    *,
    max_distance: int = 3,
    threads: int | None = None,
    on_progress: Callable[[float, int], None] | None = None,
) -> npt.NDArray[Any]:
    """All pairs of fingerprints at most ``max_distance`` (0 to 16) bits apart.

    ``values``: uint64, (n,), fewer than 2^32. Returns an array of dtype ``PAIR``, sorted, ``first`` <
    ``second``. Equal fingerprints are a star: each is paired, at distance 0, with the first of them only.
    Only this first one is paired with other fingerprints. So n equal ones make n - 1 pairs, not n²/2.
    ``on_progress`` is told the share done and the pairs found so far.

    Memory: 60 bytes a fingerprint, and the pairs (24 bytes each, twice while they are sorted). Time: a group
    of c fingerprints is compared in c²/2 steps of 0.5 ns. A group is divided in h + 1 passes instead when
    that leaves at most three quarters of these comparisons. So no skew costs more than about three times the
    comparisons of the h + 1 first divisions. These comparisons grow to n²/2 only where nearly all
    fingerprints are near each other, or where ``max_distance`` leaves sets too small to divide by.
    ``max_distance`` does so above 8 or so.

    Raises ConfigurationError for arguments that are not of this form.
    """
    check_max_distance(max_distance)
    number = check_threads(threads)
    as_fingerprints(values, "fingerprints")
    if len(values) >= 1 << 32:
        raise ConfigurationError(
            f"{len(values):,} fingerprints are too many for one call; at most 2^32 - 1 are compared"
        )
    distinct, firsts, parts = _stars(values)
    for done, found in _all_near(distinct, firsts, max_distance, number):
        parts.append(found)
        if on_progress is not None:
            on_progress(done, sum(map(len, parts)))
    joined = np.concatenate(parts)
    made = np.empty(len(joined), dtype=PAIR)
    made["first"], made["second"], made["distance"] = joined[:, 0], joined[:, 1], joined[:, 2]
    return made[np.lexsort((made["second"], made["first"]))]


def _stars(
    values: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], list[npt.NDArray[np.uint32]]]:
    """Distinct values, the first row of each, and the pairs of equal ones, (number, 3)."""
    order = np.argsort(values, kind="stable").astype(np.uint32)
    ordered = values[order]
    new = np.ones(len(values), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    firsts = order[new]
    star = np.zeros((len(values) - len(firsts), 3), dtype=np.uint32)
    star[:, 0] = firsts[np.cumsum(new)[~new] - 1]
    star[:, 1] = order[~new]
    return ordered[new], firsts, [star]


def _all_near(
    values: npt.NDArray[np.uint64], rows: npt.NDArray[np.uint32], max_distance: int, threads: int
) -> Iterator[tuple[float, npt.NDArray[np.uint32]]]:
    """Pairs of distinct fingerprints, and the share of the work that is done."""
    count = len(values)
    if count < 2 or max_distance == 0:
        return
    chunk = np.concatenate([values, np.zeros(PAD, dtype=np.uint64)])
    spare, spare_rows = np.empty(count, dtype=np.uint64), np.empty(count, dtype=np.uint32)
    rows = rows.copy()
    sets, _ = choose_sets(chunk, 0, count, np.uint64(0), max_distance + 1)
    forbidden = np.zeros(_DEEPEST * (max_distance + 1), dtype=np.uint64)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="neardup-pairs")
    try:
        for number in range(max_distance + 1):
            offsets = divide(chunk, rows, spare, spare_rows, 0, count, sets[number])
            mask = np.uint64(mask_of(sets[number]))  # numba returns an int
            cuts = np.linspace(0, count, threads * _WORKS_PER_THREAD + 1).astype(np.int64)
            groups = np.unique(np.concatenate([np.searchsorted(offsets, cuts), [0, len(offsets) - 1]]))

            def work(
                span: tuple[int, int],
                offsets: npt.NDArray[np.int64] = offsets,
                mask: np.uint64 = mask,
                number: int = number,
            ) -> npt.NDArray[np.uint32]:
                room = 4096
                while True:
                    found = np.empty((room, 3), dtype=np.uint32)
                    needed = near_in_groups(
                        chunk, rows, spare, spare_rows, offsets, span[0], span[1], mask, forbidden.copy(),
                        number,
                        max_distance, found,
                    )  # fmt: skip
                    if needed <= room:
                        return found[:needed].copy()
                    room = needed

            spans = list(zip(groups[:-1].tolist(), groups[1:].tolist(), strict=True))
            for at, found in enumerate(pool.map(work, spans), start=1):
                yield (number + at / len(spans)) / (max_distance + 1), found
            forbidden[number] = mask
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@compiled
def choose_sets(
    values: npt.NDArray[np.uint64], low: int, high: int, used: np.uint64, sets: int
) -> tuple[npt.NDArray[np.int64], float]:
    """Disjoint sets of bits to divide a group by, (sets, w), out of those not ``used``.

    Also the share of the comparisons that dividing leaves, all sets together; may be above 1.
    """
    left = 64 - popcount(used)
    width = 1
    while (high - low) >> width > _TARGET and width < _MOST_BITS:
        width += 1
    width = min(width, left // sets)
    # Spread over the group, so that an order it may have does not matter.
    size = min(high - low, max(_SMALLEST_SAMPLE, min(_LARGEST_SAMPLE, (high - low) // 32)))
    sample = np.empty(size, dtype=np.uint64)
    for i in range(size):
        sample[i] = values[low + i * (high - low) // size]
    chosen = np.empty(sets * width, dtype=np.int64)
    choose_bits(sample, ~used, chosen)
    # Dealt out in turn, so that every set has its share of the best.
    made = np.empty((sets, width), dtype=np.int64)
    for i in range(chosen.size):
        made[i % sets, i // sets] = chosen[i]
    spread = np.empty((8, 256), dtype=np.uint32)
    together = 0
    for number in range(sets):
        spread_bits(made[number], spread)
        counts = np.zeros(1 << width, dtype=np.int64)
        for i in range(size):
            at = prefix_of(sample[i], spread)
            together += 2 * counts[at]
            counts[at] += 1
    return made, together / (size * (size - 1.0))


@compiled
def mask_of(bits: npt.NDArray[np.int64]) -> np.uint64:
    mask = np.uint64(0)
    for i in range(bits.size):
        mask |= _ONE << np.uint64(63 - bits[i])
    return mask


@compiled
def divide(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    spare: npt.NDArray[np.uint64],
    spare_rows: npt.NDArray[np.uint32],
    low: int,
    high: int,
    bits: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Sort ``values[low:high]`` by some bits, by counting; returns where each group begins, and the end."""
    spread = np.empty((8, 256), dtype=np.uint32)
    spread_bits(bits, spread)
    offsets = np.zeros((1 << bits.size) + 1, dtype=np.int64)
    for i in range(low, high):
        spare[i], spare_rows[i] = values[i], rows[i]
        offsets[prefix_of(values[i], spread) + 1] += 1
    offsets[0] = low
    for at in range(offsets.size - 1):
        offsets[at + 1] += offsets[at]
    free = offsets[:-1].copy()
    for i in range(low, high):
        at = prefix_of(spare[i], spread)
        values[free[at]], rows[free[at]] = spare[i], spare_rows[i]
        free[at] += 1
    return offsets


@compiled
def near_in_groups(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    spare: npt.NDArray[np.uint64],
    spare_rows: npt.NDArray[np.uint32],
    offsets: npt.NDArray[np.int64],
    first: int,
    last: int,
    used: np.uint64,
    forbidden: npt.NDArray[np.uint64],
    masks: int,
    max_distance: int,
    found: npt.NDArray[np.uint32],
) -> int:
    """Pairs within the groups ``first`` to ``last``; returns their number, of which ``found`` (room, 3) has
    as many as it can hold.
    """
    count = 0
    for at in range(first, last):
        if offsets[at + 1] - offsets[at] > 1:
            count = _near(
                values, rows, spare, spare_rows, offsets[at], offsets[at + 1], used, forbidden, masks,
                max_distance, found, count,
            )  # fmt: skip
    return count


@compiled
def _near(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    spare: npt.NDArray[np.uint64],
    spare_rows: npt.NDArray[np.uint32],
    low: int,
    high: int,
    used: np.uint64,
    forbidden: npt.NDArray[np.uint64],
    masks: int,
    max_distance: int,
    found: npt.NDArray[np.uint32],
    count: int,
) -> int:
    """Pairs within a group: those equal in none of ``forbidden[:masks]``, the sets whose turn was before."""
    sets = max_distance + 1
    if high - low <= _COMPARED or 64 - popcount(used) < sets:
        return _compare_all(values, rows, low, high, forbidden, masks, max_distance, found, count)
    chosen, left = choose_sets(values, low, high, used, sets)
    if left > _WORTH:
        return _compare_all(values, rows, low, high, forbidden, masks, max_distance, found, count)
    for number in range(sets):
        offsets = divide(values, rows, spare, spare_rows, low, high, chosen[number])
        mask = mask_of(chosen[number])
        for at in range(offsets.size - 1):
            if offsets[at + 1] - offsets[at] > 1:
                count = _near(
                    values, rows, spare, spare_rows, offsets[at], offsets[at + 1], used | mask, forbidden,
                    masks + number, max_distance, found, count,
                )  # fmt: skip
        forbidden[masks + number] = mask
    return count


@compiled
def _compare_all(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    low: int,
    high: int,
    forbidden: npt.NDArray[np.uint64],
    masks: int,
    max_distance: int,
    found: npt.NDArray[np.uint32],
    count: int,
) -> int:
    for i in range(low, high - 1):
        slot = i + 1
        while slot < high:
            nearest = 64
            for ahead in range(PAD):
                nearest = min(nearest, popcount(values[slot + ahead] ^ values[i]))
            if nearest <= max_distance:
                # What stands behind the end is another group's.
                for j in range(slot, min(slot + PAD, high)):
                    differing = values[i] ^ values[j]
                    met = popcount(differing) > max_distance
                    for before in range(masks):
                        met = met or differing & forbidden[before] == 0
                    if not met:
                        if count < found.shape[0]:
                            found[count, 0] = min(rows[i], rows[j])
                            found[count, 1] = max(rows[i], rows[j])
                            found[count, 2] = np.uint32(signed(np.uint64(popcount(differing))))
                        count += 1
            slot += PAD
    return count
