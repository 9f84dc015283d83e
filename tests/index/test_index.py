from __future__ import annotations

import copy
import functools
import itertools
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from neardup import native
from neardup.errors import ConfigurationError
from neardup.fingerprint import hamming
from neardup.fingerprint.simhash import Fingerprint
from neardup.index.psm import flips, tree
from neardup.index.psm.psm_index import PSMIndex
from neardup.index.scan import LinearScan
from neardup.index.tables import MankuTables, MultiIndexHashing
from tests.support import psm_reference

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from neardup.index.base import Index

ALL_ONES = 2**64 - 1
Floats: TypeAlias = "npt.NDArray[np.float64]"


def query(value: int, *, seed: int = 0) -> Fingerprint:
    """A fingerprint with normally distributed weights whose signs are the bits of ``value``."""
    magnitudes = np.abs(np.random.default_rng(seed).normal(size=64))
    signs = np.array([1.0 if value >> (63 - j) & 1 else -1.0 for j in range(64)])
    return Fingerprint(value, magnitudes * signs)


def flip(fingerprint: Fingerprint, ranks: tuple[int, ...]) -> int:
    """The value with some of its weakest bits flipped; rank 0 is the weakest of all 64."""
    order = np.argsort(fingerprint.relative_weights())
    return fingerprint.value ^ sum(1 << (63 - int(order[rank])) for rank in ranks)


INDEXES: list[Callable[[int], Index]] = [
    lambda max_distance: PSMIndex(max_distance=max_distance, recall=1.0),
    lambda max_distance: LinearScan(max_distance=max_distance),
    lambda max_distance: MultiIndexHashing(max_distance=max_distance),
    lambda max_distance: MankuTables(max_distance=max_distance),
]


@pytest.fixture(params=INDEXES, ids=["psm", "scan", "multi-index", "manku"])
def make_index(request: pytest.FixtureRequest) -> Callable[[int], Index]:
    return request.param  # type: ignore[no-any-return]


class TestDeepLeaves:
    """Leaves behind whose prefix fewer bits are left than may be flipped."""

    @pytest.mark.parametrize("max_distance", [3, 8, 16])
    def test_a_recall_of_one_finds_all_of_them(self, max_distance: int) -> None:
        stored = query(0x0123456789ABCDEF)
        index = PSMIndex(max_distance=max_distance, recall=1.0)
        index.extend(np.full(300, stored.value, dtype=np.uint64), np.arange(300))

        for position in range(64):
            asked = Fingerprint(stored.value ^ (1 << position), np.ones(64))
            assert len(index.find_all(asked)) == 300, position


@pytest.mark.parametrize("recall", [0.98, 1.0])
@pytest.mark.parametrize("weight", [np.nan, np.inf, 0.0, 1e300])
def test_weights_that_are_no_weights_end_a_search_all_the_same(recall: float, weight: float) -> None:
    values = np.random.default_rng(1).integers(0, 2**64 - 1, size=2000, dtype=np.uint64, endpoint=True)
    index = PSMIndex(max_distance=3, recall=recall)
    index.extend(values, np.arange(len(values)))
    weights = np.ones(64)
    weights[5] = weight

    found = index.find_first(Fingerprint(int(values[7]), weights))

    assert found is not None
    assert (found.row, found.distance) == (7, 0)


@pytest.mark.parametrize("threshold", [np.inf, 1e300, 1.0, 1e-300])
def test_what_was_learned_before_never_keeps_a_search_from_its_end(threshold: float) -> None:
    rng = np.random.default_rng(2)
    index = PSMIndex(recall=0.9)
    index.extend(rng.integers(0, ALL_ONES, 50_000, dtype=np.uint64), np.arange(50_000))
    index.learned = threshold, 0.0

    for _ in range(200):
        index.find_all(query(int(rng.integers(0, ALL_ONES, dtype=np.uint64)), seed=5))

    assert 0.0 < index.learned[0] <= 1.0


