"""Two versions of neardup side by side: what the native core brought, or what a change costs.

``python -m benchmarks.bench_native --old PYTHON --new PYTHON --pages FOLDER… [--measures NAME…]``. Each
PYTHON is that of an environment with a neardup installed (``pip install .``, nothing else). The measures are
taken in turn, old and new, in one run, and the medians of ``--rounds`` are compared:

- ``read``: ``read_tree`` of the pages of each FOLDER, milliseconds a page;
- ``index``: searches and insertions among ``--n`` skewed fingerprints; ``growth``: the longest insertion;
- ``batch``: ``match``, ``pairs`` and ``evaluate``;
- ``follow``: a crawl of the first FOLDER over loopback along its links, with the add-on (``record``) and
  without;
- ``titles``: a crawl of its pages whose callback takes a title by XPath and follows nothing;
- ``start``: a crawl of one page; the first time with an empty cache of compiled code, and afterwards; its
  memory;
- ``size``: what the environment has beyond that of ``--scrapy PYTHON``, which has Scrapy only.

A search states its recall, and a measure asserts that both versions found the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.bench_crawl import served
from benchmarks.provenance import header

NAMES = ("read", "index", "growth", "batch", "follow", "titles", "start", "size")
PROBES = Path(__file__).with_name("native_probes.py")
SPIDER = """
from datetime import datetime, timezone

import scrapy
from scrapy.linkextractors import LinkExtractor

class Measured(scrapy.Spider):
    name = "measured"
    custom_settings = {{
        "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "ROBOTSTXT_OBEY": False,
        "CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 16, "DOWNLOAD_DELAY": 0,
        "NEARDUP_ACTION": "record", "NEARDUP_DATABASE_URL": "sqlite:///{folder}/neardup.db",
        "ADDONS": {addons}, "HTTPCACHE_ENABLED": False,
    }}
    start_urls = {urls!r}
    links = LinkExtractor()

    def parse(self, response):
        if not hasattr(response, "xpath"):
            return
        yield {{"title": response.xpath("//title/text()").get()}}
        if {follow}:
            for link in self.links.extract_links(response):
                if link.url.startswith("{host}"):  # others would be waited for in vain
                    yield response.follow(link.url)

    def closed(self, reason):
        stats = self.crawler.stats.get_stats()
        elapsed = datetime.now(timezone.utc) - stats["start_time"]
        print(stats.get("response_received_count", 0), stats.get("neardup/pages", 0), elapsed.total_seconds())
