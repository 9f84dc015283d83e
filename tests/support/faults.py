"""A real crawl whose database fails for a while: what happened, how long until rows were stored again, what
is missing.
"""

from __future__ import annotations

import gc
import logging
import re
import sqlite3
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event
from typing import TYPE_CHECKING, Any, Self

import pytest
import sqlalchemy as sa

from neardup.store.schema import duplicate_values, simhash_values
from tests.support.crawling import crawl, recorder_of
from tests.support.killing import Ground, Watcher, check_tables
from tests.support.synthetic import DUPLICATE_EVERY, SETTINGS, MadePages, made_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from scrapy.crawler import Crawler

    from neardup.store.writer import Writer

_WAITING_FOR_LOCKS = {
    "postgresql": "SELECT COUNT(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND wait_event_type = 'Lock'",
    "mysql": "SELECT COUNT(*) FROM information_schema.innodb_trx JOIN information_schema.processlist"
    " ON id = trx_mysql_thread_id WHERE db = database() AND trx_state = 'LOCK WAIT'",
}

_UNMOUNT_SECONDS = 20

HANG_SECONDS = 240
"""Nothing here takes so long unless it hangs."""


@dataclass
class Fault:
    """What is done to the database in the middle of a crawl.

    ``seconds``: how long it lasts; None: until the crawl has given up. ``give_up_after`` is the writer's.
    ``until_noticed``: the fault lasts until the writer has failed, too. Of a full disk a server may have room
    in its files for a while.
    ``recovery``: seconds from its end until rows were stored again.
    """

    begin: Callable[[], object]
    end: Callable[[], object] = lambda: None
    seconds: float | None = 0.0
    give_up_after: float | None = None
    until_noticed: bool = False
    recovery: float | None = None
    failed_after: float | None = None
    """Seconds from its beginning until the writer noticed."""
    done: Event = field(default_factory=Event)

    def __call__(self, crawler: Crawler) -> None:
        try:
            recorder = recorder_of(crawler)
            self._run(recorder.writer)
        finally:
            self.done.set()

    def _run(self, writer: Writer) -> None:
        if self.give_up_after is not None:
            writer.give_up_after = self.give_up_after
        self.run(
            lambda: writer.rows_written,
            lambda: writer.error is not None,
            lambda: writer.retries > 0 or not self.until_noticed,
        )

    def run(
        self,
        rows: Callable[[], int],
        given_up: Callable[[], bool] = lambda: False,
        noticed: Callable[[], bool] = lambda: True,
    ) -> None:
        """``rows``: how many are stored; ``given_up``: whether the crawl has given up; ``noticed``: whether
        the writer has failed.
        """
        _wait_until(lambda: rows() > 0)
        began = time.monotonic()
        self.begin()
        try:
            if self.seconds is None:
                _wait_until(given_up)
                self.failed_after = time.monotonic() - began
            else:
                time.sleep(self.seconds)
                _wait_until(noticed)
        finally:
            stored = rows()
            self.end()
        ended = time.monotonic()
        _wait_until(lambda: rows() > stored)
        self.recovery = time.monotonic() - ended


@dataclass
class Outcome:
    """What a crawl with a fault ended with."""

    reason: str
    retries: int
    warnings: int
    rejected: int
    judged: int
    pages_missing: int
    relations_missing: int
    recovery: float | None
    failed_after: float | None = None


def faulty_crawl(
    url: str, fault: Fault, *, pages: int = 300, through: str | None = None, **more: Any
) -> Outcome:
    """Crawl made pages, ten milliseconds apart, over a database that fails meanwhile, and compare what is
    stored with them.

    ``through``: another URL of the database, for the crawl; ``more``: further settings.
    """
    settings: dict[str, Any] = SETTINGS | {
        "NEARDUP_DATABASE_URL": through or url,
        "NEARDUP_SNAPSHOT": False,
        "DOWNLOAD_DELAY": 0.01,
        **more,
    }
    with _Warnings() as warnings:
        stats = crawl(MadePages, settings, pages=pages, meanwhile=fault).stats
    assert fault.done.wait(HANG_SECONDS)
    assert fault.recovery is not None, "nothing was stored after the fault"
    outcome = _outcome(url, stats, warnings.seen, fault.recovery)
    outcome.failed_after = fault.failed_after
    return outcome


def faulty_process(url: str, fault: Fault, folder: Path, *, pages: int) -> Outcome:
    """The same by ``scrapy crawl site`` in a process of its own, of made pages in a folder, some thirty
    milliseconds apart.
    """
    ground = Ground(url, folder)
    watcher = Watcher(url)
    process = ground.start(_made_folder(folder, pages), delay=0.03)
    try:
        fault.run(lambda: len(watcher.page_rows))
        assert process.wait(HANG_SECONDS) == 0, ground.log.read_text()
    finally:
        process.kill()
        watcher.stop()
    return _outcome_of_process(ground, fault.recovery)


