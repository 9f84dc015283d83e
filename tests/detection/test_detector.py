from __future__ import annotations

import itertools
import pickle
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from neardup.detection.detector import _EXPECTED, Detector, DetectorOptions
from neardup.detection.verdict import Kind
from neardup.errors import ConfigurationError
from neardup.fingerprint import hamming, sketch
from neardup.index.scan import LinearScan
from neardup.text.features import Features
from tests.support.detectors import TEXTS, detector, edited, remembered, shuffled
from tests.support.made_pages import article_and_diff
from tests.support.places import PAGES
from tests.support.real_pages import near_duplicates


class TestVerdicts:
    def test_first_page_is_new(self) -> None:
        verdict = detector().examine_text("http://a.example/1", TEXTS["apple"])

        assert verdict.kind is Kind.NEW
        assert verdict.follow
        assert verdict.page_id == 1
        assert verdict.canonical_url is None
        assert verdict.percentage is None
        assert verdict.reason == "like no canonical page known"

    def test_copy_is_a_duplicate_of_the_first(self) -> None:
        one = detector()
        one.examine_text("http://a.example/1", TEXTS["apple"])

        verdict = one.examine_text("http://b.example/2", TEXTS["apple"])

        assert verdict.kind is Kind.DUPLICATE
        assert verdict.canonical_url == "http://a.example/1"
        assert verdict.canonical_id == 1
        assert (verdict.distance, verdict.percentage) == (0, 100.0)
        assert not verdict.follow
        assert "0 of 64 bits differ" in verdict.reason

    def test_different_page_is_new(self) -> None:
        one = detector()
        one.examine_text("http://a.example/1", TEXTS["apple"])

        assert one.examine_text("http://a.example/2", TEXTS["pear"]).kind is Kind.NEW

    def test_a_pair_at_exactly_max_distance_counts_and_one_bit_more_does_not(self) -> None:
        texts = [edited(TEXTS["apple"], words) for words in range(6)]
        fingerprints = [detector().examine_text("u", text).fingerprint for text in texts]
        assert fingerprints[0] is not None
        distances = [hamming.distance(fingerprints[0].value, f.value) for f in fingerprints if f]
        assert max(distances) > 1
        for text, distance in zip(texts[1:], distances[1:], strict=True):
            at, below = (
                detector(max_distance=distance, recall=1.0),
                detector(max_distance=distance - 1, recall=1.0),
            )
            at.examine_text("u", texts[0])
            below.examine_text("u", texts[0])

            assert at.examine_text("v", text).distance == distance
            assert below.examine_text("v", text).kind is Kind.NEW

    @pytest.mark.parametrize(("min_features", "kind"), [(3, Kind.NEW), (4, Kind.TOO_SHORT)])
    def test_fewer_features_than_the_minimum_are_too_short(self, min_features: int, kind: Kind) -> None:
        verdict = detector(min_features=min_features).examine_text("u", "one two three three")

        assert verdict.kind is kind
        assert verdict.features == 3
        assert verdict.fingerprint is not None
        assert verdict.follow

    def test_an_edit_that_flips_no_bit_is_told(self) -> None:
        one = detector()
        text = " ".join(TEXTS.values())
        before, again = one.examine_text("u", text), one.examine_text("u", text)
        edits = (one.examine_text("u", f"{text} {number}") for number in range(1_000, 2_000))

        after = next(verdict for verdict in edits if verdict.own_distance == 0)

        assert (before.same_text, again.same_text, after.same_text) == (None, True, False)
        assert (again.kind, after.kind) == (Kind.UNCHANGED, Kind.UNCHANGED)
        assert again.reason == "known, and the same as before"
        assert "though its text does" in after.reason

    def test_too_short_pages_are_never_matched(self) -> None:
        one = detector()
        first = one.examine_text("http://a.example/1", "page not found")

        second = one.examine_text("http://a.example/2", "page not found")

        assert (first.kind, second.kind) == (Kind.TOO_SHORT, Kind.TOO_SHORT)
        assert len(one.index) == 0
        assert second.reason == "too short to be matched: 3 distinct words"

    @pytest.mark.parametrize("text", ["", " … – !"])
    def test_no_features_no_fingerprint_never_a_duplicate(self, text: str) -> None:
        one = detector(min_features=1)
        for url in ("u", "v"):
            verdict = one.examine_text(url, text)

            assert verdict.kind is Kind.TOO_SHORT
            assert verdict.fingerprint is None

    def test_html_tree_and_text_of_a_page_get_the_same_fingerprint(self) -> None:
        html = "<html><head><title>t</title></head><body><p>One <b>t</b>wo</p><p>three</p></body></html>"
        verdicts = [
            detector().examine_tree("u", etree.HTML(html)),
            detector().examine_html("u", html),
            detector().examine_html("u", html.encode()),
            detector().examine_text("u", "One two three"),
        ]

        assert len({v.fingerprint.value for v in verdicts if v.fingerprint}) == 1
        assert {v.features for v in verdicts} == {3}

    def test_time_of_each_step_is_kept(self) -> None:
        one = detector()

        one.examine_html("u", TEXTS["fig"])

        spent = one.reader.seconds
        assert min(spent.text, spent.features, spent.simhash, spent.sketch, one.search_seconds) > 0.0

    def test_fragment_is_no_part_of_the_page(self) -> None:
        one = detector()
        one.examine_text("http://a.example/1#top", TEXTS["apple"])

        verdict = one.examine_text("http://a.example/1#end", TEXTS["apple"])

        assert verdict.url == "http://a.example/1"
        assert verdict.kind is Kind.UNCHANGED


