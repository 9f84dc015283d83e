"""What ``drop`` and ``skip`` leave alone: whatever a page has that is no copy, on whole sites."""

from __future__ import annotations

import itertools
import logging
import random
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from scrapy.http import HtmlResponse
from scrapy.utils.test import get_crawler

from neardup.detection.rule import KNOWN_PAGES, Evidence
from neardup.detection.suspect_clusters import FEWEST_ADDRESSES
from neardup.scrapy import left_out
from neardup.scrapy.had import Had
from neardup.scrapy.links import AGAIN
from neardup.scrapy.options import Action
from neardup.scrapy.policy import Policy
from tests.support.crawling import Page, Site, crawl
from tests.support.sites.spiders import BREADTH_FIRST
from tests.support.spiders import OTHER, WORDS, LinkSpider
from tests.support.verdicts import duplicate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy.http import Request, Response

pytestmark = pytest.mark.slow

ACTIONS = ["drop", "skip"]
IN_ORDER = BREADTH_FIRST | {"CONCURRENT_REQUESTS": 1}
PHOTOS = 20


def prose(seed: object, words: int) -> str:
    chosen = random.Random(repr(seed))
    return " ".join("".join(chosen.choices("aeioulmnrst", k=5)) for _ in range(words))


def add_texts(site: Site) -> list[str]:
    """Add so many pages of their own that the site is known; returns their paths."""
    texts = [f"/text/{number}" for number in range(KNOWN_PAGES)]
    for text in texts:
        body = f"<title>{text}</title><h1>{prose(text, 3)}</h1><p>{prose(text, 100)}</p>"
        site.pages[text] = Page(body.encode())
    return texts


def paths(items: list[Any], site: Site) -> set[str]:
    return {item["url"].removeprefix(site.url) for item in items}


class Counting(Page):
    """A page that counts how often it is asked for, in six digits."""

    _visits = itertools.count(100_000)

    @property
    def body(self) -> bytes:
        return self._html + b"<p>%d visits</p>" % next(self._visits)

    @body.setter
    def body(self, html: bytes) -> None:
        self._html = html


