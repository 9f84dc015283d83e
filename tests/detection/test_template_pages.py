"""One error page must not swallow a crawl: a site of real pages whose missing pages answer 200 with a page of
the same template.

And pages that are mostly template must not be taken for each other, once it is learned.
"""

from __future__ import annotations

import logging
import random
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import scrapy

from neardup.detection import snapshot
from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.detector_arrays import arrays_of, restore_arrays
from neardup.detection.site_templates import WINDOW
from neardup.detection.suspect_clusters import FEWEST_ADDRESSES
from neardup.detection.verdict import Kind, Verdict
from neardup.fingerprint.scheme import Scheme
from neardup.store import reports
from neardup.store.store import Store
from neardup.text.content import BODY, LEARNED, Content
from neardup.text.words import words
from tests.support.crawling import Page, Site, crawl, serve
from tests.support.places import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@pytest.mark.parametrize("content", ["body", "main", "learned"])
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


# The learned template

HOST = "http://a.example"
LONG = WINDOW + 20
"""Pages with a text longer than their frame: no duplicates of each other, with or without a template."""
SHORT = 40
"""Pages with a sentence of their own each, in the same frame."""


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


def judged(detector: Detector, pages: dict[str, str]) -> list[Verdict]:
    return [detector.examine_html(f"{HOST}{path}", html) for path, html in pages.items()]


def below(folder: str, pages: dict[str, str]) -> dict[str, str]:
    return {path: html for path, html in pages.items() if path.startswith(folder)}


def duplicates(verdicts: list[Verdict]) -> int:
    return sum(verdict.is_duplicate for verdict in verdicts)


def test_pages_of_one_template_are_told_apart_once_it_is_learned() -> None:
    pages = items()
    body, learned = (Detector(DetectorOptions(content=content)) for content in (BODY, LEARNED))

    assert duplicates(judged(body, below("/long", pages))) == 0
    assert duplicates(judged(learned, below("/long", pages))) == 0
    assert duplicates(judged(body, below("/short", pages))) > SHORT // 3
    assert duplicates(judged(learned, below("/short", pages))) == 0


def test_near_duplicates_are_found_under_a_learned_template() -> None:
    pages = items()
    detector = Detector(DetectorOptions(content=LEARNED))
    judged(detector, pages)
    long, short = f"/long/{LONG - 1}.html", f"/short/{SHORT - 1}.html"

    copy = detector.examine_html(f"{HOST}/copy.html", pages[short])
    changed = detector.examine_html(
        f"{HOST}/changed.html", pages[long].replace("</p>", " Last changed today.</p>", 1)
    )

    assert (copy.canonical_url, changed.canonical_url) == (f"{HOST}{short}", f"{HOST}{long}")


def test_a_page_visited_again_and_again_is_not_template() -> None:
    pages = items()
    detector = Detector(DetectorOptions(content=LEARNED))
    judged(detector, below("/long", pages))
    first = f"{HOST}/short/0.html"
    for _ in range(2 * WINDOW):
        detector.examine_html(first, pages["/short/0.html"])
        judged(detector, {"/long/0.html": pages["/long/0.html"]})

    other = detector.examine_html(f"{HOST}/copy.html", pages["/short/0.html"])

    assert other.canonical_url == first
    assert duplicates(judged(detector, {"/short/1.html": pages["/short/1.html"]})) == 0


def test_a_snapshot_brings_the_template_back(tmp_path: Path) -> None:
    pages = items()
    options = DetectorOptions(content=LEARNED)
    first, again = Detector(options), Detector(options)
    judged(first, below("/long", pages))
    snapshot.save(tmp_path / "s", kind="test", meta={}, arrays=arrays_of(first))
    restore_arrays(again, snapshot.load(tmp_path / "s", kind="test").arrays)

    assert duplicates(judged(again, below("/short", pages))) == 0


def test_the_next_crawl_knows_the_template(tmp_path: Path) -> None:
    pages = items()
    settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_CONTENT": LEARNED}
    at = [{"NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/{name}/n.db"} for name in ("a", "b")]
    (tmp_path / "a").mkdir()
    with serve() as served:
        for folder in ("/long", "/short"):
            some = below(folder, pages)
            anchors = " ".join(f'<a class="listed" href="{path}">.</a>' for path in some)
            served.pages[folder] = Page(f"<body>{anchors}".encode())
            served.pages |= {path: Page(html.encode()) for path, html in some.items()}
        first = crawl(FolderSpider, settings | at[0], start=f"{served.url}/long")
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        second = crawl(FolderSpider, settings | at[0], start=f"{served.url}/short")
        without = crawl(
            FolderSpider, settings | at[1] | {"NEARDUP_SNAPSHOT": False}, start=f"{served.url}/short"
        )

    assert (first.neardup("new"), first.neardup("duplicates")) == (LONG, 0)
    assert (second.neardup("new"), second.neardup("duplicates")) == (SHORT, 0)
    assert without.neardup("duplicates") > SHORT // 3