@pytest.mark.slow
def test_searches_that_need_no_other_leaf_do_not_spoil_those_that_do() -> None:
    rng = np.random.default_rng(3)
    index = PSMIndex(max_distance=3, recall=0.8)
    index.extend(rng.integers(0, ALL_ONES, 1000, dtype=np.uint64), np.arange(1000))
    for value in rng.integers(0, ALL_ONES, 60_000, dtype=np.uint64).tolist():
        index.find_first(query(value, seed=value % 50))
    assert index.learned[0] <= 1.0

    index.extend(rng.integers(0, ALL_ONES, 20_000, dtype=np.uint64), np.arange(20_000))
    before = index.stats.probes
    for value in rng.integers(0, ALL_ONES, 500, dtype=np.uint64).tolist():
        index.find_first(query(value, seed=value % 50))

    assert index.stats.probes - before > 600


@pytest.mark.parametrize("at_once", [1, 7, 3000])
def test_small_batches_meet_the_target_as_well(at_once: int) -> None:
    rng = np.random.default_rng(6)
    index = PSMIndex(max_distance=1, recall=0.9)
    values = rng.integers(0, ALL_ONES, 50_000, dtype=np.uint64)
    index.extend(values, np.arange(50_000))
    for value in rng.integers(0, ALL_ONES, 300, dtype=np.uint64).tolist():
        index.find_all(query(value, seed=value % 50))  # their clear weights leave something to spend
    flipped = values[:3000] ^ (np.uint64(1) << rng.integers(0, 64, 3000, dtype=np.uint64))
    weights = np.ones((3000, 64))  # all bits are as likely to be flipped
    found = 0
    for start in range(0, 3000, at_once):
        some = slice(start, start + at_once)
        found += len(index.match_many(flipped[some], weights[some]))

    assert found >= 0.88 * 3000


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (np.arange(20_000), np.arange(10)),
        (np.arange(10), np.arange(20_000)),
        (np.arange(20).reshape(4, 5), np.arange(20).reshape(4, 5)),
        (np.arange(5.0), np.arange(5)),
        (np.arange(5), np.arange(5.0)),
        (np.arange(5), np.arange(-1, 4)),
        (np.arange(5), np.arange(5) + 2**32 - 4),
    ],
)
def test_many_that_cannot_be_stored_are_refused(values: npt.NDArray[Any], rows: npt.NDArray[Any]) -> None:
    index = PSMIndex()

    with pytest.raises(ValueError, match="must"):
        index.extend(values, rows)

    assert len(index) == 0


@pytest.mark.parametrize(
    "weights",
    [np.ones(3), np.ones(128)[::2], *(np.ones(64, dtype=kind) for kind in ("float32", "int64", ">f8"))],
)
def test_weights_that_compiled_code_cannot_read_are_refused(weights: npt.NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=f"64 float64, not {weights.dtype}, .*{weights.shape[0]},"):
        Fingerprint(5, weights)


@pytest.mark.parametrize("copied_by", [copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])
def test_an_index_and_its_copy_go_their_own_ways(copied_by: Callable[[PSMIndex], PSMIndex]) -> None:
    index = PSMIndex()
    values = np.random.default_rng(1).integers(0, ALL_ONES, 5000, dtype=np.uint64)
    index.extend(values, np.arange(5000))
    assert index.find_first(query(int(values[3]))) is not None
    copied = copied_by(index)
    assert copied.remove(int(values[7]), 7)
    copied.add(int(values[8]) ^ 1, 9000)

    assert index.find_first(query(int(values[7]))) == (7, int(values[7]), 0)
    assert copied.find_first(query(int(values[7]))) is None
    assert len(copied.find_all(query(int(values[8])))) == len(index.find_all(query(int(values[8])))) + 1


