"""What becomes of the requests that come out of a page: passed on, deferred to the end of the crawl, or
withheld.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from scrapy import signals

from neardup.address import host_of
from neardup.detection.endless import EndlessWatch, Led
from neardup.detection.verdict import CANONICAL, LEFT_ALONE, Kind
from neardup.scrapy.carried import values_carried, without_values
from neardup.scrapy.elsewhere import GivingCallbacks
from neardup.scrapy.held import Held, HeldRequests, Why
from neardup.scrapy.keepers import Keepers
from neardup.scrapy.options import Action
from neardup.scrapy.schedulers import has_own_requests_only
from neardup.scrapy.steps import Steps
from neardup.urls.expiry import expires
from neardup.urls.parts import url_shape
from neardup.urls.versions import places_in_version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from neardup.detection.verdict import Verdict
    from neardup.scrapy.elsewhere import Source
    from neardup.urls.audit import Audit

CLUSTER = "neardup_cluster"
"""Key of the meta of a deferred request: id of the canonical page whose duplicate the request came out of.

Meta survives queues on disk and in Redis, retries and redirects. :meth:`PageLinks.lets_pass` takes the key
out of requests that a spider copies it into.
"""

CHAIN = "neardup_chain"
"""Key of the meta of a deferred request: how many deferred requests, without a new page
between, led to it.
"""

FAR = "neardup_far"
"""Key of the meta of a deferred request: how far its page is from the last one that was not deferred.

Each page on the way counts by the place of its link among the new links of the page before.
"""

OUT_OF = "neardup_out_of"
"""Key of the meta of a deferred request: the shape of the URL of the page that the request came out of."""

UNNAMED = "neardup_unnamed"
"""Key of the meta of a deferred request at an address that its page does not have.

The spider has made the address up, as that of a smaller area of a map. Only the spider knows where such
requests end.
"""

BAND = "neardup_band"
"""Key of the meta of a link that may be put back into the queue when its turn comes.

A link is put back if its URL says that its page is a copy. The value is 0, or the number of the band of
priorities that the request waits in, see :func:`lowered_by`. The key is taken out when the request is made.
"""

PREDICTED = "neardup_predicted"
"""Key of the meta of a request whose page is predicted to be a copy. The value is the rule that says so: its
parts as plain text.
"""

AUDITED = "neardup_audited"
"""Key of the meta of a request that is made early, to see what those that wait lead to: its number in its
sample (:mod:`neardup.urls.audit`). The links of its page get the key, too.
"""

APART = "neardup_apart"
"""Key of the meta of a link that does not wait, although its page is a near-duplicate.

That is known to be no copy, and an audit might leave what waits.
"""

FIRST = "neardup_first"
"""Key of the meta of a link that the spider has given a priority above that of others: it does not wait."""

RELEASED = "neardup_released"
"""Key of the meta of a request that is made after all, until its turn comes. Until then, ``dont_filter`` is
set: Scrapy has seen the same request before.
"""

AGAIN = "neardup_again"
"""Key of the meta of a request for a page that has lost its items or its callback: now it loses nothing."""

LONGEST_CHAIN = 100
"""Links of a chain that are told apart: each has a priority, and so a queue, of its own."""

DEFERRED = 1_000_000
"""Subtracted from the priority of a deferred request: more than depths, retries and spiders add up to."""

REPEATED = 2 * DEFERRED
"""Subtracted instead if another page of this crawl has the same link."""

OF_DUPLICATES = 1
"""The band of the links of duplicates. Requests that are predicted to bring copies are in later ones.

