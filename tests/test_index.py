from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from neardup import hamming
from neardup.errors import ConfigurationError
from neardup.index import kernels
from neardup.index.psm import PSMIndex
from neardup.index.scan import LinearScan
from neardup.simhash import Fingerprint
from tests import psm_reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.index.base import Index

ALL_ONES = 2**64 - 1


def query(value: int, *, seed: int = 0) -> Fingerprint:
    """A fingerprint with normally distributed weights whose signs are the bits of ``value``."""
    magnitudes = np.abs(np.random.default_rng(seed).normal(size=64))
    signs = np.array([1.0 if value >> (63 - j) & 1 else -1.0 for j in range(64)])
    return Fingerprint(value, magnitudes * signs)


def flip(fingerprint: Fingerprint, ranks: tuple[int, ...]) -> int:
    """The value with some of its weakest bits flipped; rank 0 is the weakest of all 64."""
    order = np.argsort(fingerprint.relative_weights())
    return fingerprint.value ^ sum(1 << (63 - int(order[rank])) for rank in ranks)


def ranks_of(combination: tuple[int, ...]) -> int:
    return sum(1 << (index - 1) for index in combination)


INDEXES: list[Callable[[int], Index]] = [
    lambda max_distance: PSMIndex(max_distance=max_distance, recall=1.0),
    lambda max_distance: LinearScan(max_distance=max_distance),
]


@pytest.fixture(params=INDEXES, ids=["psm", "scan"])
def make_index(request: pytest.FixtureRequest) -> Callable[[int], Index]:
    return request.param  # type: ignore[no-any-return]


class TestNext:
    """Function *next* and the heap: thesis IV.B and algorithm 2."""

    def test_figure_3_starts_from_the_three_weakest_bits(self) -> None:
        assert psm_reference.following((1, 2, 3)) == [(1, 2, 4)]
        assert psm_reference.following((1, 2, 4)) == [(1, 2, 5), (1, 3, 4)]
        assert psm_reference.following((1, 3, 4)) == [(1, 3, 5), (2, 3, 4)]

    @pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
    def test_compiled_next_equals_the_printed_one(self, size: int) -> None:
        for combination in itertools.combinations(range(1, 13), size):
            expected = [ranks_of(successor) for successor in psm_reference.following(combination)]
            found = [int(ranks) for ranks in kernels.successors(np.uint64(ranks_of(combination))) if ranks]
            assert found == expected, combination

    @pytest.mark.parametrize("size", [1, 2, 3, 4])
    def test_each_combination_is_generated_exactly_once(self, size: int) -> None:
        bits = 9
        waiting, generated = [tuple(range(1, size + 1))], []
        while waiting:
            combination = waiting.pop()
            generated.append(combination)
            waiting += [s for s in psm_reference.following(combination) if s[-1] <= bits]

        assert sorted(generated) == list(itertools.combinations(range(1, bits + 1), size))

    @settings(max_examples=60)
    @given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9), st.integers(1, 4))
    def test_heap_yields_all_combinations_in_rising_cost(self, costs: list[float], largest: int) -> None:
        costs.sort()
        offsets = [0.0, 0.0, 0.3, 0.9, 1.0]

        by_heap = list(psm_reference.by_heap(costs, largest, offsets))

        by_sorting = psm_reference.by_sorting(costs, largest, offsets)
        assert sorted(c for _, c in by_heap) == sorted(c for _, c in by_sorting)
        assert [cost for cost, _ in by_heap] == pytest.approx([cost for cost, _ in by_sorting])


