"""Crawls without a network: tiny pages, made when they are asked for, through Scrapy's real engine."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import scrapy
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.http import HtmlResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

DUPLICATE_EVERY = 10

_WORDS = 40


def made_body(number: int) -> bytes:
    """The page of a number: of every ten, the last is a copy of the one before it."""
    if number % DUPLICATE_EVERY == DUPLICATE_EVERY - 1:
        number -= 1
    rng = random.Random(number)
    words = " ".join(f"{rng.getrandbits(20):x}" for _ in range(_WORDS))
    return f"<p>{words}</p>".encode()


class Handler(BaseDownloadHandler):
    """Answers ``made://site/NUMBER``: 40 words; every tenth page is a copy of the one before it. All of
    another host are alike.
    """

    async def download_request(self, request: Request) -> Response:
        parts = urlsplit(request.url)
        number = int(parts.path[1:]) if parts.hostname == "site" else 0
        return HtmlResponse(request.url, body=made_body(number), encoding="utf-8", request=request)


SETTINGS: dict[str, Any] = {
    "DOWNLOAD_HANDLERS": {"made": "tests.support.synthetic.Handler"},
    "ADDONS": {"neardup.Addon": 500},
    "LOG_LEVEL": "WARNING",
    "LOGSTATS_INTERVAL": 0,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "TWISTED_REACTOR_ENABLED": False,
    # The same page is never asked for twice: nothing is remembered of requests that the add-on has no part
    # in.
    "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
}


class MadePages(scrapy.Spider):
    """Asks for so many pages, one after another; each has one item. ``meanwhile`` is run in a thread of its
    own.
    """

    name = "made"

    def __init__(
        self,
        pages: int,
        host: str = "site",
        meanwhile: Callable[[Crawler], None] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.pages = pages
        self.host = host
        self.meanwhile = meanwhile

    async def start(self) -> AsyncIterator[scrapy.Request]:
        if self.meanwhile is not None:
            threading.Thread(target=self.meanwhile, args=(self.crawler,)).start()
        for number in range(self.pages):
            yield scrapy.Request(f"made://{self.host}/{number}", meta={"is_start_request": False})

    def parse(self, response: Response) -> Iterator[dict[str, str]]:
        yield {"url": response.url, "html": response.text}
