"""Responses that were stored, as a crawl would have them before its callbacks."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from lxml import etree
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.http import Headers, HtmlResponse, Response
from scrapy.responsetypes import responsetypes
from scrapy.statscollectors import DummyStatsCollector
from w3lib.http import headers_raw_to_dict

from neardup.errors import NeardupError
from neardup.text.visible_text import parse

_SAFE = re.compile(r"[a-z][a-z0-9+.-]*:[A-Za-z0-9._~:/?&=%+,;@!$'()*-]*", re.IGNORECASE)
"""URLs that Scrapy requests as they are."""


_REQUEST = Request("http://a.example/")
"""The middleware only asks for its method and its limits."""


class Tree(NamedTuple):
    """What is asked of a selector."""

    root: etree._Element


class StoredPage:
    """What a reader asks of a response, with the text and the tree that Scrapy would give the page.

    The tree is parsed without Scrapy's selector, which looks for the base of the page first. A selector and
    its response also refer to each other, so that the tree would wait for the collector of garbage.
    """

    __slots__ = ("_response", "_tree", "body", "url")

    def __init__(self, response: HtmlResponse) -> None:
        self.url = response.url
        self.body = response.body
        self._response = response
        self._tree: Tree | None = None

    @property
    def text(self) -> str:
        return self._response.text

    @property
    def selector(self) -> Tree:
        if self._tree is None:
            root = parse(self.text)
            self._tree = Tree(etree.Element("html") if root is None else root)  # as Scrapy's selector
        return self._tree


def stored_page(url: str, status: int, headers: bytes, body: bytes) -> StoredPage | None:
    """A page by its raw header lines and its body, which may be packed; None: Scrapy takes it for no HTML.

    NeardupError as :func:`html_response`.
    """
    response = html_response(url, status, headers, body)
    return None if response is None else StoredPage(response)


def html_response(url: str, status: int, headers: bytes, body: bytes) -> HtmlResponse | None:
    """A response by its raw header lines and its body, which may be packed; None: Scrapy takes it for no
    HTML.

    NeardupError if the body cannot be unpacked, or is larger than Scrapy's DOWNLOAD_MAXSIZE then.
    """
    found = Headers(headers_raw_to_dict(headers))
    kind = responsetypes.from_args(headers=found, url=url, body=body)
    packed = kind(_requested(url), status=status, headers=found, body=body)
    response: Request | Response = packed
    if b"Content-Encoding" in found:
        try:
            response = _unpacking().process_response(_REQUEST, packed)
        except Exception as exc:  # each library that unpacks has errors of its own
            raise NeardupError(f"the body cannot be unpacked: {exc}") from exc
    return response if isinstance(response, HtmlResponse) else None


def _requested(url: str) -> str:
    """A URL as Scrapy writes it in its requests."""
    if _SAFE.fullmatch(url):
        return url
    try:
        return Request(url).url
    except ValueError:
        return url


@cache
def _unpacking() -> HttpCompressionMiddleware:
    crawler = Crawler(Spider)
    crawler.stats = DummyStatsCollector(crawler)
    return HttpCompressionMiddleware.from_crawler(crawler)
