"""What a crawl reads from the database at its start, what it stores while it runs, and what it leaves at its
end.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from neardup.detection.detector import Detector
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.errors import NeardupError, StoreError
from neardup.scrapy.options import Share, data_folder
from neardup.scrapy.other_crawls import OtherCrawls
from neardup.scrapy.restart import Restart
from neardup.store import starvation
from neardup.store.store import Store
from neardup.store.url_rules import UrlRules
from neardup.store.writer import Writer
from neardup.web import html_report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from neardup.detection.verdict import Verdict
    from neardup.fingerprint.reader import Reader
    from neardup.scrapy.options import Options
    from neardup.store.page_links import StoredLinks
    from neardup.store.starvation import LastCrawl
    from neardup.urls.effects import Effects
    from neardup.urls.learner import Learner

logger = logging.getLogger(__name__)

_NO_CRAWL = 1 << 31
"""In place of a crawl's id where none is recorded: pages get ids that no stored page has."""


class Recorder:
    """The database of one crawl: opened, read, written to in a thread of its own, and closed."""

    records = True

    def __init__(self, options: Options, reader: Reader, *, spider: str) -> None:
        self.store = Store.open(options.database_url, scheme=str(reader.scheme))
        self.location = self.store.location
        self.crawl_id = self.store.begin_crawl(
            spider=spider, settings=options.recorded, shared=options.share is Share.LIVE
        )
        self.detector = Detector(
            options.detector, reader=reader, first_id=self.crawl_id * PAGES_PER_CRAWL + 1
        )
        self.other_crawls = OtherCrawls(
            self.detector,
            self.store,
            self.crawl_id,
            interval=options.share_interval,
            reconcile=options.share is Share.LIVE,
        )
        self.restart = Restart(
            self.detector,
            self.store,
            self.crawl_id,
            self.store.snapshot_path(data_folder()) if options.snapshot else None,
            max_age=options.max_age,
        )
        self._rules = UrlRules()
        self.writer = Writer(
            self.store,
            self.crawl_id,
            history=options.history,
            frequencies=self.detector.verifier.frequencies,
            rules=self._rules,
        )
        self._report = options.report
        self.last_crawl: LastCrawl | None = None
        """The last crawl of the same spider, when this one has ended."""

    @property
    def learner(self) -> Learner:
        """What is learned of URLs: empty until :meth:`load`, then what earlier crawls stored."""
        return self._rules.learner

    @property
    def effects(self) -> Effects:
        """What comes of the rules in this crawl."""
        return self._rules.effects

    @property
    def backlog(self) -> int:
        """Rows that wait to be stored."""
        return self.writer.backlog

    @property
    def error(self) -> StoreError | None:
        """Why nothing is stored at the moment; None: all is well."""
        return self.writer.error

    def load(self) -> None:
        """Fill the detector and the learner with what earlier crawls stored."""
        self.restart.load()
        self.store.load_rules(self._rules)

    def start(self) -> None:
        """Take over what other crawls store from now on."""
        self.other_crawls.start(self.writer)

    def put(self, verdict: Verdict) -> None:
        """Have a verdict stored."""
        self.writer.put(verdict)
        self.other_crawls.judged(verdict.page_id)

    def flag(self, page_id: int) -> None:
        """Have it stored that a canonical page deserves a look."""
        self.writer.flag(page_id)

    def soft_404(self, page_id: int) -> None:
        """Have it stored that a page stands for one that is not there."""
        self.writer.soft_404(page_id)

    def links_withheld(self, page_id: int, links: int) -> None:
        """Have it stored that so many links of a page were not followed."""
        self.writer.links_withheld(page_id, links)

    def put_links(self, page_id: int, links: StoredLinks) -> None:
        """Have the links of a page stored."""
        self.writer.put_links(page_id, links)

    def put_ip(self, host: str, ip: str) -> None:
        """Have it stored that a host has an IP address now."""
        self.writer.put_ip(host, ip)

    async def stop(self) -> None:
        """Take over no more of other crawls between the pages of this one."""
        await self.other_crawls.stop()

    def close(self, reason: str, counts: Callable[[], Mapping[str, int | str | None]]) -> None:
        """Store what is still waiting and the end of the crawl; StoreError says what could not be stored.

        Runs in a thread: the database may be slow. ``counts`` is called when all has been stored.
        """
        try:
            if self.detector.recall is not None:
                self.detector.recall.close()
            self.writer.put_learned()
            self.writer.flush()
            if self.writer.error is None:
                self._resolve()
            self.writer.close()
            self.store.finish_crawl(self.crawl_id, reason=reason, counts=counts())
            if self.writer.rows_rejected == 0:  # what is known is what is stored
                self.restart.save(self.writer.batches + self.other_crawls.batches)
            # On the connection that has just answered: one of its own might wait for minutes.
            with self.store.reading(patiently=False) as connection:
                self.last_crawl = starvation.last_crawl(connection, self.crawl_id)
            if self._report is not None:
                self._write_report(self._report)
        finally:
            self.store.close()

    def _write_report(self, path: Path) -> None:
        """What the crawl has found is stored, whether a report can be written or not."""
        try:
            html_report.write(self.store, self.detector.rule, path)
        except NeardupError as exc:
            logger.error("neardup: %(error)s", {"error": exc})
        else:
            logger.info("neardup: the report is %(path)s", {"path": path})

    def stats(self) -> dict[str, Any]:
        """Sums that are kept here, by the names of stats."""
        return {
            "rows_written": self.writer.rows_written,
            "rows_rejected": self.writer.rows_rejected,
            "store_retries": self.writer.retries,
            "pages_of_other_crawls": self.other_crawls.pages,
            "reconciled": self.other_crawls.reconciled,
            "seconds/store": round(self.writer.seconds, 6),
        }

    def _resolve(self) -> None:
        """Find canonical pages for the duplicates of pages that are canonical no longer.

        Whatever happens, the crawl comes to its end: what is left the next one resolves.
        """
        try:
            elected = self.other_crawls.finish(self.writer)
        except StoreError as exc:
            logger.warning(
                "neardup: the next crawl is to resolve what other crawls changed: %(error)s", {"error": exc}
            )
            return
        except Exception:
            logger.exception("neardup: resolving what other crawls changed failed")
            return
        if elected.canonical or elected.duplicates:
            logger.info(
                "neardup: of the duplicates of pages that are canonical no longer, %(canonical)d became"
                " canonical and %(duplicates)d are"
                " duplicates as before or of others",
                {"canonical": elected.canonical, "duplicates": elected.duplicates},
            )


