"""What a page has beside its visible text: a title, media, files to download, and data for scripts.

Photos without captions, or downloads, may stand on pages of one text. What tells such pages apart is here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from neardup.address import host_of, is_web
from neardup.text.media import addresses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml import etree

_MEDIA = ("img", "source", "video", "audio", "embed", "iframe", "object", "input")

_FILE = re.compile(r"\.(?!(?:x?html?|php\d?|aspx?|jspx?|cgi|do)$)[a-z][a-z0-9]{1,4}$", re.IGNORECASE)
"""The ending of a name that is no page's."""

_TIME = re.compile(r"(?<![0-9])[0-9]{10}(?=(?:[0-9]{3})?(?![0-9]))[0-9]*")
"""What may be a Unix time, in seconds or milliseconds."""

_AT_ONCE = 60
"""Seconds between a request and the time in its page that stands for the request."""

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
    shown = (_name(address, url, requested) for address in addresses(root, _MEDIA))
    return {*shown, *_of_links(host_of(url), links)}


def title(root: etree._Element) -> str:
    """The title of a page, which is no part of its visible text; "" if there is none."""
    return " ".join((root.findtext(".//title") or "").split())


def data(root: etree._Element) -> list[str]:
    """The data for scripts that a page holds. Of ``ld+json``, words count: see ``words_not_shown``."""
    found = ((each.get("type") or "", each.text or "") for each in root.iter("script"))
    return [text for kind, text in found if "json" in kind and "ld+json" not in kind]


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