"""
ON, OFF = '{"neardup.Addon": 500}', "{}"


def crawl(
    python: Path, urls: list[str], *, addons: str, follow: bool, fresh: bool = False
) -> dict[str, float]:
    """One crawl in a process of its own with an empty database: seconds, processor time, memory, pages."""
    with tempfile.TemporaryDirectory() as folder:
        spider = Path(folder) / "measured.py"
        host = "/".join(urls[0].split("/")[:3])
        spider.write_text(SPIDER.format(folder=folder, addons=addons, urls=urls, follow=follow, host=host))
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if fresh:
            environment["NUMBA_CACHE_DIR"] = f"{folder}/cache"
        started = time.perf_counter()
        process = subprocess.Popen(
            [python, "-m", "scrapy", "runspider", "--loglevel=ERROR", str(spider)],
            cwd=folder, env=environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        told = process.stdout.read().split()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
        assert status == 0, f"{python} could not crawl"
        received, judged, crawling = int(told[-3]), int(told[-2]), float(told[-1])
        assert received >= len(urls), f"{received} answers, not {len(urls)}"
        assert (judged > 0) == (addons == ON), f"{judged} pages judged"
        return {
            "seconds": time.perf_counter() - started,
            "cpu": used.ru_utime + used.ru_stime,
            "memory": used.ru_maxrss / 1024,
            "crawling": crawling,
            "pages": received,
        }


def probe(python: Path, measure: str, argument: str) -> dict[str, Any]:
    """What one process says of a measure."""
    done = subprocess.run(
        [python, str(PROBES), measure, argument], capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


class Comparison:
    """The table of results: a row for each quantity."""

    def __init__(self, old: Path, new: Path, rounds: int) -> None:
        self._versions = {"old": old, "new": new}
        self._rounds = rounds
        self.rows: list[str] = ["| what | old | new | new / old |", "|---|---|---|---|"]

    def probes(self, measure: str, argument: str, label: str = "") -> None:
        answers: dict[str, list[dict[str, Any]]] = {"old": [], "new": []}
        for _ in range(self._rounds):
            for name, python in self._versions.items():
                answers[name].append(probe(python, measure, argument))
        first, *others = [
            {key: value for key, value in each.items() if key.startswith("_")}
            for each in answers["old"] + answers["new"]
        ]
        assert all(other == first for other in others), f"{measure}: not the same work: {first} {others}"
        for key in answers["new"][0]:
            if not key.startswith("_"):
                old, new = (statistics.median(each[key] for each in answers[name]) for name in ("old", "new"))
                self.row(f"{key}{label}", old, new)

    def row(self, what: str, old: float, new: float) -> None:
        self.rows.append(f"| {what} | {old:.3g} | {new:.3g} | {new / old:.2f} |")
        print(self.rows[-1], flush=True)

    def crawls(self, urls: list[str], label: str, *, follow: bool, start: bool = False) -> None:
        """Crawls with either version and without any, in turn; each version by what it adds to none."""
        runs = [("off", "new", OFF, False), ("old", "old", ON, False), ("new", "new", ON, False)]
        if start:
            runs += [("old first", "old", ON, True), ("new first", "new", ON, True)]
        taken: dict[str, list[dict[str, float]]] = {name: [] for name, *_ in runs}
        for _ in range(self._rounds):
            for name, version, addons, fresh in runs:
                made = crawl(self._versions[version], urls, addons=addons, follow=follow, fresh=fresh)
                taken[name].append(made)

        def median(name: str, key: str) -> float:
            return statistics.median(each[key] for each in taken[name])

        [pages] = {each["pages"] for runs_of in taken.values() for each in runs_of}
        if start:
            off = median("off", "seconds")
            for name in ("", " first"):
                more = [median(f"{version}{name}", "seconds") - off for version in ("old", "new")]
                self.row(f"start{name}: seconds more than without", *more)
            memory = [median(version, "memory") - median("off", "memory") for version in ("old", "new")]
            self.row("memory, MB more", *memory)
            return
        for key in ("crawling", "cpu"):
            ratios = [median(version, key) / median("off", key) for version in ("old", "new")]
            self.row(f"{label}, {pages:g} pages: {key}, with / without", *ratios)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--new", type=Path, required=True)
    parser.add_argument("--scrapy", type=Path, help="Python of an environment with Scrapy only")
    parser.add_argument("--pages", type=Path, nargs="+", required=True)
    parser.add_argument("--start", nargs="*", default=["index.html"], help="paths below the first folder")
    parser.add_argument("--n", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measures", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    table = Comparison(arguments.old, arguments.new, arguments.rounds)
    for name in arguments.measures:
        measure(name, table, arguments)
    command = f"python -m benchmarks.bench_native --n {arguments.n} --rounds {arguments.rounds}"
    lines = ["# Before and after the native core", ""]
    lines += header(command, n=f"{arguments.n:,} fingerprints", recall="0.95 asked; reached in the table")
    lines += ["", *table.rows]
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")


def measure(name: str, table: Comparison, arguments: argparse.Namespace) -> None:
    folder: Path = arguments.pages[0]
    if name == "read":
        for each in arguments.pages:
            table.probes("read", str(each), f" ({each.name})")
    elif name in {"index", "growth"}:
        table.probes(name, str(arguments.n))
    elif name == "batch":
        table.probes("batch", str(folder))
    elif name == "size":
        alone = size_of(arguments.scrapy)
        table.row("installed, MB more", *(size_of(each) - alone for each in (arguments.old, arguments.new)))
    else:
        with ExitStack() as stack:
            starts = arguments.start
            if name != "follow":
                starts = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.html"))]
            urls = stack.enter_context(served(folder, starts[:1] if name == "start" else starts)).split(",")
            table.crawls(urls, name, follow=name == "follow", start=name == "start")


def size_of(python: Path) -> float:
    """Megabytes of the packages of an environment, compiled Python included."""
    folder = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    files = (path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files) / 1e6


if __name__ == "__main__":
    main()
