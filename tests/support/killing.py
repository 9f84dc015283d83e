"""Crawls that are killed at some moment, and what must be true of their database then and after a restart."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from neardup.cli.rules import distances_by_crawl
from neardup.detection.detector import Detector, DetectorOptions
from neardup.fingerprint.scheme import Scheme
from neardup.scrapy.restart import Restart
from neardup.store import check
from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.stats import settings_by_crawl
from neardup.store.store import Store
from neardup.store.transfer import snapshot_of
from tests.support.places import PAGES, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable


DELAY = 0.05
"""Between the pages of a crawl that is to be killed, so that it lasts for several batches."""

_POLL_SECONDS = 0.02


@dataclass(frozen=True)
class Tables:
    """All rows, by URL, because the same page has another id in another run; and what no database may
    hold.
    """

    pages: dict[str, dict[str, Any]]
    relations: dict[str, tuple[str, int, float]]
    page_rows: set[tuple[int, bytes]]
    relation_rows: set[tuple[int, int]]
    doubles: int
    """Rows of a page or a relation that has one already, relations to what is no canonical page, and
    duplicates without one.
    """
    visits: list[int]
    """For each page, the crawl that saw it last."""


NOTHING = Tables({}, {}, set(), set(), 0, [])


@dataclass
class Ground:
    """A database, and a folder for what crawls keep beside it."""

    url: str
    folder: Path

    def start(self, pages: str, *, delay: float = 0.0, jobdir: Path | None = None) -> subprocess.Popen[bytes]:
        """Begin a crawl in a process of its own; one request at a time, so that the order of the pages is
        known.

        ``jobdir``: where Scrapy keeps what is left to do, so that the next crawl there goes on.
        """
        settings = {
            "NEARDUP_DATABASE_URL": self.url,
            "CONCURRENT_REQUESTS": "1",
            "REMOTE_CONTROL_ENABLED": "False",
            "TELNETCONSOLE_ENABLED": "False",
        }
        if delay:
            settings |= {"DOWNLOAD_SLOTS": "{}", "DOWNLOAD_DELAY": str(delay)}
        if jobdir is not None:
            settings["JOBDIR"] = str(jobdir)
        command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"url={pages}"]
        for name, value in settings.items():
            command += ["-s", f"{name}={value}"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "SCRAPY_SETTINGS_MODULE": "crawler.settings",
        }
        # A file, not a pipe: nobody reads while the crawl is watched.
        with self.log.open("wb") as log:
            return subprocess.Popen(
                command, cwd=self.folder, env=environment, stdout=subprocess.DEVNULL, stderr=log
            )

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    def crawl(self, pages: str) -> float:
        """Crawl to the end; returns the seconds from start to exit."""
        started = time.monotonic()
        process = self.start(pages)
        assert process.wait(timeout=120) == 0, self.log.read_text()
        log = self.log.read_text()
        assert "'finish_reason': 'finished'" in log, log
        assert "Traceback" not in log, log
        return time.monotonic() - started

    def wait_for_closing(self, process: subprocess.Popen[bytes]) -> float:
        """Wait until Scrapy says that it closes the spider, or has ended; returns the moment."""
        while process.poll() is None and b"Closing spider" not in self.log.read_bytes():
            time.sleep(0.002)
        return time.monotonic()

    def seconds_of_closing(self, pages: str) -> float:
        """Crawl to the end; returns the seconds from the moment when Scrapy says that it closes the spider to
        the exit.
        """
        process = self.start(pages)
        closing = self.wait_for_closing(process)
        assert process.wait(timeout=120) == 0, self.log.read_text()
        return time.monotonic() - closing

    def read(self) -> Tables:
        """What is in the database, read past everything of neardup but the names of its tables."""
        with _plain_connection(self.url) as connection:
            if not sa.inspect(connection).has_table("duplicate_values"):
                return NOTHING
            if connection.dialect.name == "sqlite":
                assert connection.exec_driver_sql("PRAGMA integrity_check").scalars().all() == ["ok"]
            pages = connection.execute(sa.select(simhash_values)).mappings().all()
            relations = connection.execute(sa.select(duplicate_values)).mappings().all()
        return _tables([dict(row) for row in pages], [dict(row) for row in relations])

    def index_is_that_of_the_tables(self) -> bool:
        """Whether a restart would know, from the snapshot or the tables, exactly the pages of the tables."""
        with Store.open(self.url, scheme=str(Scheme())) as store:
            snapshot = store.snapshot_path(self.folder / ".scrapy" / "neardup")
            restarted, plain = Detector(DetectorOptions()), Detector(DetectorOptions())
            Restart(restarted, store, 0, snapshot).load()
            plain.restore(store.known_pages())
        return _known(restarted) == _known(plain) and _index_is_complete(restarted)


def broken_tables(url: str, *, at_rest: bool = False) -> list[str]:
    """What ``neardup db check`` finds broken; ``at_rest``: the last crawl came to its end, so nothing may be
    left to the next one either.
    """
    with Store.open(url, scheme=None) as store, snapshot_of(store) as connection:
        found = check.check(connection, distances_by_crawl(settings_by_crawl(connection)), limit=3)
    left = [
        finding for finding in found.pending if finding.name != "crawls have ended"
    ]  # one that died never
    findings = found.broken + (left if at_rest else [])
    return [f"{finding.name} ({finding.rows}): {finding.examples}" for finding in findings]


def check_tables(url: str, *, at_rest: bool = False) -> None:
    """Fail unless ``neardup db check`` finds everything as it must be."""
    broken = broken_tables(url, at_rest=at_rest)
    assert not broken, broken


def stages(folder: Path = PAGES) -> list[str]:
    """What is crawled first, and what after that over the same database: some of the folders below a folder,
    then it all.
    """
    inner = sorted(path for path in folder.iterdir() if path.is_dir())
    return [",".join(map(str, inner[::2])), str(folder)]


def _plain_connection(url: str) -> sa.Connection:
    """A connection that makes no file and changes no setting of the database."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() == "sqlite":
        parsed = sa.make_url(f"sqlite:///file:{parsed.database}?mode=rw&uri=true")
    return sa.create_engine(parsed, poolclass=sa.NullPool).connect()


