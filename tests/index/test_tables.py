from __future__ import annotations

import copy
import itertools
import math
import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from neardup.errors import ConfigurationError
from neardup.fingerprint.simhash import Fingerprint
from neardup.index import table_kernels, tables
from neardup.index.base import Match
from neardup.index.scan import LinearScan
from neardup.index.tables import Block, MankuTables, MultiIndexHashing, SubTable

if TYPE_CHECKING:
    from collections.abc import Callable


Tables = MultiIndexHashing | MankuTables

ALL_ONES = 2**64 - 1
NO_ROW = 2**32 - 1
BASES = (0, ALL_ONES, 0x0123456789ABCDEF)

KINDS: dict[str, Callable[[int, int], Tables]] = {
    "planned": lambda distance, tail: MultiIndexHashing(max_distance=distance, tail_entries=tail),
    "scan": lambda distance, tail: MultiIndexHashing(max_distance=distance, blocks=1, tail_entries=tail),
    "three blocks": lambda distance, tail: MultiIndexHashing(
        max_distance=distance, blocks=min(3, distance + 1), tail_entries=tail
    ),
    "manku 1": lambda distance, tail: MankuTables(max_distance=distance, choose=1, tail_entries=tail),
    "manku 2": lambda distance, tail: MankuTables(max_distance=distance, choose=2, tail_entries=tail),
}


@pytest.fixture(params=list(KINDS.values()), ids=list(KINDS))
def make(request: pytest.FixtureRequest) -> Callable[[int, int], Tables]:
    return request.param  # type: ignore[no-any-return]


def query(value: int) -> Fingerprint:
    return Fingerprint(value, np.zeros(64))


def numbers(size: int, *, seed: int = 1) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.random.default_rng(seed).integers(0, ALL_ONES, size=size, dtype=np.uint64, endpoint=True)


def near(values: np.ndarray[tuple[int], np.dtype[np.uint64]], flips: int) -> list[int]:
    """Each value with so many different random bits flipped."""
    rng = np.random.default_rng(9)
    return [int(v) ^ sum(1 << int(bit) for bit in rng.choice(64, flips, replace=False)) for v in values]


@st.composite
def values(draw: st.DrawFn) -> int:
    """A fingerprint a few bits from one of three, so that any two are often near each other."""
    bits = draw(st.sets(st.integers(0, 63), max_size=6))
    return draw(st.sampled_from(BASES)) ^ sum(1 << bit for bit in bits)


def assert_alike(index: Tables, scan: LinearScan, value: int) -> None:
    exact = sorted(scan.find_all(query(value)))
    assert sorted(index.find_all(query(value))) == exact
    first = index.find_first(query(value))
    assert first in exact if exact else first is None
    assert (value in index) == (value in scan)


class TestBlocks:
    def test_distance_3_in_three_blocks(self) -> None:
        # Three bits that differ cannot leave two in the first block and one in each other: 2 + 1 + 1 = 4 > 3.
        assert tables.in_blocks(3, 3) == (
            SubTable((Block(0, 21),), 1),
            SubTable((Block(21, 22),), 0),
            SubTable((Block(43, 21),), 0),
        )
        assert tables.plan_blocks(3, 22) == tables.in_blocks(3, 3)
        assert [each.radius for each in tables.plan_blocks(10, 20)] == [2, 2, 2, 1]

    @pytest.mark.parametrize("max_distance", range(17))
    def test_blocks_cover_64_bits_and_radii_obey_the_pigeonhole_rule(self, max_distance: int) -> None:
        plans = [tables.in_blocks(max_distance, blocks) for blocks in range(1, max_distance + 2)]
        plans += [tables.plan_blocks(max_distance, magnitude) for magnitude in range(33)]

        for plan in plans:
            bits = [
                bit for each in plan for start, width in each.blocks for bit in range(start, start + width)
            ]
            assert bits == list(range(64))
            assert min(each.radius for each in plan) >= 0
            assert sum(each.radius + 1 for each in plan) == max_distance + 1

    def test_few_entries_at_a_great_distance_are_scanned(self) -> None:
        (only,) = tables.plan_blocks(16, 11)
        assert (only.radius, tables.prefix_bits(1 << 11, only)) == (16, 0)

    def test_offsets_take_at_most_four_bytes_an_entry(self) -> None:
        bits = [
            tables.prefix_bits(entries, SubTable((Block(0, 64),), 0)) for entries in (1, 3, 4, 1000, 1024)
        ]
        assert bits == [0, 0, 0, 9, 10]


