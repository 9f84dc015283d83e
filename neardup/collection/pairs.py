"""All near-duplicates within one collection of fingerprints, exactly.

Two fingerprints at most h bits apart are equal in one of h + 1 disjoint sets of bits (pigeonhole). So the
fingerprints are grouped by each of h + 1 sets in turn, and only those of one group are compared. A group that
is too large for that is divided in the same way, by bits not yet used. These bits are chosen to divide *this*
group best, since real fingerprints are skewed. A pair that several sets bring together is reported for the
first of them only.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup import native
from neardup.collection.fingerprint_files import PAIR, as_fingerprints
from neardup.collection.matching import check_threads
from neardup.collection.matching_kernels import choose_bits, prefixes_of
from neardup.errors import ConfigurationError
from neardup.index.base import check_max_distance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    Values = npt.NDArray[np.uint64]
    Rows = npt.NDArray[np.uint32]

_TARGET = 32
"""Fingerprints that a group should have after it is divided."""

_COMPARED = 512
"""A group of at most so many is compared each with each (0.01 to 0.04 ms); dividing it saves little."""

_WORTH = 0.75
"""A group is divided if that leaves at most so much of the comparisons, by a sample. Otherwise great numbers
of fingerprints close to each other would be divided again and again, by h + 1 sets each time, and stay
together.
"""

_SMALLEST_SAMPLE, _LARGEST_SAMPLE = 64, 1 << 13
_MOST_BITS = 22
_WORKS_PER_THREAD = 64
_COMPARED_AT_ONCE = 256


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
    of c fingerprints is compared in c²/2 steps of 0.1 to 0.4 ns. A group is divided in h + 1 passes instead
    when that leaves at most three quarters of these comparisons. So no skew costs more than about three times
    the comparisons of the h + 1 first divisions. These comparisons grow to n²/2 only where nearly all
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
    # One key in place of two sorts several times as fast; rows have 32 bits each.
    return made[np.argsort(joined[:, 0].astype(np.uint64) << np.uint64(32) | joined[:, 1])]


def _stars(
    values: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], list[npt.NDArray[np.uint32]]]:
    """Distinct values, the first row of each, and the pairs of equal ones, (number, 3)."""
    order = np.argsort(values).astype(np.uint32)
    ordered = values[order]
    new = np.ones(len(values), dtype=np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    # The order of equal ones is free above: a sort that keeps it takes up to five times as long.
    firsts = np.minimum.reduceat(order, np.flatnonzero(new))
    of_each = firsts[np.cumsum(new) - 1]
    other = order != of_each
    star = np.column_stack([of_each[other], order[other], np.zeros(np.count_nonzero(other), dtype=np.uint32)])
    return ordered[new], firsts, [star]


def _all_near(
    values: Values, rows: Rows, max_distance: int, threads: int
) -> Iterator[tuple[float, npt.NDArray[np.uint32]]]:
    """Pairs of distinct fingerprints, and the share of the work that is done."""
    count = len(values)
    if count < 2 or max_distance == 0:
        return
    threads = min(threads, count)  # more have nothing to do
    values, rows = values.copy(), rows.copy()
    sets, _ = choose_sets(values, 0, max_distance + 1)
    forbidden: list[int] = []
    pool = ThreadPoolExecutor(threads, thread_name_prefix="neardup-pairs")
    try:
        for number, bits in enumerate(sets):
            offsets, mask = divide(values, rows, bits), mask_of(bits)
            cuts = np.linspace(0, count, threads * _WORKS_PER_THREAD + 1).astype(np.uint32)
            ends = np.unique(np.concatenate([np.searchsorted(offsets, cuts), [0, len(offsets) - 1]]))
            spans = [offsets[first : last + 1] for first, last in itertools.pairwise(ends)]

            def work(
                span: Rows, mask: int = mask, forbidden: tuple[int, ...] = tuple(forbidden)
            ) -> npt.NDArray[np.uint32]:
                return near_in_groups(values, rows, span, mask, forbidden, max_distance)

            for at, found in enumerate(pool.map(work, spans), start=1):
                yield (number + at / len(spans)) / (max_distance + 1), found
            forbidden.append(mask)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@native.twin
def choose_sets(values: Values, used: int, sets: int) -> tuple[npt.NDArray[np.int64], float]:
    """Disjoint sets of bits to divide a group by, (sets, w), out of those not in the mask ``used``.

    Also the share of the comparisons that dividing leaves, all sets together; may be above 1. ``values``:
    (n,), 2 or more. ``sets``: 1 to 17, and no more than there are bits not used. The native twin raises
    ValueError for arguments that are not of this form.
    """
    count, width = len(values), 1
    while count >> width > _TARGET and width < _MOST_BITS:
        width += 1
    width = min(width, (64 - used.bit_count()) // sets)
    size = min(count, max(_SMALLEST_SAMPLE, min(_LARGEST_SAMPLE, count // 32)))
    # Spread over the group, so that an order it may have does not matter.
    sample = values[np.arange(size) * count // size]
    # Dealt out in turn, so that every set has its share of the best.
    made = np.ascontiguousarray(
        choose_bits(sample, ~used & (1 << 64) - 1, sets * width).reshape(width, sets).T
    )
    together = 0
    for bits in made:
        counts = np.unique(prefixes_of(sample, bits), return_counts=True)[1]
        together += int(counts @ (counts - 1))
    return made, together / (size * (size - 1.0))


def mask_of(bits: npt.NDArray[np.int64]) -> int:
    return sum(1 << (63 - int(bit)) for bit in bits)


@native.twin
def divide(values: Values, rows: Rows, bits: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Sort ``values`` and ``rows``, both (n,), by w bits (1 to 30), in place and stably.

    Returns where each group begins, and the end, (2^w + 1,). The native twin raises ValueError for arguments
    that are not of this form.
    """
    prefixes = prefixes_of(values, bits)
    order = np.argsort(prefixes, kind="stable")
    values[:], rows[:] = values[order], rows[order]
    sizes = np.bincount(prefixes, minlength=1 << len(bits))
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint32)


