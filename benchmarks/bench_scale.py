"""A store of ten million pages: rows written a second, bytes a page, start-up, and what each report takes and
reads.

Run as ``python -m benchmarks.bench_scale [--pages 10000000] [--databases sqlite postgresql mysql] [--out
FILE]``. A new database of each kind is filled with made-up pages (``made_store``) in bulk. The last 100,000
pages are written by the crawl's own writer, 500 at a time. Each start is a process of its own: one that reads
the tables and keeps a snapshot, and one that maps it. Numbers are shown only after what was stored, loaded
and reported has been counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import tempfile
from datetime import UTC, timedelta
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time, sleep
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.bench_latency import table
from benchmarks.bench_snapshot import resident
from benchmarks.made_store import BATCH_ROWS, HOSTS, SCHEME, START, MadePages, fill
from benchmarks.plans import plans, recorded
from neardup.address import Address
from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind, Verdict
from neardup.errors import DatabaseUnavailable
from neardup.fingerprint.simhash import Fingerprint
from neardup.scrapy.restart import Restart
from neardup.store import page_report, removal, reports, stats, url_shares
from neardup.store.canonical_tags import canonical_tags
from neardup.store.engine import database_url
from neardup.store.store import Store
from neardup.store.writer import Writer
from neardup.text import headline
from tests.support.databases import BACKENDS, new_database
from tests.support.stores import upgraded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import sqlalchemy as sa

    from neardup.store.pending_batch import Batch

    Report = Callable[[sa.Connection], Any]
    Cells = dict[str, str]

_WRITTEN = 100_000
_MEGABYTE = 1e6
_ALL = reports.Filters()


class TimedWriter(Writer):
    """Notes how long each transaction takes."""

    def __init__(self, store: Store, crawl_id: int) -> None:
        self.times: list[float] = []
        super().__init__(store, crawl_id, batch_rows=BATCH_ROWS)

    def _write(self, batch: Batch) -> None:
        started = perf_counter()
        super()._write(batch)
        self.times.append(perf_counter() - started)


def verdicts(pages: MadePages, start: int) -> Iterator[Verdict]:
    """What a crawl would have found of the pages from ``start`` on."""
    rng = np.random.default_rng(4)
    for place in range(start, len(pages)):
        duplicate, short, of = pages.duplicate[place], pages.short[place], int(pages.of[place])
        yield Verdict(
            address=Address(pages.url(place)),
            kind=Kind.DUPLICATE if duplicate else Kind.TOO_SHORT if short else Kind.NEW,
            follow=not duplicate,
            reason="",
            page_id=int(pages.ids[place]),
            fingerprint=None if short else Fingerprint(int(pages.values[place]), rng.normal(size=64)),
            sketch=None if short else rng.integers(0, 2**64, 16, dtype=np.uint64),
            features=5 if short else 300,
            canonical_id=int(pages.ids[of]) if duplicate else None,
            canonical_url=pages.url(of) if duplicate else None,
            distance=int(pages.distance[place]) if duplicate else None,
            resemblance=0.95 if duplicate else None,
            evidence=Evidence.RARE if duplicate else None,
            headline=rng.integers(0, 2**32, headline.BYTES // 4, dtype=np.uint32),
        )


def write(store: Store, pages: MadePages, start: int) -> Cells:
    """Store the pages from ``start`` on as a crawl does, and wait for each batch."""
    crawl_id = store.begin_crawl(spider="made", settings={})
    pages.ids[start:] = crawl_id * PAGES_PER_CRAWL + np.arange(1, len(pages) - start + 1)
    writer = TimedWriter(store, crawl_id)
    made = verdicts(pages, start)
    while some := list(islice(made, BATCH_ROWS)):
        for verdict in some:
            writer.put(verdict)
        while writer.backlog >= BATCH_ROWS:
            sleep(0.0005)
    writer.close()
    store.finish_crawl(crawl_id, reason="finished", counts={"pages": len(pages) - start})
    relations = int(pages.duplicate[start:].sum())
    assert (writer.rows_written, writer.rows_rejected) == (len(pages) - start + relations, 0)
    assert writer.retries == 0
    return {
        "writer: rows/s": f"{writer.rows_written / writer.seconds:,.0f}",
        "writer: pages/s": f"{(len(pages) - start) / writer.seconds:,.0f}",
        f"batch of {BATCH_ROWS} pages, median ms": f"{1000 * float(np.median(writer.times)):.0f}",
        "batch, p99 ms": f"{1000 * float(np.percentile(writer.times, 99)):.0f}",
        "batch, longest ms": f"{1000 * max(writer.times):.0f}",
    }


def tidy(store: Store) -> None:
    """What a server does by itself sooner or later, or a crawl at its end."""
    with store.engine.connect() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        elif connection.dialect.name == "mysql":
            connection.exec_driver_sql("ANALYZE TABLE crawls, simhash_values, duplicate_values").all()
        else:
            connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql("VACUUM ANALYZE")


def sizes(store: Store, pages: MadePages) -> Cells:
    with store.reading() as connection:
        tables = {size.name: size for size in stats.table_sizes(connection)}
        file = stats.file_size(connection)
    assert tables["simhash_values"].rows == len(pages)
    assert tables["duplicate_values"].rows == pages.duplicate.sum()
    parts = [tables[name].bytes_on_disk or 0 for name in ("simhash_values", "duplicate_values")]
    total = sum(parts) if file is None else file.bytes_on_disk
    return {
        "bytes a page": f"{total / len(pages):.0f}",
        "of them relations": "–" if file is not None else f"{parts[1] / len(pages):.0f}",
    }


def all_reports(pages: MadePages) -> dict[str, Report]:
    """By the words of the table."""
    host, last = reports.Filters(host=HOSTS[-1]), reports.Filters(since=_moment(39))
    canonical, copy = pages.url(int(pages.of[3])), pages.url(len(pages) // 8 * 4 + 3)
    return {
        "report: overview": lambda c: reports.overview(c, _ALL),
        "report: by host": lambda c: reports.by_host(c, _ALL),
        "report: by path prefix and parameter": lambda c: url_shares.by_url(c, _ALL),
        "report: by distance": lambda c: reports.by_distance(c, _ALL),
        "report: by crawl": lambda c: reports.by_crawl(c, _ALL),
        "report: across hosts": lambda c: reports.across_hosts(c, _ALL),
        "report: largest clusters": lambda c: reports.largest_clusters(c, _ALL, limit=10),
        "report: canonical tags": lambda c: canonical_tags(c, _ALL),
        "report: flagged clusters": lambda c: reports.largest_clusters(c, _ALL, limit=10, flagged=True),
        "report of a small host: all sections": lambda c: _whole_report(c, host),
        "report since the last crawl: all sections": lambda c: _whole_report(c, last),
        "show: the largest cluster": lambda c: page_report.page_report(c, canonical),
        "show: a duplicate": lambda c: page_report.page_report(c, copy),
        "check: all canonical fingerprints": lambda c: page_report.canonical_fingerprints(c, min_features=10),
        "plan: some weak bits": lambda c: page_report.weak_bits_of_some(c, limit=1000),
        "crawls": stats.crawl_pages,
        "crawls remove: what would go": lambda c: removal.to_remove(c, removal.only_of(20)),
        "db info": page_report.store_sizes,
        "db stats: sizes": stats.table_sizes,
        "db stats: by kind": stats.pages_by_kind,
        "db stats: by scheme": stats.pages_by_scheme,
        "db prune --dry-run": lambda c: removal.to_remove(c, removal.older_than(_moment(8))),
        "running crawls": removal.running,
    }


def _moment(weeks: int) -> Any:
    return START.replace(tzinfo=UTC) + timedelta(weeks=weeks)


def _whole_report(connection: sa.Connection, filters: reports.Filters) -> reports.Overview:
    for section in (
        reports.by_host,
        url_shares.by_url,
        canonical_tags,
        reports.by_distance,
        reports.by_crawl,
        reports.across_hosts,
    ):
        section(connection, filters)
    for flagged in (False, True):
        reports.largest_clusters(connection, filters, limit=10, flagged=flagged)
    return reports.overview(connection, filters)


def check(name: str, answer: Any, pages: MadePages) -> None:
    """Compare with what was made, where that is known."""
    duplicates = int(pages.duplicate.sum())
    if name == "report: overview":
        assert (answer.share.pages, answer.share.duplicates) == (len(pages), duplicates)
        assert answer.too_short == pages.short.sum()
        assert answer.clusters == np.unique(pages.of[pages.duplicate]).size
    elif name in {"report: by host", "report: by path prefix"}:
        assert (sum(s.pages for s in answer), sum(s.duplicates for s in answer)) == (len(pages), duplicates)
    elif name == "report: by distance":
        assert [at.duplicates for at in answer] == np.bincount(pages.distance[pages.duplicate]).tolist()
    elif name == "report: across hosts":
        crossing = pages.hosts[pages.duplicate] != pages.hosts[pages.of[pages.duplicate]]
        assert sum(between.duplicates for between in answer) == crossing.sum()
    elif name == "report: largest clusters":
        largest = np.sort(np.bincount(pages.of[pages.duplicate]))[::-1][:10]
        assert [cluster.duplicates for cluster in answer] == largest.tolist()
    elif name == "check: all canonical fingerprints":
        assert answer[0].size == canonical(pages)
    elif name == "crawls":
        assert sum(row.pages_first for row in answer) == len(pages)


def canonical(pages: MadePages) -> int:
    return int((~pages.duplicate & ~pages.short).sum())


def report(store: Store, pages: MadePages) -> tuple[Cells, Cells]:
    """Seconds of each report, and how it reads the tables."""
    seconds: Cells = {}
    ways: Cells = {}
    for name, ask in all_reports(pages).items():
        started = perf_counter()
        try:
            with recorded() as statements, store.reading() as connection:
                answer = ask(connection)
        except DatabaseUnavailable as exc:
            seconds[name] = f"given up after {perf_counter() - started:.0f}"
            print(f"    {name}: {exc}", flush=True)
        else:
            seconds[name] = f"{perf_counter() - started:.2f}"
            check(name, answer, pages)
        with store.reading() as connection:
            ways[name] = "; ".join(map(str, plans(connection, statements)))
        if (
            name.startswith("show") and len(pages) >= _WRITTEN
        ):  # of a small table, reading all is the best plan
            assert "all of pages" not in ways[name], ways[name]
            assert "all of relations" not in ways[name], ways[name]
        print(f"    {name}: {seconds[name]} s: {ways[name]}", flush=True)
    return seconds, ways


def start(url: str, folder: Path) -> dict[str, Any]:
    """Fill a detector as a crawl does at its start; from the tables unless there is a snapshot, which is kept
    then.
    """
    detector = Detector(DetectorOptions())
    gc.collect()
    with Store.open(url, scheme=SCHEME) as store:
        crawl_id = store.begin_crawl(spider="made", settings={})
        path = store.snapshot_path(folder)
        there = path.exists()
        restart = Restart(detector, store, crawl_id, path)
        before, began, began_cpu = resident(), perf_counter(), process_time()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is that of what follows
        restart.load()
        found: dict[str, Any] = {
            "seconds": perf_counter() - began,
            "cpu": process_time() - began_cpu,
            "grown": resident() - before,
            "peak": _peak() - before,
            "known": len(detector.pages),
            "canonical": len(detector.index),
        }
        assert there == bool(len(detector.sketches._mapped)), "not from where it should be"
        began = perf_counter()
        if not there:
            restart.save(batches=0)
        return found | {"saving": perf_counter() - began, "bytes": path.stat().st_size}


def _peak() -> int:
    """Most bytes of memory that this process has had, mapped files included."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no VmHWM")


