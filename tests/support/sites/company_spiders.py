"""Spiders of the kinds that Scrapy has, for the site of :mod:`tests.support.sites.company`; none of them
knows of neardup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.http import HtmlResponse, JsonResponse
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule, SitemapSpider, XMLFeedSpider

from tests.support.sites.spiders import FollowSpider, LoginSpider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


class CompanySpider(FollowSpider):
    """Yields an item a page, follows all links to the same host, and has an API complete the items of
    products.
    """

    name = "company"

    def parse(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            yield from self.items(response)
            yield from self.links(response)

    def items(self, response: Response) -> Iterator[Any]:
        api = response.css("div::attr(data-api)").get()
        if api is None:
            yield self.item(response)
        else:
            yield self.completing(response, api)

    def completing(self, response: Response, api: str) -> Request:
        return response.follow(api, self.complete, cb_kwargs={"item": self.item(response)})

    def item(self, response: Response) -> dict[str, Any]:
        return {
            "path": urlsplit(response.url)._replace(scheme="", netloc="").geturl(),
            **super().item(response),
        }

    def complete(self, response: Response, item: dict[str, Any]) -> Iterator[Any]:
        assert isinstance(response, JsonResponse)
        yield {**item, **response.json()}


class SecondSpider(CompanySpider):
    """The same by another name: it crawls the same site at the same time."""

    name = "second"


class MembersSpider(LoginSpider, CompanySpider):
    name = "members"


class RulesSpider(CrawlSpider, CompanySpider):
    """Finds links by rules."""

    name = "rules"
    rules = (
        Rule(LinkExtractor(allow=r"/product/"), callback="product"),
        Rule(LinkExtractor(), callback="other", follow=True),
    )

    def parse_start_url(self, response: Response, **_: Any) -> Iterator[Any]:
        yield self.item(response)

    def product(self, response: Response) -> Iterator[Any]:
        yield from self.items(response)

    def other(self, response: Response) -> Iterator[Any]:
        if isinstance(response, HtmlResponse):
            yield self.item(response)


class MapSpider(SitemapSpider, CompanySpider):
    """Begins with the sitemap."""

    name = "map"

    def __init__(self, start: str = "", **kwargs: Any) -> None:
        super().__init__(start=start, **kwargs)
        self.sitemap_urls = [start.rstrip("/") + "/sitemap.xml"]


class FeedSpider(XMLFeedSpider, CompanySpider):
    """Begins with a feed."""

    name = "feed"
    itertag = "item"

    def __init__(self, start: str = "", **kwargs: Any) -> None:
        super().__init__(start=start, **kwargs)
        self.start_urls = [start.rstrip("/") + "/feed.xml"]

    def parse_node(self, response: Response, selector: Any) -> Iterator[Any]:
        link = selector.xpath("link/text()").get()
        yield {"path": urlsplit(link).path, "title": selector.xpath("title/text()").get()}
        yield response.follow(link, self.page)

    def page(self, response: Response) -> Iterator[Any]:
        yield from CompanySpider.parse(self, response)

    def links(self, response: Response) -> Iterator[Request]:
        for request in super().links(response):
            yield request.replace(callback=self.page)


class BrowserSpider(CompanySpider):
    """Has scrapy-playwright load the pages in a browser; the API it asks itself."""

    name = "browser"

    async def start(self) -> AsyncIterator[Any]:
        for url in self.start_urls:
            yield Request(url, meta={"playwright": True})

    def links(self, response: Response) -> Iterator[Request]:
        for request in super().links(response):
            request.meta["playwright"] = True
            yield request
