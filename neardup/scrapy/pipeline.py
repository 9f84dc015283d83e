"""The item pipeline: drops the items of near-duplicates; or, alone, judges pages that items carry."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter
from scrapy.exceptions import DropItem
from scrapy.http import HtmlResponse

from neardup.scrapy.elsewhere import Source
from neardup.scrapy.extension import NearDuplicates
from neardup.text.visible_text import decode

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from neardup.detection.verdict import Verdict

logger = logging.getLogger(__name__)


class NearDuplicate(DropItem):
    """An item was dropped because its page is a near-duplicate; counted as
    ``item_dropped_reasons_count/NearDuplicate``.
    """

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(f"near-duplicate of {verdict.canonical_url}: {verdict.reason}", log_level="DEBUG")


class NearDuplicatePipeline:
    """Drop the items of near-duplicates if ``NEARDUP_ACTION`` is ``drop`` or ``skip``.

    With ``NEARDUP_CONTENT_FIELD`` set the pipeline works without the spider middleware. The field so named
    holds the HTML or text of a page (str or bytes). The field named by ``NEARDUP_URL_FIELD`` holds the page's
    URL. The page in these fields is judged. Items without either field pass untouched. A dropped item cannot
    be had again, so one page of its cluster must have said all that the page says.
    """

    def __init__(self, neardup: NearDuplicates) -> None:
        self.neardup = neardup
        self._warned = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDuplicatePipeline:
        return cls(NearDuplicates.of(crawler))

    async def process_item(self, item: Any) -> Any:
        if self.neardup.options.content_field is not None:
            self._judge(item)
            await self.neardup.wait_for_room()
        verdict = self.neardup.policy.pop_dropped(item)
        if verdict is None:
            return item
        self.neardup.outcomes.count("neardup/items_dropped")
        raise NearDuplicate(verdict)

    def _judge(self, item: Any) -> None:
        """Judge the page in an item, and have the item dropped if it is a copy of another item's."""
        options = self.neardup.options
        adapter = ItemAdapter(item)
        content, url = adapter.get(options.content_field), adapter.get(options.url_field)
        if not isinstance(content, str | bytes) or not isinstance(url, str):
            if not self._warned:
                self._warned = True
                logger.warning(
                    "An item of type %(type)s has no text in its field %(content)r (NEARDUP_CONTENT_FIELD)"
                    " or no URL in %(url)r (NEARDUP_URL_FIELD); such items pass untouched"
                    " (further ones are not logged)",
                    {
                        "type": type(item).__name__,
                        "content": options.content_field,
                        "url": options.url_field,
                    },
                    extra={"spider": self.neardup.crawler.spider},
                )
            return
        html = content if isinstance(content, str) else decode(content)
        # A lone surrogate has no UTF-8.
        page = HtmlResponse(url, body=html.encode("utf-8", "replace"), encoding="utf-8")
        verdict = self.neardup.judge_item(page)
        if verdict is not None:
            self.neardup.policy.items_of(Source(page), verdict).read(item)