class TestProbing:
    """The compiled probing loop against the reference enumeration."""

    @pytest.mark.parametrize("max_distance", [1, 2, 3, 5])
    def test_probes_are_those_of_the_reference(self, max_distance: int) -> None:
        # With a fingerprint of every prefix stored, each probe meets exactly one candidate, and at distance 64 - p
        # of freedom below the prefix all of them can be made matches: their order is the order of the probes.
        wanted = query(0x0123456789ABCDEF, seed=3)
        index = PSMIndex(max_distance=max_distance, recall=1.0)
        shift = 64 - index.prefix_bits
        low = wanted.value & ((1 << shift) - 1)
        for prefix in range(1 << index.prefix_bits):
            index.add(prefix << shift | low, prefix)

        found = [match.value ^ wanted.value for match in index.find_all(wanted)]

        assert index.prefix_bits == 7
        assert index.stats.candidates == len(found) == index.stats.probes
        odds = np.exp(-kernels.FLIP_SLOPE * wanted.relative_weights())
        behind = [_sets_of(odds[7:], size) for size in range(max_distance + 1)]
        order = np.argsort(wanted.relative_weights()[:7])
        costs = [-float(np.log(odds[j])) for j in order]
        offsets = [-float(np.log(behind[max_distance - size])) for size in range(max_distance + 1)]
        expected = [
            sum(1 << (63 - int(order[i - 1])) for i in combination)
            for _, combination in psm_reference.by_heap(costs, max_distance, offsets)
        ]
        assert found == [0, *expected]

    @pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
    def test_probes_stop_when_the_target_is_covered(self, recall: float) -> None:
        # The covered probability of the reference enumeration, summed until the target is reached.
        wanted = query(0xFEDCBA9876543210, seed=7)
        index = PSMIndex(max_distance=3, recall=recall)

        index.find_all(wanted)

        odds = np.exp(-kernels.FLIP_SLOPE * wanted.relative_weights())
        whole = _sets_of(odds, 3)
        covered, probes = _sets_of(odds[7:], 3) / whole, 1
        costs = sorted(-float(np.log(odd)) for odd in odds[:7])
        offsets = [-float(np.log(_sets_of(odds[7:], 3 - size))) for size in range(4)]
        for cost, _ in psm_reference.by_heap(costs, 3, offsets):
            if covered >= recall:
                break
            covered += float(np.exp(-cost)) / whole
            probes += 1
        assert index.stats.probes == probes

    def test_higher_target_takes_more_probes(self) -> None:
        probes = []
        for recall in (0.5, 0.8, 0.95, 1.0):
            index = PSMIndex(recall=recall)
            index.find_all(query(12345))
            probes.append(index.stats.probes)

        assert probes == sorted(set(probes))

    def test_stats_count_queries_probes_and_empty_ones(self) -> None:
        index = PSMIndex(max_distance=3, recall=0.95)
        wanted = query(1 << 63)

        index.find_all(wanted)

        assert index.stats.queries == 1
        assert index.stats.probes == index.stats.empty_probes > 1
        assert index.stats.candidates == 0

    def test_find_first_stops_at_the_first_probe_for_a_twin(self) -> None:
        index = PSMIndex()
        wanted = query(99)
        index.add(99, 5)

        match = index.find_first(wanted)

        assert match == (5, 99, 0)
        assert (index.stats.probes, index.stats.candidates) == (1, 1)


def _sets_of(odds: np.ndarray[tuple[int, ...], np.dtype[np.float64]], size: int) -> float:
    """Sum over all sets of ``size`` bits of the product of their odds, by writing them down."""
    return float(
        sum(np.prod(odds[list(chosen)]) for chosen in itertools.combinations(range(len(odds)), size))
    )


class TestIndex:
    """What holds for every index."""

    def test_empty(self, make_index: Callable[[int], Index]) -> None:
        index = make_index(3)

        assert len(index) == 0
        assert 0 not in index
        assert index.find_first(query(0)) is None
        assert index.find_all(query(0)) == []

    @pytest.mark.parametrize("value", [0, 1, 2**63 - 1, 2**63, ALL_ONES])
    def test_searchable_as_soon_as_added(self, make_index: Callable[[int], Index], value: int) -> None:
        index = make_index(0)

        index.add(value, 7)

        assert value in index
        assert index.find_first(query(value)) == (7, value, 0)

    @pytest.mark.parametrize("max_distance", [0, 1, 2, 3, 6])
    def test_threshold_is_inclusive(self, make_index: Callable[[int], Index], max_distance: int) -> None:
        index = make_index(max_distance)
        wanted = query(0xDEADBEEF12345678)
        at_limit = flip(wanted, tuple(range(max_distance)))
        beyond = flip(wanted, tuple(range(max_distance + 1)))
        index.add(beyond, 1)
        assert index.find_all(wanted) == []

        index.add(at_limit, 2)

        assert index.find_all(wanted) == [(2, at_limit, max_distance)]
        assert index.find_first(wanted) == (2, at_limit, max_distance)

    def test_same_value_under_several_rows(self, make_index: Callable[[int], Index]) -> None:
        index = make_index(0)
        for row in (3, 4, 5):
            index.add(42, row)

        assert sorted(match.row for match in index.find_all(query(42))) == [3, 4, 5]
        assert index.remove(42, 4)
        assert sorted(match.row for match in index.find_all(query(42))) == [3, 5]
        assert not index.remove(42, 4)
        assert len(index) == 2

    def test_more_matches_than_the_first_guess_of_room(self, make_index: Callable[[int], Index]) -> None:
        index = make_index(1)
        for row in range(1000):
            index.add(1, row)

        assert sorted(match.row for match in index.find_all(query(0))) == list(range(1000))

    def test_copies_any_number_of_pages_apart_are_found(self, make_index: Callable[[int], Index]) -> None:
        index = make_index(3)
        rng = np.random.default_rng(1)
        wanted = query(0x0F0F0F0F0F0F0F0F)
        index.add(flip(wanted, (0, 2, 3)), 0)
        others = rng.integers(0, ALL_ONES, size=200_000, dtype=np.uint64, endpoint=True)

        index.extend(others, np.arange(1, len(others) + 1))

        assert len(index) == 200_001
        match = index.find_first(wanted)
        assert match is not None
        assert match.row == 0

    @pytest.mark.parametrize("max_distance", [-1, 17, 64])
    def test_distance_out_of_range_names_value_and_limits(
        self, make_index: Callable[[int], Index], max_distance: int
    ) -> None:
        with pytest.raises(ConfigurationError, match=rf"between 0 and 16 of 64 bits, not {max_distance}"):
            make_index(max_distance)


