"""Faults between a crawl and its database: what happened, how long until rows were stored again, what is lost
(nothing).

Run as ``python -m benchmarks.bench_faults [--database sqlite|postgresql|mysql] [--fault TEXT] [--interrupts
30]``, with all limits at their defaults. The faults come in the middle of a crawl of made-up pages, by
Scrapy's real engine, at some hundred pages a second at most. The connection to the server goes through a
proxy. The proxy cuts, delays or refuses the connection, or leaves it half-open: packets are acknowledged and
nothing is said. Of SQLite, the disk is filled (a small tmpfs: root only) or another program holds the write
lock.

Servers started for the benchmark are ended and started again, or their disk is filled (root only), in the
middle of ``scrapy crawl site``. Two such crawls at once write the same pages to a PostgreSQL database whose
transactions are serializable. At random moments ``scrapy crawl site`` gets SIGINT, and once more 0.1 to 1 s
later; then it is crawled again to the end.

The benchmark prints two tables. It fails if a page or a relation that was judged is not stored, or stored
twice. It also fails if a crawl ends for another reason than it should, or in another state of the database.
"""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks import bench_kill
from neardup.scrapy.extension import DATABASE_UNAVAILABLE
from tests.support import places
from tests.support.databases import BACKENDS, new_database
from tests.support.faults import (
    Fault,
    ForeignLock,
    Outcome,
    faulty_crawl,
    faulty_process,
    make_serializable,
    processes_at_once,
    small_disk,
)
from tests.support.proxy import Proxy, through_proxy
from tests.support.servers import full_disk, own_server
from tests.support.stores import upgraded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Wanted = Callable[[str], bool]
    """Whether a fault is to be tried."""

PAGES = 500
LONG = 4000
"""Some 40 seconds."""
MANY = 20_000
"""More than a crawl can do before it gives up."""


class Case(NamedTuple):
    """A fault by name; ``make`` gives it for the proxy before a server, or for the folder of a
    SQLite file.
    """

    name: str
    make: Callable[[Proxy], Fault]
    pages: int = PAGES


def _slow(proxy: Proxy) -> Fault:
    return Fault(lambda: setattr(proxy, "delay", 0.2), lambda: setattr(proxy, "delay", 0.0), seconds=20.0)


SERVER_CASES = (
    Case("connections cut", lambda proxy: Fault(proxy.cut)),
    Case("200 ms a piece for 20 s", _slow, LONG),
    Case("restart: refused for 5 s", lambda proxy: Fault(proxy.go_away, proxy.come_back, seconds=5.0)),
    Case("half-open for 20 s", lambda proxy: Fault(proxy.go_silent, proxy.come_back, seconds=20.0)),
    Case(
        "half-open until given up", lambda proxy: Fault(proxy.go_silent, proxy.come_back, seconds=None), MANY
    ),
    Case("refused until given up", lambda proxy: Fault(proxy.go_away, proxy.come_back, seconds=None), MANY),
)


ENDS = {
    "postgresql": {
        "server stopped (immediate), started after 3 s": signal.SIGQUIT,
        "server killed (-9), started after 3 s": signal.SIGKILL,
    },
    "mysql": {"server killed (-9), started after 3 s": signal.SIGKILL},
}
FULL_DISKS = {
    "postgresql": {
        "server's disk full for 5 s": False,
        "server's disk full for 5 s, log at a file's end": True,
    },
    "mysql": {"server's disk full for 5 s": False},
}
"""Whether no room for the log is met with at once."""


@contextmanager
def temporary_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@contextmanager
def sqlite_cases(folder: Path) -> Iterator[dict[str, tuple[Path, Fault, int]]]:
    """Faults by name, each with the path of its own file and the number of pages."""
    with ExitStack() as stack:
        found: dict[str, tuple[Path, Fault, int]] = {}
        for name, seconds, pages in (("for 5 s", 5.0, PAGES), ("until given up", None, MANY)):
            path = folder / f"locked {name}.db"
            lock = ForeignLock(path)
            found[f"foreign lock {name}"] = path, Fault(lock.take, lock.release, seconds=seconds), pages
            mounted = folder / f"full {name}"
            mounted.mkdir()
            disk = stack.enter_context(small_disk(mounted))
            fault = Fault(disk.fill, disk.empty, seconds=seconds)
            found[f"disk full {name}"] = mounted / "n.db", fault, pages
        yield found


