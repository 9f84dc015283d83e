"""What callbacks bring that their pages do not have: words of items, and requests that are no links.

A spider may complete an item by several requests, and keep it by itself meanwhile. Then no request carries
values (:mod:`neardup.scrapy.carried`), and the last page may be a copy: one that says "No reviews", say.
"""

from __future__ import annotations

import html
import re
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from itemadapter import ItemAdapter
from scrapy.http import HtmlResponse
from w3lib.url import canonicalize_url

from neardup.address import page_url
from neardup.scrapy.carried import without_values
from neardup.text.anchors import links
from neardup.text.headline import date_words, short_months

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request
    from scrapy.http import Response

    from neardup.scrapy.keepers import Keepers

_MOST_BROUGHT = 1_000_000
"""What is remembered, some 60 MB. When there is more, all is forgotten."""

_MOST_CALLBACKS = 10_000
"""A spider has some; functions within functions may be other ones for each page."""

_PAGES_WITHOUT = 3
"""Pages in a row whose items brought nothing, after which a callback is one that reads pages alone. What a
spider writes into each item is new on the first page.
"""

_WORD = re.compile(r"[^\W_]{3,}|\d+")
_LARGE = re.compile(r"-?\d{4}")
"""Smaller numbers that are no texts may be depths, positions and statuses."""

_OF_THIS_TIME = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[0-9a-f]{16,}\b"  # UUIDs and digests
    r"|(?:\b[a-z]{3}, )?\b\d{1,2}(?:\.|st|nd|rd|th)?[\s-](?:of )?[^\W\d_]{3,}[.,\s-]{1,2}(?=(?:19|20)\d{2}\b)"
    r"|\b[^\W\d_]{3,}\.? \d{1,2}(?:st|nd|rd|th)?, (?=(?:19|20)\d{2}\b)"  # November 29, 2026
    r"|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:t\d{2})?"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?z?(?: ?[+-]\d{2}:?\d{2})?"
    r"|(?<!\d)(?:19|20)\d{2}(?:\d{4}(?:t?\d{4,6})?)?(?!\d)"  # 2026, 20261129, 20261129T123001
    r"|(?<!\d)1\d{9}(?:\d{3})?(?:\.\d+)?(?!\d)"  # seconds or milliseconds since 1970
    r"|\d{0,20}\.\d{3,}"  # seconds that something took
)
"""Dates, times and tokens, which tell when an item was made, or are other ones in each item."""

_FEW = 30
"""So many strings, or words, are looked for in a page one by one."""

_COLLECTIONS = (list, tuple, set, frozenset)


class Source:
    """What a callback may take from its page, the ``response``: words and links."""

    def __init__(self, response: Response) -> None:
        self.response = response

    def leads_to(self, request: Request) -> bool:
        """Whether a request is for what an anchor of the page leads to, or for the page itself.

        A request that asks for the page once more waits for something: a page that is not ready, say.
        """
        url = page_url(request.url)
        if request.dont_filter and url in self.own_urls:
            return False
        return url in self._links or _canonical(url) in self._canonical_links

    def has_address(self, request: Request) -> bool:
        """Whether a page has the address of a request: in an anchor, or written out in a script, say.

        Of an address that is written out, its parts count: a spider may leave the id of a session out. Any
        other address is made up by the spider: that of a smaller area of a map, or of a longer prefix.
        """
        url = page_url(request.url)
        if unquote(url) in self._plain_links:
            return True
        parts = urlsplit(url)
        name = parts.path.rpartition("/")[2]
        said = [parts.path if not name or name.isdigit() else name, *parts.query.split("&")]
        if all(
            _is_in(self._text, each.lower()) or _is_in(self._text, unquote(each).lower()) for each in said
        ):
            return True
        return _canonical(url) in self._canonical_links

    @cached_property
    def own_urls(self) -> set[str]:
        """The URLs of the page without fragments: as it was asked for, and where it was found."""
        asked = self.response.request
        return {page_url(each.url) for each in (self.response, asked) if each is not None}

    @cached_property
    def _links(self) -> set[str]:
        response = self.response
        found = links(response.url, response.selector.root) if isinstance(response, HtmlResponse) else ()
        return self.own_urls.union(found)

    @cached_property
    def _plain_links(self) -> set[str]:
        return set(map(unquote, self._links))

    @cached_property
    def _canonical_links(self) -> set[str]:
        return set(map(_canonical, self._links))

    @cached_property
    def _text(self) -> str:
        request = self.response.request
        said = [self.response.url, getattr(self.response, "text", "")]
        if request is not None:
            referer = request.headers.get("Referer") or b""
            said += [request.url, referer.decode("latin-1"), str(request.meta.get("link_text", ""))]
        return html.unescape("\n".join(said)).lower()

    def lacks(self, item: Any) -> frozenset[str]:
        """The words and numbers of an item that the page does not have, in lower case.

        Words have three letters or more. Dates, times, digests and numbers with many decimals do not count:
        they may tell when an item was made.
        """
        values = {html.unescape(value).lower().strip() for value in _strings(item)}
        if len(values) <= _FEW:
            values = {value for value in values if not _is_in(self._text, value)}
        words = {word for value in values for word in _WORD.findall(value)} - date_words() - short_months()
        if len(words) > _FEW:
            words -= self._words
        else:
            words = {word for word in words if not _is_in(self._text, word)}
        if words:
            words &= {word for value in values for word in _WORD.findall(_OF_THIS_TIME.sub(" ", value))}
        return frozenset(words)

    @cached_property
    def _words(self) -> set[str]:
        return set(_WORD.findall(self._text))


