"""The native tree of the PSM index and its Python twin: the same leaves, matches and costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup import native
from neardup.detection.detector import DetectorOptions
from neardup.fingerprint.simhash import Fingerprint
from neardup.index.psm import tree
from tests.support.real_pages import real_pages
from tests.support.twins import python_twin

if TYPE_CHECKING:
    import numpy.typing as npt

pytestmark = pytest.mark.skipif(not native.available, reason=native.reason)

Trees = tuple[tree.PrefixTree, tree.PrefixTree]


def both(**options: Any) -> Trees:
    return tree.PrefixTree(**options), python_twin(tree).PrefixTree(**options)


def assert_same(trees: Trees) -> None:
    compiled, twin = trees
    (values, rows), (other_values, other_rows) = compiled.contents(), twin.contents()
    assert np.array_equal(values, other_values)
    assert np.array_equal(rows, other_rows)
    assert len(compiled) == len(twin)
    assert compiled.stats == twin.stats
    assert compiled.learned == twin.learned


def skewed(count: int) -> npt.NDArray[np.uint64]:
    """As those of pages are, and with many copies of some."""
    rng = np.random.default_rng(count)
    bits = rng.random((count, 64)) < rng.beta(0.5, 0.5, 64)
    values = np.packbits(bits, axis=1).view(">u8").ravel().astype(np.uint64)
    values[rng.random(count) < 0.3] = values[0]
    return values


@pytest.mark.slow
@pytest.mark.parametrize("recall", [0.5, 0.95, 1.0])
@pytest.mark.parametrize("max_distance", [1, 3, 8])
def test_what_is_stored_and_found_is_the_same(max_distance: int, recall: float) -> None:
    rng = np.random.default_rng(max_distance)
    values, rows = skewed(12_000), np.arange(12_000, dtype=np.uint32)
    trees = both(max_distance=max_distance, recall=recall)
    for each in trees:
        each.add_many(values[:9000], rows[:9000])
        for value, row in zip(values[9000:].tolist(), rows[9000:].tolist(), strict=True):
            each.add(value, row)
        for row in range(0, 12_000, 5):
            assert each.remove(int(values[row]), row)
    assert_same(trees)
    for _ in range(100):
        value = int(values[rng.integers(len(values))]) ^ 1 << int(rng.integers(64))
        query = Fingerprint(value, rng.normal(size=64) * rng.choice([0.1, 1.0]))
        most = int(rng.choice([3, 10**9]))
        first, others = trees
        assert first.find_first(query) == others.find_first(query)
        assert np.array_equal(first.match_table(query, most), others.match_table(query, most))
        assert (value in first) == (value in others)
    assert_same(trees)


def test_a_block_of_queries_finds_and_costs_the_same() -> None:
    rng = np.random.default_rng(3)
    values, weights = skewed(5000), rng.normal(size=(300, 64))
    answers = []
    for each in both(max_distance=3, recall=0.9):
        each.add_many(values, np.arange(5000, dtype=np.uint32))
        answers.append(each.match_block(values[:300] ^ np.uint64(5), weights, 4, 0.01))
    (found, costs, threshold), (other_found, other_costs, other_threshold) = answers

    assert len(found) > 300
    assert np.array_equal(found, other_found)
    assert np.array_equal(costs, other_costs)
    assert threshold == other_threshold


def test_the_parts_of_a_scan_come_to_the_same() -> None:
    trees = both(max_distance=3, recall=0.9)
    values = skewed(40_000)
    for each in trees:
        each.add_many(values, np.arange(40_000, dtype=np.uint32))
    for value in (0, 12345, int(values[7]) ^ 3, 2**64 - 1):
        nearest = []
        for each in trees:
            smallest, cursor = each.nearest_from(0, value, 39_000, 7)
            while cursor is not None:
                nearer, cursor = each.nearest_from(cursor, value, 39_000, 7)
                smallest = min(smallest, nearer)
            nearest.append(smallest)
        others = values[:39_000][np.arange(39_000) != 7]
        assert nearest == [int(np.bitwise_count(others ^ np.uint64(value)).min())] * 2


def test_fingerprints_of_real_pages() -> None:
    reader = DetectorOptions().make_reader()
    readings = [reader.read_html(path.as_uri(), path.read_bytes()) for path in real_pages()]
    fingerprints = [reading.fingerprint for reading in readings if reading.fingerprint is not None]
    assert len(fingerprints) >= 10
    trees = both(max_distance=16, recall=0.9)
    for each in trees:
        for row, fingerprint in enumerate(fingerprints * 30):
            each.add(fingerprint.value, row)
    for fingerprint in fingerprints:
        assert np.array_equal(trees[0].match_table(fingerprint), trees[1].match_table(fingerprint))
    assert_same(trees)


@pytest.mark.slow
@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 40)), max_size=400),
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=32), min_size=64, max_size=64),
    st.integers(0, 16),
    st.sampled_from([0.3, 0.98, 1.0]),
)
def test_any_weights(
    stored: list[tuple[int, int]], weights: list[float], max_distance: int, recall: float
) -> None:
    trees = both(max_distance=max_distance, recall=recall)
    for each in trees:
        for row, (high, low) in enumerate(stored):
            each.add(high << 61 | low << 30, row)
    query = Fingerprint(3 << 61 | 5 << 30, np.array(weights, dtype=np.float64))
    first, second = trees
    with np.errstate(all="ignore"):
        for _ in range(3):
            assert np.array_equal(first.match_table(query), second.match_table(query))
    assert first.stats == second.stats
    assert np.array_equal(first.learned, second.learned, equal_nan=True)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (np.zeros(3, dtype=np.uint64), np.zeros(2, dtype=np.uint32)),
        (np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.uint32)),
        (np.zeros((3, 1), dtype=np.uint64), np.zeros(3, dtype=np.uint32)),
    ],
)
def test_arrays_that_cannot_be_read_are_refused(values: Any, rows: Any) -> None:
    with pytest.raises(ValueError, match=r"rows|mismatch|dimensions"):
        tree.PrefixTree(max_distance=3, recall=0.9).add_many(values, rows)