@pytest.mark.skipif(not native.available or sys.platform != "linux", reason="the limit is of Linux")
@pytest.mark.slow
def test_an_index_without_memory_keeps_what_it_has() -> None:
    program = """
import resource
from neardup.index.psm.psm_index import PSMIndex
index = PSMIndex()
value = lambda row: row * 0x9E3779B97F4A7C15 % 2**64
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (24 << 20), -1))
row = 0
try:
    while True:
        index.add(value(row), row)
        row += 1
except MemoryError:
    pass
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert len(index) == row > 100_000, row
values, rows = index.contents()
assert sorted(rows.tolist()) == list(range(row))
assert all(stored == value(its_row) for stored, its_row in zip(values.tolist(), rows.tolist()))
for more in range(row, row + 1000):
    index.add(value(more), more)
assert all(value(its_row) in index for its_row in range(0, row + 1000, 7))
print("whole")
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert ran.stdout == "whole\n", ran.stderr


@pytest.mark.parametrize("max_distance", [3.5, 3.0, -1, 17])
def test_distances_that_cannot_be_searched_for(max_distance: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"not {max_distance}"):
        PSMIndex(max_distance=max_distance)


@pytest.mark.parametrize("waiting", [0, 1, 255, 256, 257])
@pytest.mark.parametrize(("value", "row"), [(-1, 5), (2**64, 5), (5, -1), (5, 2**32), ("5", 5), (5, 1.5)])
def test_what_cannot_be_added_leaves_nothing_behind(value: Any, row: Any, waiting: int) -> None:
    index = PSMIndex()
    for number in range(waiting):
        index.add(number * 0x9E3779B97F4A7C15 % 2**64, number)

    with pytest.raises((OverflowError, TypeError, ValueError)):
        index.add(value, row)
    index.add(0xABCDEF, 777)

    assert len(index) == waiting + 1
    assert index.find_first(query(0xABCDEF)) == (777, 0xABCDEF, 0)
    assert all(index.remove(number * 0x9E3779B97F4A7C15 % 2**64, number) for number in range(waiting))


def test_no_row_is_no_row_to_remove() -> None:
    index = PSMIndex()
    index.add(5, 1)

    assert not index.remove(5, -1)
    assert 5 in index


class TestNext:
    """Function *next* and the heap: thesis IV.B and algorithm 2."""

    def test_figure_3_starts_from_the_three_weakest_bits(self) -> None:
        assert psm_reference.following((1, 2, 3)) == [(1, 2, 4)]
        assert psm_reference.following((1, 2, 4)) == [(1, 2, 5), (1, 3, 4)]
        assert psm_reference.following((1, 3, 4)) == [(1, 3, 5), (2, 3, 4)]

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


def odds_of(fingerprint: Fingerprint, max_distance: int) -> Floats:
    """The flip model in plain NumPy."""
    slope = flips.FLIP_SLOPE / (max_distance + 1)
    return np.asarray((1.0 + slope * fingerprint.relative_weights()) ** -8.0)


def sets_of(odds: Floats, size: int) -> float:
    """Sum over all sets of ``size`` bits of the product of their odds: a coefficient of the product of all (1
    + odds · x).
    """
    return float(functools.reduce(np.convolve, ([1.0, odd] for odd in odds), np.ones(1))[size])


class TestFlips:
    """The flips written down for a table with p prefix bits, against the thesis's heap."""

    @staticmethod
    def planned(wanted: Fingerprint, *, prefix_bits: int, max_distance: int, recall: float) -> list[int]:
        found, _ = flips.plan_flips(wanted.weights, prefix_bits, max_distance, recall, 1 << 14)
        return [int(flip) for flip in found]

    @pytest.mark.parametrize("max_distance", [0, 1, 2, 3, 5])
    @pytest.mark.parametrize("recall", [0.5, 0.9, 0.99, 1.0])
    def test_flips_are_those_of_the_heap_until_the_target_is_covered(
        self, max_distance: int, recall: float
    ) -> None:
        wanted, prefix_bits = query(0x0123456789ABCDEF, seed=3), 9
        odds = odds_of(wanted, max_distance)
        order = np.argsort(wanted.relative_weights()[:prefix_bits])
        behind = [sets_of(odds[prefix_bits:], size) for size in range(max_distance + 1)]
        whole = sum(
            sets_of(odds[:prefix_bits], s) * behind[max_distance - s] for s in range(max_distance + 1)
        )
        costs = [-float(np.log(odds[j])) for j in order]
        offsets = [-float(np.log(behind[max_distance - size])) for size in range(max_distance + 1)]
        expected, covered = [0], behind[max_distance] / whole
        for cost, combination in psm_reference.by_heap(costs, max_distance, offsets):
            if covered >= recall and recall < 1.0:
                break
            covered += float(np.exp(-cost)) / whole
            expected.append(sum(1 << (63 - int(order[i - 1])) for i in combination))

        found = self.planned(wanted, prefix_bits=prefix_bits, max_distance=max_distance, recall=recall)

        assert len(found) == len(expected)
        assert set(found) == set(expected)

    def test_a_large_last_band_is_cut_exactly(self) -> None:
        # Equal weights make bands of hundreds of combinations with the same chance.
        even = Fingerprint(0, -np.ones(64))
        half = self.planned(even, prefix_bits=20, max_distance=3, recall=0.5)
        most = self.planned(even, prefix_bits=20, max_distance=3, recall=0.9)

        assert 1 < len(half) < len(most) < 1351
        assert len(set(most)) == len(most)


