"""What the links of a crawl take: bytes of the database a link, and processor time a page.

Run as ``python -m benchmarks.bench_links FOLDER… [--output FILE]``. Each FOLDER of HTML files is crawled
twice from all of its pages, without and with ``NEARDUP_LINKS``. A crawl reads files, has a database of its
own, and runs in this process. The bytes are those by which the SQLite file grows, with its indexes, after
VACUUM. The time is that of reading, numbering and encoding the links of a page that was read just before,
measured by the same pages again. Each round is a process of its own, so that no link is known before.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy import Request
from scrapy.http import HtmlResponse

from benchmarks.provenance import give, header
from crawler.spiders.site import SiteSpider
from neardup.address import Address
from neardup.detection.detector import DetectorOptions
from neardup.detection.known_pages import KnownPages
from neardup.detection.verdict import Kind, Verdict
from neardup.scrapy.page_links import PageLinkRecord
from tests.support.crawling import crawl

if TYPE_CHECKING:
    from neardup.store.page_links import StoredLinks

ROUNDS = 5


class Sink:
    """In place of a recorder and of a crawler's stats."""

    def __init__(self) -> None:
        self.stats = self
        self.rows: list[StoredLinks] = []

    def inc_value(self, name: str, number: int = 1) -> None:
        pass

    def put_links(self, page_id: int, links: StoredLinks) -> None:
        self.rows.append(links)


def bytes_of(url: str, *, links: bool, folder: Path) -> tuple[int, dict[str, Any]]:
    path = folder / f"{links}.db"
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{path}",
        "NEARDUP_LINKS": links,
        "NEARDUP_PREDICT": "off",
        "NEARDUP_ACTION": "record",
        "NEARDUP_SNAPSHOT": False,
        "LOG_LEVEL": "ERROR",
    }
    stats = crawl(SiteSpider, settings, url=url).stats
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("VACUUM")
    connection.close()
    return path.stat().st_size, stats


def seconds_of(folder: Path) -> tuple[int, float]:
    """Pages, and processor seconds of one round.

    As in a crawl, a page has been read when its links are.
    """
    reader = DetectorOptions().make_reader()
    sink: Any = Sink()
    record = PageLinkRecord(sink, KnownPages(), sink)
    seconds = 0.0
    for number, path in enumerate(sorted(folder.rglob("*.html*")), 1):
        url = path.resolve().as_uri()
        response = HtmlResponse(url, body=path.read_bytes(), request=Request(url))
        if response.selector.root is None:
            continue
        reader.read_tree(url, response.selector.root)
        address = Address.of(url)
        verdict = Verdict(address=address, kind=Kind.NEW, follow=True, reason="", page_id=number)
        started = time.process_time()
        record.store(response, verdict, ())
        seconds += time.process_time() - started
    assert sum(len(row.links) for row in sink.rows) > len(sink.rows)
    return len(sink.rows), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--output", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    rows = []
    for folder in arguments.folders:
        with tempfile.TemporaryDirectory() as made:
            without, _ = bytes_of(str(folder), links=False, folder=Path(made))
            size, stats = bytes_of(str(folder), links=True, folder=Path(made))
        with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
            rounds = list(processes.map(seconds_of, [folder] * ROUNDS))
        pages, times = rounds[0][0], [seconds for _, seconds in rounds]
        links = stats["neardup/links/stored"]
        rows.append(
            f"| {folder.name} | {stats['neardup/pages']:,} | {links:,} | {(size - without) / links:.2f} |"
            f" {pages:,} | {1e3 * statistics.median(times) / pages:.3f} |"
            f" {1e3 * min(times) / pages:.3f} to {1e3 * max(times) / pages:.3f} |"
        )
    names = " ".join(folder.name for folder in arguments.folders)
    text = [
        "# Links of a crawl",
        "",
        *header(f"python -m benchmarks.bench_links {names}", n="see the table", recall="-"),
        "",
        "Bytes are those by which the SQLite file grows, with indexes, after VACUUM. The time is processor",
        "time of reading, numbering and encoding the links of a page that was read just before: median and",
        f"range of {ROUNDS} rounds.",
        "",
        "| pages of | pages crawled | links | bytes a link | pages timed | ms a page | range |",
        "|---|---|---|---|---|---|---|",
        *rows,
        "",
    ]
    give("\n".join(text), arguments.output)


if __name__ == "__main__":
    main()
