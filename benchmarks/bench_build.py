"""What ``neardup collection build`` costs beside reading the archive and reading its pages.

``python -m benchmarks.bench_build FOLDER…`` writes the HTML pages below the folders into a WARC file, a gzip
member a record, with a request before each response. Then it measures, in one process and in turn:

- reading the archive alone: fastwarc, every record and its body, nothing done with it;
- reading the pages alone as a crawl does: Scrapy's response and selector, and the reader;
- reading the pages alone as the command does: with a parser in place of Scrapy's selector;
- the whole command: the archive, the pages, links, and the dataset in Parquet.

The figure to reach is the time of the archive and of the pages in a crawl, by the time of the command: 0.9 or
more. The same by the pages as the command reads them is told, too.
"""

from __future__ import annotations

import gc
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fastwarc.warc import ArchiveIterator

from benchmarks.provenance import header
from neardup.collection.build import build
from neardup.collection.inputs.tables import Names
from neardup.detection.detector import DetectorOptions
from neardup.errors import PageTooLarge
from neardup.scrapy.stored_responses import html_response, stored_page
from neardup.text.folders import html_files, read_page
from tests.support.archives import Exchange, warc

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.collection.build import OpenPage

REPEATS = 5


def main() -> None:
    folders = [Path(name).resolve() for name in sys.argv[1:]]
    exchanges = [
        Exchange(f"http://{folder.name}.example/{path.relative_to(folder).as_posix()}", read_page(path))
        for folder in folders
        for path in html_files([folder])
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = folder / "pages.warc.gz"
        archive.write_bytes(warc(exchanges, requests=True).data)
        ways: dict[str, Callable[[], int]] = {
            "archive alone": lambda: read_archive(archive),
            "pages as in a crawl": lambda: read_pages(exchanges, html_response),
            "pages as in a build": lambda: read_pages(exchanges, stored_page),
            "build": lambda: build_collection(archive, folder),
        }
        measured = measure(ways)
    size = sum(len(exchange.body) for exchange in exchanges)
    given = " ".join(folder.name for folder in folders)
    report(measured, pages=len(exchanges), mean_bytes=size // len(exchanges), given=given)


def read_archive(path: Path) -> int:
    """Bytes of all bodies."""
    records = ArchiveIterator(str(path), parse_http=True, auto_decode="all")
    return sum(len(record.reader.read()) for record in records)


def read_pages(exchanges: list[Exchange], open_page: OpenPage) -> int:
    """Pages that have a fingerprint."""
    reader = DetectorOptions().make_reader()
    found = 0
    for exchange in exchanges:
        response = open_page(exchange.url, 200, b"Content-Type: text/html", exchange.body)
        assert response is not None
        try:
            found += reader.read_response(response).fingerprint is not None
        except PageTooLarge:
            continue
    return found


def build_collection(archive: Path, folder: Path) -> int:
    """Pages of the collection."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        built = build(Path(out), [str(archive)], Names(), DetectorOptions(), stored_page, 1, lambda *_: None)
    return built.pages


def measure(ways: dict[str, Callable[[], int]]) -> dict[str, list[float]]:
    """Seconds of processor time of each way in each round; the first round, which warms caches, is left
    out.
    """
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(REPEATS + 1):
        for way, run in ways.items():
            gc.collect()
            began = time.process_time()
            run()
            seconds[way].append(time.process_time() - began)
    return {way: taken[1:] for way, taken in seconds.items()}


def report(measured: dict[str, list[float]], *, pages: int, mean_bytes: int, given: str) -> None:
    medians = {way: statistics.median(taken) for way, taken in measured.items()}
    archive, in_crawl, in_build, whole = measured.values()
    command = f"python -m benchmarks.bench_build {given}"
    n = f"{pages:,} pages, {mean_bytes:,} bytes in the mean, median of {REPEATS} rounds"
    print("# Building a collection\n")
    print("\n".join(header(command, n=n, recall="–")))
    print(
        "\nProcessor time of one process, without its start. The share is that of reading the archive alone"
    )
    print("and reading the pages alone in the time of the whole command.\n")
    print("| what | seconds | ms a page | pages a second |")
    print("|---|---|---|---|")
    for way, taken in medians.items():
        print(f"| {way} | {taken:.2f} | {1000 * taken / pages:.3f} | {pages / taken:,.0f} |")
    print(f"\nShare by the pages as in a crawl: {share(archive, in_crawl, whole)}.")
    print(f"Share by the pages as in a build: {share(archive, in_build, whole)}.")


def share(archive: list[float], pages: list[float], whole: list[float]) -> str:
    """The median and the spread of what reading takes of the command."""
    shares = [(one + other) / both for one, other, both in zip(archive, pages, whole, strict=True)]
    return f"{statistics.median(shares):.3f} ({min(shares):.3f} to {max(shares):.3f})"


if __name__ == "__main__":
    main()
