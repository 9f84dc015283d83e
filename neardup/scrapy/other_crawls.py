"""Follows the other crawls on a database: reads what they have written in a thread, and takes it over between
the pages of this crawl.
"""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import create_looping_call
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future

from neardup.address import Address
from neardup.detection.known_pages import NONE
from neardup.detection.reconciliation import Reconciler
from neardup.errors import DatabaseUnavailable
from neardup.scrapy.loop import run_in_thread, sleep
from neardup.store.change_feed import ChangeFeed
from neardup.store.election import Elected
from neardup.store.statements import in_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy.utils.asyncio import AsyncioLoopingCall
    from twisted.internet.defer import Deferred
    from twisted.internet.task import LoopingCall

    from neardup.detection.detector import Detector
    from neardup.detection.stored_page import StoredPage
    from neardup.detection.verdict import Relation
    from neardup.store.store import Store
    from neardup.store.writer import Writer

logger = logging.getLogger(__name__)

_MOST_ROUNDS = 10
"""Rounds of resolving. Each round leaves fewer pages; the next crawl resolves what others write meanwhile."""

_RESOLVED_AT_ONCE = 1_000
"""Pages whose duplicates are resolved in one transaction."""

_SLICE_SECONDS = 0.002
"""How long the event loop is kept busy with pages of others at a time."""


