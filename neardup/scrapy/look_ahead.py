"""A look ahead before the links of an endless space are given up: does the space really go on for ever?"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from scrapy.http import HtmlResponse
from scrapy.utils.defer import deferred_from_coro

from neardup.detection.endless import WORTH
from neardup.errors import PageTooLarge
from neardup.scrapy.links import CLUSTER
from neardup.scrapy.probes import META_KEPT, META_OF_PROBE
from neardup.text.media import media_names, words_not_shown
from neardup.urls.counting import further_on

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from neardup.detection.detector import Detector
    from neardup.detection.endless import EndlessWatch
    from neardup.scrapy.outcomes import Outcomes
    from neardup.urls.counting import Further

logger = logging.getLogger(__name__)

_STEPS = (0.5, 2, 8, 32)
"""Times the limit: how far on the pages are that are asked for."""

_REMEMBERED = 24
"""URLs of each cluster that are remembered, the last ones."""

_MOST_CLUSTERS = 10_000
"""Clusters whose URLs are remembered, some 50 MB; the one that has been quiet the longest is forgotten."""

_NOT_THERE = {400, 404, 410, 500}
"""Statuses by which sites say that they have no such page. Others say that they do not like the crawl."""

_MOST_NAMES = 500_000
"""Names of media that are remembered, some 50 MB. When there are more, all are forgotten."""


class _OfOnePage(NamedTuple):
    """What only the page of a request shows."""

    request: Request
    names: set[str]


@dataclass(slots=True, eq=False)
class _Pages:
    """What was seen of the pages that the duplicates of a canonical page have led to."""

    urls: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    shown: set[str] = field(default_factory=set)
    """Names of media, and words that are not shown."""
    last: _OfOnePage | None = None
    """Those that only one page has, the last one that has such names."""
    with_own: int = 0
    """Pages with such names, since the cluster was last about to be left."""
    lasts: bool = False
    """Whether a page had the same names when it was asked for once more."""


class LookAhead:
    """Looks further on when a cluster is exhausted (:mod:`neardup.detection.endless`), in one crawl.

    A chain of pages that are alike, such as the removed entries of a guestbook, looks like an endless space
    from within. If the URLs of its pages count up or down, a few pages further on are requested. When one of
    these is not there, or is another page, the chain has an end, and is followed that far. All are copies in
    an endless space.

    Pages without words of their own may have images of their own, or words that are not shown: in data for
    scripts, attributes and titles. Whether these are content is seen by asking for the last page once more:
    names that are made up for each request are others then.

    Such requests go past the scheduler and the spider, as probes do (:mod:`neardup.scrapy.probes`). They have
    the headers of the request of the last page, cookies included. None is made by ``record``, which defers
    no links. While answers are awaited, links are followed.
    """

    def __init__(
        self, crawler: Crawler, endless: EndlessWatch, outcomes: Outcomes, detector: Detector
    ) -> None:
        self._crawler = crawler
        self._endless = endless
        self._outcomes = outcomes
        self._detector = detector
        self._pages: OrderedDict[int, _Pages] = OrderedDict()
        self._names = 0

    def read(self, response: Response) -> None:
        """Take note of a page, if a link of a duplicate led to it."""
        cluster = response.meta.get(CLUSTER)
        if cluster is None:
            return
        pages = self._pages.setdefault(cluster, _Pages())
        self._pages.move_to_end(cluster)
        if len(self._pages) > _MOST_CLUSTERS:
            self._names -= len(self._pages.popitem(last=False)[1].shown)
        pages.urls.append(response.url)
        own = _shown(response) - pages.shown
        if own and response.request is not None:
            pages.last = _OfOnePage(response.request, own)
            pages.with_own += 1
            pages.shown |= own
            self._names += len(own)
        if self._names > _MOST_NAMES:
            self._names = 0
            for forgotten in self._pages.values():
                forgotten.shown.clear()

    def exhausted(self, cluster: int, response: Response) -> None:
        """Look ahead before a cluster is left, or leave it; ``response`` is its last page."""
        pages = self._pages.get(cluster, _Pages())
        limit = self._endless.limit
        # As many as words of their own would have to be said by.
        shows = pages.last is not None and pages.with_own * (WORTH + 1) >= limit
        pages.with_own = 0
        if shows and pages.lasts and self._endless.count_anew(cluster):
            return
        further = further_on(list(pages.urls), [max(1, int(times * limit)) for times in _STEPS])
        asks = further or (shows and not pages.lasts)
        if not asks or not self._endless.question(cluster):
            self._outcomes.exhausted(cluster, response)
            return
        last = pages.last if shows and not pages.lasts else None
        deferred_from_coro(self._look(cluster, response, pages, last, further))

    async def _look(
        self,
        cluster: int,
        response: Response,
        pages: _Pages,
        last: _OfOnePage | None,
        further: list[Further],
    ) -> None:
        try:
            if last is not None and await self._has_again(*last):
                pages.lasts = True
                if self._endless.count_anew(cluster):
                    return
            for there in further:
                if there.url is None or await self._ends_at(there.url, cluster, response.request):
                    self._endless.go_on(cluster, there.steps)
                    self._tell(there, response)
                    return
        except Exception as exc:  # noqa: BLE001  # whatever it is, the crawl goes on
            self._outcomes.failed_on(response.url, exc)
        if self._endless.end(cluster):
            self._outcomes.exhausted(cluster, response)

    async def _answer(self, url: str, like: Request | None) -> Response | None:
        """The answer to a request that is made as that of a page was; None: there is none."""
        assert self._crawler.engine is not None
        assert like is not None
        try:
            found = await self._crawler.engine.download_async(_asked(url, like))
        except Exception as exc:  # noqa: BLE001  # robots.txt forbids it, the guard, or nobody answers
            logger.debug("neardup: no answer from %(url)s: %(reason)r", {"url": url, "reason": exc})
            return None
        self._outcomes.count("neardup/looked_ahead")
        return found

    async def _has_again(self, request: Request, names: set[str]) -> bool:
        """Whether the page of a request shows most of these names when it is asked for once more."""
        found = await self._answer(request.url, request)
        return found is not None and 2 * len(names & _shown(found)) > len(names)

    async def _ends_at(self, url: str, cluster: int, like: Request | None) -> bool:
        """Whether something else than a copy of the last pages is to be found there."""
        found = await self._answer(url, like)
        if found is None:
            return False
        if 200 <= found.status < 300:
            return not self._is_more_of(cluster, found)
        return found.status in _NOT_THERE

    def _tell(self, there: Further, last: Response) -> None:
        logger.info(
            "neardup: the near-duplicates around %(last)s go on for less than %(steps)d pages, as %(url)s"
            " shows; their links are followed that far",
            {"last": last.url, "steps": there.steps, "url": there.url or "a number below 0"},
            extra={"spider": self._crawler.spider},
        )

    def _is_more_of(self, cluster: int, response: Response) -> bool:
        """Whether a page is one like those that the cluster has led to, and says nothing of its own."""
        if not isinstance(response, HtmlResponse):
            return False
        reader = self._detector.reader
        try:
            like = self._detector.canonical_like(response.url, reader.read_response(response))
        except PageTooLarge:
            return False
        if like is None:
            return False
        text = reader.content.text(response.url, response.selector.root)
        return self._endless.is_more_of(cluster, self._detector.pages.ids[like.row], text)


def _shown(response: Response) -> set[str]:
    """The names of a page's media, and its words that are not shown."""
    if not isinstance(response, HtmlResponse):
        return set()
    root = response.selector.root
    return media_names(root) | words_not_shown(response.url, root)


def _asked(url: str, request: Request) -> Request:
    """The request for a page further on, made as the last one was."""
    kept = {name: request.meta[name] for name in META_KEPT if name in request.meta}
    return request.replace(
        url=url,
        callback=None,
        errback=None,
        cb_kwargs={},
        meta=kept | META_OF_PROBE,
        priority=0,
        dont_filter=True,  # the spider has not asked for it: its own request is still to come
    )
