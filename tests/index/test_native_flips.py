"""The native core plans the same flips as the Python module that it serves, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from neardup import native
from neardup.fingerprint.simhash import Fingerprint, fingerprint
from neardup.index.psm import flips
from neardup.text.features import Features
from neardup.text.visible_text import text_of_bytes
from tests.support.real_pages import page_id, real_pages
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

pytestmark = pytest.mark.skipif(not native.available, reason=f"without the native core ({native.reason})")

TWIN = python_twin(flips)
# Few different weights make many combinations equally probable.
WEIGHTS = arrays(np.float64, 64, elements=st.sampled_from([-1.0, 0.0, 1e-3, 0.5, 3.0]) | st.floats(-1e9, 1e9))
RECALLS = st.sampled_from([0.0, 0.5, 0.95, 0.999, 1.0])


def agree(
    weights: npt.NDArray[np.float64], prefix_bits: int, max_distance: int, recall: float, most: int
) -> None:
    wanted = flips.plan_flips(weights, prefix_bits, max_distance, recall, most)
    found = TWIN.plan_flips(weights, prefix_bits, max_distance, recall, most)

    for native_array, array in zip(wanted, found, strict=True):
        assert native_array.dtype == array.dtype
        assert native_array.tolist() == array.tolist()


@pytest.mark.parametrize("path", real_pages(), ids=page_id)
def test_flips_of_real_pages(path: Path) -> None:
    extracted = Features().extract(text_of_bytes(path.read_bytes()))
    made = fingerprint(extracted.hashes, extracted.weights)
    assert made is not None
    stored = Fingerprint.unpack(made.value, made.pack_weak_bits())

    for weights in (made.weights, stored.weights):
        for prefix_bits, max_distance in [(14, 3), (20, 5), (64, 2)]:
            for recall in (0.5, 0.95, 1.0):
                agree(weights, prefix_bits, max_distance, recall, 5000)


@given(WEIGHTS, st.integers(0, 64), st.integers(0, 3), RECALLS, st.integers(1, 2000))
def test_flips_of_any_weights(
    weights: npt.NDArray[np.float64], prefix_bits: int, max_distance: int, recall: float, most: int
) -> None:
    agree(weights, prefix_bits, max_distance, recall, most)


@given(WEIGHTS, st.integers(0, 12), st.integers(4, 16), RECALLS)
def test_flips_at_large_distances(
    weights: npt.NDArray[np.float64], prefix_bits: int, max_distance: int, recall: float
) -> None:
    agree(weights, prefix_bits, max_distance, recall, 5000)


def test_flips_that_one_more_would_not_fit() -> None:
    weights = np.linspace(0.1, 1.0, 64)
    every = len(flips.plan_flips(weights, 10, 3, 1.0, 1000)[0])

    assert every == 1 + 10 + 45 + 120
    for most in (1, 2, every - 1, every, every + 1):
        agree(weights, 10, 3, 1.0, most)


@pytest.mark.parametrize("weight", [np.nan, np.inf, 1e-162, 1e200])
def test_weights_too_small_or_too_large(weight: float) -> None:
    weights = np.ones(64)
    weights[5:9] = weight
    with np.errstate(all="ignore"):
        twin = TWIN.plan_flips(weights, 9, 3, 0.9, 100)[0]

    assert flips.plan_flips(weights, 9, 3, 0.9, 100)[0].tolist() == twin.tolist()


@pytest.mark.parametrize(
    ("weights", "prefix_bits", "max_distance", "most", "message"),
    [
        (np.zeros(63), 9, 3, 100, "of 64 bits, not of 63"),
        (np.zeros(64, dtype=np.float32), 9, 3, 100, "dtype mismatch"),
        (np.zeros((64, 1)), 9, 3, 100, "wrong number of dimensions"),
        (np.zeros(128)[::2], 9, 3, 100, "ndarray is not C-contiguous"),
        (np.zeros(64), 65, 3, 100, "0 to 64 bits, not 65"),
        (np.zeros(64), -1, 3, 100, "0 to 64 bits, not -1"),
        (np.zeros(64), 9, 17, 100, "between 0 and 16, not 17"),
        (np.zeros(64), 9, -1, 100, "between 0 and 16, not -1"),
        (np.zeros(64), 9, 3, 0, "room for a combination"),
    ],
)
def test_arguments_that_would_be_read_wrong(
    weights: npt.NDArray[np.float64], prefix_bits: int, max_distance: int, most: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        flips.plan_flips(weights, prefix_bits, max_distance, 0.9, most)


def test_weights_may_be_read_only() -> None:
    weights = np.linspace(0.1, 1.0, 64)
    weights.flags.writeable = False

    agree(weights, 10, 3, 0.9, 100)
