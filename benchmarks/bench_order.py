"""How soon crawls by Scrapy find the unique pages of a folder, served on loopback.

Run as ``python -m benchmarks.bench_order --folder NAME=FOLDER[,PART…]… [--rounds N] [--at-once N…]``. Each
folder is crawled along its links from its uppermost index pages, without the add-on and with its defaults, in
turn: breadth first, and last in first out, as Scrapy does by default. Unique pages are those of
:mod:`benchmarks.bench_budget`, which replays such crawls without Scrapy.

Reported are the unique pages lost against the crawl without the add-on, and the HTML pages got until 90, 95
and 99 % of the unique ones were found: medians of the rounds, and for 99 % the fewest and the most. The exit
code is 1 if a unique page was lost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import scrapy
from scrapy.http import HtmlResponse

from benchmarks.bench_crawl import served
from benchmarks.bench_latency import table
from benchmarks.bench_sites import SHARES
from benchmarks.provenance import give, header
from benchmarks.replay import Folder, links_of
from tests.support.crawling import crawl
from tests.support.sites.spiders import BREADTH_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

ORDERS: dict[str, dict[str, Any]] = {"breadth first": BREADTH_FIRST, "LIFO": {}}


class Follow(scrapy.Spider):
    """Follows each link of each HTML page; an item is the path of a page."""

    name = "follow"

    def parse(self, response: Response) -> Iterator[Any]:
        if not isinstance(response, HtmlResponse):
            return
        yield {"path": unquote(urlsplit(response.url).path)}
        for link in links_of(response.url, response.body):
            yield scrapy.Request(link)


class Found(NamedTuple):
    """What a crawl found: unique pages, and how many pages it got until it had each share of them."""

    unique: set[str]
    pages: int
    until: tuple[int, ...]


def run(site: Folder, start: str, settings: dict[str, Any]) -> Found:
    """Crawl a folder that is served; ``start`` has the start URLs."""
    done = crawl(Follow, settings, start_urls=start.split(","))
    first: dict[str, int] = {}
    for number, item in enumerate(done.items, 1):
        doc = site.docs.get(item["path"])
        if doc is not None and doc.star is not None:
            first.setdefault(doc.star, number)
    order = sorted(first.values())
    until = tuple(order[max(0, round(share * len(order)) - 1)] for share in SHARES)
    return Found(set(first), len(done.items), until)


def measure(site: Folder, rounds: int, at_once: list[int]) -> Iterator[tuple[list[object], int]]:
    """Rows of the table for one site, each with the unique pages that were lost."""
    front = site.docs["/"]
    assert front is not None
    paths = [urlsplit(link).path.lstrip("/") for link in front.links]
    with served(site.folder, paths) as start:
        for (order, of_order), number in product(ORDERS.items(), at_once):
            many = {"CONCURRENT_REQUESTS": number, "CONCURRENT_REQUESTS_PER_DOMAIN": number}
            without, default = [], []
            for _ in range(rounds):
                without.append(run(site, start, of_order | many))
                with tempfile.TemporaryDirectory() as work:
                    url = f"sqlite:///{work}/neardup.db"
                    addon = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url}
                    default.append(run(site, start, of_order | many | addon))
            base = median(of.until[-1] for of in without)
            for way, crawls in (("without", without), ("default", default)):
                lost = sum(len(all_of.unique - of.unique) for all_of, of in zip(without, crawls, strict=True))
                yield [site.name, order, number, way, crawls[0].pages, lost, *figures(crawls, base)], lost


def figures(crawls: list[Found], base: float) -> list[object]:
    """The medians of some crawls; of the last share also the fewest and most pages, and the part of base."""
    until = [median(of.until[place] for of in crawls) for place in range(len(SHARES))]
    last = sorted(of.until[-1] for of in crawls)
    return [*map(round, until), f"{last[0]} to {last[-1]}", f"{until[-1] / base:.2f}"]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", action="append", required=True, metavar="NAME=FOLDER[,PART…]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    rows: list[list[object]] = []
    lost = 0
    for given in arguments.folder:
        for row, lost_of_crawls in measure(Folder.named(given), arguments.rounds, arguments.at_once):
            rows.append(row)
            lost += lost_of_crawls
    head = [
        "site", "order", "at once", "add-on", "pages", "unique lost",
        *(f"until {share:.0%}" for share in SHARES), "99 %, fewest to most", "of without",
    ]  # fmt: skip
    top = header(
        f"python -m benchmarks.bench_order --folder NAME=FOLDER --rounds {arguments.rounds}",
        n=f"{arguments.rounds} crawls of each kind",
        recall="0.98 asked",
    )
    lines = ["# The order of a crawl: pages until the unique ones are found", "", *top, ""]
    give("\n".join([*lines, table(head, rows), ""]), arguments.output)
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
