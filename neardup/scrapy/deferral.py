"""The downloader middleware: sees deferred requests when their turn comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

from neardup.scrapy.extension import NearDuplicates

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class DeferredRequestMiddleware:
    """Withhold the requests of an endless space that were deferred before it was known to be endless.

    Requests wait at the end of the queue for long. Meanwhile, the near-duplicates that the requests came out
    of may have led to nothing new (``NEARDUP_ENDLESS_AFTER``). Such requests are not made, unless another
    page has led to them.

    A page may turn out to be no duplicate. Then its requests are made at once. The copies that still wait are
    ignored when their turn comes.

    The URL of a request may say that its page is a copy. Such a request is put back into the queue, to be
    made later, or is dropped (``NEARDUP_PREDICT``, :mod:`neardup.scrapy.predictions`).
    """

    def __init__(self, neardup: NearDuplicates) -> None:
        self.neardup = neardup

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DeferredRequestMiddleware:
        return cls(NearDuplicates.of(crawler))

    def process_request(self, request: Request) -> Request | None:
        self.neardup.predictions.unqueued(request)
        if self.neardup.policy.has_been_released(request):
            self.neardup.predictions.forget(request)
            request.errback = None  # nothing has failed
            raise IgnoreRequest(f"made already, because its page is no near-duplicate: {request.url}")
        if self.neardup.policy.withholds(request):
            self.neardup.predictions.forget(request)
            request.errback = None
            raise IgnoreRequest(f"one more of the near-duplicates that lead to nothing new: {request.url}")
        return self.neardup.look_at(request)