def starts(url: str, folder: Path, pages: MadePages) -> Cells:
    """Each in a process of its own: from the tables, then from the snapshot."""
    command = [sys.executable, "-m", "benchmarks.bench_scale", "--start", url, "--folder", str(folder)]
    found = []
    for _ in ("tables", "snapshot"):
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        found.append(json.loads(done.stdout))
        assert (found[-1]["known"], found[-1]["canonical"]) == (len(pages), canonical(pages))
    tables, mapped = found
    return {
        "start from the tables, s": f"{tables['seconds']:.1f}",
        "CPU of the crawl's process, s": f"{tables['cpu']:.1f}",
        "pages/s": f"{len(pages) / tables['seconds']:,.0f}",
        "memory, MB": f"{tables['grown'] / _MEGABYTE:,.0f}",
        "memory at its peak, MB": f"{tables['peak'] / _MEGABYTE:,.0f}",
        "memory a page, bytes": f"{tables['grown'] / len(pages):.0f}",
        "snapshot written, s": f"{tables['saving']:.1f}",
        "snapshot, bytes a page": f"{tables['bytes'] / len(pages):.0f}",
        "start from the snapshot, s": f"{mapped['seconds']:.2f}",
        "memory then, not of the file, MB": f"{mapped['grown'] / _MEGABYTE:,.0f}",
    }


