"""All pairs of similar sets, against comparing every two."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup import native
from neardup.evaluation import join
from neardup.evaluation.join import Indexed, compare, similar_pairs
from neardup.fingerprint import sketch
from neardup.text.features import Features
from neardup.text.visible_text import text_of_bytes
from tests.support.real_pages import real_pages
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

TWIN = python_twin(join)
CUTS = st.sampled_from([0.01, 0.1, 0.2, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.9, 1.0]) | st.floats(0.01, 1.0)


def array(values: Iterable[int]) -> Hashes:
    return np.array(sorted(values), dtype=np.uint64)


def every_two(sets: Sequence[Hashes], cut: float) -> dict[tuple[int, int], float]:
    """Exact resemblances of all pairs of which neither is empty."""
    return {
        (i, j): resemblance
        for i, j in itertools.combinations(range(len(sets)), 2)
        if sets[i].size and sets[j].size and (resemblance := sketch.resemblance(sets[i], sets[j])) >= cut
    }


def joined(sets: Sequence[Hashes], cut: float) -> dict[tuple[int, int], float]:
    found = similar_pairs(sets, cut)
    for ours, twins in zip(found, TWIN.similar_pairs(sets, cut), strict=True):
        assert ours.dtype == twins.dtype
        assert ours.tolist() == twins.tolist()
    pairs = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs) == found.resemblance.size
    return dict(zip(pairs, found.resemblance.tolist(), strict=True))


@given(st.lists(st.sets(st.integers(0, 12)).map(array), max_size=12), CUTS)
def test_small_sets(sets: list[Hashes], cut: float) -> None:
    assert joined(sets, cut) == every_two(sets, cut)


@settings(max_examples=25)
@given(st.integers(0, 2**32), CUTS)
def test_larger_sets_of_common_and_rare_elements(seed: int, cut: float) -> None:
    generator = np.random.default_rng(seed)
    sets = [
        np.unique(generator.zipf(1.3, size=size).astype(np.uint64))
        for size in generator.integers(1, 300, size=60)
    ]
    sets += [np.unique(np.concatenate((one[3:], array((1, seed))))) for one in sets[:20]]

    assert joined(sets, cut) == every_two(sets, cut)


@pytest.mark.parametrize("cut", [0.05, 0.3, 0.5, 0.8, 1.0])
def test_real_pages(cut: float) -> None:
    choice = Features()
    sets = [
        sketch.shingle_set(choice.extract(text_of_bytes(page.read_bytes())).words)
        for page in real_pages()[:120]
    ]

    found = joined(sets, cut)

    assert found == every_two(sets, cut)
    assert len(found) > 5


def test_more_pairs_than_there_is_room_for_at_first() -> None:
    sets = [array((1, 2, 3))] * 100

    assert joined(sets, 1.0) == dict.fromkeys(itertools.combinations(range(100), 2), 1.0)


@pytest.mark.slow
def test_exactly_at_the_cut_is_in_and_just_below_is_out() -> None:
    # (7/25) · 25 is more than 7 in floating point, and so it is with others of these fractions.
    for either in range(1, 60):
        for both in range(1, either + 1):
            for sets in (
                [array(range(either)), array(range(both))],
                [
                    array(range((both + either) // 2)),
                    array((*range(both), *range((both + either) // 2, either))),
                ],
            ):
                assert joined(sets, both / either) == {(0, 1): both / either}
                if both < either:
                    assert joined(sets, float(np.nextafter(both / either, 1.0))) == {}


def test_empty_sets_are_in_no_pair() -> None:
    empty = array(())

    assert joined([], 0.5) == joined([empty], 0.5) == joined([empty, empty], 0.5) == {}
    assert joined([empty, array((1,)), empty, array((1,))], 0.5) == {(1, 3): 1.0}


def test_the_largest_and_the_least_hash() -> None:
    ends = array((0, 2**64 - 1))

    assert joined([ends, ends, array((0,))], 0.5) == {(0, 1): 1.0, (0, 2): 0.5, (1, 2): 0.5}


@pytest.mark.parametrize("cut", [5e-324, 1e-8, 1e-7, 1e-3])
def test_tiny_cuts(cut: float) -> None:
    sets = [array((1, 2, 3)), array((3, 4, 5)), array((6,)), array(range(5, 15))]

    assert joined(sets, cut) == every_two(sets, cut)


@pytest.mark.parametrize("cut", [-1.0, 0.0, 1.001, float("nan")])
def test_other_cuts_are_refused(cut: float) -> None:
    with pytest.raises(ValueError, match="cut must be above 0 and at most 1"):
        similar_pairs([array((1,))], cut)


INDEXED = Indexed(*map(np.array, ([0, 1, 0, 1], [0, 2, 4], [1, 1], [0, 1], [0, 2, 2])))


def test_what_an_index_is() -> None:
    for compare_with in (compare, TWIN.compare):
        assert compare_with(INDEXED, 0.5).tolist() == [[0, 1, 2]]


@pytest.mark.parametrize(
    "changed",
    [
        {"elements": [0, 1, 0, 2]},
        {"elements": [0, 1, -3, 1]},
        {"elements": [0, 1, 0]},
        {"elements": [0.0, 1.0, 0.0, 1.0]},
        {"starts": [0, 4]},
        {"starts": [0, 5, 4]},
        {"starts": [-1, 2, 4]},
        {"prefixes": [3, 1]},
        {"prefixes": [1, -1]},
        {"prefixes": [1]},
        {"postings": [0, 2]},
        {"postings": [-1, 1]},
        {"postings": [0]},
        {"places": [0, 3, 2]},
        {"places": [0, 2, 3]},
        {"places": []},
    ],
)
@pytest.mark.skipif(not native.available, reason=native.reason)
def test_what_is_no_index_is_refused(changed: dict[str, list[float]]) -> None:
    arrays = {name: np.array(values, dtype=None if values else np.int64) for name, values in changed.items()}
    with pytest.raises(ValueError):  # noqa: PT011  # several checks may refuse it
        compare(INDEXED._replace(**arrays), 0.5)
