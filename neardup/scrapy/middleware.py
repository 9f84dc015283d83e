"""The spider middleware: judges each page before its callback, and what comes out of the callback after."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy import Request
from scrapy.exceptions import IgnoreRequest, NotConfigured

from neardup.detection.verdict import LEFT_ALONE
from neardup.scrapy.elsewhere import Source
from neardup.scrapy.extension import NearDuplicates
from neardup.scrapy.verdicts import get_verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from neardup.detection.verdict import Verdict
    from neardup.scrapy.links import PageLinks
    from neardup.scrapy.policy import PageItems

logger = logging.getLogger(__name__)


class NearDuplicatePage(IgnoreRequest):
    """A page is skipped because it is a near-duplicate (``NEARDUP_ACTION = "skip"``).

    The errback of the request, if it has one, gets this exception, as it gets HttpError.
    """

    def __init__(self, response: Response, verdict: Verdict) -> None:
        self.response = response
        self.verdict = verdict
        super().__init__(f"near-duplicate of {verdict.canonical_url}: {verdict.reason}")


class NearDuplicateMiddleware:
    """Have the links of near-duplicates followed last.

    Every HTML response is judged before its callback is called, unless its request says ``meta={"neardup":
    False}``. What becomes of the requests that come out of the callback of a duplicate is decided by
    :class:`neardup.scrapy.links.PageLinks`. The items of a duplicate pass, or are marked to be dropped by the
    pipeline. With ``NEARDUP_ACTION = "skip"`` the callback is not called at all. What comes from other
    responses is not touched.
    """

    def __init__(self, neardup: NearDuplicates) -> None:
        self.neardup = neardup
        self._warned = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDuplicateMiddleware:
        neardup = NearDuplicates.of(crawler)
        if neardup.options.content_field is not None:
            raise NotConfigured("NEARDUP_CONTENT_FIELD is set: pages are judged by the pipeline")
        return cls(neardup)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for output in start:
            yield output
        self.neardup.predictions.starts_are_made = True

    def process_spider_input(self, response: Response) -> None:
        # The verdict is found and the page inserted in this one synchronous call. With an await between
        # look-up and insert, two copies that arrive together would both be new.
        verdict = self.neardup.judge_response(response)
        if verdict is not None and self.neardup.skips_page(response, verdict):
            self.neardup.policy.hold_page(response, verdict)
            self.neardup.store_links(response, verdict)
            self.neardup.outcomes.count("neardup/pages_skipped")
            raise NearDuplicatePage(response, verdict)

    def process_spider_exception(self, response: Response, exception: Exception) -> AsyncIterator[Any] | None:
        if isinstance(exception, NearDuplicatePage):
            return self._nothing()
        self.neardup.page_failed(response)
        return None

    async def _nothing(self) -> AsyncIterator[Any]:
        """The output of a skipped page, which has a row to be stored like any other, and is under way until
        there is room.
        """
        await self.neardup.wait_for_room()
        nothing: Any
        for nothing in ():
            yield nothing

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        await self.neardup.wait_for_room()
        verdict = get_verdict(response)
        source = Source(response)
        items = self.neardup.policy.items_of(source, verdict)
        links = self.neardup.policy.links_of(source, verdict, partial(self.neardup.text, response))
        requested: list[str] = []
        stores_links = self.neardup.options.links
        try:
            async for output in result:
                if verdict is not None and verdict.is_doubtful:  # it may have been corrected
                    links.verdict = verdict = get_verdict(response)
                if isinstance(output, Request):
                    try:
                        items.requested(output)
                        if not links.lets_pass(output):
                            continue
                    except Exception as exc:  # noqa: BLE001  # the request is the spider's all the same
                        self.neardup.outcomes.failed_on(response.url, exc)
                    if stores_links and output.method == "GET":
                        requested.append(output.url)
                elif verdict is not None:
                    try:
                        items.read(output)
                    except Exception as exc:  # noqa: BLE001  # the item is the spider's all the same
                        self.neardup.outcomes.failed_on(response.url, exc)
                    self._tell(output, verdict)
                yield output
        finally:
            links.verdict = verdict = get_verdict(response)
            self._finish(items, links, response, verdict)
            self.neardup.store_links(response, verdict, requested)

    def _finish(
        self, items: PageItems, links: PageLinks, response: Response, verdict: Verdict | None
    ) -> None:
        try:
            items.finish()
            links.count_steps()
            if not links.read_copy():
                shown = self.neardup.look_ahead.shown(response)
                exhausted = links.finish(shown.names, shown.numbers)
                self.neardup.look_ahead.read(response, shown, tells=links.tells)
                self.neardup.look_ahead.ask_for_numbers(response)
                if exhausted is not None:
                    self.neardup.look_ahead.exhausted(exhausted, response)
        except Exception as exc:  # noqa: BLE001  # an error here would be the callback's for Scrapy
            self.neardup.outcomes.failed_on(response.url, exc)
            return
        self.neardup.outcomes.links_withheld(links, verdict)

    def _tell(self, item: Any, verdict: Verdict) -> None:
        """Write the verdict into the item's field of that name, where the item can have one."""
        field = self.neardup.options.verdict_field
        if field is None or verdict.kind in LEFT_ALONE or not ItemAdapter.is_item(item):
            return
        try:
            ItemAdapter(item)[field] = verdict.as_dict()
        except Exception as exc:  # noqa: BLE001  # whatever a frozen or validated item raises
            if not self._warned:
                self._warned = True
                logger.warning(
                    "NEARDUP_VERDICT_FIELD is %(field)r, but items of type %(type)s do not take it"
                    " (%(reason)r); they are left as they are (further ones are not logged)",
                    {"field": field, "type": type(item).__name__, "reason": exc},
                    extra={"spider": self.neardup.crawler.spider},
                )