Some wait half a band earlier than the others, at a stop of the audit.
"""

BETWEEN_BANDS = 1_000
"""Subtracted from the priority for each further band: more than the longest chain."""

_OF_WAITING = frozenset({CLUSTER, CHAIN, FAR, OUT_OF, UNNAMED, BAND, PREDICTED, AUDITED, APART, FIRST, AGAIN})
"""What the meta of a request says of how it waits; of no other request is this true."""

_NEAR = 3
"""Near-alike pages no farther than this are no sign of an endless space if they have few new links. These are
at most 7 for each way in: the day, the week and the month of a station of a list, say. All pages without new
links that one page leads to are near, too.
"""

_FEW_LINKS = 8
"""New links of such a page. Where session ids are handed out, each page has new links to all pages."""

_EXAMPLES = 5


def lowered_by(band: float) -> int:
    """What is subtracted from the priority of a request in a band; 0 is no band.

    >>> lowered_by(0), lowered_by(0.5), lowered_by(OF_DUPLICATES), lowered_by(4)
    (0, 999500, 1000000, 1003000)
    """
    return DEFERRED + round((band - OF_DUPLICATES) * BETWEEN_BANDS) if band else 0


def is_start_page(response: Response) -> bool:
    """Whether a response is that of a start request.

    A spider that copies ``response.meta`` into its requests copies ``is_start_request`` too, but not the
    depth.
    """
    return bool(response.meta.get("is_start_request")) and response.meta.get("depth", 0) == 0


def request_key(crawler: Crawler, request: Request) -> int:
    """Eight bytes of Scrapy's own fingerprint of a request, which it has cached: enough to count by."""
    fingerprinter = crawler.request_fingerprinter
    assert fingerprinter is not None
    return int.from_bytes(fingerprinter.fingerprint(request)[:8], "big")


Space: TypeAlias = int | tuple[str, str]
"""What requests are withheld for: a cluster by its canonical page, or a host and a parameter."""


