"""A look ahead before the links of an endless space are given up: does the space really go on for ever?"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from itertools import chain, pairwise
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from scrapy import Request
from scrapy.http import HtmlResponse
from scrapy.utils.defer import deferred_from_coro

from neardup.detection.endless import MOST_WITHOUT_NEW, WORTH
from neardup.detection.latest import keep_latest
from neardup.errors import PageTooLarge
from neardup.scrapy.links import CLUSTER, OUT_OF
from neardup.scrapy.probes import META_KEPT, META_OF_PROBE
from neardup.text.anchors import links
from neardup.text.media import not_shown, of_media, symbols
from neardup.text.words import words
from neardup.urls.counting import further_on
from neardup.urls.parts import is_opaque, parts_of, url_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from neardup.detection.detector import Detector
    from neardup.detection.endless import EndlessWatch
    from neardup.detection.endless import Own as OwnWords
    from neardup.detection.page_numbers import Numbers
    from neardup.scrapy.outcomes import Outcomes
    from neardup.urls.counting import Further

logger = logging.getLogger(__name__)

_STEPS = (0.5, 2, 8, 32)
"""Times the limit: how far on the pages are that are asked for."""

_REMEMBERED = 12
"""URLs of each kind of pages of a cluster that are remembered, the last ones."""

_MOST_KINDS = 8
"""Kinds of pages of a cluster whose URLs are remembered, the last ones."""

_MOST_CLUSTERS = 5_000
"""Clusters whose URLs are remembered, some 70 MB; the one that has been quiet the longest is forgotten."""

_MOST_LASTING = 100
"""Pages that are asked for again some time later, the last ones."""

_ASKED_AGAIN = (2.0, 61.0)
"""Seconds after which a page whose numbers have lasted is asked for again: a clock may show no seconds."""

_TIMES_ASKED = 2
"""Times that a page is asked for again, at most, to see whether what it has of its own lasts."""

_NOT_THERE = {400, 404, 410, 500}
"""Statuses by which sites say that they have no such page. Others say that they do not like the crawl."""

_MOST_NAMES = 500_000
"""Names, words and numbers that are remembered, some 50 MB. When there are more, all are forgotten."""


class _OfNumbers(NamedTuple):
    """A page of a cluster whose numbers are asked for: at what time, and how long after the first time."""

    cluster: int
    url: str
    request: Request | None
    numbers: Numbers
    when: float
    age: float = 0.0


class Shown(NamedTuple):
    """What a page has beside its text."""

    names: set[str]
    numbers: set[str]
    is_whole: bool = False
    """Whether what is not shown is among these."""


class _OfOnePage(NamedTuple):
    """What only the page of a request shows."""

    request: Request
    names: set[str]


@dataclass(slots=True, eq=False)
class _Own:
    """What the pages of a cluster have, of one kind, and each of them alone."""

    read: Callable[[Response], set[str]]
    met: set[str] = field(default_factory=set)
    last: _OfOnePage | None = None
    """That of the last page that has something of its own."""
    seen: int = 0
    """Pages since these last had the cluster go on."""
    pages: int = 0
    """Those of them that have something of their own."""
    lasts: bool = False
    """Whether a page had the same when it was asked for once more."""

    def note(self, response: Response, found: set[str], *, tells: bool, is_first: bool) -> int:
        """Take note of what was read of a page; how much is new. Only pages that tell something count. Of the
        first page that is read whole, nobody knows what other pages have as well.
        """
        own = found - self.met
        self.seen += tells
        if is_first:
            self.met |= own
        elif own and response.request is not None:
            self.last = _OfOnePage(response.request, own)
            self.pages += tells
            self.met |= own
        return len(own)

    def begin_anew(self) -> None:
        self.seen = self.pages = 0

    def shows(self, limit: int) -> bool:
        """Whether half as many pages have something of their own as would have to say words of their own.

        Not all that a page has is read of the first half of them.
        """
        return self.last is not None and self.pages * (WORTH + 1) >= max(limit, self.seen) // 2


class _ToAsk(NamedTuple):
    """What can tell whether a cluster goes on: what pages have beside words, and pages further on."""

    own: list[_Own]
    further: list[list[Further]]
    """Of each kind of pages whose URLs count."""


@dataclass(slots=True, eq=False)
class _Kind:
    """Pages of a cluster whose URLs have one shape."""

    urls: deque[str] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    leads_on: bool = False
    """Whether one of these pages led to another: as the entries of a guestbook do, but not their forms."""
    pages: int = 0


@dataclass(slots=True, eq=False)
class _Pages:
    """What was seen of the pages that the duplicates of a canonical page have led to."""

    names: _Own
    """Names of media, and words that are not shown."""
    numbers: _Own
    by_shape: OrderedDict[str, _Kind] = field(default_factory=OrderedDict)
    news: int = 0
    """Pages that were new when the last page was read."""
    is_read_whole: bool = False
    """Whether of a page was read what is not shown."""

    @property
    def kinds(self) -> tuple[_Own, _Own]:
        return self.names, self.numbers

    def begin_anew(self) -> None:
        for own in self.kinds:
            own.begin_anew()

    def note_url(self, url: str, out_of: str) -> None:
        """Take note of the URL of a page, and of the shape of that of the page with the link."""
        shape = url_shape(url)
        kind = self.by_shape.get(shape) or _Kind()
        kind.urls.append(url)
        kind.pages += 1
        kind.leads_on |= shape == out_of
        keep_latest(self.by_shape, shape, kind, _MOST_KINDS)

    def leads_on(self, shape: str) -> bool:
        """Whether pages with URLs of this shape have led to their like."""
        kind = self.by_shape.get(shape)
        return kind is not None and kind.leads_on

    def further(self, distances: Sequence[int]) -> list[list[Further]]:
        """URLs so many steps further on, of each kind of pages that leads on to its like and whose URLs
        count. Empty: those of the largest such kind do not count. Without such a kind, the last page's tell.
        """
        kinds = list(self.by_shape.values())
        leading = sorted((kind for kind in kinds if kind.leads_on), key=lambda kind: -kind.pages)
        ahead = [further_on(_in_one_session(kind.urls), distances) for kind in leading or kinds[-1:]]
        return [places for places in ahead if places] if ahead[0] else []


class LookAhead:
    """Looks further on when a cluster is exhausted (:mod:`neardup.detection.endless`), in one crawl.

    A chain of pages that are alike, such as the removed entries of a guestbook, looks like an endless space
    from within. If the URLs of its pages count up or down, a few pages further on are requested. When one of
    these is not there, is another page, or leads no further, the chain has an end, and is followed that far.
    All are copies in an endless space. Pages of several kinds may lead to their like, such as days and weeks.
    Then each kind has to have an end. Forms beside the entries of a guestbook tell nothing.

    Pages without words of their own may have media, files or symbols of their own, or words that are not
    shown. These stand in data for scripts, attributes and titles. Whether these are content is seen by asking
    for the last page once more: names that are made up for each request are others then. If the URLs do not
    count, numbers that are not shown are asked for likewise. Where URLs count, numbers may count with them
    for ever. Words of the text are asked for, too, when they have gone on for long: they may be random.
    Numbers of the text are asked for from time to time, before the end. Where URLs count, these numbers tell
    only if the URLs show an end.

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
        self._lasting: deque[_OfNumbers] = deque(maxlen=_MOST_LASTING)

    def shown(self, response: Response) -> Shown:
        """What a page has beside its text, if a link of a duplicate led to it."""
        cluster = response.meta.get(CLUSTER)
        return Shown(set(), set()) if cluster is None else self._shown(cluster, response)

    def read(self, response: Response, shown: Shown, *, tells: bool) -> None:
        """Take note of a page, if a link of a duplicate led to it.

        ``tells``: the page says something about whether its cluster ends.
        """
        cluster = response.meta.get(CLUSTER)
        if cluster is None:
            return
        if cluster not in self._pages:
            names = _Own(lambda response: self._shown(cluster, response).names)
            numbers = _Own(lambda response: self._shown(cluster, response).numbers)
            self._pages[cluster] = _Pages(names, numbers)
        pages = self._pages[cluster]
        self._pages.move_to_end(cluster)
        if len(self._pages) > _MOST_CLUSTERS:
            self._names -= sum(len(own.met) for own in self._pages.popitem(last=False)[1].kinds)
        if pages.news != (news := self._endless.news(cluster)):
            pages.news = news
            pages.begin_anew()
        pages.note_url(response.url, response.meta.get(OUT_OF, ""))
        is_first = shown.is_whole and not pages.is_read_whole
        pages.is_read_whole |= shown.is_whole
        for own, found in ((pages.names, shown.names), (pages.numbers, shown.numbers)):
            self._names += own.note(response, found, tells=tells, is_first=is_first)
        if self._names > _MOST_NAMES:
            self._names = 0
            for forgotten in self._pages.values():
                forgotten.is_read_whole = False
                for own in forgotten.kinds:
                    own.met.clear()
                    own.last = None

    def exhausted(self, cluster: int, response: Response) -> None:
        """Look ahead before a cluster is left, or leave it; ``response`` is its last page."""
        if doubted := self._endless.in_doubt(cluster):
            question = self._endless.question(cluster, in_doubt=True)  # links are followed from here on
            assert question is not None
            deferred_from_coro(self._doubt(cluster, question, doubted, response))
            return
        pages = self._pages[cluster]  # the last page of the cluster has been read
        limit = self._endless.limit
        further = pages.further([max(1, int(times * limit)) for times in _STEPS])
        telling = [own for own in (pages.kinds if not further else (pages.names,)) if own.shows(limit)]
        if any(own.lasts for own in telling) and self._endless.count_anew(cluster):
            pages.begin_anew()
            return
        to_ask = _ToAsk([own for own in telling if not own.lasts], further)
        question = self._endless.question(cluster) if any(to_ask) else None
        if question is None:
            self._outcomes.exhausted(cluster, response)
            return
        deferred_from_coro(self._look(cluster, question, response, to_ask))

    async def _doubt(
        self, cluster: int, question: int, doubted: tuple[OwnWords, ...], response: Response
    ) -> None:
        """Find out whether the words of the last pages are content, or random."""
        try:
            for words in doubted:
                if await self._says_again(cluster, words, response):
                    self._endless.trust(cluster, question)
                    return
        except Exception as exc:  # noqa: BLE001  # whatever it is, the crawl goes on
            self._outcomes.failed_on(response.url, exc)
        self._endless.distrust(cluster, question)

    async def _look(self, cluster: int, question: int, response: Response, to_ask: _ToAsk) -> None:
        try:
            for own in to_ask.own:
                own.lasts = await self._has_again(own)
                if own.lasts and self._endless.count_anew(cluster, question):
                    own.begin_anew()
                    return
            ends = await self._ends(to_ask.further, cluster, response.request)
            if ends:
                last = max(ends, key=lambda there: there.steps)
                self._endless.go_on(cluster, question, last.steps)
                self._tell(last, response)
                return
        except Exception as exc:  # noqa: BLE001  # whatever it is, the crawl goes on
            self._outcomes.failed_on(response.url, exc)
        if self._endless.end(cluster, question):
            self._outcomes.exhausted(cluster, response)

    def ask_for_numbers(self, response: Response) -> None:
        """Ask for a page once more if it is time to find out which numbers of a cluster are made up."""
        cluster = response.meta.get(CLUSTER)
        if cluster is None:
            return
        now, numbers = monotonic(), self._endless.numbers_to_ask(cluster)
        due = [page for page in self._lasting if page.when <= now]
        for page in due:
            self._lasting.remove(page)
        if numbers is not None:
            due.append(_OfNumbers(cluster, response.url, response.request, numbers, now))
        for page in due:
            deferred_from_coro(self._ask_for_numbers(page))

    async def _ask_for_numbers(self, page: _OfNumbers) -> None:
        try:
            found = await self._page(page.url, page.request)
            if not found or not self._endless.last(page.cluster, page.numbers, self._text(found), page.url):
                return
            later = next((age for age in _ASKED_AGAIN if age > page.age), None)
            # One page of a cluster at a time.
            if later is not None and all(other.cluster != page.cluster for other in self._lasting):
                self._lasting.append(page._replace(when=monotonic() + later - page.age, age=later))
            if page.age or page.cluster not in self._pages:
                return
            last = MOST_WITHOUT_NEW * self._endless.limit
            further = self._pages[page.cluster].further([last])
            if not further or await self._ends(further, page.cluster, page.request):
                self._endless.trust_numbers(page.cluster)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the crawl goes on
            self._outcomes.failed_on(page.url, exc)

    def ask_for_values(self, response: HtmlResponse, name: str, tell: Callable[..., None]) -> None:
        """Ask for a page once more, and tell whether all its links have other values of a parameter then, and
        lead to the same pages. A page that shows some of a thousand alike items has other links, too.

        ``tell`` is called with the URL, the name, and the answer as ``makes_up_values``.
        """
        deferred_from_coro(self._ask_for_values(response, name, tell))

    async def _ask_for_values(self, response: HtmlResponse, name: str, tell: Callable[..., None]) -> None:
        makes_up_values = False
        try:
            found = await self._page(response.url, response.request)
            changed = None if found is None else _changed(response, found, name)
            if changed is not None:
                makes_up_values = await self._is_one_page(*changed, name, response.request)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the crawl goes on
            self._outcomes.failed_on(response.url, exc)
        tell(response.url, name, makes_up_values=makes_up_values)

    def ask_whether_numbers_last(
        self, response: Response, canonical_id: int, numbers: Numbers, tell: Callable[..., None]
    ) -> None:
        """Ask for a duplicate once more, and tell whether it has the same numbers then, as ``last``."""
        deferred_from_coro(self._ask_whether_numbers_last(response, canonical_id, numbers, tell))

    async def _ask_whether_numbers_last(
        self, response: Response, canonical_id: int, numbers: Numbers, tell: Callable[..., None]
    ) -> None:
        try:
            found = await self._page(response.url, response.request)
            if found:
                tell(last=self._endless.last(canonical_id, numbers, self._text(found), response.url))
        except Exception as exc:  # noqa: BLE001  # whatever it is, the crawl goes on
            self._outcomes.failed_on(response.url, exc)

    async def _is_one_page(self, one: str, other: str, name: str, like: Request | None) -> bool:
        """Whether two URLs lead to one page. What one says twice, the other has to say in between: clocks and
        random words are left out, and the values of the parameter.
        """
        said = []
        values = {word for url in (one, other) for pair in _of_url(url, name) for word in words(pair)}
        for url in (one, other, one):
            page = await self._page(url, like)
            if page is None:
                return False
            of_page = [word for word in words(self._text(page)) if word not in values]
            said.append({*pairwise(of_page), *of_page, *of_media(page.url, page.selector.root).names})
        return said[0] & said[2] <= said[1]

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

    async def _page(self, url: str, like: Request | None) -> HtmlResponse | None:
        """The page that answers such a request; None: there is no answer, an error, or no HTML."""
        found = await self._answer(url, like)
        return found if isinstance(found, HtmlResponse) and 200 <= found.status < 300 else None

    async def _has_again(self, own: _Own) -> bool:
        """Whether the last page with something of its own has it when asked for once more: most of it, or
        some of it twice. Some of it may be made up, and some of what is drawn by lot comes again by chance.
        """
        assert own.last is not None
        request, names = own.last
        lasting = names
        for _ in range(_TIMES_ASKED):
            found = await self._answer(request.url, request)
            if found is None:
                return False
            lasting = lasting & own.read(found)
            if 2 * len(lasting) > len(names):
                return True
            if not lasting:
                return False
        return True

    async def _says_again(self, cluster: int, doubted: OwnWords, like: Response) -> bool:
        """Whether a page says something that only that page has said, when it is asked for once more.

        Without an answer, and if a captcha or a page for scripts comes instead, there is no reason to doubt.
        """
        found = await self._page(doubted.url, like.request)
        if found is None:
            return True
        return not self._is_like(cluster, found) or self._endless.has_phrases(self._text(found), doubted)

    def _text(self, response: HtmlResponse) -> str:
        return self._detector.reader.visible_text(response.url, response.selector.root)

    def _shown(self, cluster: int, response: Response) -> Shown:
        """Names and numbers of a page's media and, of a cluster that nears its end, symbols and what is not
        shown.

        To find what is not shown takes as long as all else that is done about a page.
        """
        if not isinstance(response, HtmlResponse):
            return Shown(set(), set())
        root = response.selector.root
        names, numbers = of_media(response.url, root)
        if not self._endless.nears_end(cluster):
            return Shown(names, numbers)
        words, more = not_shown(response.url, root)
        return Shown(names | words | symbols(self._text(response)), numbers | more, is_whole=True)

    async def _ends(self, further: list[list[Further]], cluster: int, like: Request | None) -> list[Further]:
        """Of each kind of pages, the first place that shows an end.

        Empty: the pages of one kind go on. A calendar without an end may lead to a hundred events.
        """
        ends = []
        for kind in further:
            for there in kind:
                if await self._is_end(there, cluster, like):
                    ends.append(there)
                    break
            else:
                return []
        return ends

    async def _is_end(self, there: Further, cluster: int, like: Request | None) -> bool:
        """Whether something else than a copy of the last pages is to be found there, or one that leads no
        further.

        So is a page that says something of its own, unless words of such pages are random.
        """
        if there.url is None:
            return True
        found = await self._answer(there.url, like)
        if found is None:
            return False
        if not 200 <= found.status < 300:
            return found.status in _NOT_THERE
        if not isinstance(found, HtmlResponse) or not self._is_like(cluster, found):
            return True
        shape = url_shape(there.url)
        pages = self._pages.get(cluster)
        if pages is not None and pages.leads_on(shape) and not _leads_further(found, there, shape):
            return True
        is_random = self._endless.is_random(shape)
        return not is_random and not self._endless.says_nothing(cluster, self._text(found))

    def _tell(self, there: Further, last: Response) -> None:
        logger.info(
            "neardup: the near-duplicates around %(last)s go on for less than %(steps)d pages, as %(url)s"
            " shows; their links are followed that far",
            {"last": last.url, "steps": there.steps, "url": there.url or "a number below 0"},
            extra={"spider": self._crawler.spider},
        )

    def _is_like(self, cluster: int, response: HtmlResponse) -> bool:
        """Whether a page is a duplicate as those that the cluster has led to are, or says the same as these
        but for dates.
        """
        try:
            reading = self._detector.reader.read_response(response)
        except PageTooLarge:
            return False
        found = self._detector.canonical_like(response.url, reading)
        of = None if found is None else self._detector.pages.ids[found.row]
        if of is None:
            of = self._endless.first_saying(response.url, self._text(response))
        return of is not None and self._endless.is_of(cluster, of)


