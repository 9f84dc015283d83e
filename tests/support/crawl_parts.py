"""What a crawl is made of, without Scrapy."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.reconciliation import unresolved
from neardup.errors import StoreError
from neardup.scrapy.other_crawls import OtherCrawls
from neardup.store.writer import Writer
from tests.support.killing import check_tables

if TYPE_CHECKING:
    from neardup.detection.verdict import Verdict
    from neardup.store.store import Store


TEXT = " ".join(f"word{i}" for i in range(200))


class Process:
    """What a crawl is made of, without Scrapy; it follows the others when it is told to."""

    running: ClassVar[list[Process]] = []
    """Those whose writers may still run: :func:`stop_all` ends them before their database is gone."""

    def __init__(self, store: Store, *, shared: bool = True, interval: float = 60.0, **options: Any) -> None:
        self.store = store
        self.crawl_id = store.begin_crawl(spider="s", settings={}, shared=shared)
        self.detector = Detector(DetectorOptions(**options), first_id=self.crawl_id * PAGES_PER_CRAWL + 1)
        self.other_crawls = OtherCrawls(
            self.detector, store, self.crawl_id, interval=interval, reconcile=shared
        )
        self.detector.restore(store.known_pages())
        decisions = self.detector.verifier.decisions = store.decisions()
        self.detector.no_longer_canonical.update(
            unresolved(self.detector.pages, self.detector.rule.max_distance, decisions)
        )
        self.writer = Writer(store, self.crawl_id, batch_seconds=0.005)
        self.running.append(self)

    def judge(self, url: str, text: str, *, title: str = "") -> Verdict:
        html = f"<title>{title}</title><p>{text}"
        verdict = self.detector.examine_html(url, html) if title else self.detector.examine_text(url, text)
        self.writer.put(verdict)
        self.other_crawls.judged(verdict.page_id)
        return verdict

    def gone(self, url: str) -> None:
        verdict = self.detector.gone(url)
        assert verdict is not None
        self.writer.put(verdict)
        self.other_crawls.judged(verdict.page_id)

    def end(self) -> None:
        self.writer.flush()
        self.other_crawls.finish(self.writer)
        self.writer.close()
        self.store.finish_crawl(self.crawl_id, reason="finished", counts={})
        check_tables(self.store.engine.url.render_as_string(hide_password=False))

    def follow(self) -> None:
        """As a crawl does before its end."""
        asyncio.run(self.other_crawls._follow(self.writer))


def stop_all() -> None:
    """Stop the writers that tests have left: one that still stores would complain in the next test."""
    while Process.running:
        with suppress(StoreError):
            Process.running.pop().writer.close()
