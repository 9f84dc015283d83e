"""The systems that :mod:`benchmarks.bench_thesis` compares, built over stored fingerprints, and how they are
timed.
"""

from __future__ import annotations

import itertools
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from benchmarks import thesis_kernels as kernels
from benchmarks.thesis_flips import MOST_PROBES, H, scratch
from neardup.index.base import ANY_NUMBER
from neardup.index.psm.flips import plan_flips
from neardup.index.psm.psm_index import PSMIndex
from neardup.index.tables import cut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Words: TypeAlias = npt.NDArray[np.uint64]
    Ints: TypeAlias = npt.NDArray[np.int64]
    Weights: TypeAlias = npt.NDArray[np.float32]
    Facts: TypeAlias = dict[str, Any]

REPETITIONS = 3
_BLOCK = 1 << 14
"""Queries in one call of this project's index."""


@dataclass(frozen=True)
class Asked:
    """Queries: ``values`` (m,) and their bit weights (m, 64)."""

    values: Words
    weights: Weights

    def first(self, m: int) -> Asked:
        return Asked(self.values[:m], self.weights[:m])

    def at(self, chosen: npt.NDArray[Any]) -> Asked:
        return Asked(self.values[chosen], self.weights[chosen])


@dataclass(frozen=True)
class Truth:
    """All matches of queries: differences ``met``, those of query i end at ``ends[i]``."""

    ends: Ints
    met: Words

    @property
    def counts(self) -> Ints:
        return np.diff(self.ends, prepend=0)


class Psm:
    """PSM of the thesis: one sorted table, 2^p offsets."""

    def __init__(self, ordered: Words, p: int) -> None:
        self.p = p
        self.values = ordered
        self.offsets = np.empty((1 << p) + 1, dtype=np.uint32)
        kernels.make_offsets(ordered, p, self.offsets)
        self.nbytes = ordered.nbytes + self.offsets.nbytes
        self._scratch = scratch()

    def search(self, asked: Asked, k: int, *, only_first: bool, calibrated: bool = False) -> Ints:
        out = np.zeros(4, dtype=np.int64)
        kernels.psm(
            self.values, self.offsets, self.p, asked.values, asked.weights, k, calibrated, only_first,
            *self._scratch, out,
        )  # fmt: skip
        return out


class Exact:
    """Permuted and sorted copies, one for each choice of ``leading`` blocks; with ``direct`` offsets, or
    binary search.
    """

    def __init__(
        self, values: Words, blocks: int, leading: int, radii: Sequence[int] = (), *, direct: bool = False
    ) -> None:
        parts = [(64 - block.start - block.width, block.width) for block in cut(blocks)]
        chosen = list(itertools.combinations(range(blocks), leading))
        orders = [[*some, *(b for b in range(blocks) if b not in some)] for some in chosen]
        self.segments = np.array([[parts[b] for b in order] for order in orders], dtype=np.int64)
        self.bits = np.array([sum(parts[b][1] for b in some) for some in chosen], dtype=np.int64)
        self.radii = np.array(radii or [0] * len(chosen), dtype=np.int64)
        masks = [sum(((1 << parts[b][1]) - 1) << parts[b][0] for b in some) for some in chosen]
        self.earlier = np.array(
            [[kernels.permute(np.uint64(mask), segments) for mask in masks] for segments in self.segments],
            dtype=np.uint64,
        )
        self.tables = np.empty((len(chosen), len(values)), dtype=np.uint64)
        for table, segments in zip(self.tables, self.segments, strict=True):
            kernels.permute_all(values, segments, table)
            table.sort()
        width = (1 << int(self.bits.max())) + 1 if direct else 0
        self.offsets = np.empty((len(chosen), width), dtype=np.uint32)
        if direct:
            for table, bits, offsets in zip(self.tables, self.bits, self.offsets, strict=True):
                kernels.make_offsets(table, int(bits), offsets[: (1 << int(bits)) + 1])
        self.nbytes = self.tables.nbytes + self.offsets.nbytes

    def search(self, asked: Asked, *, only_first: bool) -> Ints:
        return self._search(asked.values, only_first, np.empty(0, np.uint64), np.empty(0, np.int64))

    def _search(self, queries: Words, only_first: bool, met: Words, ends: Ints) -> Ints:
        out = np.zeros(4, dtype=np.int64)
        kernels.exact(
            self.tables, self.offsets, self.segments, self.bits, self.radii, self.earlier, queries,
            only_first, out, met, ends,
        )  # fmt: skip
        return out

    def truth(self, asked: Asked) -> Truth:
        ends = np.zeros(len(asked.values), dtype=np.int64)
        met = np.empty(max(1, 8 * len(ends)), dtype=np.uint64)
        total = int(self._search(asked.values, False, met, ends)[kernels.MATCHES])
        if total > len(met):
            met = np.empty(total, dtype=np.uint64)
            self._search(asked.values, False, met, ends)
        return Truth(ends, met[:total])


def manku(values: Words, tables: int) -> Exact:
    """The designs (z, x) of 4, 10 and 20 tables."""
    blocks = {4: 4, 10: 5, 20: 6}[tables]
    return Exact(values, blocks, blocks - H)


def multi_index(values: Words) -> Exact:
    """Multi-index hashing with three blocks, the first of which may differ in one bit."""
    return Exact(values, 3, 1, (1, 0, 0), direct=True)


