"""Spiders as people have them, for the made sites: none of them knows of neardup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, urlsplit

import scrapy
from scrapy import signals
from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import CloseSpider, DontCloseSpider, IgnoreRequest
from scrapy.http import FormRequest, HtmlResponse, JsonResponse

from tests.support.sites import items
from tests.support.sites.branches import Area

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response


BREADTH_FIRST = {
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
}
"""As Scrapy's manual has it."""


class FollowSpider(scrapy.Spider):
    """Yields an item a page and follows all links to the same host."""

    name = "follow"

    def __init__(self, start: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start] if start else []

    def parse(self, response: Response) -> Iterator[Any]:
        """One item a page.

        @url data:text/html,<h1>A%20page</h1><p>one%20two%20three%20four%20five%20six%20seven%20eight%20nine
        @returns items 1 1
        """
        if isinstance(response, HtmlResponse):
            yield self.item(response)
            yield from self.links(response)

    def item(self, response: Response) -> Any:
        return {"title": response.css("h1::text").get()}

    def links(self, response: Response) -> Iterator[scrapy.Request]:
        here = urlsplit(response.url).netloc
        for href in response.css("a::attr(href)").getall():
            request = response.follow(href)
            if urlsplit(request.url).netloc == here:
                yield request


class HopsSpider(FollowSpider):
    """Limits the depth by what its requests carry, and makes requests breadth first."""

    name = "hops"
    most = 5
    custom_settings = BREADTH_FIRST

    def links(self, response: Response) -> Iterator[scrapy.Request]:
        hops = response.meta.get("hops", 0)
        if hops < self.most:
            for request in super().links(response):
                yield request.replace(meta={"hops": hops + 1})


class DepthSpider(FollowSpider):
    """Limits the depth by what Scrapy counts, and makes requests breadth first."""

    name = "depth"
    most = 5
    custom_settings = BREADTH_FIRST

    def links(self, response: Response) -> Iterator[scrapy.Request]:
        depth = response.meta["depth"]
        if depth < self.most:
            yield from super().links(response)


class EnoughSpider(FollowSpider):
    """Ends the crawl by itself at so many pages."""

    name = "enough"
    most = 100
    pages = 0

    def parse(self, response: Response) -> Iterator[Any]:
        self.pages += 1
        if self.pages > self.most:
            raise CloseSpider("enough pages")
        yield from super().parse(response)


class ShallowMiddleware:
    """Leaves out requests that are too deep."""

    most = 5

    def process_request(self, request: scrapy.Request) -> None:
        if request.meta.get("depth", 0) > self.most:
            raise IgnoreRequest


class UrlSpider(FollowSpider):
    """Yields an item a page by its URL, for sites whose pages have one heading."""

    name = "url"

    def item(self, response: Response) -> Any:
        return {"url": response.url}


class SourceSpider(UrlSpider):
    """Yields whole pages as items."""

    name = "source"

    def item(self, response: Response) -> Any:
        return {"url": response.url, "html": response.text}


class TitleSpider(FollowSpider):
    """Yields the item of the page that it is given, and no requests."""

    name = "title"

    def links(self, response: Response) -> Iterator[scrapy.Request]:
        yield from ()


class IdleSpider(FollowSpider):
    """Starts with nothing; its first request comes when it is idle, as with a queue outside of Scrapy."""

    name = "idle"
    asked = False

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.ask, signal=signals.spider_idle)
        return spider

    async def start(self) -> AsyncIterator[Any]:
        nothing: Any
        for nothing in ():
            yield nothing

    def ask(self) -> None:
        if self.asked:
            return
        self.asked = True
        assert self.crawler.engine is not None
        for url in self.start_urls:
            self.crawler.engine.crawl(scrapy.Request(url, callback=self.parse))
        raise DontCloseSpider


class LoginSpider(FollowSpider):
    """Logs in wherever it meets the login form."""

    name = "login"

    def parse(self, response: Response) -> Iterator[Any]:
        if response.css("form#login"):
            wanted = response.css("input[name=next]::attr(value)").get(default="/")
            form = {"next": wanted, "password": "correct horse"}
            yield FormRequest(response.urljoin("/login"), formdata=form, callback=self.parse)
        else:
            yield from super().parse(response)