class Links:
    """The requests of one crawl, as far as they come out of pages: which were deferred, which withheld, and
    what they led to.
    """

    def __init__(self, crawler: Crawler, action: Action, endless: EndlessWatch) -> None:
        self.crawler = crawler
        self.action = action
        self.endless = endless
        self.marks = False
        """Whether links get a :data:`BAND`."""
        self.waits_from: int | None = 0
        """The depth from which on requests may wait; None: none may."""
        self.steps_counted: Callable[[str], None] | None = None
        """Called with the name of what counts the steps to a page: the spider limits the depth itself."""
        self.giving = GivingCallbacks()
        self.keepers = Keepers(crawler)
        self._depth_priority = crawler.settings.getint("DEPTH_PRIORITY")
        self.audit: Audit | None = None
        self.is_own: Callable[[Response, Verdict], bool] = lambda response, verdict: False
        """Whether a page is known to be no copy, although it is a near-duplicate."""
        self.copy_read: Callable[[Verdict, Response, list[str]], bool] | None = None
        """Called for each copy that was predicted: with its verdict, its response, and those links that no
        page had before. Returns whether it is one of the copies that a parameter makes without end.
        """
        self.examples: list[str] = []
        """URLs of requests that were withheld and that no other page has led to."""
        self._passed_on: set[int] = set()
        self._deferred: dict[int, int] = {}
        """Clusters of the requests that are still waiting, and that no other page has led to."""
        self._withheld: dict[int, Space] = {}
        """Requests that no other page has led to, and why they are withheld."""
        self._held = HeldRequests()
        self._unheard = HeldRequests()
        """Those of pages that lost their items or callbacks, by what the pages are copies of."""
        self.suspects: set[int] = set()
        """Canonical pages and texts that may stand in the place of many pages, and pages whose items may be
        missing: their copies lose nothing.
        """
        self._queued: dict[int, Request | None] = {}
        """Deferred requests that are in the queue, whatever other page has led to them. None: the request
        itself is kept by the queue alone, which may be on a disk.
        """
        self._knows_queue = has_own_requests_only(crawler.settings)
        """Whether a request is known to enter the queue without being told by Scrapy."""
        self._watches_queue = False
        self._last_queued: Request | None = None
        self.made_again: set[int] = set()
        """Pages by id that were fetched again, because their items were dropped in error, or without being
        sure.
        """
        self.released: set[int] = set()
        """Requests that were made after all, while their deferred copies are in the queue."""

    @property
    def holds_requests(self) -> bool:
        """Whether requests might still be made after all."""
        return len(self._held) > 0

    @property
    def still_deferred(self) -> int:
        """Requests that are still waiting at the end of the queue."""
        return len(self._deferred)

    @property
    def lost_candidates(self) -> int:
        """Different requests that were withheld, and that no other page has led to."""
        return len(self._withheld)

    def lost_by_space(self) -> Counter[Space]:
        """How many of these each space has."""
        return Counter(self._withheld.values())

    def is_new(self, fingerprint: int) -> bool:
        """Whether no page of this crawl has led to a request yet."""
        return fingerprint not in self._passed_on

    def comes_first(self, request: Request) -> bool:
        """Whether a spider has given a request that it just made a priority above 0. Scrapy's setting for
        depths has changed the priority, if at all.
        """
        depth: int = request.meta.get("depth", 0)
        return request.priority + depth * self._depth_priority > 0

    def may_wait(self, request: Request | None) -> bool:
        """Whether requests of that depth may wait at all in this crawl."""
        if not self.waits_from:
            return self.waits_from is not None
        return request is not None and request.meta.get("depth", 0) >= self.waits_from

    def cannot_wait(self, request: Request) -> bool:
        """Whether the turn of a link is not to be missed.

        Its URL expires, or the spider wants it before others. Or its callback keeps what it reads for the
        items of later pages, or leads to such a callback. It may keep something as well if it has given
        nothing so far.
        """
        return (
            FIRST in request.meta
            or expires(request.url)
            or not self.giving.have(request)
            or self.keepers.cannot_wait(request)
        )

    def pass_on(self, fingerprint: int) -> None:
        """Note that a request goes its way: also one that is waiting, which Scrapy will not take twice."""
        self._deferred.pop(fingerprint, None)
        self._passed_on.add(fingerprint)
        self._withheld.pop(fingerprint, None)

    def defer(
        self, request: Request, fingerprint: int, canonical_id: int, chain: int, far: int, *, out_of: str
    ) -> Request | None:
        """Have a request made last; among those that are deferred, what another page has led to comes last of
        all. Returns the request that waits, this one or an equal one; None: that has been made, or is in its
        turn.

        The longer the chain of deferred requests that led to it, the later. So an endless calendar is read
        from its beginning in both directions, and not to the end of time in one.

        ``out_of``: the shape of the URL of the page that the request came out of; "": it is not known.

        A request that may not wait is made in its turn. It is withheld like the others if its cluster turns
        out to be endless.
        """
        alone = self._deferred.get(fingerprint, canonical_id) == canonical_id
        new = self.is_new(fingerprint)
        waits = self.may_wait(request) and not self.cannot_wait(request)
        band: float = OF_DUPLICATES if waits else 0
        if BAND in request.meta:
            if is_made_at_once(request):
                band = 0
            elif waits and self.audit is not None:
                band = self.audit.next_band(request.url, 0, OF_DUPLICATES, root=0)
            request.meta[BAND] = band
        # A spider may give its requests the priority of the response's.
        if waits and request.priority > -DEFERRED // 2:
            # An audit knows of no order but that of the bands.
            lowered = lowered_by(band) if new or self.audit is not None else REPEATED
            request.priority -= lowered + min(chain, LONGEST_CHAIN)
        request.meta[CLUSTER], request.meta[CHAIN], request.meta[FAR] = canonical_id, chain, far
        request.meta[OUT_OF] = out_of
        is_to_come = new or fingerprint in self._deferred
        self.pass_on(fingerprint)
        if is_to_come and alone:
            self._deferred[fingerprint] = canonical_id
        if not self._knows_queue:
            self._watch_queue()
        elif new:
            self._queued[fingerprint] = request
        else:
            self._deferred.pop(fingerprint, None)  # as in dropped()
        if waits:
            self.crawler.stats.inc_value("neardup/links_deferred")
        return self._queued.get(fingerprint) if self._knows_queue else request

    def leads_no_further(self, cluster: int, url: str) -> bool:
        """Whether a link of the duplicates of an exhausted cluster is not followed."""
        endless = self.endless
        return endless.is_exhausted(cluster) and not endless.is_fruitful(cluster, url_shape(url))

    def withhold(self, request: Request, fingerprint: int, space: Space) -> None:
        """Note that a request is not made because its page is a duplicate, one of a space."""
        self.crawler.stats.inc_value("neardup/links_withheld")
        if fingerprint in self._passed_on:
            return
        self._withheld[fingerprint] = space
        if len(self.examples) < _EXAMPLES:
            self.examples.append(request.url)

    def hold(self, verdict: Verdict, fingerprint: int, held: Held) -> None:
        """Keep a request that was held back because its page is a duplicate, if that is doubtful."""
        if verdict.page_id is not None and verdict.is_doubtful:
            self._held.keep(verdict.page_id, fingerprint, held)

    def hold_page(
        self, response: Response, verdict: Verdict, copy_of: Iterable[int], *, is_doubtful: bool
    ) -> None:
        """Keep the request of a page whose items are dropped, or whose callback is not called."""
        request = response.request
        if request is None or request.method != "GET" or verdict.page_id is None:
            return
        held = Held(request, request.priority, Why.UNHEARD)
        if is_doubtful:
            self.hold(verdict, request_key(self.crawler, request), held)
        for of in copy_of:
            self._unheard.keep(of, verdict.page_id, held)

    def let_go_page(self, page_id: int, copy_of: Iterable[int]) -> None:
        """Forget the request of a page that has lost nothing."""
        self._held.pop(page_id, Why.UNHEARD)
        for of in copy_of:
            self._unheard.forget(of, page_id)

    def release(self, page_id: int, cluster: int | None) -> list[Request]:
        """The requests to make now that a page is no duplicate after all, and no page of this cluster.

        These are copies. A link that has been followed meanwhile is not among them. Neither is one that
        waits, if another page says the same as the page but for dates.
        """
        if cluster is not None:
            self.endless.led(cluster, Led.NEW)
        says_a_date = self.endless.says_a_date(page_id)
        found: list[Request] = []
        for fingerprint, held in self._held.pop(page_id).items():
            if held.why is Why.UNHEARD:
                found.append(self._fetched_again(page_id, held))
                continue
            if held.why is Why.DEFERRED and says_a_date:
                continue
            if held.why is Why.WITHHELD:
                self.crawler.stats.inc_value("neardup/links_withheld", -1)
            if fingerprint in self._queued or fingerprint in self._withheld:  # not made meanwhile
                self._count_released(fingerprint, held.request)
                found.append(_released(held))
        return found

    def release_cluster(self, canonical_id: int) -> list[Request]:
        """The requests to make now that the near-duplicates of a page are known to be no copies."""
        cluster = self.endless.cluster_of(canonical_id)

        def waits_for_it(held: Held) -> bool:
            return held.why is not Why.UNHEARD and held.request.meta.get(CLUSTER) == cluster

        pages = self._held.pages(waits_for_it)
        return [request for page_id in pages for request in self.release(page_id, None)]

    def release_page(self, page_id: int) -> list[Request]:
        """The request of a page that is to be fetched again, because it is a duplicate, but no sure one."""
        return [self._fetched_again(page_id, held) for held in self._held.pop(page_id, Why.UNHEARD).values()]

    def hear_again(self, copy_of: Collection[int]) -> list[Request]:
        """The requests of the copies of a page, or of a text, that have lost items or callbacks by that."""
        found = []
        for page_id, held in [pair for of in copy_of for pair in self._unheard.pop(of).items()]:
            self._held.pop(page_id, Why.UNHEARD)
            if page_id not in self.made_again:
                found.append(self._fetched_again(page_id, held))
        return found

    def _fetched_again(self, page_id: int, held: Held) -> Request:
        """The request of a page that has lost its items or callback, and is to lose nothing now."""
        self.crawler.stats.inc_value("neardup/pages_fetched_again")
        self.made_again.add(page_id)
        return _released(held)

    def unheard(self) -> list[Request]:
        """The requests of the pages that lost their items or callbacks, as far as that is doubtful."""
        return [_released(held) for held in self._held if held.why is Why.UNHEARD]

    def _count_released(self, fingerprint: int, request: Request) -> None:
        self.crawler.stats.inc_value("neardup/links_undeferred")
        if fingerprint in self._queued:
            del self._queued[fingerprint]
            self.released.add(fingerprint)
        if request.url in self.examples:
            self.examples.remove(request.url)
        self.pass_on(fingerprint)

    def has_been_released(self, request: Request) -> bool:
        """Whether a request whose turn has come is the deferred copy of one that was made after all."""
        if request.meta.pop(RELEASED, None):
            request.dont_filter = False
            return False
        if CLUSTER not in request.meta:
            if self.action is not Action.RECORD and self._knows_queue and not request.dont_filter:
                # Also what no page has led to, such as the target of a redirect, is not queued again. A start
                # request may have been in the queue when a page led to the same: then no copy of it waits.
                fingerprint = request_key(self.crawler, request)
                self._passed_on.add(fingerprint)
                self._queued.pop(fingerprint, None)
            return False
        if not self._knows_queue:
            self._watch_queue()  # it may have been deferred in an earlier run, and be put back
        fingerprint = request_key(self.crawler, request)
        self._queued.pop(fingerprint, None)
        if fingerprint not in self.released:
            return False
        self.released.discard(fingerprint)
        return True

    def is_withheld_now(self, request: Request) -> bool:
        """Whether a request that has waited is not to be made any more: only the duplicates of an exhausted
        cluster have led to it.
        """
        # Scrapy makes no fingerprints of start requests, and a fingerprint takes time.
        if not self._deferred or UNNAMED in request.meta:
            return False
        fingerprint = request_key(self.crawler, request)
        cluster = self._deferred.get(fingerprint)
        if cluster is None or not self.leads_no_further(cluster, request.url):
            return False
        self.withhold_waiting(request, cluster)
        return True

    def withhold_waiting(self, request: Request, space: Space) -> None:
        """Note that a request that has waited is not made any more, because it is one of a space."""
        fingerprint = request_key(self.crawler, request)
        self._deferred.pop(fingerprint, None)
        self._passed_on.discard(fingerprint)
        self.withhold(request, fingerprint, space)

    def put_back(self, request: Request) -> None:
        """Note that a request that has left the queue enters it again."""
        if self._knows_queue and CLUSTER in request.meta:
            self._queued[request_key(self.crawler, request)] = request

    def waits_no_longer(self, request: Request) -> None:
        """Note that a request has left the queue and is not put back."""
        if self._deferred:
            self._deferred.pop(request_key(self.crawler, request), None)

    def _watch_queue(self) -> None:
        """Have Scrapy tell of links that enter the queue, if the queue may hold what this run has not met.

        Not before one is deferred: each link costs two signals.
        """
        if not self._watches_queue:
            self._watches_queue = True
            self.crawler.signals.connect(self.scheduled, signal=signals.request_scheduled)
            self.crawler.signals.connect(self.dropped, signal=signals.request_dropped)

    def scheduled(self, request: Request) -> None:
        """Note that a deferred request is about to enter the queue."""
        self._last_queued = None
        if CLUSTER in request.meta:
            fingerprint = request_key(self.crawler, request)
            if fingerprint not in self._queued:
                self._queued[fingerprint] = None
                self._last_queued = request

    def dropped(self, request: Request) -> None:
        """Note that Scrapy does not make a request, because it has been made before."""
        self.waits_no_longer(request)
        # Unless a copy is in the queue. Scrapy tells of a request that it drops right after it is scheduled.
        if request is self._last_queued:
            self._queued.pop(request_key(self.crawler, request), None)