def processes_at_once(url: str, folder: Path, *, pages: int) -> list[Outcome]:
    """Two of these crawls, of the same pages, without a fault, and as fast as they can."""
    made = _made_folder(folder, pages)
    grounds = [Ground(url, folder / name) for name in "ab"]
    processes = []
    for ground in grounds:
        ground.folder.mkdir()
        processes.append(ground.start(made))
    for ground, process in zip(grounds, processes, strict=True):
        assert process.wait(HANG_SECONDS) == 0, ground.log.read_text()
    return [_outcome_of_process(ground) for ground in grounds]


def _made_folder(folder: Path, pages: int) -> str:
    made = folder / "made"
    made.mkdir()
    for number in range(pages):
        (made / f"{number:05}").write_bytes(b"<html>" + made_body(number))
    return str(made)


def _outcome_of_process(ground: Ground, recovery: float | None = None) -> Outcome:
    log = ground.log.read_text()
    stats: dict[str, Any] = {
        name: int(number) for name, number in re.findall(r"'(neardup/\w+)': (\d+),", log)
    }
    (stats["finish_reason"],) = re.findall(r"'finish_reason': '(\w+)'", log)
    return _outcome(ground.url, stats, log.count("WARNING: neardup"), recovery)


def _outcome(url: str, stats: dict[str, Any], warnings: int, recovery: float | None) -> Outcome:
    judged = stats["neardup/pages"]
    stored, relations = _counts(url)
    return Outcome(
        reason=stats["finish_reason"],
        retries=stats["neardup/store_retries"],
        warnings=warnings,
        rejected=stats["neardup/rows_rejected"],
        judged=judged,
        pages_missing=judged - stored,
        relations_missing=stats["neardup/duplicates"] - relations,
        recovery=recovery,
    )


class _Warnings(logging.Handler):
    """Counts what the writer warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.seen += 1

    def __enter__(self) -> Self:
        logging.getLogger("neardup.store.outage").addHandler(self)
        return self

    def __exit__(self, *exc: object) -> None:
        logging.getLogger("neardup.store.outage").removeHandler(self)


def _counts(url: str) -> tuple[int, int]:
    """Pages of the crawl that are stored, and relations, each of which must be that of a page to the one
    before it; none twice.
    """
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        pages = connection.execute(sa.select(simhash_values.c.id, simhash_values.c.actual_url)).all()
        table = duplicate_values.c
        pairs = connection.execute(sa.select(table.duplicate_hash_id, table.actual_hash_id)).all()
    urls = {row[0]: row[1] for row in pages}
    engine.dispose()
    check_tables(url)
    for pair in pairs:
        numbers = sorted(int(urls[page].rpartition("/")[2]) for page in pair)
        assert numbers[1] % DUPLICATE_EVERY == DUPLICATE_EVERY - 1
        assert numbers[0] == numbers[1] - 1
    assert len(set(urls.values())) == len(urls)
    assert len({duplicate for duplicate, _ in pairs}) == len(pairs)
    return len(urls), len(pairs)


def _wait_until(condition: Callable[[], bool], *, pause: float = 0.005) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "hangs"
        time.sleep(pause)


def make_serializable(url: str) -> None:
    """Have a PostgreSQL database commit transactions only if they could have come one after the other."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        setting = "default_transaction_isolation = 'serializable'"
        connection.execute(sa.text(f"ALTER DATABASE {engine.url.database} SET {setting}"))


def wait_for_lock(url: str) -> None:
    """Wait until a transaction of a server's database waits for another one."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        query = sa.text(_WAITING_FOR_LOCKS[engine.dialect.name])
        # MariaDB keeps the answer until nobody has asked for 0.1 s.
        _wait_until(lambda: bool(connection.execute(query).scalar_one()), pause=0.15)


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
    """A file system of some megabytes; ``fill`` leaves no room in it."""

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
def small_disk(folder: Path, megabytes: int = 8) -> Iterator[SmallDisk]:
    """Mounted on a folder while in use; the test is skipped where that is not allowed."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "neardup-test", str(folder)]
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
        _unmount(folder)


def _unmount(folder: Path) -> None:
    """Processes of a command that has failed may hold files for a moment, and so may uncollected objects."""
    deadline = time.monotonic() + _UNMOUNT_SECONDS
    while True:
        gc.collect()
        done = subprocess.run(["umount", str(folder)], capture_output=True, text=True, check=False)
        if not done.returncode:
            return
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.1)
