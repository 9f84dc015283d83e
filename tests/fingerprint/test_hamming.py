from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.fingerprint import hamming

FINGERPRINTS = st.integers(0, 2**64 - 1)


@given(FINGERPRINTS, FINGERPRINTS)
def test_all_ways_to_count_differing_bits_agree(a: int, b: int) -> None:
    expected = sum(x != y for x, y in zip(f"{a:064b}", f"{b:064b}", strict=True))

    assert hamming.distance(a, b) == expected
    assert list(hamming.distances(np.array([a], dtype=np.uint64), b)) == [expected]
    assert len(hamming.differing_bits(a, b)) == expected


@pytest.mark.parametrize("max_distance", [0, 3, 10])
def test_within_is_inclusive(max_distance: int) -> None:
    at_limit = (1 << max_distance) - 1
    beyond = (1 << (max_distance + 1)) - 1

    assert hamming.within(0, at_limit, max_distance)
    assert not hamming.within(0, beyond, max_distance)


def test_differing_bits_count_from_the_most_significant() -> None:
    assert hamming.differing_bits(0, 2**63 + 2) == [0, 62]


def test_percentage_is_the_share_of_equal_bits() -> None:
    assert [hamming.percentage(bits) for bits in (0, 3, 32, 64)] == [100.0, 95.3125, 50.0, 0.0]