@pytest.mark.parametrize("action", ACTIONS)
class TestPagesOfOneText:
    def crawled(self, site: Site, settings: dict[str, Any], action: str) -> set[str]:
        done = crawl(LinkSpider, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")
        return paths(done.items, site)

    def test_adverts_that_differ_in_an_amount(
        self, site: Site, settings: dict[str, Any], action: str
    ) -> None:
        flats = [f"/flat/{number}" for number in range(9)]
        copies = [f"{flat}?sid=7" for flat in flats]
        texts = add_texts(site)
        site.add("/", OTHER, *texts, *flats, *copies)
        for number, flat in enumerate(flats):
            let = f"Flat {number // 3}, {40 + number // 3} m², {850 + 5 * number:,}.00 € a month."
            body = f"<title>To let</title><h1>A flat to let</h1><p>{prose('flat', 400)}</p><p>{let}</p>"
            site.pages[flat] = site.pages[f"{flat}?sid=7"] = Page(body.encode())

        found = self.crawled(site, settings, action)

        # Of each flat and its copy, one.
        assert sorted(path.partition("?")[0] for path in found) == sorted(["/", *texts, *flats])

    def test_photos(self, site: Site, settings: dict[str, Any], action: str) -> None:
        pages = [f"/album/{number}" for number in range(PHOTOS)]
        site.add("/", OTHER, *pages)
        for number, page in enumerate(pages):
            site.add(page, f"{WORDS}<img src='/logo.png'><img src='/photos/{number}.jpg'>")

        assert self.crawled(site, settings, action) == {"/", *pages}

    @pytest.mark.parametrize(
        "markup",
        [
            "<img srcset='/photos/{number}.jpg 2x'>",
            "<img src=/dot.gif data-original='/photos/{number}.jpg'>",
            "<video poster='/photos/{number}.jpg'></video>",
            "<b style='background: url(/photos/{number}.jpg)'></b>",
            "<input name=maker value='{maker}'>",
            "<b data-maker={maker}></b>",
            "<noscript><p>Made by {maker}</p></noscript>",
            "<script type='application/ld+json'>{{'maker': '{maker}'}}</script>",
            "<p>The paper: https://papers.example.org/abs/{number}.</p>",
            "<p>More at www.{maker}.example.org</p>",
            "<p>More at WWW.{maker}.EXAMPLE.ORG</p>",
            "<a href='mailto:{maker}@shop.example'>Ask</a>",
        ],
    )
    def test_what_is_not_in_the_text(
        self, site: Site, settings: dict[str, Any], action: str, markup: str
    ) -> None:
        pages = [f"/thing/{number}" for number in range(PHOTOS)]
        site.add("/", OTHER, *pages)
        for number, page in enumerate(pages):
            held = markup.format(number=number, maker=prose(number, 1))
            site.pages[page] = Page(f"<title>Thing</title><p>{WORDS} {held}".encode())

        assert self.crawled(site, settings, action) == {"/", *pages}

    @pytest.mark.parametrize(
        "markup",
        [
            '<script type="application/ld+json">{{"sku": {number}, "url": "{url}"}}</script>',
            '<script type="application/ld+json">{{"sku": {number}, "item": "/thing/?{url}"}}</script>',
            '<script type="application/ld+json">[{{"offers": {{"price": "{number}.90"}}}}]</script>',
            '<script type="application/ld+json">{{"name": "Thing\n", "sku": {number}}}</script>',
            '<script type="application/ld+json">{{"sku": {number},}}</script>',
            '<script type="application/ld+json">{{"item": {{"offers": {{"price": {number}}}}}}}</script>',
            '<script type="application/ld+json">{{"contentUrl": "{site}/v/{number}.mp4"}}</script>',
            '<meta property="og:image" content="/preview/{number}.jpg">',
            '<meta property="og:image" content=""><meta itemprop="image" content="/{number}.jpg">',
            '<link rel="image_src" href="/preview/{number}.jpg">',
            '<b data-sku="47{number}1"></b>',
            '<b class="thing-47{number}1"></b>',
            "<script>show(47{number}1)</script>",
            "<script>plot([3, 1, 4, {number}])</script>",
            '<svg><path d="M3 1L4 {number}"/></svg>',
            '<link rel="me" href="https://map.example/?at=47.0{number}45,15.4{number}33">',
            "<b>&#97{number}2;</b>",
        ],
    )
    def test_numbers_that_are_not_in_the_text(
        self, site: Site, settings: dict[str, Any], action: str, markup: str
    ) -> None:
        pages = [f"/thing/{number}" for number in range(FEWEST_ADDRESSES // 2)]
        copies = [f"{page}?{number}" for number, page in enumerate(pages)]
        site.add("/", OTHER, *pages, *copies)
        for page, copy in zip(pages, copies, strict=True):
            for url in (page, copy):
                number = page.rpartition("/")[2]
                held = markup.format(number=number, url=f"{site.url}{url}", site=site.url)
                site.pages[url] = Page(f"<title>Thing</title>{held}<p>{WORDS}".encode())

        assert self.crawled(site, settings, action) == {"/", *pages}

    def test_titles(self, site: Site, settings: dict[str, Any], action: str) -> None:
        pages = [f"/song/{number}" for number in range(PHOTOS)]
        site.add("/", OTHER, *pages)
        for number, page in enumerate(pages):
            site.pages[page] = Page(f"<title>Song {number}</title><p>{WORDS} instrumental".encode())

        assert self.crawled(site, settings, action) == {"/", *pages}

    def test_downloads_and_links_to_other_sites(
        self, site: Site, settings: dict[str, Any], action: str
    ) -> None:
        pages = ["/file/1", "/file/2", "/site/1", "/site/2"]
        site.add("/", OTHER, *pages)
        for name in "12":
            site.add(f"/file/{name}", WORDS, f"/files/report{name}.pdf")
            site.add(f"/site/{name}", f"{WORDS} elsewhere", f"http://192.0.2.{name}/")

        class OwnSite(LinkSpider):
            def parse(self, response: HtmlResponse) -> Iterator[Any]:  # type: ignore[override]
                yield {"url": response.url}
                if response.url == self.start_urls[0]:
                    yield from response.follow_all(response.css("a"))

        done = crawl(OwnSite, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

        assert paths(done.items, site) == {"/", *pages}

    def test_pages_that_scripts_fill(self, site: Site, settings: dict[str, Any], action: str) -> None:
        pages = [f"/app/{number}" for number in range(PHOTOS)]
        site.add("/", OTHER, *pages)
        for page in pages:
            data = f"<script type='application/json'>{prose(page, 9)}</script>"
            site.add(page, f"{WORDS}{data}")

        assert self.crawled(site, settings, action) == {"/", *pages}

    @pytest.mark.parametrize("views", [False, True])
    def test_variants_told_apart_by_data(
        self, site: Site, settings: dict[str, Any], action: str, views: bool
    ) -> None:
        """In the second crawl as well, and where the text has a counter of its own on each page."""
        colours = ("red", "green", "blue")
        products = [f"/product/{product}-{colour}" for product in range(5) for colour in colours]
        others = [f"/other/{number}" for number in range(KNOWN_PAGES)]
        pages = random.Random(1).sample([*products, *others], k=len(products) + len(others))
        site.add("/", OTHER, *pages)
        for page in others:
            title = prose((page, "title"), 2)
            site.pages[page] = Page(f"<title>{title}</title><h1>{title}</h1>{prose(page, 150)}".encode())
        for number, page in enumerate(products):
            product, colour = page.rpartition("/")[2].split("-")
            text = f"<h1>{prose(product, 2)}</h1>{prose((product, 1), 150)}"
            text += f" seen {7919 * (number + 1)} times" if views else ""
            data = f'<script type="application/json">{{"colour": "{colour}", "price": {number}}}</script>'
            site.pages[page] = Page(f"<title>Product {prose(product, 2)}</title>{text}{data}".encode())

        first = self.crawled(site, settings, action)

        assert first == self.crawled(site, settings, action) == {"/", *pages}

    def test_noindex_is_no_content(self, site: Site, settings: dict[str, Any], action: str) -> None:
        site.add("/", OTHER, "/post", "/post?replytocom=7")
        site.pages["/post"] = Page(f"<title>Post</title><p>{WORDS}".encode())
        head = "<meta name=Robots content='noindex, follow'><title>Post</title>"
        site.pages["/post?replytocom=7"] = Page(f"{head}<p>{WORDS}".encode())

        assert len(self.crawled(site, settings, action)) == 2

    def test_one_text_at_many_addresses(self, site: Site, settings: dict[str, Any], action: str) -> None:
        """Numbers in scripts tell nothing, but so many addresses do. What was dropped is fetched again."""
        pages = [f"/item/{number}" for number in range(FEWEST_ADDRESSES + 10)]
        site.add("/", OTHER, *pages)
        for number, page in enumerate(pages):
            site.add(page, f"{WORDS}<script>show({number})</script>")

        done = crawl(LinkSpider, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

        assert paths(done.items, site) == {"/", *pages}
        assert done.stats["neardup/flagged"] == 1
        assert done.stats["neardup/pages_fetched_again"] == FEWEST_ADDRESSES - 1

    def test_a_picture_that_counts_visits_is_no_content(
        self, site: Site, settings: dict[str, Any], action: str
    ) -> None:
        site.add("/", OTHER, "/a", "/b")
        for page, later in (("/a", 0), ("/b", 1)):
            counter = f"<img src='/count.php?page=start&amp;{int(time.time()) + later}'>"
            site.pages[page] = Page(f"<title>Start</title><p>{WORDS}</p>{counter}".encode())

        assert len(self.crawled(site, settings, action)) == 2

    def test_pictures_by_the_time_of_their_upload(
        self, site: Site, settings: dict[str, Any], action: str
    ) -> None:
        now = int(time.time())
        pages = [f"/photo/{number}" for number in range(5)]
        site.add("/", OTHER, *pages)
        for number, page in enumerate(pages, 1):
            image = f"<img src='/image.php?id={now - 3600 * number}'>"
            site.pages[page] = Page(f"<title>Photo</title><p>{WORDS}</p>{image}".encode())

        assert self.crawled(site, settings, action) == {"/", *pages}

    def test_lists_of_other_rows(self, site: Site, settings: dict[str, Any], action: str) -> None:
        """Of a hundred rows, one is another; and a list whose rows stand on lists before is dropped."""
        rows = [f"<li><a href='/row/{number}'>{prose(number, 12)}</a>" for number in range(101)]
        lists = {"/a": rows[:100], "/b": rows[1:], "/c": [*rows[1:50], *rows[51:], rows[50]]}
        texts = add_texts(site)
        # All rows are linked from elsewhere, too, which is no matter.
        site.add("/", OTHER, *texts, *lists, *(f"/row/{number}" for number in range(101)))
        for path, listed in lists.items():
            site.pages[path] = Page(f"<title>All rows</title><h1>All rows</h1>{''.join(listed)}".encode())

        crawled = self.crawled(site, settings | IN_ORDER, action)

        assert {"/", *texts, "/a", "/b"} == crawled

    def test_one_sentence_about_each(self, site: Site, settings: dict[str, Any], action: str) -> None:
        """A chain of articles under one headline and in one long frame, crawled twice."""
        articles = [f"/article?id={number}" for number in range(20)]
        texts = add_texts(site)
        site.add("/", OTHER, *texts, articles[0])
        for number, (article, following) in enumerate(zip(articles, [*articles[1:], "/"], strict=True)):
            body = f"<title>Article</title><h1>Article</h1><p>{prose('frame', 1500)}</p>"
            body += f"<p>{prose(number, 12)}</p><a href='{following}'>next</a> seen {number} times"
            site.pages[article] = Page(body.encode())

        for _ in range(2):
            done = crawl(LinkSpider, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")
            assert paths(done.items, site) == {"/", *texts, *articles}
            assert done.neardup("told_apart") == 1

    def test_numbers_of_each(self, site: Site, settings: dict[str, Any], action: str) -> None:
        """Draws under one headline and in one long frame, which differ in their numbers."""
        draws = [f"/draw/{name}" for name in "abcdefghijklmnopqrst"]
        texts = add_texts(site)
        site.add("/", OTHER, *texts, *draws)
        for number, draw in enumerate(draws):
            drawn = " ".join(map(str, random.Random(number).sample(range(50), 6)))
            body = f"<title>Draw</title><h1>Draw</h1><p>{prose('frame', 1500)}</p><p>{drawn}</p>"
            site.pages[draw] = Page(body.encode())

        assert self.crawled(site, settings, action) == {"/", *texts, *draws}

    def test_clocks_tell_no_copies_apart(self, site: Site, settings: dict[str, Any], action: str) -> None:
        copies = [f"/article?sid={name}" for name in "abcdefghijklmnopqrst"]
        texts = add_texts(site)
        site.add("/", OTHER, *texts, *copies)
        body = f"<title>Article</title><h1>Article</h1><p>{prose('article', 1500)}</p>"
        for copy in copies:
            site.pages[copy] = Counting(body.encode())

        assert self.crawled(site, settings | IN_ORDER, action) == {"/", *texts, copies[0]}

    def test_near_copies_with_session_ids_in_links_are_dropped(
        self, site: Site, settings: dict[str, Any], action: str
    ) -> None:
        copies = [f"/photo?sid={session}" for session in ("a1", "b2", "c3")]
        texts = add_texts(site)
        site.add("/", OTHER, *texts, *copies)
        for visits, copy in enumerate(copies):
            menu = "".join(f"<a href='/{name}{copy[6:]}'>{name}</a> " for name in ("home", "news", "help"))
            text = f"<p>{WORDS} {prose('more', 200)} viewed {visits} times</p>"
            site.pages[copy] = Page(f"<title>Photo</title><h1>Photo</h1>{menu}{text}".encode())

        crawled = self.crawled(site, settings | IN_ORDER, action)

        assert crawled == {"/", *texts, copies[0]}

    def test_copies_are_dropped_all_the_same(self, site: Site, settings: dict[str, Any], action: str) -> None:
        """Session ids in addresses of images and pages, and a file's."""
        copies = [f"/s/{session}/photo" for session in ("a1", "b2", "c3")]
        site.add("/", OTHER, *copies)
        for session, copy in zip(("a1", "b2", "c3"), copies, strict=True):
            image = f"<img src='/s/{session}/photos/7.jpg?sid={session}'>"
            site.pages[copy] = Page(f"<title>Photo</title><p>{WORDS}</p>{image}".encode())

        assert self.crawled(site, settings, action) == {"/", copies[0]}


class Fails(LinkSpider):
    """Raises an error on the first page of its kind: before an item, or after a link."""

    kind = "function"
    failed = False

    def parse(self, response: Response) -> Any:
        if "photo" not in response.url or self.failed:
            return super().parse(response)
        self.failed = True
        return self.late(response) if self.kind == "generator" else self.early()

    def late(self, response: Response) -> Iterator[Any]:
        yield response.follow("/")
        self.early()

    def early(self) -> Iterator[Any]:
        raise KeyError("a price")


@pytest.mark.parametrize("kind", ["generator", "function"])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_copy_of_a_page_whose_callback_failed_is_heard(
    site: Site, settings: dict[str, Any], action: str, kind: str
) -> None:
    copies = [f"/s/{session}/photo" for session in ("a1", "b2", "c3")]
    site.add("/", OTHER, *copies)
    for copy in copies:
        site.pages[copy] = Page(f"<title>Photo</title><p>{WORDS}</p>".encode())

    spider = type("FailsOnce", (Fails,), {"kind": kind})
    done = crawl(spider, settings | IN_ORDER | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

    assert paths(done.items, site) == {"/", *copies[1:]}


class FailingPipeline:
    """The database is away when the first item of a photo comes."""

    failed = False

    def process_item(self, item: Any) -> Any:
        if "photo" in item["url"] and not self.failed:
            self.failed = True
            raise ConnectionError("the database is away")
        return item


@pytest.mark.parametrize("action", ACTIONS)
def test_a_copy_of_a_page_whose_item_failed_keeps_its_item(
    site: Site, settings: dict[str, Any], action: str
) -> None:
    copies = [f"/s/{session}/photo" for session in ("a1", "b2", "c3")]
    site.add("/", OTHER, *copies)
    for copy in copies:
        site.pages[copy] = Page(f"<title>Photo</title><p>{WORDS}</p>".encode())

    failing = {"NEARDUP_ACTION": action, "ITEM_PIPELINES": {FailingPipeline: 300}}
    done = crawl(LinkSpider, settings | IN_ORDER | failing, start=f"{site.url}/")

    assert paths(done.items, site) == {"/", *copies[1:]}


def test_links_of_a_page_whose_callback_failed_were_not_followed(
    site: Site, settings: dict[str, Any]
) -> None:
    """They stand on a copy, too: its callback is called."""
    behind = f"<p>{prose('behind', 100)}</p>"
    site.add("/", OTHER, "/photo", "/copied", "/copy")
    site.pages["/photo"] = Page(f"<p>{prose('photo', 100)}</p><a href=/behind>More</a>".encode())
    for copy, link in (("/copied", "/"), ("/copy", "/behind")):
        site.pages[copy] = Page(f"<title>Copy</title><p>{WORDS}</p><a href={link}>More</a>".encode())
    site.pages["/behind"] = Page(behind.encode())

    done = crawl(Fails, settings | IN_ORDER | {"NEARDUP_ACTION": "skip"}, start=f"{site.url}/")

    assert "/behind" in paths(done.items, site)


class Twice(LinkSpider):
    """Asks for each page twice: for the product, and then for its reviews."""

    def parse(self, response: Response) -> Iterator[Any]:
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, self.product)

    def product(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "of": "product"}
        assert response.request is not None
        yield response.request.replace(callback=self.reviews, dont_filter=True)

    def reviews(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url, "of": "reviews"}


@pytest.mark.parametrize("action", ACTIONS)
class TestPagesOfDoubtfulClusters:
    """Pages that are not surely copies of their canonical page, but of each other."""

    def two_texts(self) -> tuple[str, str]:
        """The first is canonical, and the second is a doubtful duplicate."""
        words = prose("manual", 300).split()
        return " ".join(words), " ".join([*words[:100], *prose("changed", 12).split(), *words[112:]])

    def put(self, site: Site, pages: dict[str, str]) -> None:
        """A chain, so that the pages come in their order."""
        site.add("/", OTHER, next(iter(pages)))
        for (page, text), later in zip(pages.items(), [*list(pages)[1:], "/"], strict=True):
            body = f"<title>Manual</title><p>{text}</p><a href={later}>next</a>"
            site.pages[page] = Page(body.encode())

    def crawled(self, site: Site, settings: dict[str, Any], action: str) -> set[str]:
        done = crawl(LinkSpider, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")
        return paths(done.items, site)

    def test_a_text_that_only_a_duplicate_had(
        self, site: Site, settings: dict[str, Any], action: str
    ) -> None:
        """Of three versions, the last has the very text of the second, which is merely like the first."""
        first, second = self.two_texts()
        self.put(site, {"/v1/page": first, "/v2/page": second, "/v3/page": second})

        assert self.crawled(site, settings, action) == {"/", "/v1/page", "/v2/page"}

    def test_each_text_has_images_of_its_own(self, site: Site, settings: dict[str, Any], action: str) -> None:
        """Shirts of two fits and two colours: the last has the text of one and the image of another."""
        pages = {
            f"/{fit}-{colour}": f"{text}<img src=/{colour}.jpg>"
            for fit, text in zip("ab", self.two_texts(), strict=True)
            for colour in ("red", "blue")
        }
        self.put(site, pages)

        assert self.crawled(site, settings, action) == {"/", *pages}

    def test_a_page_is_no_copy_of_itself(self, site: Site, settings: dict[str, Any], action: str) -> None:
        """Neither a canonical page, nor a doubtful duplicate, nor a page too short to be matched."""
        first, second = self.two_texts()
        pages = {"/a": first, "/b": second, "/c": "please enable scripts"}
        site.add("/", OTHER, *pages)
        for page, text in pages.items():
            site.pages[page] = Page(f"<title>Manual</title><p>{text}".encode())

        done = crawl(Twice, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

        found = sorted((item["url"].removeprefix(site.url), item["of"]) for item in done.items)
        assert found == [(page, of) for page in pages for of in ("product", "reviews")]

    def test_a_page_that_shows_something_else_when_asked_again(
        self, site: Site, settings: dict[str, Any], action: str
    ) -> None:
        """A copy of the wall that it showed first is fetched again."""
        first, wall = self.two_texts()
        pages = {"/a": first, "/b": wall, "/c": wall, "/d": prose("another", 100)}
        self.put(site, pages)

        class Solves(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                if response.url.endswith("/d"):
                    site.pages["/b"] = Page(f"<title>Content</title><p>{prose('content', 300)}".encode())
                    assert response.request is not None
                    yield response.request.replace(url=f"{site.url}/b", dont_filter=True)
                yield from super().parse(response)

        done = crawl(Solves, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

        assert paths(done.items, site) == {"/", *pages}
        assert done.neardup("pages_fetched_again") == 1


class TestSkip:
    def test_what_is_behind_removed_entries_is_fetched(self, site: Site, settings: dict[str, Any]) -> None:
        """A chain of entries that are told apart by data for scripts; some in a row have none."""
        entries = [f"/view?entry={number}" for number in range(160)]
        site.add("/", OTHER, entries[0])
        for number, (entry, following) in enumerate(zip(entries, [*entries[1:], "/"], strict=True)):
            data = f'<script type="application/ld+json">{{"name": "{prose(number, 2)}"}}</script>'
            shown = "" if 100 <= number < 140 else data
            body = f"<title>Entry</title>{shown}<p>{prose('entry', 60)}</p><a href='{following}'>next</a>"
            site.pages[entry] = Page(body.encode())

        crawl(LinkSpider, settings | {"NEARDUP_ACTION": "skip"}, start=f"{site.url}/")

        assert set(site.requested) >= set(entries)

    def test_a_page_with_links_of_its_own_is_heard(self, site: Site, settings: dict[str, Any]) -> None:
        """The pages of a chain have one text, and each alone links to the next."""
        pages = [f"/day/{number}" for number in range(30)]
        site.add("/", OTHER, pages[0])
        for page, following in zip(pages, [*pages[1:], "/"], strict=True):
            site.add(page, WORDS, following)

        done = crawl(LinkSpider, settings | {"NEARDUP_ACTION": "skip"}, start=f"{site.url}/")

        assert set(site.requested) >= set(pages)
        assert done.neardup("pages_skipped") == 0

    @pytest.mark.parametrize("in_browser", [True, False])
    def test_a_page_that_is_open_in_a_browser_is_closed(
        self, site: Site, settings: dict[str, Any], in_browser: bool
    ) -> None:
        """Of scrapy-playwright, a page stays open until its callback closes it."""
        opened: list[str] = []

        class Browser:
            def process_response(self, request: Request, response: Response) -> Response:
                if in_browser:
                    opened.append(request.url)
                    request.meta["playwright_page"] = opened
                return response

        class Closes(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                if in_browser:
                    response.meta["playwright_page"].remove(response.url)
                yield from super().parse(response)

        copies = [f"/copy?{number}" for number in range(30)]
        site.add("/", OTHER, *copies)
        for copy in copies:
            site.add(copy, WORDS)
        browser = {"NEARDUP_ACTION": "skip", "DOWNLOADER_MIDDLEWARES": {Browser: 900}}

        done = crawl(Closes, settings | browser, start=f"{site.url}/")

        assert opened == []
        assert (done.neardup("pages_skipped") > 0) is not in_browser
        assert len(done.items) < len(copies)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_page_that_completes_an_item_is_heard(site: Site, settings: dict[str, Any], action: str) -> None:
    """The terms of delivery are the same for all products, and belong to each item."""

    class Shop(scrapy.Spider):
        name = "shop"

        async def start(self) -> Any:
            for number in range(PHOTOS):
                yield scrapy.Request(f"{site.url}/p/{number}", cb_kwargs={"number": number})

        def parse(self, response: Response, number: int) -> Iterator[Any]:
            item = {"url": response.url}
            delivery = response.urljoin(f"/delivery/{number}")
            yield scrapy.Request(delivery, self.delivery, cb_kwargs={"item": item})

        def delivery(self, response: Response, item: dict[str, Any]) -> Iterator[Any]:
            yield item

    for number in range(PHOTOS):
        site.add(f"/p/{number}", prose(number, 80))
        site.add(f"/delivery/{number}", WORDS)

    done = crawl(Shop, settings | {"NEARDUP_ACTION": action})

    assert len(paths(done.items, site)) == PHOTOS


class TestPause:
    def test_pages_that_lost_their_items_are_fetched_again(
        self, site: Site, settings: dict[str, Any], tmp_path: Path
    ) -> None:
        """Whether a copy is one can be judged again only by the run that has read it."""
        articles = [f"/article/{number}" for number in range(60)]
        copies = [f"/print/{number}" for number in range(60)]
        site.add("/", OTHER, *articles, *copies)
        for article, copy in zip(articles, copies, strict=True):
            html = f"<title>{prose(('title', article), 3)}</title><p>{prose(article, 200)}"
            site.pages[article] = Page(html.encode())
            site.pages[copy] = Page(f"{html} printed".encode())
        settings |= {"NEARDUP_ACTION": "drop", "JOBDIR": str(tmp_path / "job")}
        dropped: set[str] = set()

        class Heard(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                heard.append(response.url.removeprefix(site.url))
                yield from super().parse(response)

        heard: list[str] = []
        first = crawl(Heard, settings | {"CLOSESPIDER_PAGECOUNT": 90}, start=f"{site.url}/")
        dropped = set(heard) - paths(first.items, site)
        assert first.stats["finish_reason"] == "closespider_pagecount"
        assert len(dropped) > 20, "or this test would show nothing"
        heard.clear()

        second = crawl(Heard, settings, start=f"{site.url}/")

        assert dropped <= set(heard)
        assert dropped <= paths(second.items, site)
        assert left_out.take(second.crawler) == []

    def test_without_a_job_directory_nothing_is_kept(self, tmp_path: Path) -> None:
        crawler = get_crawler(LinkSpider)

        assert left_out.keep(crawler, [scrapy.Request("http://a.example/")]) == 0
        assert left_out.take(crawler) == []

    def test_what_cannot_be_stored_is_named(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        crawler = get_crawler(LinkSpider, {"JOBDIR": str(tmp_path)})
        crawler.spider = LinkSpider("http://a.example/")
        requests = [scrapy.Request(f"http://a.example/{name}", meta={"kept": name}) for name in "ab"]
        requests[0].meta["kept"] = lambda: None

        assert left_out.keep(crawler, requests) == 1

        assert "http://a.example/a" in caplog.text
        (taken,) = left_out.take(crawler)
        assert (taken.url, taken.meta) == ("http://a.example/b", {"kept": "b"})
        assert left_out.take(crawler) == []


def test_a_page_that_is_fetched_again_by_another_run_loses_nothing() -> None:
    """The request may come from a queue on disk."""
    policy = Policy(get_crawler(LinkSpider), Action.SKIP, 200)
    policy.had = Had(lambda url: False, lambda response: "x")
    verdict = replace(duplicate(2, "http://a.example/2", canonical=1, repeated=True), evidence=Evidence.TEXT)

    def page(**request: Any) -> HtmlResponse:
        asked = scrapy.Request(verdict.url, **request)
        return HtmlResponse(verdict.url, body=b"<p>x</p>", encoding="utf-8", request=asked)

    responses = page(), page(), page(meta={AGAIN: True}), page(method="POST")
    for response in responses:
        policy.look_at(response, verdict)

    assert [policy.drops_items(verdict, response) for response in responses[1:]] == [True, False, False]


class FollowsOnly(LinkSpider):
    """Yields no items."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield from (output for output in super().parse(response) if isinstance(output, scrapy.Request))


def test_a_page_that_has_lost_no_item_is_not_fetched_again(site: Site, settings: dict[str, Any]) -> None:
    pages = [f"/item/{number}" for number in range(FEWEST_ADDRESSES + 10)]
    site.add("/", OTHER, *pages)
    for page in pages:
        site.add(page, WORDS)

    done = crawl(FollowsOnly, settings | {"NEARDUP_ACTION": "drop"}, start=f"{site.url}/")

    assert done.stats["neardup/flagged"] == 1
    assert "neardup/pages_fetched_again" not in done.stats
    assert all(site.requested.count(page) == 1 for page in pages)


class AsksAgain(LinkSpider):
    """Asks again for each page that it does not get."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, errback=self.again)

    def again(self, failure: Any) -> Any:
        return failure.request.replace(dont_filter=True)


def test_a_skipped_page_that_is_asked_for_again_passes(site: Site, settings: dict[str, Any]) -> None:
    site.add("/", OTHER, "/a", "/b")
    site.add("/a", WORDS)
    site.add("/b", WORDS)
    limit = {"CLOSESPIDER_PAGECOUNT": 50, "NEARDUP_ACTION": "skip"}

    done = crawl(AsksAgain, settings | limit, start=f"{site.url}/")

    assert paths(done.items, site) == {"/", "/a", "/b"}
    assert done.stats["finish_reason"] == "finished"
    assert done.stats["neardup/pages_skipped"] == 1


class Job(Page):
    """A page that is ready when it is asked for the third time."""

    def __init__(self, name: str) -> None:
        self._name, self._asked = name, 0
        super().__init__(b"")

    @property
    def body(self) -> bytes:
        self._asked += 1
        return f"<p>{WORDS}</p><p>{'In work' if self._asked < 3 else prose(self._name, 30)}</p>".encode()

    @body.setter
    def body(self, html: bytes) -> None:
        pass


class Waits(LinkSpider):
    """Asks for each page until it is ready."""

    def parse(self, response: Response) -> Iterator[Any]:
        if "In work" in response.text:
            yield scrapy.Request(response.url, dont_filter=True)
        else:
            yield from super().parse(response)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_page_that_is_asked_for_until_it_is_ready_is_heard(
    site: Site, settings: dict[str, Any], action: str
) -> None:
    jobs = [f"/job/{number}" for number in range(9)]
    site.add("/", OTHER, *jobs)
    site.pages |= {job: Job(job) for job in jobs}

    done = crawl(Waits, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

    assert paths(done.items, site) == {"/", *jobs}


class HandsOnValues(LinkSpider):
    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href, meta={"parent": response.url, "neardup_seen": 1})


def test_the_log_says_why_nothing_is_dropped(
    site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    site.add("/", OTHER, "/a", "/b", "/c")
    for path in ("/a", "/b", "/c"):
        site.add(path, WORDS)

    done = crawl(HandsOnValues, settings | {"NEARDUP_ACTION": "drop"}, start=f"{site.url}/")

    assert len(done.items) == 4
    assert caplog.text.count("hands on values that may be a part of them: meta 'parent' (further") == 1


@pytest.mark.parametrize("action", ["defer", *ACTIONS])
def test_flags_need_no_stats(site: Site, settings: dict[str, Any], action: str) -> None:
    pages = [f"/item/{number}" for number in range(2 * FEWEST_ADDRESSES)]
    site.add("/", OTHER, *pages)
    for page in pages:
        site.add(page, WORDS)
    without = {"STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector", "NEARDUP_ACTION": action}

    done = crawl(LinkSpider, settings | without, start=f"{site.url}/")

    assert paths(done.items, site) == {"/", *pages}
