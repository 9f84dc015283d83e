"""A page over the budget passes unjudged, before it is parsed; one at the limit is judged as ever."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from hypothesis import example, given
from hypothesis import strategies as st
from scrapy.http import HtmlResponse, Response

from neardup import get_verdict, native
from neardup.cli.main import main
from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.verdict import Kind
from neardup.errors import ConfigurationError, PageTooLarge
from neardup.fingerprint.reader import Reader
from neardup.fingerprint.scheme import Scheme
from neardup.store.store import Store
from neardup.text import limits as limits_module
from neardup.text.content import Content
from neardup.text.features import Features
from neardup.text.limits import Limits, overview
from neardup.text.visible_text import text_of_bytes, text_of_html
from tests.support.crawling import Page, crawl, serve
from tests.support.places import PAGES
from tests.support.real_pages import real_pages
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


URL = "http://a.example/"
LIMITS = Limits(page_bytes=1000, tags=20, attributes=5, words=40)


class Unparsed:
    """A response that counts how often it is decoded and parsed."""

    url = URL

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._response = HtmlResponse(URL, body=body, encoding="utf-8")
        self.decoded = self.parsed = 0

    @property
    def text(self) -> str:
        self.decoded += 1
        return self._response.text

    @property
    def selector(self) -> Any:
        self.parsed += 1
        return self._response.selector


def reader(limits: Limits = LIMITS) -> Reader:
    return Reader(Content(), Features(), limits=limits)


def element(attributes: int, before: str = "", value: str = "=1", separator: str = " ") -> str:
    return f"<p{before}{separator}" + separator.join(f"a{n}{value}" for n in range(attributes)) + ">x"


def words(number: int) -> str:
    return " ".join(f"w{n}" for n in range(number))


# Name: a page at the limit and one over it; whether what is over it is decoded, and parsed.
EDGES = {
    "page_bytes": ("x" * 1000, "x" * 1001, False, False),
    "page_bytes beyond ASCII": ("é" * 500, "é" * 500 + "x", False, False),
    "tags": ("<b>x</b>" * 10, "<b>x</b>" * 10 + "<", True, False),
    "attributes": (element(5), element(6), True, False),
    "attributes without values": (element(5, value=""), element(6, value=""), True, False),
    "attributes, other separators": (
        element(5, value="", separator="/"), element(6, value="", separator="\n"), True, False
    ),
    "attributes after a value with >": (element(4, ' x="<b>"'), element(5, ' x="<b>"'), True, False),
    "attributes after a value with > in other quotes": (
        element(4, " x='>'"), element(5, " x='>'"), True, False
    ),
    "attributes after spaces": (element(4, ' x = ">"'), element(5, ' x = ">"'), True, False),
    "attributes after a NUL": (element(4, ' x=\0">"'), element(5, ' x=\0">"'), True, False),
    "attributes, not those of all elements": (element(5) * 10, element(5) * 9 + element(6), True, False),
    "words": (words(40), words(41), True, True),
    "words without spaces": ("語" * 41, "語" * 42, True, True),
    "words beyond ASCII": (words(40).replace("w", "é"), words(41).replace("w", "é"), True, True),
    "words between signs": (words(40).replace(" ", ","), words(41).replace(" ", ","), True, True),
    "words between other signs": (words(40).replace(" ", "、"), words(41).replace(" ", "、"), True, True),
}  # fmt: skip


@pytest.mark.parametrize("name", EDGES)
def test_edges(name: str) -> None:
    within, over, decoded, parsed = EDGES[name]
    limit = name.split(maxsplit=1)[0].rstrip(",")
    fits, hostile = Unparsed(within.encode()), Unparsed(over.encode())

    assert reader().read_response(fits).distinct_words > 0
    assert reader().read_html(URL, within).distinct_words > 0
    with pytest.raises(PageTooLarge, match=f"NEARDUP_MAX_{limit.upper()} is "):
        reader().read_response(hostile)
    for html in (over, over.encode()):
        with pytest.raises(PageTooLarge) as raised:
            reader().read_html(URL, html)
        assert raised.value.limit == limit
    assert fits.parsed == 1
    assert bool(hostile.decoded) is decoded
    assert bool(hostile.parsed) is parsed


def test_attributes_of_many_elements_are_counted_no_further_than_a_thousand_times_the_limit() -> None:
    limits = Limits(attributes=2)
    page = element(2) * 1000

    assert reader(limits).read_html(URL, page).distinct_words == 1
    with pytest.raises(PageTooLarge, match="MAX_ATTRIBUTES"):
        reader(limits).read_html(URL, page + element(1, value='="a b c d"'))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8"])
def test_attributes_are_found_in_every_encoding(encoding: str) -> None:
    response = HtmlResponse(URL, body=element(201).encode(encoding), encoding=encoding)

    with pytest.raises(PageTooLarge, match="201 attributes"):
        reader(Limits()).read_response(response)


IN_PYTHON = python_twin(limits_module).overview
with_native = pytest.mark.skipif(not native.available, reason=f"without the native core ({native.reason})")
SIGNS = [
    "<",
    ">",
    "=",
    '"',
    "'",
    " ",
    "\u2003",
    "\x1f",
    "\n",
    "a",
    "Z",
    "@",
    "[",
    "é",
    "入",
    "𝔘",
    "<a b=",
    '="',
    "='",
    "/",
]


@with_native
@pytest.mark.parametrize("prefix", ["", "é", "入", "𝔘"], ids=["bytes", "Latin-1", "2 bytes", "4 bytes"])
@given(before=st.integers(0, 130), signs=st.lists(st.sampled_from([*SIGNS, "\0"])), most=st.integers(1, 4))
@example(before=0, signs=["<a", "bcde", "f"], most=2)
@example(before=0, signs=["<a", "bcde"], most=2)
@example(before=0, signs=["<a", "bcd", ">"], most=2)
@example(before=0, signs=["<<", "a", "bcde"], most=2)
@example(before=60, signs=["<a", " b c ", "<", "\0", ">"], most=1)
def test_the_native_search_for_attributes_is_that_in_python(
    prefix: str, before: int, signs: list[str], most: int
) -> None:
    html = prefix + "x" * before + "".join(signs)

    assert overview(html, most) == IN_PYTHON(html, most)


@given(
    signs=st.lists(
        st.sampled_from([*SIGNS, *"<= \"'/", 'a="', "<a ", "b ", "c/", "d='", "\f", "\r"]), max_size=40
    )
)
def test_no_tag_with_more_attributes_is_missed(signs: list[str]) -> None:
    """The attributes are those that libxml2 finds, however broken the tags are."""
    html = "".join(signs)
    for most in (1, 2, 3):
        try:
            Limits(attributes=most)._count_attributes(html)
        except PageTooLarge:
            assert overview(html, most)[2]
            assert IN_PYTHON(html, most)[2]


@pytest.mark.parametrize(
    "html",
    [
        # What pages of today are full of: long values, values with >, scripts that compare.
        f'<a href="{"x" * 5000}">',
        f'<a data=\'{{"a": [{"1, " * 100}]}}\' onclick="x => y > z">',
        f"<script>for(i=0;i<n;i++){{{'a=b+c;' * 1000}}}</script>",
        "<i x='>'>" * 1000,
    ],
)
def test_long_tags_of_few_attributes_are_not_counted_by_a_second_parser(html: str) -> None:
    assert not overview(html, Limits().attributes)[2]
    assert not IN_PYTHON(html, Limits().attributes)[2]


@with_native
@pytest.mark.parametrize("most", [1, 10, 200])
def test_it_is_on_real_pages(most: int) -> None:
    pages = [path.read_text(errors="replace") for path in real_pages()]

    found = [overview(page, most) for page in pages]

    assert found == [IN_PYTHON(page, most) for page in pages]
    assert any(many for _, _, many in found) or most == 200


def options(name: str, value: Any) -> DetectorOptions:
    return DetectorOptions(**{name: value})


def test_real_pages_are_within_the_limits() -> None:
    limits = Limits()
    for path in PAGES.rglob("*.html"):
        limits.check_html(path.read_text(errors="replace"))


def test_an_unjudged_page_is_forgotten_and_what_was_known_of_it_stays() -> None:
    detector = Detector(DetectorOptions(max_words=100))
    detector.examine_text(URL, words(50))

    over = detector.examine_text(URL, words(101))

    assert (over.kind, over.limit, over.page_id, over.follow) == (Kind.UNJUDGED, "words", None, True)
    assert detector.examine_text(URL, words(50)).kind is Kind.UNCHANGED
    assert detector.examine_text(f"{URL}copy", words(50)).kind is Kind.DUPLICATE
    # Not compared by their beginnings.
    assert detector.examine_text(f"{URL}long", words(101)).kind is Kind.UNJUDGED
    assert len(detector.pages) == 2


def test_offline_commands_have_the_limits() -> None:
    with pytest.raises(PageTooLarge, match="MAX_PAGE_BYTES"):
        text_of_bytes(b"x" * 3_500_001)
    with pytest.raises(PageTooLarge, match="MAX_ATTRIBUTES"):
        text_of_html(element(201))


@pytest.mark.parametrize("name", ["max_page_bytes", "max_tags", "max_attributes", "max_words"])
def test_a_limit_is_at_least_1(name: str) -> None:
    assert options(name, 1)
    with pytest.raises(ConfigurationError, match=f"^{name} must be at least 1, not 0"):
        options(name, 0)


def test_check_says_what_is_too_large(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "page.html").write_text(element(201))
    url = f"sqlite:///{tmp_path}/n.db"
    Store.open(url, scheme=str(Scheme())).close()

    with pytest.raises(SystemExit, match="1"):
        main(["check", "--database", url, str(tmp_path / "page.html")])

    assert "too large to be judged: 201 attributes in an element" in capsys.readouterr().err


class Items(scrapy.Spider):
    """An item and a request of every page, and the page's verdict."""

    name = "items"

    def parse(self, response: Response) -> Iterator[Any]:
        verdict = get_verdict(response)
        yield {"url": response.url, "html": response.text, "kind": verdict and verdict.kind}
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)


