"""Crawls that are paused and resumed (``JOBDIR``): the verdicts are those of a crawl that never stopped, and
no row is double.

Run as ``python -m benchmarks.bench_resume [--crawls 20] [--pauses 3] [--database sqlite|postgresql|mysql]
[--seed N]``. ``tests/pages`` is crawled along its links from a web server on loopback, one request at a time.
Ctrl-C pauses a crawl up to ``--pauses`` times, and each time the crawl is resumed. The moments are drawn
evenly from the time such a crawl takes once it has begun. In the end every page must have the verdict, the
fingerprint and the canonical page that it has after an uninterrupted crawl. Prints a table and fails if any
has not.
"""

from __future__ import annotations

import argparse
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bench_kill import prepared
from tests.support.crawling import serve
from tests.support.databases import BACKENDS, new_database
from tests.support.killing import Ground
from tests.support.places import PAGES

if TYPE_CHECKING:
    from tests.support.killing import Tables


@dataclass
class Paused:
    """One crawl in pieces: how often it was paused, and what is in its database in the end."""

    pauses: int
    pages_before: list[int]
    """Pages that were stored at each pause."""
    result: Tables


def in_pieces(ground: Ground, start: str, moments: list[float], delay: float) -> Paused:
    """Crawl with a pause after each so many seconds, then to the end."""
    jobdir = ground.folder / "job"
    before: list[int] = []
    for moment in moments:
        process = ground.start(start, delay=delay, jobdir=jobdir)
        # Before that Ctrl-C ends Python, not the crawl, and Scrapy may leave a queue behind that it cannot
        # read again.
        while process.poll() is None and "Spider opened" not in ground.log.read_text():
            time.sleep(0.05)
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        code = process.wait(timeout=120)
        if "'finish_reason': 'finished'" in ground.log.read_text():
            break  # Ctrl-C came when all was done, and may have ended Python on its way out
        assert code == 0, ground.log.read_text()
        before.append(len(ground.read().pages))
    else:
        process = ground.start(start, delay=delay, jobdir=jobdir)
        assert process.wait(timeout=120) == 0, ground.log.read_text()
    log = ground.log.read_text()
    assert "'finish_reason': 'finished'" in log, log
    assert "Traceback" not in log, log
    return Paused(len(before), before, ground.read())


def same(result: Tables, uninterrupted: Tables) -> bool:
    return (result.pages, result.relations) == (uninterrupted.pages, uninterrupted.relations)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--crawls", type=int, default=20)
    parser.add_argument("--pauses", type=int, default=3)
    parser.add_argument("--database", choices=BACKENDS, default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--delay", type=float, default=0.05, help="between two pages")
    arguments = parser.parse_args()
    rng, done = random.Random(arguments.seed), []
    with serve() as site:
        site.add_folder(PAGES)
        # From one page: the order of several would depend on how many are queued when the crawl is paused.
        site.add("/", "all manuals", *sorted(path for path in site.pages if path.endswith("/index.html")))
        start = site.url
        with tempfile.TemporaryDirectory() as name, new_database(arguments.database, Path(name)) as url:
            ground = Ground(prepared(arguments.database, url), Path(name))
            whole = in_pieces(ground, start, [], arguments.delay)
            found = re.search(r"'elapsed_time_seconds': ([0-9.]+)", ground.log.read_text())
            assert found is not None
            seconds = float(found[1])
        assert whole.result.relations
        for number in range(1, arguments.crawls + 1):
            with tempfile.TemporaryDirectory() as name, new_database(arguments.database, Path(name)) as url:
                moments = [rng.uniform(0.0, seconds) for _ in range(rng.randint(1, arguments.pauses))]
                ground = Ground(prepared(arguments.database, url), Path(name))
                done.append(in_pieces(ground, start, moments, arguments.delay))
            print(
                f"{number} crawls, the last paused at {done[-1].pages_before} pages",
                file=sys.stderr,
                flush=True,
            )
    pages = len(whole.result.pages)
    within = sum(0 < stored < pages for one in done for stored in one.pages_before)
    differing = sum(not same(one.result, whole.result) for one in done)
    doubles = sum(one.result.doubles for one in done)
    print(
        "| database | pages, duplicates | crawls | pauses | in the middle | double rows | results that"
        " differ |"
    )
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {arguments.database} | {pages}, {len(whole.result.relations)} | {len(done)} |"
        f" {sum(one.pauses for one in done)} | {within} |"
        f" {doubles} | {differing} |"
    )
    assert within > 0
    assert (doubles, differing) == (0, 0)


if __name__ == "__main__":
    main()
