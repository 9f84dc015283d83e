"""The learned template: what is found of it, the resemblance without it, and what is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.detection import site_templates
from neardup.detection.site_templates import (
    LEAST_PLACES,
    LEAST_SIZE,
    MOST_COUNTED,
    MOST_HOSTS,
    MOST_LEARNED,
    SHARE,
    WINDOW,
    HostTemplates,
    adjusted,
    check_size,
    least_places,
)
from neardup.errors import ConfigurationError
from neardup.fingerprint import sketch
from neardup.text import feature_kernels
from neardup.text.content import Content
from neardup.text.features import Features
from tests.support.places import PAGES

if TYPE_CHECKING:
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]

HOST = "a.example"
FEATURES = Features()
MENU = " ".join(f"menu{number}" for number in range(120))


def shingles_of(text: str) -> Hashes:
    return feature_kernels.shingles(FEATURES.extract(text).words, sketch.WIDTH)


def numbered(*names: object, words: int = 60) -> str:
    """A text that shares no shingle with one of another name."""
    return " ".join(f"{'x'.join(map(str, names))}x{number}" for number in range(words))


def elements(seed: int, count: int) -> Hashes:
    return np.random.default_rng(seed).integers(2**64, size=count, dtype=np.uint64)


def learned(host: str = HOST, pages: int = WINDOW) -> HostTemplates:
    known = HostTemplates()
    for number in range(pages):
        known.learn(host, shingles_of(f"{MENU} {numbered('page', number)}"))
    return known


def compare(known: HostTemplates, one: str, other: str, size: int = sketch.SIZE) -> tuple[float, float]:
    """Resemblance of two texts, estimated, and without the template."""
    shingles, stored = shingles_of(one), sketch.compact(sketch.minwise(shingles_of(other), size))[None]
    values = sketch.minwise(shingles, size)
    drawn = sketch.compact(values)
    plain = sketch.compact_estimates(stored, drawn)
    return float(plain[0]), float(adjusted(plain, stored, drawn, known.own_places(HOST, shingles, values))[0])


# Learning


def test_what_stands_on_all_pages_is_template_once_a_window_is_full() -> None:
    menu = sketch.shingle_set(FEATURES.extract(MENU).words)

    assert learned(pages=WINDOW - 1).template(HOST).size == 0
    assert np.array_equal(learned().template(HOST), menu)


@pytest.mark.parametrize(
    ("pages", "is_template"), [(int(SHARE * WINDOW), False), (int(SHARE * WINDOW) + 2, True)]
)
def test_the_share_decides(pages: int, is_template: bool) -> None:
    known = HostTemplates()
    shared = elements(0, 5)
    for number in range(WINDOW):
        own = elements(number + 1, 20)
        known.learn(HOST, np.concatenate((shared, own)) if number < pages else own)

    assert (known.template(HOST).size == shared.size) == is_template
    assert known.template(HOST).size in {0, shared.size}


def test_repetition_on_one_page_is_no_template() -> None:
    known = HostTemplates()
    again = elements(0, 5)
    for number in range(WINDOW):
        known.learn(HOST, np.tile(again, 50) if number == 3 else elements(number + 1, 20))

    assert known.template(HOST).size == 0


def test_learning_goes_on_and_nothing_is_unlearned() -> None:
    known = learned()
    first = known.template(HOST)
    for number in range(WINDOW):
        known.learn(HOST, shingles_of(f"{numbered('menu', 'new')} {numbered('later', number)}"))

    assert np.isin(first, known.template(HOST)).all()
    assert np.isin(shingles_of(numbered("menu", "new")), known.template(HOST)).all()


def test_hosts_do_not_learn_from_each_other() -> None:
    known = learned()
    shingles = shingles_of(MENU)

    assert known.template("b.example").size == 0
    assert known.own_places("b.example", shingles, sketch.minwise(shingles)) is None


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    known = learned()
    for number in range(MOST_HOSTS):
        known.learn(f"{number}.example", elements(number, 3))
        if number == 0:
            known.learn(HOST, elements(0, 3))
    assert len(known) == MOST_HOSTS
    assert known.template(HOST).size > 0  # 0.example was not met for longer
    known.learn("one.more.example", elements(0, 3))
    assert known.template(HOST).size == 0

    monkeypatch.setattr(site_templates, "MOST_SHINGLES", 50)
    assert learned().template(HOST).size == 50


def test_what_huge_pages_cost_is_bounded() -> None:
    known = HostTemplates()
    menu = elements(0, 50)
    for number in range(WINDOW - 10):
        # Each twice, so that nothing is forgotten as the text of one page.
        known.learn(HOST, np.concatenate((menu, elements(number // 2 + 1, 1 << 16))))
    host = known._hosts[HOST]

    assert host.counted.size == host.counts.size == MOST_COUNTED
    assert np.isin(menu, host.counted).all()
    assert not host.batch
    for number in range(9):
        known.learn(HOST, elements(number, 1 << 16))
    held = sum(array.nbytes for array in (host.counted, host.counts, *host.batch))
    assert held + 8 * site_templates.MOST_SHINGLES < 1.2e6
    known.learn(HOST, menu)
    assert np.array_equal(known.template(HOST), np.sort(menu))


def test_the_beginning_of_a_page_is_learned_from() -> None:
    known = HostTemplates()
    menu, foot = elements(0, 50), elements(1, 50)
    for number in range(WINDOW):
        known.learn(HOST, np.concatenate((menu, elements(number + 2, MOST_LEARNED - 60), foot)))

    assert np.array_equal(known.template(HOST), np.sort(np.concatenate((menu, foot[:10]))))


def test_the_template_of_real_pages_is_their_frame() -> None:
    known = HostTemplates()
    texts = [Content().text_of_html("", path.read_bytes()) for path in sorted(PAGES.glob("clang-13/*.html"))]
    for _ in range(WINDOW // len(texts) + 1):  # twelve pages are too few by themselves
        for text in texts:
            known.learn(HOST, shingles_of(text))
    template = known.template(HOST)

    frame = [shingles_of(text)[-3:] for text in texts]  # "Created using Sphinx …"
    assert all(np.isin(end, template).all() for end in frame)
    assert all(np.isin(shingles_of(text), template).mean() < 0.5 for text in texts)


# The resemblance without


def test_different_pages_of_one_template_are_told_apart() -> None:
    plain, without = compare(
        learned(), f"{MENU} {numbered('one', words=30)}", f"{MENU} {numbered('other', words=30)}"
    )

    assert plain > 0.55
    assert without < 0.15


def test_equal_pages_stay_equal() -> None:
    text = f"{MENU} {numbered('one')}"

    assert compare(learned(), text, text) == (1.0, 1.0)


def test_the_same_page_in_another_template_is_found() -> None:
    other_menu = numbered("menu", "of", "another", "version", words=120)
    plain, without = compare(learned(), f"{MENU} {numbered('one')}", f"{other_menu} {numbered('one')}")

    assert plain < 0.45
    assert without > plain + 0.1


@pytest.mark.parametrize("own", [0, 3])
def test_where_next_to_nothing_is_own_the_whole_decides(own: int) -> None:
    plain, without = compare(
        learned(), f"{MENU} {numbered('one', words=own)}", f"{MENU} {numbered('two', words=3)}"
    )

    assert without == plain > 0.8


@pytest.mark.parametrize("size", [LEAST_SIZE, sketch.SIZE, 8192])
def test_pages_of_one_template_are_told_apart_by_sketches_of_every_size(size: int) -> None:
    plain, without = compare(
        learned(), f"{MENU} {numbered('one', words=40)}", f"{MENU} {numbered('other', words=40)}", size
    )

    assert plain > 0.45
    assert without < 0.3


@pytest.mark.parametrize("size", [LEAST_SIZE, sketch.SIZE, 8192])
def test_a_page_with_another_date_stays_the_same_page_by_sketches_of_every_size(size: int) -> None:
    plain, without = compare(learned(), f"{MENU} monday the first", f"{MENU} friday the second", size)

    assert without == plain > 0.8


def test_sketches_too_small_for_a_template_are_refused() -> None:
    assert check_size(LEAST_SIZE) == LEAST_SIZE
    with pytest.raises(ConfigurationError, match=r"sketch_size must be at least 512 .*'learned', not 448"):
        check_size(LEAST_SIZE - 64)
    assert [least_places(size) for size in (512, 1024, 8192)] == [LEAST_PLACES, LEAST_PLACES, 512]


def test_places_are_packed_as_sketches_are(monkeypatch: pytest.MonkeyPatch) -> None:
    known, shingles = learned(), shingles_of(f"{MENU} {numbered('one')}")
    drawn, compact = sketch.minwise(shingles), sketch.compact
    places = known.own_places(HOST, shingles, drawn)
    # As if on a machine where they are packed in another way.
    monkeypatch.setattr(sketch, "compact", lambda values: compact(values).byteswap())

    other = known.own_places(HOST, shingles, drawn)

    assert places is not None
    assert other is not None
    assert np.array_equal(other.byteswap(), places)


def test_a_page_without_template_is_compared_as_it_is() -> None:
    known = learned()
    shingles = shingles_of(numbered("one"))

    assert known.own_places(HOST, shingles, sketch.minwise(shingles)) is None
    one, other = numbered("one"), f"{numbered('one', words=50)} {numbered('two', words=10)}"
    assert compare(known, one, other)[0] == compare(known, one, other)[1]


def test_own_places_are_those_of_own_shingles() -> None:
    known, shingles = learned(), shingles_of(f"{MENU} {numbered('one')}")
    drawn = sketch.minwise(shingles)
    places = known.own_places(HOST, shingles, drawn)
    assert places is not None

    own = shingles[~np.isin(shingles, known.template(HOST))]
    # Whose element a place holds shows when the element is taken away: the place changes.
    without = [sketch.minwise(np.setdiff1d(shingles, [one])) != drawn for one in np.unique(own)]
    expected = np.logical_or.reduce(without)
    assert np.array_equal(np.unpackbits(places.view(np.uint8)).astype(bool), expected)


@given(
    template=st.integers(1, 400),
    shared=st.integers(0, 400),
    one=st.integers(0, 100),
    seed=st.integers(0, 2**32),
)
@settings(deadline=None, max_examples=60)
def test_the_estimate_is_near_the_exact_resemblance(template: int, shared: int, one: int, seed: int) -> None:
    known = HostTemplates()
    menu, same = elements(seed, template), elements(seed + 1, shared + 1)
    for number in range(WINDOW):
        known.learn(HOST, np.concatenate((menu, elements(number + 2 + seed, 5))))
    a = np.concatenate((menu, same, elements(seed + 10**10, one)))
    b = np.concatenate((menu, same, elements(seed + 10**11, one)))  # of the same size
    size = 8192
    values = sketch.minwise(a, size)
    drawn, stored = sketch.compact(values), sketch.compact(sketch.minwise(b, size))[None]
    plain = sketch.compact_estimates(stored, drawn)
    places = known.own_places(HOST, a, values)
    assert places is not None
    own = int(np.bitwise_count(places).sum())

    without = float(adjusted(plain, stored, drawn, places)[0])

    exact = (shared + 1) / (shared + 1 + 2 * one)
    if own >= least_places(size):
        # dr'/dx ≤ 2 and dx/dq ≤ 2; five standard deviations, of r as well.
        assert abs(without - exact) <= 5 * (4 * np.sqrt(1 / own) * np.sqrt(1 - exact**2 + 0.02) + 0.02)
    else:
        assert without == plain[0]


@given(st.integers(0, 2**32), st.integers(1, 5))
def test_adjusted_resemblances_are_between_0_and_1(seed: int, rows: int) -> None:
    stored = elements(seed, rows * 16).reshape(rows, 16)
    drawn, places = elements(seed + 1, 16), elements(seed + 2, 16)
    plain = sketch.compact_estimates(stored, drawn)

    without = adjusted(plain, stored, drawn, places)

    assert without.shape == (rows,)
    assert ((without >= 0.0) & (without <= 1.0)).all()
    assert adjusted(plain, stored, drawn, None) is plain


# A snapshot


def test_arrays_bring_back_templates_and_windows() -> None:
    known = learned()
    known.learn("b.example", elements(0, 5))
    for number in range(WINDOW // 2):
        known.learn("ü.example", shingles_of(f"{MENU} {numbered('half', number)}"))

    again = HostTemplates.from_arrays(known.arrays())
    for number in range(WINDOW // 2):
        again.learn("ü.example", shingles_of(f"{MENU} {numbered('rest', number)}"))

    assert len(again) == len(known)
    assert np.array_equal(again.template(HOST), known.template(HOST))
    assert np.array_equal(again.template("ü.example"), known.template(HOST))
    assert all(
        np.array_equal(array, HostTemplates().arrays()[name])
        for name, array in HostTemplates.from_arrays(HostTemplates().arrays()).arrays().items()
    )


@pytest.mark.parametrize("name", list(HostTemplates().arrays()))
def test_arrays_that_do_not_fit_together_are_refused(name: str) -> None:
    arrays = learned().arrays()

    with pytest.raises(ValueError, match=name):
        HostTemplates.from_arrays({other: array for other, array in arrays.items() if other != name})
    if arrays[name].size:
        with pytest.raises(ValueError, match=r"sizes|shorter|longer"):
            HostTemplates.from_arrays(arrays | {name: arrays[name][:-1]})


@pytest.mark.parametrize("name", list(HostTemplates().arrays()))
def test_arrays_of_another_kind_are_refused(name: str) -> None:
    arrays = learned().arrays()

    for array in (arrays[name].astype(np.float64), arrays[name].reshape(-1, 1)):
        with pytest.raises(ValueError, match=f"array {name} of the templates"):
            HostTemplates.from_arrays(arrays | {name: array})
