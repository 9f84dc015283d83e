"""The native core matches in batches and finds pairs as the Python modules do that it serves, bit for bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from neardup import native
from neardup.collection import matching, matching_kernels, pairs
from neardup.collection.flip_plan import ball
from neardup.collection.matching import Options, match
from neardup.fingerprint.simhash import fingerprint
from neardup.text.features import Features
from neardup.text.visible_text import text_of_bytes
from tests.support.real_pages import real_pages
from tests.support.twins import python_twin

if TYPE_CHECKING:
    import numpy.typing as npt

    Values = npt.NDArray[np.uint64]
    Packed = npt.NDArray[np.uint8]

pytestmark = pytest.mark.skipif(not native.available, reason=f"without the native core ({native.reason})")

KERNELS, PAIRS = python_twin(matching_kernels), python_twin(pairs)
ONE = np.uint64(1)
ALL = (1 << 64) - 1

WORDS = st.integers(0, ALL)
# Near each other, equal ones among them, and any.
VALUES = arrays(
    np.uint64,
    st.integers(0, 60),
    elements=st.builds(lambda a, b: 0xF0F << 40 ^ 1 << a ^ 1 << b, st.integers(0, 63), st.integers(0, 9))
    | WORDS,
)
BITS = st.lists(st.integers(0, 63), max_size=10, unique=True).map(lambda bits: np.array(bits, dtype=np.int64))


@cache
def real() -> tuple[Values, Packed]:
    """Fingerprints of real pages and their packed weak bits."""
    values, packed = [], []
    for path in real_pages():
        extracted = Features().extract(text_of_bytes(path.read_bytes()))
        made = fingerprint(extracted.hashes, extracted.weights)
        assert made is not None
        values.append(made.value)
        packed.append(list(made.pack_weak_bits()))
    return np.array(values, dtype=np.uint64), np.array(packed, dtype=np.uint8)


def skewed(seed: int, count: int) -> Values:
    """Values of which most agree in most bits."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**64, count, dtype=np.uint64)
    values[: count // 2] &= np.uint64(0x0000F00F00001111)
    values[: count // 4] &= np.uint64(0x0000F00F00000000)
    return values


def same(one: Any, other: Any) -> None:
    assert one.dtype == other.dtype
    assert one.shape == other.shape
    assert one.tolist() == other.tolist()


class TestFlips:
    @staticmethod
    def agree(packed: Packed, bits: npt.NDArray[np.int64], prefix_bits: int, max_distance: int) -> None:
        for recall, most in [(0.5, 8192), (0.95, 8192), (0.95, 3)]:
            arguments = packed, bits, prefix_bits, max_distance, recall, most
            for one, other in zip(
                matching_kernels.plan_queries(*arguments), KERNELS.plan_queries(*arguments), strict=True
            ):
                same(one, other)

    @pytest.mark.parametrize(("prefix_bits", "max_distance"), [(1, 3), (14, 3), (20, 5), (30, 0), (9, 16)])
    def test_real_pages(self, prefix_bits: int, max_distance: int) -> None:
        values, packed = real()
        bits = matching_kernels.choose_bits(values, ALL, 64)

        self.agree(packed, bits, prefix_bits, max_distance)
        self.agree(packed[:0], bits, prefix_bits, max_distance)

    @given(
        arrays(
            np.uint8, (3, 48), elements=st.integers(0, 63)
        ),  # positions may come twice, as in a damaged file
        st.permutations(range(64)),
        st.integers(1, 20),
    )
    def test_any_weak_bits(self, packed: Packed, bits: list[int], prefix_bits: int) -> None:
        packed[:, 24:] *= 4

        self.agree(packed, np.array(bits), prefix_bits, 3)

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"weak_bits": np.zeros((3, 47), dtype=np.uint8)}, "have 48 bytes, not 47"),
            ({"weak_bits": np.full((3, 48), 64, dtype=np.uint8)}, "name bit 64"),
            ({"weak_bits": np.zeros((3, 48), dtype=np.int64)}, "dtype mismatch"),
            ({"bits": np.arange(63)}, "64 bits"),
            ({"bits": np.arange(64) + 1}, "bits are 0 to 63, not 64"),
            ({"bits": np.arange(64) - 1}, "bits are 0 to 63, not -1"),
            ({"prefix_bits": 0}, "64 bits, 1 to 30 of them prefix"),
            ({"prefix_bits": 31}, "64 bits, 1 to 30 of them prefix"),
            ({"max_distance": 17}, "0 to 16"),
            ({"most": 0}, "a flip or more"),
        ],
    )
    def test_wrong_arguments(self, changed: dict[str, Any], message: str) -> None:
        good: dict[str, Any] = {
            "weak_bits": np.zeros((3, 48), dtype=np.uint8),
            "bits": np.arange(64),
            "prefix_bits": 9,
            "max_distance": 3,
            "recall": 0.9,
            "most": 10,
        }
        matching_kernels.plan_queries(**good)

        with pytest.raises(ValueError, match=message):
            matching_kernels.plan_queries(**(good | changed))


