"""What an index for so many pages will need: prefix bits, probes, candidates, memory, time (Sood, chapter
VI).

The model is the thesis's, with the constants measured on the machine it runs on and the shape of the indexes
built here:

- PSM: time = c0 + k · (c1 + c2 · X / k), eq. 6.16 without its heap; X fingerprints compared, eq. 6.21. The
  prefix bits p are not one number for all (:mod:`neardup.index.psm.tree`), so k and X are sums over the
  levels of the tree.
- Manku's tables: C(z, x) of them (eq. 6.7), X = L · 2^(d - x·f/z) fingerprints compared (eq. 6.6), memory as
  eq. 6.12.
- Multi-index hashing: as Manku's tables, with the probes of its radii.

Fingerprints of pages are skewed. Stored fingerprints, if given, tell how much more work they make than evenly
spread ones. Stored fingerprints also tell by how much that work grows with their number (:func:`_growth`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.errors import ConfigurationError
from neardup.fingerprint.simhash import Fingerprint
from neardup.index.psm import tree, walk
from neardup.index.psm.child_probability import PAD, STEP, sums_behind
from neardup.index.psm.flips import flip_odds, plan_flips
from neardup.index.psm.psm_index import PSMIndex
from neardup.index.scan import LinearScan
from neardup.index.table_kernels import FETCHED
from neardup.index.tables import MankuTables, MultiIndexHashing, prefix_bits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from neardup.index.base import Index

MEASURED_PAGES = 1_000_000
"""Exact indexes are built up to this size; what is larger is calculated."""
MEASURED_PSM = 10_000_000
"""And PSM's, of which so many are stored in a second or two."""

_QUERIES = 2_000
_SCANS = 50
_ROUNDS, _SECONDS = 11, 0.2
"""A look-up is timed in so many rounds and for so long, at least."""
_FEWEST_SAMPLED = 400
_FEWEST_MORE = 2.0
_MOST_FURTHER = 4.0
"""Times that a probe may take longer for the size of the index alone; what is measured beyond it is noise."""
_LEVELS = 15
_CHILDREN = 1 << STEP
_LIMITS = np.array(tree.LIMITS)
_LOWS_A_LINE = 16
"""Lower halves of fingerprints in a cache line of 64 bytes."""
_VALUES_A_LINE = 8
_MODELLED = 200
"""Queries that the model of PSM is worked out for."""
_MOST_PROBES, _MOST_ROWS = 1 << 18, 1 << 22
"""Leaves that the model counts of one query, at most, and of all."""
_FAR_BYTES = 1 << 30
_PROBE_IN_CANDIDATES = 20.0
"""What reaching a run costs, in comparisons."""


