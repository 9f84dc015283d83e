"""The native loops over counts and headlines give what their Python twins give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import native
from neardup.detection import frequency_kernels
from neardup.detection.frequency_kernels import MOST_COUNT, whole_keys, word_keys
from neardup.text.headline import none
from tests.support.readings import readings
from tests.support.twins import python_twin

TWIN = python_twin(frequency_kernels)
KEYS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 20), max_size=60)
HEADLINES = st.lists(st.lists(st.integers(0, 9), min_size=20, max_size=20), min_size=1, max_size=6)

pytestmark = pytest.mark.skipif(
    native.load("neardup.detection._frequency_kernels") is None, reason="no native core"
)


@given(st.lists(KEYS, max_size=5), st.sampled_from([0, MOST_COUNT - 1]), st.sampled_from([1, 16, 256]))
def test_counts(pages: list[list[int]], start: int, width: int) -> None:
    ours, twins = (np.full((2, width), start, dtype=np.uint16) for _ in range(2))
    for page in pages:
        keys = np.array(page, dtype=np.uint64)
        frequency_kernels.count(ours, keys)
        TWIN.count(twins, keys)
        assert frequency_kernels.look_up(ours, keys).tolist() == TWIN.look_up(ours, keys).tolist()
        np.testing.assert_array_equal(ours, twins)


def test_counts_of_real_pages() -> None:
    ours, twins = (np.zeros((2, 1 << 13), dtype=np.uint16) for _ in range(2))
    for reading in readings():
        frequency_kernels.count(ours, reading.shingles)
        TWIN.count(twins, reading.shingles)

    assert ours.any()
    np.testing.assert_array_equal(ours, twins)


@given(HEADLINES, st.lists(st.integers(0, 9), min_size=20, max_size=20), st.integers(0, 4), st.booleans())
def test_likenesses(headlines: list[list[int]], own: list[int], limit: int, known: bool) -> None:
    page, others = np.array(own, dtype=np.uint32), np.array(headlines, dtype=np.uint32)
    cells = np.zeros((2, 64), dtype=np.uint16)
    for headline in others:
        TWIN.count(cells, word_keys(headline[headline != 0]))
        TWIN.count(cells, whole_keys(headline))
    for sites in (((cells, limit), (cells, limit)), ((cells, limit), (None, 6)), ((None, 6), (cells, limit))):
        one, other = sites if known else ((None, 6), (None, 6))
        found = frequency_kernels.likenesses(page, one, others, other)
        assert found.tolist() == TWIN.likenesses(page, one, others, other).tolist()


@given(HEADLINES)
def test_keys_of_headlines(headlines: list[list[int]]) -> None:
    for headline in np.array(headlines, dtype=np.uint32):
        found = frequency_kernels.headline_keys(headline)
        assert found.tolist() == TWIN.headline_keys(headline).tolist()


@pytest.mark.parametrize("shape", [(1, 64), (2, 0), (2, 63), (3, 64)])
def test_a_table_of_another_shape_is_refused(shape: tuple[int, int]) -> None:
    cells = np.zeros(shape, dtype=np.uint16)
    keys = np.zeros(1, dtype=np.uint64)
    with pytest.raises(ValueError, match="two rows of cells"):
        frequency_kernels.look_up(cells, keys)
    with pytest.raises(ValueError, match="two rows of cells"):
        frequency_kernels.count(cells, keys)
    with pytest.raises(ValueError, match="two rows of cells"):
        frequency_kernels.likenesses(none(), (cells, 6), none()[np.newaxis], (cells, 6))


def test_a_headline_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="a headline has 20 words, not 19"):
        frequency_kernels.likenesses(none()[:19], (None, 6), none()[np.newaxis], (None, 6))
    with pytest.raises(ValueError, match="a headline has 20 words, not 19"):
        frequency_kernels.headline_keys(none()[:19])
