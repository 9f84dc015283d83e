"""The downloader middleware: sees deferred requests when their turn comes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakSet

from scrapy import signals
from scrapy.exceptions import IgnoreRequest

from neardup.scrapy.extension import NearDuplicates
from neardup.scrapy.schedulers import is_of_scrapy, scheduler_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

_AT_ONCE = 50
"""Requests that are put back or ignored until another task gets its turn: some 10 ms."""


class DeferredRequestMiddleware:
    """Withhold the requests of an endless space that were deferred before it was known to be endless.

    Requests wait at the end of the queue for long. Meanwhile, the near-duplicates that the requests came out
    of may have led to nothing new (``NEARDUP_ENDLESS_AFTER``). Such requests are not made, unless another
    page has led to them.

    A page may turn out to be no duplicate. Then its requests are made at once. The copies that still wait are
    ignored when their turn comes.

    The URL of a request may say that its page is a copy. Such a request is put back into the queue, to be
    made later, or is dropped (``NEARDUP_PREDICT``, :mod:`neardup.scrapy.predictions`).

    With a scheduler of Scrapy's, a request is looked at when it leaves the queue. On its way through the
    downloader, many could be at once. While these are on their way back, requests would be made that should
    wait longer than they do.

    What a callback or a pipeline downloads by itself (``engine.download_async``) is in no queue. It waits for
    an answer, and is not touched.
    """

    def __init__(self, neardup: NearDuplicates) -> None:
        self.neardup = neardup
        self._to_look_at: WeakSet[Request] = WeakSet()
        """Those that have left the queue, and are looked at on their way through the downloader."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> DeferredRequestMiddleware:
        middleware = cls(NearDuplicates.of(crawler))
        crawler.signals.connect(middleware.spider_opened, signal=signals.spider_opened)
        return middleware

    def spider_opened(self) -> None:
        """Look at each request that leaves the queue of this crawl."""
        scheduler = scheduler_of(self.neardup.crawler)
        following = self._next_request if is_of_scrapy(type(scheduler)) else self._taken
        scheduler.next_request = partial(following, scheduler.next_request)  # type: ignore[method-assign]

    def _taken(self, take: Callable[[], Request | None]) -> Request | None:
        """The next request of the queue, to be looked at later."""
        request = take()
        if request is not None:
            self._to_look_at.add(request)
        return request

    def _next_request(self, take: Callable[[], Request | None]) -> Request | None:
        """The next request of the queue that is to be made now; ``take`` takes one."""
        engine = self.neardup.crawler.engine
        assert engine is not None
        for _ in range(_AT_ONCE):
            request = take()
            if request is None:
                return None
            if self.neardup.predictions.waits_for_others(request):
                # Not by way of the engine, which would ask for the next request at once. And Scrapy has seen
                # the request before.
                request.dont_filter = True
                scheduler_of(self.neardup.crawler).enqueue_request(request)
                return None
            try:
                put_back = self._look_at(request)
            except IgnoreRequest:
                continue
            if put_back is None:
                return request
            engine.crawl(put_back)
        return self._taken(take)

    def process_request(self, request: Request) -> Request | None:
        if request not in self._to_look_at:
            return None
        self._to_look_at.discard(request)
        return self._look_at(request)

    def _look_at(self, request: Request) -> Request | None:
        """A request to put back into the queue; None: the request is to be made. IgnoreRequest: it is not."""
        try:
            return self._turn_of(request)
        except IgnoreRequest:
            raise
        except Exception as exc:  # noqa: BLE001  # whatever it is, the request is the spider's all the same
            self.neardup.outcomes.failed_on(request.url, exc)
            return None

    def _turn_of(self, request: Request) -> Request | None:
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
