"""The report and the page on large stores: time to the first byte of each view, size and time of the file.

``python -m benchmarks.bench_web [--pages N…] [--backends NAME…] [--keep] [--out FILE]``. Stores are made up
(``made_store``) on each kind of database. The server is asked over HTTP on loopback, each view five times,
and once more by a server that has just been started and has answered nothing. The median of wall time is
printed: somebody waits for it. The processor time of the server stands beside it, without that of the
database. ``--keep`` leaves the databases for the next run, which fills them no more.
"""

from __future__ import annotations

import argparse
import http.client
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import sqlalchemy as sa

from benchmarks.made_store import HOSTS, MadePages, fill
from benchmarks.provenance import header
from neardup.address import Address
from neardup.detection.detector import DetectorOptions
from neardup.store.store import Store
from neardup.web import html_report
from tests.support.databases import BACKENDS, SERVERS
from tests.support.stores import learned, upgraded, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.detection.rule import Rule

_TIMES = 5
_BYTES_COUNTED = 8_000
"""Of the overview that has figures, at least; one that says what is counted has far fewer."""

_NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mysql": "MariaDB"}
_RANKS = "INSERT INTO page_ranks SELECT id, 1.0 / (1 + id) FROM simhash_values"
_PAGES_COUNTED = 500
"""Of each host, for its template: 45,000 different shingles, so that the row of a host is long."""

_DEFAULT = (1_000, 10_000, 100_000, 1_000_000)


def rule() -> Rule:
    options = DetectorOptions()
    return options.make_rule(options.make_reader().features)


def views(pages: MadePages) -> dict[str, str]:
    """Paths by what they show: the largest cluster, a page, a pair."""
    copies = [place for place in range(len(pages)) if pages.duplicate[place]]
    of = [int(pages.of[place]) for place in copies]
    [(largest, _)] = Counter(of).most_common(1)
    member = next(place for place, head in zip(copies, of, strict=True) if head == largest)
    canonical, duplicate = (Address(pages.url(place)).key.hex() for place in (largest, member))
    host = pages.url(largest).split("/")[2]
    return {
        "overview, when counted": "/",
        "clusters, largest first": "/clusters",
        "clusters, newest first": "/clusters?order=newest",
        "clusters, highest PageRank first": "/clusters?order=pagerank",
        "clusters of a host": f"/clusters?host={host}",
        "clusters of a crawl": "/clusters?crawl=20",
        "clusters with a new canonical page": "/clusters?kind=new",
        "clusters of 3 to 5": "/clusters?least=3&most=5",
        "cluster, the largest": f"/cluster/{canonical}",
        "page": f"/page/{duplicate}",
        "pair": f"/pair/{duplicate}/{canonical}",
        "host": f"/host?name={host}",
        "crawls": "/crawls",
        "search, found": "/search?q=page-7",
        "search, not found": "/search?q=nothing-has-this",
    }