class Project:
    """This project's index with one recall, asked in large blocks: what a query costs without Python around
    it.

    The time includes the table of matches that a block gives back, and making float64 of the weights.
    """

    def __init__(self, values: Words, recall: float) -> None:
        self.index = PSMIndex(max_distance=H, recall=recall)
        self.index.extend(values, np.arange(len(values), dtype=np.int64))
        assert len(self.index) == len(values)
        self.nbytes = self.index.nbytes
        self._threshold = 0.0

    def search(self, asked: Asked, *, only_first: bool) -> Ints:
        out = np.zeros(4, dtype=np.int64)
        most = 1 if only_first else ANY_NUMBER
        for start in range(0, len(asked.values), _BLOCK):
            values = asked.values[start : start + _BLOCK]
            weights = asked.weights[start : start + _BLOCK].astype(np.float64)
            found, costs, self._threshold = self.index.match_block(values, weights, most, self._threshold)
            queries, probes, _, candidates = costs
            assert queries == len(values)
            out[kernels.PROBES] += probes
            out[kernels.CANDIDATES] += candidates
            out[kernels.MATCHES] += len(found)
            out[kernels.MATCHED] += np.count_nonzero(np.diff(found[:, 0])) + (len(found) > 0)
        return out


def linear(ordered: Words, asked: Asked, *, only_first: bool) -> Ints:
    out = np.zeros(4, dtype=np.int64)
    kernels.linear(ordered, asked.values, only_first, out)
    return out


def _seconds(search: Callable[[Asked], Ints], asked: Asked) -> tuple[float, Ints]:
    started = time.process_time()
    out = search(asked)
    return time.process_time() - started, out


def measure(searches: dict[str, Callable[[Asked], Ints]], asked: Asked, budget: float) -> dict[str, Facts]:
    """Microseconds of CPU time a query, median of interleaved repetitions, each of about ``budget`` seconds
    or all queries.
    """
    parts: dict[str, Asked] = {}
    for name, search in searches.items():
        search(asked.first(1))  # compiles
        m = 4
        seconds, _ = _seconds(search, asked.first(m))
        while seconds < budget / 20 and m < len(asked.values):
            m = min(8 * m, len(asked.values))
            seconds, _ = _seconds(search, asked.first(m))
        m = int(min(len(asked.values), max(4, m * budget / max(seconds, 1e-9))))
        parts[name] = asked.first(m)
    times: dict[str, list[float]] = {name: [] for name in searches}
    outs: dict[str, Ints] = {}
    for _ in range(REPETITIONS):
        for name, search in searches.items():
            seconds, outs[name] = _seconds(search, parts[name])
            times[name].append(seconds)
    facts = {}
    for name, part in parts.items():
        m, out = len(part.values), outs[name]
        assert out[kernels.PROBES] >= m, "every query probes"
        facts[name] = {
            "us": statistics.median(times[name]) / m * 1e6,
            "us_least": min(times[name]) / m * 1e6,
            "us_most": max(times[name]) / m * 1e6,
            "queries": m,
            "matches": int(out[kernels.MATCHES]),
            "matched": int(out[kernels.MATCHED]),
            "candidates": float(out[kernels.CANDIDATES] / m),
            "probes": float(out[kernels.PROBES] / m),
        }
    return facts


def ranks(asked: Asked, truth: Truth, p: int, most: int, *, calibrated: bool) -> Ints:
    """At which of ``most`` flips each match is found; most + 1 for later."""
    found = np.empty(len(truth.met), dtype=np.int64)
    kernels.ranks_of(asked.weights, truth.ends, truth.met, p, calibrated, most, *scratch(), found)
    return found


def recalls(found: Ints, truth: Truth, most: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Recall of F and of A (eq. 7.4, 7.5) with 0 … most flips."""
    all_ = np.cumsum(np.bincount(found, minlength=most + 2))[: most + 1] / len(found)
    counts = truth.counts
    starts = (truth.ends - counts)[counts > 0]
    first = np.minimum.reduceat(found, starts)
    return np.cumsum(np.bincount(first, minlength=most + 2))[: most + 1] / len(first), all_


def least(curve: npt.NDArray[np.float64], wanted: float) -> int | None:
    """The fewest flips that reach a recall; None: none of those tried."""
    reached = np.flatnonzero(curve >= wanted)
    return int(reached[0]) if len(reached) else None


def between(curve: npt.NDArray[np.float64], wanted: float) -> float | None:
    """The same, interpolated between whole numbers: what a mean of k over queries could reach."""
    k = least(curve, wanted)
    if not k:
        return k
    return float(k - (curve[k] - wanted) / (curve[k] - curve[k - 1]))


def adaptive_curve(asked: Asked, truth: Truth, p: int, thresholds: Sequence[float]) -> list[Facts]:
    """Mean flips and recall of F and A when flips with p prefix bits are chosen by their probability, at each
    threshold.
    """
    matched = int((truth.counts > 0).sum())
    out = np.zeros((len(thresholds), 4), dtype=np.int64)
    wanted, kept = np.array(thresholds), ~np.uint64(0) << np.uint64(64 - p)
    for weights, met in zip(asked.weights, np.split(truth.met & kept, truth.ends[:-1]), strict=True):
        flips, chances = plan_flips(weights.astype(np.float64), p, H, kernels.NEARLY_ALL, MOST_PROBES)
        kernels.adaptive(flips, chances, met, wanted, out)
    return [
        {
            "threshold": threshold,
            "flips": float(row[kernels.PROBES] / len(truth.ends)),
            "first": float(row[kernels.MATCHED] / matched),
            "all": float(row[kernels.MATCHES] / len(truth.met)),
        }
        for threshold, row in zip(thresholds, out, strict=True)
    ]