class TestManku:
    """The designs of section VI.A."""

    @pytest.mark.parametrize(("choose", "number", "widths"), [(1, 4, {16}), (2, 10, {25, 26})])
    def test_distance_3(self, choose: int, number: int, widths: set[int]) -> None:
        sub_tables = MankuTables(max_distance=3, choose=choose).sub_tables(1000)

        assert len(sub_tables) == number  # C(4, 1) and C(5, 2) of eq. 6.7
        assert {each.width for each in sub_tables} == widths  # 64·x/z of eq. 6.3

    @pytest.mark.parametrize("choose", [1, 2])
    @pytest.mark.parametrize("max_distance", range(17))
    def test_some_key_is_free_of_any_bits_that_differ(self, max_distance: int, choose: int) -> None:
        sub_tables = MankuTables(max_distance=max_distance, choose=choose).sub_tables(1000)
        blocks = sorted({block for each in sub_tables for block in each.blocks})

        assert len(sub_tables) == math.comb(max_distance + choose, choose)
        assert {each.radius for each in sub_tables} == {0}
        assert sum(block.width for block in blocks) == 64
        keys = [set(each.blocks) for each in sub_tables]
        for hit in itertools.combinations(blocks, max_distance):
            assert any(key.isdisjoint(hit) for key in keys)


class TestPrefix:
    @settings(max_examples=50, deadline=None)
    @given(st.integers(0, ALL_ONES), st.integers(0, 40), st.integers(1, 24), st.integers(0, 24))
    def test_is_the_blocks_side_by_side(self, value: int, start: int, bits: int, bits_2: int) -> None:
        text = f"{value:064b}"

        key = table_kernels.Key(start, bits, 40, bits_2, 0, tables.flips(bits + bits_2, 0))

        [found] = key.prefix(np.array([value], dtype=np.uint64))

        assert int(found) == int(text[start : start + bits] + text[40 : 40 + bits_2], 2)

    def test_those_probed_are_within_the_radius_and_the_nearest_first(self) -> None:
        assert tables.flips(4, 2).tolist() == [0, 1, 2, 4, 8, 3, 5, 6, 9, 10, 12]
        assert tables.flips(3, 7).tolist() == [0, 1, 2, 4, 3, 5, 6, 7]
        assert tables.flips(0, 1).tolist() == [0]
        assert [len(tables.flips(20, radius)) for radius in range(4)] == [1, 21, 211, 1351]