class TestWalk:
    """Which leaves of the tree are probed, against their probabilities written down one by one."""

    BITS = 13

    def probed(self, wanted: Fingerprint, *, max_distance: int, recall: float) -> tuple[set[int], int]:
        """Flips of the two levels above the leaves (6 bits) that were probed, and the number of probes.

        All 8,192 fingerprints that differ from the query in the leading 13 bits only are stored: 128 to a
        leaf. A leaf is probed if the one that differs in just its flips is found.
        """
        index = PSMIndex(max_distance=max_distance, recall=recall)
        shift = 64 - self.BITS
        low = wanted.value & ((1 << shift) - 1)
        for prefix in range(1 << self.BITS):
            index.add(prefix << shift | low, prefix)
        found = {(match.value ^ wanted.value) >> 58 << 58 for match in index.find_all(wanted)}
        assert index.stats.candidates == 128 * index.stats.probes
        return found, index.stats.probes

    @pytest.mark.parametrize("max_distance", [1, 2, 3, 5])
    def test_recall_1_probes_every_leaf_within_the_distance(self, max_distance: int) -> None:
        found, probes = self.probed(query(0xFEDCBA9876543210, seed=7), max_distance=max_distance, recall=1.0)

        assert found == {flip << 58 for flip in range(64) if flip.bit_count() <= max_distance}
        assert probes == len(found)

    @pytest.mark.parametrize("seed", range(6))
    @pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
    def test_most_probable_leaves_until_the_target_is_covered(self, seed: int, recall: float) -> None:
        wanted = query(0xFEDCBA9876543210, seed=seed)
        odds = odds_of(wanted, 3)
        behind = [sets_of(odds[6:], size) for size in range(4)]
        chance = {
            flip << 58: float(np.prod([odds[j] for j in range(6) if flip >> (5 - j) & 1])) * behind[3 - size]
            for flip in range(64)
            if (size := flip.bit_count()) <= 3
        }
        whole = sum(chance.values())

        found, probes = self.probed(wanted, max_distance=3, recall=recall)

        assert 0 in found
        assert probes == len(found)
        assert sum(chance[flip] for flip in found) >= recall * whole * (1 - 1e-9)
        # Within a band of probabilities, a factor of two, the order is free.
        left = [chance[flip] for flip in chance if flip not in found]
        assert not left or max(left) <= 2.001 * min((chance[flip] for flip in found if flip), default=whole)
        fewest = np.searchsorted(np.cumsum(sorted(chance.values(), reverse=True)), recall * whole) + 1
        assert probes <= 1.5 * fewest + 2

    @pytest.mark.slow
    @pytest.mark.parametrize("recall", [0.8, 0.95])
    @pytest.mark.parametrize("kind", ["mixed", "clear, then even", "even, then clear"])
    def test_searches_cover_the_target_on_average_with_fewer_probes(self, kind: str, recall: float) -> None:
        rng = np.random.default_rng(4)
        value = 0xFEDCBA9876543210
        shift = 64 - self.BITS
        index = PSMIndex(max_distance=3, recall=recall)
        for prefix in range(1 << self.BITS):
            index.add(prefix << shift | (value & ((1 << shift) - 1)), prefix)
        weights = rng.normal(size=(600, 64)) * rng.choice([0.05, 1.0], size=(600, 64))
        if kind != "mixed":
            clear = np.arange(600) < 300 if kind.startswith("clear") else np.arange(600) >= 300
            weights[clear] = rng.uniform(0.9, 1.1, size=(300, 64))
            weights[clear, :5:2] = rng.normal(scale=0.01, size=(300, 3))
        surplus, most_owed, probes, fewest = 0.0, 0.0, 0, 0
        for row in weights:
            wanted = Fingerprint(value, np.where(np.signbit(row), row, -row))
            odds = odds_of(wanted, 3)
            behind = [sets_of(odds[6:], size) for size in range(4)]
            products = [np.prod([odds[j] for j in range(6) if flip >> (5 - j) & 1]) for flip in range(64)]
            chance = np.array(
                [
                    products[flip] * behind[3 - flip.bit_count()] if flip.bit_count() <= 3 else 0.0
                    for flip in range(64)
                ]
            )
            chance /= chance.sum()
            before = index.stats.probes
            flips = {(match.value ^ value) >> 58 for match in index.find_all(wanted)}
            surplus += chance[list(flips)].sum() - recall
            most_owed = min(most_owed, surplus)
            probes += index.stats.probes - before
            fewest += int(np.searchsorted(np.cumsum(np.sort(chance)[::-1]), recall)) + 1

        assert most_owed >= -1.0, "of all searches so far, less than one is missing"
        assert 0.0 <= surplus / 600 <= 0.3 * (1.0 - recall)
        # Each by itself would take more; but a change is first met with too many.
        assert probes < (1.0 if kind == "mixed" else 1.05) * fewest

    def test_higher_target_takes_more_probes(self) -> None:
        wanted = query(12345)
        probes = [self.probed(wanted, max_distance=3, recall=recall)[1] for recall in (0.5, 0.9, 0.99, 1.0)]

        assert probes == sorted(set(probes))

    def test_stats_count_queries_probes_and_empty_ones(self) -> None:
        index = PSMIndex(max_distance=3, recall=1.0)
        wanted = query(1 << 63)
        for low in range(300):  # all in one child of the root
            index.add(low, low)

        index.find_all(wanted)

        assert index.stats.queries == 1
        assert index.stats.probes > index.stats.empty_probes >= 1

    def test_find_first_stops_at_the_first_probe_for_a_twin(self) -> None:
        index = PSMIndex()
        wanted = query(99)
        index.add(99, 5)

        match = index.find_first(wanted)

        assert match == (5, 99, 0)
        assert (index.stats.probes, index.stats.candidates) == (1, 1)


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


