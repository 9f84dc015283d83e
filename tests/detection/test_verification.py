"""Which of the pages that the fingerprints propose are confirmed, and by what evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.rule import KNOWN_PAGES, Evidence, Rule
from neardup.detection.verdict import Kind
from tests.support.detectors import TEXTS, edited, shuffled
from tests.support.places import PAGES

if TYPE_CHECKING:
    from neardup.detection.verdict import Verdict

HOST = "http://a.example"
SITE = "The Example Manual"
RULE = Rule(8)


def page(title: str, text: str, *, heading: str = "") -> str:
    return f"<title>{title}</title><h1>{heading}</h1><p>{text}</p>"


def words(name: str, number: int) -> str:
    return " ".join(f"{name}{at}" for at in range(number))


def examined(detector: Detector, pages: dict[str, str], host: str = HOST) -> dict[str, Verdict]:
    return {path: detector.examine_html(f"{host}/{path}", html) for path, html in pages.items()}


def known(detector: Detector, pages: int = KNOWN_PAGES) -> None:
    """Have the detector learn of a site of other pages, each with a title of its own."""
    others = {
        f"other/{number}": page(f"other{number} {SITE}", words(f"other{number}x", 100))
        for number in range(pages)
    }
    assert all(verdict.kind is Kind.NEW for verdict in examined(detector, others).values())


def test_real_pages_of_two_versions_are_found_by_their_headlines() -> None:
    detector = Detector(DetectorOptions())
    names = sorted(path.name for path in PAGES.glob("clang-13/*.html"))
    for version in ("clang-13", "clang-14"):
        for name in names:
            html = (PAGES / version / name).read_bytes()
            verdict = detector.examine_html(f"{HOST}/{version}/{name}", html)
            if version == "clang-14" and verdict.is_duplicate:
                assert verdict.canonical_url == f"{HOST}/clang-13/{name}"
                # Of two versions, a number differs in the title; that says neither yes nor no.
                assert verdict.evidence is not Evidence.DISTANCE
    assert sum(canonical != row for row, canonical in enumerate(detector.pages.canonical.array())) >= 5


@pytest.mark.parametrize("site_is_known", [False, True])
def test_the_same_headline_and_much_of_the_text(*, site_is_known: bool) -> None:
    detector = Detector(DetectorOptions())
    if site_is_known:
        known(detector)
    text = words("alpha", 300)

    first, second = examined(
        detector, {"1": page("Alpha", text), "2": page("Alpha", f"{text} {words('more', 10)}")}
    ).values()

    assert (first.kind, second.canonical_url) == (Kind.NEW, f"{HOST}/1")
    evidence = Evidence.HEADLINE if site_is_known else Evidence.WHOLE
    assert second.evidence is evidence
    assert second.confidence == evidence.confidence


def test_a_duplicate_is_surer_once_the_site_is_known() -> None:
    detector = Detector(DetectorOptions())
    text = words("alpha", 300)
    early = examined(detector, {"1": page("Alpha", text), "2": page("Alpha", f"{text} {words('more', 10)}")})[
        "2"
    ]
    known(detector)

    (later,) = detector.judge_all_again()

    assert (early.evidence, later.evidence) == (Evidence.WHOLE, Evidence.HEADLINE)
    assert (later.page_id, later.canonical_id, later.again) == (early.page_id, early.canonical_id, True)
    assert detector.judge_all_again() == []


def test_a_duplicate_is_less_sure_once_other_pages_have_its_headline() -> None:
    detector = Detector(DetectorOptions())
    known(detector)
    text = words("alpha", 300)
    early = examined(
        detector, {"1": page("Alpha", text), "2": page("Alpha", f"{text} more", heading="Alpha")}
    )["2"]
    namesakes = {
        f"same/{number}": page("Alpha", words(f"same{number}x", 100)) for number in range(2 * KNOWN_PAGES)
    }
    assert all(verdict.kind is Kind.NEW for verdict in examined(detector, namesakes).values())

    (later,) = detector.judge_all_again()

    assert (early.evidence, later.evidence) == (Evidence.HEADLINE, Evidence.RARE)
    assert (later.page_id, later.canonical_id, later.again) == (early.page_id, early.canonical_id, True)
    assert detector.judge_all_again() == []


def test_another_headline_and_next_to_the_same_text() -> None:
    """The text may be the site's template, as long as nobody knows."""
    text = words("alpha", 300)
    detector = Detector(DetectorOptions())

    verdicts = examined(detector, {"1": page("Alpha", text), "2": page("Beta", f"{text} more")})

    assert [verdict.kind for verdict in verdicts.values()] == [Kind.NEW, Kind.NEW]


