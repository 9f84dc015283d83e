"""Real crawls for the tests: a web server on loopback, and spiders run against it in this process."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.utils.test import get_crawler

from neardup.scrapy.extension import NearDuplicates
from neardup.scrapy.recording import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import scrapy
    from scrapy.crawler import Crawler

QUIET = {
    "TWISTED_REACTOR_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "DEBUG",
    "CONCURRENT_REQUESTS": 1,
    # For each page Scrapy makes as many tasks, which took a tenth of the time.
    "CONCURRENT_ITEMS": 4,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "SCHEDULER_START_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
}
"""One request at a time, first come, first served, so that the order of the pages, and with it each verdict,
is known.
"""


@dataclass
class Page:
    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/html; charset=utf-8"})


@dataclass
class Site:
    """A site made of pages by path; ``requested`` lists the paths asked for."""

    url: str
    pages: dict[str, Page] = field(default_factory=dict)
    requested: list[str] = field(default_factory=list)

    def add(self, path: str, text: str, *links: str, **kwargs: Any) -> None:
        """Add an HTML page with a text and links to other paths."""
        anchors = "".join(f'<a href="{link}">.</a>' for link in links)
        self.pages[path] = Page(f"<html><body><p>{text}</p>{anchors}</body></html>".encode(), **kwargs)

    def add_folder(self, folder: Path) -> None:
        for file in folder.rglob("*.html"):
            # No charset in the header: the pages declare their own.
            page = Page(file.read_bytes(), headers={"Content-Type": "text/html"})
            self.pages[f"/{file.relative_to(folder).as_posix()}"] = page


@contextmanager
def serve() -> Iterator[Site]:
    """A site on a free port of 127.0.0.1, empty at first."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requested.append(self.path)
            page = site.pages.get(self.path, Page(b"<p>not here</p>", status=404))
            self.send_response(page.status)
            for name, value in {**page.headers, "Content-Length": str(len(page.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(page.body)

        def log_message(self, *args: object) -> None:
            """Keep the test output free of access logs."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Crawl:
    """What a crawl left behind."""

    stats: dict[str, Any]
    items: list[Any]
    crawler: Crawler

    def neardup(self, name: str) -> Any:
        return self.stats.get(f"neardup/{name}", 0)


def with_spider(spider: type[scrapy.Spider], **settings: Any) -> Crawler:
    """A crawler that has its spider, and does not run."""
    crawler = get_crawler(spider, settings)
    crawler.spider = crawler._create_spider(**({} if hasattr(spider, "name") else {"name": "any"}))
    return crawler


def recorder_of(crawler: Crawler) -> Recorder:
    """What a crawl stores with, while it runs."""
    neardup = crawler.get_extension(NearDuplicates)
    assert neardup is not None
    assert isinstance(neardup.recorder, Recorder)
    return neardup.recorder


def crawl(spider: type[scrapy.Spider], settings: dict[str, Any], **arguments: Any) -> Crawl:
    """Run a spider to its end, without a reactor."""
    items: list[Any] = []

    async def run() -> Crawl:
        runner = AsyncCrawlerRunner({**QUIET, **settings})
        crawler = runner.create_crawler(spider)
        crawler.signals.connect(collect, signal=signals.item_scraped)
        await runner.crawl(crawler, **arguments)
        return Crawl(crawler.stats.get_stats(), items, crawler)

    def collect(item: Any) -> None:
        items.append(item)

    return asyncio.run(run())