def _tables(pages: list[dict[str, Any]], relations: list[dict[str, Any]]) -> Tables:
    urls = {row["id"]: row["actual_url"] for row in pages}
    pairs = [(row["duplicate_hash_id"], row["actual_hash_id"]) for row in relations]
    duplicates = {duplicate for duplicate, _ in pairs}
    doubles = len(pages) - len({bytes(row["url_key"]) for row in pages})
    doubles += len(pairs) - len(duplicates)
    doubles += sum(
        canonical in duplicates or not {page, canonical} <= urls.keys() for page, canonical in pairs
    )
    doubles += len(duplicates ^ {row["id"] for row in pages if row["kind"] == "duplicate"})
    told = ("kind", "hash_value", "features", "links_withheld")
    return Tables(
        {row["actual_url"]: {name: row[name] for name in told} | {"sketch": _bytes(row)} for row in pages},
        {
            urls.get(row["duplicate_hash_id"], ""): (
                urls.get(row["actual_hash_id"], ""),
                row["hamming_distance"],
                row["resemblance"],
            )
            for row in relations
        },
        {(row["id"], bytes(row["url_key"])) for row in pages},
        set(pairs),
        doubles,
        [row["last_crawl_id"] for row in pages],
    )


def _bytes(row: dict[str, Any]) -> bytes | None:
    return None if row["sketch"] is None else bytes(row["sketch"])


def _known(detector: Detector) -> dict[str, tuple[int, int, str | None, bytes | None]]:
    """What a detector knows of each page: id, fingerprint, canonical page, and that one's sketch."""
    known = {}
    for row in range(len(detector.pages)):
        canonical = detector.pages.canonical[row]
        drawn: bytes | None = None
        if canonical == row:
            drawn = detector.sketches.of(detector.pages.canonical.array()[row : row + 1]).tobytes()
        known[detector.pages.urls[row]] = (
            detector.pages.ids[row],
            detector.pages.values[row],
            detector.pages.urls[canonical] if canonical >= 0 else None,
            drawn,
        )
    return known


def _index_is_complete(detector: Detector) -> bool:
    """Whether the index holds every canonical page under its row, and nothing else; it is empty after
    that.
    """
    pages = detector.pages
    canonical = [row for row in range(len(pages)) if pages.canonical[row] == row]
    return (
        all(detector.index.remove(pages.values[row], row) for row in canonical) and len(detector.index) == 0
    )