def test_another_number_in_the_headline_leaves_it_to_the_text() -> None:
    text = words("alpha", 300)
    detector = Detector(DetectorOptions())

    verdicts = examined(detector, {"1": page("Visitor 17", text), "2": page("Visitor 18", f"{text} more")})

    assert verdicts["2"].canonical_url == f"{HOST}/1"
    assert verdicts["2"].evidence is Evidence.WHOLE


@pytest.mark.parametrize("template", [False, True])
def test_notes_of_releases_that_repeat_the_earlier_ones_are_pages_of_their_own(*, template: bool) -> None:
    menu = words("menu", 40) if template else ""
    others = {f"o/{n}.html": page(f"Other {n}", f"{menu} {words(f'o{n}x', 99)}") for n in range(KNOWN_PAGES)}
    notes = [
        page(f"Release 3.35.{number}", f"{menu} {words('change', 300)} {words(f'repair{number}x', 20)}")
        for number in range(4)
    ]
    # A number that is in no name of a file may be that of a version.
    for name, wanted in (("3_35_{}.html", Kind.NEW), ("{}/notes.html", Kind.DUPLICATE)):
        detector = Detector(DetectorOptions())
        examined(detector, others)

        verdicts = examined(detector, {name.format(number): html for number, html in enumerate(notes)})

        assert [verdict.kind for verdict in verdicts.values()] == [Kind.NEW, wanted, wanted, wanted]


@pytest.mark.parametrize(
    ("name", "wanted"), [("arrays.html", Kind.DUPLICATE), ("index.html", Kind.NEW), ("a{}.html", Kind.NEW)]
)
def test_a_chapter_with_another_number_under_the_same_name(name: str, wanted: Kind) -> None:
    """What is rare has a resemblance of .75: enough under one headline, and too little under another."""
    detector = Detector(DetectorOptions())
    known(detector)
    kept = words("alpha", 300)
    pages = {
        f"{version}/{name.format(version)}": page(f"9.{number}. Arrays", f"{kept} {words(version, 50)}")
        for version, number in (("old", 24), ("new", 25))
    }

    first, second = examined(detector, pages).values()

    assert (first.kind, second.kind) == (Kind.NEW, wanted)
    if wanted is Kind.DUPLICATE:
        assert second.evidence is Evidence.RARE
        assert second.resemblance is not None
        assert RULE.least_rare <= second.resemblance < RULE.verify


def test_the_very_text_is_a_copy_whatever_its_headline() -> None:
    text = words("alpha", 300)

    verdicts = examined(
        Detector(DetectorOptions()),
        {"1": f"<title>Alpha</title><p>{text}", "2": f"<title>Beta</title><p>{text}"},
    )

    assert verdicts["2"].evidence is Evidence.TEXT
    assert verdicts["2"].confidence == 1.0


def test_pages_without_headlines_are_judged_by_the_whole_until_the_site_is_known() -> None:
    detector = Detector(DetectorOptions())
    text = words("alpha", 300)
    early = examined(detector, {"1": text, "2": f"{text} more"})["2"]
    known(detector)
    text = words("beta", 300)
    late = examined(detector, {"3": text, "4": f"{text} more"})["4"]

    assert (early.canonical_url, late.canonical_url) == (f"{HOST}/1", f"{HOST}/3")
    assert (early.evidence, late.evidence) == (Evidence.WHOLE, Evidence.RARE)
    assert early.confidence is not None
    assert late.confidence is not None
    assert early.confidence < late.confidence


