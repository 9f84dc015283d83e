"""The store: rows written a second, what ``put`` costs the event loop, start-up, bytes on disk.

Run as ``python -m benchmarks.bench_store [URL]``. Without a URL the benchmark runs on a new SQLite file. The
database of a URL must be empty but for its tables (``neardup db upgrade``), and keeps what is written.
Fingerprints and URLs are made with a fixed seed. Every number is shown only after the rows have been counted
in the database.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from neardup.address import Address
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind, Verdict
from neardup.fingerprint.scheme import Scheme
from neardup.fingerprint.simhash import Fingerprint
from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.store import Store
from neardup.store.writer import Writer
from neardup.text import headline

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = 20_000
DUPLICATE_EVERY = 4
WORDS = ("guide", "reference", "release", "notes", "install", "download", "archive", "index", "user", "api")

# Bytes of a table and its indexes.
SIZES = {
    "postgresql": "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c"
    " WHERE relname IN ('simhash_values', 'duplicate_values')",
    "mysql": "SELECT sum(data_length + index_length) FROM information_schema.tables"
    " WHERE table_schema = database() AND table_name IN ('simhash_values', 'duplicate_values')",
}


def verdicts(crawl_id: int) -> list[Verdict]:
    """New pages, and after each few of them a duplicate of an earlier one at distance 0 to 3."""
    rng, weights = random.Random(3), np.random.default_rng(3)
    canonical: list[Verdict] = []
    made: list[Verdict] = []
    for number in range(1, PAGES + 1):
        path = "/".join(rng.choices(WORDS, k=rng.randint(2, 5)))
        url = (
            f"https://www{rng.randrange(50)}.example.org/{path}/page-{number}.html"
            f"?lang=en&session={rng.getrandbits(64):x}"
        )
        original = rng.choice(canonical) if number % DUPLICATE_EVERY == 0 else None
        if original is None:
            value, distance = rng.getrandbits(64), None
        else:
            assert original.fingerprint is not None
            distance = rng.randint(0, 3)
            value = original.fingerprint.value
            for bit in rng.sample(range(64), distance):
                value ^= 1 << bit
        verdict = Verdict(
            address=Address(url),
            kind=Kind.NEW if original is None else Kind.DUPLICATE,
            follow=original is None,
            reason="",
            page_id=crawl_id * PAGES_PER_CRAWL + number,
            fingerprint=Fingerprint(value, weights.normal(size=64)),
            features=rng.randint(50, 2000),
            canonical_id=original.page_id if original else None,
            canonical_url=original.url if original else None,
            distance=distance,
            resemblance=None if distance is None else 0.95,
            evidence=None if distance is None else Evidence.RARE,
            headline=weights.integers(0, 2**32, headline.BYTES // 4, dtype=np.uint32),
        )
        made.append(verdict)
        if original is None:
            canonical.append(verdict)
    return made


def size_on_disk(store: Store) -> int:
    """Bytes of the two tables and their indexes; of a SQLite file, all of it."""
    dialect = store.engine.dialect.name
    with store.engine.connect() as connection:
        if dialect == "sqlite":
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
            return Path(store.location).stat().st_size
        if dialect == "mysql":
            # Its table statistics are otherwise those of some moment ago.
            connection.execute(sa.text("ANALYZE TABLE simhash_values, duplicate_values")).all()
        return int(connection.execute(sa.text(SIZES[dialect])).scalar_one())


@contextmanager
def database(arguments: list[str]) -> Iterator[str]:
    if arguments:
        yield arguments[0]
        return
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/neardup.db"


def run(store: Store) -> None:
    print(f"{store.location}: {PAGES:,} pages, one in {DUPLICATE_EVERY} a duplicate")
    assert list(store.known_pages()) == [], "the database must hold no pages"
    crawl_id = store.begin_crawl(spider="bench_store", settings={})
    pages = verdicts(crawl_id)

    writer = Writer(store, crawl_id)
    costs = []
    started = time.perf_counter()
    for verdict in pages:
        before = time.perf_counter()
        writer.put(verdict)
        costs.append(time.perf_counter() - before)
    writer.close()
    elapsed = time.perf_counter() - started

    started = time.perf_counter()
    known = sum(1 for _ in store.known_pages())
    loading = time.perf_counter() - started

    duplicates = PAGES // DUPLICATE_EVERY
    with store.engine.connect() as connection:
        for table, rows in ((simhash_values, PAGES), (duplicate_values, duplicates)):
            assert connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one() == rows
    assert known == PAGES
    assert (writer.rows_written, writer.rows_rejected, writer.retries) == (PAGES + duplicates, 0, 0)
    costs.sort()
    print(f"  written       {writer.rows_written / elapsed:10,.0f} rows/s, {PAGES / elapsed:,.0f} pages/s")
    print(f"  put           {1e6 * statistics.median(costs):10.1f} µs median,", end=" ")
    print(f"{1e6 * costs[int(0.99 * PAGES)]:.1f} µs p99, {1e3 * costs[-1]:.1f} ms at most")
    print(f"  known_pages   {loading:10.2f} s, {1e6 * loading / PAGES:.1f} µs a page")
    print(f"  on disk       {size_on_disk(store) / PAGES:10.0f} bytes a page, relations and indexes included")


def main() -> None:
    with database(sys.argv[1:]) as url, Store.open(url, scheme=str(Scheme())) as store:
        run(store)


if __name__ == "__main__":
    main()
