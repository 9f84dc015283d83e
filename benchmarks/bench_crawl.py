"""What the add-on costs a crawl: the same site with and without it, in turn, in one run.

Run as ``python -m benchmarks.bench_crawl FOLDER START… [--rounds N]``. FOLDER is served on loopback by a
process of its own and crawled along its links from the START paths, in three ways:

- without the add-on;
- with the add-on, but following every link (``NEARDUP_ACTION = "record"``): the pages are the same, so the
  difference is the price of the add-on;
- with the add-on as it is meant to be used (``defer``).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

MODES = {
    "without": "ADDONS={}",
    "record": "NEARDUP_ACTION=record",
    "defer": "NEARDUP_ACTION=defer",
}
STEPS = ("text", "features", "simhash", "sketch", "search", "store")


@contextmanager
def served(folder: Path, starts: list[str]) -> Iterator[str]:
    """Serve a folder on loopback, in a process of its own; gives the start URLs, separated by commas."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    server = subprocess.Popen(
        [sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.5)
        yield ",".join(f"http://127.0.0.1:{port}/{start}" for start in starts)
    finally:
        server.terminate()
        server.wait()


def crawl(url: str, mode: str, folder: Path) -> dict[str, Any]:
    """Stats of one crawl in a process of its own, with an empty database."""
    stats_file = folder / "stats.json"
    code = (
        "import sys, json, time; from scrapy import signals; from scrapy.crawler import CrawlerProcess\n"
        "from scrapy.utils.project import get_project_settings\n"
        "settings = get_project_settings()\n"
        "for pair in sys.argv[3:]:\n"
        "    name, _, value = pair.partition('=')\n"
        "    settings.set(name, {} if value == '{}' else value, priority='cmdline')\n"
        "process = CrawlerProcess(settings); crawler = process.create_crawler('site')\n"
        "cpu = []; note = lambda: cpu.append(time.process_time())\n"
        "crawler.signals.connect(note, signals.engine_started); crawler.signals.connect(note,"
        " signals.engine_stopped)\n"
        "process.crawl(crawler, url=sys.argv[1]); process.start()\n"
        "crawler.stats.set_value('cpu_seconds', cpu[1] - cpu[0])\n"
        "json.dump(crawler.stats.get_stats(), open(sys.argv[2], 'w'), default=str)\n"
    )
    database = folder / "neardup.db"
    database.unlink(missing_ok=True)
    command = [sys.executable, "-c", code, url, str(stats_file), "LOG_LEVEL=ERROR", MODES[mode]]
    environment = {**os.environ, "NEARDUP_DATABASE_URL": f"sqlite:///{database}"}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return dict(json.loads(stats_file.read_text()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("starts", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    results: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
    with served(arguments.folder, arguments.starts) as url, tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.rounds):
            for mode, runs in results.items():
                runs.append(crawl(url, mode, Path(folder)))
    report(results)


def report(results: dict[str, list[dict[str, Any]]]) -> None:
    def seconds(run: dict[str, Any]) -> float:
        return float(run["elapsed_time_seconds"])

    def pages(run: dict[str, Any]) -> int:
        return int(run["response_received_count"])

    assert pages(results["record"][0]) == pages(results["without"][0]) > 0
    for mode, runs in results.items():
        assert all(run["finish_reason"] == "finished" for run in runs)
        print(
            f"{mode}: {pages(runs[0])} responses, median {statistics.median(map(seconds, runs)):.2f} s,"
            f" {statistics.median(pages(run) / seconds(run) for run in runs):.1f} pages/s,"
            f" {statistics.median(run['cpu_seconds'] for run in runs):.2f} s of CPU"
            f" ({len(runs)} rounds: {', '.join(f'{seconds(run):.2f}' for run in runs)})"
        )
    for what in ("elapsed_time_seconds", "cpu_seconds"):
        ratios = [
            with_it[what] / without[what]
            for with_it, without in zip(results["record"], results["without"], strict=True)
        ]
        print(f"{what} with the add-on over without: median {statistics.median(ratios):.3f}")
    run = results["record"][-1]
    counted = int(run["neardup/pages"])
    assert int(run["neardup/rows_written"]) >= counted
    for step in STEPS:
        print(f"  {step}: {1000 * float(run[f'neardup/seconds/{step}']) / counted:.3f} ms a page")
    duplicates = {mode: runs[0].get("neardup/duplicates", 0) for mode, runs in results.items()}
    print(f"duplicates {duplicates}, links deferred {results['defer'][0].get('neardup/links_deferred', 0)}")


if __name__ == "__main__":
    main()
