"""What is kept of a page's title and heading, on real pages and on odd ones."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.text import headline
from neardup.text.headline import (
    DATE_WORDS,
    HEADING_WORDS,
    SHORT_MONTHS,
    TITLE_WORDS,
    of_texts,
    of_tree,
)
from neardup.text.visible_text import decode, parse
from neardup.text.words import words
from tests.support.date_words import date_words, short_months
from tests.support.places import PAGES
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lxml import etree

    from neardup.text.headline import Headline

TWIN = python_twin(headline)
FILES = sorted(PAGES.rglob("*.html"))


def of_html(html: str) -> Headline:
    root = parse(html)
    assert root is not None
    return of_tree(root)


def same(one: Headline, other: Headline) -> bool:
    return one.dtype == other.dtype == np.uint32 and one.tolist() == other.tolist()


def test_real_pages_have_the_headline_that_their_source_says() -> None:
    """The titles are found by a pattern here, and not by a parser."""
    with_title = 0
    for path in FILES:
        source = decode(path.read_bytes())
        found = re.search(r"(?is)<title>(.*?)</title>", source)
        assert found is not None, path
        title = unescape(re.sub(r"<[^>]*>", "", found[1]))
        made = of_html(source)[:TITLE_WORDS]
        assert same(made, of_texts(title)[:TITLE_WORDS]), path
        with_title += bool(made.any())
    assert with_title == len(FILES) > 50


def test_pages_of_one_manual_have_headlines_of_their_own() -> None:

    by_headline: dict[bytes, list[str]] = {}
    for path in PAGES.glob("clang-16/*.html"):
        by_headline.setdefault(of_html(decode(path.read_bytes())).tobytes(), []).append(path.name)

    assert len(by_headline) > 10
    assert [names for names in by_headline.values() if len(names) > 1] == []


def test_the_same_page_in_another_version_has_another_headline_by_numbers_only() -> None:
    differing = []
    for old in sorted(PAGES.glob("clang-13/*.html")):
        new = PAGES / "clang-16" / old.name
        if new.exists():
            one, other = (set(of_html(decode(path.read_bytes())).tolist()) for path in (old, new))
            differing += list(one ^ other)
    assert differing
    assert all(word & 1 for word in differing)


@pytest.mark.parametrize(
    ("html", "title", "heading"),
    [
        ("<title>One two</title><h1>three</h1>", "One two", "three"),
        ("<title></title><h1>three</h1>", "", "three"),
        ("<title> \n\t</title><p>text", "", ""),
        ("<p>text without either", "", ""),
        ("word", "", ""),
        ("<h2>no main heading</h2>", "", ""),
        ("<title>first</title><title>second</title>", "first", ""),
        ("<h1></h1><h1> &nbsp; </h1><h1>third</h1><h1>fourth</h1>", "", "third"),
        ("<h1><img src=logo.png alt=Logo></h1><h1>Name</h1>", "", "Name"),
        ("<h1>in <b>pieces</b> <i>of <u>it</u></i></h1>", "", "in pieces of it"),
        ("<h1><!-- comment -->name<?instruction?></h1>", "", "name"),
        # The title of a picture is none of the page.
        ("<body><svg><title>picture</title></svg><p>text", "", ""),
        ("<head></head><body><svg><title>picture</title></svg><h1>name</h1>", "", "name"),
        # Tags in a title are text.
        ("<title>a <b>bold</b> title</title>", "a <b>bold</b> title", ""),
        ("<title>never closed", "never closed", ""),
        ("<title>one</title><h1>never closed <p>text", "one", "never closed"),
        ("</h1></title><title>crossed</h1></title><h1>names</title></h1>", "crossed</h1>", "names"),
        ("<title>\x00nul\x00l</title>", "null", ""),
    ],
)
def test_odd_pages(html: str, title: str, heading: str) -> None:
    assert same(of_html(html), of_texts(title, heading))


def test_words_are_kept_once_and_as_the_text_has_them() -> None:
    assert same(of_texts("Word WORD word, other."), of_texts("word other"))
    assert same(of_texts("é"), of_texts("e\u0301"))
    assert of_texts("one two")[:2].tolist() == [of_texts(word)[0] for word in ("one", "two")]


ODD = [
    "<h1>",
    "</h1>",
    "<h2>",
    "</h2>",
    "<h3>",
    "<p>",
    "<title>",
    "</title>",
    "<svg>",
    "<h1/>",
    "<!-- -->",
    "x",
]


@given(st.lists(st.sampled_from(ODD)))
def test_headings_are_those_of_the_twin(parts: list[str]) -> None:
    root = parse("<body>" + "".join(parts))
    assert root is not None
    below = root.find("body")
    for top in (root, below if below is not None else root):
        found: list[etree._Element | None] = [None]
        while (element := headline.heading_after(top, found[-1])) is not None:
            assert TWIN.heading_after(top, found[-1]) is element
            found.append(element)
        assert TWIN.heading_after(top, found[-1]) is None
        assert found[1:] == list(top.iter("h1"))
        assert list(headline.titles_and_headings(top)) == list(TWIN.titles_and_headings(top))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_titles_and_headings_are_those_of_the_twin(path: Path) -> None:
    root = parse(decode(path.read_bytes()))
    assert root is not None
    assert list(headline.titles_and_headings(root)) == list(TWIN.titles_and_headings(root))
    assert of_tree(root).tolist() == TWIN.of_tree(root).tolist()


WORDS = ["May", "C++", "<=>", "2021", "٤٢", "²", "Straße", "入門書", "e\u0301", "\ud800", "a", " ", "-", "_"]


@given(st.lists(st.sampled_from(WORDS) | st.text()).map("".join), st.integers(0, 20))
def test_hashes_of_words_are_those_of_the_twin(text: str, most: int) -> None:
    symbols = re.findall(r"[+<>=-]+", text)
    assert headline.hashes(symbols, text, most) == TWIN.hashes(symbols, text, most)


def test_numbers_are_told_from_words() -> None:
    made = of_texts("2021 42 ٤٢ v3 x1 one", "7")

    assert [word & 1 for word in made[:6].tolist()] == [1, 1, 1, 0, 0, 0]
    assert made[TITLE_WORDS] & 1


def test_names_of_months_and_days_are_told_from_words_as_numbers_are() -> None:
    dates = "May October Sunday Oktober Dienstag février lundi сентября 十月 10월 สิงหาคม"
    marked = (of_texts(dates)[:TITLE_WORDS] & 1).tolist()

    # Thai words are pieces of two letters here, which may be of any word.
    assert marked == [1] * 10 + [0] * 2
    assert not (of_texts("Alpha Monthly Dayton")[:3] & 1).any()


@pytest.mark.slow
@pytest.mark.parametrize(("file", "names"), [(DATE_WORDS, date_words), (SHORT_MONTHS, short_months)])
def test_the_names_are_those_of_the_cldr(file: Path, names: Callable[[], list[str]]) -> None:
    written = file.read_text(encoding="utf-8").splitlines()[1:]

    # Another release may have a name more or less.
    assert len(set(written) ^ set(names())) <= 0.02 * len(written)


def test_a_heading_of_ten_thousand_words_gives_its_first() -> None:
    many = [f"w{number}" for number in range(10_000)]

    made = of_html(f"<title>{' '.join(many)}</title><h1>{' '.join(many)}</h1>")

    assert same(made, of_texts(" ".join(many[:TITLE_WORDS]), " ".join(many[:HEADING_WORDS])))
    assert np.count_nonzero(made) == TITLE_WORDS + HEADING_WORDS


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "heading",
    ["a " * 3_000_000, "<b>a " * 200_000, "<b></b>" * 300_000 + "late", "\u0301" * 3_000_000],
    ids=["words", "nested", "empty", "marks"],
)
def test_a_whole_page_in_a_heading_costs_a_bounded_time(heading: str) -> None:
    assert np.count_nonzero(of_html(f"<title>{heading}</title><h1>{heading}</h1>")) <= 4


def test_a_lone_surrogate_is_no_word_that_harms() -> None:
    assert same(of_texts("\ud800 one \udfff", "\ud800"), of_texts("one"))
    assert same(of_html("<title>\ud800 one</title>"), of_texts("one"))


@given(st.text(), st.text())
def test_any_texts_have_a_headline_that_the_store_can_keep(title: str, heading: str) -> None:
    made = of_texts(title, heading)
    distinct = [set(words(text[:500])) for text in (title, heading)]
    symbols = [
        sum(not word.isalnum() for word in re.findall(r"\W+", text[:500])) for text in (title, heading)
    ]

    for kept, most, found, more in zip(
        (made[:TITLE_WORDS], made[TITLE_WORDS:]), (TITLE_WORDS, HEADING_WORDS), distinct, symbols, strict=True
    ):
        assert min(most, len(found)) <= np.count_nonzero(kept) <= min(most, len(found) + more)
    assert len(headline.to_bytes(made)) == headline.BYTES
    assert same(headline.from_bytes(headline.to_bytes(made)), made)


def test_stored_headlines_are_the_same_on_every_machine() -> None:
    # MurmurHash3 x86 32 of "hello" is 0x248bfa47; the lowest bit says whether the word is a number.
    stored = headline.to_bytes(of_texts("Hello 7", "world"))

    assert stored[:8].hex() == "46fa8b242986ea23"
    assert stored[8:48] == bytes(40)
    assert not headline.from_bytes(None).any()