class TestChosenBits:
    @given(VALUES, WORDS, st.data())
    def test_any_sample(self, sample: Values, allowed: int, data: st.DataObject) -> None:
        allowed |= 1
        number = data.draw(st.integers(1, allowed.bit_count()))

        same(
            matching_kernels.choose_bits(sample, allowed, number),
            KERNELS.choose_bits(sample, allowed, number),
        )

    @pytest.mark.parametrize("seed", range(3))
    def test_large_samples(self, seed: int) -> None:
        for sample in (skewed(seed, 3000), real()[0]):
            same(matching_kernels.choose_bits(sample, ALL, 64), KERNELS.choose_bits(sample, ALL, 64))

    @given(VALUES, BITS)
    def test_prefixes(self, values: Values, bits: npt.NDArray[np.int64]) -> None:
        same(matching_kernels.prefixes_of(values, bits), KERNELS.prefixes_of(values, bits))

    def test_wrong_arguments(self) -> None:
        sample = np.arange(9, dtype=np.uint64)
        for number in (0, 3, -1):
            with pytest.raises(ValueError, match="1 to 2 bits can be chosen"):
                matching_kernels.choose_bits(sample, 0b101, number)
        with pytest.raises(OverflowError):
            matching_kernels.choose_bits(sample, 1 << 64, 1)
        with pytest.raises(ValueError, match="bits are 0 to 63, not 64"):
            matching_kernels.prefixes_of(sample, np.array([64]))
        with pytest.raises(ValueError, match="at most 30 bits, not 31"):
            matching_kernels.prefixes_of(sample, np.arange(31))
        with pytest.raises(ValueError, match="dtype mismatch"):
            matching_kernels.prefixes_of(sample.astype(np.int64), np.array([1]))