class TestFinding:
    @pytest.mark.parametrize("max_distance", range(11))
    @pytest.mark.parametrize("entries", [1, 100, 3000])
    def test_all_matches_of_random_fingerprints(
        self, make: Callable[[int, int], Tables], max_distance: int, entries: int
    ) -> None:
        index, stored = make(max_distance, 64), numbers(entries)
        index.extend(stored, np.arange(entries))
        asked = stored[:20]

        assert len(index) == entries
        for flips in {0, max_distance // 2, max_distance}:
            for row, value in enumerate(near(asked, flips)):
                assert [m for m in index.find_all(query(value)) if m.row == row] == [(row, asked[row], flips)]
                assert index.find_first(query(value)) is not None
        for value in near(asked, max_distance + 1):
            assert all(match.distance <= max_distance for match in index.find_all(query(value)))

    @settings(max_examples=200, deadline=None)
    @given(
        st.sampled_from(sorted(KINDS)), st.integers(0, 10), st.lists(values(), max_size=80), st.integers(1, 9)
    )
    def test_as_the_linear_scan(self, kind: str, max_distance: int, stored: list[int], tail: int) -> None:
        index, scan = KINDS[kind](max_distance, tail), LinearScan(max_distance=max_distance)
        for row, value in enumerate(stored):
            index.add(value, row)
            scan.add(value, row)

        for value in {*BASES, *stored}:
            assert_alike(index, scan, value)

    @pytest.mark.parametrize("value", [0, 1, 2**63 - 1, 2**63, ALL_ONES])
    def test_searchable_as_soon_as_added(self, make: Callable[[int, int], Tables], value: int) -> None:
        for tail in (1, 100):
            index = make(0, tail)
            assert value not in index
            assert index.find_first(query(value)) is None

            index.add(value, NO_ROW - 1)

            assert value in index
            assert index.find_first(query(value)) == (NO_ROW - 1, value, 0)

    def test_more_matches_than_the_first_guess_of_room(self, make: Callable[[int, int], Tables]) -> None:
        index = make(1, 100)
        for row in range(1050):
            index.add(1, row)

        assert sorted(match.row for match in index.find_all(query(0))) == list(range(1050))
        assert index.stats.queries == 1

    def test_one_at_a_time_and_all_at_once_are_the_same(self, make: Callable[[int, int], Tables]) -> None:
        at_once, one_by_one, stored = make(3, 1), make(3, 1), numbers(1100)
        at_once.extend(stored[:1], np.arange(1))
        at_once.extend(stored[1:], np.arange(1, 1100))
        at_once.extend(stored[:0], np.arange(0))
        for row, value in enumerate(stored):
            one_by_one.add(int(value), row)

        assert len(at_once) == len(one_by_one) == 1100
        for edited in near(stored, 2):
            assert at_once.find_all(query(edited)) == one_by_one.find_all(query(edited)) != []

    def test_every_level_is_searched(self, make: Callable[[int, int], Tables]) -> None:
        # With a tail of one entry the levels hold 32, 1024, 32768 and any number of entries.
        index, stored = make(3, 1), numbers(35_000)
        index.extend(stored[:33_000], np.arange(33_000))
        for start, size in ((33_000, 1100), (34_100, 800), (34_900, 100)):
            index.extend(stored[start : start + size], np.arange(start, start + size))

        assert len(index) == len(stored)
        edited = near(stored[::50], 3)
        assert [index.find_first(query(value)) for value in edited] == [
            Match(50 * i, int(value), 3) for i, value in enumerate(stored[::50])
        ]


class TestChanging:
    def test_same_value_under_several_rows(self, make: Callable[[int, int], Tables]) -> None:
        index = make(0, 2)
        for row in (3, 4, 5, 4):
            index.add(42, row)

        assert index.remove(42, 4)
        assert sorted(match.row for match in index.find_all(query(42))) == [3, 4, 5]
        assert index.remove(42, 4)
        assert sorted(match.row for match in index.find_all(query(42))) == [3, 5]
        assert not index.remove(42, 4)
        assert len(index) == 2

    @pytest.mark.parametrize("row", [-1, 8, NO_ROW, 2**40])
    def test_nothing_is_removed_under_another_row(self, make: Callable[[int, int], Tables], row: int) -> None:
        for tail in (1, 100):
            index = make(0, tail)
            index.add(42, 7)

            assert not index.remove(42, row)
            assert index.find_all(query(42)) == [(7, 42, 0)]

    @pytest.mark.parametrize("copied_by", [copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])
    def test_an_index_and_its_copy_go_their_own_ways(
        self, make: Callable[[int, int], Tables], copied_by: Callable[[Tables], Tables]
    ) -> None:
        index, stored = make(3, 10), np.resize(numbers(500), 2005)  # each under four rows or five
        index.extend(stored[:2000], np.arange(2000))
        index.extend(stored[2000:], np.arange(2000, 2005))
        assert all(index.remove(int(stored[row]), row) for row in range(0, 2000, 3))

        copied = copied_by(index)
        for value in near(stored[:50], 2):
            assert copied.find_all(query(value)) == index.find_all(query(value))
        assert (copied.stats, len(copied), copied.nbytes) == (index.stats, len(index), index.nbytes)
        assert copied.remove(int(stored[7]), 7)
        copied.extend(stored[:100], np.arange(5000, 5100))

        assert sorted(match.row for match in index.find_all(query(int(stored[7])))) == [7, 1007, 1507]
        assert sorted(match.row for match in copied.find_all(query(int(stored[7])))) == [1007, 1507, 5007]

    def test_what_is_stored_may_be_read_only(self, make: Callable[[int, int], Tables]) -> None:
        index, stored, rows = make(0, 10), numbers(100), np.arange(100)
        stored.setflags(write=False)
        rows.setflags(write=False)
        index.extend(stored, rows)

        assert [index.find_first(query(int(value))) for value in stored] == [
            Match(row, int(value), 0) for row, value in enumerate(stored)
        ]

    def test_removed_entries_give_their_memory_back(self, make: Callable[[int, int], Tables]) -> None:
        index, stored = make(3, 10), numbers(4000)
        index.extend(stored, np.arange(4000))
        full = index.nbytes

        for row, value in enumerate(stored[:3900]):
            assert index.remove(int(value), row)

        assert len(index) == 100
        assert index.nbytes < full / 15
        assert [int(v) in index for v in stored] == [False] * 3900 + [True] * 100
        assert all(index.remove(int(stored[row]), row) for row in range(3900, 4000))
        assert len(index) == 0


class TestStats:
    def test_probes_and_candidates_are_counted(self) -> None:
        index = MultiIndexHashing(max_distance=3, blocks=3, tail_entries=1)
        index.extend(numbers(4096), np.arange(4096))
        stored = index.sub_tables(4096)
        bits = [tables.prefix_bits(4096, each) for each in stored]

        index.find_all(query(0))

        assert index.stats.queries == 1
        assert index.stats.probes == 1 + bits[0] + 1 + 1
        assert 0 < index.stats.candidates < 200
        assert 0 <= index.stats.empty_probes < index.stats.probes

    def test_the_tail_is_candidates_without_a_probe(self) -> None:
        index = MankuTables(tail_entries=16)
        for row in range(15):
            index.add(row, row)

        index.find_all(query(ALL_ONES - 0xFFFF))
        assert (index.stats.probes, index.stats.empty_probes, index.stats.candidates) == (0, 0, 15)

        # Merged, three keys meet none of the small numbers; the last meets all, which share its leading bits.
        index.add(15, 15)
        index.find_all(query(ALL_ONES - 0xFFFF))
        assert (index.stats.probes, index.stats.empty_probes, index.stats.candidates) == (4, 3, 15 + 16)

    def test_bytes_a_fingerprint(self) -> None:
        index = MultiIndexHashing(max_distance=3, blocks=3)
        index.extend(numbers(100_000), np.arange(100_000))

        assert 36 < index.nbytes / 100_000 < 49


class TestWrongArguments:
    @pytest.mark.parametrize(
        ("make_wrong", "message"),
        [
            (lambda: MultiIndexHashing(max_distance=-1), "between 0 and 16 of 64 bits, not -1"),
            (lambda: MankuTables(max_distance=17), "between 0 and 16 of 64 bits, not 17"),
            (lambda: MankuTables(choose=0), "choose must be 1 or 2, not 0"),
            (lambda: MankuTables(choose=3), "choose must be 1 or 2, not 3"),
            (lambda: MultiIndexHashing(blocks=0), r"from 1 to 4 \(distance \+ 1\), not 0"),
            (lambda: MultiIndexHashing(blocks=5), r"from 1 to 4 \(distance \+ 1\), not 5"),
            (lambda: MankuTables(tail_entries=0), "tail_entries must be at least 1, not 0"),
        ],
    )
    def test_constructor(self, make_wrong: Callable[[], Tables], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            make_wrong()

    @pytest.mark.parametrize("row", [-1, NO_ROW])
    def test_row(self, make: Callable[[int, int], Tables], row: int) -> None:
        index = make(3, 10)
        message = rf"row must be between 0 and 4294967294, not {row}"

        with pytest.raises(ConfigurationError, match=message):
            index.add(5, row)
        with pytest.raises(ConfigurationError, match=message):
            index.extend(numbers(2), np.array([1, row]))
        with pytest.raises(ConfigurationError, match="a row for each value, not 1 for 2"):
            index.extend(numbers(2), np.array([1]))
        assert len(index) == 0

    @pytest.mark.parametrize("value", [-1, 2**64])
    def test_value(self, make: Callable[[int, int], Tables], value: int) -> None:
        index = make(3, 10)
        index.extend(numbers(20), np.arange(20))

        with pytest.raises(OverflowError):
            index.add(value, 1)
        with pytest.raises(OverflowError):
            index.remove(value, 1)
        with pytest.raises(OverflowError):
            index.find_first(query(value))
        with pytest.raises(OverflowError):
            index.find_all(query(value))
        with pytest.raises(OverflowError):
            assert value in index


class TablesAgainstScan(RuleBasedStateMachine):
    """Exact tables and the linear scan answer alike, whatever was added, removed and replaced before."""

    @initialize(kind=st.sampled_from(sorted(KINDS)), distance=st.integers(0, 10), tail=st.integers(1, 4))
    def start(self, kind: str, distance: int, tail: int) -> None:
        self.index = KINDS[kind](distance, tail)
        self.scan = LinearScan(max_distance=distance)
        self.entries: list[tuple[int, int]] = []

    @rule(value=values(), row=st.integers(0, NO_ROW - 1))
    def add(self, value: int, row: int) -> None:
        self.index.add(value, row)
        self.scan.add(value, row)
        self.entries.append((value, row))

    @rule(many=st.lists(st.tuples(values(), st.integers(0, NO_ROW - 1)), max_size=40))
    def extend(self, many: list[tuple[int, int]]) -> None:
        stored = np.array([value for value, _ in many], dtype=np.uint64)
        rows = np.array([row for _, row in many], dtype=np.int64)
        self.index.extend(stored, rows)
        self.scan.extend(stored, rows)
        self.entries += many

    @precondition(lambda self: self.entries)
    @rule(data=st.data(), times=st.integers(1, 20))
    def remove(self, data: st.DataObject, times: int) -> None:
        for _ in range(min(times, len(self.entries))):
            value, row = self.entries.pop(data.draw(st.integers(0, len(self.entries) - 1)))
            assert self.index.remove(value, row)
            assert self.scan.remove(value, row)

    @rule(value=values())
    def search(self, value: int) -> None:
        assert_alike(self.index, self.scan, value)

    @invariant()
    def same_size(self) -> None:
        if hasattr(self, "index"):
            assert len(self.index) == len(self.scan) == len(self.entries)


TestTablesAgainstScan = pytest.mark.slow(TablesAgainstScan.TestCase)
TestTablesAgainstScan.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
