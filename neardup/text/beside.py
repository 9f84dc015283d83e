"""What a page has beside its visible text: a title, media, files to download, and data for scripts.

Photos without captions, or downloads, may stand on pages of one text. What tells such pages apart is here.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from neardup.address import host_of, is_web
from neardup.text.media import addresses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml import etree

_MEDIA = ("img", "source", "video", "audio", "embed", "iframe", "object", "input")

_PREVIEWS = frozenset({"og:audio", "og:image", "og:video", "twitter:image"})

_FILE = re.compile(r"\.(?!(?:x?html?|php\d?|aspx?|jspx?|cgi|do)$)[a-z][a-z0-9]{1,4}$", re.IGNORECASE)
"""The ending of a name that is no page's."""

_TIME = re.compile(r"(?<![0-9])[0-9]{10}(?=(?:[0-9]{3})?(?![0-9]))[0-9]*")
"""What may be a Unix time, in seconds or milliseconds."""

_AT_ONCE = 60
"""Seconds between a request and the time in its page that stands for the request."""

_OF_ADDRESS_OR_TIME = frozenset(
    {
        "@context", "@id", "contentUrl", "dateModified", "datePublished", "image", "item", "logo", "target",
        "thumbnailUrl", "uploadDate", "url", "urlTemplate", "userInteractionCount",
    }
)  # fmt: skip
"""Names of JSON-LD whose values are other ones on each address of a page, or at each request."""

_DIGIT = re.compile(r"[0-9]")

_NAMES = 2
"""Segments of a path that name a file: sessions in paths come before."""


def beside(url: str, root: etree._Element, links: Iterable[str], requested: float = 0.0) -> set[str]:
    """The names of the media and files of a page with these ``links``, requested at a Unix time.

    The name of a file is the last two segments of its path. Where the path names no file, the query counts,
    without the time of the request: some sites count visits so.

    >>> from lxml import etree
    >>> page = "<p>A photo</p><img src=/s/x1/photos/17.jpg?w=9><script>go()</script>"
    >>> sorted(beside("http://a.example/17", etree.HTML(page), ["http://b.example/17.zip"]))
    ['17.zip', 'photos/17.jpg']
    """
    named = (*addresses(root, _MEDIA), *_previews(root))
    return {*(_name(address, url, requested) for address in named), *_of_links(host_of(url), links)}


def title(root: etree._Element) -> str:
    """The title of a page, which is no part of its visible text; "" if there is none."""
    return " ".join((root.findtext(".//title") or "").split())


def data(root: etree._Element) -> list[str]:
    """The data for scripts that a page holds. Of ``ld+json``, the values with a digit.

    The words of ``ld+json`` are in ``words_not_shown``.

    >>> from lxml import etree
    >>> linked = '{"name": "Table", "sku": "T7", "url": "/t?sid=1", "dateModified": "2026-11-26"}'
    >>> page = f'<script type=application/json>[1]</script><script type=application/ld+json>{linked}</script>'
    >>> data(etree.HTML(page))
    ['[1]', 'sku T7']
    """
    found: list[str] = []
    for each in root.iter("script"):
        kind, text = each.get("type") or "", each.text or ""
        if "ld+json" in kind:
            found += _linked_data(text)
        elif "json" in kind:
            found.append(text)
    return found


def _linked_data(text: str) -> Iterator[str]:
    """The values of JSON-LD that have a digit, with their names; not what names an address of the page."""
    try:
        waiting: list[tuple[str, Any]] = [("", json.loads(text))]
    except (ValueError, RecursionError):
        return
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend((key, each) for key, each in value.items() if key not in _OF_ADDRESS_OR_TIME)
        elif isinstance(value, list):
            waiting.extend((name, each) for each in value)
        elif _DIGIT.search(told := str(value)) and "://" not in told:
            yield f"{name} {told}"


def _previews(root: etree._Element) -> Iterator[str]:
    """The media that other sites show of a page."""
    for meta in root.iter("meta"):
        if (meta.get("property") or meta.get("name") or "").lower() in _PREVIEWS:
            yield meta.get("content") or ""


def _of_links(host: str, links: Iterable[str]) -> Iterator[str]:
    for link in links:
        bare, _, query = link.partition("?")
        if _FILE.search(bare.rpartition("/")[2]):
            yield _name(link)
        elif not query and is_web(link) and host_of(link) != host:
            yield link  # links to share a page have a query


def _name(address: str, base: str = "", requested: float = 0.0) -> str:
    if address.startswith("data:"):
        return address
    try:
        parts = urlsplit(urljoin(base, address.strip()))
    except ValueError:
        return address
    name = "/".join(parts.path.split("/")[-_NAMES:]).lstrip("/")
    if _FILE.search(name):
        return name
    return f"{name}?{_TIME.sub(lambda found: _unless_of(requested, found[0]), parts.query)}"


def _unless_of(requested: float, number: str) -> str:
    """Nothing in place of the time of a request."""
    return "" if abs(int(number[:10]) - requested) <= _AT_ONCE else number