class TestKnownPages:
    """Pages seen before are themselves."""

    def test_unchanged(self) -> None:
        one = detector()
        one.examine_text("u", TEXTS["apple"])

        verdict = one.examine_text("u", TEXTS["apple"])

        assert (verdict.kind, verdict.own_distance, verdict.page_id) == (Kind.UNCHANGED, 0, 1)
        assert verdict.follow
        assert len(one.index) == 1

    def test_changed_page_leaves_its_old_fingerprint(self) -> None:
        one = detector()
        one.examine_text("u", TEXTS["apple"])

        changed = one.examine_text("u", TEXTS["pear"])

        assert changed.kind is Kind.CHANGED
        assert changed.own_distance is not None
        assert changed.own_distance > 3
        assert len(one.index) == 1
        assert one.examine_text("v", TEXTS["apple"]).kind is Kind.NEW
        assert one.examine_text("w", TEXTS["pear"]).canonical_url == "u"

    def test_slightly_changed_page_is_not_its_own_duplicate(self) -> None:
        one = detector(max_distance=10)
        first = one.examine_text("u", TEXTS["apple"])

        changed = one.examine_text("u", edited(TEXTS["apple"]))

        assert first.fingerprint is not None
        assert changed.fingerprint is not None
        assert 0 < hamming.distance(first.fingerprint.value, changed.fingerprint.value) <= 10
        assert changed.kind is Kind.CHANGED

    def test_changed_page_may_become_a_duplicate(self) -> None:
        one = detector()
        one.examine_text("u", TEXTS["apple"])
        one.examine_text("v", TEXTS["pear"])

        verdict = one.examine_text("v", TEXTS["apple"])

        assert (verdict.kind, verdict.canonical_url) == (Kind.DUPLICATE, "u")
        assert verdict.own_distance is not None
        assert one.examine_text("w", TEXTS["pear"]).kind is Kind.NEW

    def test_duplicate_stays_with_its_canonical_page(self) -> None:
        one = detector()
        one.examine_text("u", TEXTS["apple"])
        first = one.examine_text("v", TEXTS["apple"])

        again = one.examine_text("v", TEXTS["apple"])

        assert (again.kind, again.canonical_id, again.own_distance) == (Kind.DUPLICATE, first.canonical_id, 0)

    def test_duplicate_whose_canonical_page_changed_is_judged_afresh(self) -> None:
        one = detector()
        one.examine_text("u", TEXTS["apple"])
        one.examine_text("v", TEXTS["apple"])
        one.examine_text("u", TEXTS["pear"])

        verdict = one.examine_text("v", TEXTS["apple"])

        assert (verdict.kind, verdict.canonical_id) == (Kind.UNCHANGED, None)
        assert one.examine_text("w", TEXTS["apple"]).canonical_url == "v"

    def test_page_that_becomes_too_short_leaves_the_index(self) -> None:
        one = detector()
        one.examine_text("u", TEXTS["apple"])

        assert one.examine_text("u", "gone").kind is Kind.TOO_SHORT
        assert len(one.index) == 0
        assert one.examine_text("u", TEXTS["apple"]).kind is Kind.CHANGED


