"""kill -9 of real crawls at random moments: nothing committed is lost, nothing is double, and the end is the
same.

Run as ``python -m benchmarks.bench_kill [--kills 200] [--database sqlite|postgresql|mysql] [--pages FOLDER]
[--seed N] [--closing]``. One turn has these steps:

- crawl some of the folders below FOLDER (``tests/pages`` unless given);
- kill the process (``scrapy crawl site``) at a moment drawn evenly from the time such a crawl takes;
- check the database;
- crawl again to the end and compare.

Then all of FOLDER is crawled in the same way, over the same database. Turns go on with a new database until
there have been so many kills. Meanwhile a reader of its own looks at the database every 20 ms: what the
reader has seen must stay. ``neardup db check`` follows every kill and every restart. With ``--closing`` the
moment is drawn from the time between Scrapy's "Closing spider" and the end of the process. Prints a table and
fails if any count of it is not zero.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.databases import BACKENDS, new_database
from tests.support.killing import (
    Ground,
    Kills,
    interrupt_twice,
    kill,
    kill_9,
    number_of,
    reference,
    stages,
    whole_seconds,
)
from tests.support.places import PAGES
from tests.support.stores import upgraded

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

ZEROS = {
    "committed_rows_lost": "committed rows lost",
    "double_rows": "double rows",
    "index_differs": "index not that of the tables",
    "result_differs": "results that differ",
    "broken_invariants": "broken invariants",
}


def prepared(backend: str, url: str) -> str:
    """A server's database has its tables made by hand; a SQLite file is left to the crawl, which may be
    killed while making it.
    """
    return url if backend == "sqlite" else upgraded(url)


def killed(rng: random.Random) -> Callable[[subprocess.Popen[bytes]], None]:
    return kill_9


def interrupted(rng: random.Random) -> Callable[[subprocess.Popen[bytes]], None]:
    return partial(interrupt_twice, between=rng.uniform(0.1, 1.0))


def run(
    backend: str,
    kills: int,
    pages: Path,
    seed: int,
    delay: float,
    how: Callable[[random.Random], Callable[[subprocess.Popen[bytes]], None]] = killed,
    *,
    closing: bool = False,
) -> Kills:
    """``how`` tells how the next crawl is ended; ``closing``: while it closes, not at any moment."""
    parts, done = stages(pages), Kills()
    with tempfile.TemporaryDirectory() as name, new_database(backend, Path(name)) as url:
        ground = Ground(prepared(backend, url), Path(name))
        results, seconds = reference(ground, parts)
        seconds_of_closing = ground.seconds_of_closing(parts[-1]) if closing else 0.0
    rng = random.Random(seed)
    for number in count(1):
        with tempfile.TemporaryDirectory() as name, new_database(backend, Path(name)) as url:
            ground = Ground(prepared(backend, url), Path(name))
            for part, uninterrupted in zip(parts, results, strict=True):
                # How busy the machine is changes meanwhile: the last crawl tells how long this one would
                # take.
                whole = seconds_of_closing if closing else whole_seconds(seconds, uninterrupted, delay)
                after = rng.uniform(0.0, whole)
                one = kill(ground, part, uninterrupted, after, delay, how(rng), closing=closing)
                if one is not None:
                    done.kills.append(one)
                    seconds = one.restart_seconds
                    print(f"{len(done.kills)} kills, the last {one.moment}", file=sys.stderr, flush=True)
                    if any(number_of(one, zero) for zero in ZEROS):
                        print(f"{backend}, seed {seed}, round {number}: {one}", file=sys.stderr, flush=True)
                if len(done.kills) == kills:
                    return done
    raise AssertionError


def head(what: str) -> str:
    """The first two lines of the table."""
    cells = [
        "database", what, "before the first batch", "between batches", "after the last", *ZEROS.values(),
        "restarted from tables, snapshot", "time",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |\n|{'---|' * len(cells)}"


def report(backend: str, done: Kills, seconds: float) -> str:
    moments, sources = done.count("moment"), done.count("source")
    cells = [
        backend,
        len(done.kills),
        *(moments[when] for when in ("before the first batch", "between batches", "after the last batch")),
        *(done.sum(zero) for zero in ZEROS),
        f"{sources['tables']}, {sources['snapshot']}",
        f"{seconds / 60:.1f} min",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--database", choices=BACKENDS, default="sqlite")
    parser.add_argument("--pages", type=Path, default=PAGES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--delay", type=float, default=0.15, help="between two pages: more delay, more batches"
    )
    parser.add_argument("--closing", action="store_true", help="kill while the crawl closes")
    arguments = parser.parse_args()
    started = time.monotonic()
    pages = arguments.pages.resolve()
    done = run(
        arguments.database,
        arguments.kills,
        pages,
        arguments.seed,
        arguments.delay,
        closing=arguments.closing,
    )
    print(head("kills while closing" if arguments.closing else "kills"))
    print(report(arguments.database, done, time.monotonic() - started))
    assert done.sum("polls") > 0
    for zero in ZEROS:
        assert done.sum(zero) == 0, zero


if __name__ == "__main__":
    main()