def measure(backend: str, count: int, folder: Path) -> tuple[Cells, Cells, Cells]:
    pages = MadePages(count)
    stored = count - min(_WRITTEN, count // 2)
    with new_database(backend, folder) as url:
        print(f"{backend}: {count:,} pages", flush=True)
        upgraded(url)
        began = perf_counter()
        fill(database_url(url), pages, stored)
        rate = stored / (perf_counter() - began)
        cells, seconds, ways = measure_filled(url, pages, stored, folder)
    return {"filled in bulk, indexes included: pages/s": f"{rate:,.0f}", **cells}, seconds, ways


def measure_filled(url: str, pages: MadePages, stored: int, folder: Path) -> tuple[Cells, Cells, Cells]:
    """What can be measured of a database with the first so many pages."""
    with Store.open(url, scheme=SCHEME) as store:
        tidy(store)
        cells = write(store, pages, stored)
        tidy(store)
        cells |= sizes(store, pages)
        print(json.dumps(cells, indent=1, ensure_ascii=False), flush=True)
        seconds, ways = report(store, pages)
    cells |= starts(url, folder, pages)
    print(json.dumps(cells, indent=1, ensure_ascii=False), flush=True)
    return cells, seconds, ways


def side_by_side(columns: dict[str, Cells], what: str) -> str:
    names = dict.fromkeys(name for cells in columns.values() for name in cells)
    rows = [[name, *(cells.get(name, "") for cells in columns.values())] for name in names]
    return table([what, *columns], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=10_000_000)
    parser.add_argument("--databases", nargs="+", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--out", type=Path)
    for name in ("--start", "--folder"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.start:
        print(json.dumps(start(arguments.start, Path(arguments.folder))))
        return
    found = {}
    for backend in arguments.databases:
        with tempfile.TemporaryDirectory() as folder:
            found[backend] = measure(backend, arguments.pages, Path(folder))
    parts = [
        side_by_side({backend: result[at] for backend, result in found.items()}, what)
        for at, what in enumerate((f"{arguments.pages:,} pages", "seconds", "how the tables are read"))
    ]
    text = "\n\n".join(parts)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
