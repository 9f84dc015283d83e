"""What a crawl got, noted as it comes, so that a killed crawl has told it too, and pages out of a cache
count.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from itemadapter import ItemAdapter
from scrapy import signals
from scrapy.exceptions import NotConfigured

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

VARIABLE = "SITES_JOURNAL"
"""Environment variable that names the file."""


class Journal:
    """Appends a line of JSON for each response, item and end of a crawl to a file."""

    def __init__(self, crawler: Crawler, file: Path) -> None:
        self._crawler = crawler
        self._file = file.open("a", buffering=1)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        name = os.environ.get(VARIABLE)
        if not name:
            raise NotConfigured(f"{VARIABLE} is not set")
        journal = cls(crawler, Path(name))
        crawler.signals.connect(journal.response, signal=signals.response_received)
        crawler.signals.connect(journal.item, signal=signals.item_scraped)
        crawler.signals.connect(journal.end, signal=signals.engine_stopped)
        return journal

    def response(self, response: Response, request: Request) -> None:
        target = urlsplit(request.url)._replace(scheme="", netloc="").geturl()
        self._write(page=target, status=response.status, priority=request.priority)

    def item(self, item: Any) -> None:
        self._write(item=ItemAdapter(item).asdict())

    def end(self) -> None:
        self._write(stats=self._crawler.stats.get_stats())
        self._file.close()

    def _write(self, **what: Any) -> None:
        spider = self._crawler.spider
        self._file.write(json.dumps({"spider": spider.name if spider else "", **what}, default=str) + "\n")