@pytest.mark.parametrize("row", [-1, 1 << 32])
def test_rows_are_32_bits(make_index: Callable[[int], Index], row: int) -> None:
    index = make_index(3)
    with pytest.raises((ValueError, ConfigurationError), match=str(row)):
        index.add(1, row)
    with pytest.raises((ValueError, ConfigurationError), match=str(row)):
        index.extend(np.array([1, 2], dtype=np.uint64), np.array([0, row]))

    assert len(index) == 0


@pytest.mark.parametrize("value", [-1, 1 << 64])
def test_a_value_that_is_no_fingerprint_leaves_nothing_behind(value: int) -> None:
    index = PSMIndex()
    with pytest.raises(OverflowError):
        index.add(value, 1)

    index.add(7, 2)
    assert index.find_first(query(7)) == (2, 7, 0)
    assert len(index) == 1


class TestManyQueries:
    """One call for many queries answers as one call for each."""

    @staticmethod
    def made(stored: int, asked: int, recall: float) -> tuple[PSMIndex, list[Fingerprint]]:
        rng = np.random.default_rng(stored)
        values = rng.integers(0, ALL_ONES, size=stored, dtype=np.uint64)
        index = PSMIndex(max_distance=3, recall=recall)
        index.extend(values, np.arange(stored))
        # Some with hundreds of copies: more matches than queries.
        index.extend(np.repeat(values[:3], 700), np.arange(stored, stored + 2100))
        queries = []
        for number in range(asked):
            made = query(int(values[number % stored]), seed=number)
            queries.append(Fingerprint(flip(made, (0, 2)[: number % 3]), made.weights))
        return index, queries

    @pytest.mark.parametrize("threads", [1, 3])
    @pytest.mark.parametrize("every", [False, True])
    @pytest.mark.parametrize("asked", [1, 1500])
    def test_like_one_by_one(self, asked: int, every: bool, threads: int) -> None:
        index, queries = self.made(4000, asked, 1.0)
        values = np.array([each.value for each in queries], dtype=np.uint64)

        found = index.match_many(
            values, np.array([each.weights for each in queries]), every=every, threads=threads
        )

        many = index.stats
        one_by_one, _ = self.made(4000, asked, 1.0)
        expected = []
        for number, each in enumerate(queries):
            first = one_by_one.find_first(each)
            matches = one_by_one.find_all(each) if every else [first] if first else []
            expected += [(number, *match) for match in matches]
        assert sorted(map(tuple, found.tolist())) == sorted(expected)
        assert np.all(np.diff(found[:, 0].astype(np.int64)) >= 0)
        assert len(found) >= asked
        assert many.queries == asked
        assert many.probes >= asked

    def test_no_queries_and_nothing_stored(self) -> None:
        nothing = PSMIndex().match_many(np.empty(0, dtype=np.uint64), np.empty((0, 64)))
        none_stored = PSMIndex().match_many(np.ones(2, dtype=np.uint64), np.ones((2, 64)))

        assert nothing.shape == none_stored.shape == (0, 4)

    def test_what_was_added_one_by_one_is_found(self) -> None:
        index = PSMIndex()
        index.add(7, 5)

        assert index.match_many(np.array([7], dtype=np.uint64), np.ones((1, 64))).tolist() == [[0, 5, 7, 0]]

    @pytest.mark.parametrize(
        ("values", "weights"), [((3,), (2, 64)), ((3,), (3, 63)), ((3, 1), (3, 64)), ((), (64,))]
    )
    def test_shapes_that_do_not_fit(self, values: tuple[int, ...], weights: tuple[int, ...]) -> None:
        with pytest.raises(ValueError, match=r"shape \(m,\) and weights of shape \(m, 64\), not"):
            PSMIndex().match_many(np.zeros(values, dtype=np.uint64), np.zeros(weights))

    def test_values_that_are_no_integers(self) -> None:
        with pytest.raises(ValueError, match="integers, not float64"):
            PSMIndex().match_many(np.zeros(1), np.zeros((1, 64)))  # type: ignore[arg-type]

    def test_no_threads(self) -> None:
        with pytest.raises(ValueError, match="at least 1, not 0"):
            PSMIndex().match_many(np.zeros(1, dtype=np.uint64), np.zeros((1, 64)), threads=0)


