"""What is content: body, main part or what selectors choose; on real pages, on small ones, and on those made
to break it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from neardup.errors import ConfigurationError
from neardup.fingerprint.scheme import Scheme
from neardup.text.content import BODY, MAIN, MIN_WORDS, MODES, Content
from neardup.text.visible_text import parse, text_of_bytes, text_of_html, text_of_tree
from neardup.text.words import words
from tests.support.places import PAGES

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(PAGES.rglob("*.html"))
URL = "http://www.a.example/x"
CLANG = PAGES / "clang-13"
LONG = " ".join(f"word{number}" for number in range(MIN_WORDS))
OTHER = " ".join(f"other{number}" for number in range(MIN_WORDS))


def content(host: str = "*", **chosen: str) -> Content:
    return Content(selectors={host: chosen})


# Body


@pytest.mark.parametrize("path", FILES[::5], ids=lambda path: str(path.relative_to(PAGES)))
def test_the_body_is_the_whole_visible_text(path: Path) -> None:
    data = path.read_bytes()

    assert Content(BODY).text_of_html(URL, data) == text_of_bytes(data) != ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("html", ["", b"", "  ", "\x00", "<!-- c -->", "<p>", "\ud800"])
def test_a_page_with_nothing_in_it_has_no_content(mode: str, html: str | bytes) -> None:
    assert words(Content(mode).text_of_html(URL, html)) == []


# Main


def test_main_leaves_out_navigation_of_real_pages_and_keeps_their_content() -> None:
    navigation = "Table Of Contents Navigation"
    shorter = 0
    for path in FILES:
        data = path.read_bytes()
        body, main = text_of_bytes(data), Content(MAIN).text_of_html(URL, data)
        assert set(words(main)) <= set(words(body)), path
        assert len(words(main)) >= MIN_WORDS or main == body, path
        shorter += len(words(main)) < len(words(body))
        assert navigation not in main

    assert shorter > 0.8 * len(FILES)


def test_main_is_purified_as_the_body_is() -> None:
    html = (
        f"<main><p>soft\u00adhyphen http://b.example/path zero\u200bwidth {LONG}</p></main>"
        "<footer>foot</footer>"
    )

    assert Content(MAIN).text_of_html(URL, html) == f"softhyphen zerowidth {LONG}"


def test_main_of_too_few_words_is_the_whole_body() -> None:
    few = " ".join(LONG.split()[1:])
    html = "<nav>{1}</nav><main><p>{0}</p></main>"

    assert Content(MAIN).text_of_html(URL, html.format(few, OTHER)) == f"{OTHER} {few}"
    assert Content(MAIN).text_of_html(URL, html.format(LONG, OTHER)) == LONG


def test_main_reads_what_stands_after_the_end_of_the_page() -> None:
    assert "afterwards" in Content(MAIN).text_of_html(
        URL, f"<html><body><p>{LONG}</p></body></html><p>afterwards</p>"
    )


def test_main_of_a_page_nested_too_deep_for_an_extraction_is_its_body() -> None:
    html = "<div>" * 5000 + LONG + "</div>" * 5000

    assert Content(MAIN).text_of_html(URL, html) == text_of_html(html)


def test_main_without_resiliparse_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resiliparse.extract.html2text", None)

    with pytest.raises(ConfigurationError, match=r"neardup\[main\]"):
        Content(MAIN)
    assert Content(BODY).text_of_html(URL, "<p>read all the same") == "read all the same"


# Selectors


@pytest.mark.parametrize("mode", MODES)
def test_only_what_is_included_is_read_in_every_mode(mode: str) -> None:
    html = f"<nav>menu</nav><div id=c>{LONG}</div><footer>foot</footer>"

    assert Content(mode, {"*": {"include": "#c"}}).text_of_html(URL, html) == LONG


def test_selectors_choose_the_content_of_real_pages() -> None:
    for path in sorted(CLANG.glob("*.html")):
        data = path.read_bytes()
        whole = words(text_of_bytes(data))
        included = words(content(include="div.content").text_of_html(URL, data))
        excluded = words(
            content(exclude="div.header, div.bottomnav, div.topnav, div.footer").text_of_html(URL, data)
        )
        assert MIN_WORDS <= len(included) < len(whole), path
        assert included == excluded or set(included) <= set(excluded), path
        assert f" {' '.join(included)} " in f" {' '.join(whole)} ", path


def test_parts_are_read_in_document_order_and_nested_ones_once() -> None:
    html = (
        f"<p class=b>{LONG}</p><div class=a>one <div class=a>two <p class=b>three</p></div></div><i>left</i>"
    )

    assert content(include=".a, .b").text_of_html(URL, html) == f"{LONG} one two three"


def test_excluded_parts_separate_words_as_they_do_on_the_screen() -> None:
    html = f"<p>in<b class=x>no</b>side<div class=x>no</div>{LONG}"

    assert content(exclude=".x").text_of_html(URL, html) == f"inside {LONG}"


def test_exclusion_is_stronger_than_inclusion() -> None:
    html = f"<main>{LONG} <p class=x>no <i class=in>no</i></p></main><div class=x><main>no</main></div>"

    assert content(include="main, .in", exclude=".x").text_of_html(URL, html) == LONG
    assert content(exclude="body").text_of_html(URL, html) == text_of_html(html)


def test_what_stands_after_the_end_of_the_page_can_be_chosen() -> None:
    html = f"<html><body><p>first</p></body></html><div class=a>{LONG}</div>"

    assert content(include=".a").text_of_html(URL, html) == LONG
    assert content(exclude=".a", include="*").text_of_html(URL, f"{html}<p>{OTHER}") == f"first {OTHER}"


def test_a_choice_of_too_few_words_is_the_whole_body() -> None:
    few = " ".join(LONG.split()[1:])
    html = "<nav>{1}</nav><main>{0}</main>"

    assert content(include="main").text_of_html(URL, html.format(few, OTHER)) == f"{OTHER} {few}"
    assert content(include="main").text_of_html(URL, html.format(LONG, OTHER)) == LONG
    assert content(exclude="main").text_of_html(URL, html.format(LONG, few)) == f"{few} {LONG}"
    assert content(include=".absent").text_of_html(URL, html.format(LONG, OTHER)) == f"{OTHER} {LONG}"


@pytest.mark.parametrize("mark", ["•", "|", "— »"])
def test_signs_are_no_words(mark: str) -> None:
    signs = f"{mark} " * 10 * MIN_WORDS
    few = " ".join(LONG.split()[1:])
    html = "<p>{1}</p><main>{0}</main>"

    assert content(include="main").text_of_html(URL, html.format(signs, OTHER)).startswith(OTHER)
    assert OTHER in content(include="main").text_of_html(URL, html.format(signs + few, OTHER))
    assert OTHER not in content(include="main").text_of_html(URL, html.format(signs + LONG, OTHER))


def test_words_are_counted_in_scripts_without_spaces() -> None:
    chinese = "近似重复的网页在抓取的时候应该被识别出来以免浪费带宽和时间"

    assert content(include="main").text_of_html(URL, f"<nav>{OTHER}</nav><main>{chinese}</main>") == chinese


@given(st.sampled_from(FILES), st.sampled_from([".no-such-class", "x-nothing", "#nowhere", "p > html"]))
@settings(max_examples=20, deadline=None)
def test_to_exclude_nothing_is_to_read_the_body(path: Path, nothing: str) -> None:
    data = path.read_bytes()

    assert content(exclude=nothing).text_of_html(URL, data) == text_of_bytes(data)


ELEMENTS = st.recursive(
    st.text(alphabet="ab <&é\u00ad", max_size=6).map(lambda text: text.replace("<", "&lt;")),
    lambda inner: st.tuples(
        st.sampled_from(["p", "b", "div", "nav", "main", "script", "span"]),
        st.sampled_from(["", " class=x", " class=y"]),
        st.lists(inner, max_size=4),
    ).map(lambda made: f"<{made[0]}{made[1]}>{''.join(made[2])}</{made[0]}>"),
    max_leaves=20,
)


@given(ELEMENTS, st.sampled_from(MODES), st.sampled_from([None, "include", "exclude"]))
@settings(deadline=None)
def test_no_tree_is_changed(html: str, mode: str, kind: str | None) -> None:
    root = parse(f"<body>{html}<p class=y>{LONG}")
    assert root is not None
    before = etree.tostring(root)
    selectors = {"*": {kind: ".x"}} if kind else {}

    first = Content(mode, selectors).text(URL, root)

    assert etree.tostring(root) == before
    assert Content(mode, selectors).text(URL, root) == first


@given(ELEMENTS)
@settings(deadline=None)
def test_excluding_is_reading_a_tree_without_the_excluded(html: str) -> None:
    html = f"<body>{html}<p class=y>{LONG}"
    root, stripped = parse(html), parse(html)
    assert root is not None
    assert stripped is not None
    for element in stripped.findall(".//*[@class='x']"):
        # A skipped element of the same kind, inline or not, in the place of each.
        inline = element.tag in {"b", "span", "script"}
        tail = element.tail
        element.clear()
        element.tag, element.tail = ("script" if inline else "svg"), tail

    assert content(exclude=".x").text(URL, root) == text_of_tree(stripped)


# Hosts


@pytest.mark.parametrize(
    ("url", "chosen"),
    [
        ("http://a.example/", "a"),
        ("https://user@WWW.A.Example:8080/x", "a"),
        ("http://deep.b.a.example/", "b"),
        ("http://b.a.example./", "b"),
        ("http://not-a.example/", "every"),
        ("http://plain.a.example/", "body"),
        ("file:///tmp/a.html", "every"),
        ("http://xn--kse-qla.example/", "cheese"),
        ("http://käse.example/", "cheese"),
        ("no url [at all", "every"),
        ("http://[", "every"),
    ],
)
def test_the_longest_host_that_fits_decides(url: str, chosen: str) -> None:
    names = ("a", "b", "every", "cheese")
    html = "".join(f"<div id={name}>{LONG} {name}</div>" for name in names)
    hosts = {"A.example": "a", "b.a.example": "b", "*": "every", "käse.example": "cheese"}
    made = Content(
        selectors={host: {"include": f"#{name}"} for host, name in hosts.items()} | {"plain.a.example": {}}
    )

    text = made.text_of_html(url, html)

    assert text == (text_of_html(html) if chosen == "body" else f"{LONG} {chosen}")


def test_an_entry_without_selectors_stands_against_every_broader_one() -> None:
    html = f"<main>{LONG}</main><p>{OTHER}</p>"
    made = Content(
        selectors={
            "a.example": {"include": "main"},
            "b.a.example": {},
            "c.b.a.example": {},
            "d.c.b.a.example": {"include": "p"},
            "other.example": {},
        }
    )

    read = {
        host: made.text_of_html(f"http://{host}/", html)
        for host in ("a.example", "b.a.example", "c.b.a.example", "d.c.b.a.example", "x.other.example")
    }

    assert list(read.values()) == [LONG, f"{LONG} {OTHER}", f"{LONG} {OTHER}", OTHER, f"{LONG} {OTHER}"]


@pytest.mark.parametrize(
    ("selectors", "message"),
    [
        ({"a.example": {"include": "div["}}, r"'a\.example'.*include 'div\['.*Expected"),
        ({"a.example": {"exclude": ""}}, "'a.example'.*exclude ''"),
        ({"a.example": {"include": "a::text"}}, "a::text.*[Pp]seudo"),
        ({"a.example": {"include": "a:no-such"}}, "a:no-such"),
        ({"a.example": {"include": ["a"]}}, r"must be a CSS selector, not \['a'\]"),
        ({"a.example": {"includes": "a"}}, "must be a mapping with 'include' or 'exclude'"),
        ({"a.example": "a"}, "must be a mapping"),
        ({"a.example": None}, "must be a mapping"),
        ({"http://a.example": {}}, "is no host"),
        ({"a.example:80": {}}, "is no host"),
        ({"a.example/x": {}}, "is no host"),
        ({"*.a.example": {}}, "is no host"),
        ({"": {}}, "is no host"),
        ({7: {}}, "7 is no host"),
        ({"a.example": {}, "A.EXAMPLE": {}}, "two entries for the host 'a.example'"),
    ],
)
def test_wrong_selectors_are_named(selectors: dict[str, dict[str, str]], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Content(selectors=selectors)


def test_an_unknown_mode_is_named() -> None:
    with pytest.raises(ConfigurationError, match="body, main, not 'article'"):
        Content("article")


# Hostile pages


@pytest.mark.timeout(20)
def test_pages_deeper_than_any_real_one_are_read_whole() -> None:
    html = f"<nav>{OTHER}</nav><main><p>{LONG}</p>{'<div>' * 1000}{'<b>x</b>' * 50_000}"

    assert Content(MAIN).text_of_html(URL, html) == text_of_html(html)


@pytest.mark.timeout(20)
def test_what_is_included_is_found_outermost_however_deep_it_stands() -> None:
    html = f"{'<div>' * 1000}<p>{LONG}</p>{'<p>x</p>' * 50_000}"

    assert content(include="p").text_of_html(URL, html).split() == LONG.split() + ["x"] * 50_000


# Names


def test_names_tell_ways_of_reading_apart_and_nothing_else() -> None:
    one = {"a.example": {"include": "p", "exclude": "i"}, "b.example": {"include": "b"}}
    same = {"B.example": {"include": "b"}, "a.example": {"exclude": "i", "include": "p"}}

    assert [Content(mode).name for mode in MODES] == ["body+alt", "main+alt"]
    assert Content(selectors=one).name == Content(selectors=same).name
    assert Content(selectors=one).name != Content(selectors=one | {"b.example": {"include": "i"}}).name
    assert Content(MAIN, one).name == Content(selectors=one).name.replace("body", "main")
    # What changes nothing is no other way of reading.
    nothing: dict[str, dict[str, str]] = {"*": {}, "a.example": {}, "b.a.example": {}}
    assert [Content(mode, nothing).name for mode in MODES] == ["body+alt", "main+alt"]
    assert Content(selectors=one).name == Content(selectors=one | {"*": {}, "c.example": {}}).name
    for host in ("x.a.example", "y.x.a.example"):
        assert Content(selectors=one).name != Content(selectors=one | {host: {}}).name
    both = one | {"x.a.example": {}}
    assert Content(selectors=both).name == Content(selectors=both | {"y.x.a.example": {}}).name
    every = {"*": {"include": "p"}}
    assert Content(selectors=every).name != Content(selectors=every | {"a.example": {}}).name
    # Written into databases: must not change from one version to the next.
    assert Content(selectors={"a.example": {"include": "main"}}).name == "body+alt+selectors-df50ad7c"
    assert Content().name == Scheme().content
    assert Content(alt_texts=False).name == "body"
    assert (
        Content(selectors={"a.example": {"include": "main"}}, alt_texts=False).name
        == "body+selectors-df50ad7c"
    )