def _leads_further(page: HtmlResponse, there: Further, shape: str) -> bool:
    """Whether a page has a link to its like, whose URLs have this shape, other than the one before."""
    near = {there.url, there.before}
    return any(link not in near and url_shape(link) == shape for link in links(page.url, page.selector.root))


def _in_one_session(urls: Sequence[str]) -> list[str]:
    """URLs with the last one's values of those parameters that are ids: the id of a session does not count.

    >>> _in_one_session(["http://a.example/?p=6&s=4f2a90cc81d2", "http://a.example/?p=7&s=90cc81d24e07"])
    ['http://a.example/?p=6&s=90cc81d24e07', 'http://a.example/?p=7&s=90cc81d24e07']
    """
    parts = parts_of(urls[-1])
    pairs = () if parts is None else parts.parameters
    ids = {name: pair for name, pair in pairs if is_opaque(pair.rpartition("=")[2])}
    return [_with(url, ids) for url in urls]


def _with(url: str, pairs: dict[str, str]) -> str:
    """A URL with other text of those parameters that are among the pairs of name and text."""
    for name, other in pairs.items():
        for pair in _of_url(url, name):
            url = url.replace(pair, other)
    return url


def _changed(before: HtmlResponse, now: HtmlResponse, name: str) -> tuple[str, str] | None:
    """A link of a page, and one of the same page some time later that differs in a parameter alone.

    None: there are none, or not all values are others. That of the page's own URL does not count.
    """
    own = _of_url(before.url, name)
    earlier, later = (
        {
            link: pairs
            for link in links(page.url, page.selector.root)
            if (pairs := _of_url(link, name)) and pairs != own
        }
        for page in (before, now)
    )
    if not {*chain(*earlier.values())}.isdisjoint(chain(*later.values())):
        return None
    rest = {name: ""}
    by_rest = {_with(link, rest): link for link in later}
    both = ((link, by_rest.get(_with(link, rest))) for link in earlier)
    return next(((link, other) for link, other in both if other is not None), None)


def _of_url(url: str, name: str) -> list[str]:
    """The text of a parameter, as often as a URL has it."""
    parts = parts_of(url)
    return [] if parts is None else [pair for of, pair in parts.parameters if of == name]


def _asked(url: str, request: Request) -> Request:
    """The request for a page further on, made as the last one was."""
    kept = {name: request.meta[name] for name in META_KEPT if name in request.meta}
    # Of Scrapy's own class: that of a spider may be made by other arguments.
    return Request(
        url,
        method=request.method,
        headers=request.headers,
        body=request.body,
        cookies=request.cookies,
        encoding=request.encoding,
        meta=kept | META_OF_PROBE,
        dont_filter=True,  # the spider has not asked for it: its own request is still to come
    )