class TestTable:
    @pytest.mark.slow
    @given(VALUES, VALUES, BITS, st.integers(0, 16), st.booleans(), st.data())
    def test_any_values(
        self,
        values: Values,
        queries: Values,
        bits: npt.NDArray[np.int64],
        max_distance: int,
        only_first: bool,
        data: st.DataObject,
    ) -> None:
        earlier = data.draw(st.lists(st.tuples(WORDS, st.integers(0, 3)), max_size=2))
        which = np.flatnonzero(data.draw(arrays(np.bool_, len(queries))))
        flips = ball(len(bits), data.draw(st.integers(0, 2)))
        if data.draw(st.booleans()):  # each query with flips of its own
            sizes = data.draw(arrays(np.int64, len(queries), elements=st.integers(0, len(flips[1]))))
            masks = [flips[1][:size] for size in sizes]
            flips = np.concatenate([[0], np.cumsum(sizes)]), np.concatenate([flips[1][:0], *masks])
        tables = [made.Table(values, bits, earlier) for made in (matching_kernels, KERNELS)]

        assert len(tables[0]) == len(tables[1]) == len(values)
        same(*(table.probe(queries, which, flips, max_distance, only_first) for table in tables))

    def test_many_matches(self) -> None:
        values, bits = np.arange(1 << 12, dtype=np.uint64), np.array([60, 61, 62, 63])
        found = [
            made.Table(values, bits).probe(values[:9], np.arange(9), ball(4, 4), 16, False)
            for made in (matching_kernels, KERNELS)
        ]

        assert len(found[0]) == 9 << 12
        same(*found)

    def test_read_only_arrays(self) -> None:
        arguments = real()[0].copy(), np.array([3, 9]), *ball(2, 1), np.arange(4)
        for argument in arguments:
            argument.flags.writeable = False
        values, bits, starts, masks, which = arguments

        for chosen in (bits, bits[:0]):
            found = matching_kernels.Table(values, chosen).probe(
                values, which, (starts, masks * len(chosen) // 2), 3, True
            )
            assert found[:, 0].tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            ({"which": np.array([3])}, "numbers of 3 queries"),
            ({"which": np.array([-1])}, "numbers of 3 queries"),
            ({"flips": (np.array([0, 3]), np.zeros(2, dtype=np.uint32))}, "2 starts of 2 flips, 3 queries"),
            ({"flips": (np.array([-1, 1]), np.zeros(2, dtype=np.uint32))}, "2 starts of 2 flips, 3 queries"),
            ({"flips": (np.array([2, 1]), np.zeros(2, dtype=np.uint32))}, "2 starts of 2 flips, 3 queries"),
            (
                {"flips": (np.array([0, 1, 2]), np.zeros(2, dtype=np.uint32))},
                "3 starts of 2 flips, 3 queries",
            ),
            ({"flips": (np.array([], dtype=int), np.zeros(2, dtype=np.uint32))}, "0 starts of 2 flips"),
            ({"flips": (np.array([0, 1]), np.array([4], dtype=np.uint32))}, "not in the prefix"),
            ({"flips": (np.array([0, 1]), np.array([1]))}, "dtype mismatch"),
            ({"queries": np.zeros(3)}, "dtype mismatch"),
        ],
    )
    def test_wrong_probes(self, changed: dict[str, Any], message: str) -> None:
        table = matching_kernels.Table(np.arange(9, dtype=np.uint64), np.array([62, 63]))
        good: dict[str, Any] = {
            "queries": np.arange(3, dtype=np.uint64),
            "which": np.arange(3),
            "flips": (np.array([0, 1]), np.zeros(1, dtype=np.uint32)),
            "max_distance": 3,
            "only_first": False,
        }
        table.probe(**good)

        with pytest.raises(ValueError, match=message):
            table.probe(**(good | changed))

    def test_wrong_tables(self) -> None:
        values, bits = np.arange(9, dtype=np.uint64), np.array([62, 63])
        with pytest.raises(ValueError, match="at most 16 tables come before, not 17"):
            matching_kernels.Table(values, bits, [(1, 0)] * 17)
        with pytest.raises(OverflowError):
            matching_kernels.Table(values, bits, [(1 << 64, 0)])
        with pytest.raises(ValueError, match="bits are 0 to 63, not 70"):
            matching_kernels.Table(values, np.array([70]))
        with pytest.raises(ValueError, match="at most 30 bits"):
            matching_kernels.Table(values, np.arange(31))


