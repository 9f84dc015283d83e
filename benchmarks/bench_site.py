"""What the add-on loses and saves on a site that runs: a wiki, a shop, a forum.

Run as ``python -m benchmarks.bench_site URL [--actions default,drop,skip] [--crawls 2] [--most 3000]
[--main XPATH] [--mask PATTERN] [--deny PATTERN]``. Every link of the site is followed, breadth first, and
each HTML page gives one item. The site is crawled twice without the add-on: what changes by itself is left
out, such as numbers of visits. Then it is crawled with each action, so many times on one database.

The *main text* of a page is the text of the elements of ``--main``, without what the pattern of ``--mask``
matches: dates, tokens. The names of images and the data for scripts (JSON) count with it. A main text is
lost if the crawl without the add-on has it in an item, and no item of the other crawl has the same words, in
whatever order. Where the other crawl did not ask for that page, the main text is *not reached*. For
``--most`` may have ended the crawl before. The worst losses are listed with the nearest main text that was
got, by the resemblance of their shingles. ``--deny`` is a pattern of URLs that no crawl follows.

*99 %*: requests until the items had 99 % of the main texts of the crawl without the add-on.
"""

from __future__ import annotations

import argparse
import logging
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import scrapy
from scrapy import signals
from scrapy.linkextractors import LinkExtractor

from benchmarks.bench_latency import table
from benchmarks.provenance import give, header
from neardup.text.beside import data
from neardup.text.media import of_media
from tests.support.crawling import crawl
from tests.support.sites.spiders import BREADTH_FIRST

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy.crawler import Crawler
    from scrapy.http import Response

SHARE = 0.99
_SHINGLE = 3
_NAMED = 10
"""Losses that are listed of each crawl."""


class SiteSpider(scrapy.Spider):
    """Follows all links of one host."""

    name = "site"

    def __init__(self, start: str, main: str, mask: str | None, deny: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start]
        self._main = main
        self._mask = re.compile(mask) if mask else None
        self.fetched: set[str] = set()
        self._links = LinkExtractor(allow_domains=[urlsplit(start).netloc], deny=deny or ())

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        spider = super().from_crawler(crawler, *args, **kwargs)
        crawler.signals.connect(spider.note, signal=signals.response_received)
        return spider

    def note(self, response: Response) -> None:
        self.fetched.add(response.url)

    def parse(self, response: Response, **_: Any) -> Iterator[Any]:
        if not isinstance(response, scrapy.http.HtmlResponse):
            return
        root = response.selector.root
        made = self.crawler.stats.get_value("downloader/request_count")
        yield {
            "url": response.url,
            "main": self._main_text(response),
            "beside": sorted({*of_media(response.url, root).names, *data(root)}),
            "requests": made,
        }
        yield from (scrapy.Request(link.url) for link in self._links.extract_links(response))

    def _main_text(self, response: scrapy.http.HtmlResponse) -> str:
        found = response.xpath(self._main).xpath(
            ".//text()[not(ancestor::script or ancestor::style or ancestor::noscript)]"
        )
        text = " ".join(found.getall())
        return " ".join((self._mask.sub(" ", text) if self._mask else text).split())


@dataclass
class Got:
    """What a crawl brought: items in their order, stats, seconds, and the URLs that answered."""

    items: list[dict[str, Any]]
    stats: dict[str, Any]
    seconds: float
    fetched: set[str]

    @property
    def mains(self) -> dict[str, dict[str, Any]]:
        """The first item of each main text, by its words in their order of spelling."""
        return {_words_of(item): item for item in reversed(self.items)}

    def requests_until(self, share: float, wanted: Iterable[str]) -> int | None:
        """Requests until the items had so many of the main texts; None: they never had."""
        left = set(wanted)
        enough = (1.0 - share) * len(left)
        for item in self.items:
            left.discard(_words_of(item))
            if len(left) <= enough:
                return int(item["requests"])
        return None


