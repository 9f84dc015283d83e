"""Several crawls at once on one database: what they find together, against one crawl that sees it all.

Run as ``python -m benchmarks.bench_many [--processes 2 4] [--database postgresql|mysql|sqlite] [--pages
FOLDER] [--interval S] [--delay S]``. FOLDER (``tests/pages`` unless given) is served as so many mirrors on
loopback. Each mirror is crawled from its index pages in a process of its own (the ready project's spider),
all at once, on one new database. For comparison one process crawls all the mirrors. Counted are pages,
canonical pages, duplicates, and pairs that were reconciled. The table also tells how long after its verdict a
page of one crawl was known to another. The benchmark fails if any chain, double row, or page without a row is
left. It also fails if pages with equal fingerprints have more than one canonical page.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from datetime import UTC
from pathlib import Path
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.utils.project import get_project_settings

from benchmarks.bench_kill import prepared
from crawler.spiders.site import SiteSpider
from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.store import Store
from tests.support.crawling import recorder_of, serve
from tests.support.databases import BACKENDS, new_database
from tests.support.places import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator


async def crawl(arguments: argparse.Namespace) -> dict[str, Any]:
    """One crawl in this process; what it counted, and when it took over each page of another."""
    settings = get_project_settings()
    settings.update(
        {
            "NEARDUP_DATABASE_URL": arguments.url,
            "NEARDUP_SHARE_INTERVAL": arguments.interval,
            "NEARDUP_SNAPSHOT": False,
            "DOWNLOAD_DELAY": arguments.delay,
            "LOG_LEVEL": "WARNING",
            "ROBOTSTXT_OBEY": False,
            "TWISTED_REACTOR_ENABLED": False,
            "REMOTE_CONTROL_ENABLED": False,
        },
        priority="cmdline",
    )
    runner = AsyncCrawlerRunner(settings)
    crawler = runner.create_crawler(SiteSpider)
    applied: list[tuple[str, float]] = []
    reconciled: list[int] = []

    def watch() -> None:
        recorder = recorder_of(crawler)
        reconciler = recorder.other_crawls._reconciler
        apply = reconciler.apply

        def noting(page: Any) -> Any:
            applied.append((page.url, time()))
            relations = apply(page)
            reconciled.extend(relation.duplicate_id for relation in relations)
            return relations

        reconciler.apply = noting  # type: ignore[method-assign]

    crawler.signals.connect(watch, signals.spider_opened, weak=False)
    await runner.crawl(crawler, url=arguments.start)
    assert crawler.stats is not None
    stats = crawler.stats.get_stats()
    assert stats["finish_reason"] == "finished", stats
    names = ("pages", "duplicates", "pages_of_other_crawls", "store_retries")
    return {
        "applied": applied,
        "reconciled": reconciled,
        **{name: stats.get(f"neardup/{name}", 0) for name in names},
    }


def begin(url: str, start: str, interval: float, delay: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.bench_many", "--url", url, "--start", start]
    command += ["--interval", str(interval), "--delay", str(delay)]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "crawler.settings"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def starts(folder: Path, mirrors: list[str]) -> list[str]:
    """The index pages of each mirror, as ``-a url=`` takes them."""
    paths = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("index.html"))
    assert paths, folder
    return [",".join(f"{mirror}/{path}" for path in paths) for mirror in mirrors]


def run(url: str, jobs: list[str], interval: float, delay: float) -> dict[str, Any]:
    """All jobs at once; sums of what they counted, what is stored, and the delays."""
    began = perf_counter()
    processes = [begin(url, job, interval, delay) for job in jobs]
    outputs = [process.communicate()[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    seconds = perf_counter() - began
    done = [json.loads(output) for output in outputs]
    with Store.open(url, scheme=None) as store, store.reading() as connection:
        pages = {row.id: row for row in connection.execute(sa.select(simhash_values))}
        relations = {
            row.duplicate_hash_id: row.actual_hash_id
            for row in connection.execute(sa.select(duplicate_values))
        }
    assert len({row.actual_url for row in pages.values()}) == len(pages)
    assert not relations.keys() & set(relations.values()), "a chain"
    canonical = [row.hash_value for row in pages.values() if row.kind in {"new", "changed", "unchanged"}]
    assert len(set(canonical)) == len(canonical), "twins"
    first = {row.actual_url: row.first_seen.astimezone(UTC).timestamp() for row in pages.values()}
    once = {(number, url): at for number, one in enumerate(done) for url, at in reversed(one["applied"])}
    delays = [at - first[url] for (_, url), at in once.items()]
    return {
        "pages": len(pages),
        "canonical": len(canonical),
        "duplicates": len(relations),
        "reconciled": len({duplicate for one in done for duplicate in one["reconciled"]}),
        "judged": sum(one["pages"] for one in done),
        "delays": delays,
        "seconds": seconds,
    }


def report(name: str, result: dict[str, Any]) -> str:
    late = "–"
    if result["delays"]:
        p50, p99, longest = np.percentile(result["delays"], [50, 99, 100])
        late = f"{p50:.1f}, {p99:.1f}, {longest:.1f}"
    counts = [result[key] for key in ("judged", "pages", "canonical", "duplicates", "reconciled")]
    return f"| {' | '.join(map(str, [name, *counts, late, round(result['seconds'])]))} |"


def mirrors(stack: ExitStack, folder: Path, number: int) -> Iterator[str]:
    for _ in range(number):
        site = stack.enter_context(serve())
        site.add_folder(folder)
        yield site.url


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--database", choices=BACKENDS, default="postgresql")
    parser.add_argument("--pages", type=Path, default=PAGES)
    parser.add_argument("--interval", type=float, default=5.0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--start", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.url:
        print(json.dumps(asyncio.run(crawl(arguments))))
        return
    folder = arguments.pages.resolve()
    print(
        "| crawls | judged | pages | canonical | duplicates | reconciled | known to another after s (p50,"
        " p99, longest) | s |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for number in arguments.processes:
        for together in (True, False):
            with (
                ExitStack() as stack,
                tempfile.TemporaryDirectory() as name,
                new_database(arguments.database, Path(name)) as url,
            ):
                jobs = starts(folder, list(mirrors(stack, folder, number)))
                result = run(
                    prepared(arguments.database, url),
                    jobs if together else [",".join(jobs)],
                    arguments.interval,
                    arguments.delay,
                )
            label = f"{number} at once" if together else f"one, of all {number} mirrors"
            print(report(label, result), flush=True)


if __name__ == "__main__":
    main()
