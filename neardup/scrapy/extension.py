"""The extension that owns what a crawl shares: detector, writer, statistics and summary."""

from __future__ import annotations

import gc
import logging
from dataclasses import asdict
from time import perf_counter
from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse
from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro

from neardup.detector import Detector
from neardup.errors import DatabaseUnavailable, StoreError
from neardup.pages import PAGES_PER_CRAWL
from neardup.scrapy import summary
from neardup.scrapy.following import Following
from neardup.scrapy.loop import run_in_thread, sleep
from neardup.scrapy.options import Action, Options, Share, WhenUnavailable, data_folder, is_enabled
from neardup.scrapy.restart import Restart
from neardup.scrapy.verdicts import set_verdict
from neardup.store.store import Store
from neardup.store.writer import Writer
from neardup.verdict import Kind, Verdict
from neardup.watch import ClusterWatch

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.utils.asyncio import AsyncioLoopingCall
    from twisted.internet.defer import Deferred
    from twisted.internet.task import LoopingCall

    from neardup.reading import Reader

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

    Reachable as ``crawler.get_extension(NearDuplicates)``: ``detector.index`` and ``detector.pages`` may be inspected.
    One line per duplicate is logged at DEBUG, progress at INFO every ``LOGSTATS_INTERVAL`` seconds (a Scrapy setting), and
    a summary when the spider closes. If the database stays away, the crawl is closed with the reason
    ``neardup_database_unavailable``; nothing is counted as new merely because a look-up or a write failed.
    """

    def __init__(self, crawler: Crawler, options: Options, store: Store, reader: Reader) -> None:
        self.crawler = crawler
        self.options = options
        self.store = store
        # Commands such as ``scrapy shell`` make the extensions before the spider.
        spider = crawler.spider or crawler.spidercls
        self.crawl_id = store.begin_crawl(
            spider=str(spider.name), settings=options.recorded, shared=options.share is Share.LIVE
        )
        self.detector = Detector(
            options.detector, reader=reader, first_id=self.crawl_id * PAGES_PER_CRAWL + 1
        )
        self.following = Following(
            self.detector,
            store,
            self.crawl_id,
            interval=options.share_interval,
            reconcile=options.share is Share.LIVE,
        )
        self.restart = Restart(
            self.detector,
            store,
            self.crawl_id,
            store.snapshot_path(data_folder()) if options.snapshot else None,
            max_age=options.max_age,
        )
        self.writer = Writer(store, self.crawl_id, history=options.history)
        self.watch = ClusterWatch()
        self.doomed_items: dict[int, tuple[object, Verdict]] = {}
        """Items of duplicates on their way to the pipeline, by ``id()``: items need not be hashable."""
        self._links_skipped: set[int] = set()
        self._requests_made: set[int] = set()
        self._progress: AsyncioLoopingCall | LoopingCall | None = None
        self._closing: Deferred[None] | None = None
        self._goes_on = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NearDuplicates:
        if not is_enabled(crawler.settings):
            raise NotConfigured("NEARDUP_ENABLED is False")
        options = Options.from_settings(crawler.settings)
        reader = options.detector.make_reader()
        store = Store.open(options.database_url, scheme=str(reader.scheme))
        extension = cls(crawler, options, store, reader)
        extension.load()
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(extension.request_made, signal=signals.request_reached_downloader)
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
        self.restart.load()
        self.detector.watch_recall()

    def judge_response(self, response: Response) -> Verdict | None:
        """The verdict of a response that is about to be passed to its callback; None if it is to be left alone."""
        if response.meta.get("neardup") is False:
            return None
        if not isinstance(response, HtmlResponse):
            verdict = Verdict(
                url=response.url,
                kind=Kind.NOT_HTML,
                follow=True,
                reason=f"not an HTML page but {type(response).__name__}",
            )
        else:
            verdict = self.detector.examine_tree(
                response.url, response.selector.root, always_follow=_is_start(response)
            )
        set_verdict(response, verdict)
        self.take(verdict)
        return verdict

    def response_received(self, response: Response, request: Request) -> None:
        """Notice pages that are there no longer, whether or not their responses get as far as a callback."""
        if response.status in _GONE_STATUSES and request.meta.get("neardup") is not False:
            verdict = self.detector.gone(response.url)
            if verdict is not None:
                self.take(verdict)

    def take(self, verdict: Verdict) -> None:
        """Count, log and store a verdict."""
        if self.writer.error is not None:
            self._database_away(self.writer.error)
        stats = self.crawler.stats
        stats.inc_value(summary.STAT_OF_KIND[verdict.kind])
        if verdict.kind is Kind.NOT_HTML:
            return
        self.writer.put(verdict)
        self.following.judged(verdict.page_id)
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

    def _watch(self, verdict: Verdict) -> None:
        """Flag a canonical page that gathers duplicates from many addresses: a person should look at it."""
        flag = self.watch.judged(verdict.url, verdict.canonical_id)
        if flag is None or verdict.canonical_id is None:
            return
        self.crawler.stats.inc_value("neardup/flagged")
        self.writer.flag(verdict.canonical_id)
        logger.warning(
            "neardup: %(canonical)s has near-duplicates at %(addresses)d addresses, among %(pages)d pages: is it an error page, a"
            " login wall, an empty listing, or filled by scripts? The last of them: %(url)s",
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
                "neardup: %(error)s; the crawl goes on all the same (NEARDUP_WHEN_UNAVAILABLE), and what it finds waits in memory",
                {"error": error},
                extra={"spider": self.crawler.spider},
            )

    def _close_crawl(self, error: StoreError) -> None:
        # Not by raising CloseSpider, which Scrapy does not heed in pipelines. Rows of pages still under way are kept.
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
        """Whether the items of a page are dropped."""
        return (
            verdict is not None and verdict.is_duplicate and self.options.action in {Action.DROP, Action.SKIP}
        )

    def skips_links(self, verdict: Verdict | None) -> bool:
        """Whether the links of a page are not followed."""
        return verdict is not None and not verdict.follow and self.options.action is not Action.RECORD

    def skips_page(self, verdict: Verdict) -> bool:
        """Whether the callback is not called at all; a start URL's is, because its links are followed."""
        return verdict.is_duplicate and not verdict.follow and self.options.action is Action.SKIP

    def skip_link(self, request: Request) -> None:
        """Count a request that is not made because its page is a duplicate."""
        self.crawler.stats.inc_value("neardup/links_skipped")
        self._links_skipped.add(self._short_fingerprint(request))

    def request_made(self, request: Request, spider: Spider) -> None:
        self._requests_made.add(self._short_fingerprint(request))

    def _short_fingerprint(self, request: Request) -> int:
        # Eight bytes of Scrapy's own request fingerprint, which it has cached: enough to count by.
        fingerprinter = self.crawler.request_fingerprinter
        assert fingerprinter is not None
        return int.from_bytes(fingerprinter.fingerprint(request)[:8], "big")

    async def wait_for_room(self) -> None:
        """Hold back spider output while too many rows wait for the database, so that the crawl slows down."""
        while self.writer.backlog > _MOST_WAITING and self.writer.error is None:
            await sleep(_POLL_SECONDS)

    def spider_opened(self, spider: Spider) -> None:
        interval = self.crawler.settings.getfloat("LOGSTATS_INTERVAL")
        if interval > 0:
            self._progress = create_looping_call(self._log_progress)
            self._progress.start(interval, now=False)
        self.following.start(self.writer)

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        if self._progress is not None and self._progress.running:
            self._progress.stop()
        await self.following.stop()
        try:
            await run_in_thread(lambda: self._close_store(reason))
        except StoreError as exc:
            logger.error("neardup: %(error)s", {"error": exc}, extra={"spider": spider})
        self._update_stats()
        logger.info(
            "%(summary)s",
            {"summary": summary.of_crawl(self.crawler.stats.get_stats(), self.store.location)},
            extra={"spider": spider},
        )

    def _close_store(self, reason: str) -> None:
        """Store what is still waiting and the end of the crawl. Runs in a thread: the database may be slow."""
        try:
            if self.detector.recall is not None:
                self.detector.recall.close()
            self.writer.flush()
            if self.writer.error is None:
                self._settle()
            self.writer.close()
            self._update_stats()
            self.store.finish_crawl(
                self.crawl_id, reason=reason, counts=summary.counts_of_crawl(self.crawler.stats.get_stats())
            )
            if self.writer.rows_rejected == 0:  # what is known is what is stored
                self.restart.save(self.writer.batches + self.following.batches)
        finally:
            self.store.close()

    def _settle(self) -> None:
        """Find canonical pages for the duplicates of pages that are canonical no longer.

        Whatever happens, the crawl comes to its end: what is not settled the next one settles.
        """
        try:
            elected = self.following.finish(self.writer)
        except StoreError as exc:
            logger.warning(
                "neardup: the next crawl is to settle what other crawls changed: %(error)s", {"error": exc}
            )
            return
        except Exception:
            logger.exception("neardup: settling what other crawls changed failed")
            return
        if elected.canonical or elected.duplicates:
            logger.info(
                "neardup: of the duplicates of pages that are canonical no longer, %(canonical)d became canonical and %(duplicates)d are"
                " duplicates as before or of others",
                {"canonical": elected.canonical, "duplicates": elected.duplicates},
            )

    def _update_stats(self) -> None:
        """Set the stats that are sums kept elsewhere."""
        stats, detector = self.crawler.stats, self.detector
        saved = len(self._links_skipped - self._requests_made)
        for name, value in (
            ("requests_saved", saved),
            ("index_size", len(detector.index)),
            ("queries", detector.index.stats.queries),
            ("probes", detector.index.stats.probes),
            ("empty_probes", detector.index.stats.empty_probes),
            ("candidates", detector.index.stats.candidates),
            ("rows_written", self.writer.rows_written),
            ("rows_rejected", self.writer.rows_rejected),
            ("store_retries", self.writer.retries),
            ("pages_followed", self.following.pages),
            ("reconciled", self.following.reconciled),
            *(
                (f"seconds/{step}", round(spent, 6))
                for step, spent in asdict(detector.reader.seconds).items()
            ),
            ("seconds/search", round(detector.search_seconds, 6)),
            ("seconds/store", round(self.writer.seconds, 6)),
        ):
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
            {"progress": summary.progress(self.crawler.stats.get_stats(), self.writer.backlog)},
            extra={"spider": self.crawler.spider},
        )


def _spare_the_garbage_collector() -> None:
    """Once a process, take the objects of all modules out of what each full collection walks through.

    numba and SQLAlchemy bring 140,000 objects that live as long as the process. Walking through them made full collections 0.24 s
    dearer in a crawl of 346 pages, a quarter of what the add-on cost. Only once: what is frozen is never collected,
    which is right for modules, but would keep alive the remains of every crawl of a process that runs many.
    """
    if gc.get_freeze_count() == 0:
        gc.collect()
        gc.freeze()


def _is_start(response: Response) -> bool:
    """Whether a response is that of a start request.

    A spider that copies ``response.meta`` into its requests copies ``is_start_request`` too, but not the depth.
    """
    return bool(response.meta.get("is_start_request")) and response.meta.get("depth", 0) == 0