class Cost(NamedTuple):
    """What a look-up costs: prefix bits, probes and candidates on average, bytes in all, microseconds."""

    name: str
    recall: float
    prefix_bits: float
    probes: float
    candidates: float
    nbytes: float
    microseconds: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Stored fingerprints, shape (n,), and the queries to plan for."""

    values: npt.NDArray[np.uint64]
    queries: Sequence[Fingerprint]


def typical_queries(count: int = _QUERIES) -> list[Fingerprint]:
    """Queries with bit weights as pages have them: normal ones.

    Quartiles of the relative weight of 10,912 documentation pages: .042, .088, .148; of these: .040, .084,
    .144.
    """
    weights = np.random.default_rng(1).normal(size=(count, 64))
    values = np.packbits(weights > 0.0, axis=1).view(">u8").ravel().tolist()
    return [Fingerprint(value, row) for value, row in zip(values, weights, strict=True)]


def plan(pages: int, *, max_distance: int, recall: float, sample: Sample | None = None) -> list[Cost]:
    """Costs of each index at so many pages, the fastest first. Takes some seconds: it measures.

    ``sample``: stored fingerprints and their weights, if there are enough to tell how skewed they are (some
    thousands).
    """
    if sample is not None and len(sample.values) < _FEWEST_SAMPLED:
        raise ConfigurationError(
            f"a sample of {len(sample.values)} fingerprints tells too little; it takes {_FEWEST_SAMPLED}"
        )
    queries = typical_queries() if sample is None else list(sample.queries)
    # What is built small has as many blocks as what is planned.
    blocks = len(MultiIndexHashing(max_distance=max_distance).sub_tables(pages))
    multi_index = partial(MultiIndexHashing, max_distance=max_distance, blocks=blocks)
    costs = [
        _psm(pages, max_distance, recall, queries, sample),
        _tables("multi-index", multi_index, pages, queries, sample),
        _tables("manku", partial(MankuTables, max_distance=max_distance), pages, queries, sample),
        _scan(pages, max_distance, queries, sample),
    ]
    return sorted(costs, key=lambda cost: cost.microseconds)


def level_shares(pages: float) -> npt.NDArray[np.float64]:
    """Share of the prefixes whose leaf is at each level, shape (15,), for evenly spread fingerprints.

    A leaf at level l holds n / 8^l on average and is divided if that is more than its limit, one of eight.
    """
    shares = np.zeros(_LEVELS)
    left = 1.0
    for level in range(_LEVELS):
        limits = _LIMITS[:1] if level == 0 else _LIMITS  # there is one root
        divided = _full(pages / _CHILDREN**level, limits) if level < _LEVELS - 1 else 0.0
        shares[level] = left * (1.0 - divided)
        left *= divided
    return shares


def _full(mean: float, limits: npt.NDArray[np.int64]) -> float:
    """Probability that a leaf whose number is Poisson distributed with a mean has passed its limit at some
    time.
    """
    deviation = math.sqrt(mean) or 1.0
    return float(
        np.mean([0.5 * math.erfc((limit + 0.5 - mean) / (deviation * math.sqrt(2))) for limit in limits])
    )


def probes_of_psm(
    pages: int, *, max_distance: int, recall: float, queries: Sequence[Fingerprint]
) -> tuple[float, float, float]:
    """Prefix bits, probes k and candidates X (eq. 6.21) of a look-up that finds nothing, evenly spread
    fingerprints.

    As the index does it (:func:`neardup.index.psm.walk.search`): all leaves above one threshold are probed,
    so high that queries cover ``recall`` on average, and a little more.
    """
    shares = level_shares(pages)
    met = np.flatnonzero(shares > 1e-3).tolist()

    def likely(query: Fingerprint, level: int) -> npt.NDArray[np.float64]:
        # Of one with clear weights leaves are above the threshold that it would not need by itself.
        wanted = 1.0 - 0.01 * (1.0 - recall)
        _, chances = plan_flips(query.weights, STEP * level, max_distance, wanted, _MOST_PROBES)
        behind, _ = sums_behind(flip_odds(query.weights, max_distance).tolist(), max_distance)
        return chances / behind[0][PAD + max_distance]

    most = max(len(likely(query, met[-1])) for query in queries[:3])
    some = queries[: max(10, min(_MODELLED, _MOST_ROWS // (most * len(met))))]
    covered, parts = 0.0, []
    for level in met:
        for query in some:
            weight, of_query = shares[level] / len(some), likely(query, level)
            covered += weight * of_query[0]
            columns = of_query[1:], np.full(len(of_query) - 1, weight), np.full(len(of_query) - 1, level)
            parts.append(np.column_stack(columns))
    leaves = np.concatenate(parts)
    leaves = leaves[np.argsort(-leaves[:, 0])]
    covers = covered + np.cumsum(leaves[:, 0] * leaves[:, 1])
    enough = (
        int(np.searchsorted(covers, recall + walk.MARGIN * (1.0 - recall))) + 1 if covered < recall else 0
    )
    probes = shares + np.bincount(
        leaves[:enough, 2].astype(np.int64), weights=leaves[:enough, 1], minlength=_LEVELS
    )
    levels = np.arange(_LEVELS)
    candidates = probes * pages / float(_CHILDREN) ** levels
    return _bits(shares), float(probes.sum()), float(candidates.sum())


def _bits(shares: npt.NDArray[np.float64]) -> float:
    """Mean number of prefix bits of leaves with these shares of the levels."""
    return float((shares * np.arange(_LEVELS)).sum() * STEP)


class _Measured(NamedTuple):
    probes: float
    candidates: float
    microseconds: float
    bytes_each: float


def _measure(index: Index, values: npt.NDArray[np.uint64], queries: Sequence[Fingerprint]) -> _Measured:
    """Look-ups that find nothing, timed on an index of its own: the fastest of some rounds, for what else a
    machine does only adds.
    """
    if len(index) == 0:
        index.extend(values, np.arange(len(values)))
    before = replace(index.stats)
    rounds: list[float] = []
    while len(rounds) < _ROUNDS or sum(rounds) * len(queries) < _SECONDS:
        started = perf_counter()
        for query in queries:
            index.find_all(query)
        rounds.append((perf_counter() - started) / len(queries))
    made = len(rounds) * len(queries)
    return _Measured(
        (index.stats.probes - before.probes) / made,
        (index.stats.candidates - before.candidates) / made,
        1e6 * min(rounds),
        index.nbytes / max(1, len(index)),
    )


def _stored(pages: int, sample: Sample | None, most: int) -> npt.NDArray[np.uint64]:
    """What to build the measured index of."""
    size = min(pages, most)
    if sample is not None:
        return sample.values[:size]
    return np.random.default_rng(2).integers(0, 2**64 - 1, size=size, dtype=np.uint64, endpoint=True)


def _growth(quarter: float, whole: float, factor: float) -> float:
    """By how much a figure grows with ``factor`` times the fingerprints.

    The figure grows as a power of the number of fingerprints; the power is that of the growth from a quarter
    of them to all.
    """
    if quarter <= 0.0:
        return 1.0
    return float(max(1.0, whole / quarter) ** (math.log(factor) / math.log(4.0)))


def _psm(
    pages: int, max_distance: int, recall: float, queries: Sequence[Fingerprint], sample: Sample | None
) -> Cost:
    def measure(values: npt.NDArray[np.uint64], queries: Sequence[Fingerprint]) -> tuple[_Measured, float]:
        """And the microseconds of a probe."""
        built = PSMIndex(max_distance=max_distance, recall=recall)
        whole = _measure(built, values, queries)
        low = PSMIndex.from_arrays(built.arrays(), max_distance=max_distance, recall=recall / 2)
        few = _measure(low, values, queries)
        more = whole.probes - few.probes
        # Too few more probes tell nothing of what one costs.
        return whole, max(0.0, whole.microseconds - few.microseconds) / more if more > _FEWEST_MORE else 0.0

    values = _stored(pages, sample, MEASURED_PSM)
    made, each = measure(values, queries)
    model = partial(probes_of_psm, max_distance=max_distance, recall=recall, queries=queries)
    near, probes, candidates = len(values), made.probes, made.candidates
    if pages > len(values) and sample is None:
        (_, *planned), (_, *there) = model(pages), model(len(values))
        probes, candidates = probes * planned[0] / there[0], candidates * planned[1] / there[1]
    elif pages > len(values):
        quarter = _measure(
            PSMIndex(max_distance=max_distance, recall=recall), values[: len(values) // 4], queries
        )
        times = pages / len(values)
        probes *= _growth(quarter.probes, made.probes, times)
        candidates *= _growth(quarter.candidates, made.candidates, times)
        # What of the time comes from the size alone, evenly spread ones tell.
        near = min(pages, MEASURED_PSM)
        (_, small), (_, large) = (
            measure(_stored(n, None, n), typical_queries()) for n in (len(values), near)
        )
        if small > 0.0:
            each *= min(max(1.0, large / small), _MOST_FURTHER)
    fixed = max(0.0, made.microseconds - each * made.probes)
    each += candidates / probes / _LOWS_A_LINE * _further(near * made.bytes_each, pages * made.bytes_each)
    time = float(fixed + each * probes)
    bits = _bits(level_shares(pages))
    return Cost("psm", recall, bits, float(probes), float(candidates), pages * made.bytes_each, time)


def _further(near_bytes: float, far_bytes: float) -> float:
    """Microseconds that a cache line takes more from a larger array, with many under way at once."""
    far = min(far_bytes, _FAR_BYTES)
    if far <= near_bytes:
        return 0.0
    return 1e6 * max(0.0, _line_seconds(int(far)) - _line_seconds(int(near_bytes)))


def _line_seconds(nbytes: int) -> float:
    lines = max(1, nbytes // 64)
    array = np.ones(lines * 8, dtype=np.uint64)
    wanted = np.random.default_rng(3).integers(0, lines, size=200_000) * 8
    rounds = []
    for _ in range(5):
        started = perf_counter()
        array[wanted].sum()
        rounds.append((perf_counter() - started) / len(wanted))
    return min(rounds)


def work_of_tables(index: MultiIndexHashing | MankuTables, pages: int) -> tuple[float, float, float, float]:
    """Prefix bits, probes, candidates (eq. 6.6) and bytes (eq. 6.12, with rows and offsets) of an exact
    index.
    """
    bits = probes = candidates = nbytes = 0.0
    sub_tables = index.sub_tables(pages)
    for each in sub_tables:
        leading = prefix_bits(pages, each)
        keys = sum(math.comb(leading, flipped) for flipped in range(min(each.radius, leading) + 1))
        bits += leading / len(sub_tables)
        probes += keys
        candidates += keys * pages / 2**leading
        nbytes += 12 * pages + 4 * 2**leading
    return bits, probes, candidates, nbytes


def _tables(
    name: str,
    make: Callable[[], MultiIndexHashing | MankuTables],
    pages: int,
    queries: Sequence[Fingerprint],
    sample: Sample | None,
) -> Cost:
    def skew(values: npt.NDArray[np.uint64]) -> tuple[_Measured, float]:
        """Costs, and how many times more candidates there are than the model says."""
        index = make()
        measured = _measure(index, values, queries)
        return measured, measured.candidates / max(1e-9, work_of_tables(index, len(values))[2])

    values = _stored(pages, sample, MEASURED_PAGES)
    measured, near_skew = skew(values)
    bits, probes, candidates, nbytes = work_of_tables(make(), pages)
    candidates *= near_skew
    if pages == len(values):
        return Cost(name, 1.0, bits, probes, candidates, nbytes, measured.microseconds)
    if sample is not None:
        _, quarter_skew = skew(values[: len(values) // 4])
        candidates *= _growth(quarter_skew, near_skew, pages / len(values))
    empty = _measure(make(), values[:1], queries)
    each = max(0.0, measured.microseconds - empty.microseconds) / _work(measured.probes, measured.candidates)
    time = empty.microseconds + each * _work(probes, candidates)
    # What a long run has beyond its first lines the processor foresees.
    lines = 1.0 + min(candidates / probes, FETCHED) / _VALUES_A_LINE
    time += probes * lines * _further(work_of_tables(make(), len(values))[3], nbytes)
    return Cost(name, 1.0, bits, probes, candidates, nbytes, time)


def _work(probes: float, candidates: float) -> float:
    """Of an exact index, in comparisons."""
    return probes * _PROBE_IN_CANDIDATES + candidates


def _scan(pages: int, max_distance: int, queries: Sequence[Fingerprint], sample: Sample | None) -> Cost:
    values = _stored(pages, sample, MEASURED_PAGES)
    measured = _measure(LinearScan(max_distance=max_distance), values, queries[:_SCANS])
    time = measured.microseconds * pages / len(values)
    return Cost("scan", 1.0, 0.0, 0.0, float(pages), measured.bytes_each * pages, time)