def crawled(arguments: argparse.Namespace, settings: dict[str, Any]) -> Got:
    started = time.perf_counter()
    done = crawl(
        SiteSpider,
        {
            **BREADTH_FIRST,
            "CLOSESPIDER_PAGECOUNT": arguments.most,
            "HTTPERROR_ALLOW_ALL": False,
            "LOG_LEVEL": "ERROR",
            **settings,
        },
        start=arguments.url,
        main=arguments.main,
        mask=arguments.mask,
        deny=arguments.deny,
    )
    seconds = time.perf_counter() - started
    assert isinstance(done.crawler.spider, SiteSpider)
    return Got(done.items, done.stats, seconds, done.crawler.spider.fetched)


def lost_of(reference: Got, got: Got) -> list[tuple[float, str, str]]:
    """What is lost or not reached, the worst first: the resemblance of the nearest main text, two URLs."""
    mains = got.mains
    had = {item["url"]: _shingles(item["main"]) for item in mains.values()}
    lost = []
    for words, item in reference.mains.items():
        if words in mains:
            continue
        own = _shingles(item["main"])
        near = ((len(own & one) / len(own | one), other) for other, one in had.items())
        lost.append((*max(near, default=(0.0, "")), item["url"]))
    return sorted((resemblance, url, other) for resemblance, other, url in lost)


def _words_of(item: dict[str, Any]) -> str:
    return " ".join([*sorted(item["main"].split()), *item["beside"]])


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = text.lower().split()
    return frozenset(tuple(words[at : at + _SHINGLE]) for at in range(max(1, len(words) - _SHINGLE + 1)))


def row_of(name: str, reference: Got, got: Got, lost: list[tuple[float, str, str]]) -> list[object]:
    stats = got.stats
    reached = sum(url in got.fetched for _, url, _ in lost)
    until = got.requests_until(SHARE, reference.mains)
    return [
        name,
        stats["downloader/request_count"],
        len(got.items),
        len(got.mains),
        reached,
        len(lost) - reached,
        "–" if until is None else until,
        stats.get("neardup/duplicates", 0),
        stats.get("neardup/items_dropped", 0),
        stats.get("neardup/pages_skipped", 0),
        stats["finish_reason"],
        round(got.seconds),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--actions", default="default,drop,skip")
    parser.add_argument("--crawls", type=int, default=2)
    parser.add_argument("--most", type=int, default=3000)
    parser.add_argument("--main", default="//body")
    parser.add_argument("--mask")
    parser.add_argument("--deny")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    reference, again = crawled(arguments, {}), crawled(arguments, {})
    assert reference.items, f"{arguments.url} has no HTML page"
    stays = again.mains
    reference.items = [item for item in reference.items if _words_of(item) in stays]
    rows = [row_of("without", reference, reference, [])]
    named: list[list[object]] = []
    for action in arguments.actions.split(","):
        with tempfile.TemporaryDirectory() as folder:
            settings: dict[str, Any] = {
                "ADDONS": {"neardup.Addon": 500},
                "NEARDUP_DATABASE_URL": f"sqlite:///{folder}/neardup.db",
            }
            if action != "default":
                settings["NEARDUP_ACTION"] = action
            for number in range(1, arguments.crawls + 1):
                got = crawled(arguments, settings)
                lost = lost_of(reference, got)
                name = f"{action}, crawl {number}"
                rows.append(row_of(name, reference, got, lost))
                reached = [one for one in lost if one[1] in got.fetched]
                named += [[name, f"{near:.3f}", url, other] for near, url, other in reached[:_NAMED]]
    give(report(arguments, len(reference.items), rows, named), arguments.out)


def report(arguments: argparse.Namespace, pages: int, rows: list[list[object]], named: Any) -> str:
    options = "".join(
        f" --{name} '{value}'" for name in ("main", "mask", "deny") if (value := getattr(arguments, name))
    )
    command = f"python -m benchmarks.bench_site {arguments.url}{options}"
    columns = (
        "crawl", "requests", "items", "main texts", "lost", "not reached", "99 %", "duplicates", "dropped",
        "skipped", "end", "s",
    )  # fmt: skip
    lines = [
        "# A site that runs",
        "",
        *header(command, n=f"{pages:,} pages", recall="–"),
        "",
        table(columns, rows),
    ]
    if named:
        lines += ["", "Main texts that are lost, the worst of each crawl:", ""]
        lines.append(table(("crawl", "nearest", "lost", "nearest that was got"), named))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
