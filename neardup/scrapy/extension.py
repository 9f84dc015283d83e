"""The extension that owns what a crawl shares: recorder, detector, links, statistics and summary."""

from __future__ import annotations

import gc
import logging
import os
from dataclasses import replace
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import DontCloseSpider, IgnoreRequest, NotConfigured
from scrapy.http import HtmlResponse
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from neardup import native
from neardup.address import Address, host_of, may_be_one_site
from neardup.detection.detector import AGAIN
from neardup.detection.page_numbers import Said, numbers_beside
from neardup.detection.told_apart import ToldApart
from neardup.detection.verdict import LEFT_ALONE, Kind, Verdict
from neardup.errors import DatabaseUnavailable, StoreError
from neardup.scrapy import left_out, made_before
from neardup.scrapy.elsewhere import Callbacks
from neardup.scrapy.had import Had
from neardup.scrapy.host_ips import HostIpRecord
from neardup.scrapy.links import AUDITED, is_start_page
from neardup.scrapy.look_ahead import LookAhead
from neardup.scrapy.loop import run_in_thread, sleep, wake
from neardup.scrapy.made_before import MadeBefore
from neardup.scrapy.options import Action, Options, Predict, WhenUnavailable, is_enabled
from neardup.scrapy.outcomes import Outcomes
from neardup.scrapy.page_links import PageLinkRecord
from neardup.scrapy.policy import Policy
from neardup.scrapy.predictions import GONE, Predictions
from neardup.scrapy.probes import Probes
from neardup.scrapy.recording import Onlooker, Recorder
from neardup.scrapy.refusal import told_in_a_line
from neardup.scrapy.schedulers import tell_what_waits, waits_from
from neardup.scrapy.verdicts import DoubtfulResponses, get_verdict, set_verdict
from neardup.text.declared import declared
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.utils.asyncio import AsyncioLoopingCall
    from twisted.internet.defer import Deferred
    from twisted.internet.task import LoopingCall

logger = logging.getLogger(__name__)

DATABASE_UNAVAILABLE = "neardup_database_unavailable"
"""Finish reason of a crawl whose database went away."""

LOSS_BUDGET = "neardup_loss_budget"
"""Finish reason of a crawl that leaves requests that wait, as ``NEARDUP_LOSS_BUDGET`` allows."""

_TOLD_APART = "neardup_told_apart"
"""Key of the state of a spider: the canonical pages whose duplicates are known to be no copies."""

_MOST_WAITING = 5_000
"""Rows that may wait for the database before spider output is held back: about 5 MB, and seconds of work."""

_POLL_SECONDS = 0.05

_SLICE_SECONDS = 0.05
"""How long the event loop is kept busy at a time with judging all again."""


