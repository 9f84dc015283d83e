"""Shingles and sketches: the worked examples of slides on Broder's method, the bounds of theory, and the
kernels.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup import native
from neardup.errors import ConfigurationError
from neardup.fingerprint import sketch
from neardup.text import feature_kernels
from neardup.text.features import Features
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

ENGLISH = "A crawler that has seen a page need not follow the links of another page like it."
MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15

SETS = st.sets(st.integers(0, MASK), min_size=1, max_size=80)
SIZES = st.integers(1, 150)

KERNELS = [feature_kernels, python_twin(feature_kernels)]
"""The native loops and those in Python; twice the latter where no native core is built."""


def array(values: Iterable[int]) -> Hashes:
    return np.array(sorted(values), dtype=np.uint64)


def words(text: str) -> Hashes:
    return Features().extract(text).words


def mix(value: int) -> int:
    """The finaliser of MurmurHash3, as published."""
    value = (value ^ value >> 33) * 0xFF51AFD7ED558CCD & MASK
    value = (value ^ value >> 33) * 0xC4CEB9FE1A85EC53 & MASK
    return value ^ value >> 33


def place(element: int, turn: int, size: int) -> int:
    """The place that an element is drawn for in one of the first turns."""
    return (mix(element + turn * STEP & MASK) >> 32) * size >> 32


def similarity_sketch(elements: Iterable[int], places: int) -> list[int]:
    """Algorithm 1 of Dahlgaard, Knudsen & Thorup (2017).

    Turn i hashes every element to a bucket b and a value i + v, until no bucket is empty. In the second half
    of the turns the bucket is always i − t.
    """
    buckets: list[int | None] = [None] * places
    for turn in range(2 * places):
        for element in elements:
            drawn = mix(element + turn * STEP & MASK)
            bucket = (drawn >> 32) * places >> 32 if turn < places else turn - places
            value = turn << 32 | drawn & 0xFFFFFFFF
            best = buckets[bucket]
            buckets[bucket] = value if best is None else min(best, value)
        if None not in buckets:
            break
    return [bucket for bucket in buckets if bucket is not None]


class TestSlides:
    """The slides "Finding near-duplicate documents", 12 to 27."""

    A = "a rose is red a rose is white"
    B = "a rose is white a rose is red"

    def test_four_shingles(self) -> None:
        of_a = ["a rose is red", "rose is red a", "is red a rose", "red a rose is", "a rose is white"]
        expected = [sketch.shingle_set(words(shingle), 4) for shingle in of_a]

        assert sketch.shingle_set(words(self.A), 4).tolist() == sorted(one.item() for one in expected)

    def test_resemblance(self) -> None:
        a, b = (sketch.shingle_set(words(text), 4) for text in (self.A, self.B))

        assert a.size == b.size == 5
        assert sketch.resemblance(a, b) == sketch.resemblance(b, a) == 0.25

    def test_sketch_of_five_permutations(self) -> None:
        # H(j) = 1000·j of R = [0, 10000]; each permutation is a random multiple, cut to R.
        factors = (0.56845, 1.15068, 9.2239, 9.37615, 2.97639)
        a, b = {1, 2, 3, 4, 5}, {1, 2, 5, 6, 7}
        tables = [{j: int(1000 * j * factor) % 10000 for j in a | b} for factor in factors]
        assert [list(table.values()) for table in tables] == [
            [568, 1136, 1705, 2273, 2842, 3410, 3979],
            [1150, 2301, 3452, 4602, 5753, 6904, 8054],
            [9223, 8447, 7671, 6895, 6119, 5343, 4567],
            [9376, 8752, 8128, 7504, 6880, 6256, 5633],
            [2976, 5952, 8929, 1905, 4881, 7858, 834],
        ]

        of_a, of_b = ([min(table[j] for j in one) for table in tables] for one in (a, b))

        assert of_a == [568, 1150, 6119, 6880, 1905]
        assert of_b == [568, 1150, 4567, 5633, 834]
        assert sketch.estimate(np.array(of_a, np.uint64), np.array(of_b, np.uint64)) == 0.4
        assert round(sketch.resemblance(array(a), array(b)), 2) == round(3 / 7, 2) == 0.43


@pytest.mark.parametrize("kernels", KERNELS, ids=["native", "python"])
class TestShingleLoops:
    @given(st.lists(st.integers(0, 5), max_size=30), st.integers(1, 8))
    def test_one_for_each_distinct_run(self, kernels: ModuleType, numbers: list[int], width: int) -> None:
        length = min(width, len(numbers))
        runs = [tuple(numbers[i : i + length]) for i in range(len(numbers) - length + 1)] if numbers else []

        made = kernels.shingles(np.array(numbers, dtype=np.uint64), width)

        assert len(made) == len(runs)
        assert len(set(zip(made.tolist(), runs, strict=True))) == len(set(made.tolist())) == len(set(runs))
        assert sketch.shingle_set(np.array(numbers, dtype=np.uint64), width).tolist() == sorted(
            set(made.tolist())
        )

    @given(st.lists(st.integers(0, MASK), max_size=12), st.integers(1, 5))
    def test_reference(self, kernels: ModuleType, hashes: list[int], width: int) -> None:
        expected = []
        for i in range(max(len(hashes) - width + 1, min(1, len(hashes)))):
            run = hashes[i : i + width]
            value = len(run)
            for word in run:
                value = mix(value + STEP & MASK) ^ word
            expected.append(mix(value))

        assert kernels.shingles(np.array(hashes, dtype=np.uint64), width).tolist() == expected

    def test_no_words_at_a_time_are_refused(self, kernels: ModuleType) -> None:
        for width in (0, -1):
            with pytest.raises(ValueError, match=f"one word or more, not {width}"):
                kernels.shingles(array((1, 2)), width)

    def test_arrays_that_are_only_read(self, kernels: ModuleType) -> None:
        hashes = array(range(20))
        hashes.flags.writeable = False

        assert kernels.shingles(hashes, 3).size == 18
        assert kernels.minwise(hashes, 64).size == 64


class TestShingles:
    def test_few_words(self) -> None:
        assert sketch.shingle_set(words("")).size == 0
        assert sketch.shingle_set(words("a rose")).tolist() == sketch.shingle_set(words("a rose"), 2).tolist()
        assert sketch.shingle_set(words("a rose")).size == 1
        assert (
            sketch.resemblance(sketch.shingle_set(words("a rose")), sketch.shingle_set(words("rose a")))
            == 0.0
        )


class TestExact:
    @given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
    def test_resemblance(self, a: set[int], b: set[int]) -> None:
        assert sketch.resemblance(array(a), array(b)) == (len(a & b) / len(a | b) if a | b else 1.0)


@pytest.mark.parametrize("kernels", KERNELS, ids=["native", "python"])
class TestMinwiseLoops:
    @pytest.mark.parametrize("size", [64, 1024])
    def test_repeated_hashes_have_the_sketch_of_the_distinct_ones(
        self, kernels: ModuleType, size: int
    ) -> None:
        # "a a a a…" has one shingle. Drawn a million times in every turn, the shingle took 4 s.
        once = np.array([7, 12345, MASK], dtype=np.uint64)
        repeated = np.repeat(once, 22 * size)

        assert kernels.minwise(repeated, size).tolist() == kernels.minwise(once, size).tolist()

    @pytest.mark.slow
    def test_of_hashes_that_leave_a_place_empty_the_least_are_drawn(self, kernels: ModuleType) -> None:
        # A third of all hashes leave the last place empty in all turns that draw a place.
        size = 64
        others = np.random.default_rng(0).integers(0, MASK, size=20_000, dtype=np.uint64).tolist()
        chosen = [one for one in others if size - 1 not in {place(one, turn, size) for turn in range(size)}]
        assert len(chosen) > 6000

        made = kernels.minwise(np.array(chosen, dtype=np.uint64), size)

        assert made.tolist() == kernels.minwise(np.array(chosen[::-1], dtype=np.uint64), size).tolist()
        turn = 2 * size - 1
        drawn = [mix(element + turn * STEP & MASK) & 0xFFFFFFFF for element in sorted(chosen)]
        assert int(made[-1]) == turn << 32 | min(drawn[:64])
        assert min(drawn[:64]) > min(drawn)

    @given(SETS, SIZES)
    def test_reference(self, kernels: ModuleType, elements: set[int], size: int) -> None:
        assert kernels.minwise(array(elements), size).tolist() == similarity_sketch(elements, size)

    @given(st.integers(1, 3000), st.sampled_from([64, 100, 1024, 1025, 4096]), st.integers(0, 9))
    @settings(max_examples=20, deadline=None)
    def test_agrees_with_the_twin_on_many_elements(
        self, kernels: ModuleType, number: int, size: int, seed: int
    ) -> None:
        elements = np.random.default_rng(seed).integers(0, MASK, size=number, dtype=np.uint64)

        drawn, twin = kernels.draw(elements, size), KERNELS[1].draw(elements, size)
        assert [one.tolist() for one in drawn] == [one.tolist() for one in twin]

    @pytest.mark.slow
    @given(st.lists(st.integers(0, 40), min_size=2, max_size=90), st.sampled_from([1, 64, 256]))
    @settings(deadline=None)
    def test_without_its_holder_a_place_holds_another(
        self, kernels: ModuleType, elements: list[int], size: int
    ) -> None:
        given = np.array([7, *elements], dtype=np.uint64)
        drawn, held = kernels.draw(given, size)

        holders = held.tolist()

        for row in set(holders):
            others = given[given != given[row]]
            assert row == max(np.flatnonzero(given == given[row]))
            places = np.flatnonzero(np.array(holders) == row)
            assert others.size == 0 or (kernels.minwise(others, size)[places] != drawn[places]).all()

    @pytest.mark.slow
    def test_holders_of_a_sketch_that_takes_long(self, kernels: ModuleType) -> None:
        size = 64
        others = np.random.default_rng(0).integers(0, MASK, size=20_000, dtype=np.uint64).tolist()
        chosen = [one for one in others if size - 1 not in {place(one, turn, size) for turn in range(size)}]
        given = np.array(chosen * 3, dtype=np.uint64)
        drawn, holders = kernels.draw(given, size)

        assert holders.min() >= 2 * len(chosen)
        for at, (row, value) in enumerate(zip(holders.tolist(), drawn.tolist(), strict=True)):
            turn, element = value >> 32, int(given[row])
            assert mix(element + turn * STEP & MASK) & 0xFFFFFFFF == value & 0xFFFFFFFF
            assert at == (place(element, turn, size) if turn < size else min(turn - size, size - 1))

    def test_nothing_to_draw_is_refused(self, kernels: ModuleType) -> None:
        for elements, size in (((), 64), ((1,), 0), ((1,), -1), ((1,), 1 << 32)):
            with pytest.raises(ValueError, match="at least one element and one place"):
                kernels.minwise(array(elements), size)


class TestMinwise:
    @given(SETS, SETS, SIZES)
    def test_of_a_union_it_is_the_least_of_both(self, a: set[int], b: set[int], size: int) -> None:
        least = np.minimum(sketch.minwise(array(a), size), sketch.minwise(array(b), size))

        assert least.tolist() == sketch.minwise(array(a | b), size).tolist()

    @given(
        st.lists(st.integers(0, MASK), min_size=1, max_size=60).flatmap(
            lambda x: st.tuples(st.just(x), st.permutations(x + x))
        )
    )
    def test_order_and_repetition_do_not_matter(self, lists: tuple[list[int], list[int]]) -> None:
        once, twice = lists

        assert (
            sketch.minwise(np.array(once, np.uint64), 64).tolist()
            == sketch.minwise(np.array(twice, np.uint64), 64).tolist()
        )

    def test_golden(self) -> None:
        # Committed once; a change of any of these is another scheme and needs another name.
        shingles = sketch.shingle_set(words(ENGLISH))
        drawn = sketch.minwise(shingles)

        assert shingles.size == 15
        assert f"{shingles[0]:#018x}" == "0x0266108114a17182"
        assert sketch.minwise(shingles, 4).tolist() == [56246336, 1931246042, 263609042, 2450086760]
        assert hashlib.sha256(drawn.astype("<u8").tobytes()).hexdigest()[:16] == "546de502b1599efb"
        assert sketch.to_bytes(sketch.compact(sketch.minwise(shingles, 64))).hex() == "19be5d4b1b91ce9c"
        assert hashlib.sha256(sketch.to_bytes(sketch.compact(drawn))).hexdigest()[:16] == "d11cf951370a8b22"

    def test_errors(self) -> None:
        with pytest.raises(ValueError, match="at least one shingle"):
            sketch.minwise(array(()))
        with pytest.raises(ValueError, match="one place"):
            sketch.minwise(array((1,)), 0)
        with pytest.raises(ValueError, match="sketches of 64 and 128 places"):
            sketch.estimate(sketch.minwise(array((1,)), 64), sketch.minwise(array((1,)), 128))


class TestCompact:
    def test_lowest_bits_in_their_order(self) -> None:
        values = np.random.default_rng(0).integers(0, MASK, size=192, dtype=np.uint64)

        made = sketch.compact(values)

        assert made.dtype == np.uint64
        assert made.shape == (3,)
        bits = "".join(f"{byte:08b}" for byte in sketch.to_bytes(made))
        assert bits == "".join(str(value % 2) for value in values.tolist())
        assert sketch.from_bytes(sketch.to_bytes(made)).tolist() == made.tolist()

    @given(st.lists(st.integers(0, MASK), min_size=1, max_size=200))
    def test_native_and_twin_agree(self, values: list[int]) -> None:
        places = np.resize(np.array(values, dtype=np.uint64), 256)

        assert sketch.compact(places).tolist() == python_twin(sketch).compact(places).tolist()
        for compact in (sketch.compact, python_twin(sketch).compact):
            with pytest.raises(ValueError, match="multiple of 64, not 63"):
                compact(places[:63])

    @given(st.integers(0, 2**32 - 1), st.integers(0, 5), st.floats(0.0, 0.6))
    def test_native_and_twin_estimate_the_same(self, seed: int, pages: int, changed: float) -> None:
        rng = np.random.default_rng(seed)
        one = rng.integers(0, 2, 192, np.uint8)
        others = np.packbits(one ^ (rng.random((pages, 192)) < changed), axis=1).view("<u8").astype(np.uint64)
        own = np.packbits(one).view("<u8").astype(np.uint64)

        found = sketch.compact_estimates(others, own)

        assert found.dtype == np.float64
        assert found.tolist() == python_twin(sketch).compact_estimates(others, own).tolist()
        with pytest.raises(ValueError, match="of different sizes"):
            sketch.compact_estimates(others, own[:2])

    def test_estimates_are_never_below_zero(self) -> None:
        stored = np.array([[0, 0], [MASK, MASK], [MASK, 0], [15, 0]], dtype=np.uint64)

        assert sketch.compact_estimates(stored, stored[0]).tolist() == [1.0, 0.0, 0.0, 1 - 2 * 4 / 128]

    @pytest.mark.parametrize("size", [64, 128, 1024, 65536])
    def test_sizes(self, size: int) -> None:
        assert sketch.check_size(size) == size

    @pytest.mark.parametrize("size", [-64, 0, 1, 63, 100, 65600])
    def test_other_sizes_are_refused(self, size: int) -> None:
        with pytest.raises(ConfigurationError, match=f"multiple of 64 from 64 to 65536, not {size}"):
            sketch.check_size(size)


@pytest.mark.skipif(not native.available, reason="takes its time without the native core")
class TestAccuracy:
    """Bias and standard deviation over many pairs of sets, against what theory promises."""

    TRIALS = 400

    @pytest.mark.parametrize("either", [20, 400, 5000])
    @pytest.mark.parametrize("resemblance", [0.1, 0.3, 0.5, 0.8, 0.9, 0.95])
    @pytest.mark.parametrize(
        "size", [64, *(pytest.param(size, marks=pytest.mark.slow) for size in (256, 1024))]
    )
    def test_estimates_are_unbiased_and_as_sharp_as_promised(
        self, size: int, resemblance: float, either: int
    ) -> None:
        generator = np.random.default_rng([size, round(100 * resemblance), either])
        shared = round(resemblance * either)
        middle = (shared + either) // 2
        assert shared / either == pytest.approx(resemblance)
        full, bits = np.empty(self.TRIALS), np.empty(self.TRIALS)
        for trial in range(self.TRIALS):
            elements = generator.integers(0, MASK, size=either, dtype=np.uint64)
            a = sketch.minwise(elements[:middle], size)
            b = sketch.minwise(np.concatenate((elements[:shared], elements[middle:])), size)
            full[trial] = sketch.estimate(a, b)
            compact = sketch.compact(b)
            # What is below 0 is shown as 0, which would look like a bias.
            differing = int(np.bitwise_count(sketch.compact(a) ^ compact).sum())
            bits[trial] = 1 - 2 * differing / size
            assert sketch.compact_estimates(sketch.compact(a)[None, :], compact) == max(0.0, bits[trial])

        for estimates, deviation in (
            (full, math.sqrt(resemblance * (1 - resemblance) / size)),
            (bits, math.sqrt((1 - resemblance**2) / size)),
        ):
            assert abs(estimates.mean() - resemblance) < 4 * deviation / math.sqrt(self.TRIALS)
            assert estimates.std() <= 1.15 * deviation

    @pytest.mark.parametrize("size", [64, 256, 1024])
    def test_sets_of_one(self, size: int) -> None:
        generator = np.random.default_rng(size)
        ones = generator.integers(0, MASK, size=200, dtype=np.uint64)
        sketches = [sketch.minwise(one[None], size) for one in ones]

        assert sketch.estimate(sketches[0], sketch.minwise(ones[:1], size)) == 1.0
        assert all(sketch.estimate(a, b) == 0.0 for a, b in itertools.pairwise(sketches))
        equal_bits = [np.mean((a ^ b) % np.uint64(2) == 0) for a, b in itertools.pairwise(sketches)]
        assert np.mean(equal_bits) == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(199 * size))
