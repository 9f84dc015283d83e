"""The estimate of what two pages share of what is rare, against the exact value, on real pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.detection import own_text
from neardup.detection.detector import DetectorOptions
from neardup.detection.document_frequencies import HostFrequencies
from neardup.detection.own_text import FEWEST_PLACES, FEWEST_SHINGLES, OwnText, agreements, resemblances
from neardup.fingerprint import sketch
from neardup.fingerprint.sketch import SIZE
from tests.support.readings import readings
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from neardup.fingerprint.reader import Reading

TWIN = python_twin(own_text)
MENU = " ".join(f"menu{number}" for number in range(400))


def read(text: str) -> Reading:
    return DetectorOptions().make_reader().read_text(text)


def words(name: str, number: int) -> str:
    return " ".join(f"{name}{at}" for at in range(number))


def menu_host(pages: int = 20) -> HostFrequencies:
    """A host whose pages are a menu and a text of their own."""
    host = HostFrequencies()
    for number in range(pages):
        host.count(read(f"{MENU} {words(f'page{number}x', 50)}").shingles)
    return host


def estimate(own: Reading, other: Reading, host: HostFrequencies, cluster: int = 0) -> float:
    assert own.sketch is not None
    assert other.sketch is not None
    (whole,) = sketch.compact_estimates(other.sketch[np.newaxis], own.sketch)
    places = OwnText(own, host).places(cluster)
    assert places is not None
    return own_text.resemblance(other.sketch, own.sketch, float(whole), places)


def rare_set(reading: Reading, host: HostFrequencies) -> set[int]:
    return set(reading.shingles[host.counts(reading.shingles) <= host.limit].tolist())


def test_estimates_come_near_the_exact_resemblance_of_what_is_rare_in_real_pages() -> None:
    """Measured over 3,080 pairs: .00 to .02 too high on average, .10 at most, .03 too low at most."""
    host = HostFrequencies()
    for reading in readings():
        host.count(reading.shingles)
    rare = [rare_set(reading, host) for reading in readings()]
    exact, errors = [], []
    for own, its_rare in zip(readings(), rare, strict=True):
        for other, other_rare in zip(readings(), rare, strict=True):
            if own is not other:
                exact.append(len(its_rare & other_rare) / len(its_rare | other_rare))
                errors.append(estimate(own, other, host) - exact[-1])
    near = np.array(exact) >= 0.8

    assert near.sum() > 50
    assert np.count_nonzero(~near) > 1000
    assert np.abs(errors).max() < 0.15
    assert np.std(np.array(errors)[near]) < 0.02
    assert abs(np.mean(errors)) < 0.02


def test_pages_of_one_menu_are_told_apart_by_the_rest() -> None:
    host = menu_host()
    one, other, near = (read(f"{MENU} {text}") for text in (words("a", 60), words("b", 60), words("a", 63)))

    assert one.sketch is not None
    assert other.sketch is not None
    assert sketch.compact_estimates(other.sketch[np.newaxis], one.sketch)[0] > 0.7
    assert estimate(one, other, host) < 0.3
    assert estimate(one, near, host) > 0.8
    assert estimate(one, one, host) == 1.0


def test_nothing_but_the_menu_says_nothing() -> None:
    own = OwnText(read(MENU), menu_host())

    assert own.places() is None
    assert not own.is_all_rare()
    assert OwnText(read(MENU), menu_host()).places() is None


def test_nothing_but_what_is_rare_says_nothing_more_than_the_whole() -> None:
    host = HostFrequencies()
    host.count(read(MENU).shingles)
    own = OwnText(read(words("a", 300)), host)

    assert own.places() is None
    assert own.is_all_rare()


@pytest.mark.parametrize("text", ["", "word", "two words"])
def test_pages_of_next_to_no_words(text: str) -> None:
    own = OwnText(read(text), menu_host())

    assert own.places() is None
    assert own.is_all_rare()


def test_few_rare_shingles_do_not_decide() -> None:
    """Two words more in the middle of a menu are four rare shingles of it."""
    before, after = MENU.split()[:200], MENU.split()[200:]
    found = {}
    for number in range(1, 15):
        reading = read(" ".join([*before, *words("own", number).split(), *after]))
        rare = int(np.count_nonzero(menu_host().counts(reading.shingles) <= 6))
        found[rare] = OwnText(reading, menu_host()).places()

    assert min(found) < FEWEST_SHINGLES <= max(found)
    assert all(places is None for rare, places in found.items() if rare < FEWEST_SHINGLES)
    held = [places for rare, places in found.items() if places is not None]
    assert held
    assert all(FEWEST_PLACES <= places.number < SIZE for places in held)


def test_an_article_has_much_that_is_rare() -> None:
    found = {own: OwnText(read(f"{MENU} {words('a', own)}"), menu_host()).is_article() for own in (90, 110)}

    assert found == {90: False, 110: True}


def test_places_are_those_whose_least_shingle_is_rare() -> None:
    host, reading = menu_host(), read(f"{MENU} {words('a', 100)}")
    places = OwnText(reading, host).places()
    assert places is not None

    template = reading.shingles[host.counts(reading.shingles) > host.limit]
    held = sketch.minwise(template, SIZE) != sketch.minwise(reading.shingles, SIZE)
    assert places.number == np.count_nonzero(held)
    assert np.array_equal(places.bits, sketch.compact(held.astype(np.uint64)))
    share = 1 - template.size / reading.shingles.size
    assert abs(places.number / SIZE - share) < 0.06


@given(
    st.lists(st.integers(0, 40), max_size=60),
    st.integers(0, 20),
    st.integers(0, 40),
    st.lists(st.integers(0, 45), max_size=5),
)
def test_native_and_python_tell_the_same_places(
    counts: list[int], uncounted: int, rarest: int, limits: list[int]
) -> None:
    held = np.random.default_rng(0).integers(rarest, 41, 128).astype(np.uint16)
    given = np.array(counts, dtype=np.uint16), uncounted, held, np.array(limits, dtype=np.uint16)

    found, expected = own_text.rare_bits(*given), TWIN.rare_bits(*given)

    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()


@given(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 12, 63, 64, 128]), st.integers(0, 5), st.floats(0.0, 1.0)
)
def test_native_and_python_tell_the_same_resemblances(
    seed: int, number: int, pages: int, changed: float
) -> None:
    rng = np.random.default_rng(seed)
    one, rare = rng.integers(0, 2, 128, np.uint8), np.zeros(128, np.uint8)
    rare[rng.permutation(128)[:number]] = 1
    others = one ^ (rng.random((pages, 128)) < changed)
    given = (
        np.packbits(others, axis=1).view("<u8").astype(np.uint64),
        np.packbits(one).view("<u8").astype(np.uint64),
        rng.random(pages),
        own_text.OwnPlaces(np.packbits(rare).view("<u8").astype(np.uint64), number),
    )

    found, expected = own_text.resemblances(*given), TWIN.resemblances(*given)

    assert found.dtype == expected.dtype
    assert found.tolist() == expected.tolist()
    stored, compact, _, places = given
    of_places = own_text.agreements(stored, compact, places)
    assert of_places.dtype == np.float64
    assert of_places.tolist() == TWIN.agreements(stored, compact, places).tolist()


def test_the_pages_of_a_cluster_are_no_evidence_of_template() -> None:
    """30 copies, of which 40 words change, are not strangers to each other."""
    host, text = menu_host(40), words("copied", 400)
    copies = [read(f"{MENU} {text} {words(f'changed{number}x', 40)}") for number in range(30)]
    for copy in copies:
        host.count(copy.shingles)
    own = OwnText(copies[0], host)
    lone, clustered = own.places(), own.places(len(copies))
    assert lone is not None
    assert clustered is not None

    assert clustered.number > 5 * lone.number
    assert estimate(copies[0], copies[1], host) < 0.3
    assert estimate(copies[0], copies[1], host, cluster=len(copies)) > 0.7
    # The menu stays template: it stands on more pages than these.
    assert not own.is_all_rare()


def test_with_few_places_the_whole_must_bear_them_out() -> None:
    host = menu_host()
    own = read(f"{MENU} {words('a', 18)}")
    places = OwnText(own, host).places()
    assert places is not None
    assert places.number < own_text.SHARP_PLACES
    assert own.sketch is not None

    alone = resemblances(own.sketch[np.newaxis].repeat(2, axis=0), own.sketch, np.array([0.49, 0.5]), places)

    assert alone[0] == 0.0
    assert alone[1] > 0.9


def test_agreement_is_that_of_the_places_that_are_rare() -> None:
    places = own_text.OwnPlaces(np.array([0b1111, 0], dtype=np.uint64), 4)
    compact = np.array([0b1010, 5], dtype=np.uint64)
    stored = np.array([[0b1010, 9], [0b1011, 5], [0b0101, 5], [0b1000_1010, 5]], dtype=np.uint64)

    assert agreements(stored, compact, places).tolist() == [1.0, 0.5, 0.0, 1.0]
    assert resemblances(stored[:0], compact, np.empty(0), places).size == 0
