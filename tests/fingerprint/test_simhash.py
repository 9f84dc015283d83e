from __future__ import annotations

from typing import TYPE_CHECKING, Any

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.fingerprint import hamming, simhash
from neardup.fingerprint.scheme import Scheme
from neardup.fingerprint.simhash import Fingerprint
from neardup.text.features import SEED, hash_feature
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Callable

    Accumulate = Callable[..., Any]

WORDS = st.dictionaries(st.text(min_size=1, max_size=8), st.integers(1, 50), min_size=1, max_size=60)


def fingerprint(weighted: dict[str, float] | dict[str, int]) -> Fingerprint:
    hashes = np.array([hash_feature(word) for word in weighted], dtype=np.uint64)
    made = simhash.fingerprint(hashes, np.array(list(weighted.values()), dtype=np.float64))
    assert made is not None
    return made


def by_definition(weighted: dict[str, int]) -> tuple[int, list[int]]:
    """Algorithm 1 as printed in the thesis, bit by bit."""
    weights = [0] * 64
    for feature, weight in weighted.items():
        bits = f"{mmh3.hash64(feature, SEED, signed=False)[0]:064b}"
        for j in range(64):
            weights[j] += weight if bits[j] == "1" else -weight
    return int("".join("1" if weight > 0 else "0" for weight in weights), 2), weights


def test_table_1_of_the_thesis() -> None:
    # Six words with four-bit hashes; the four bits are put in the leading positions of 64.
    hashes = np.array([h << 60 for h in (0b0101, 0b1101, 0b0001, 0b1110, 0b0100, 0b0011)], dtype=np.uint64)
    weights = np.array([0.05, 0.02, 0.01, 0.03, 0.05, 0.09])

    made = simhash.fingerprint(hashes, weights)

    assert made is not None
    assert made.weights[:4] == pytest.approx([-0.15, 0.05, -0.01, 0.09])
    assert made.value >> 60 == 0b0101


@given(WORDS)
def test_equals_algorithm_1(weighted: dict[str, int]) -> None:
    value, weights = by_definition(weighted)

    made = fingerprint(weighted)

    assert made.value == value
    assert list(made.weights) == weights


@pytest.mark.parametrize(
    ("weighted", "value"),
    [
        # Committed once; a change of any of these is another scheme and needs another name.
        ({"a": 1}, 0x85555565F6597889),
        ({"the": 7, "quick": 1, "brown": 1, "fox": 2}, 0x6A8FF485C9CB0E1C),
        ({"入門": 3, "เว": 1, "crawler": 2}, 0xCAAE2C096B26027C),
    ],
)
def test_golden_values(weighted: dict[str, int], value: int) -> None:
    assert f"{fingerprint(weighted).value:#018x}" == f"{value:#018x}"


def test_golden_hash_is_the_published_murmur3() -> None:
    # First eight bytes, little-endian, of MurmurHash3_x64_128("hello", seed 0) = cbd8a7b341bd9b02
    # 5b1e906a48ae1d19 (as given in the tests of several independent implementations).
    assert hash_feature("hello") == 0xCBD8A7B341BD9B02


def test_hash_is_unsigned_where_the_positional_argument_of_mmh3_is_not() -> None:
    assert mmh3.hash64("a", 0, True, False)[0] == mmh3.hash64("a", 0, True, signed=True)[0]
    assert all(hash_feature(word) >= 0 for word in ("a", "b", "c", "d", "e", "f"))
    assert any(hash_feature(word) >= 2**63 for word in ("a", "b", "c", "d", "e", "f"))


def test_scheme_names_all_that_fingerprints_and_sketches_depend_on() -> None:
    assert str(Scheme()) == "word-tf/body+alt/mmh3-x64-128-seed0/minwise-3x1024/v1"
    assert str(Scheme(features="shingle-3", content="main", sketch_size=64)) == (
        "shingle-3/main/mmh3-x64-128-seed0/minwise-3x64/v1"
    )


TWIN = python_twin(simhash)


@pytest.mark.parametrize("features", [0, 1, 7, 300, 4096, 4097, 9000])
def test_python_twin_rounds_as_the_native_loop(features: int) -> None:
    generator = np.random.default_rng(features)
    hashes = generator.integers(0, 2**64, size=features, dtype=np.uint64)
    weights = generator.lognormal(0.0, 20.0, size=features)
    native_weights, python_weights = np.zeros(64), np.zeros(64)

    native_value = simhash.accumulate(hashes, weights, native_weights)

    assert native_value == TWIN.accumulate(hashes, weights, python_weights)
    assert native_weights.tobytes() == python_weights.tobytes()


@given(
    st.lists(
        st.tuples(st.integers(0, 2**64 - 1), st.floats(allow_nan=False, allow_infinity=False)), max_size=20
    )
)
def test_python_twin_rounds_as_the_native_loop_whatever_the_weights(
    features: list[tuple[int, float]],
) -> None:
    hashes = np.array([value for value, _ in features], dtype=np.uint64)
    weights = np.array([weight for _, weight in features], dtype=np.float64)
    native_weights, python_weights = np.zeros(64), np.zeros(64)

    with np.errstate(all="ignore"):  # as machine code does
        native_value = simhash.accumulate(hashes, weights, native_weights)
        assert native_value == TWIN.accumulate(hashes, weights, python_weights)
    assert np.array_equal(native_weights, python_weights, equal_nan=True)


