"""Spiders as people have them, which know nothing of the add-on, and texts for the pages they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import HtmlResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response


def text(name: str) -> str:
    """Eighty words, some of them often, as on a real page."""
    return " ".join(f"{name}{i} " * (1 + 40 // (i + 1)) for i in range(80))


WORDS, OTHER, THIRD = text("word"), text("other"), text("third")


class LinkSpider(scrapy.Spider):
    """Follows all links and yields an item a page: a spider as people have it."""

    name = "links"

    def __init__(self, start: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start]

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for href in response.css("a::attr(href)").getall():
            yield response.follow(href)


class Careless(scrapy.Spider):
    """Follows every link of a page anywhere, and tells what it could read and what not."""

    name = "careless"
    copies_meta = False

    def __init__(self, start: list[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = start
        self.refused: dict[str, str] = {}

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for url in self.start_urls:
            yield scrapy.Request(url, errback=self.failed)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        if isinstance(response, HtmlResponse):
            for link in response.css("a::attr(href)").getall():
                meta = response.meta if self.copies_meta else None
                yield scrapy.Request(response.urljoin(link), errback=self.failed, meta=meta)

    def failed(self, failure: Any) -> None:
        self.refused[failure.request.url] = f"{failure.type.__name__}: {failure.value}"


class Nothing(scrapy.Spider):
    """One page and no request."""

    name = "nothing"
    custom_settings = {"NEARDUP_CONTENT_FIELD": "html"}  # noqa: RUF012

    async def start(self) -> Any:
        yield {"url": "http://a.example/", "html": WORDS}
