"""Which bits of fingerprints to group a chunk by, and which of them to flip: the preprocessing of batch mode
(Sood, V.B).

There are two ways to search a chunk. The way that is cheaper by an estimate is taken:

- *psm*: one table over p chosen bits, and for each query the flips that
  :func:`neardup.index.psm.flips.plan_flips` finds among them for the wanted recall;
- *blocks*, exact: b tables over disjoint sets of bits. Let Σ (r_t + 1) = h + 1. Two fingerprints at most h
  bits apart then differ in at most r_t bits of some set t (pigeonhole). So at most r_t bits of set t need to
  be flipped. One table over no bits is the linear scan.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neardup.collection import matching_kernels as kernels

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.collection.matching_kernels import Flips

PROBE_NS, COMPARE_NS, GROUP_NS = 20.0, 0.4, 12.0
"""Measured costs of a probe, of comparing with one fingerprint and of grouping one; only the choice of tables
hangs on them.
"""

PLAN_NS = 60.0
"""Measured cost of planning a flip, once for the whole file."""

_CACHED_BITS, _PROBE_NS_PER_BIT, _GROUP_PER_BIT = 18, 5.0, 1.5
"""With more prefix bits than this, offsets leave the processor's cache: what a probe then costs more, and
grouping times.
"""

MOST_FLIPS = 1 << 13
"""Probes of a query; a query that needs more for its recall does with these."""
_MOST_MEAN_FLIPS = 1000
_MOST_PREFIX_BITS = 26
_SAMPLE = 1 << 14
_PLANNED_SAMPLE = 256
_ALL_BITS = 2**64 - 1


@dataclass(frozen=True)
class TablePlan:
    """One table of a plan.

    ``bits`` are 64 positions from the most significant bit, the p of the prefix first. For *blocks*,
    ``flips`` are the flips of every query, and ``radius`` is the r_t that ``flips`` cover.
    """

    bits: npt.NDArray[np.int64]
    prefix_bits: int
    flips: Flips | None
    radius: int

    @property
    def prefix(self) -> npt.NDArray[np.int64]:
        return self.bits[: self.prefix_bits]

    @property
    def mask(self) -> int:
        return sum(1 << (63 - int(bit)) for bit in self.prefix)


@dataclass(frozen=True)
class Plan:
    """How a chunk is searched. ``cost`` is the estimated time in all, in ns; ``name`` is psm, blocks or scan,
    for people.
    """

    tables: list[TablePlan]
    cost: float
    name: str

    @property
    def exact(self) -> bool:
        return self.tables[0].flips is not None


def make_plan(
    queries: npt.NDArray[np.uint64],
    weak_bits: npt.NDArray[np.uint8] | None,
    *,
    rows: int,
    chunk_rows: int,
    max_distance: int,
    recall: float,
    search: str,
) -> Plan:
    """The cheapest plan for a file of ``rows`` in chunks; ``search``: "auto", "psm" (needs weak bits) or
    "blocks".

    Bits are chosen by a sample of the queries, not of the file. The queries are at hand, and the choice does
    not depend on the order of the file. Fingerprints cost something only where queries are.
    """
    sample = queries[:: max(1, len(queries) // _SAMPLE)][:_SAMPLE]
    order = kernels.choose_bits(np.ascontiguousarray(sample), _ALL_BITS, 64)
    sizes = _Sizes(len(queries), max(1, min(rows, chunk_rows)), max(1, -(-rows // chunk_rows)), max_distance)
    plans = [] if search == "psm" else _block_plans(sample, order, sizes)
    if search != "blocks" and weak_bits is not None:
        packed = np.ascontiguousarray(weak_bits[:: max(1, len(queries) // _PLANNED_SAMPLE)])
        plans += _flip_plans(sample, packed, order, sizes, recall)
    return min(plans or _block_plans(sample, order, sizes), key=lambda plan: plan.cost)


@dataclass(frozen=True)
class _Sizes:
    """The sizes that a plan is made for; ``rows`` are those of a chunk."""

    queries: int
    rows: int
    chunks: int
    max_distance: int

    def cost(self, probes: float, load: float, p: int) -> float:
        """Eq. 6.19 without its first term, in ns, for all chunks; grouping in place of sorting."""
        beyond = max(0, p - _CACHED_BITS)
        probe = PROBE_NS + beyond * _PROBE_NS_PER_BIT + load * COMPARE_NS
        return self.chunks * (self.queries * probes * probe + self.rows * GROUP_NS * _GROUP_PER_BIT**beyond)


def _load(sample: npt.NDArray[np.uint64], table: TablePlan, rows: int) -> float:
    """Fingerprints that a query meets under its own prefix: the chance that two of the sample share theirs,
    times ``rows``.
    """
    even = rows / 2.0**table.prefix_bits
    if len(sample) < 2:
        return even
    counts = np.unique(kernels.prefixes_of(np.ascontiguousarray(sample), table.prefix), return_counts=True)[1]
    together = float(counts @ counts) - len(sample)
    return max(even, rows * together / (len(sample) * (len(sample) - 1.0)))


def _flip_plans(
    sample: npt.NDArray[np.uint64],
    weak_bits: npt.NDArray[np.uint8],
    order: npt.NDArray[np.int64],
    sizes: _Sizes,
    recall: float,
) -> list[Plan]:
    """PSM with p from 2 to 26; p whose flips are too many are left out."""
    plans = []
    top = min(_MOST_PREFIX_BITS, max(2, sizes.rows.bit_length() + 2))
    for p in range(2, top + 1, 2):
        table = TablePlan(order, p, None, 0)
        starts, _ = plan_queries(weak_bits, table, sizes.max_distance, recall)
        flips = np.diff(starts)
        if flips.mean() > _MOST_MEAN_FLIPS or flips.max() >= MOST_FLIPS:
            break
        cost = sizes.cost(float(flips.mean()), _load(sample, table, sizes.rows), p)
        # The first term of eq. 6.19.
        cost += sizes.queries * float(flips.mean()) * PLAN_NS
        plans.append(Plan([table], cost, f"psm, {p} prefix bits, {flips.mean():.1f} probes a query"))
    return plans


def _block_plans(sample: npt.NDArray[np.uint64], order: npt.NDArray[np.int64], sizes: _Sizes) -> list[Plan]:
    """The linear scan, and 1 to h + 1 tables."""
    scan = Plan(
        [TablePlan(order, 0, ball(0, 0), 0)],
        float(sizes.queries) * sizes.rows * sizes.chunks * COMPARE_NS,
        "linear scan",
    )
    plans = [scan]
    widest = min(_MOST_PREFIX_BITS, max(1, sizes.rows.bit_length()))
    for blocks in range(1, sizes.max_distance + 2):
        # Dealt out in turn, so that every set has its share of the best bits.
        sets = [
            np.concatenate([order[t::blocks], np.setdiff1d(order, order[t::blocks])]) for t in range(blocks)
        ]
        more = sizes.max_distance + 1 - blocks
        radii = [more // blocks + (t < more % blocks) for t in range(blocks)]
        width = min(64 // blocks, widest)
        for p in range(max(1, width - 6), width + 1, 2):
            if max(_combinations(p, radius) for radius in radii) > MOST_FLIPS:
                continue
            tables = [
                TablePlan(bits, p, ball(p, radius), radius) for bits, radius in zip(sets, radii, strict=True)
            ]
            cost = sum(
                sizes.cost(_combinations(p, table.radius), _load(sample, table, sizes.rows), p)
                for table in tables
            )
            plans.append(Plan(tables, cost, f"{blocks} blocks of {p} bits"))
    return plans


def _combinations(bits: int, radius: int) -> int:
    return sum(math.comb(bits, size) for size in range(min(radius, bits) + 1))


def ball(bits: int, radius: int) -> Flips:
    """Flips of every query: all masks of at most ``radius`` of ``bits`` bits, those of fewest ones first.

    >>> ball(3, 1)[1].tolist()
    [0, 1, 2, 4]
    """
    masks = [
        sum(1 << bit for bit in chosen)
        for size in range(min(radius, bits) + 1)
        for chosen in itertools.combinations(range(bits), size)
    ]
    return np.array([0, len(masks)]), np.array(masks, dtype=np.uint32)


def plan_queries(
    weak_bits: npt.NDArray[np.uint8], table: TablePlan, max_distance: int, recall: float
) -> Flips:
    """The flips of queries by their weak bits, (b, 48)."""
    return kernels.plan_queries(weak_bits, table.bits, table.prefix_bits, max_distance, recall, MOST_FLIPS)
