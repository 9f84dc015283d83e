"""The extension that owns what a crawl shares: recorder, detector, links, statistics and summary."""

from __future__ import annotations

import gc
import logging
import os
from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.job import job_dir

from neardup.address import Address
from neardup.detection.endless import EndlessWatch
from neardup.detection.suspect_clusters import ClusterWatch
from neardup.detection.verdict import LEFT_ALONE, Kind, Verdict
from neardup.errors import DatabaseUnavailable, StoreError
from neardup.scrapy import summary
from neardup.scrapy.links import Links
from neardup.scrapy.loop import run_in_thread, sleep
from neardup.scrapy.options import Action, Options, WhenUnavailable, is_enabled
from neardup.scrapy.recording import Onlooker, Recorder
from neardup.scrapy.verdicts import get_verdict, set_verdict

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.utils.asyncio import AsyncioLoopingCall
    from twisted.internet.defer import Deferred
    from twisted.internet.task import LoopingCall

logger = logging.getLogger(__name__)

DATABASE_UNAVAILABLE = "neardup_database_unavailable"
"""Finish reason of a crawl whose database went away."""

_MOST_WAITING = 5_000
"""Rows that may wait for the database before spider output is held back: about 5 MB, and seconds of work."""

_POLL_SECONDS = 0.05

_NOTICEABLE_SECONDS = 1.0

_GONE_STATUSES = {404, 410}