@pytest.mark.parametrize("recall", [0.0, -0.5, 1.01])
def test_recall_out_of_range(recall: float) -> None:
    with pytest.raises(ConfigurationError, match=f"above 0 and at most 1, not {recall}"):
        PSMIndex(recall=recall)


def test_grows_in_place_and_keeps_everything() -> None:
    index = PSMIndex()
    rng = np.random.default_rng(2)
    values = rng.integers(0, ALL_ONES, size=30_000, dtype=np.uint64, endpoint=True)

    for row, value in enumerate(values):
        index.add(int(value), row)

    assert index.prefix_bits > 7
    assert len(index) == len(values)
    assert all(int(value) in index for value in values)
    match = index.find_first(query(int(values[17])))
    assert match is not None
    assert match.row == 17


def test_skewed_prefixes_spill_over_and_are_found() -> None:
    # 3,000 fingerprints with one and the same prefix need 375 buckets' worth of slots.
    index = PSMIndex(max_distance=0)
    values = np.arange(3000, dtype=np.uint64)

    index.extend(values, np.arange(3000))

    assert all(int(value) in index for value in values)
    assert index.find_all(query(2999)) == [(2999, 2999, 0)]


@pytest.mark.parametrize("max_distance", [1, 3, 6])
def test_recall_of_simulated_edits_reaches_the_target(max_distance: int) -> None:
    # Edits move each weight by a normal difference (thesis figure 1); pairs that end up at 1 to max_distance count.
    rng = np.random.default_rng(5)
    index = PSMIndex(max_distance=max_distance, recall=0.95)
    scan = LinearScan(max_distance=max_distance)
    weights = rng.normal(size=(20_000, 64))
    values = np.packbits(weights > 0, axis=1).view(">u8").ravel().astype(np.uint64)
    for each in (index, scan):
        each.extend(values, np.arange(len(values)))
    found = wanted = 0
    for row in range(0, len(values), 10):
        edited = weights[row] + rng.normal(scale=0.05 * max_distance, size=64)
        value = int(np.packbits(edited > 0).view(">u8")[0])
        if 1 <= hamming.distance(value, int(values[row])) <= max_distance:
            edit = Fingerprint(value, edited)
            exact = {match.row for match in scan.find_all(edit)}
            assert {match.row for match in index.find_all(edit)} <= exact
            wanted += len(exact)
            found += len(index.find_all(edit))

    assert wanted > 200
    assert found / wanted >= 0.95


class IndexAgainstScan(RuleBasedStateMachine):
    """PSM with recall 1 and the linear scan answer alike, whatever was added and removed before."""

    def __init__(self) -> None:
        super().__init__()
        self.psm = PSMIndex(max_distance=2, recall=1.0)
        self.scan = LinearScan(max_distance=2)
        self.entries: list[tuple[int, int]] = []

    @rule(prefix=st.integers(0, 3), low=st.integers(0, 15), row=st.integers(0, 2**31))
    def add(self, prefix: int, low: int, row: int) -> None:
        value = prefix << 62 | low
        self.psm.add(value, row)
        self.scan.add(value, row)
        self.entries.append((value, row))

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.entries:
            value, row = data.draw(st.sampled_from(self.entries))
            assert self.psm.remove(value, row)
            assert self.scan.remove(value, row)
            self.entries.remove((value, row))

    @rule(row=st.integers(0, 2**31))
    def remove_what_is_not_there(self, row: int) -> None:
        assert not self.psm.remove(1 << 40, row)
        assert not self.scan.remove(1 << 40, row)

    @rule(prefix=st.integers(0, 3), low=st.integers(0, 15), seed=st.integers(0, 9))
    def search(self, prefix: int, low: int, seed: int) -> None:
        wanted = query(prefix << 62 | low, seed=seed)
        exact = sorted(self.scan.find_all(wanted))
        assert sorted(self.psm.find_all(wanted)) == exact
        first = self.psm.find_first(wanted)
        assert (first is None) == (not exact)
        assert first is None or first in exact

    @invariant()
    def same_size(self) -> None:
        assert len(self.psm) == len(self.scan) == len(self.entries)


TestIndexAgainstScan = IndexAgainstScan.TestCase
