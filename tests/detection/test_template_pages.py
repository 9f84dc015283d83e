"""One error page must not swallow a crawl: a site of real pages whose missing pages answer 200 with a page of
the same template.

And pages that are mostly template must not be taken for each other, once the template is known.
"""

from __future__ import annotations

import logging
import random
import re
from typing import TYPE_CHECKING, Any

import pytest
import scrapy

from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.rule import Evidence
from neardup.detection.suspect_clusters import FEWEST_ADDRESSES
from neardup.detection.verdict import Kind, Verdict
from neardup.fingerprint.scheme import Scheme
from neardup.store import reports
from neardup.store.store import Store
from neardup.text.content import Content
from neardup.text.words import words
from tests.support.crawling import Page, Site, crawl, serve
from tests.support.places import PAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy.http import Response

MISSING = [f"/gone/{word}-{number}.html" for number, word in enumerate(("tools", "guide", "api") * 10)]
assert len(MISSING) > FEWEST_ADDRESSES

_CONTENT = re.compile(
    r'(?<=<div class="content" role="main">).*?(?=</div>\s*<div class="bottomnav")', re.DOTALL
)
_MESSAGE = """<h1>Not found</h1><p>There is no page {path} on this server. It may have been moved, or it has
never been here. Please check the address for mistakes, try the search at the top of every page, or go back to
the table of contents and look for it from there.
If you think that this is an error of ours, write to the list of the users.</p>"""


class FolderSpider(scrapy.Spider):
    name = "folder"

    def __init__(self, start: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start]

    def parse(self, response: Response) -> Iterator[Any]:
        for href in response.css("a.listed::attr(href)").getall():
            yield response.follow(href)


@pytest.fixture
def site() -> Iterator[Site]:
    """The pages of one version of the Clang manual, and links to pages that are gone, between them."""
    with serve() as served:
        served.add_folder(PAGES / "clang-13")
        real = list(served.pages)
        frame = served.pages["/ClangCheck.html"].body.decode()
        for path in MISSING:
            page = _CONTENT.sub(_MESSAGE.format(path=path), frame, count=1)
            assert path in page
            served.pages[path] = Page(page.encode(), headers={"Content-Type": "text/html"})
        links = [link for pair in zip(MISSING, real * 3, strict=False) for link in pair]
        anchors = "".join(f'<a class="listed" href="{link}">entry {i}</a> ' for i, link in enumerate(links))
        served.pages["/"] = Page(
            f"<body><p>{anchors}</p></body>".encode(), headers={"Content-Type": "text/html"}
        )
        yield served


def test_the_error_page_is_flagged_once_and_real_pages_are_not_swallowed(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = f"sqlite:///{tmp_path}/n.db"
    settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url}

    done = crawl(FolderSpider, settings, start=f"{site.url}/")

    assert done.neardup("duplicates") == len(MISSING) - 1
    assert done.neardup("flagged") == 1
    warnings = [record.message for record in caplog.records if "addresses" in record.message]
    assert len(warnings) == 1
    assert f"{site.url}{MISSING[0]} has near-duplicates at {FEWEST_ADDRESSES} addresses" in warnings[0]
    with Store.open(url, scheme=str(Scheme())) as store, store.reading() as connection:
        (flagged,) = reports.largest_clusters(connection, reports.Filters(), limit=10, flagged=True)
    assert (flagged.canonical_url, flagged.duplicates) == (f"{site.url}{MISSING[0]}", len(MISSING) - 1)


@pytest.mark.parametrize("content", ["body", "main"])
def test_every_real_page_is_new(site: Site, tmp_path: Path, content: str) -> None:
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
        "NEARDUP_CONTENT": content,
    }

    done = crawl(FolderSpider, settings, start=f"{site.url}/")

    real = [path for path in site.pages if path not in MISSING]
    assert done.neardup(Kind.NEW.value) >= len(real)
    assert done.neardup("pages") == len(site.pages)


# Pages that are mostly template

HOST = "http://a.example"
LONG = 120
"""Pages with a text longer than their frame: no duplicates of each other."""
SHORT = 40
"""Pages with a sentence of their own each, in the same frame and under the same headline."""


def items() -> dict[str, str]:
    """Pages by path: a real page around sentences of other real pages. No sentence is on more than some of a
    hundred pages.
    """
    found: dict[frozenset[str], str] = {}
    for path in sorted([*PAGES.glob("clang-13/*.html"), *PAGES.glob("apache/**/*.html")]):
        if path.name != "index.html":
            for sentence in re.split(r"(?<=[.!?]) ", Content().text_of_html("", path.read_bytes())):
                found.setdefault(frozenset(sentence.split()), sentence)
    sentences = list(found.values())
    # Not so short that too few places of a sketch are their own.
    short = [sentence for sentence in sentences if 19 <= len(words(sentence)) <= 27][:SHORT]
    others = [sentence for sentence in sentences if sentence not in short and len(words(sentence)) >= 8]
    assert len(short) == SHORT
    chance = random.Random(0)
    texts = {f"/long/{number}.html": " ".join(chance.sample(others, 10)) for number in range(LONG)}
    texts |= {f"/short/{number}.html": sentence for number, sentence in enumerate(short)}
    frame = (PAGES / "clang-13" / "index.html").read_text()
    start = '<div class="content" role="main">'
    assert start in frame
    return {path: frame.replace(start, f"{start}<p>{text}</p>") for path, text in texts.items()}