class NearDuplicates:
    """Opens the store, fills the index from it, judges pages, and writes what was found.

    Reachable as ``crawler.get_extension(NearDuplicates)``: ``detector.index`` and ``detector.pages`` may be
    inspected. One line per duplicate is logged at DEBUG, progress at INFO every ``LOGSTATS_INTERVAL`` seconds
    (a Scrapy setting), and a summary when the spider closes. If the database stays away, the crawl is closed
    with the reason ``neardup_database_unavailable``; nothing is counted as new merely because a look-up or a
    write failed.

    ``scrapy shell``, ``fetch``, ``view``, ``parse`` and ``check`` store nothing: they read the database and
    log verdicts.
    """

    def __init__(self, crawler: Crawler, options: Options, recorder: Recorder | Onlooker) -> None:
        self.crawler = crawler
        self.options = options
        self.recorder = recorder
        self.detector = recorder.detector
        self.action = options.action if recorder.records else Action.RECORD
        self.endless = EndlessWatch(options.endless_after)
        self.links = Links(crawler, self.action, self.endless)
        self.watch = ClusterWatch()
        self.items_to_drop: dict[int, tuple[object, Verdict]] = {}
        """Items of duplicates on their way to the pipeline, by ``id()``: items need not be hashable."""
        self._progress: AsyncioLoopingCall | LoopingCall | None = None
        self._closing: Deferred[None] | None = None
        self._goes_on = False
        self._warned_unjudged = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDuplicates:
        if not is_enabled(crawler.settings):
            raise NotConfigured("NEARDUP_ENABLED is False")
        options = Options.from_settings(crawler.settings)
        reader = options.detector.make_reader()
        recorder: Recorder | Onlooker
        if _is_look(crawler):
            recorder = Onlooker(options, reader)
        else:
            assert crawler.spider is not None
            recorder = Recorder(options, reader, spider=str(crawler.spider.name))
        extension = cls(crawler, options, recorder)
        extension.load()
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(extension.request_dropped, signal=signals.request_dropped)
        crawler.signals.connect(extension.response_received, signal=signals.response_received)
        return extension

    def load(self) -> None:
        """Fill the detector with what earlier crawls stored."""
        started = perf_counter()
        self.detector.warm_up()
        _spare_the_garbage_collector()
        if perf_counter() - started > _NOTICEABLE_SECONDS:
            logger.info(
                "neardup: compiled for this machine in %(seconds).1f s; the next start will find it done",
                {"seconds": perf_counter() - started},
            )
        self.recorder.load()
        self.detector.watch_recall()

    def judge_response(self, response: Response) -> Verdict | None:
        """The verdict of a response that is about to be passed to its callback; None if it is to be left
        alone.

        What cannot be judged is left alone: an error page, and a page that makes the add-on fail.
        """
        if response.meta.get("neardup") is False:
            return None
        if not 200 <= response.status < 300:
            self.crawler.stats.inc_value("neardup/error_pages")
            return None
        try:
            verdict = self._examine(response)
        except Exception as exc:  # noqa: BLE001  # whatever it is, the page is the spider's all the same
            self.failed_on(response, exc)
            return None
        set_verdict(response, verdict)
        self.record(verdict)
        return verdict

    def _examine(self, response: Response) -> Verdict:
        if not isinstance(response, HtmlResponse):
            return Verdict(
                address=Address.of(response.url),
                kind=Kind.NOT_HTML,
                follow=True,
                reason=f"not an HTML page but {type(response).__name__}",
            )
        return self.detector.examine_response(response, always_follow=_is_start(response))

    def failed_on(self, response: Response, failure: Exception) -> None:
        """Count a page that the add-on failed on; the first one is logged with what went wrong."""
        self.crawler.stats.inc_value("neardup/failures")
        if not self._warned_unjudged:
            self._warned_unjudged = True
            logger.warning(
                "neardup: %(url)s cannot be judged and passes untouched; this is a bug of neardup, please"
                " report it (further ones are counted, not logged)",
                {"url": response.url},
                exc_info=failure,
                extra={"spider": self.crawler.spider},
            )

    def response_received(self, response: Response, request: Request) -> None:
        """Notice pages that are there no longer, whether or not their responses get as far as a callback."""
        if response.status in _GONE_STATUSES and request.meta.get("neardup") is not False:
            verdict = self.detector.gone(response.url)
            if verdict is not None:
                self.record(verdict)

    def request_dropped(self, request: Request, spider: Spider) -> None:
        self.links.dropped(request)

    def record(self, verdict: Verdict) -> None:
        """Count, log and store a verdict."""
        if self.recorder.error is not None:
            self._database_away(self.recorder.error)
        stats = self.crawler.stats
        stats.inc_value(summary.STAT_OF_KIND[verdict.kind])
        if verdict.limit is not None:
            self._count_unjudged(verdict, verdict.limit)
        if verdict.kind in LEFT_ALONE:
            return
        self.recorder.put(verdict)
        if verdict.kind is Kind.GONE:
            return
        stats.inc_value("neardup/pages")
        self._watch(verdict)
        if verdict.is_duplicate:
            if verdict.distance == 0:
                stats.inc_value("neardup/exact_duplicates")
            logger.debug(
                "Near-duplicate: %(url)s of %(canonical)s (%(percentage).1f %%): %(reason)s",
                {
                    "url": verdict.url,
                    "canonical": verdict.canonical_url,
                    "percentage": verdict.percentage,
                    "reason": verdict.reason,
                },
                extra={"spider": self.crawler.spider},
            )

    def _count_unjudged(self, verdict: Verdict, limit: str) -> None:
        stats = self.crawler.stats
        stats.inc_value(summary.STAT_OF_LIMIT[limit])
        if stats.get_value(summary.STAT_OF_KIND[Kind.UNJUDGED]) == 1:
            logger.warning(
                "neardup: %(url)s passes untouched: %(reason)s (further ones are not logged)",
                {"url": verdict.url, "reason": verdict.reason},
                extra={"spider": self.crawler.spider},
            )

    def _watch(self, verdict: Verdict) -> None:
        """Flag a canonical page that gathers duplicates from many addresses: a person should look at it."""
        flag = self.watch.judged(verdict.url, verdict.canonical_id)
        if flag is None or verdict.canonical_id is None:
            return
        self.crawler.stats.inc_value("neardup/flagged")
        self.recorder.flag(verdict.canonical_id)
        logger.warning(
            "neardup: %(canonical)s has near-duplicates at %(addresses)d addresses, among %(pages)d pages:"
            " is it an error page, a login wall, an empty listing, or filled by scripts?"
            " The last of them: %(url)s",
            {
                "canonical": verdict.canonical_url,
                "addresses": flag.addresses,
                "pages": flag.pages,
                "url": verdict.url,
            },
            extra={"spider": self.crawler.spider},
        )

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
        # Not by raising CloseSpider, which Scrapy does not heed in pipelines. Rows of pages still under way
        # are kept.
        if self._closing is None:
            logger.error(
                "neardup: closing the crawl: %(error)s",
                {"error": error},
                extra={"spider": self.crawler.spider},
            )
            assert self.crawler.engine is not None
            self._closing = deferred_from_coro(
                self.crawler.engine.close_spider_async(reason=DATABASE_UNAVAILABLE)
            )

    def drops_items(self, verdict: Verdict | None) -> bool:
        """Whether the items of a page are dropped: this crawl has had its content already."""
        return verdict is not None and verdict.is_duplicate and verdict.repeated and self.action.drops

    def skips_page(self, verdict: Verdict) -> bool:
        """Whether the callback is not called at all."""
        return self.action is Action.SKIP and self.drops_items(verdict) and not verdict.follow

    def text(self, response: Response) -> str:
        """The visible text of an HTML page that has been judged."""
        assert isinstance(response, HtmlResponse)
        return self.detector.reader.content.text(response.url, response.selector.root)

    def exhausted(self, cluster: int, response: Response) -> None:
        """Count, log and flag a canonical page whose duplicates have led to nothing new for too long; the
        last such page is named.
        """
        self.crawler.stats.inc_value("neardup/exhausted")
        self.recorder.flag(cluster)
        verdict = get_verdict(response)
        is_one = verdict is not None and verdict.canonical_id == cluster
        logger.warning(
            "neardup: the near-duplicates of %(canonical)s have led to nothing new for so long"
            " (NEARDUP_ENDLESS_AFTER = %(limit)d) that their links are followed no further."
            " Is it an endless calendar? Does the site hand out ever new addresses? The last page: %(url)s",
            {
                "canonical": verdict.canonical_url if verdict and is_one else f"page {cluster}",
                "limit": self.options.endless_after,
                "url": response.url,
            },
            extra={"spider": self.crawler.spider},
        )

    async def wait_for_room(self) -> None:
        """Hold back spider output while too many rows wait for the database, so that the crawl slows down."""
        while self.recorder.backlog > _MOST_WAITING and self.recorder.error is None:
            await sleep(_POLL_SECONDS)

    def spider_opened(self, spider: Spider) -> None:
        interval = self.crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if interval > 0:
            self._progress = create_looping_call(self._log_progress)
            self._progress.start(interval, now=False)
        self.recorder.start()

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        if self._progress is not None and self._progress.running:
            self._progress.stop()
        await self.recorder.stop()
        try:
            await run_in_thread(lambda: self.recorder.close(reason, self._counts))
        except StoreError as exc:
            logger.error("neardup: %(error)s", {"error": exc}, extra={"spider": spider})
        self._update_stats()
        if not self.recorder.records:
            return
        self._warn_of_starvation()
        logger.info(
            "%(summary)s",
            {"summary": summary.of_crawl(self.crawler.stats.get_stats(), self.recorder.location)},
            extra={"spider": spider},
        )

    def _counts(self) -> dict[str, int]:
        self._update_stats()
        return summary.counts_of_crawl(self.crawler.stats.get_stats())

    def _warn_of_starvation(self) -> None:
        """Say it aloud if this crawl may have missed pages."""
        if self.links.lost_candidates:
            logger.warning(
                "neardup: %(links)d links of near-duplicates were not followed and stood on no other page"
                " (NEARDUP_ENDLESS_AFTER = %(limit)d); such as %(examples)s",
                {
                    "links": self.links.lost_candidates,
                    "limit": self.options.endless_after,
                    "examples": ", ".join(self.links.examples),
                },
                extra={"spider": self.crawler.spider},
            )
        last = self.recorder.last_crawl
        if last is not None and last.is_much_larger:
            self.crawler.stats.set_value("neardup/last_crawl_pages", last.pages)
            logger.warning(
                "neardup: this crawl has ended with %(now)d pages on hosts where the last one of this spider,"
                " crawl %(last)d, had %(before)d; it has not seen %(examples)s",
                {
                    "now": last.pages_now,
                    "last": last.crawl_id,
                    "before": last.pages,
                    "examples": ", ".join(last.missing),
                },
                extra={"spider": self.crawler.spider},
            )

    def _update_stats(self) -> None:
        """Set the stats that are sums kept elsewhere."""
        stats, detector = self.crawler.stats, self.detector
        # With a job directory, what is left in the queue is made by the next run.
        saved = 0 if job_dir(self.crawler.settings) else self.links.still_deferred
        values = {
            "requests_saved_at_least": saved,
            "lost_candidates": self.links.lost_candidates,
            "index_size": len(detector.index),
            "queries": detector.index.stats.queries,
            "probes": detector.index.stats.probes,
            "empty_probes": detector.index.stats.empty_probes,
            "candidates": detector.index.stats.candidates,
            **{f"seconds/{step}": round(spent, 6) for step, spent in asdict(detector.reader.seconds).items()},
            "seconds/search": round(detector.search_seconds, 6),
            **self.recorder.stats(),
        }
        for name, value in values.items():
            stats.set_value(f"neardup/{name}", value)
        estimate = detector.recall.estimate() if detector.recall is not None else None
        if estimate is not None:
            stats.set_value("neardup/recall_checked", estimate.checked)
            stats.set_value("neardup/recall_found", estimate.found)
            stats.set_value("neardup/recall", round(estimate.recall, 4))
            stats.set_value("neardup/recall_low", round(estimate.low, 4))
            stats.set_value("neardup/recall_high", round(estimate.high, 4))

    def _log_progress(self) -> None:
        self._update_stats()
        logger.info(
            "%(progress)s",
            {"progress": summary.progress(self.crawler.stats.get_stats(), self.recorder.backlog)},
            extra={"spider": self.crawler.spider},
        )


def _spare_the_garbage_collector() -> None:
    """Once a process, take the objects of all modules out of what each full collection walks through.

    numba and SQLAlchemy bring 140,000 objects that live as long as the process. Walking through them made
    full collections 0.24 s dearer in a crawl of 346 pages, a quarter of what the add-on cost. Only once: what
    is frozen is never collected, which is right for modules, but would keep alive the remains of every crawl
    of a process that runs many.
    """
    if gc.get_freeze_count() == 0:
        gc.collect()
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


def _is_start(response: Response) -> bool:
    """Whether a response is that of a start request.

    A spider that copies ``response.meta`` into its requests copies ``is_start_request`` too, but not the
    depth.
    """
    return bool(response.meta.get("is_start_request")) and response.meta.get("depth", 0) == 0