class TestFollowing:
    @pytest.mark.parametrize("follow_per_cluster", [1, 2, 3])
    def test_links_of_so_many_pages_of_a_cluster_are_followed(self, follow_per_cluster: int) -> None:
        one = detector(follow_per_cluster=follow_per_cluster)

        followed = [one.examine_text(f"u{i}", TEXTS["apple"]).follow for i in range(6)]

        assert followed == [i < follow_per_cluster for i in range(6)]

    def test_clusters_are_counted_apart(self) -> None:
        one = detector(follow_per_cluster=2)

        followed = [
            one.examine_text(f"{name}{i}", TEXTS[name]).follow for i in range(3) for name in ("fig", "plum")
        ]

        assert followed == [True, True, True, True, False, False]

    def test_start_pages_are_always_followed_and_count(self) -> None:
        one = detector(follow_per_cluster=2)
        one.examine_text("u", TEXTS["fig"])

        start = one.examine_text("start", TEXTS["fig"], always_follow=True)

        assert start.is_duplicate
        assert start.follow
        assert "start URL" in start.reason
        assert [one.examine_text(f"u{i}", TEXTS["fig"]).follow for i in range(2)] == [False, False]

    def test_what_another_crawl_has_followed_does_not_count(self) -> None:
        earlier = detector()
        known = earlier.examine_text("u", TEXTS["fig"])
        later = detector()
        later.restore([remembered(known)])

        moved = [later.examine_text(f"moved{i}", TEXTS["fig"]) for i in range(2)]

        assert [verdict.is_duplicate for verdict in moved] == [True, True]
        assert [verdict.repeated for verdict in moved] == [False, True]
        assert [verdict.follow for verdict in moved] == [True, False]

    def test_pages_that_are_only_alike_do_not_stand_for_a_copy(self) -> None:
        """A second crawl with other session ids: the canonical page of a cluster comes after pages that
        resemble it.
        """
        words = [f"w{number}" for number in range(200)]
        texts = [" ".join([*words[:number], "other", *words[number + 1 :]]) for number in (20, 60, 100, 140)]
        earlier = detector()
        known = earlier.examine_text("canonical", texts[0])
        later = detector()
        later.restore([remembered(known)])

        alike = [later.examine_text(f"alike{number}", text) for number, text in enumerate(texts[1:])]
        copies = [later.examine_text(f"copy{number}", texts[0]) for number in range(2)]

        assert [verdict.canonical_url for verdict in (*alike, *copies)] == ["canonical"] * 5
        assert [verdict.is_sure for verdict in (*alike, *copies)] == [False, False, False, True, True]
        assert [verdict.repeated for verdict in (*alike, *copies)] == [False, True, True, False, True]
        assert [verdict.follow for verdict in copies] == [True, False]


class TestVerification:
    """SimHash proposes, the sketches decide."""

    def test_same_words_in_another_order_are_another_page(self) -> None:
        for verify, kind in ((0.8, Kind.NEW), (0.0, Kind.DUPLICATE)):
            one = detector(verify=verify)
            first = one.examine_text("u", TEXTS["apple"])

            second = one.examine_text("v", shuffled(TEXTS["apple"]))

            assert first.fingerprint is not None
            assert second.fingerprint is not None
            assert first.fingerprint.value == second.fingerprint.value
            assert second.kind is kind

    def test_resemblance_of_a_duplicate_is_told(self) -> None:
        one = detector()
        one.examine_text("u", TEXTS["apple"])

        verdict = one.examine_text("v", edited(TEXTS["apple"], 2))

        words = Features().extract
        exact = sketch.resemblance(
            *(sketch.shingle_set(words(t).words) for t in (TEXTS["apple"], edited(TEXTS["apple"], 2)))
        )
        assert verdict.resemblance == pytest.approx(exact, abs=0.06)
        assert f"resemblance {verdict.resemblance:.2f}" in verdict.reason

    def test_a_page_behind_one_that_is_not_confirmed_is_found(self) -> None:
        one = detector(recall=1.0)
        one.examine_text("order", shuffled(TEXTS["apple"]))
        one.examine_text("near", edited(TEXTS["apple"], 2))
        assert len(one.index) == 2

        verdict = one.examine_text("copy", TEXTS["apple"])

        assert (verdict.kind, verdict.canonical_url) == (Kind.DUPLICATE, "near")
        assert verdict.distance

    def test_sketches_are_kept_of_canonical_pages_only(self) -> None:
        one = detector()
        for url, text in (("u", TEXTS["apple"]), ("v", TEXTS["apple"]), ("w", "too short")):
            one.examine_text(url, text)

        assert one.sketches.arrays(len(one.pages))["rows"].tolist() == [0]
        one.examine_text("u", TEXTS["pear"])
        assert one.sketches.arrays(len(one.pages))["rows"].tolist() == [0]
        assert one.examine_text("x", edited(TEXTS["pear"])).canonical_url == "u"

    def test_distance_belongs_to_features_and_verification(self) -> None:
        features = Features()

        assert detector().index.max_distance == features.verified_max_distance
        assert detector(verify=0).index.max_distance == features.max_distance
        assert detector(max_distance=5).index.max_distance == 5