def below(folder: str, pages: dict[str, str]) -> dict[str, str]:
    return {path: html for path, html in pages.items() if path.startswith(folder)}


def shuffled(pages: dict[str, str]) -> dict[str, str]:
    order = list(pages)
    random.Random(1).shuffle(order)
    return {path: pages[path] for path in order}


def crawled(detector: Detector, pages: dict[str, str]) -> tuple[int, dict[str, Verdict]]:
    """How many pages were duplicates at first, and the last verdict of each, by URL."""
    last: dict[str, Verdict] = {}
    first = 0
    for path, html in pages.items():
        verdict = detector.examine_html(f"{HOST}{path}", html)
        first += verdict.is_duplicate
        for again in (verdict, *detector.judge_again(100)):
            last[again.url] = again
    detector.doubts.all_are_due()
    last |= {again.url: again for again in detector.judge_again(10_000)}
    return first, last


def duplicates(verdicts: dict[str, Verdict]) -> int:
    return sum(verdict.is_duplicate for verdict in verdicts.values())


def test_pages_of_one_template_that_came_first_are_judged_again() -> None:
    first, last = crawled(Detector(DetectorOptions()), below("/short", items()))

    assert first >= 5
    assert duplicates(last) == 0
    assert sum(verdict.again for verdict in last.values()) == first
    assert all(verdict.kind is Kind.NEW and verdict.follow for verdict in last.values())


@pytest.mark.parametrize("order", [dict, shuffled], ids=["one by one", "mixed"])
def test_pages_of_one_template_are_told_apart(order: Callable[[dict[str, str]], dict[str, str]]) -> None:
    """Two of the forty have a sentence of which too little is rare, and the whole text decides."""
    _, last = crawled(Detector(DetectorOptions()), order(items()))

    assert len(last) == LONG + SHORT
    assert duplicates(last) <= 2
    assert all(verdict.evidence is Evidence.WHOLE for verdict in last.values() if verdict.is_duplicate)


def test_near_duplicates_are_found_under_a_template() -> None:
    pages = items()
    detector = Detector(DetectorOptions())
    crawled(detector, pages)
    long, short = f"/long/{LONG - 1}.html", f"/short/{SHORT - 1}.html"

    copy = detector.examine_html(f"{HOST}/copy.html", pages[short])
    changed = detector.examine_html(
        f"{HOST}/changed.html", pages[long].replace("</p>", " Last changed today.</p>", 1)
    )

    assert (copy.canonical_url, changed.canonical_url) == (f"{HOST}{short}", f"{HOST}{long}")
    assert (copy.evidence, changed.evidence) == (Evidence.TEXT, Evidence.RARE)


def test_a_page_visited_again_and_again_is_not_template() -> None:
    pages = items()
    detector = Detector(DetectorOptions())
    crawled(detector, below("/long", pages))
    first = f"{HOST}/short/0.html"
    for number in range(100):
        detector.examine_html(first, pages["/short/0.html"])
        detector.examine_html(f"{HOST}/copy/{number}.html", pages["/short/0.html"])

    changed = detector.examine_html(
        f"{HOST}/changed.html", pages["/short/0.html"].replace("</p>", " now</p>", 1)
    )

    assert changed.canonical_url == first
    other = detector.examine_html(f"{HOST}/short/1.html", pages["/short/1.html"])
    assert not other.is_duplicate


@pytest.mark.parametrize("copies", [5, 60, 150])
def test_copies_in_which_much_changes_stay_copies_however_many(copies: int) -> None:
    """A sidebar of 15 words that changes with every visit, on a page without a headline.

    What the copies share stands on more pages than the limit, and is no template all the same.
    """
    real = (PAGES / "clang-13" / "IntroductionToTheClangAST.html").read_text()
    real = re.sub("(?s)<title>.*?</title>", "", real).replace("<h1", "<h2").replace("</h1", "</h2")
    draw = random.Random(0)
    pages = {
        f"/ast/{number}": real.replace(
            "</body>", f"<p>{' '.join(f'w{draw.randrange(10**6)}' for _ in range(15))}</p></body>"
        )
        for number in range(copies)
    }
    detector = Detector(DetectorOptions())
    crawled(detector, below("/long", items()))

    _, last = crawled(detector, pages)

    assert {verdict.canonical_url for verdict in last.values()} == {None, f"{HOST}/ast/0"}
    assert duplicates(last) == copies - 1
    # Sure as long as the copies are few.
    assert {verdict.evidence for verdict in last.values()} <= {None, Evidence.RARE, Evidence.WHOLE}