def test_memory_of_uniform_and_skewed_fingerprints() -> None:
    rng = np.random.default_rng(6)
    uniform = rng.integers(0, ALL_ONES, size=300_000, dtype=np.uint64)
    skewed = np.packbits(rng.random((300_000, 64)) < rng.beta(0.5, 0.5, 64), axis=1).view(">u8").ravel()
    for values in (uniform, skewed.astype(np.uint64)):
        index = PSMIndex()
        for start in range(0, len(values), 5000):
            index.extend(values[start : start + 5000], np.arange(start, start + 5000))

        assert len(index) == 300_000
        assert index.nbytes / len(index) <= 24


@pytest.mark.parametrize("shared_bits", [0, 20, 40, 58])
def test_fingerprints_that_share_their_prefix_do_not_pile_up(shared_bits: int) -> None:
    rng = np.random.default_rng(8)
    values = rng.integers(0, 1 << (64 - shared_bits), size=20_000, dtype=np.uint64)
    index = PSMIndex(max_distance=0)
    index.extend(values, np.arange(20_000))

    for value in values[:200]:
        assert index.find_first(query(int(value))) is not None

    # With 58 shared bits, 64 values with some 300 copies each are left: the first of them is a match.
    if shared_bits < 58:
        assert index.stats.candidates <= max(tree.LIMITS) * index.stats.probes
    assert index.stats.probes == 200


@pytest.mark.parametrize("copies", [1, 200, 600, 5000])
def test_near_duplicates_of_what_has_many_copies_are_found(copies: int) -> None:
    rng = np.random.default_rng(copies)
    found = asked = 0
    for _ in range(10):
        weights = rng.normal(size=64)
        text = int(np.packbits(weights > 0.0).view(">u8")[0])
        index = PSMIndex(max_distance=8)
        others = rng.integers(0, ALL_ONES, size=3000, dtype=np.uint64)
        index.extend(others[:1500], np.arange(1500))
        index.extend(np.full(copies, text, dtype=np.uint64), np.arange(3000, 3000 + copies))
        index.extend(others[1500:], np.arange(1500, 3000))
        for _ in range(10):
            edited = weights + rng.normal(scale=0.08, size=64)
            value = int(np.packbits(edited > 0.0).view(">u8")[0])
            if (value ^ text).bit_count() <= 8:
                asked += 1
                found += index.find_first(Fingerprint(value, edited)) is not None

    assert asked > 50
    assert found >= 0.98 * asked