class PageLinks:
    """The requests of one page: :meth:`lets_pass` is asked about each, :meth:`finish` comes last.

    ``verdict`` may be corrected in between. ``text`` gives the visible text of the page.
    """

    def __init__(
        self, links: Links, source: Source, verdict: Verdict | None, text: Callable[[], str]
    ) -> None:
        self._links = links
        self._source = source
        response = self._response = source.response
        self._callback = without_values(response.request.callback) if response.request else None
        self.verdict = verdict
        self._text = cache(text)
        self._led_by: int | None = response.meta.get(CLUSTER)
        self._far: int = 0 if self._led_by is None else response.meta.get(FAR, _NEAR + 1)
        self._audited: int | None = response.meta.get(AUDITED)
        self._is_like_others: bool | None = None
        """Whether others say the same as this canonical page, but for numbers; None: that was not asked."""
        self._new: list[str] = []
        counts = links.waits_from is not None and links.steps_counted is not None
        self._steps = Steps(response) if counts else None
        self.withheld = 0
        self.tells = True
        """Whether this page says something about whether its cluster ends. Known when this is finished."""

    def lets_pass(self, request: Request) -> bool:
        """Whether a request is passed on, perhaps deferred; False: it is withheld."""
        links, verdict = self._links, self.verdict
        meta, url = request.meta, request.url
        # Scrapy writes URLs of requests so that they can be printed.
        same_page = (url.partition("#")[0] if "#" in url else url) in self._source.own_urls
        is_link = not same_page and self._is_link(request)
        if not same_page:
            # Copied from the response's, they would be counted for the wrong cluster.
            if not _OF_WAITING.isdisjoint(meta):
                for key in _OF_WAITING & meta.keys():
                    del meta[key]
            if self._audited is not None:
                meta[AUDITED] = self._audited
        if is_link:
            self._mark(request)
        if links.action is Action.RECORD:
            return True  # nothing is held back, so nobody asks whether it was made before
        if is_link and self._steps is not None:
            self._steps.read(request)
        fingerprint = request_key(links.crawler, request)
        new = links.is_new(fingerprint)
        if new:
            self._new.append(url)
        copy_of = self._copy_of() if is_link else None
        if copy_of is None or host_of(url) != host_of(self._response.url):
            links.pass_on(fingerprint)
            return True
        assert verdict is not None
        cluster = links.endless.cluster_of(copy_of)
        is_named = self._source.has_address(request)
        if (links.action.withholds and not new) or (is_named and links.leads_no_further(cluster, url)):
            links.withhold(request, fingerprint, cluster)
            links.hold(verdict, fingerprint, Held(request, request.priority, Why.WITHHELD))
            self.withheld += 1
            return False
        chain = 0 if self._led_by is None else self._response.meta.get(CHAIN, 0) + 1
        priority = request.priority
        # Pages have many links that Scrapy filters. Held, these took memory, and the time of the collector.
        far = self._far + len(self._new)
        if not is_named:
            meta[UNNAMED] = True
        self._keep_out_of_audit(meta)
        waiting = links.defer(request, fingerprint, cluster, chain, far, out_of=self._shape)
        if waiting is not None:
            links.hold(verdict, fingerprint, Held(waiting, priority, Why.DEFERRED))
        return True

    def _mark(self, request: Request) -> None:
        """Have a link that leaves the queue known for one, and for one that is wanted first."""
        if self._links.marks and request.meta.get("neardup") is not False:
            request.meta[BAND] = 0
        if self._links.comes_first(request):
            request.meta[FIRST] = True

    def _keep_out_of_audit(self, meta: dict[str, Any]) -> None:
        """Have a link of a page that is no copy after all not wait, if what waits may be left."""
        audit, verdict = self._links.audit, self.verdict
        assert verdict is not None
        if audit is not None and audit.may_end and self._links.is_own(self._response, verdict):
            meta[APART] = True

    @cached_property
    def _shape(self) -> str:
        return url_shape(self._response.url)

    def _copy_of(self) -> int | None:
        """The canonical page because of which links wait; None: links do not wait.

        This page is a duplicate of it, or is itself one of several that say the same but for numbers. Pages
        that differ in dates alone count as one, so that an end of what they lead to holds for all of them.
        """
        verdict = self.verdict
        if verdict is None:
            return None
        if verdict.follow and (verdict.kind not in CANONICAL or is_start_page(self._response)):
            return None
        page_id, url = verdict.page_id, self._response.url
        if page_id is not None and self._is_like_others is None and (verdict.follow or verdict.is_doubtful):
            endless, headline = self._links.endless, verdict.headline
            self._is_like_others = endless.is_like_others(url, page_id, headline, self._text)
        return None if verdict.follow and not self._is_like_others else verdict.page_stood_for

    def count_steps(self) -> None:
        """Tell if the links of this page count the steps to them."""
        counted = None if self._steps is None else self._steps.counted()
        if counted is not None and self._links.steps_counted is not None:
            self._links.steps_counted(counted)

    def read_copy(self) -> bool:
        """Learn from this page if it was predicted to be a copy, and is one. Returns whether it is one of
        those that a parameter makes without end: they say nothing about a cluster.
        """
        verdict, request, read = self.verdict, self._response.request, self._links.copy_read
        if read is None or request is None or PREDICTED not in request.meta:
            return False
        return verdict is not None and verdict.repeated and read(verdict, self._response, self._new)

    def finish(self, shown: Iterable[str] = (), numbers: Collection[str] = ()) -> int | None:
        """Count what the request of this page has led to, if a duplicate's link led here; the cluster that
        this exhausts, or None. ``shown`` and ``numbers`` are what the page has beside its text.
        """
        verdict, cluster, endless = self.verdict, self._led_by, self._links.endless
        if cluster is None or not endless.limit or not 200 <= self._response.status < 300:
            return None
        if verdict is None or verdict.kind in {*LEFT_ALONE, Kind.TOO_SHORT}:
            led = Led.OWN_WORDS
        else:
            of = verdict.page_stood_for
            assert of is not None
            led = endless.compare(
                cluster,
                of,
                self._text(),
                is_new=not verdict.repeated,
                new_links=bool(self._new),
                url=self._response.url,
                shape=self._shape,
                shown=shown,
                numbers=numbers,
                places=places_in_version(self._response.url),
            )
            if self._is_no_sign(led):
                led = Led.LITTLE
        self.tells = led is not Led.LITTLE
        out_of = self._response.meta.get(OUT_OF, "")
        return cluster if endless.led(cluster, led, shape=self._shape, out_of=out_of) else None

    def _is_no_sign(self, led: Led) -> bool:
        """Whether this page has nothing new, but is no sign of an endless space.

        It is near to a page that did not wait, or the spider has made its address up.
        """
        if led not in {Led.NOTHING, Led.LEAF, Led.OF_ENDED}:
            return False
        if UNNAMED in self._response.meta or (led is Led.LEAF and self._response.meta.get(CHAIN) == 0):
            return True
        return self._far <= _NEAR and len(self._new) <= _FEW_LINKS

    def _is_link(self, request: Request) -> bool:
        """Whether a request for another page is a link to it: not a form, and not what completes an item."""
        return not (
            request.dont_filter
            or request.method != "GET"
            or (without_values(request.callback) != self._callback and values_carried(request))
        )


def is_made_at_once(request: Request) -> bool:
    """Whether a link does not wait, because its page tells about a sample, or is to be had in any case."""
    return AUDITED in request.meta or APART in request.meta


def _released(held: Held) -> Request:
    """A copy of a request that was held back, to be made in its turn."""
    meta = {name: value for name, value in held.request.meta.items() if name not in _OF_WAITING}
    meta[RELEASED] = True
    if held.why is Why.UNHEARD:
        meta[AGAIN] = True
    return queued_again(held.request, held.priority, meta)


def queued_again(request: Request, priority: int, meta: dict[str, Any]) -> Request:
    """A copy of a request for the queue, which Scrapy does not filter as seen before.

    The copy has all that a class of the spider's own has added, and shares headers and arguments with the
    request. ``Request.replace()`` hands on what is an argument of Scrapy's class, and calls a constructor
    that may take other ones.
    """
    try:
        again = copy(request)
    except Exception:  # noqa: BLE001  # a class may rely on its constructor
        return request.replace(priority=priority, dont_filter=True, meta=meta)
    again.priority, again.dont_filter = priority, True
    again._meta = meta  # the copy shares that of the request
    return again
