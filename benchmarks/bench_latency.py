"""What storing costs the event loop, and what a long crawl costs in memory.

Run as ``python -m benchmarks.bench_latency [--pages 3000] [--delay 0.05] [--long 200000] [--out FILE]``.

**Latency.** A task in the event loop sleeps 5 ms again and again and notes how much later than that it wakes.
Meanwhile a crawl of made-up tiny pages runs (Scrapy's real engine, no network; 100 pages a second), in these
ways:

- without the add-on;
- with the add-on and nothing written until the end, so that what judging costs is told from what storing
  costs;
- on SQLite;
- on PostgreSQL;
- on PostgreSQL through a proxy that delays each piece by ``--delay`` seconds.

**Back-pressure.** The same crawl runs at full speed with the slow database: rows that wait, and pages a
second.

**Memory.** The resident set is measured over a crawl of so many pages at full speed, with the add-on and
without. The table tells how much of the growth the known pages, index and sketches explain.

Every crawl is a process of its own, and counts its rows at the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner

from neardup.detection.detector_arrays import arrays_of
from neardup.scrapy.extension import NearDuplicates
from tests.support.crawling import recorder_of
from tests.support.databases import new_database
from tests.support.proxy import through_proxy
from tests.support.stores import upgraded
from tests.support.synthetic import SETTINGS, MadePages

if TYPE_CHECKING:
    from collections.abc import Sequence

_PROBE_SECONDS = 0.005
_PAUSE_SECONDS = 0.01
_STARTING_SECONDS = 2.0
"""Not counted: Scrapy itself is busy for 0.1 s and more while it opens its first connections."""
_SAMPLE_SECONDS = 5.0
_NEVER = 1_000_000


class Probe:
    """Measures a crawl from within: lateness of the loop, memory, rows that wait."""

    def __init__(self, crawler: Any, *, write: bool) -> None:
        self.crawler = crawler
        self.write = write
        self.late: list[float] = []
        self.samples: list[tuple[int, int]] = []
        self.most_waiting = 0
        self.seconds = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        crawler.signals.connect(self.start, signals.spider_opened)
        crawler.signals.connect(self.stop, signals.spider_idle)

    @property
    def neardup(self) -> NearDuplicates | None:
        found: NearDuplicates | None = self.crawler.get_extension(NearDuplicates)
        return found

    def start(self) -> None:
        if self.neardup is not None and not self.write:
            writer = recorder_of(self.crawler).writer
            writer.batch_rows, writer.batch_seconds = _NEVER, float(_NEVER)
        self.seconds = -perf_counter()
        self._tasks = [asyncio.ensure_future(self._watch_loop()), asyncio.ensure_future(self._sample())]

    def stop(self) -> None:
        """When all pages are done, before the end is stored."""
        if self._tasks:
            self.seconds += perf_counter()
            self._note()
            for task in self._tasks:
                task.cancel()
            self._tasks = []

    async def _watch_loop(self) -> None:
        while True:
            before = perf_counter()
            await asyncio.sleep(_PROBE_SECONDS)
            if before + self.seconds > _STARTING_SECONDS:
                self.late.append(perf_counter() - before - _PROBE_SECONDS)
            if self.neardup is not None:
                self.most_waiting = max(self.most_waiting, self.neardup.recorder.backlog)

    async def _sample(self) -> None:
        while True:
            self._note()
            await asyncio.sleep(_SAMPLE_SECONDS)

    def _note(self) -> None:
        pages = self.crawler.stats.get_value("response_received_count", 0)
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
        self.samples.append((pages, resident))
        print(f"{pages} pages, {resident / 1e6:.1f} MB", file=sys.stderr, flush=True)


def sizes(neardup: NearDuplicates) -> dict[str, int]:
    """Bytes of what the add-on keeps of pages."""
    kept = dict.fromkeys(("pages", "index", "sketches", "digests"), 0)
    for name, array in arrays_of(neardup.detector).items():
        part = name.partition("/")[0]
        kept[part] += sum(
            np.asarray(piece).nbytes for piece in (array if isinstance(array, list) else [array])
        )
    return {
        "known pages and their URLs": kept["pages"],
        "index": neardup.detector.index.nbytes,
        "sketches": kept["sketches"],
        "requests": sys.getsizeof(neardup.policy.links._passed_on)
        + 36 * len(neardup.policy.links._passed_on),
        "digests": neardup.detector.digests.nbytes(len(neardup.detector.pages)),
    }


async def crawl(arguments: argparse.Namespace) -> dict[str, Any]:
    settings = {**SETTINGS, "NEARDUP_DATABASE_URL": arguments.url or None, "NEARDUP_SNAPSHOT": False}
    if arguments.mode == "without":
        settings["ADDONS"] = {}
    if arguments.paced:
        settings["DOWNLOAD_DELAY"] = _PAUSE_SECONDS
    crawler = AsyncCrawlerRunner(settings).create_crawler(MadePages)
    probe = Probe(crawler, write=arguments.mode != "judged")
    kept: dict[str, int] = {}
    crawler.signals.connect(
        lambda: kept.update(sizes(probe.neardup)) if probe.neardup else None,
        signals.spider_closed,
        weak=False,
    )
    await AsyncCrawlerRunner(settings).crawl(crawler, pages=arguments.pages)
    stats = crawler.stats.get_stats()
    assert stats["finish_reason"] == "finished", stats
    assert stats["item_scraped_count"] == arguments.pages
    if probe.neardup is not None:
        assert stats["neardup/rows_written"] >= arguments.pages
    return {
        "late": np.percentile(np.array(probe.late), [50, 99, 99.9, 100]).tolist(),
        "samples": probe.samples,
        "kept": kept,
        "most_waiting": probe.most_waiting,
        "pages_per_second": arguments.pages / probe.seconds,
        "retries": stats.get("neardup/store_retries", 0),
    }


def run(mode: str, pages: int, url: str = "", *, paced: bool = False) -> dict[str, Any]:
    """One crawl in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_latency", "--mode", mode, "--pages", str(pages)]
    command += ["--url", url, *(["--paced"] if paced else [])]
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "crawler.settings"}
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def latency(pages: int, delay: float, folder: Path) -> str:
    """The tables of event loop and back-pressure."""
    results = {"without": run("without", pages, paced=True)}
    for mode in ("judged", "SQLite"):
        results[mode] = run(mode, pages, f"sqlite:///{folder}/{mode}.db", paced=True)
    with new_database("postgresql", folder) as url:
        results["PostgreSQL"] = run("PostgreSQL", pages, upgraded(url), paced=True)
    slow = f"PostgreSQL, {1000 * delay:g} ms a piece"
    with new_database("postgresql", folder) as url, through_proxy(upgraded(url)) as (proxy, there):
        proxy.delay = delay
        results[slow] = run(slow, pages, there, paced=True)
    rows = [
        [mode, *(f"{1000 * late:.2f}" for late in result["late"]), f"{result['pages_per_second']:.0f}"]
        for mode, result in results.items()
    ]
    first = table(["crawl", "p50 ms", "p99 ms", "p99.9 ms", "longest ms", "pages/s"], rows)
    with new_database("postgresql", folder) as url:
        fast = run("full speed", 4 * pages, upgraded(url))
        with new_database("postgresql", folder) as other, through_proxy(upgraded(other)) as (choked, through):
            choked.delay = 10 * delay
            held = run("held back", 4 * pages, through)
    rows = [
        [name, f"{result['pages_per_second']:.0f}", result["most_waiting"]]
        for name, result in (("PostgreSQL", fast), (f"{10_000 * delay:g} ms a piece", held))
    ]
    return f"{first}\n\n{table(['full speed', 'pages/s', 'most rows waiting'], rows)}"