@pytest.mark.parametrize("accumulate", [simhash.accumulate, TWIN.accumulate], ids=["native", "python"])
def test_arrays_that_do_not_fit_are_refused(accumulate: Accumulate) -> None:
    hashes, weights, bit_weights = np.zeros(3, np.uint64), np.ones(3), np.zeros(64)
    for wrong in (
        (hashes[:2], weights, bit_weights),
        (hashes, weights[:2], bit_weights),
        (hashes, weights, bit_weights[1:]),
    ):
        with pytest.raises(ValueError, match="each hash needs a weight, and there are 64"):
            accumulate(*wrong)
    hashes.flags.writeable = weights.flags.writeable = False
    assert accumulate(hashes, weights, bit_weights) == 0
    assert bit_weights.tolist() == [-3.0] * 64


class TestProperties:
    """After the tests of simhash-py: properties say more than examples."""

    def test_no_features_no_fingerprint(self) -> None:
        assert simhash.fingerprint(np.empty(0, dtype=np.uint64), np.empty(0)) is None

    @given(st.text(min_size=1), st.integers(1, 10**6))
    def test_one_feature_gives_its_hash(self, word: str, weight: int) -> None:
        assert fingerprint({word: weight}).value == hash_feature(word)

    @given(WORDS, st.integers(2, 9))
    def test_scale_does_not_matter(self, weighted: dict[str, int], factor: int) -> None:
        scaled = {word: factor * weight for word, weight in weighted.items()}

        assert fingerprint(scaled).value == fingerprint(weighted).value
        assert fingerprint(scaled).relative_weights() == pytest.approx(
            fingerprint(weighted).relative_weights()
        )

    @given(WORDS)
    def test_order_does_not_matter(self, weighted: dict[str, int]) -> None:
        assert fingerprint(dict(reversed(weighted.items()))).value == fingerprint(weighted).value

    @given(WORDS, st.lists(st.text(min_size=1, max_size=8), max_size=9))
    def test_features_of_no_weight_change_nothing(self, weighted: dict[str, int], others: list[str]) -> None:
        with_others = dict.fromkeys(others, 0) | weighted

        assert fingerprint(with_others).value == fingerprint(weighted).value
        assert list(fingerprint(with_others).weights) == list(fingerprint(weighted).weights)

    def test_features_of_no_weight_alone_give_the_fingerprint_of_no_bit(self) -> None:
        made = fingerprint({"a": 0, "b": 0})

        assert made.value == 0
        assert not made.relative_weights().any()
        assert Fingerprint.unpack(made.value, made.pack_weak_bits()).value == 0

    def test_a_hash_and_its_inverse_cancel_out(self) -> None:
        hashes = np.array([0x0123456789ABCDEF, 0x0123456789ABCDEF ^ (2**64 - 1)], dtype=np.uint64)

        made = simhash.fingerprint(hashes, np.ones(2))

        assert made is not None
        assert made.value == 0
        assert not made.weights.any()
        assert not made.relative_weights().any()

    def test_similar_texts_are_near_and_different_ones_far(self) -> None:
        words = {f"word{i}": 1 + 200 // (i + 1) for i in range(300)}
        edited = words | {"word250": 0, "another": 1}
        others = {f"other{i}": 1 + 200 // (i + 1) for i in range(300)}

        assert hamming.distance(fingerprint(words).value, fingerprint(edited).value) <= 3
        assert hamming.distance(fingerprint(words).value, fingerprint(others).value) > 16


class TestWeakBits:
    @given(WORDS)
    def test_stored_form_keeps_value_signs_and_weak_bits(self, weighted: dict[str, int]) -> None:
        made = fingerprint(weighted)

        stored = made.pack_weak_bits()
        again = Fingerprint.unpack(made.value, stored)

        assert len(stored) == 48
        assert again.value == made.value
        weakest = np.argsort(made.relative_weights(), kind="stable")[:24]
        expected = np.minimum(made.relative_weights()[weakest], 0.25)
        assert np.abs(again.weights[weakest]) == pytest.approx(expected, abs=0.25 / 255 / 2 + 1e-9)
        signs = np.array([made.value >> (63 - j) & 1 for j in range(64)], dtype=bool)
        assert list(again.weights >= 0) == list(signs | (again.weights == 0))

    @given(st.lists(st.sampled_from([0.0, 0.05, 0.25, 0.3]) | st.floats(0, 1), min_size=64, max_size=64))
    def test_native_and_python_pack_the_same(self, relative: list[float]) -> None:
        given = np.array(relative)

        assert simhash.pack_weakest(given) == TWIN.pack_weakest(given)

    def test_unit_norm_so_that_flip_probabilities_are_those_of_the_page(self) -> None:
        made = fingerprint({f"w{i}": 1 + i % 7 for i in range(400)})

        again = Fingerprint.unpack(made.value, made.pack_weak_bits())

        assert np.linalg.norm(again.weights) == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("stored", "message"),
        [
            (b"", "must be 48 bytes, not 0"),
            (bytes(47), "not 47"),
            (b"\x40" + bytes(47), "bit 64 of a 64-bit"),
        ],
    )
    def test_foreign_bytes_are_refused(self, stored: bytes, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Fingerprint.unpack(0, stored)
