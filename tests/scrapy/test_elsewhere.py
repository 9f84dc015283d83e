"""What ``drop`` and ``skip`` leave alone: items that a spider has completed from other pages, by itself."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, JsonResponse
from scrapy.utils.test import get_crawler

from neardup.scrapy.elsewhere import Callbacks, Source
from neardup.scrapy.keepers import Keepers
from tests.support.crawling import Page, Site, crawl
from tests.support.sites.text import prose
from tests.support.spiders import LinkSpider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

NOW = datetime(2026, 11, 29, 22, 36, 1, 123456, UTC)
ACTIONS = ["drop", "skip"]
PRODUCTS = 12
NO_REVIEWS = f"<h1>Reviews</h1><p>No reviews so far. {prose('reviews', 60)}</p>"


def add_page(site: Site, path: str, body: str, *links: str) -> None:
    anchors = "".join(f'<a href="{link}">More</a>' for link in links)
    site.pages[path] = Page(f"<html><body>{body}{anchors}</body></html>".encode())


class Reviews(LinkSpider):
    """Keeps the items of products until it has read the page of their reviews."""

    def __init__(self, start: str, **kwargs: Any) -> None:
        super().__init__(start, **kwargs)
        self.waiting: dict[str, dict[str, Any]] = {}

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.css("a::attr(href)").getall():
            if "reviews" in link:
                self.waiting[response.urljoin(link)] = self.item(response)
                yield response.follow(link, self.reviews)
            else:
                yield response.follow(link)

    def item(self, response: Response) -> dict[str, Any]:
        return {"product": response.css("h1::text").get()}

    def reviews(self, response: Response) -> Iterator[Any]:
        item = self.waiting[response.url]
        item["reviews"] = response.css("p::text").get()
        yield item


class LastOfReviews(Reviews):
    """The same, where an item is complete when all its pages are read; reviews are pages of their kind."""

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.css("a::attr(href)").getall():
            if "reviews" in link:
                item = self.item(response)
                for page in (1, 2, 3):
                    url = response.urljoin(f"{link}&page={page}")
                    self.waiting[url] = item
                    yield response.follow(url, self.reviews)
            else:
                yield response.follow(link)

    def reviews(self, response: Response) -> Iterator[Any]:
        item = self.waiting[response.url]
        item["pages"] = item.get("pages", 0) + 1
        if item["pages"] == 3:
            yield item


class CodesOfReviews(Reviews):
    """The same, where products have numbers alone."""

    def item(self, response: Response) -> dict[str, Any]:
        return {"product": int((response.css("h1::text").get() or "").rpartition(" ")[2])}


def add_shop(site: Site, number: int, *, view: str = "") -> None:
    """Add products, each with a page of its reviews; and another view of each product and its reviews."""
    numbers = range(1, number + 1)
    add_page(site, "/", f"<p>{prose('home', 60)}</p>", *(f"/product?id={at}" for at in numbers))
    for at in numbers:
        product, reviews = f"/product?id={at}", f"/reviews?product={at}"
        body = f"<h1>{prose(product, 2)} {7013 * at}</h1><p>{prose(f'{product} about', 80)}</p>"
        add_page(site, product, body, reviews, *([product + view] if view else []))
        for page in ("", "&page=1", "&page=2", "&page=3"):
            add_page(site, reviews + page, NO_REVIEWS)
        if view:
            add_page(site, product + view, body, reviews + view)
            add_page(site, reviews + view, NO_REVIEWS)


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
class TestItemsThatASpiderKeeps:
    @pytest.mark.parametrize("spider", [Reviews, CodesOfReviews, LastOfReviews])
    def test_an_item_of_another_page_is_no_copy(
        self, site: Site, settings: dict[str, Any], action: str, spider: type[Reviews]
    ) -> None:
        add_shop(site, PRODUCTS)

        done = crawl(spider, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

        assert done.stats["neardup/duplicates"] >= PRODUCTS - 1
        assert len({item["product"] for item in done.items}) == PRODUCTS

    def test_an_item_that_a_copy_had_is_dropped(
        self, site: Site, settings: dict[str, Any], action: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        add_shop(site, PRODUCTS, view="&print=1")

        done = crawl(Reviews, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

        assert len({item["product"] for item in done.items}) == len(done.items) == PRODUCTS
        assert done.stats["neardup/items_dropped"] == (PRODUCTS if action == "drop" else 3)
        assert caplog.text.count("the item has words that are not on the page") == 1


@pytest.mark.slow
def test_no_request_is_dropped_whose_page_completes_an_item(site: Site, settings: dict[str, Any]) -> None:
    number = 200
    add_shop(site, number)

    done = crawl(Reviews, settings | {"NEARDUP_PREDICT": "drop"}, start=f"{site.url}/")

    assert len({item["product"] for item in done.items}) == number
    assert done.stats["neardup/predicted"] > number / 2


class Api(LinkSpider):
    """Asks an API for what the script of a page would ask for."""

    def parse(self, response: Response) -> Iterator[Any]:
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)
        for number in response.css("[data-id]::attr(data-id)").getall():
            yield response.follow(f"/api/{number}", self.complete)

    def complete(self, response: Response) -> Any:
        assert isinstance(response, JsonResponse)
        return response.json()


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_requests_that_a_callback_makes_of_numbers_are_made(
    site: Site, settings: dict[str, Any], action: str
) -> None:
    pages = [f"/item/{number}" for number in range(PRODUCTS)]
    add_page(site, "/", f"<p>{prose('home', 60)}</p>", *pages)
    for number, path in enumerate(pages):
        add_page(site, path, f'<div data-id="{4000 + number}"><p>{prose("item", 80)}</p></div>')
        answer = json.dumps({"name": prose(path, 2)})
        site.pages[f"/api/{4000 + number}"] = Page(
            answer.encode(), headers={"Content-Type": "application/json"}
        )

    done = crawl(Api, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

    assert done.stats["neardup/duplicates"] == PRODUCTS - 1
    assert len({item["name"] for item in done.items}) == PRODUCTS


class Stamps(LinkSpider):
    """Writes into each item where it is from, and when it was made."""

    def parse(self, response: Response) -> Iterator[Any]:
        yield {
            "spider": "Stamps of Example",
            "at": datetime.now(UTC).isoformat(),
            "id": str(uuid4()),
            "from": (response.request.headers.get("Referer") or b"").decode() if response.request else "",
            "text": response.css("p::text").get(),
        }
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link)


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_what_a_spider_writes_into_each_item_makes_no_item_another(
    site: Site, settings: dict[str, Any], action: str
) -> None:
    pages = [f"/item/{number}" for number in range(PRODUCTS)]
    add_page(site, "/", f"<p>{prose('home', 60)}</p>", *pages, *(f"{page}?print=1" for page in pages))
    for path in pages:
        for view in (path, f"{path}?print=1"):
            add_page(site, view, f"<p>{prose(path, 80)}</p>")

    done = crawl(Stamps, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

    skipped = done.stats.get("neardup/pages_skipped", 0)
    assert len(done.items) == PRODUCTS + 1
    assert done.stats.get("neardup/items_dropped", 0) + skipped == PRODUCTS
    assert (skipped == PRODUCTS) == (action == "skip")


@dataclass
class MakeItem:
    """Cannot be a key."""

    def __call__(self, response: Response) -> dict[str, str]:
        return {"url": response.url}


class OddCallbacks(LinkSpider):
    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        make_item = MakeItem()

        def parse_page(page: Response) -> Any:
            return make_item(page)

        for link in response.css("a[href^='/']::attr(href)").getall():
            yield response.follow(link, parse_page)
            yield response.follow(f"{link}?view=print")


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_odd_links_and_callbacks_are_no_failure(site: Site, settings: dict[str, Any], action: str) -> None:
    pages = [f"/item/{number}" for number in range(PRODUCTS)]
    add_page(site, "/", f"<p>{prose('home', 60)}</p>", *pages, "http://[odd/", "http://a.example:99999999/")
    for path in pages:
        for view in (path, f"{path}?view=print"):
            add_page(site, view, f"<p>{prose(path, 80)}</p>", "http://[odd/")

    done = crawl(OddCallbacks, settings | {"NEARDUP_ACTION": action}, start=f"{site.url}/")

    assert not {"neardup/failures", "log_count/ERROR"} & done.stats.keys()
    assert done.stats["neardup/duplicates"] >= PRODUCTS
    assert len(done.items) == PRODUCTS + 1


class TestCallbacks:
    REQUEST = Request("http://a.example/", callback=MakeItem())

    def test_one_that_gave_nothing_may_keep_an_item(self) -> None:
        callbacks = Callbacks(Keepers(get_crawler()))
        assert callbacks.complete_items(self.REQUEST)
        callbacks.brought(self.REQUEST, None)
        assert not callbacks.complete_items(self.REQUEST)

        callbacks.kept_silent(self.REQUEST)

        assert callbacks.complete_items(self.REQUEST)

    def test_one_whose_items_come_from_its_pages_may_be_silent(self) -> None:
        callbacks = Callbacks(Keepers(get_crawler()))
        callbacks.brought(self.REQUEST, frozenset())

        callbacks.kept_silent(self.REQUEST)

        assert not callbacks.complete_items(self.REQUEST)

    def test_the_same_words_on_each_page_are_the_spiders_own(self) -> None:
        callbacks = Callbacks(Keepers(get_crawler()))
        for _ in range(4):
            assert callbacks.complete_items(self.REQUEST)
            callbacks.brought(self.REQUEST, frozenset({"example"}))

        assert not callbacks.complete_items(self.REQUEST)

        callbacks.brought(self.REQUEST, frozenset({"example", "oak"}))

        assert callbacks.complete_items(self.REQUEST)


@dataclass
class Part:
    name: str
    price: Decimal
    inner: list[Any] = field(default_factory=list)


class TestWords:
    SOURCE = Source(
        HtmlResponse(
            "http://a.example/x?sid=78123",
            body=b"<p title='Oak table'>caf&eacute; at 1299 or 51234</p>",
            encoding="utf-8",
            request=Request("http://a.example/y", headers={"Referer": "http://a.example/shelf"}),
        )
    )

    @pytest.mark.parametrize(
        "value",
        [
            "Café", "oak", "x?sid=78123", "http://a.example/shelf", 1299, 200, 12.5, None, b"elm", True,
            NOW, NOW.isoformat(), NOW.timestamp(), int(1000 * NOW.timestamp()), f"{NOW:%Y%m%d%H%M%S}",
            f"{NOW:%d.%m.%Y}", format_datetime(NOW), "20 November 2026",
            "November 20, 2026", "Sun, 20 Nov 2026", "20th of November 2026", "20.\u00a0listopad 2026",
            "3d5a9f7c-01b4-4a6e-9d0c-6f0e2b1c8a97", "2012ab7c-01b4-4a6e-9d0c-6f0e2b1c8a97",
            hashlib.sha256(b"").hexdigest(), 0.123456,
        ],
    )  # fmt: skip
    def test_are_on_the_page_or_tell_when_an_item_was_made(self, value: object) -> None:
        assert self.SOURCE.lacks({"field": value}) == set()

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ("Elm table", {"elm"}),
            ("tab", {"tab"}),
            (1234, {"1234"}),
            ("BC547", {"bc547"}),
            ({"wood": {"elm": 3}}, {"wood", "elm"}),
            ([Part("Elm", Decimal(4321))], {"name", "price", "inner", "elm", "4321"}),
        ],
    )
    def test_are_of_elsewhere(self, value: object, words: set[str]) -> None:
        assert self.SOURCE.lacks({"field": value}) == words

    def test_an_item_that_holds_itself_has_an_end(self) -> None:
        part = Part("Elm", Decimal(1))
        part.inner.append(part)

        assert "elm" in self.SOURCE.lacks(part)


class TestAddresses:
    SOURCE = Source(
        HtmlResponse(
            "http://a.example/list/near?x=4",
            body=(
                b"<a href='/oak?b=2&amp;a=1#top'>.</a><a href=fir.html>.</a><iframe src='frame/elm.html'>"
                b"<option value='/n\xc3\xa9w?sid=7&amp;page=2'><b onclick=\"go('/day/2026/05')\"></b>"
            ),
            encoding="utf-8",
            request=Request("http://a.example/list/near?x=4"),
        )
    )

    @pytest.mark.parametrize(
        "url",
        [
            "http://a.example/oak?b=2&a=1", "http://a.example/oak?a=1&b=2", "http://a.example/list/fir.html",
            "http://a.example/list/frame/elm.html", "http://a.example/n%C3%A9w?page=2",
            "https://b.example/day/2026/05", "http://a.example/oak?a=1",
        ],
    )  # fmt: skip
    def test_of_a_page(self, url: str) -> None:
        assert self.SOURCE.has_address(Request(url))

    @pytest.mark.parametrize(
        "url",
        [
            "http://a.example/list/near?x=2", "http://a.example/list/near?x=44",
            "http://a.example/new?page=3", "http://a.example/day/2026/06", "http://a.example/month/05",
            "http://a.example/near/2/",
        ],
    )  # fmt: skip
    def test_that_the_spider_has_made_up(self, url: str) -> None:
        assert not self.SOURCE.has_address(Request(url))