@native.twin
def near_in_groups(
    values: Values,
    rows: Rows,
    offsets: npt.NDArray[np.uint32],
    used: int,
    forbidden: Sequence[int],
    max_distance: int,
) -> npt.NDArray[np.uint32]:
    """Pairs within groups of ``values``, which are divided further in place, with their ``rows``, both (n,).

    - ``offsets``: where each group begins, and the end of the last.
    - ``used``: mask of the bits that the groups are equal in.
    - ``forbidden``: masks of the sets whose turn was before, up to 17. Pairs equal in one of them are known.

    Returns the lower row, the higher one and the distance of each pair, (m, 3). The native twin raises
    ValueError for arguments that are not of this form. Threads may work on different groups at a time.
    """
    found = [np.empty((0, 3), dtype=np.uint32)]
    for first, end in itertools.pairwise(offsets.tolist()):
        if end - first > 1:
            found += _near(values[first:end], rows[first:end], used, forbidden, max_distance)
    return np.concatenate(found)


def _near(
    values: Values, rows: Rows, used: int, forbidden: Sequence[int], max_distance: int
) -> Iterator[npt.NDArray[np.uint32]]:
    """Pairs within a group: those equal in none of the sets whose turn was before."""
    sets = max_distance + 1
    if len(values) > _COMPARED and 64 - used.bit_count() >= sets:
        chosen, left = choose_sets(values, used, sets)
        if left <= _WORTH:
            for bits in chosen:
                offsets, mask = divide(values, rows, bits), mask_of(bits)
                yield near_in_groups(values, rows, offsets, used | mask, forbidden, max_distance)
                forbidden = [*forbidden, mask]
            return
    yield from _compare_all(values, rows, forbidden, max_distance)


def _compare_all(
    values: Values, rows: Rows, forbidden: Sequence[int], max_distance: int
) -> Iterator[npt.NDArray[np.uint32]]:
    for first in range(0, len(values), _COMPARED_AT_ONCE):
        some = values[first : first + _COMPARED_AT_ONCE]
        differing = some[:, None] ^ values[first:]
        distances = np.bitwise_count(differing)
        # Each with those that stand behind it.
        near = np.triu(distances <= max_distance, k=1)
        for mask in forbidden:
            near &= differing & np.uint64(mask) != 0
        i, j = np.nonzero(near)
        pair = np.sort(np.column_stack([rows[first + i], rows[first + j]]), axis=1)
        yield np.column_stack([pair, distances[i, j].astype(np.uint32)])