class TestPairs:
    @pytest.mark.slow
    @given(VALUES, st.integers(0, 6))
    def test_any_values(self, values: Values, max_distance: int) -> None:
        same(pairs.pairs(values, max_distance=max_distance), PAIRS.pairs(values, max_distance=max_distance))

    @pytest.mark.parametrize("max_distance", [1, 3, pytest.param(6, marks=pytest.mark.slow)])
    @pytest.mark.parametrize("seed", range(2))
    def test_groups_that_are_divided(self, seed: int, max_distance: int) -> None:
        values, rows = skewed(seed, 5000), np.arange(5000, dtype=np.uint32)
        forbidden = [0x00000F00, 0x0FF0]
        offsets = np.array([0, 1, 1, 3500, 3501, 5000], dtype=np.uint32)
        found, arranged = [], []
        for made in (pairs, PAIRS):
            arrays = values.copy(), rows.copy()
            found.append(made.near_in_groups(*arrays, offsets, 0xFF, forbidden, max_distance))
            arranged.append(np.column_stack(arrays))

        assert len(found[0]) > 100
        assert arranged[0].tolist() != np.column_stack([values, rows]).tolist(), "no group was divided"
        same(*found)
        same(*arranged)

    @pytest.mark.parametrize("sets", [1, 4, pytest.param(17, marks=pytest.mark.slow)])
    def test_sets_and_dividing(self, sets: int) -> None:
        values = skewed(5, 20_000)
        (chosen, left), (twins, twin_left) = (made.choose_sets(values, 0xF0, sets) for made in (pairs, PAIRS))
        same(chosen, twins)
        assert left == twin_left

        for bits in chosen:
            arrays = [(values.copy(), np.arange(20_000, dtype=np.uint32)) for _ in range(2)]
            same(pairs.divide(*arrays[0], bits), PAIRS.divide(*arrays[1], bits))
            same(np.column_stack(arrays[0]), np.column_stack(arrays[1]))

    def test_wrong_arguments(self) -> None:
        values, rows = np.arange(9, dtype=np.uint64), np.arange(9, dtype=np.uint32)
        offsets = np.array([0, 9], dtype=np.uint32)
        for some, used, sets in ((values[:1], 0, 1), (values, 0, 0), (values, 0, 18), (values, ALL - 1, 2)):
            with pytest.raises(ValueError, match=f"{sets} sets of bits for {len(some)} values"):
                pairs.choose_sets(some, used, sets)
        with pytest.raises(ValueError, match="9 values have 8 rows"):
            pairs.divide(values, rows[:8], np.array([1]))
        with pytest.raises(ValueError, match="bits are 0 to 63, not -1"):
            pairs.divide(values, rows, np.array([-1]))
        with pytest.raises(ValueError, match="1 to 30 bits, not 0"):
            pairs.divide(values, rows, np.array([], dtype=np.int64))
        with pytest.raises(ValueError, match="9 values have 8 rows"):
            pairs.near_in_groups(values, rows[:8], offsets, 0, [], 3)
        with pytest.raises(ValueError, match="a group from 0 to 9 of 8"):
            pairs.near_in_groups(values[:8], rows[:8], offsets, 0, [], 3)
        with pytest.raises(ValueError, match="0 to 16, not 17"):
            pairs.near_in_groups(values, rows, offsets, 0, [], 17)
        with pytest.raises(ValueError, match="18 sets before"):
            pairs.near_in_groups(values, rows, offsets, 0, [1] * 18, 3)
        values.flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            pairs.divide(values, rows, np.array([1]))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("every", [False, True])
def test_a_search_without_the_native_core(exact: bool, every: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    values, packed = real()
    rng = np.random.default_rng(0)
    file = np.concatenate(
        [values ^ (ONE << rng.integers(0, 64, len(values), dtype=np.uint64)), skewed(1, 500)]
    )
    search = "auto" if exact else "psm"
    options = Options(exact=exact, every=every, search=search, chunk_rows=200, threads=2)
    found = match(values, file, weak_bits=packed, options=options)
    for name in ("plan_queries", "choose_bits", "prefixes_of"):
        monkeypatch.setattr(matching_kernels, name, getattr(KERNELS, name))
    monkeypatch.setattr(matching, "Table", KERNELS.Table)

    assert len(found) > 10
    same(match(values, file, weak_bits=packed, options=options), found)


def test_threads_probe_one_table() -> None:
    values = skewed(2, 50_000)
    table = matching_kernels.Table(values, np.arange(20, 30))
    flips = ball(10, 2)

    def probe(_: int) -> npt.NDArray[np.uint32]:
        return table.probe(values, np.arange(0, 50_000, 50), flips, 3, True)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(probe, range(8)))

    assert len(results[0]) == 1000
    for result in results[1:]:
        same(result, results[0])