def table_row(backend: str, name: str, outcome: Outcome, *, given_up: bool = False) -> str:
    """Check an outcome; its line of the table."""
    assert outcome.pages_missing == outcome.relations_missing == outcome.rejected == 0, outcome
    assert outcome.reason == (DATABASE_UNAVAILABLE if given_up else "finished"), outcome
    assert min(outcome.retries, 1) <= outcome.warnings <= outcome.retries, outcome
    cells = [
        backend, name, outcome.retries, outcome.warnings,
        *(
            "–" if seconds is None else f"{seconds:.1f} s"
            for seconds in (outcome.failed_after, outcome.recovery)
        ),
        outcome.judged, outcome.pages_missing + outcome.relations_missing,
        outcome.reason,
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def sqlite_rows(folder: Path, wanted: Wanted) -> Iterator[str]:
    with sqlite_cases(folder) as cases:
        for name, (path, fault, pages) in cases.items():
            if wanted(name):
                outcome = faulty_crawl(f"sqlite:///{path}", fault, pages=pages)
                yield table_row("sqlite", name, outcome, given_up=fault.seconds is None)


def proxy_rows(backend: str, folder: Path, wanted: Wanted) -> Iterator[str]:
    for case in SERVER_CASES:
        if wanted(case.name):
            with new_database(backend, folder) as url, through_proxy(upgraded(url)) as (proxy, through):
                fault = case.make(proxy)
                outcome = faulty_crawl(url, fault, pages=case.pages, through=through)
            yield table_row(backend, case.name, outcome, given_up=fault.seconds is None)


def server_rows(backend: str, wanted: Wanted) -> Iterator[str]:
    """Faults of servers of its own."""
    for name, how in ENDS[backend].items():
        if wanted(name):
            with own_server(backend) as server, temporary_folder() as folder:
                fault = Fault(partial(server.stop, how), server.start, seconds=3.0)
                outcome = faulty_process(upgraded(server.url), fault, folder, pages=PAGES)
            yield table_row(backend, name, outcome)
    for name, log_too in FULL_DISKS[backend].items():
        if wanted(name):
            with (
                full_disk(backend, 5.0, log_too=log_too) as (server, fault),
                temporary_folder() as folder,
            ):
                starts = server.starts
                outcome = faulty_process(upgraded(server.url), fault, folder, pages=PAGES)
                seen = "the server stayed" if server.starts == starts else "the server ended"
            yield table_row(backend, f"{name}: {seen}", outcome)


def serializable_rows(wanted: Wanted) -> Iterator[str]:
    name = "serializable, two crawls at once"
    if wanted(name):
        with temporary_folder() as folder, new_database("postgresql", folder) as url:
            make_serializable(upgraded(url))
            outcomes = processes_at_once(url, folder, pages=LONG)
        for outcome in outcomes:
            yield table_row("postgresql", name, outcome)


def rows(backend: str, wanted: Wanted) -> Iterator[str]:
    with temporary_folder() as folder:
        if backend == "sqlite":
            yield from sqlite_rows(folder, wanted)
        else:
            yield from proxy_rows(backend, folder, wanted)
            yield from server_rows(backend, wanted)
        if backend == "postgresql":
            yield from serializable_rows(wanted)


def interrupts(backend: str, number: int) -> str:
    """Press Ctrl-C twice so many times; the line of the table."""
    started = time.monotonic()
    done = bench_kill.run(backend, number, places.PAGES, seed=1, delay=0.15, how=bench_kill.interrupted)
    for zero in bench_kill.ZEROS:
        assert done.sum(zero) == 0, zero
    return bench_kill.report(backend, done, time.monotonic() - started)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", choices=BACKENDS, nargs="+", default=list(BACKENDS))
    parser.add_argument("--fault", default="", metavar="TEXT", help="only those with this in their names")
    parser.add_argument("--interrupts", type=int, default=30, metavar="N", help="of each database")
    arguments = parser.parse_args()
    head = [
        "database", "fault", "retries", "warnings", "given up after", "stored again after its end",
        "pages judged", "rows lost",
        "finish reason",
    ]  # fmt: skip
    print(f"| {' | '.join(head)} |")
    print("|" + "---|" * len(head))
    for backend in arguments.database:
        for line in rows(backend, lambda name: arguments.fault in name):
            print(line, flush=True)
    if arguments.interrupts:
        print(f"\n{bench_kill.head('Ctrl-C twice')}")
        for backend in arguments.database:
            print(interrupts(backend, arguments.interrupts), flush=True)


if __name__ == "__main__":
    main()
