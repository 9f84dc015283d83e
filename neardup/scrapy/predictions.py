"""What becomes of requests whose URLs say that their pages are copies: deferred, dropped, or only counted."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import Counter, OrderedDict
from random import getrandbits
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from scrapy import signals
from scrapy.core.scheduler import Scheduler
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.job import job_dir
from scrapy.utils.misc import load_object

from neardup.address import host_of, page_url
from neardup.detection.verdict import Kind
from neardup.scrapy.links import (
    AUDITED,
    BAND,
    CLUSTER,
    OF_DUPLICATES,
    PREDICTED,
    is_made_at_once,
    lowered_by,
    queued_again,
    request_key,
)
from neardup.scrapy.options import Predict
from neardup.scrapy.schedulers import can_be_audited, has_priorities, is_of_scrapy, scheduler_of
from neardup.scrapy.set_aside import SetAside
from neardup.urls.absent import AbsentPages
from neardup.urls.audit import Audit
from neardup.urls.copies import Copies
from neardup.urls.counting import are_neighbours
from neardup.urls.dropping import (
    is_about_addresses,
    is_another_address,
    is_explored,
    is_still_sure,
    may_drop,
)
from neardup.urls.endless_copies import EndlessCopies
from neardup.urls.leads import Leads, LinksOfDuplicates, round_of
from neardup.urls.rules import Rule, Slot

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from scrapy.crawler import Crawler

    from neardup.detection.verdict import Verdict
    from neardup.scrapy.links import Space
    from neardup.text.declared import Declared
    from neardup.urls.effects import Effects
    from neardup.urls.learner import Learner
    from neardup.urls.rules import Prediction

logger = logging.getLogger(__name__)

_LONGEST_WAIT = 30.0
"""Seconds without another request under way being made, after which those of the last band wait no longer."""

BANDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Least probability of each band of deferred requests; one more comes last. A request is put back only into a
later band than the one that it comes from. So a request is put back once for each at most.
"""

GONE = frozenset({404, 410})
"""The statuses of a page that is not there."""

MOST_DROPPED = 20_000
"""Requests that are kept to be made if the prediction goes wrong, some 30 MB."""

MOST_DEFERRED = 10_000
"""Deferred requests that may be put into earlier bands, some 15 MB; those in memory queues are kept anyway.
"""

_LOOKED_AT_AGAIN = 8
"""Requests of each kind, deferred and dropped, that are looked at again after a page."""

_MOST_DOUBTFUL = 100_000
"""Right predictions that are kept because their verdicts may be corrected."""

_MOST_ALTERNATES = 100_000
"""Versions for other languages that are remembered, some 10 MB."""

_STATE = "neardup_loss_audit"

_BETWEEN_ROUNDS = 200
"""Subtracted from the priority for each further round of a band: more than the longest chain of links."""

_LAST_BAND = OF_DUPLICATES + len(BANDS) + 1
"""That of other addresses of known pages. Pages that are alike come before: they may have words of their own.

Where values of a parameter are made up, this is the band of addresses that differ in that alone.
"""


class CopyRead(NamedTuple):
    """What a copy has told of the parameters of its host."""

    in_question: str | None = None
    """The parameter of which it is to be asked whether its values are made up. Then
    :meth:`Predictions.settle` is to be called.
    """
    is_made_up: bool = False
    """Whether the copy is known to be made by such a parameter."""