def test_copies_take_little_more_memory_than_others() -> None:
    index = PSMIndex()
    index.extend(np.full(100_000, 42, dtype=np.uint64), np.arange(100_000))

    assert index.nbytes / len(index) <= 36


def test_many_copies_of_one_fingerprint() -> None:
    index = PSMIndex(max_distance=1)
    for row in range(5000):
        index.add(42, row)
    index.add(43, 5000)

    assert index.find_first(query(42)) is not None
    assert len(index.find_all(query(42))) == 5001
    for row in range(0, 5000, 2):
        assert index.remove(42, row)
    assert sorted(match.row for match in index.find_all(query(43))) == [*range(1, 5000, 2), 5000]


def skewed(rng: np.random.Generator, count: int) -> npt.NDArray[np.uint64]:
    return (
        np.packbits(rng.random((count, 64)) < rng.beta(0.2, 0.2, 64), axis=1)
        .view(">u8")
        .ravel()
        .astype(np.uint64)
    )


@pytest.mark.parametrize("kind", ["uniform", "skewed", "copies", "alike in 48 bits", "two"])
def test_many_at_once_are_stored_as_one_by_one(kind: str) -> None:
    rng = np.random.default_rng(11)
    values = rng.integers(0, ALL_ONES, size=60_000, dtype=np.uint64)
    if kind == "skewed":
        values = skewed(rng, len(values))
    elif kind == "copies":
        values[rng.random(len(values)) < 0.7] = 0xABCDEF
    elif kind == "alike in 48 bits":
        values >>= np.uint64(48)
    elif kind == "two":
        values = rng.choice(np.array([5, 1 << 40], dtype=np.uint64), len(values))
    many, single = PSMIndex(), PSMIndex()
    many.extend(values[:20_000], np.arange(20_000))
    many.extend(values[20_000:], np.arange(20_000, len(values)))
    for row, value in enumerate(values.tolist()):
        single.add(value, row)

    assert len(many) == len(values)
    (stored, rows), (expected, expected_rows) = many.contents(), single.contents()
    assert np.array_equal(stored, expected)
    assert np.array_equal(rows, expected_rows)
    assert np.array_equal(np.sort(rows), np.arange(len(values)))
    assert many.nbytes == single.nbytes


@pytest.mark.skipif(not native.available, reason="takes its time without the native core")
def test_more_than_a_million_at_once_are_all_stored() -> None:
    values = np.random.default_rng(12).integers(0, ALL_ONES, size=2_200_000, dtype=np.uint64)
    index = PSMIndex()
    index.extend(values, np.arange(len(values)))

    stored, rows = index.contents()
    assert np.array_equal(np.sort(rows), np.arange(len(values)))
    assert np.array_equal(stored, values[rows])


def test_memory_does_not_grow_by_replacing() -> None:
    rng = np.random.default_rng(9)
    index = PSMIndex()
    values = rng.integers(0, ALL_ONES, size=20_000, dtype=np.uint64).tolist()
    for row, value in enumerate(values):
        index.add(value, row)
    before = index.nbytes
    for _ in range(5):
        for row in rng.permutation(len(values)).tolist():
            other = int(rng.integers(0, ALL_ONES, dtype=np.uint64))
            assert index.remove(values[row], row)
            index.add(other, row)
            values[row] = other

    assert index.nbytes <= 1.1 * before


def test_freed_memory_is_used_again() -> None:
    rng = np.random.default_rng(9)
    index = PSMIndex()
    values = [int(value) for value in rng.integers(0, ALL_ONES, size=20_000, dtype=np.uint64)]
    for row, value in enumerate(values):
        index.add(value, row)
    before = index.nbytes
    for _ in range(3):
        for row, value in enumerate(values):
            assert index.remove(value, row)
        assert len(index) == 0
        for row, value in enumerate(values):
            index.add(value, row)

    assert index.nbytes <= 1.3 * before


def test_arrays_make_the_same_index_again() -> None:
    rng = np.random.default_rng(10)
    index = PSMIndex()
    values = rng.integers(0, ALL_ONES, size=5000, dtype=np.uint64)
    index.extend(values, np.arange(5000))
    saved = {name: array.copy() for name, array in index.arrays().items()}
    for array in saved.values():
        array.flags.writeable = False

    again = PSMIndex.from_arrays(saved, max_distance=5, recall=0.5)

    assert (again.max_distance, again.recall, again.stats.queries) == (5, 0.5, 0)
    assert all(again.find_first(query(int(value))) == index.find_first(query(int(value))) for value in values)
    again.extend(values, np.arange(5000, 10_000))
    assert (len(again), len(index)) == (10_000, 5000)


