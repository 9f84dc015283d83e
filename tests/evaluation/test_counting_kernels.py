"""The native loops over all pairs against their Python twins."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import native
from neardup.evaluation import counting_kernels
from neardup.evaluation.counting_kernels import RIGHT, Sets, Truth, count_pairs, least_alike
from neardup.evaluation.join import similar_pairs
from neardup.evaluation.pages import Pages, Prints
from neardup.text.features import Features
from neardup.text.visible_text import text_of_bytes
from tests.support.real_pages import real_pages
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

TWIN = python_twin(counting_kernels)


def truth_of(pairs: Sequence[tuple[int, int, int]], pages: int) -> Truth:
    """From (earlier, later, class)."""
    earlier, later, classes = (
        np.array(sorted(pairs, key=lambda pair: pair[1]), dtype=np.int64).reshape(-1, 3).T
    )
    offsets = np.searchsorted(later, np.arange(pages + 1))
    return Truth(offsets, earlier.copy(), classes.astype(np.uint8), np.zeros(len(pairs)))


def sets_of(sets: Sequence[npt.NDArray[np.uint64]]) -> Sets:
    return Sets(np.concatenate(sets), np.concatenate(([0], np.cumsum([one.size for one in sets]))))


def assert_agree(prints: Prints, truth: Truth, sets: Sets, begin: int, end: int, **rule: int) -> int:
    """Returns how many pages have a pair that is reported and not right."""
    counts, of_twin = (count(prints, truth, begin, end) for count in (count_pairs, TWIN.count_pairs))
    assert counts.dtype == of_twin.dtype
    assert np.array_equal(counts, of_twin)
    assert counts.sum() == (end * (end - 1) - begin * (begin - 1)) // 2
    found, of_twin = (
        least(prints, truth, sets, begin, end, **rule) for least in (least_alike, TWIN.least_alike)
    )
    for ours, twins in zip(found, of_twin, strict=True):
        assert ours.dtype == twins.dtype
        assert ours.tolist() == twins.tolist()
    return int(np.count_nonzero(found[1] >= 0))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Prints, Truth, Sets, int, int]:
    pages, words = draw(st.integers(1, 12)), draw(st.integers(1, 20))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    likely = draw(st.sampled_from([0.02, 0.3, 1.0]))
    values, *sketches = (
        np.packbits(generator.random((pages, 64)) < likely, axis=1).view(np.uint64)[:, 0]
        for _ in range(1 + words)
    )
    possible = [(earlier, later) for later in range(pages) for earlier in range(later)]
    paired = draw(st.sets(st.sampled_from(possible))) if possible else set()
    truth = truth_of([(*pair, draw(st.integers(1, 7))) for pair in paired], pages)
    sets = [array(draw(st.sets(st.integers(0, 6)))) for _ in range(pages)]
    begin = draw(st.integers(0, pages))
    prints = Prints(values, np.zeros((pages, 64)), np.stack(sketches, axis=1))
    return prints, truth, sets_of(sets), begin, draw(st.integers(begin, pages))


def array(values: set[int]) -> npt.NDArray[np.uint64]:
    return np.array(sorted(values), dtype=np.uint64)


@given(cases(), st.integers(-1, 65), st.integers(-1, 700))
def test_native_and_twin_agree(
    case: tuple[Prints, Truth, Sets, int, int], max_distance: int, most_differing: int
) -> None:
    assert_agree(*case, max_distance=max_distance, most_differing=most_differing)


def real_case() -> tuple[Prints, Truth, Sets]:
    pages = Pages([Features()])
    for page in real_pages()[:120]:
        pages.add(str(page), text_of_bytes(page.read_bytes()), min_features=10)
    found = similar_pairs(pages.sets, 0.5)
    pairs = [
        (earlier, later, RIGHT if alike >= 0.8 else 2)
        for earlier, later, alike in zip(*(column.tolist() for column in found), strict=True)
    ]
    return pages.prints(Features().name), truth_of(pairs, len(pages)), sets_of(pages.sets)


@pytest.mark.parametrize(("max_distance", "most_differing"), [(8, 1024), (12, 300), (26, 1024)])
def test_native_and_twin_agree_on_real_pages(max_distance: int, most_differing: int) -> None:
    prints, truth, sets = real_case()

    wrong = assert_agree(
        prints, truth, sets, 0, len(prints.values), max_distance=max_distance, most_differing=most_differing
    )

    assert wrong > 5


DIGESTS = """
import hashlib, numpy as np
from neardup.evaluation.counting_kernels import Sets, Truth, count_pairs, least_alike
from neardup.evaluation.pages import Prints
generator = np.random.default_rng(1)
truth = Truth(np.zeros(41, int), np.empty(0, int), np.empty(0, np.uint8), np.empty(0))
sets = Sets(np.arange(40, dtype=np.uint64) // np.uint64(2), np.arange(41))
for words in range(1, 20):
    sketches = generator.integers(2**64, size=(40, words), dtype=np.uint64)
    prints = Prints(sketches[:, 0].copy(), np.zeros((40, 64)), sketches)
    made = count_pairs(prints, truth, 0, 40)
    made = (made, *least_alike(prints, truth, sets, 0, 40, max_distance=30, most_differing=32 * words))
    print(hashlib.sha256(b"".join(one.tobytes() for one in made)).hexdigest())
"""


@pytest.mark.slow
@pytest.mark.skipif(not native.available, reason=native.reason)
def test_whatever_the_instructions_the_counts_are_those_of_the_twin() -> None:
    def digests(**environment: str) -> list[str]:
        return subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env=os.environ | environment, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip

    expected = digests(NEARDUP_NATIVE="0")
    assert len(set(expected)) == 19
    for instructions in ("baseline", "avx2", "avx512"):
        assert digests(NEARDUP_INSTRUCTIONS=instructions) == expected, instructions


PRINTS = Prints(np.zeros(3, dtype=np.uint64), np.zeros((3, 64)), np.zeros((3, 2), dtype=np.uint64))
TRUTH = truth_of([(0, 1, 1), (1, 2, 7)], 3)
SETS = sets_of([array({1})] * 3)


@pytest.mark.skipif(not native.available, reason=native.reason)
class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "changed",
        [
            {"values": np.zeros(2, dtype=np.uint64)},
            {"values": np.zeros(3, dtype=np.int64)},
            {"sketches": np.zeros((2, 2), dtype=np.uint64)},
            {"sketches": np.zeros(3, dtype=np.uint64)},
            {"sketches": np.zeros((3, 4), dtype=np.uint64)[:, ::2]},
        ],
    )
    def test_prints_of_other_pages(self, changed: dict[str, npt.NDArray[Any]]) -> None:
        self.assert_refused(PRINTS._replace(**changed), TRUTH, SETS)

    @pytest.mark.parametrize(
        "changed",
        [
            {"offsets": [0, 0, 1]},
            {"offsets": [0, 0, 1, 3]},
            {"offsets": [0, 2, 1, 2]},
            {"offsets": [-1, 0, 1, 2]},
            {"partners": [0, 2]},
            {"partners": [1, 1]},
            {"partners": [0, -1]},
            {"partners": [0]},
        ],
    )
    def test_truth_of_other_pages(self, changed: dict[str, list[int]]) -> None:
        arrays = {name: np.array(values) for name, values in changed.items()}
        self.assert_refused(PRINTS, TRUTH._replace(**arrays), SETS)

    @pytest.mark.parametrize("classes", [[1, 8], [1], [1, 2, 3]])
    def test_classes_that_there_are_not(self, classes: list[int]) -> None:
        self.assert_refused(PRINTS, TRUTH._replace(classes=np.array(classes, dtype=np.uint8)), SETS)

    @pytest.mark.parametrize("starts", [[0, 1, 2], [0, 1, 2, 4], [0, 2, 1, 3], [-1, 1, 2, 3]])
    def test_sets_of_other_pages(self, starts: list[int]) -> None:
        with pytest.raises(ValueError, match="set"):
            least_alike(
                PRINTS, TRUTH, Sets(SETS.elements, np.array(starts)), 0, 3, max_distance=3, most_differing=9
            )

    @pytest.mark.parametrize(("begin", "end"), [(-1, 2), (2, 1), (0, 4)])
    def test_pages_that_there_are_not(self, begin: int, end: int) -> None:
        with pytest.raises(ValueError, match="are not among 3"):
            count_pairs(PRINTS, TRUTH, begin, end)

    def assert_refused(self, prints: Prints, truth: Truth, sets: Sets) -> None:
        with pytest.raises(ValueError):  # noqa: PT011  # several checks may refuse it
            count_pairs(prints, truth, 0, 3)
        with pytest.raises(ValueError):  # noqa: PT011
            least_alike(prints, truth, sets, 0, 3, max_distance=3, most_differing=9)