class GivingCallbacks:
    """The callbacks that have given an item or a request in this crawl.

    Another one may keep what it reads by itself, such as the names of brands, for the items of later pages.
    """

    def __init__(self) -> None:
        self._giving: set[object] = set()

    def note(self, request: Request | None) -> None:
        """Take note that something has come out of the page of a request."""
        if len(self._giving) >= _MOST_CALLBACKS:
            self._giving.clear()
        self._giving.add(_callback(request))

    def have(self, request: Request) -> bool:
        """Whether the callback of a request is one of them."""
        return _callback(request) in self._giving


class Callbacks:
    """What the callbacks of a spider have brought from elsewhere in this crawl."""

    def __init__(self, keepers: Keepers) -> None:
        self._keepers = keepers
        self._brought: set[int] = set()
        self._called: set[object] = set()
        """Callbacks that gave requests alone so far."""
        self._pages_left: dict[object, int] = {}
        """Pages with items, by callback, that are to bring nothing new until it is one that reads alone."""
        self._make_requests: set[object] = set()

    def brought(self, request: Request | None, words: frozenset[str] | None) -> None:
        """Take note of the words of elsewhere in the items of a page; None: it had no items."""
        callback = _callback(request)
        if len(self._called) + len(self._pages_left) > _MOST_CALLBACKS:
            self._called.clear()
            self._pages_left.clear()
        if words is None:
            self._called.add(callback)
            return
        brings = bool(words) and hash(words) not in self._brought
        if brings:
            if len(self._brought) >= _MOST_BROUGHT:
                self._brought.clear()
            self._brought.add(hash(words))
        self._pages_left[callback] = (
            _PAGES_WITHOUT if brings else max(0, self._pages_left.get(callback, 0) - 1)
        )

    def kept_silent(self, request: Request | None) -> None:
        """Take note of a page out of which nothing came. Unless the items of its callback have shown that it
        reads pages alone, it may keep something by itself.
        """
        callback = _callback(request)
        if self._pages_left.get(callback) != 0:
            self._pages_left[callback] = _PAGES_WITHOUT

    def requested(self, by: Request | None, source: Source, request: Request) -> None:
        """Take note of a request that comes out of the page of another. One that is no link may depend on
        what a page has beside its text.
        """
        callback = _callback(by)
        if callback not in self._make_requests and not source.leads_to(request):
            self._make_requests.add(callback)

    def complete_items(self, request: Request | None) -> bool:
        """Whether the page of a request may complete an item of other pages."""
        if self._keepers.keep(request):
            return True
        callback = _callback(request)
        left = self._pages_left.get(callback)
        return callback not in self._called if left is None else left > 0

    def read_pages_alone(self, request: Request | None) -> bool:
        """Whether all that came out of pages of the same callback so far came from the pages alone."""
        return _callback(request) not in self._make_requests and not self.complete_items(request)


def _callback(request: Request | None) -> object:
    """The callback of a request, without values that it holds; None: that of the spider."""
    callback = None if request is None else without_values(request.callback)
    try:
        hash(callback)
    except TypeError:
        return type(callback)
    return callback


def _canonical(url: str) -> str:
    """A URL as a spider or its link extractor may have written it, too."""
    try:
        return str(canonicalize_url(url))
    except ValueError:
        return url


def _strings(item: Any) -> Iterator[str]:
    """All strings and large numbers in an item, keys of dictionaries in it among them."""
    waiting, met = [item], {}
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, int | float | Decimal):
            if _LARGE.match(text := str(value)):
                yield text
        elif id(value) not in met:
            if isinstance(value, _COLLECTIONS):
                waiting += value
            elif ItemAdapter.is_item(value):
                adapter = ItemAdapter(value)
                waiting += adapter.values()
                waiting += () if value is item else adapter.keys()
            else:
                continue
            met[id(value)] = value  # an item that refers to itself has an end


def _is_in(text: str, part: str) -> bool:
    """Whether a text has a part that is not within a word or a number."""
    if not part:
        return True
    at = text.find(part)
    while at >= 0:
        before, after = text[max(0, at - 1) : at], text[at + len(part) : at + len(part) + 1]
        if not (before.isalnum() and part[0].isalnum()) and not (after.isalnum() and part[-1].isalnum()):
            return True
        at = text.find(part, at + 1)
    return False
