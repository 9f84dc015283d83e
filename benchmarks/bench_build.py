"""What ``neardup collection build`` costs beside reading the archive and reading its pages.

``python -m benchmarks.bench_build FOLDER…`` writes the HTML pages below the folders into a WARC file, a gzip
member a record, with a request before each response. Then it measures, in one process and in turn:

- reading the archive alone: fastwarc, every record and its body, nothing done with it;
- reading the pages alone: Scrapy's response of each body, and the reader of a crawl;
- the whole command: both of these, links, and the dataset in Parquet.

The figure to reach is the time of the first two by the time of the third: 0.9 or more.
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
from neardup.scrapy.stored_responses import html_response
from neardup.text.folders import html_files, read_page
from tests.support.archives import Exchange, warc

if TYPE_CHECKING:
    from collections.abc import Callable

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
            "pages alone": lambda: read_pages(exchanges),
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


def read_pages(exchanges: list[Exchange]) -> int:
    """Pages that have a fingerprint."""
    reader = DetectorOptions().make_reader()
    found = 0
    for exchange in exchanges:
        response = html_response(exchange.url, 200, b"Content-Type: text/html", exchange.body)
        assert response is not None
        try:
            found += reader.read_response(response).fingerprint is not None
        except PageTooLarge:
            continue
    return found


def build_collection(archive: Path, folder: Path) -> int:
    """Pages of the collection."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        built = build(
            Path(out), [str(archive)], Names(), DetectorOptions(), html_response, 1, lambda *_: None
        )
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
    shares = [
        (alone + read) / whole
        for alone, read, whole in zip(*(measured[way] for way in measured), strict=True)
    ]
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
    spread = f"{min(shares):.3f} to {max(shares):.3f}"
    print(f"\nShare: {statistics.median(shares):.3f} ({spread}).")


if __name__ == "__main__":
    main()
