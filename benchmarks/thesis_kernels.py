"""The systems of the thesis (Sood 2011) as they were built there, compiled by numba, one thread, no
prefetching.

Fingerprints are uint64, h is ``H``. A match differs in at least one and at most ``H`` bits (section VII.C).
Every search adds to ``out`` (int64): matches, candidates, probes, queries with a match; see ``MATCHES`` and
so on. Searches that stop at the first match are F, the others A. All systems compare runs of fingerprints
with the same loop (:func:`scan`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from benchmarks.compiled import compiled
from benchmarks.thesis_flips import H, following, start

if TYPE_CHECKING:
    import numpy.typing as npt

    Words: TypeAlias = npt.NDArray[np.uint64]
    Reals: TypeAlias = npt.NDArray[np.float64]
    Ints: TypeAlias = npt.NDArray[np.int64]
    Halves: TypeAlias = npt.NDArray[np.uint32]
    Weights: TypeAlias = npt.NDArray[np.float32]

MATCHES, CANDIDATES, PROBES, MATCHED = 0, 1, 2, 3
NEARLY_ALL = 0.9995
"""Share of the probability that :func:`adaptive` writes down flips for."""
_ONE = np.uint64(1)


@compiled
def signed(number: np.uint64) -> int:
    """A signed integer: numba turns an unsigned one with a signed one into a float."""
    return np.int64(number)  # type: ignore[return-value]


@compiled
def popcount(bits: np.uint64) -> int:
    """Number of ones, by the textbook sums in parallel (which LLVM knows as one instruction)."""
    bits = bits - ((bits >> np.uint64(1)) & np.uint64(0x5555555555555555))
    bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
    bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return int((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))


@compiled
def scan(
    values: Words,
    first: int,
    end: int,
    query: np.uint64,
    earlier: Words,
    radii: Ints,
    only_first: bool,
    met: Words,
    count: int,
) -> int:
    """Compare a run, eight at a time; ``met`` receives the differences, and the new number of matches is
    returned.

    A match that an earlier table finds too (differs in at most ``radii[t]`` of the bits ``earlier[t]``) does
    not count again.
    """
    at = first
    while at < end:
        stop = min(at + 8, end)
        nearest = 64
        if stop == at + 8:
            for i in range(8):
                nearest = min(nearest, popcount(values[at + i] ^ query))
        else:
            for i in range(at, stop):
                nearest = min(nearest, popcount(values[i] ^ query))
        if nearest <= H:
            for i in range(at, stop):
                difference = values[i] ^ query
                if 1 <= popcount(difference) <= H:
                    new = True
                    for table in range(earlier.size):
                        new = new and popcount(difference & earlier[table]) > radii[table]
                    if new:
                        if count < met.size:
                            met[count] = difference
                        count += 1
                        if only_first:
                            return count
        at = stop
    return count


@compiled
def _bounds(offsets: Halves, prefix: int) -> tuple[int, int]:
    return np.int64(offsets[prefix]), np.int64(offsets[prefix + 1])  # type: ignore[return-value]


@compiled
def psm(
    values: Words,
    offsets: Halves,
    p: int,
    queries: Words,
    weights: Weights,
    k: int,
    calibrated: bool,
    only_first: bool,
    work: Reals,
    codes: Ints,
    masks: Words,
    out: Ints,
) -> None:
    """PSM online (section V.A): the query's own prefix, then up to k combinations flipped, while the heap is
    worked off.
    """
    none, no_radii, met = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(1, np.uint64)
    shift = np.uint64(64 - p)
    for i in range(queries.size):
        query = queries[i]
        count, probe, size = 0, 0, 0
        mask = np.uint64(0)
        while True:
            prefix = signed((query ^ mask) >> shift)
            first, end = _bounds(offsets, prefix)
            count = scan(values, first, end, query, none, no_radii, only_first, met, count)
            out[PROBES] += 1
            out[CANDIDATES] += end - first
            if (only_first and count > 0) or probe == k:
                break
            if probe == 0:
                size = start(weights[i], p, calibrated, work, codes, masks)
            if size == 0:
                break
            mask, size = following(p, work, codes, masks, size)
            probe += 1
        out[MATCHES] += count
        out[MATCHED] += count > 0


@compiled
def plan(weights: Weights, p: int, plans: Halves, work: Reals, codes: Ints, masks: Words) -> None:
    """The preprocessing of batch mode: the first combinations of every query, as masks of the p
    leading bits.
    """
    for i in range(weights.shape[0]):
        size = start(weights[i], p, False, work, codes, masks)
        for probe in range(plans.shape[1]):
            mask, size = following(p, work, codes, masks, size)
            plans[i, probe] = np.uint32(mask >> np.uint64(64 - p))


@compiled
def psm_planned(
    values: Words,
    offsets: Halves,
    p: int,
    queries: Words,
    plans: Halves,
    k: int,
    only_first: bool,
    done: npt.NDArray[np.bool_],
    out: Ints,
) -> None:
    """PSM in batch mode, Q → one chunk of F; for F queries that are ``done`` are passed by."""
    none, no_radii, met = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(1, np.uint64)
    shift = np.uint64(64 - p)
    for i in range(queries.size):
        if only_first and done[i]:
            continue
        query, count = queries[i], 0
        own = signed(query >> shift)
        for probe in range(k + 1):
            prefix = own if probe == 0 else own ^ signed(np.uint64(plans[i, probe - 1]))
            first, end = _bounds(offsets, prefix)
            count = scan(values, first, end, query, none, no_radii, only_first, met, count)
            out[PROBES] += 1
            out[CANDIDATES] += end - first
            if only_first and count > 0:
                break
        out[MATCHES] += count
        done[i] = done[i] or count > 0


@compiled
def permute(value: np.uint64, segments: Ints) -> np.uint64:
    """Put the segments (shift, width) of a fingerprint one behind the other."""
    moved = np.uint64(0)
    for s in range(segments.shape[0]):
        width = np.uint64(segments[s, 1])
        moved = (moved << width) | ((value >> np.uint64(segments[s, 0])) & ((_ONE << width) - _ONE))
    return moved


@compiled
def permute_all(values: Words, segments: Ints, moved: Words) -> None:
    for i in range(values.size):
        moved[i] = permute(values[i], segments)


@compiled
def _restore(moved: np.uint64, segments: Ints) -> np.uint64:
    value = np.uint64(0)
    for s in range(segments.shape[0] - 1, -1, -1):
        width = np.uint64(segments[s, 1])
        value |= (moved & ((_ONE << width) - _ONE)) << np.uint64(segments[s, 0])
        moved >>= width
    return value


@compiled
def make_offsets(values: Words, p: int, offsets: Halves) -> None:
    """Where each prefix of p bits begins among sorted values; shape (2^p + 1,)."""
    shift = np.uint64(64 - p)
    following_one = 0
    for i in range(values.size):
        prefix = signed(values[i] >> shift)
        while following_one <= prefix:
            offsets[following_one] = i
            following_one += 1
    offsets[following_one:] = values.size


@compiled
def _run(values: Words, moved: np.uint64, bits: int) -> tuple[int, int]:
    """Binary search for the first fingerprint with the leading bits of one, then a walk to the last."""
    shift = np.uint64(64 - bits)
    prefix = moved >> shift
    key = prefix << shift
    first, end = 0, values.size
    while first < end:
        middle = (first + end) >> 1
        if values[middle] < key:
            first = middle + 1
        else:
            end = middle
    end = first
    while end + 8 <= values.size and values[end + 7] >> shift == prefix:
        end += 8
    while end < values.size and values[end] >> shift == prefix:
        end += 1
    return first, end


@compiled
def exact(
    tables: Words,
    offsets: Halves,
    segments: Ints,
    bits: Ints,
    radii: Ints,
    earlier: Words,
    queries: Words,
    only_first: bool,
    out: Ints,
    met: Words,
    ends: Ints,
) -> None:
    """Manku et al. (``offsets`` of shape (t, 0): binary search), or multi-index hashing with direct offsets.

    - ``tables``: (t, n), each permuted and sorted.
    - ``segments``: (t, s, 2).
    - ``bits``: width of the prefix of each.
    - ``radii``: 0 or 1 bits flipped in the prefix.
    - ``earlier``: (t, t), row t the prefix bits of table u as table t permutes them.
    - ``met`` receives the differences, in the order of the fingerprint's own bits.
    - ``ends[i]`` receives how many differences there are after query i.
    """
    total = 0
    for i in range(queries.size):
        before = total
        for t in range(tables.shape[0]):
            moved = permute(queries[i], segments[t])
            recorded = total
            for flipped in range(1 + radii[t] * bits[t]):
                probe = moved if flipped == 0 else moved ^ (_ONE << np.uint64(64 - flipped))
                if offsets.shape[1] == 0:
                    first, end = _run(tables[t], probe, int(bits[t]))
                else:
                    prefix = signed(probe >> np.uint64(64 - bits[t]))
                    first, end = _bounds(offsets[t], prefix)
                total = scan(tables[t], first, end, moved, earlier[t, :t], radii, only_first, met, total)
                out[PROBES] += 1
                out[CANDIDATES] += end - first
                if only_first and total > before:
                    break
            for one in range(recorded, min(total, met.size)):
                met[one] = _restore(met[one], segments[t])
            if only_first and total > before:
                break
        if ends.size > 0:
            ends[i] = total
        out[MATCHED] += total > before
    out[MATCHES] += total


@compiled
def linear(values: Words, queries: Words, only_first: bool, out: Ints) -> None:
    none, no_radii, met = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(1, np.uint64)
    for i in range(queries.size):
        count = scan(values, 0, values.size, queries[i], none, no_radii, only_first, met, 0)
        out[PROBES] += 1
        out[CANDIDATES] += values.size
        out[MATCHES] += count
        out[MATCHED] += count > 0


@compiled
def ranks_of(
    weights: Weights,
    ends: Ints,
    met: Words,
    p: int,
    calibrated: bool,
    most: int,
    work: Reals,
    codes: Ints,
    masks: Words,
    ranks: Ints,
) -> None:
    """At which probe each match is found: 0 under the own prefix, k at the k-th combination, most + 1 if
    later.
    """
    kept = ~np.uint64(0) << np.uint64(64 - p)
    for i in range(ends.size):
        first = ends[i - 1] if i > 0 else 0
        missing = 0
        for one in range(first, ends[i]):
            ranks[one] = 0 if met[one] & kept == 0 else most + 1
            missing += ranks[one] > 0
        if missing == 0:
            continue
        size = start(weights[i], p, calibrated, work, codes, masks)
        probe = 0
        while missing > 0 and probe < most and size > 0:
            mask, size = following(p, work, codes, masks, size)
            probe += 1
            for one in range(first, ends[i]):
                if met[one] & kept == mask:
                    ranks[one] = probe
                    missing -= 1


@compiled
def adaptive(flips: Words, chances: Reals, met: Words, thresholds: Reals, out: Ints) -> None:
    """Every flip of a query whose probability, of all, reaches a threshold, as this project's index chooses
    them.

    - ``flips``, ``chances``: shape (f,), of ``plan_flips`` for ``NEARLY_ALL``.
    - ``met``: the differences of the query's matches within the prefix.
    - ``thresholds``: shape (t,).
    - ``out``: (t, 4); PROBES without that of the own prefix.
    """
    whole = chances.sum() / NEARLY_ALL
    for t in range(thresholds.size):
        chosen = 1
        while chosen < chances.size and chances[chosen] >= thresholds[t] * whole:
            chosen += 1
        out[t, PROBES] += chosen - 1
        found = 0
        for one in range(met.size):
            for probe in range(chosen):
                if flips[probe] == met[one]:
                    found += 1
                    break
        out[t, MATCHES] += found
        out[t, MATCHED] += found > 0