class Watcher:
    """An independent reader, which notes every row that it has seen committed while a crawl runs."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.polls = 0
        self.page_rows: set[tuple[int, bytes]] = set()
        self.relation_rows: set[tuple[int, int]] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def lost(self, tables: Tables) -> int:
        """Rows that were seen and are not there."""
        return len(self.page_rows - tables.page_rows) + len(self.relation_rows - tables.relation_rows)

    def _run(self) -> None:
        pages = sa.select(simhash_values.c.id, simhash_values.c.url_key)
        relations = sa.select(duplicate_values.c.duplicate_hash_id, duplicate_values.c.actual_hash_id)
        while not self._stop.wait(_POLL_SECONDS):
            try:
                with _plain_connection(self.url) as connection:
                    self.page_rows |= {(row[0], bytes(row[1])) for row in connection.execute(pages)}
                    self.relation_rows |= {(row[0], row[1]) for row in connection.execute(relations)}
            except sa.exc.DBAPIError:
                continue  # the file or the tables are not made yet, or the server is away
            self.polls += 1


@dataclass
class Kill:
    """One crawl killed, restarted and compared; ``moment`` tells how far it had come.

    ``broken_invariants``: those that ``neardup db check`` finds broken after the kill, and after the restart,
    which may leave nothing to reconcile.
    """

    moment: str
    broken_invariants: list[str]
    committed_rows_lost: int
    double_rows: int
    index_differs: int
    result_differs: int
    source: str
    polls: int
    restart_seconds: float


def reference(ground: Ground, parts: list[str]) -> tuple[list[Tables], float]:
    """What uninterrupted crawls store, one after the other over one database; and the seconds of the last."""
    results, seconds = [], 0.0
    for part in parts:
        seconds = ground.crawl(part)
        results.append(ground.read())
    assert all(len(result.pages) > 0 and len(result.relations) > 0 for result in results)
    return results, seconds


def whole_seconds(seconds: float, uninterrupted: Tables, delay: float = DELAY) -> float:
    """How long a crawl that is to be killed would take, given how long it took without the delay."""
    return seconds + delay * len(uninterrupted.pages)


def kill_9(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


def interrupt_twice(process: subprocess.Popen[bytes], between: float) -> None:
    """Ctrl-C, and once more after so many seconds, which Scrapy answers by ending at once; unless it has
    ended by then.
    """
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=between)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=120)


def kill(
    ground: Ground,
    part: str,
    uninterrupted: Tables,
    after: float,
    delay: float = DELAY,
    end: Callable[[subprocess.Popen[bytes]], None] = kill_9,
    *,
    closing: bool = False,
) -> Kill | None:
    """Crawl, end it after so many seconds, check, crawl again to the end, check; None if it ended before
    that.

    ``closing``: the seconds count from the moment when Scrapy says that it closes the spider.
    """
    last = max(_rows_or_nothing(ground).visits, default=0)
    watcher = Watcher(ground.url)
    process = ground.start(part, delay=delay)
    try:
        if closing:
            ground.wait_for_closing(process)
        process.wait(timeout=after)
    except subprocess.TimeoutExpired:
        end(process)
    else:
        return None
    finally:
        process.kill()
        watcher.stop()
    stored = _rows_or_nothing(ground)
    lost, doubles = watcher.lost(stored), stored.doubles
    broken = [] if stored is NOTHING else broken_tables(ground.url)
    # Where no table has been made yet, making them is left to the restart.
    index_differs = stored is not NOTHING and not ground.index_is_that_of_the_tables()
    restart_seconds = ground.crawl(part)
    result = ground.read()
    found = re.search(r"loaded from the (\w+)", ground.log.read_text())
    assert found is not None
    return Kill(
        moment=_moment(sum(crawl > last for crawl in stored.visits), len(uninterrupted.pages)),
        broken_invariants=broken + broken_tables(ground.url, at_rest=True),
        committed_rows_lost=lost + watcher.lost(result),
        double_rows=doubles + result.doubles,
        index_differs=index_differs + (not ground.index_is_that_of_the_tables()),
        result_differs=not _is_as_expected(result, uninterrupted, stored),
        source=found[1],
        polls=watcher.polls,
        restart_seconds=restart_seconds,
    )


def _rows_or_nothing(ground: Ground) -> Tables:
    parsed = sa.make_url(ground.url)
    if parsed.get_backend_name() == "sqlite" and not Path(parsed.database or "").exists():
        return NOTHING
    return ground.read()


def _moment(stored: int, end: int) -> str:
    if stored == 0:
        return "before the first batch"
    return "after the last batch" if stored == end else "between batches"


def _is_as_expected(result: Tables, uninterrupted: Tables, stored: Tables) -> bool:
    """The result of a crawl never interrupted; but what was stored before the restart is not new to it any
    more.
    """
    expected = {
        url: row | {"kind": "unchanged"} if row["kind"] == "new" and url in stored.pages else row
        for url, row in uninterrupted.pages.items()
    }
    return (result.pages, result.relations) == (expected, uninterrupted.relations)


def number_of(kill: Kill, name: str) -> int:
    """A count of a kill, or the length of a list."""
    value = getattr(kill, name)
    return len(value) if isinstance(value, list) else value


@dataclass
class Kills:
    """The sums over many kills."""

    kills: list[Kill] = field(default_factory=list)

    def sum(self, name: str) -> int:
        return sum(number_of(kill, name) for kill in self.kills)

    def count(self, name: str) -> Counter[str]:
        return Counter(getattr(kill, name) for kill in self.kills)