class NearDuplicates:
    """Opens the store, fills the index from it, judges pages, and writes what was found.

    ``crawler.get_extension(NearDuplicates)`` gives the extension. ``detector.index`` and ``detector.pages``
    may be inspected. One line per duplicate is logged at DEBUG. Progress is logged at INFO every
    ``LOGSTATS_INTERVAL`` seconds (a Scrapy setting), and a summary when the spider closes. If the database
    stays away, the crawl is closed with the reason ``neardup_database_unavailable``. Nothing is counted as
    new merely because a look-up or a write failed.

    Duplicates are judged again when more is known of their sites, a few after each page. At the end of the
    crawl, all are. If a page turns out to be no duplicate, its verdict is corrected, and the requests
    that were held back are made.

    ``scrapy shell``, ``fetch``, ``view``, ``parse`` and ``check`` store nothing: they read the database and
    log verdicts.
    """

    def __init__(self, crawler: Crawler, options: Options, recorder: Recorder | Onlooker) -> None:
        """``recorder`` has loaded what earlier crawls stored."""
        self.crawler = crawler
        self.options = options
        self.recorder = recorder
        self.detector = recorder.detector
        action = options.action if recorder.records else Action.RECORD
        self.policy = Policy(crawler, action, options.endless_after)
        self.outcomes = Outcomes(crawler, options, recorder, self.policy.links)
        self.predictions = Predictions.of_crawl(
            crawler,
            self._predict(),
            recorder.learner,
            recorder.effects,
            options.loss_budget,
            endless_after=options.endless_after,
        )
        self.predictions.withheld = self.policy.links.withhold_waiting
        self.predictions.may_wait = self.policy.links.may_wait
        self.predictions.cannot_wait = self.policy.links.cannot_wait
        self._probes = Probes(crawler, recorder, self.outcomes, self.predictions)
        self.look_ahead = LookAhead(crawler, self.policy.links.endless, self.outcomes, self.detector)
        if action is not Action.RECORD and self.predictions.audit is None:
            self.policy.links.waits_from = waits_from(crawler)
            if self.policy.links.waits_from is not None:
                self.policy.links.steps_counted = self._keep_order
                self.policy.links.keepers.tell()
        self.policy.links.marks = self.predictions.predict is not Predict.OFF
        if self.predictions.predict in {Predict.DEFER, Predict.DROP}:
            self.policy.links.copy_read = self._copy_read
        if action.drops or self.predictions.predict is Predict.DROP:
            callbacks = self.policy.callbacks = Callbacks(self.policy.links.keepers)
            self.predictions.completes_item = callbacks.complete_items
        self.predictions.weighs_copies |= action is Action.SKIP
        compares = action.drops or self.predictions.weighs_copies or self.predictions.audit is not None
        if compares:
            is_item = options.content_field is not None
            self.policy.had = Had(self.predictions.expects_copy, self.text, compares_words=is_item)
        self._told_apart = ToldApart() if compares else None
        self.policy.links.is_own = self._is_own
        self._page_links = PageLinkRecord(crawler, self.detector.pages, recorder) if options.links else None
        self._ips = HostIpRecord(recorder)
        self._progress: AsyncioLoopingCall | LoopingCall | None = None
        self._closing: Deferred[None] | None = None
        self._goes_on = False
        self._doubtful = DoubtfulResponses()
        self._judging_rest: Deferred[None] | None = None
        self._has_judged_all = False
        self._is_over = False
        self._too_late: list[Request] = []
        """Requests to make after all that were found when the crawl was over."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDuplicates:
        if not is_enabled(crawler.settings):
            raise NotConfigured("NEARDUP_ENABLED is False")
        with told_in_a_line():
            return cls._started(crawler)

    @classmethod
    def _started(cls, crawler: Crawler) -> NearDuplicates:
        options = Options.from_settings(crawler.settings)
        reader = options.detector.make_reader(keeps_text=options.keep_text)
        recorder: Recorder | Onlooker
        if _is_look(crawler):
            recorder = Onlooker(options, reader)
        else:
            assert crawler.spider is not None
            recorder = Recorder(options, reader, spider=str(crawler.spider.name))
        level = logging.INFO if native.available else logging.WARNING
        logger.log(level, "neardup: %(native)s", {"native": native.describe()})
        _spare_the_garbage_collector()
        recorder.load()
        recorder.detector.watch_recall()
        extension = cls(crawler, options, recorder)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_idle, signal=signals.spider_idle)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(extension.request_made, signal=signals.request_reached_downloader)
        crawler.signals.connect(extension.response_received, signal=signals.response_received)
        crawler.signals.connect(extension.item_failed, signal=signals.item_error)
        return extension

    @classmethod
    def of(cls, crawler: Crawler) -> NearDuplicates:
        """The extension of a crawl; NotConfigured, which turns a component off, if there is none."""
        neardup = crawler.get_extension(cls)
        if neardup is None:
            if not is_enabled(crawler.settings):
                raise NotConfigured  # without a message Scrapy logs nothing: the extension has said why
            raise NotConfigured("the NearDuplicates extension is off")
        return neardup

    def _predict(self) -> Predict:
        """What is done about predictions: nothing by those who record nothing, and no more than the action
        allows.
        """
        predict = self.options.predict if self.recorder.records else Predict.OFF
        if self.policy.action is Action.RECORD and predict is not Predict.OFF:
            return Predict.RECORD
        return predict

    def _copy_read(self, verdict: Verdict, response: Response, new_links: list[str]) -> bool:
        """Learn from a copy that was predicted, and ask whether a parameter makes copies without end; whether
        it is known to make this one.
        """
        assert response.request is not None
        is_apart = self._are_apart(verdict) or self.policy.has_more(response)
        copy = self.predictions.copy_read(verdict, response.request.url, new_links, is_apart=is_apart)
        if copy.in_question is not None and isinstance(response, HtmlResponse):
            self.look_ahead.ask_for_values(response, copy.in_question, self._settle)
        return copy.is_made_up

    def _settle(self, url: str, name: str, *, makes_up_values: bool) -> None:
        """Take note whether the parameter of a URL has other values whenever its page is asked for."""
        if self.predictions.settle(url, name, makes_up_values=makes_up_values):
            self.outcomes.parameter_exhausted(url, name)

    def _keep_order(self, counted: str) -> None:
        """Have no further request wait, because the spider limits the depth by what it counts."""
        if self.policy.links.waits_from is not None:
            self.policy.links.waits_from = None
            tell_what_waits(self.crawler, f"requests count steps in {counted}")

    def judge_response(self, response: Response) -> Verdict | None:
        """The verdict of a response that is about to be passed to its callback; None if it is to be left
        alone.

        What cannot be judged is left alone: an error page, and a page that makes the add-on fail.
        """
        if response.meta.get("neardup") is False:
            return None
        if not 200 <= response.status < 300:
            self.outcomes.count("neardup/error_pages")
            return None
        try:
            verdict = self._with_declared(response, self._examine(response))
            self._probes.read(verdict, response)
            verdict = self._probes.marked(verdict)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the page is the spider's all the same
            self.outcomes.failed_on(response.url, exc)
            return None
        set_verdict(response, verdict)
        self._doubtful.judged(response, verdict)
        self.record(verdict)
        self._tell_apart(response, verdict)
        if not is_start_page(response):
            self._probes.judged(verdict, response.request)
        self._ips.note(response, verdict)
        if response.request is not None:
            self.predictions.judged(response.request, verdict)
        return verdict

    def judge_item(self, page: HtmlResponse) -> Verdict | None:
        """The verdict of a page that an item carries; None if the item is to be left alone."""
        try:
            verdict = self.detector.examine_response(page)
            self.policy.look_at(page, verdict)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the item is the spider's all the same
            self.outcomes.failed_on(page.url, exc)
            return None
        self.record(verdict)
        return verdict

    def skips_page(self, response: Response, verdict: Verdict) -> bool:
        """Whether the callback of a page is not called. What the page has beside its text is noted."""
        try:
            self.policy.look_at(response, verdict)
            self._audit(response, verdict)
            return self.policy.skips_page(verdict, response)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the page is the spider's all the same
            self.outcomes.failed_on(response.url, exc)
            self.policy.keep(response)
            return False

    def _audit(self, response: Response, verdict: Verdict) -> None:
        """Have the audit know what a request of its sample has led to, if there is one.

        The copies of a page may have nothing but images of their own, say. If many do, they are no copies.
        """
        if self.predictions.audit is None or self._told_apart is None:
            return
        if verdict.canonical_id is not None and self.policy.has_more(response):
            self._told_apart.add_beside(verdict.canonical_id)
        if root := response.meta.get(AUDITED):
            self.predictions.audited(root, verdict, is_own=self._is_own(response, verdict))

    def _is_own(self, response: Response, verdict: Verdict) -> bool:
        """Whether a near-duplicate is known to be no copy, neither of its canonical page nor of another."""
        return self._are_apart(verdict) and not self.policy.has_holder(response)

    def _are_apart(self, verdict: Verdict) -> bool:
        """Whether the near-duplicates of a page's canonical one are known to be no copies."""
        return self._told_apart is not None and verdict.canonical_id in self._told_apart

    def _examine(self, response: Response) -> Verdict:
        if not isinstance(response, HtmlResponse):
            return Verdict(
                address=Address.of(response.url),
                kind=Kind.NOT_HTML,
                follow=True,
                reason=f"not an HTML page but {type(response).__name__}",
            )
        return self.detector.examine_response(response, always_follow=is_start_page(response))

    def _with_declared(self, response: Response, verdict: Verdict) -> Verdict:
        """The verdict with what the page says of its own address."""
        if not isinstance(response, HtmlResponse) or verdict.kind in LEFT_ALONE:
            return verdict
        said = declared(response.url, response.selector.root)
        self.predictions.declared(verdict, said)
        if said.canonical is None or not may_be_one_site(host_of(said.canonical), host_of(response.url)):
            return verdict
        self.outcomes.declared(verdict, said.canonical)
        return replace(verdict, declared_url=said.canonical)

    def response_received(self, response: Response, request: Request) -> None:
        """Notice pages that are there no longer, whether or not their responses get as far as a callback."""
        self.predictions.answered(request, response.status)
        if response.status in GONE and request.meta.get("neardup") is not False:
            verdict = self.detector.gone(response.url)
            if verdict is not None:
                self.record(verdict)

    def request_made(self, request: Request) -> None:
        self.outcomes.count("neardup/requests")

    def record(self, verdict: Verdict) -> None:
        """Count, log and store a verdict; then judge some earlier duplicates again."""
        if self.recorder.error is not None:
            self._database_away(self.recorder.error)
        is_flagged = self.outcomes.record(verdict)
        # With a field for the content, items are judged, and no page can be fetched again.
        if is_flagged and self.options.content_field is None:
            self._leave_alone(verdict)
        if verdict.page_id is not None and self._is_another_page(verdict):
            # Copies of the page are copies of what it has shown before: of a captcha, say.
            self._hear_again(verdict.url, (verdict.page_id,))
        self._learn(verdict)
        self._has_judged_all = False
        self._judge_again(verdict.url)

    def look_at(self, request: Request) -> Request | None:
        """What is to be done with a request that leaves the queue: a request to put back; None: it is made.

        Raises IgnoreRequest if the request is dropped, because its URL says that its page is a copy.
        """
        put_back = None
        try:
            put_back = self.predictions.look_at(request)
        except IgnoreRequest:
            self.policy.links.waits_no_longer(request)
            raise
        except Exception as exc:  # noqa: BLE001  # whatever it is, the request is the spider's all the same
            self.outcomes.failed_on(request.url, exc)
        if put_back is None:
            self.policy.links.waits_no_longer(request)
        else:
            self.policy.links.put_back(put_back)
        if self.predictions.has_enough:
            self._end_within_budget()
        return put_back

    def _tell_apart(self, response: Response, verdict: Verdict) -> None:
        """Leave the copies of a canonical page alone if each of them says something of its own."""
        canonical_id = verdict.canonical_id
        if self._told_apart is None or canonical_id is None or not verdict.is_doubtful:
            return
        if canonical_id in self._told_apart:
            return
        try:
            said = Said(words(self.text(response)))
            if self._told_apart.add(canonical_id, said, is_sure=verdict.is_sure):
                self.outcomes.told_apart(verdict)
                self._leave_alone(verdict)
                return
            content = said.numbers_but(said.dated(self.policy.links.endless.made_up_on(verdict.url)))
            numbers = numbers_beside([said.words[index] for index in content], verdict.url)
            if self._told_apart.add_numbers(canonical_id, numbers):
                asked = partial(self._numbers_asked, verdict)
                self.look_ahead.ask_whether_numbers_last(response, canonical_id, said.by_place(), asked)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the page is the spider's all the same
            self.outcomes.failed_on(response.url, exc)

    def _numbers_asked(self, verdict: Verdict, *, last: bool) -> None:
        assert self._told_apart is not None
        assert verdict.canonical_id is not None
        if last and verdict.canonical_id not in self._told_apart:
            self._told_apart.tell_apart(verdict.canonical_id)
            self.outcomes.told_apart(verdict)
            self._leave_alone(verdict)
            if self.predictions.audit is not None:
                self._make(self.policy.links.release_cluster(verdict.canonical_id))

    def _leave_alone(self, verdict: Verdict) -> None:
        """Drop no copy of a canonical page any more, and make what was dropped."""
        self.policy.links.suspects.update(verdict.copy_of)
        self._hear_again(verdict.url, verdict.copy_of)

    def item_failed(self, response: Response | None) -> None:
        """A pipeline has raised an error on an item."""
        if response is not None:
            self.page_failed(response)

    def page_failed(self, response: Response) -> None:
        """Drop no copy of a page whose callback or pipeline has raised an error: an item may be missing."""
        verdict = get_verdict(response)
        if verdict is None or verdict.page_id is None:
            return
        try:
            self.policy.page_failed(response, verdict.page_id)
        except Exception as exc:  # noqa: BLE001  # the error of the callback is what Scrapy is to see
            self.outcomes.failed_on(response.url, exc)
        self._hear_again(verdict.url, (verdict.page_id,))

    def _learn(self, verdict: Verdict) -> None:
        try:
            self._queue(self.predictions.observe(verdict))
        except Exception as exc:  # noqa: BLE001  # whatever it is, the page is the spider's all the same
            self.outcomes.failed_on(verdict.url, exc)

    def _make_dropped(self) -> None:
        try:
            self._queue(self.predictions.dropped_in_error())
        except Exception as exc:  # noqa: BLE001  # the other requests are made all the same
            self.outcomes.failed_on("the end of the crawl", exc)

    def store_links(self, response: Response, verdict: Verdict | None, requested: Iterable[str] = ()) -> None:
        """Have the links of a page stored, if the crawl does so; ``requested``: URLs that are followed."""
        if self._page_links is None:
            return
        try:
            self._page_links.store(response, verdict, requested)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the page is the spider's all the same
            self.outcomes.failed_on(response.url, exc)

    def _queue(self, requests: list[Request]) -> None:
        if self._is_over:
            self._too_late += requests
            return
        for request in requests:
            assert self.crawler.engine is not None
            self.crawler.engine.crawl(request)

    def _judge_again(self, url: str) -> None:
        try:
            for verdict in self.detector.judge_again(AGAIN):
                self._correct(verdict)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the page in hand is the spider's all the same
            self.outcomes.failed_on(url, exc)

    def _correct(self, verdict: Verdict) -> None:
        verdict = self._probes.marked(verdict)
        assert verdict.page_id is not None
        cluster = self.outcomes.correct(verdict)
        self._learn(verdict)
        self.predictions.corrected(verdict)
        if verdict.is_duplicate:
            if verdict.is_sure:
                return
            # What is dropped must be sure, and the page has been found to be less sure than it seemed.
            released = self.policy.links.release_page(verdict.page_id)
        else:
            self._doubtful.correct(verdict)
            released = self.policy.links.release(verdict.page_id, cluster)
        self._make(released)

    def _is_another_page(self, verdict: Verdict) -> bool:
        """Whether a page that was known is no near-duplicate of what it was."""
        if verdict.kind in {Kind.TOO_SHORT, Kind.GONE}:
            return True
        most = self.detector.verifier.rule.max_distance
        return verdict.own_distance is not None and verdict.own_distance > most

    def _hear_again(self, url: str, copy_of: tuple[int, ...]) -> None:
        """Fetch the copies of a page, or of a text, again that have lost items or callbacks by that."""
        try:
            self._make(self.policy.links.hear_again(copy_of))
        except Exception as exc:  # noqa: BLE001  # whatever it is, the page in hand is the spider's all the same
            self.outcomes.failed_on(url, exc)

    def _make(self, released: list[Request]) -> None:
        for request in released:
            self.predictions.forget(request)
        self._queue(released)

    def _judge_slice_again(self, left: int) -> int:
        """Judge some of so many duplicates again; returns how many are left."""
        started = perf_counter()
        while left > 0 and perf_counter() - started < _SLICE_SECONDS:
            self._judge_again("the end of the crawl")
            left -= AGAIN
        self._has_judged_all = left <= 0
        return left

    async def _judge_rest_again(self, left: int) -> None:
        while left > 0:
            await sleep(0)
            left = self._judge_slice_again(left)
        self._judging_rest = None
        if not self._is_over:
            wake(self.crawler)

    def _database_away(self, error: StoreError) -> None:
        """Close the crawl, or say that it goes on."""
        if self.options.when_unavailable is WhenUnavailable.CLOSE or not isinstance(
            error, DatabaseUnavailable
        ):
            self._close_crawl(error)
        elif not self._goes_on:
            self._goes_on = True
            logger.error(
                "neardup: %(error)s; the crawl goes on all the same (NEARDUP_WHEN_UNAVAILABLE), and what it"
                " finds waits in memory",
                {"error": error},
                extra={"spider": self.crawler.spider},
            )

    def _close_crawl(self, error: StoreError) -> None:
        if self._closing is None:
            logger.error(
                "neardup: closing the crawl: %(error)s",
                {"error": error},
                extra={"spider": self.crawler.spider},
            )
            self._close(DATABASE_UNAVAILABLE)

    def _end_within_budget(self) -> None:
        """Close the crawl, because few unique pages are left behind the requests that wait."""
        if self._closing is None:
            self.outcomes.count("neardup/audit/left", self.predictions.pending + 1)  # the one in hand
            self.outcomes.log_audit(self.options.loss_budget)
            self._close(LOSS_BUDGET)

    def _close(self, reason: str) -> None:
        # Not by raising CloseSpider, which Scrapy does not heed in pipelines. Rows of pages still under way
        # are kept.
        assert self.crawler.engine is not None
        self._closing = deferred_from_coro(self.crawler.engine.close_spider_async(reason=reason))

    def text(self, response: Response) -> str:
        """The visible text of an HTML page that has been judged."""
        assert isinstance(response, HtmlResponse)
        return self.detector.reader.visible_text(response.url, response.selector.root)

    async def wait_for_room(self) -> None:
        """Hold back spider output while too many rows wait for the database, so that the crawl slows down."""
        while self.recorder.backlog > _MOST_WAITING and self.recorder.error is None:
            await sleep(_POLL_SECONDS)

    def spider_opened(self, spider: Spider) -> None:
        interval = self.crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if interval > 0:
            self._progress = create_looping_call(self.outcomes.log_progress)
            self._progress.start(interval, now=False)
        self.recorder.start()
        # With a job directory, Scrapy has given the spider its state by now.
        state = getattr(spider, "state", {})
        self.predictions.go_on(state)
        self.policy.links.audit = self.predictions.audit
        if self._told_apart is not None:
            self._told_apart.go_on(state.setdefault(_TOLD_APART, set()))
        made = made_before.take(self.crawler)
        self.policy.links.released, self.predictions.outdated = made.released, made.outdated
        self._queue(left_out.take(self.crawler))

    def spider_idle(self, spider: Spider) -> None:
        """Before the crawl ends, make the requests that were held back in error."""
        if self._judging_rest is not None:
            raise DontCloseSpider
        self._make_dropped()
        if self._has_judged_all or not self.policy.links.holds_requests:
            return
        self.detector.doubts.all_are_due()
        left = self._judge_slice_again(len(self.detector.doubts))
        if left > 0:
            self._judging_rest = deferred_from_coro(self._judge_rest_again(left))
            raise DontCloseSpider

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        self._is_over = True
        if self._progress is not None and self._progress.running:
            self._progress.stop()
        if self._judging_rest is not None:
            await maybe_deferred_to_future(self._judging_rest)
        if not self._has_judged_all:
            self.detector.doubts.all_are_due()
            await self._judge_rest_again(len(self.detector.doubts))
        self.predictions.ended()
        if reason != "finished":
            # What is doubtful is not judged again in the next run, which has not read these pages.
            left_out.keep(self.crawler, [*self._too_late, *self.policy.links.unheard()])
            made = MadeBefore(self.policy.links.released, self.predictions.outdated)
            made_before.keep(self.crawler, made)
        await self.recorder.stop()
        try:
            await run_in_thread(lambda: self.recorder.close(reason, self.outcomes.counts))
        except StoreError as exc:
            logger.error("neardup: %(error)s", {"error": exc}, extra={"spider": spider})
        self.outcomes.update_stats()
        if not self.recorder.records:
            return
        self.outcomes.warn_of_starvation()
        self.outcomes.log_summary()


@cache  # not by asking for the number of frozen objects, which takes 23 ms to count
def _spare_the_garbage_collector() -> None:
    """Once a process, take the objects of all modules out of what each full collection walks through.

    SQLAlchemy, NumPy and Scrapy bring objects that live as long as the process. Walking through them in each
    full collection took 6 to 12 % of the processor time of a crawl of 346 pages. What is frozen is never
    collected, which is right for modules. Freezing again would keep alive the remains of every crawl of a
    process that runs many. Nothing is collected before: of 122,000 objects 10 were garbage, and finding them
    took 30 ms of the start.
    """
    gc.freeze()


def _is_look(crawler: Crawler) -> bool:
    """Whether this is no crawl but a look at some pages: ``scrapy shell``, ``fetch``, ``view``, ``parse`` or
    ``check``.

    The shell makes its extensions before there is a spider; the others give the spider a ``start`` of their
    own.
    """
    start = getattr(crawler.spider, "start", None)
    return (
        start is None
        or str(getattr(start, "__module__", "")).startswith("scrapy.commands.")
        or "SCRAPY_CHECK" in os.environ
    )