def test_sites_are_known_each_by_itself() -> None:
    detector = Detector(DetectorOptions())
    known(detector)
    text = words("alpha", 300)

    verdicts = examined(detector, {"1": text, "2": f"{text} more"}, host="http://b.example")

    assert verdicts["2"].evidence is Evidence.WHOLE


def test_the_same_words_in_another_order_are_no_duplicate() -> None:
    detector = Detector(DetectorOptions())
    text = TEXTS["apple"]

    verdicts = examined(detector, {"1": page("Alpha", text), "2": page("Alpha", shuffled(text))})

    assert [verdict.kind for verdict in verdicts.values()] == [Kind.NEW, Kind.NEW]


def test_without_verification_the_distance_alone_decides() -> None:
    detector = Detector(DetectorOptions(verify=0.0))
    text = TEXTS["apple"]

    verdicts = examined(detector, {"1": page("Alpha", text), "2": page("Beta", shuffled(text))})

    assert verdicts["2"].canonical_url == f"{HOST}/1"
    assert verdicts["2"].evidence is Evidence.DISTANCE


def test_of_many_candidates_the_one_with_the_headline_is_taken() -> None:
    """Sixty pages of one menu, and a copy of one of them."""
    menu = words("menu", 300)
    detector = Detector(DetectorOptions())
    pages = {
        str(number): page(f"topic{number} {SITE}", f"{menu} {words(f'own{number}x', 20)}")
        for number in range(60)
    }
    assert all(verdict.kind is Kind.NEW for verdict in examined(detector, pages).values())

    copy = detector.examine_html(f"{HOST}/copy", pages["31"].replace("own31x7", "changed"))
    longer = detector.examine_html(f"{HOST}/longer", f"{pages['41']} printed")

    assert (copy.canonical_url, longer.canonical_url) == (f"{HOST}/31", f"{HOST}/41")
    # One word of twenty is another one: not surely a copy.
    assert (copy.evidence, longer.evidence) == (Evidence.RARE, Evidence.HEADLINE)


def test_a_long_menu_makes_no_title_a_common_one() -> None:
    """Different pages, each with a title of its own, under a menu of 1,500 words."""
    detector = Detector(DetectorOptions())
    pages = {
        str(number): page(f"topic{number} {SITE}", f"{words('menu', 1500)} {words(f'own{number}x', 75)}")
        for number in range(60)
    }

    assert {verdict.kind for verdict in examined(detector, pages).values()} == {Kind.NEW}


@pytest.mark.parametrize("html", ["", "word", "<title>title</title>", "<title>\ud800</title><h1>\udfff"])
def test_pages_of_next_to_no_words_have_no_evidence(html: str) -> None:
    detector = Detector(DetectorOptions())

    verdicts = examined(detector, {"1": html, "2": html}).values()

    assert {(verdict.kind, verdict.evidence) for verdict in verdicts} == {(Kind.TOO_SHORT, None)}


def test_ten_words_are_enough_for_evidence() -> None:
    verdicts = examined(
        Detector(DetectorOptions()), {"1": page("Ten", words("w", 10)), "2": page("Ten", words("w", 10))}
    )

    assert verdicts["2"].evidence is Evidence.TEXT


def test_the_reason_and_the_item_say_the_evidence() -> None:
    text = TEXTS["apple"]
    detector = Detector(DetectorOptions(verify=0.5))
    known(detector)
    first, second = examined(detector, {"1": page("Alpha", text), "2": page("Alpha", edited(text))}).values()

    assert "evidence: the same headline" in second.reason
    assert second.as_dict()["evidence"] == "headline"
    assert second.as_dict()["confidence"] == Evidence.HEADLINE.confidence
    assert (first.as_dict()["evidence"], first.as_dict()["confidence"]) == (None, None)
    assert re.search(r"resemblance 0\.\d\d, evidence", second.reason)
