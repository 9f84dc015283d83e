"""The links of pages on their way into the store: read from the tree, numbered, and marked."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING

from scrapy.http import HtmlResponse
from w3lib.url import safe_url_string

from neardup.address import encoded_url, key_of, page_url
from neardup.detection.key_table import KeyTable
from neardup.detection.known_pages import NONE
from neardup.detection.verdict import LEFT_ALONE, Kind
from neardup.store.page_links import FOLLOWED, MOST_NUMBERS, NOFOLLOW, StoredLinks, encoded
from neardup.text.anchors import links

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from neardup.detection.known_pages import KnownPages
    from neardup.detection.verdict import Verdict
    from neardup.scrapy.recording import Onlooker, Recorder

_MOST_REMEMBERED = 50_000
"""URLs with their codes; on most pages nearly all have been met before."""

_SAFE = re.compile(r"[\w:/.~%=&?+,;@!$'()*-]*+", re.ASCII)
"""A URL without fragment that a request would not change."""

_NO_CODE = 0
"""Stands for the code of a target beyond the most."""


class PageLinkRecord:
    """Gives the targets of one crawl their codes (:mod:`neardup.store.page_links`).

    A key takes some 30 bytes of memory, and a code 8. The targets from :data:`MOST_NUMBERS` on get none.
    Links to such targets are not stored; ``neardup/links/beyond`` counts the pages from then on.
    """

    def __init__(self, crawler: Crawler, pages: KnownPages, recorder: Recorder | Onlooker) -> None:
        self._stats = crawler.stats
        self._pages = pages
        self._recorder = recorder
        self._numbers = KeyTable()
        self._codes = array("q", [_NO_CODE])
        """By number: the code of a target."""
        self._remembered: dict[str, int] = {}

    def store(self, response: Response, verdict: Verdict | None, requested: Iterable[str]) -> None:
        """Have the links of a page stored; ``requested``: the URLs of what its spider asked for."""
        if verdict is None or verdict.page_id is None or not isinstance(response, HtmlResponse):
            return
        if verdict.kind in LEFT_ALONE or verdict.kind is Kind.GONE:
            return
        own = {self._number(verdict.address.key, known=False): 0}
        for url in response.meta.get("redirect_urls", ()):
            own[self._number(key_of(encoded_url(page_url(url))), known=False)] = 0
        own.pop(_NO_CODE, None)
        is_nofollow = b"nofollow" in (response.headers.get(b"X-Robots-Tag") or b"").lower()
        remembered = self._remembered
        marks = {
            remembered.get(url) or self._code(url): NOFOLLOW if is_nofollow or marked else 0
            for url, marked in links(response.url, response.selector.root).items()
        }
        for url in requested:
            code = self._code(url)
            marks[code] = marks.get(code, 0) | FOLLOWED
        marks.pop(_NO_CODE, None)
        self._stats.inc_value("neardup/links/stored", len(marks))
        if len(self._codes) > MOST_NUMBERS:
            self._stats.inc_value("neardup/links/beyond")
        self._recorder.put_links(verdict.page_id, StoredLinks(encoded(own), encoded(marks)))

    def _code(self, url: str) -> int:
        """The code of a target that may have been met before."""
        code = self._remembered.get(url)
        if code is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                self._remembered.clear()
            asked = url if _SAFE.fullmatch(url) else page_url(safe_url_string(url))
            number = self._number(key_of(encoded_url(asked)), known=True)
            code = self._remembered[url] = self._codes[number]
        return code

    def _number(self, key: bytes, *, known: bool) -> int:
        """The number of a target; 0: there are too many. ``known``: its page may have been known before."""
        number = self._numbers.find(key)
        if number >= 0:
            return number
        number = len(self._codes)
        if number > MOST_NUMBERS:
            return _NO_CODE
        row = self._pages.row_of_key(key) if known else NONE
        self._codes.append(number if row == NONE else self._pages.ids[row])
        self._numbers.put(key, number)
        return number
