"""One page stored, as a crawl of this page alone would store it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.collection.lookup import detector_near
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.verdict import Kind
from neardup.errors import StoreError
from neardup.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neardup.collection.lookup import Known
    from neardup.detection.verdict import Verdict
    from neardup.fingerprint.reader import Reading
    from neardup.store.store import Store

SPIDER = "check"
"""In place of the name of a spider."""

_PATIENCE = 10.0
"""Seconds in which the database may be away: somebody waits."""


def keep(known: Known, url: str, reading: Reading, settings: Mapping[str, object]) -> tuple[int, Verdict]:
    """Store a page that has been read; returns the id of the crawl that the page is of, and what it was found
    to be.

    Raises StoreError if the database does not take the page. Two who store the same page leave it stored
    once. Removing the crawl takes the page back.
    """
    with known.store.of_scheme(str(known.reader.scheme)) as store:
        crawl_id = store.begin_crawl(spider=SPIDER, settings=settings)
        counts: dict[str, int] = {}
        try:
            detector = detector_near(known, url, reading, first_id=crawl_id * PAGES_PER_CRAWL + 1)
            verdict = detector.judge(url, reading)
            changed = _written(store, crawl_id, verdict)
            store.resolve(crawl_id, detector.no_longer_canonical.union(changed), detector.rule)
            kind = verdict.kind
            counts = {"pages": 1, "new": int(kind is Kind.NEW), "duplicates": int(kind is Kind.DUPLICATE)}
        finally:
            store.finish_crawl(crawl_id, reason="finished" if counts else "failed", counts=counts)
    return crawl_id, verdict


def _written(store: Store, crawl_id: int, verdict: Verdict) -> list[int]:
    """Store a verdict; returns the id of the page, if another crawl has stored the page meanwhile."""
    writer = Writer(store, crawl_id, give_up_after=_PATIENCE)
    try:
        writer.put(verdict)
        writer.flush()
    finally:
        writer.close()
    if writer.rows_rejected:
        raise StoreError(f"the database takes no such page: {verdict.url}")
    return [page_id for _, page_id in writer.learnt()]
