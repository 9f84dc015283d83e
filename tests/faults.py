"""A real crawl whose database fails for a while: what happened, how long until rows were stored again, what is missing."""

from __future__ import annotations

import sqlite3
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.scrapy.extension import NearDuplicates
from neardup.store.schema import duplicate_values, simhash_values
from tests.crawling import crawl
from tests.synthetic import DUPLICATE_EVERY, SETTINGS, MadePages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy.crawler import Crawler

    from neardup.store.writer import Writer

HANG_SECONDS = 240
"""Nothing here takes so long unless it hangs."""


@dataclass
class Fault:
    """What is done to the database in the middle of a crawl.

    ``seconds``: how long it lasts; None: until the crawl has given up. ``give_up_after`` is the writer's. ``recovery``: seconds from
    its end until rows were stored again.
    """

    begin: Callable[[], object]
    end: Callable[[], object] = lambda: None
    seconds: float | None = 0.0
    give_up_after: float | None = None
    recovery: float | None = None
    failed_after: float | None = None
    """Seconds from its beginning until the writer noticed."""
    done: Event = field(default_factory=Event)

    def __call__(self, crawler: Crawler) -> None:
        try:
            neardup = crawler.get_extension(NearDuplicates)
            assert neardup is not None
            self._run(neardup.writer)
        finally:
            self.done.set()

    def _run(self, writer: Writer) -> None:
        if self.give_up_after is not None:
            writer.give_up_after = self.give_up_after
        _wait_until(lambda: writer.rows_written > 0)
        began = time.monotonic()
        self.begin()
        try:
            if self.seconds is None:
                _wait_until(lambda: writer.error is not None)
                self.failed_after = time.monotonic() - began
            else:
                time.sleep(self.seconds)
        finally:
            written = writer.rows_written
            self.end()
        ended = time.monotonic()
        _wait_until(lambda: writer.rows_written > written)
        self.recovery = time.monotonic() - ended


@dataclass
class Outcome:
    """What a crawl with a fault ended with."""

    reason: str
    retries: int
    rejected: int
    judged: int
    pages_missing: int
    relations_missing: int
    recovery: float
    failed_after: float | None


def faulty_crawl(url: str, fault: Fault, *, pages: int = 300, through: str | None = None) -> Outcome:
    """Crawl made pages, ten milliseconds apart, over a database that fails meanwhile, and compare what is stored with them.

    ``through``: another URL of the database, for the crawl.
    """
    settings: dict[str, Any] = SETTINGS | {
        "NEARDUP_DATABASE_URL": through or url,
        "NEARDUP_SNAPSHOT": False,
        "DOWNLOAD_DELAY": 0.01,
    }
    stats = crawl(MadePages, settings, pages=pages, meanwhile=fault).stats
    assert fault.done.wait(HANG_SECONDS)
    assert fault.recovery is not None, "nothing was stored after the fault"
    judged = stats["neardup/pages"]
    stored, relations = _counts(url)
    return Outcome(
        reason=stats["finish_reason"],
        retries=stats["neardup/store_retries"],
        rejected=stats["neardup/rows_rejected"],
        judged=judged,
        pages_missing=judged - stored,
        relations_missing=stats["neardup/duplicates"] - relations,
        recovery=fault.recovery,
        failed_after=fault.failed_after,
    )


def _counts(url: str) -> tuple[int, int]:
    """Pages of the crawl that are stored, and relations, each of which must be that of a page to the one before it."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        pages = connection.execute(sa.select(simhash_values.c.id, simhash_values.c.actual_url)).all()
        table = duplicate_values.c
        pairs = connection.execute(sa.select(table.duplicate_hash_id, table.actual_hash_id)).all()
    urls = {row[0]: row[1] for row in pages}
    engine.dispose()
    for pair in pairs:
        numbers = sorted(int(urls[page].rpartition("/")[2]) for page in pair)
        assert numbers[1] % DUPLICATE_EVERY == DUPLICATE_EVERY - 1
        assert numbers[0] == numbers[1] - 1
    return len(set(urls.values())), len(pairs)


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "hangs"
        time.sleep(0.005)


class ForeignLock:
    """Another program that holds a write lock on a SQLite file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._holder: sqlite3.Connection | None = None

    def take(self) -> None:
        self._holder = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=30)
        self._holder.execute("BEGIN IMMEDIATE")

    def release(self) -> None:
        assert self._holder is not None
        self._holder.execute("ROLLBACK")
        self._holder.close()


class SmallDisk:
    """A file system of eight megabytes; ``fill`` leaves no room in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self) -> None:
        with suppress(OSError), self._filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def empty(self) -> None:
        self._filler.unlink()


@contextmanager
def small_disk(folder: Path) -> Iterator[SmallDisk]:
    """Mounted on a folder while in use; the test is skipped where that is not allowed."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "neardup-test", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        problem = done.stderr.strip() if done.returncode else ""
    except FileNotFoundError as exc:
        problem = str(exc)
    if problem:
        pytest.skip(f"no tmpfs can be mounted: {problem}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