def test_a_diff_with_more_template_than_its_article_is_no_sure_copy() -> None:
    one = Detector(DetectorOptions())
    *others, article, diff = article_and_diff()
    for number, page in enumerate([*others, article]):
        assert one.examine_html(f"http://wiki.example/{number}", page).kind is Kind.NEW

    verdict = one.examine_html("http://wiki.example/diff", diff)

    assert verdict.is_duplicate
    assert not verdict.is_sure


class TestRestore:
    """A second crawl starts with what earlier ones stored."""

    @pytest.mark.parametrize("order", [1, -1])
    def test_verdicts_of_the_second_crawl_are_those_of_the_first(self, order: int) -> None:
        pages = [("u", "apple"), ("v", "pear"), ("w", "apple"), ("x", "fig"), ("y", "pear")]
        first = detector()
        verdicts = [first.examine_text(url, TEXTS[text]) for url, text in pages]
        verdicts.append(first.examine_text("short", "too short"))
        verdicts.append(first.examine_text("empty", ""))

        second = Detector(DetectorOptions(), first_id=2_000_000_001)
        known = second.restore([remembered(verdict) for verdict in verdicts][::order])

        assert known == 7
        assert len(second.index) == len(first.index) == 3
        again = {url: second.examine_text(url, TEXTS[text]) for url, text in pages}
        assert [v.page_id for v in again.values()] == [v.page_id for v in verdicts[:5]]
        assert [v.canonical_id for v in again.values()] == [v.canonical_id for v in verdicts[:5]]
        assert {v.kind for v in again.values()} == {Kind.UNCHANGED, Kind.DUPLICATE}
        assert second.examine_text("short", "too short").kind is Kind.TOO_SHORT
        copy = second.examine_text("z", TEXTS["fig"])
        assert (copy.canonical_url, copy.page_id) == ("x", 2_000_000_001)

    def test_a_page_that_is_not_fresh_makes_no_duplicates_and_the_newcomer_takes_its_place(self) -> None:
        first = detector()
        old = remembered(first.examine_text("old", TEXTS["apple"]))
        other = remembered(first.examine_text("other", TEXTS["pear"]))
        copy = remembered(first.examine_text("copy", TEXTS["apple"]))
        second = Detector(DetectorOptions(), first_id=2_000_000_001)
        second.restore([old._replace(fresh=False), other, copy._replace(fresh=False)])
        assert len(second.index) == 1

        assert second.examine_text("new", TEXTS["apple"]).kind is Kind.NEW
        assert second.examine_text("copy", TEXTS["apple"]).canonical_url == "new"
        again = second.examine_text("old", TEXTS["apple"])
        assert (again.kind, again.canonical_url, again.own_distance) == (Kind.DUPLICATE, "new", 0)

    def test_a_page_that_is_not_fresh_is_itself_when_it_comes_first(self) -> None:
        old = remembered(detector().examine_text("old", TEXTS["apple"]))
        second = Detector(DetectorOptions(), first_id=2_000_000_001)
        second.restore([old._replace(fresh=False)])

        assert second.examine_text("old", TEXTS["apple"]).kind is Kind.UNCHANGED
        assert second.examine_text("copy", TEXTS["apple"]).canonical_url == "old"

    def test_minimum_of_this_crawl_decides_what_is_canonical(self) -> None:
        first = detector()
        page = remembered(first.examine_text("u", TEXTS["apple"]))

        strict = detector(min_features=1000)
        strict.restore([page])

        assert len(strict.index) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_distance": 17}, "max_distance must be between 0 and 16"),
        ({"recall": 0.0}, "recall must be above 0 and at most 1, not 0.0"),
        ({"verify": 1.1}, "verify must be a resemblance between 0 \\(off\\) and 1, not 1.1"),
        ({"sketch_size": 100}, "sketch_size must be a multiple of 64 from 64 to 65536, not 100"),
        ({"min_features": 0}, "min_features must be at least 1, not 0"),
        ({"follow_per_cluster": 0}, "follow_per_cluster must be at least 1"),
        ({"max_distance": "3"}, "max_distance must be a whole number or None, not '3'"),
        ({"max_distance": True}, "max_distance must be a whole number or None, not True"),
        ({"min_features": 1.5}, "min_features must be a whole number, not 1.5"),
        ({"verify": None}, "verify must be a number, not None"),
        ({"features": None}, "features must be a text, not None"),
        ({"alt_texts": "no"}, "alt_texts must be True or False, not 'no'"),
        ({"selectors": None}, "selectors must be a mapping of hosts, not None"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        detector(**options)


def test_every_option_has_a_type() -> None:
    assert {field.name for field in fields(DetectorOptions)} == set(_EXPECTED)


def test_numbers_of_numpy_are_numbers() -> None:
    numbers: dict[str, Any] = {"max_distance": np.int64(3), "verify": np.float32(0.5)}

    assert Detector(DetectorOptions(**numbers)).rule.max_distance == 3


def test_verdicts_are_compared_by_value_and_may_be_in_sets() -> None:
    first, second = (detector().examine_text("http://a.example/1", TEXTS["apple"]) for _ in range(2))
    other = detector().examine_text("http://a.example/1", TEXTS["pear"])

    assert first == second == pickle.loads(pickle.dumps(first))
    assert {first, second, other} == {first, other}
    assert first != other


def test_higher_recall_probes_more() -> None:
    probes = []
    for recall in (0.5, 0.95, 1.0):
        one = detector(recall=recall)
        others = np.random.default_rng(1).integers(0, 2**64 - 1, size=10_000, dtype=np.uint64)
        one.index.extend(others, np.arange(1000, 11_000))
        one.examine_text("u", TEXTS["apple"])
        probes.append(one.index.stats.probes)

    assert probes == sorted(set(probes))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.sampled_from(sorted(TEXTS)), st.integers(0, 6)),
        min_size=1,
        max_size=30,
    )
)
def test_whatever_is_seen_clusters_are_stars(seen: list[tuple[int, str, int]]) -> None:
    one = detector(max_distance=6)
    for number, name, words in seen:
        one.examine_text(f"u{number}", edited(TEXTS[name], words))

    rows = range(len(one.pages))
    canonical = [row for row in rows if one.pages.canonical[row] == row]
    scan = LinearScan(max_distance=0)
    scan.extend(*one.pages.fingerprints(canonical))
    assert len(one.index) == len(canonical)
    assert all(one.pages.values[row] in one.index for row in canonical)


class TestRealPages:
    def test_known_near_duplicates_are_found_and_unrelated_pages_are_not(self) -> None:
        resemblance = near_duplicates()
        one = detector()
        verdicts = {}
        for page in sorted(PAGES.rglob("*.html")):
            name = str(page.relative_to(PAGES))
            verdicts[name] = one.examine_html(name, page.read_bytes())

        canonical = {name: verdict.canonical_url or name for name, verdict in verdicts.items()}
        together = [pair for pair in resemblance if canonical[pair[0]] == canonical[pair[1]]]
        near = [pair for pair, value in resemblance.items() if value >= 0.9]
        assert [pair for pair in near if pair not in together] == []
        clusters = itertools.combinations(sorted(verdicts), 2)
        found = [pair for pair in clusters if canonical[pair[0]] == canonical[pair[1]]]
        assert [pair for pair in found if pair not in resemblance] == []
        assert sum(verdict.is_duplicate for verdict in verdicts.values()) >= 30
        assert not any(
            verdict.is_duplicate for name, verdict in verdicts.items() if name.startswith("apache")
        )
