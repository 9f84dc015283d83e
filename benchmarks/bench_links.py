"""What the links of a crawl take: bytes of the database a link, and processor time a page.

Run as ``python -m benchmarks.bench_links FOLDER… [--output FILE]``. Each FOLDER of HTML files is crawled
from all of its pages with ``NEARDUP_LINKS``. A crawl reads files, has a database of its own, and runs in this
process. SQLite files grow by pages of 4,096 bytes, and the links of a small crawl may fit into what is free.
So the rows of links are stored 100 times, as those of so many crawls. The bytes are those by which the file
grows, with its indexes, after VACUUM.

The time is that of reading, numbering and encoding the links of a page that was read just before, measured by
the same pages again. Each round is a process of its own, so that no link is known before. Other work on the
machine makes a round slower. So what a page takes in the quickest of the rounds is told as well.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
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

COPIES = 100
"""Times that the rows of links are stored. Their crawls have numbers of one byte, as most crawls have."""


class Sink:
    """In place of a recorder and of a crawler's stats."""

    def __init__(self) -> None:
        self.stats = self
        self.rows: list[StoredLinks] = []

    def inc_value(self, name: str, number: int = 1) -> None:
        pass

    def put_links(self, page_id: int, links: StoredLinks) -> None:
        self.rows.append(links)


def bytes_of(url: str, folder: Path) -> tuple[float, dict[str, Any]]:
    """Bytes of the links of all pages, and the statistics of the crawl."""
    path = folder / "links.db"
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{path}",
        "NEARDUP_LINKS": True,
        "NEARDUP_PREDICT": "off",
        "NEARDUP_ACTION": "record",
        "NEARDUP_SNAPSHOT": False,
        "LOG_LEVEL": "ERROR",
    }
    stats = crawl(SiteSpider, settings, url=url).stats
    sizes: list[int] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for copy in range(1, COPIES):
            connection.execute(
                "INSERT INTO page_links SELECT crawl_id + ?, page_id, numbers, links FROM page_links"
                " WHERE crawl_id = 1",
                (copy,),
            )
        for statement in ("VACUUM", "DELETE FROM page_links"):
            connection.execute(statement)
            connection.execute("VACUUM")
            sizes += connection.execute(
                "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
            ).fetchone()
    return (sizes[0] - sizes[1]) / COPIES, stats


def seconds_of(folder: Path) -> list[float]:
    """Processor seconds of each page in one round.

    As in a crawl, a page has been read when its links are, and its key is known.
    """
    reader = DetectorOptions().make_reader()
    sink: Any = Sink()
    record = PageLinkRecord(sink, KnownPages(), sink)
    seconds = []
    for number, path in enumerate(sorted(folder.rglob("*.html*")), 1):
        url = path.resolve().as_uri()
        response = HtmlResponse(url, body=path.read_bytes(), request=Request(url))
        if response.selector.root is None:
            continue
        reader.read_tree(url, response.selector.root)
        address = Address.of(url)
        verdict = Verdict(address=address, kind=Kind.NEW, follow=True, reason="", page_id=number)
        assert address.key
        started = time.process_time()
        record.store(response, verdict, ())
        seconds.append(time.process_time() - started)
    assert sum(len(row.links) for row in sink.rows) > len(sink.rows)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--output", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    rows = []
    for folder in arguments.folders:
        with tempfile.TemporaryDirectory() as made:
            size, stats = bytes_of(str(folder), Path(made))
        with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
            rounds = list(processes.map(seconds_of, [folder] * ROUNDS))
        times = 1e3 * np.array(rounds)
        of_rounds = times.mean(axis=1)
        links = stats["neardup/links/stored"]
        rows.append(
            f"| {folder.name} | {stats['neardup/pages']:,} | {links:,} | {size / links:.2f} |"
            f" {times.shape[1]:,} | {times.min(axis=0).mean():.3f} | {np.median(of_rounds):.3f} |"
            f" {of_rounds.min():.3f} to {of_rounds.max():.3f} |"
        )
    names = " ".join(folder.name for folder in arguments.folders)
    text = [
        "# Links of a crawl",
        "",
        *header(f"python -m benchmarks.bench_links {names}", n="see the table", recall="-"),
        f"- load of the machine when done: {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores",
        "",
        "Bytes are those by which the SQLite file grows, with indexes, after VACUUM; the rows of links are",
        f"stored {COPIES} times, because the file grows by pages. The time is processor time of reading,",
        "numbering and encoding the links of a page that was read just before: the mean of what each page",
        f"takes in the quickest of {ROUNDS} rounds; median and range of the rounds.",
        "",
        "| pages of | crawled | links | bytes a link | pages timed | ms a page | median round | range |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
    ]
    give("\n".join(text), arguments.output)


if __name__ == "__main__":
    main()