class CaptchaSpider(FollowSpider):
    """Asks again for a page that came as a captcha."""

    name = "captcha"

    def parse(self, response: Response) -> Iterator[Any]:
        if response.css("form#captcha"):
            assert response.request is not None
            again = get_retry_request(response.request, spider=self, reason="captcha")
            if again is not None:
                yield again
        else:
            yield from super().parse(response)


class ChainedSpider(FollowSpider):
    """Has an API complete the items of products; ``carry`` says where they wait."""

    name = "chained"

    def __init__(self, start: str = "", carry: str = "cb_kwargs", **kwargs: Any) -> None:
        super().__init__(start, **kwargs)
        self.carry = carry

    def parse(self, response: Response) -> Iterator[Any]:
        api = response.css("div::attr(data-api)").get()
        if api is None:
            yield from self.links(response)
        elif self.carry == "meta":
            yield response.follow(api, self.complete, meta={"item": self.item(response)})
        else:
            yield response.follow(api, self.complete, cb_kwargs={"item": self.item(response)})

    def complete(self, response: Response, item: dict[str, Any] | None = None) -> Iterator[Any]:
        assert isinstance(response, JsonResponse)
        yield {**(item or response.meta["item"]), **response.json()}


class KeepingSpider(FollowSpider):
    """Keeps an item by itself until it has read all parts of its page (:class:`tests.support.sites.drawn`).

    ``order``: ``chain``, one part after the other, or ``together``.
    """

    name = "keeping"

    def __init__(self, start: str = "", order: str = "chain", **kwargs: Any) -> None:
        super().__init__(start, **kwargs)
        self.order = order
        self.kept: dict[str, tuple[Any, list[str]]] = {}
        """Items, and which parts are still to be read, by the URL of each part."""

    def parse(self, response: Response) -> Iterator[Any]:
        if not isinstance(response, HtmlResponse):
            return
        parts = [response.urljoin(href) for href in response.xpath("//a[.='A part']/@href").getall()]
        item: dict[str, list[Any]] = {"pages": [], "texts": []}
        self.read(item, response)
        for part in parts:
            self.kept.setdefault(part, (item, parts))
        for part in parts if self.order == "together" else parts[:1]:
            yield scrapy.Request(part, self.parse_part)
        if not parts:
            yield item
        yield from (link for link in self.links(response) if link.url not in parts)

    def parse_part(self, response: Response) -> Iterator[Any]:
        assert response.request is not None
        item, parts = self.kept[response.request.url]
        self.read(item, response)
        parts.remove(response.request.url)
        if not parts:
            yield item
        elif self.order == "chain":
            yield scrapy.Request(parts[0], self.parse_part)

    def read(self, item: dict[str, list[Any]], response: Response) -> None:
        page = response.headers.get("X-Page")
        item["pages"].append(None if page is None else int(page))
        item["texts"].append(" ".join(response.css("h1::text, p::text, td::text").getall()))


class AreasSpider(FollowSpider):
    """Asks for the quarters of each area of a map that has too many branches."""

    name = "areas"

    def item(self, response: Response) -> Any:
        return {"names": response.css("li::text").getall()}

    def links(self, response: Response) -> Iterator[scrapy.Request]:
        if not response.css("li"):
            area = Area.asked(dict(parse_qsl(urlsplit(response.url).query)))
            for quarter in area.quarters():
                yield response.follow(quarter.target)


class ErrorsSpider(FollowSpider):
    """Wants to see pages that are not there, too."""

    name = "errors"
    handle_httpstatus_list = [404]  # noqa: RUF012 - as Scrapy's manual has it


class ItemsSpider(FollowSpider):
    """Yields items of a type of :data:`tests.support.sites.items.TYPES`."""

    name = "items"

    def __init__(self, start: str = "", kind: str = "", **kwargs: Any) -> None:
        super().__init__(start, **kwargs)
        self.kind = kind

    def item(self, response: Response) -> Any:
        return items.TYPES[self.kind](title=response.css("h1::text").get(default=""))
