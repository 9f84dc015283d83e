"""Where requests come from, noted in their meta for the guard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy import Request

from neardup.address import is_web, place_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.http import Response

FREE = "neardup_guard"
"""Key of ``Request.meta``: the place, or scheme, that the request may go to unchecked. A request that is made
of another one, and leads to another place, says nothing by it, so a copied meta does no harm.
"""


class OriginMiddleware:
    """Lets start requests go anywhere, and requests that come from files go to files.

    A spider middleware for :class:`~neardup.scrapy.guard.PrivateNetworkMiddleware`, which takes every other
    request for one that a web page has led to. This middleware stands near the spider, so that a middleware
    that holds requests back holds the requests with their note.
    """

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for output in start:
            if isinstance(output, Request):
                output.meta[FREE] = goal(output.url)
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
            yield output


def goal(url: str) -> str:
    """The place of an http(s) URL; of any other its scheme."""
    return place_of(url) if is_web(url) else url.partition(":")[0].lower() + ":"
