"""What a correct near-duplicate is, by the slides (after Henzinger 2006, section 4), on real pages.

The text of near-duplicates differs invisibly, or only by one of these:

- a session id, a message id or a visitor count;
- a timestamp or an execution time;
- a server name, or the page's own URL.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest

from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.verdict import Kind
from neardup.text.visible_text import text_of_bytes
from neardup.text.words import words
from tests.support.places import PAGES

if TYPE_CHECKING:
    from pathlib import Path

FEWEST_WORDS = 200
"""A line of noise is some ten words; on a shorter page it is more than a fifth of what there is to compare.
"""

LONG_ENOUGH = [
    page
    for page in sorted(PAGES.rglob("*.html"))
    if len(words(text_of_bytes(page.read_bytes()))) >= FEWEST_WORDS
]

VISIBLE = {
    "session id": ("Session 5d41402abc4b2a76b9719d911017c592", "Session 7d793037a0760186574b0282f2f435e7"),
    "timestamp": ("Generated on Sat, 21 Nov 2026 10:40:06 GMT", "Generated on Sun, 22 Nov 2026 23:01:59 GMT"),
    "execution time": (
        "Page created in 0.0312 seconds, 12 queries",
        "Page created in 1.4480 seconds, 9 queries",
    ),
    "message id": ("Message-ID: 20261121104006.GA4711", "Message-ID: 20261122230159.GB0815"),
    "visitor count": ("You are visitor 1,204,811", "You are visitor 1,204,812"),
    "server name": ("Served by web-17.eu.example", "Served by web-3.us.example"),
    "own URL": (
        "Permalink: shop.example/item?id=7&session=1",
        "Permalink: www2.shop.example/item?session=9&id=7",
    ),
}

INVISIBLE = {
    "comment": ("<!-- build 1 -->", "<!-- build 2, on another day -->"),
    "script": ("<script>var t = 1;</script>", "<script>var t = 2; log('other words in here')</script>"),
    "style": ("<style>p {color: red}</style>", "<style>p {color: blue; margin: 0}</style>"),
    "image": ("<img src='1.png' alt='one' title='x'>", "<img src='2.png' alt='one' title='y z'>"),
    "link": ("<a href='/s1/next?sid=1'>more</a>", "<a href='/s2/next?sid=2' title='x y'>more</a>"),
    "white space": ("<p>so  it \n is</p>", "<p>so it\tis</p>"),
    "zero width": ("<p>so it is</p>", "<p>so\u200b it\u00ad is\ufeff</p>"),
    "URL": ("see http://a.example/1?s=1 for it", "see http://b.example/2/other?s=2 for it"),
    "entities": ("<p>&lt;caf&eacute;&gt;</p>", "<p>&#60;caf&#xe9;&#62;</p>"),
    "inline markup": ("<p>word by word</p>", "<p><b>wo</b>rd <i>by</i> wo<span>rd</span></p>"),
}


def judged(first: str, second: str) -> Kind:
    detector = Detector(DetectorOptions())
    assert detector.examine_html("http://a.example/1", first).kind is Kind.NEW
    return detector.examine_html("http://a.example/2", second).kind


def with_line(html: str, line: str) -> str:
    """The page with a line of its own at the end of its body."""
    changed, times = re.subn(r"(?i)</body>", lambda end: f"<p>{line}</p>{end[0]}", html, count=1)
    return changed if times else f"{html}<p>{line}</p>"


def html_of(page: Path) -> str:
    return page.read_bytes().decode("utf-8", "replace")


def test_there_are_pages_in_several_languages() -> None:
    assert len(LONG_ENOUGH) >= 40
    assert len({page.relative_to(PAGES).parts[:2] for page in LONG_ENOUGH if "apache" in page.parts}) >= 5


@pytest.mark.parametrize("noise", VISIBLE)
def test_visible_noise(noise: str) -> None:
    one, other = VISIBLE[noise]
    for page in LONG_ENOUGH:
        html = html_of(page)

        assert judged(with_line(html, one), with_line(html, other)) is Kind.DUPLICATE, page


@pytest.mark.parametrize("noise", INVISIBLE)
def test_invisible_differences_leave_the_fingerprint_as_it_is(noise: str) -> None:
    one, other = INVISIBLE[noise]
    for page in LONG_ENOUGH:
        detector = Detector(DetectorOptions())
        html = html_of(page)
        detector.examine_html("u", with_line(html, one))

        verdict = detector.examine_html("v", with_line(html, other))

        assert (verdict.kind, verdict.distance, verdict.resemblance) == (Kind.DUPLICATE, 0, 1.0), page


@pytest.mark.slow
def test_combinations() -> None:
    longer = [
        page for page in LONG_ENOUGH if len(words(text_of_bytes(page.read_bytes()))) >= 2 * FEWEST_WORDS
    ]
    assert len(longer) >= 20
    for (first, second), page in itertools.product(itertools.combinations(VISIBLE, 2), longer):
        ones = VISIBLE[first][0] + INVISIBLE["script"][0] + VISIBLE[second][0]
        others = VISIBLE[first][1] + INVISIBLE["script"][1] + VISIBLE[second][1]
        html = html_of(page)

        assert judged(with_line(html, ones), with_line(html, others)) is Kind.DUPLICATE, (page, first, second)


def test_pages_of_one_template_whose_main_item_differs_are_not_found() -> None:
    for folder in ("clang-13", "clang-14", "clang-15", "clang-16"):
        detector = Detector(DetectorOptions())
        kinds = {
            page: detector.examine_html(str(page), page.read_bytes()).kind
            for page in sorted((PAGES / folder).rglob("*.html"))
        }

        assert set(kinds.values()) == {Kind.NEW}, kinds


def test_another_main_item_in_the_frame_of_a_real_page_is_another_page() -> None:
    """Items of as many words as the frame, which is a real page's."""
    frame = html_of(PAGES / "clang-13" / "ClangCheck.html")
    items = [
        text_of_bytes((PAGES / "clang-13" / name).read_bytes()) for name in ("FAQ.html", "LibFormat.html")
    ]
    size = len(words(text_of_bytes(frame.encode())))
    pages = [with_line(frame, " ".join(item.split()[:size])) for item in items]

    assert judged(*pages) is Kind.NEW
