"""The policy: what a crawl does about a verdict, with requests, items and callbacks."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from neardup.detection.endless import EndlessWatch
from neardup.scrapy.carried import values_carried
from neardup.scrapy.links import AGAIN, Links, PageLinks, request_key
from neardup.scrapy.options import Action

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from neardup.detection.verdict import Verdict
    from neardup.scrapy.elsewhere import Callbacks, Source
    from neardup.scrapy.had import Content, Had

logger = logging.getLogger(__name__)

_MOST_WORDS_TOLD = 5

_OPEN_IN_BROWSER = "playwright_page"
"""Meta key of scrapy-playwright: a page that only the callback closes. Too many open ones stop the crawl."""

_MOST_SKIPPED = 1_000_000
"""Skipped pages that are remembered, some 60 MB. A page that is forgotten may be skipped once more."""


class Policy:
    """Decides by ``NEARDUP_ACTION``, for one crawl.

    A duplicate loses its items or its callback only if all of this holds:

    - The verdict is sure, or another page of its cluster had all that it has, and kept its items. This crawl
      has had the content.
    - The cluster is none that gathers pages from many addresses, as walls and empty pages do.
    - The page has nothing beside its text that no page of its cluster had (:class:`neardup.scrapy.had.Had`).
      A page that an item carries has nothing in its text, either.
    - Its request carries no values of an item that the page is to complete, and the item has no words that
      are from elsewhere (:class:`PageItems`).
    - The page can be fetched again, and is not fetched a second time because it had lost its items in error.

    A callback is called all the same if the page is open in a browser, because the callback has to close it.
    """

    def __init__(self, crawler: Crawler, action: Action, endless_after: int) -> None:
        self.action = action
        self.links = Links(crawler, action, EndlessWatch(endless_after))
        self.had: Had | None = None
        """What the crawl has had beside texts; set if items are dropped, or requests by what is learned."""
        self.callbacks: Callbacks | None = None
        """What the crawl has had of callbacks; set if items are dropped, or requests by what is learned."""
        self._kept: WeakSet[Response] = WeakSet()
        self._with_more: WeakSet[Response] = WeakSet()
        self._contents: WeakKeyDictionary[Response, Content] = WeakKeyDictionary()
        self._holders: WeakKeyDictionary[Response, int] = WeakKeyDictionary()
        """Pages that had all that a duplicate has."""
        self._skipped: set[int] = set()
        """Requests whose pages were skipped when they were made last."""
        self._told: set[str] = set()
        """Why items were kept, as far as it was logged."""
        self._items: dict[int, tuple[object, Verdict]] = {}
        """Items to drop, on their way to the pipeline, by ``id()``: items need not be hashable."""

    def look_at(self, response: Response, verdict: Verdict) -> None:
        """Take note of what a page has beside its text, before its callback is called."""
        if self.had is None or verdict.page_id is None:
            return
        request = response.request
        content = self._contents[response] = self.had.content(response)
        holder = self.had.holder(content, verdict)
        if holder is not None and verdict.is_duplicate:
            self._holders[response] = holder
        has_more = self.had.has_more(content, verdict)
        if has_more:
            self._with_more.add(response)
        values = [] if request is None else values_carried(request)
        would_be_dropped = not has_more and self.drops_items(verdict, response)
        if values and would_be_dropped:
            self.tell_kept(
                "neardup: %(url)s is a duplicate and keeps its items, because its request hands on values"
                " that may be a part of them: %(what)s (further ones are not logged)",
                response.url,
                values,
            )
        if has_more or values or (request is not None and not _can_be_repeated(request)):
            self.keep(response)

    def page_failed(self, response: Response, page_id: int) -> None:
        """Take note that a page, which has an id, may not have brought all that it should."""
        if self.had is not None:
            self.links.suspects.add(page_id)
            self.had.not_heard(response)

    def has_more(self, response: Response) -> bool:
        """Whether a page that was looked at has something beside its text that no page of its cluster had."""
        return response in self._with_more

    def has_holder(self, response: Response) -> bool:
        """Whether another page of its cluster had all that a page, which was looked at, has."""
        return response in self._holders

    def tell_kept(self, message: str, url: str, what: Iterable[str]) -> None:
        """Log why a duplicate keeps items, once for each reason."""
        if message not in self._told:
            self._told.add(message)
            logger.info(
                message,
                {"url": url, "what": ", ".join(what)},
                extra={"spider": self.links.crawler.spider},
            )

    def keep(self, response: Response) -> None:
        """Have a page keep its items and its callback, whatever its verdict."""
        self._kept.add(response)

    def note_kept(self, response: Response, verdict: Verdict | None) -> None:
        """Take note that the items of a page are not dropped."""
        content = self._contents.get(response)
        if self.had is None or content is None or verdict is None or verdict.page_id is None:
            return
        self.had.keep(content, verdict)

    def drops_items(self, verdict: Verdict | None, response: Response) -> bool:
        """Whether the items of a page are dropped."""
        return (
            self.action.drops
            and verdict is not None
            and verdict.repeated
            and (verdict.is_sure or response in self._holders)
            and response not in self._kept
            and self.links.suspects.isdisjoint(self._copy_of(verdict, response))
            and verdict.page_id not in self.links.made_again
        )

    def skips_page(self, verdict: Verdict, response: Response) -> bool:
        """Whether the callback is not called at all.

        Where no request waits, all are called. With a limit of depth the links of a page's copy may have been
        too deep. Those of the page are not, unless it stands at the limit. A crawl that ends when no items
        come needs all links in time.
        """
        if self.action is not Action.SKIP or self.had is None or verdict.page_id is None:
            return False
        if self.callbacks is None or not self.links.may_wait(response.request):
            return False
        skips = (
            self.drops_items(verdict, response)
            and not verdict.follow
            and _OPEN_IN_BROWSER not in response.meta
            and self.callbacks.read_pages_alone(response.request)
        )
        if skips and not self.had.leads_on(response):
            if not self._is_asked_again(response):
                return True
            self.keep(response)
        self.had.heard(response)
        return False

    def was_skipped(self, response: Response) -> bool:
        """Whether a page was skipped when it was requested last."""
        request = response.request
        return request is not None and request_key(self.links.crawler, request) in self._skipped

    def _is_asked_again(self, response: Response) -> bool:
        """Whether a page that is to be skipped was skipped before. An errback may ask for it until it passes.

        Of a page that is asked for all day, every second copy is skipped.
        """
        assert response.request is not None
        is_again = self.was_skipped(response)
        if len(self._skipped) >= _MOST_SKIPPED:
            self._skipped.clear()
        self._skipped ^= {request_key(self.links.crawler, response.request)}
        return is_again

    def items_of(self, source: Source, verdict: Verdict | None) -> PageItems:
        """What to do with the items of one page."""
        return PageItems(self, source, verdict)

    def links_of(self, source: Source, verdict: Verdict | None, text: Callable[[], str]) -> PageLinks:
        """What to do with the requests of one page; ``text`` gives its visible text."""
        return PageLinks(self.links, source, verdict, text)

    def hold_page(self, response: Response, verdict: Verdict) -> None:
        """Remember a page whose items are dropped, or whose callback is not called, if that is doubtful.

        It is not if another page had all that it has: whatever the two are duplicates of, nothing is lost.
        """
        is_doubtful = verdict.is_doubtful and response not in self._holders
        copy_of = self._copy_of(verdict, response)
        self.links.hold_page(response, verdict, copy_of, is_doubtful=is_doubtful)

    def let_go_page(self, response: Response, verdict: Verdict) -> None:
        """Forget a page that is remembered and has lost nothing: it had no items, or kept them."""
        if verdict.page_id is not None:
            self.links.let_go_page(verdict.page_id, self._copy_of(verdict, response))

    def _copy_of(self, verdict: Verdict, response: Response) -> tuple[int, ...]:
        """What a page is a copy of: as the verdict has it, and the page that had all that it has."""
        holder = self._holders.get(response)
        return verdict.copy_of if holder is None else (*verdict.copy_of, holder)

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


class PageItems:
    """Decides about the items of one page, and learns from them what its callback brings from elsewhere.

    The items of a page are dropped by one verdict, even if the verdict is corrected in between: then the page
    is fetched again. An item passes all the same if it has words that are not on the page, and that no item
    of its cluster had together. A spider that keeps items by itself may have completed the item with the
    page.
    """

    def __init__(self, policy: Policy, source: Source, verdict: Verdict | None) -> None:
        self._policy = policy
        self._source = source
        response = self._response = source.response
        self._verdict = verdict
        self._dropped_as = verdict if policy.drops_items(verdict, response) else None
        self._elsewhere: frozenset[str] | None = None
        """Words of the items so far that the page does not have; None: no item was read."""
        self._is_silent, self._has_dropped = True, False
        if self._dropped_as is not None:
            policy.hold_page(response, self._dropped_as)
        else:
            policy.note_kept(response, verdict)

    def read(self, item: Any) -> None:
        """Read an item before anything is written into it, and drop it later if that is to be."""
        self._gave()
        policy, verdict = self._policy, self._verdict
        if policy.callbacks is None or verdict is None:
            return
        elsewhere = self._source.lacks(item)
        self._elsewhere = (self._elsewhere or frozenset()) | elsewhere
        if policy.had is None or verdict.page_id is None:
            return
        has_more = policy.had.item_has_more(elsewhere, verdict)
        if self._dropped_as is None:
            return
        if has_more:
            policy.tell_kept(
                "neardup: %(url)s is a duplicate and keeps an item, because the item has words that are not"
                " on the page: %(what)s (further ones are not logged)",
                self._response.url,
                sorted(elsewhere)[:_MOST_WORDS_TOLD],
            )
        else:
            self._has_dropped = True
            policy.drop_later(item, self._dropped_as)

    def requested(self, request: Request) -> None:
        """Take note of a request of the page's callback, or of the errback if the page was skipped."""
        self._gave()
        self._policy.links.keepers.note(self._response.request, request)
        callbacks = self._policy.callbacks if self._policy.action is Action.SKIP else None
        if callbacks is not None and not self._policy.was_skipped(self._response):
            callbacks.requested(self._response.request, self._source, request)

    def _gave(self) -> None:
        if self._is_silent:
            self._is_silent = False
            self._policy.links.giving.note(self._response.request)

    def finish(self) -> None:
        """Take note that the callback is done."""
        if self._dropped_as is not None and not self._has_dropped:
            self._policy.let_go_page(self._response, self._dropped_as)
        callbacks, request = self._policy.callbacks, self._response.request
        if callbacks is None:
            return
        if self._is_silent:
            callbacks.kept_silent(request)
        else:
            callbacks.brought(request, self._elsewhere)


def _can_be_repeated(request: Request) -> bool:
    """Whether the page of a request may be fetched again if it has lost something in error.

    A form may not, nor a page that is fetched again already.
    """
    return request.method == "GET" and AGAIN not in request.meta
