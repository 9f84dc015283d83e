"""Where requests come from, noted in their meta for the guard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request

from neardup.address import is_web
from neardup.scrapy.guard import FREE, PrivateNetworkMiddleware, goal
from neardup.scrapy.schedulers import has_own_requests_only

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response


class OriginMiddleware:
    """Lets start requests go anywhere, and requests that come from files go to files.

    A spider middleware for :class:`~neardup.scrapy.guard.PrivateNetworkMiddleware`, which takes every other
    request for one that a web page has led to. This middleware stands near the spider, so that a middleware
    that holds requests back holds the requests with their note.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._guard: PrivateNetworkMiddleware | None = None
        self._is_of_one_run = has_own_requests_only(crawler.settings)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> OriginMiddleware:
        return cls(crawler)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        # Scrapy makes the guard before any start request, but after this middleware.
        self._guard = self._crawler.get_downloader_middleware(PrivateNetworkMiddleware)
        if self._guard is not None:
            self._guard.is_told()
        async for output in start:
            if isinstance(output, Request):
                output.meta[FREE] = goal(output.url)
                self._tell(output)
            yield output

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        comes_from_file = not is_web(response.url)
        async for output in result:
            if isinstance(output, Request):
                meta = output.meta
                if comes_from_file and not is_web(output.url):
                    meta[FREE] = goal(output.url)
                elif FREE in meta and meta[FREE] != goal(output.url):
                    meta[FREE] = ""  # copied; what is followed from here must not have it
                if not self._is_of_one_run:
                    # A later run may make the request before it meets the start requests. In this run, it is
                    # soon enough when the request is made.
                    self._tell(output)
            yield output

    def _tell(self, request: Request) -> None:
        if self._guard is not None:
            self._guard.note(request)