class Predictions:
    """Learns from verdicts which URLs lead to copies, and decides about links that leave the queue.

    A decision when a link leaves the queue, not when it enters, knows all rules that were learned meanwhile.
    The decision is looked at again when the link leaves the queue once more. It is looked at again, too, when
    the known page that the link may lead to a copy of is found to be unlike another.
    """

    def __init__(
        self,
        crawler: Crawler,
        predict: Predict,
        learner: Learner,
        effects: Effects,
        audit: Audit | None = None,
        *,
        endless_after: int = 0,
    ) -> None:
        """``endless_after``: as ``NEARDUP_ENDLESS_AFTER``."""
        self.crawler = crawler
        self.learner = learner
        self.effects = effects
        self.predict = predict
        self.audit = audit
        self.may_wait: Callable[[Request], bool] = lambda request: True
        """Whether a request may wait if it is a likely copy."""
        self.weighs_copies = predict is Predict.DROP
        """Whether it counts what predicted copies lead to, and whether these surely are copies."""
        self.starts_are_made = False
        self.has_enough = False
        """Whether the crawl may end, because few unique pages are left behind the requests that wait."""
        self._copies = Copies()
        self._leads = Leads()
        self._links = LinksOfDuplicates()
        self._absent = AbsentPages()
        self._endless = EndlessCopies(endless_after)
        self.withheld: Callable[[Request, Space], None] | None = None
        """Called with a request that is not made, because it is one of an endless space, and that space."""
        self.cannot_wait: Callable[[Request], bool] = lambda request: False
        """Whether the turn of a request is not to be missed."""
        self.completes_item: Callable[[Request], bool] = lambda request: False
        """Whether the page of a request may complete an item of other pages: no rule may cost that."""
        self._deferred = SetAside(MOST_DEFERRED)
        self._dropped = SetAside(MOST_DROPPED)
        self.outdated: Counter[tuple[int, float]] = Counter()
        """How many copies of a request, by its key and their band, are in the queue although another copy was
        put into an earlier band. A request that came forward may be put back, and come forward once more.
        """
        self._moves = is_of_scrapy(load_object(crawler.settings["SCHEDULER"]))
        """Whether deferred requests are put into earlier bands. Other schedulers may share their queues."""
        self._alternates: OrderedDict[int, None] = OrderedDict()
        """Duplicates of pages that they call their versions for other languages, by id."""
        self._right: OrderedDict[int, Rule] = OrderedDict()
        self._waiting: Counter[Rule] = Counter()
        """With an audit: requests in the queue, by the rule that spoke against them last."""
        self._generations = self._learned_so_far
        self._to_look_at_again = 0
        self._made_last: WeakSet[Request] = WeakSet()
        """Requests of the last band, and those of samples, that were made."""
        self._other_made = 0.0
        """When a request of another band was made last, by the monotonic clock."""
        if audit is not None:
            crawler.signals.connect(self.queued, signal=signals.request_scheduled)
            crawler.signals.connect(self.unqueued, signal=signals.request_dropped)

    @classmethod
    def of_crawl(
        cls,
        crawler: Crawler,
        predict: Predict,
        learner: Learner,
        effects: Effects,
        loss_budget: float | None,
        *,
        endless_after: int = 0,
    ) -> Predictions:
        """Those of a crawl; without priorities in the scheduler they are recorded at most."""
        if predict in {Predict.DEFER, Predict.DROP} and not has_priorities(crawler.settings):
            logger.warning(
                "neardup: %(scheduler)s is not known to make requests in the order of their priorities, so"
                " what URLs predict is only recorded (NEARDUP_PREDICT)",
                {"scheduler": crawler.settings["SCHEDULER"]},
                extra={"spider": crawler.spider},
            )
            predict = Predict.RECORD
        audit = None
        if loss_budget is not None and can_be_audited(crawler, predict):
            audit = Audit(loss_budget, _LAST_BAND, getrandbits(32))
        return cls(crawler, predict, learner, effects, audit, endless_after=endless_after)

    def declared(self, verdict: Verdict, declared: Declared) -> None:
        """Take note, before the verdict is observed, of what a page that is judged says of its versions."""
        if verdict.page_id is not None and verdict.canonical_url in declared.alternates:
            self._alternates[verdict.page_id] = None
            if len(self._alternates) > _MOST_ALTERNATES:
                self._alternates.popitem(last=False)

    def _cluster_of(self, verdict: Verdict) -> int | None:
        """The cluster of a page for the learner; a version for another language is in one of its own."""
        return verdict.page_id if verdict.page_id in self._alternates else self._copies.cluster_of(verdict)

    def observe(self, verdict: Verdict) -> list[Request]:
        """Learn from a verdict, also from one that corrects another; the requests to queue again by that."""
        if self.predict is Predict.OFF:
            return []
        self.learner.answered(verdict.url)
        if verdict.kind is Kind.TOO_SHORT:
            self.learner.too_short(verdict.url)
        cluster = self._cluster_of(verdict)
        if cluster is None:
            return []
        unique = is_unique(verdict, cluster)
        if unique or self._is_beside_made_up(verdict.url):
            self._endless.found_new(host_of(verdict.url))
        if unique and self.audit is not None:
            self.audit.unique += 1
        if verdict.soft_404:
            self.learner.observe_soft_404(verdict.url)
            return []
        unlike = self.learner.observe(verdict.url, cluster)
        return [*self._moved_up(unlike), *self._no_copies(unlike)]

    def answered(self, request: Request, status: int) -> None:
        """Learn from the status of an answer, before its page is judged, if it has one."""
        url, is_there = page_url(request.url), 200 <= status < 300
        if not is_there:
            self.learner.answered(url)
        is_page = request.method == "GET" and request.meta.get("neardup") is not False
        if is_page and self.predict is not Predict.OFF and (is_there or status in GONE):
            self._absent.answered(url, is_missing=not is_there)

    def look_at(self, request: Request) -> Request | None:
        """What is to be done with a request that leaves the queue: a request to put back; None: it is made.

        Raises IgnoreRequest if the request is dropped, or is in the queue twice.
        """
        band = request.meta.pop(BAND, None)
        if band is None:
            return None
        request.dont_filter = False  # set for the way back into the queue
        key = request_key(self.crawler, request) if band else 0
        # Also if it is outdated: of two copies in one band either may come first, and the other is then made.
        self._deferred.pop(key)
        if outdated := self.outdated.pop((key, band), 0):
            if outdated > 1:
                self.outdated[key, band] = outdated - 1
            raise _ignored(request, "its copy in the queue has come earlier")
        if self._ends(band):
            return self._in_band(request, band, band)
        put_back = self._decide(request, band)
        if put_back is None:
            if _gives_way(band):
                self._made_last.add(request)
            else:
                self._other_made = monotonic()
            self.learner.asked(page_url(request.url))
        return put_back

    def _decide(self, request: Request, band: float) -> Request | None:
        """What is to be done with a link that leaves the queue: as :meth:`look_at`."""
        waits = self.predict is not Predict.RECORD and self.may_wait(request)
        prediction = self._predict(request.url, may_wait=waits)
        if prediction is not None:
            if not request.meta.get(PREDICTED):
                self._count("neardup/predicted")
            request.meta[PREDICTED] = tuple(map(str, prediction.rule))
        if self.predict is Predict.RECORD:
            return None
        cannot_wait = self.cannot_wait(request)
        if prediction is not None and not cannot_wait and self._may_drop(request, prediction):
            if is_explored(request.url):
                self._count("neardup/predicted/explored")
                self.effects.count(prediction.rule, "explored")
                return None
            self._drop(request, band, prediction)
        if not waits:
            return None
        if prediction is not None:
            self._withhold_if_endless(request, prediction)
        if cannot_wait:
            return None
        later = self._later_band(request, band, prediction)
        if later <= band:
            return None
        if prediction is not None and band <= OF_DUPLICATES:
            self._count("neardup/predicted/deferred")
            self.effects.count(prediction.rule, "deferred")
        put_back = self._in_band(request, band, later)
        if self._moves and prediction is not None:
            self._deferred.put(request_key(self.crawler, request), put_back, prediction.partner)
        return put_back

    def _later_band(self, request: Request, band: float, prediction: Prediction | None) -> float:
        """The band that a request is to wait in; none that is later: the request is made.

        What differs from a known page in a made-up value alone is in no sample: there is no end of that.
        """
        later = self._band_of(request, prediction)
        if self.audit is None or later <= band or (prediction is not None and self._is_made_up(prediction)):
            return later
        if not float(band).is_integer():
            root = self.audit.sample(request.url, band)
            if root is not None:
                request.meta[AUDITED] = root
                self._count("neardup/audit/sampled")
                return band
        return self.audit.next_band(request.url, band, later, request.meta.get(AUDITED, 0))

    def go_on(self, state: dict[str, Any]) -> None:
        """Go on where the last run of a crawl with a job directory ended: ``state`` is that of its spider."""
        if self.audit is not None:
            budget, self.audit = self.audit.budget, state.setdefault(_STATE, self.audit)
            self.audit.budget = budget

    def queued(self, request: Request) -> None:
        """Note that a request enters the queue."""
        if self.audit is not None and request.meta.get(BAND):
            self.audit.put(request.meta[BAND])
            if rule := _rule_against(request):
                self._waiting[rule] += 1

    def unqueued(self, request: Request) -> None:
        """Note that a request leaves the queue, whatever becomes of it."""
        if self.audit is not None and request.meta.get(BAND):
            self.audit.left(request.meta[BAND])
            if rule := _rule_against(request):
                self._waiting[rule] -= 1

    def audited(self, root: int, verdict: Verdict, *, is_own: bool) -> None:
        """Note what a request of the sample has led to, by its number. ``is_own``: the page is known to be no
        copy, although it is a near-duplicate.
        """
        if self.audit is not None and (is_own or is_unique(verdict, self._cluster_of(verdict))):
            self._count("neardup/audit/unique")
            self.audit.led_to_unique(root)

    def _ends(self, band: float) -> bool:
        """Whether the crawl ends, because it has enough of what there is: then requests that wait stay.

        ``band`` is that of the request in hand, which is left as well if the crawl ends.
        """
        if self.audit is None or not band or self.has_enough:
            return self.has_enough and band > 0
        self.audit.put(band)
        stop = self.audit.stop_to_judge(self.pending + 1) if self.starts_are_made else None
        if stop is not None and not self._is_under_way(stop):
            self.has_enough = self.audit.has_enough(stop)
        self.audit.left(band)
        return self.has_enough

    @property
    def pending(self) -> int:
        """How many requests are in the queue, with a scheduler of Scrapy."""
        scheduler = scheduler_of(self.crawler)
        assert isinstance(scheduler, Scheduler)
        return len(scheduler)

    def waits_for_others(self, request: Request) -> bool:
        """Whether a request of the last band or of a sample stays in the queue: pages under way may lead to
        new ones.

        No more such requests of a host are under way than others. Where each page leads to one new page
        alone, as in a chain, copies would take all places but one.
        """
        if not _gives_way(request.meta.get(BAND, 0)):
            return False
        if monotonic() - self._other_made > _LONGEST_WAIT:
            return False
        host = host_of(request.url)
        of_host = [other in self._made_last for other in self._under_way() if host_of(other.url) == host]
        copies = sum(of_host)
        return 0 < len(of_host) - copies <= copies

    def _is_under_way(self, stop: int) -> bool:
        """Whether a page of the sample of a stop, or one that such a page led to, is under way."""
        audit = self.audit
        assert audit is not None
        sampled = (request.meta.get(AUDITED, 0) for request in self._under_way())
        return any(audit.is_of_sample(root, stop) for root in sampled)

    def _under_way(self) -> tuple[Request, ...]:
        """The requests that were made, and whose pages the spider is not done with."""
        engine = self.crawler.engine
        assert engine is not None
        slot = engine.scraper.slot
        assert slot is not None
        return (*engine.downloader.active, *slot.active, *(request for _, request, _ in slot.queue))

    def forget(self, request: Request) -> None:
        """Note that a request that may be waiting is not made, or is made by another way."""
        if len(self._deferred):
            self._deferred.pop(request_key(self.crawler, request))

    def judged(self, request: Request, verdict: Verdict) -> None:
        """Count whether the prediction about the page of a request was right, if there was one."""
        rule, is_link = _rule_against(request), CLUSTER in request.meta
        cluster = self._cluster_of(verdict) if rule is not None or is_link else None
        if cluster is None:
            return
        unique = is_unique(verdict, cluster)
        # Other addresses of known pages say nothing about links to pages that may be new.
        if is_link and (rule is None or not is_about_addresses(rule)):
            self._links.judged(host_of(request.url), is_copy=not unique)
        if rule is None:
            return
        if unique:
            self._count("neardup/predicted/wrong")
            self.effects.count(rule, "others")
            return
        self._count("neardup/predicted/right")
        self.effects.count(rule, "copies")
        if verdict.page_id is not None and verdict.is_doubtful:
            self._right[verdict.page_id] = rule
            if len(self._right) > _MOST_DOUBTFUL:
                self._right.popitem(last=False)

    def copy_read(
        self, verdict: Verdict, url: str, new_links: list[str], *, is_apart: bool = False
    ) -> CopyRead:
        """Learn whether a copy that was predicted has links of its own, and whether it surely is a copy.

        ``url`` is that of the request. ``new_links`` are those that no page had before. Likely copies among
        them do not count, unless all are copies of the same page as this one, or one counts on. Behind a
        chain of removed entries, say, others may come. ``is_apart``: the page has something that no
        page of its cluster had, or the duplicates of its canonical page have words of their own.
        """
        may_be_endless = bool(new_links)
        if not may_be_endless and not self.weighs_copies:
            return CopyRead()
        prediction = self.learner.predict(page_url(url))
        if prediction is None:
            return CopyRead()
        if self.weighs_copies:
            leads_on = self._leads_on(url, new_links, self._cluster_of(verdict))
            self._leads.fetched(
                prediction.rule, leads_on=leads_on, is_sure=_is_sure(verdict) and not is_apart
            )
        return self._count_for_parameter(prediction) if may_be_endless else CopyRead()

    def _leads_on(self, url: str, new_links: list[str], cluster: int | None) -> bool:
        """Whether a copy, in a cluster, has links of its own: :meth:`copy_read` says which count."""
        if any(are_neighbours(url, link) for link in new_links):
            return True
        is_in_chain = bool(new_links)
        for link in new_links:
            prediction = self._predict(link)
            if prediction is None:
                return True
            partner = prediction.partner
            is_in_chain &= partner is not None and self.learner.is_in_cluster(partner, cluster)
        return is_in_chain

    def _count_for_parameter(self, prediction: Prediction) -> CopyRead:
        """Count a copy for the parameter in which alone it differs from a known page, if there is one."""
        host, slot, name, _ = prediction.rule
        if slot is not Slot.PARAMETER:
            return CopyRead()
        is_made_up = self._is_made_up(prediction)
        is_to_ask = self._endless.read(host, name, is_made_up=is_made_up)
        return CopyRead(name if is_to_ask else None, is_made_up=is_made_up)

    def _is_made_up(self, prediction: Prediction) -> bool:
        """Whether a URL differs from that of a page in a parameter alone whose values are made up."""
        host, slot, name, _ = prediction.rule
        return slot is Slot.PARAMETER and name in self.learner.made_up(host)

    def _is_beside_made_up(self, url: str) -> bool:
        """Whether values of a parameter are made up on a host, and a URL is no other address of a page."""
        if not self.learner.made_up(host_of(url)):
            return False
        prediction = self.learner.predict(url)
        return prediction is None or not is_another_address(prediction)

    def settle(self, url: str, name: str, *, makes_up_values: bool) -> bool:
        """Take a parameter for endless on the host of a URL, or for one that ends; whether it is endless."""
        host = host_of(url)
        self.learner.makes_up(host, name, made_up=makes_up_values)
        self._endless.settle(host, name, makes_up_values=makes_up_values)
        return self._endless.is_endless(host, name)

    def _withhold_if_endless(self, request: Request, prediction: Prediction) -> None:
        """Raise IgnoreRequest if the page of a request is one more of the copies of an endless space."""
        host, _, name, _ = prediction.rule
        is_made_up = prediction.is_known and self._is_made_up(prediction)
        if is_made_up and self._endless.is_endless(host, name):
            if self.withheld is not None:
                self.withheld(request, (host, name))
            raise _ignored(request, f"one more of the copies that the parameter {name!r} makes without end")

    def corrected(self, verdict: Verdict) -> None:
        """Count the prediction about a page whose verdict is corrected."""
        if verdict.page_id is not None and verdict.page_id in self._right and not verdict.is_duplicate:
            rule = self._right.pop(verdict.page_id)
            self._count("neardup/predicted/right", -1)
            self._count("neardup/predicted/wrong")
            self.effects.count(rule, "copies", -1)
            self.effects.count(rule, "others")

    def ended(self) -> None:
        """Count the requests that the crawl has saved because it had enough."""
        if self.has_enough and not job_dir(self.crawler.settings):  # then the next run makes them
            for rule, number in self._waiting.items():
                self.effects.count(rule, "saved", max(0, number))

    def dropped_in_error(self, most: int = MOST_DROPPED) -> list[Request]:
        """The dropped requests to make after all, of so many that are looked at.

        All are looked at again, the oldest first, when what was learned has changed.
        """
        if self._generations != self._learned_so_far:
            self._generations = self._learned_so_far
            self._to_look_at_again = len(self._dropped)
        number = min(most, self._to_look_at_again, len(self._dropped))
        self._to_look_at_again -= number
        found = []
        for _ in range(number):
            key = self._dropped.first()
            request = self._dropped.pop(key)
            assert request is not None
            prediction = self._still_a_copy(request)
            if prediction is None:
                found.append(request)
            else:
                self._dropped.put(key, request, prediction.partner)
        self._count_requeued(found)
        return found

    def expects_copy(self, url: str) -> bool:
        """Whether the page of a URL is predicted to be a copy with the highest probability of a band.

        Copies that the same rule has predicted have to have been sure ones in this crawl.
        """
        prediction = self._predict(url)
        if prediction is None or prediction.probability < BANDS[-1]:
            return False
        return self._leads.are_sure(prediction.rule)

    @property
    def _learned_so_far(self) -> tuple[int, int]:
        """What differs after a change in what was learned that may speak for a dropped request."""
        return self.learner.generation, self._leads.generation

    def _predict(self, url: str, *, may_wait: bool = False) -> Prediction | None:
        """The prediction that a page is a copy; None if the page is as likely none.

        ``may_wait``: the other page may be one that is only asked for.
        """
        prediction = self.learner.predict(page_url(url), may_wait=may_wait)
        return None if prediction is None or prediction.probability < BANDS[0] else prediction

    def _still_a_copy(self, request: Request) -> Prediction | None:
        """The prediction about a dropped request; None if the request is to be made after all."""
        prediction = self._predict(request.url)
        return prediction if prediction is not None and is_still_sure(prediction, self._leads) else None

    def _moved_up(self, unlike: list[str]) -> list[Request]:
        """Deferred requests to queue once more, because known pages were found to be unlike others."""
        moved = []
        for key, request in self._deferred.copies_of(unlike, _LOOKED_AT_AGAIN):
            band, prediction = request.meta[BAND], self._predict(request.url)
            earlier = self._band_of(request, prediction)
            if earlier >= band:
                continue
            self.outdated[key, band] += 1
            self._deferred.pop(key)
            again = self._in_band(request, band, earlier)
            if prediction is not None:
                self._deferred.put(key, again, prediction.partner)
            moved.append(again)
        self._count("neardup/predicted/undeferred", len(moved))
        return moved

    def _no_copies(self, unlike: list[str]) -> list[Request]:
        """Dropped requests to make after all, because known pages were found to be unlike others."""
        again = []
        for key, request in self._dropped.copies_of(unlike, _LOOKED_AT_AGAIN):
            if self._still_a_copy(request) is None:
                self._dropped.pop(key)
                again.append(request)
        self._count_requeued(again)
        return [*again, *self.dropped_in_error(_LOOKED_AT_AGAIN)]

    def _in_band(self, request: Request, band: float, other: float) -> Request:
        """A copy of a request in another band, which Scrapy does not filter as seen before."""
        priority = request.priority - self._lowered_by(request, other) + self._lowered_by(request, band)
        return queued_again(request, priority, {**request.meta, BAND: other})

    def _lowered_by(self, request: Request, band: float) -> int:
        """What is subtracted from the priority in a band: more for later rounds of likely copies."""
        has_rounds = self.predict is Predict.DROP and band > OF_DUPLICATES
        return lowered_by(band) + (_BETWEEN_ROUNDS * round_of(request.url) if has_rounds else 0)

    def _band_of(self, request: Request, prediction: Prediction | None) -> int:
        """The band that a request waits in by what is known of it; 0: none.

        A link of a duplicate, of whose URL nothing is known, is as likely a copy as other such links were. Or
        it is as likely to be missing as other pages of its folder, if that is likelier.

        A link that a sample of the audit led to does not wait: its page tells about the sample. Neither does
        a link of a page that is known to be no copy, if there is an audit.
        """
        if prediction is not None:
            made_up = self.learner.made_up(host_of(request.url))
            if self._is_made_up(prediction) if made_up else is_another_address(prediction):
                return _LAST_BAND
            probability = prediction.probability
        elif CLUSTER in request.meta and not is_made_at_once(request):
            probability = max(
                self._links.share(host_of(request.url)), self._absent.share(page_url(request.url))
            )
        else:
            return 0
        return OF_DUPLICATES + bisect_right(BANDS, probability)

    def _may_drop(self, request: Request, prediction: Prediction) -> bool:
        """Whether a request is dropped by what is predicted. One whose page may complete an item is not."""
        return (
            self.predict is Predict.DROP
            and may_drop(prediction, self._leads)
            and not self.completes_item(request)
        )

    def _drop(self, request: Request, band: float, prediction: Prediction) -> None:
        key = request_key(self.crawler, request)
        self._dropped.put(key, self._in_band(request, band, band), prediction.partner)
        self._count("neardup/predicted/dropped")
        self.effects.count(prediction.rule, "dropped")
        self.effects.count(prediction.rule, "saved")
        copy_of = prediction.partner or "a known page"
        raise _ignored(request, f"a copy of {copy_of} by what was learned of {prediction.rule}")

    def _count_requeued(self, requests: list[Request]) -> None:
        self._count("neardup/predicted/requeued", len(requests))
        for request in requests:
            if rule := _rule_against(request):
                self.effects.count(rule, "saved", -1)

    def _count(self, stat: str, number: int = 1) -> None:
        if number:
            self.crawler.stats.inc_value(stat, number)


def _rule_against(request: Request) -> Rule | None:
    """The rule that spoke against a request last; None: none did."""
    if not (found := request.meta.get(PREDICTED)):
        return None
    host, slot, value, context = found
    return Rule(host, Slot(slot), value, context)


def _gives_way(band: float) -> bool:
    """Whether requests of a band, or of a sample at a stop before one, wait for others that are under way."""
    return band == _LAST_BAND or not float(band).is_integer()


def is_unique(verdict: Verdict, cluster: int | None) -> bool:
    """Whether a page of a cluster is no copy of a page of the same crawl, as far as is known."""
    if cluster is None:
        return verdict.kind is not Kind.GONE
    return not verdict.repeated or (verdict.is_duplicate and cluster == verdict.page_id)


def _is_sure(verdict: Verdict) -> bool:
    """Whether a page that is repeated surely is a copy: a page that has not changed is one of itself."""
    return verdict.is_sure or not verdict.is_duplicate


def _ignored(request: Request, reason: str) -> IgnoreRequest:
    request.errback = None  # nothing has failed
    return IgnoreRequest(f"{request.url} is not requested: {reason}")