class Onlooker:
    """Stands in for a :class:`Recorder` in ``scrapy shell``, ``fetch``, ``view``, ``parse`` and ``check``:
    nothing is stored.

    The database is read, so that the verdicts are those that a crawl would find. Where there is no database,
    or none of this scheme, every page is new.
    """

    records = False
    backlog = 0
    error: StoreError | None = None
    last_crawl: LastCrawl | None = None

    def __init__(self, options: Options, reader: Reader) -> None:
        self.detector = Detector(options.detector, reader=reader, first_id=_NO_CRAWL * PAGES_PER_CRAWL + 1)
        self.location = "nothing is stored by this command"
        self._options = options
        self._rules = UrlRules()

    @property
    def learner(self) -> Learner:
        """As that of :class:`Recorder`."""
        return self._rules.learner

    @property
    def effects(self) -> Effects:
        """As those of :class:`Recorder`, and stored nowhere."""
        return self._rules.effects

    def load(self) -> None:
        options = self._options
        try:
            with Store.open(
                options.database_url, scheme=str(self.detector.reader.scheme), create=False
            ) as store:
                known = self.detector.restore(store.known_pages(max_age=options.max_age))
                store.load_frequencies(self.detector.verifier.frequencies)
                store.load_rules(self._rules)
                self.detector.verifier.decisions = store.decisions()
                logger.info(
                    "neardup: %(known)d known pages on %(database)s; this command stores nothing",
                    {"known": known, "database": store.location},
                )
        except NeardupError as exc:
            logger.warning("neardup: without known pages, because %(reason)s", {"reason": exc})

    def start(self) -> None:
        pass

    def put(self, verdict: Verdict) -> None:
        logger.info(
            "neardup: %(url)s: %(kind)s%(of)s, %(reason)s",
            {
                "url": verdict.url,
                "kind": verdict.kind.value.replace("_", " "),
                "of": f" of {verdict.canonical_url}" if verdict.is_duplicate else "",
                "reason": verdict.reason,
            },
        )

    def flag(self, page_id: int) -> None:
        pass

    def soft_404(self, page_id: int) -> None:
        pass

    def links_withheld(self, page_id: int, links: int) -> None:
        pass

    def put_links(self, page_id: int, links: StoredLinks) -> None:
        pass

    def put_ip(self, host: str, ip: str) -> None:
        pass

    async def stop(self) -> None:
        pass

    def close(self, reason: str, counts: Callable[[], Mapping[str, int | str | None]]) -> None:
        if self.detector.recall is not None:
            self.detector.recall.close()

    def stats(self) -> dict[str, Any]:
        return {}
