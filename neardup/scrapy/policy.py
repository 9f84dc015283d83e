"""The policy: what a crawl does about a verdict, with requests, items and callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.detection.endless import EndlessWatch
from neardup.scrapy.links import Links, PageLinks
from neardup.scrapy.options import Action

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from neardup.detection.verdict import Verdict


class Policy:
    """Decides by ``NEARDUP_ACTION``, for one crawl.

    A duplicate loses its items or its callback only if the verdict is sure and this crawl has had a page of
    the cluster before.
    """

    def __init__(self, crawler: Crawler, action: Action, endless_after: int) -> None:
        self.action = action
        self.links = Links(crawler, action, EndlessWatch(endless_after))
        self._items: dict[int, tuple[object, Verdict]] = {}
        """Items to drop, on their way to the pipeline, by ``id()``: items need not be hashable."""

    def drops_items(self, verdict: Verdict | None) -> bool:
        """Whether the items of a page are dropped."""
        return self.action.drops and verdict is not None and verdict.repeated and verdict.is_sure

    def skips_page(self, verdict: Verdict | None) -> bool:
        """Whether the callback is not called at all."""
        skips = self.action is Action.SKIP and self.drops_items(verdict)
        return skips and verdict is not None and not verdict.follow

    def links_of(self, response: Response, verdict: Verdict | None) -> PageLinks:
        """What to do with the requests of one page."""
        return PageLinks(self.links, response, verdict)

    def hold_page(self, response: Response, verdict: Verdict) -> None:
        """Remember a page whose items are dropped, or whose callback is not called, if that is doubtful."""
        self.links.hold_page(response, verdict)

    def has_been_released(self, request: Request) -> bool:
        """Whether a deferred request has been made already, because its page was no duplicate after all."""
        return self.links.has_been_released(request)

    def withholds(self, request: Request) -> bool:
        """Whether a deferred request is not to be made any more, now that its turn has come."""
        return self.links.is_withheld_now(request)

    def drop_later(self, item: Any, verdict: Verdict) -> None:
        """Have the pipeline drop an item."""
        self._items[id(item)] = item, verdict

    def pop_dropped(self, item: Any) -> Verdict | None:
        """The verdict of an item to drop, which is forgotten by that; None: the item passes."""
        return self._items.pop(id(item), (None, None))[1]
