"""Faults between a crawl and its database: what happened, how long until rows were stored again, what is lost (nothing).

Run as ``python -m tests.benchmarks.bench_faults [--database sqlite|postgresql|mysql]``, with all limits at their defaults. In the middle
of a crawl of made-up pages (Scrapy's real engine, some hundred pages a second at most), the connection to the server, which goes
through a proxy, is cut, delayed, answered no more (half-open: packets are acknowledged and nothing is said) or refused, as by
a restart; of SQLite, the disk is filled (a small tmpfs: root only) or another program holds the write lock. Prints a table, and fails
if a page or a relation that was judged is not stored, or a crawl ends for another reason than it should.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from neardup.scrapy.extension import DATABASE_UNAVAILABLE
from tests.databases import BACKENDS, new_database
from tests.faults import Fault, ForeignLock, faulty_crawl, small_disk
from tests.proxy import Proxy, through_proxy
from tests.test_store import upgraded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGES = 500
LONG = 4000
"""Some 40 seconds."""
MANY = 20_000
"""More than a crawl can do before it gives up."""


class Case(NamedTuple):
    """A fault by name; ``make`` gives it for the proxy before a server, or for the folder of a SQLite file."""

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


class Warnings(logging.Handler):
    """Counts what the writer warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.seen += 1


def row(backend: str, name: str, fault: Fault, pages: int, url: str, through: str | None) -> str:
    """Run one crawl; its line of the table."""
    warnings = Warnings()
    log = logging.getLogger("neardup.store.writer")
    log.addHandler(warnings)
    outcome = faulty_crawl(url, fault, pages=pages, through=through)
    log.removeHandler(warnings)
    given_up = fault.seconds is None
    assert outcome.pages_missing == outcome.relations_missing == outcome.rejected == 0, outcome
    assert outcome.reason == (DATABASE_UNAVAILABLE if given_up else "finished"), outcome
    assert warnings.seen == min(outcome.retries, 1), warnings.seen
    cells = [
        backend, name, outcome.retries, warnings.seen,
        f"{outcome.failed_after:.1f} s" if outcome.failed_after is not None else "–",
        f"{outcome.recovery:.1f} s", outcome.judged, outcome.pages_missing + outcome.relations_missing,
        outcome.reason,
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def rows(backend: str, folder: Path) -> Iterator[str]:
    if backend == "sqlite":
        with sqlite_cases(folder) as cases:
            for name, (path, fault, pages) in cases.items():
                yield row(backend, name, fault, pages, f"sqlite:///{path}", None)
        return
    for case in SERVER_CASES:
        with new_database(backend, folder) as url, through_proxy(upgraded(url)) as (proxy, through):
            yield row(backend, case.name, case.make(proxy), case.pages, url, through)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", choices=BACKENDS, nargs="+", default=list(BACKENDS))
    head = [
        "database", "fault", "retries", "warnings", "given up after", "stored again after its end", "pages judged", "rows lost",
        "finish reason",
    ]  # fmt: skip
    print(f"| {' | '.join(head)} |")
    print("|" + "---|" * len(head))
    for backend in parser.parse_args().database:
        with tempfile.TemporaryDirectory() as name:
            for line in rows(backend, Path(name)):
                print(line, flush=True)


if __name__ == "__main__":
    main()