@pytest.mark.parametrize("name", ["values", "rows"])
def test_arrays_that_do_not_fit_are_refused(name: str) -> None:
    index = PSMIndex()
    index.extend(np.arange(500, dtype=np.uint64), np.arange(500))
    arrays = index.arrays()
    for broken in (
        {other: array for other, array in arrays.items() if other != name},
        arrays | {name: arrays[name][:-1]},
        arrays | {name: arrays[name].astype(np.float64)},
        arrays | {name: arrays[name].reshape(-1, 1)},
    ):
        with pytest.raises(ValueError, match="do not fit together"):
            PSMIndex.from_arrays(broken, max_distance=3, recall=0.95)


def test_arrays_with_a_page_that_is_not_known_are_refused() -> None:
    index = PSMIndex()
    index.add(5, 99)
    PSMIndex.from_arrays(index.arrays(), max_distance=3, recall=0.95, pages=100)

    with pytest.raises(ValueError, match="do not fit together"):
        PSMIndex.from_arrays(index.arrays(), max_distance=3, recall=0.95, pages=99)


def test_an_index_made_of_arrays_grows_without_a_loss() -> None:
    rng = np.random.default_rng(12)
    values = rng.integers(0, ALL_ONES, size=300_000, dtype=np.uint64)
    first = PSMIndex()
    first.extend(values[:200_000], np.arange(200_000))
    index = PSMIndex.from_arrays(first.arrays(), max_distance=3, recall=0.95)
    del first
    for start in range(200_000, 300_000, 100):
        index.extend(values[start : start + 100], np.arange(start, start + 100))

    assert len(index) == 300_000
    assert all(int(value) in index for value in values[::7])
    again = PSMIndex.from_arrays(index.arrays(), max_distance=3, recall=0.95)
    assert all(int(value) in again for value in values[::97])


@pytest.mark.parametrize(("value", "row"), [(5, 1.5), (1.5, 5), ("a", 5), (None, 5)])
def test_what_is_no_number_leaves_nothing_behind(value: Any, row: Any) -> None:
    index = PSMIndex()
    with pytest.raises(TypeError):
        index.add(value, row)
    index.add(6, 7)

    assert len(index) == 1
    assert index.find_first(query(6)) == (7, 6, 0)


@pytest.mark.parametrize("max_distance", [1, 3, 6])
def test_recall_of_simulated_edits_reaches_the_target(max_distance: int) -> None:
    # Edits move each weight by a normal difference (thesis figure 1); pairs that end up at 1 to max_distance
    # count.
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
    """PSM with recall 1 and the linear scan answer alike, whatever was added, removed, replaced, saved and
    loaded before.
    """

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

    @rule(prefix=st.integers(0, 3), start=st.integers(0, 50), count=st.integers(1, 300))
    def extend(self, prefix: int, start: int, count: int) -> None:
        values = (np.arange(start, start + count, dtype=np.uint64) << np.uint64(56)) | np.uint64(prefix)
        for index in (self.psm, self.scan):
            index.extend(values, np.arange(count))
        self.entries += [(int(value), row) for row, value in enumerate(values)]

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

    @rule()
    def save_and_load(self) -> None:
        self.psm = PSMIndex.from_arrays(self.psm.arrays(), max_distance=2, recall=1.0)

    @rule(high=st.integers(0, 255), low=st.integers(0, 15), seed=st.integers(0, 9))
    def search(self, high: int, low: int, seed: int) -> None:
        wanted = query(high << 56 | low, seed=seed)
        exact = sorted(self.scan.find_all(wanted))
        assert sorted(self.psm.find_all(wanted)) == exact
        first = self.psm.find_first(wanted)
        assert (first is None) == (not exact)
        assert first is None or first in exact

    @invariant()
    def same_size(self) -> None:
        assert len(self.psm) == len(self.scan) == len(self.entries)


TestIndexAgainstScan = IndexAgainstScan.TestCase