@pytest.mark.parametrize("by_items", [False, True])
def test_a_crawl_leaves_it_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture, *, by_items: bool) -> None:
    settings: dict[str, Any] = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
        "NEARDUP_ACTION": "drop",
        "NEARDUP_MAX_TAGS": 50,
        "NEARDUP_MAX_WORDS": "100",
    }
    settings |= {"NEARDUP_CONTENT_FIELD": "html"} if by_items else {"NEARDUP_VERDICT_FIELD": "near"}
    with serve() as site:
        large = f"<p>{words(101)}<a href=/3>next</a>".encode()
        site.pages["/1"], site.pages["/2"] = Page(large), Page(large)
        site.pages["/3"] = Page(b"<b>x</b>" * 26 + b"<a href=/4>next</a>")
        site.pages["/4"] = Page(f"<p>{words(80)}".encode())
        with caplog.at_level(logging.WARNING):
            done = crawl(Items, settings, start_urls=[f"{site.url}/1", f"{site.url}/2"])

    assert sorted(item["url"][-2:] for item in done.items) == ["/1", "/2", "/3", "/4"]
    assert ["near" in item for item in done.items].count(True) == (0 if by_items else 1)
    assert [done.neardup(f"unjudged{limit}") for limit in ("", "/words", "/tags")] == [3, 2, 1]
    assert (done.neardup("pages"), done.neardup("new")) == (1, 1)
    warnings = [record.message for record in caplog.records if "passes untouched" in record.message]
    assert len(warnings) == 1
    assert warnings[0].startswith(
        f"neardup: {site.url}/1 passes untouched: too large to be judged: so many words"
    )
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        assert [page.url[-2:] for page in store.known_pages()] == ["/4"]