class OtherCrawls:
    """Follows the other crawls from :meth:`start` to :meth:`stop`, and a last time in :meth:`finish`.

    The tables are read every ``interval`` seconds (0: never). With ``reconcile``, near-copies that both were
    called new are made one cluster as they come, else only in the end.
    """

    def __init__(
        self, detector: Detector, store: Store, crawl_id: int, *, interval: float, reconcile: bool
    ) -> None:
        self.pages = 0
        """Pages that have been taken over."""
        self.batches = 0
        """Transactions of resolving."""
        self.reconciled = 0
        self._interval = interval
        # Before anything is loaded: what is written meanwhile may be read twice, but is not missed.
        self._feed = ChangeFeed(store, crawl_id, look_back=interval > 0.0)
        self._reconciler = Reconciler(detector, reconcile=reconcile)
        self._detector = detector
        self._store = store
        self._crawl_id = crawl_id
        self._own: set[int] = set()
        self._reconciled: set[int] = set()
        self._calls: AsyncioLoopingCall | LoopingCall | None = None
        self._reading: Deferred[None] | None = None
        self._stopping = False
        self._failed = False

    def start(self, writer: Writer) -> None:
        """Follow from now on; relations go to the writer."""
        if self._interval > 0.0:
            self._calls = create_looping_call(lambda: self._begin(writer))
            self._calls.start(self._interval, now=False)

    async def stop(self) -> None:
        """Take over no more pages between those of this crawl."""
        self._stopping = True
        if self._calls is not None and self._calls.running:
            self._calls.stop()
        if self._reading is not None:
            await maybe_deferred_to_future(self._reading)

    def judged(self, page_id: int | None) -> None:
        """Note that this crawl has judged a page: what others wrote of it before does not count any more."""
        if page_id is not None and self._interval > 0.0:
            self._own.add(page_id)

    def finish(self, writer: Writer) -> Elected:
        """Take over and reconcile what is left, when all pages of this crawl have been judged and stored;
        StoreError if that fails.

        Also finds canonical pages for the duplicates of pages that are canonical no longer. What is done is
        noted (``crawls.reconciled_batches``). If the method does not come to its end, the next crawl does the
        rest.
        """
        # Before the others are read: of two crawls that end at once, one at least reads what the other has
        # stored.
        self._store.share_crawl(self._crawl_id)
        if self._interval > 0.0:
            self._catch_up(writer)
            self._look_at_unreconciled(writer)
        elected, done = self._resolve(writer)
        if done and self._interval > 0.0:
            self._feed.mark_reconciled(own=writer.batches + self.batches)
        return elected

    def _catch_up(self, writer: Writer) -> None:
        """Take over what others have written and this crawl has not read."""
        self._look_again(writer)
        parts = self._feed.read()
        while pages := self._part(parts):
            for page in pages:
                self._apply(page, writer)
        self._pass_on(self._reconciler.reconcile_all(), writer)

    def _look_at_unreconciled(self, writer: Writer) -> None:
        """Reconcile the pages that crawls before this one have left, and have the duplicates of those that
        are doubtful looked at.
        """
        count = 0
        for pages in self._feed.unreconciled():
            for page, doubtful in pages:
                if doubtful:
                    self._detector.no_longer_canonical.add(page.page_id)
                self._pass_on(self._reconciler.look_again(page), writer)
            count += len(pages)
        if count:
            logger.info(
                "neardup: %(pages)d pages that earlier crawls, or removals, left unreconciled have been"
                " compared with all others",
                {"pages": count},
            )

    def _resolve(self, writer: Writer) -> tuple[Elected, bool]:
        """Find canonical pages for the duplicates of pages that are canonical no longer; whether nothing is
        left to do.

        Something may be left to do for two reasons. A page that is elected may itself be a near-copy of
        another that has become canonical meanwhile. And a pair is not stored if its other page has changed.
        The first page is then canonical in the tables, but not in the memory of this crawl.
        """
        elected = Elected()
        for _ in range(_MOST_ROUNDS):
            writer.flush()
            if writer.error is not None:
                break
            self._forget_missing(writer)
            dropped = writer.dropped()
            if not (dropped or self._detector.no_longer_canonical):
                return elected, True
            for page in self._store.pages_by_id(dropped):
                self._pass_on(self._reconciler.apply(page), writer)
            changed = sorted({writer.stored_id(page_id) for page_id in self._detector.no_longer_canonical})
            self._detector.no_longer_canonical.clear()
            for some in in_parts(changed, _RESOLVED_AT_ONCE):
                found, pages = self._store.resolve(self._crawl_id, some, self._detector.rule)
                self.batches += 1
                elected += found
                for page in pages:
                    self._pass_on(self._reconciler.apply(page), writer)
            if self._interval > 0.0:
                self._catch_up(writer)
        return elected, False

    def _forget_missing(self, writer: Writer) -> None:
        """Have no more pages become duplicates of pages that are not stored; their duplicates are looked at
        as pages of pairs dropped.
        """
        pages = self._detector.pages
        for url in writer.missing():
            row = pages.row(Address(url))
            if row != NONE and pages.canonical[row] == row:
                self._detector.set_canonical(row, 0, canonical=NONE)

    def _look_again(self, writer: Writer) -> None:
        """Before the tail is read: note what of this crawl counts more, and under which ids its pages are
        stored.
        """
        self._forget_missing(writer)
        self._own, self._reconciled = writer.pages_waiting(), set()
        known = self._detector.pages
        for url, page_id in writer.learnt():
            row = known.row(Address(url))
            if row != NONE:
                if known.ids[row] in self._own:
                    self._own.add(page_id)
                known.ids[row] = page_id

    def _begin(self, writer: Writer) -> None:
        if self._reading is None:
            self._reading = deferred_from_coro(self._follow(writer))

    async def _follow(self, writer: Writer) -> None:
        self._look_again(writer)
        parts = self._feed.read()
        try:
            while not self._stopping and (pages := await self._next(parts)):
                await self._apply_in_slices(pages, writer)
        except DatabaseUnavailable as exc:
            self._warn(exc)
        except Exception:
            # A task that died in silence would have the crawl go on alone.
            logger.exception("neardup: following other crawls failed")
        finally:
            self._reading = None

    async def _next(self, parts: Iterator[list[StoredPage]]) -> list[StoredPage]:
        """The next part; an empty one if there is none."""
        found: list[StoredPage] = []
        await run_in_thread(lambda: found.extend(self._part(parts)))
        return found

    def _part(self, parts: Iterator[list[StoredPage]]) -> list[StoredPage]:
        """The next part, once what people have decided by now is known; an empty one if there is none."""
        found = next(parts, [])
        if found:
            self._detector.verifier.decisions = self._store.decisions()
        return found

    async def _apply_in_slices(self, pages: list[StoredPage], writer: Writer) -> None:
        started = perf_counter()
        for page in pages:
            if self._stopping:
                return
            self._apply(page, writer)
            if perf_counter() - started > _SLICE_SECONDS:
                await sleep(0)
                started = perf_counter()

    def _apply(self, page: StoredPage, writer: Writer) -> None:
        known = self._detector.pages
        row = known.row(Address(page.url))
        if row != NONE and (
            known.ids[row] in self._own
            or (known.ids[row] in self._reconciled and known.values[row] == page.value)
        ):
            return
        self.pages += 1
        self._pass_on(self._reconciler.apply(page), writer)

    def _pass_on(self, relations: Iterable[Relation], writer: Writer) -> None:
        for relation in relations:
            self.reconciled += 1
            self._reconciled.add(relation.duplicate_id)
            writer.reconcile(relation)

    def _warn(self, problem: DatabaseUnavailable) -> None:
        if not self._failed:
            self._failed = True
            logger.warning(
                "neardup: the pages of other crawls cannot be read: %(problem)s; trying again (further"
                " failures are not logged)",
                {"problem": problem},
            )