def serve(url: str) -> tuple[subprocess.Popen[str], int, str]:
    server = subprocess.Popen(
        [sys.executable, "-m", "neardup", "web", "--database", url, "--port", "0", "--no-browser"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    server.stdout.readline()
    address = server.stdout.readline().strip()
    return server, int(address.split(":")[2].split("/")[0]), address.partition("token=")[2]


def asked(port: int, token: str, path: str) -> tuple[float, int]:
    """Seconds to the first byte, and bytes of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    connection.connect()
    started = time.perf_counter()
    connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    first = time.perf_counter() - started
    size = len(answer.read())
    assert answer.status == 200, (path, answer.status)
    connection.close()
    return first, size


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def stored(backend: str, pages: MadePages, *, keep: bool) -> Iterator[str]:
    """URL of a database that has the pages; it is gone afterwards, unless it is kept."""
    name = f"neardup_web_{len(pages)}"
    if backend == "sqlite":
        path = Path(tempfile.gettempdir()) / f"{name}.db"
        url, is_there = f"sqlite:///{path}", path.exists()
        yield from _filled(url, pages, is_there=is_there)
        if not keep:
            path.unlink()
        return
    server = sa.create_engine(SERVERS[backend], isolation_level="AUTOCOMMIT")
    is_there = name in sa.inspect(server).get_schema_names() if backend == "mysql" else _has(server, name)
    with server.connect() as connection:
        if not is_there:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
    yield from _filled(
        server.url.set(database=name).render_as_string(hide_password=False), pages, is_there=is_there
    )
    if not keep:
        with server.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name}"))
    server.dispose()


def _has(server: sa.Engine, name: str) -> bool:
    with server.connect() as connection:
        found = connection.execute(sa.text("SELECT datname FROM pg_database"))
        return name in found.scalars().all()


def _filled(url: str, pages: MadePages, *, is_there: bool) -> Iterator[str]:
    if not is_there:
        fill(sa.make_url(upgraded(url)), pages, len(pages))
        engine = sa.create_engine(url)
        with engine.begin() as connection:
            connection.exec_driver_sql(_RANKS)
        with Store.open(url, scheme=None) as store:
            write(store, crawl=1, frequencies=learned(dict.fromkeys(HOSTS, _PAGES_COUNTED)))
        engine.dispose()
    yield url


def written(url: str) -> Iterator[tuple[str, str, str]]:
    """The same of the report as a file."""
    with Store.open(url, scheme=None) as store, tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        html_report.write(store, rule(), Path(folder) / "r.html")
        seconds = time.perf_counter() - wall, time.process_time() - cpu
        size = (Path(folder) / "r.html").stat().st_size
    yield "HTML file", "kB", f"{size / 1000:.0f}"
    yield "HTML file written", "s (CPU)", f"{seconds[0]:.2f} ({seconds[1]:.2f})"


def first_answers(url: str, pages: MadePages) -> Iterator[tuple[str, str, str]]:
    """The first answer of a server that has just been started, for each view."""
    for name, path in views(pages).items():
        server, port, token = serve(url)
        try:
            before = processor_seconds(server.pid)
            first, _ = asked(port, token, path)
            cpu = processor_seconds(server.pid) - before
        finally:
            server.terminate()
            server.wait()
        yield f"{name.removesuffix(', when counted')}, first of all", "ms (CPU)", _pair(first, cpu)


def _pair(wall: float, cpu: float) -> str:
    return f"{1000 * wall:.0f} ({1000 * cpu:.0f})"


def looked_at(url: str, pages: MadePages) -> Iterator[tuple[str, str, str]]:
    """What was measured of the views of a store, its unit and its value."""
    server, port, token = serve(url)
    try:
        started = time.perf_counter()
        while_counting = [asked(port, token, "/")]
        while while_counting[-1][1] < _BYTES_COUNTED:
            time.sleep(0.5)
            while_counting.append(asked(port, token, "/"))
        found = [1000 * first for first, size in while_counting[1:] if size < _BYTES_COUNTED] or [0.0]
        yield (
            "overview, while counting",
            "ms (most, n)",
            f"{median(found):.0f} ({max(found):.0f}, {len(found)})",
        )
        yield "all counted", "s", f"{time.perf_counter() - started:.0f}"
        for name, path in views(pages).items():
            before = processor_seconds(server.pid)
            found = [1000 * asked(port, token, path)[0] for _ in range(_TIMES)]
            cpu = (processor_seconds(server.pid) - before) / _TIMES
            yield name, "ms (least, CPU)", f"{median(found):.0f} ({min(found):.0f}, {1000 * cpu:.0f})"
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, nargs="+", default=_DEFAULT)
    parser.add_argument("--backends", choices=BACKENDS, nargs="+", default=BACKENDS)
    parser.add_argument("--keep", action="store_true", help="leave the databases for the next run")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    tables: list[str] = []
    for backend in arguments.backends:
        results: dict[tuple[str, str], list[str]] = {}
        for count in arguments.pages:
            pages = MadePages(count)
            with stored(backend, pages, keep=arguments.keep) as url:
                in_file = written(url) if backend == "sqlite" else ()
                found = chain(first_answers(url, pages), looked_at(url, pages), in_file)
                for name, unit, value in found:
                    print(f"{backend}, {count:,} pages: {name}, {unit}: {value}", flush=True)
                    results.setdefault((name, unit), []).append(value)
        tables += [
            f"## {_NAMES[backend]}",
            "",
            f"| | {' | '.join(f'{count:,}' for count in arguments.pages)} |",
            f"|---|{'---|' * len(arguments.pages)}",
            *(f"| {name}, {unit} | {' | '.join(values)} |" for (name, unit), values in results.items()),
            "",
        ]
    sizes = ", ".join(f"{count:,}" for count in arguments.pages)
    lines = [
        "# The report and the page",
        "",
        *header("python -m benchmarks.bench_web", n=f"{sizes} pages", recall="–"),
        "",
        "Stores are made up. Views are asked over HTTP on loopback, five times each. A cell has the median",
        "of the time to the first byte, the least, and the processor time of the server for a request.",
        "*First of all* is the first answer of a server that has just been started, one try a view.",
        "Other programs shared the machine. The processor time of the database is not counted.",
        "",
        *tables,
    ]
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