def memory(pages: int, folder: Path) -> str:
    """The tables of memory over a long crawl."""
    # The engine alone needs no more of a page late than early: a quarter tells.
    without, with_it = run("without", pages // 4), run("SQLite", pages, f"sqlite:///{folder}/long.db")
    rows: list[list[object]] = []
    for name, result in (("without", without), ("with, on SQLite", with_it)):
        seen = np.array(result["samples"], dtype=np.float64)
        # From a tenth on: until then pools and caches fill.
        settled = seen[seen[:, 0] >= seen[-1, 0] / 10]
        slope = np.polyfit(settled[:, 0], settled[:, 1], 1)[0]
        at = [
            f"{np.interp(share * seen[-1, 0], seen[:, 0], seen[:, 1]) / 1e6:.0f}"
            for share in (0, 0.1, 0.25, 0.5, 0.75, 1)
        ]
        rows.append([name, *at, f"{slope:.0f}", f"{result['pages_per_second']:.0f}", result["most_waiting"]])
    head = ["crawl", *(f"MB at {share} %" for share in (0, 10, 25, 50, 75, 100))]
    first = table([*head, "bytes a page", "pages/s", "most rows waiting"], rows)
    kept = [[name, f"{size / pages:.0f}"] for name, size in with_it["kept"].items()]
    total = sum(with_it["kept"].values()) / pages
    return f"{first}\n\n{table(['kept', 'bytes a page'], [*kept, ['sum', f'{total:.0f}']])}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--delay", type=float, default=0.05)
    parser.add_argument("--long", type=int, default=200_000)
    parser.add_argument("--parts", nargs="+", choices=["latency", "memory"], default=["latency", "memory"])
    for name in ("--mode", "--url"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    parser.add_argument("--paced", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.mode:
        print(json.dumps(asyncio.run(crawl(arguments))))
        return
    with tempfile.TemporaryDirectory() as name:
        if "latency" in arguments.parts:
            print(latency(arguments.pages, arguments.delay, Path(name)), end="\n\n", flush=True)
        if "memory" in arguments.parts:
            print(memory(arguments.long, Path(name)))


if __name__ == "__main__":
    main()
