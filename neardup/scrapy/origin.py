"""Where requests come from, noted in their meta for the guard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.spidermiddlewares.base import BaseSpiderMiddleware

from neardup.address import is_web, place_of

if TYPE_CHECKING:
    from scrapy.http import Request, Response

FREE = "neardup_guard"
"""Key of ``Request.meta``: the place, or scheme, that the request may go to unchecked. A request that is made
of another one, and leads to another place, says nothing by it, so a copied meta does no harm.
"""


class OriginMiddleware(BaseSpiderMiddleware):
    """Lets start requests go anywhere, and requests that come from files go to files.

    A spider middleware for :class:`~neardup.scrapy.guard.PrivateNetworkMiddleware`, which takes every other
    request for one that a web page has led to. This middleware stands near the spider, so that a middleware
    that holds requests back holds the requests with their note.
    """

    def get_processed_request(self, request: Request, response: Response | None) -> Request:
        place = goal(request.url)
        comes_from_file = response is not None and not is_web(response.url)
        if response is None or (comes_from_file and not is_web(request.url)):
            request.meta[FREE] = place
        elif request.meta.get(FREE, place) != place:
            request.meta[FREE] = ""  # copied; what is followed from here must not have it
        return request


def goal(url: str) -> str:
    """The place of an http(s) URL; of any other its scheme."""
    return place_of(url) if is_web(url) else url.partition(":")[0].lower() + ":"
