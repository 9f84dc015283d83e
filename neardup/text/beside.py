"""What a page has beside its visible text: a title, media, files to download, data for scripts, and addresses
that are written out.

Photos without captions, or downloads, may stand on pages of one text. What tells such pages apart is here.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from neardup.address import host_of, is_web, may_be_one_site
from neardup.text.media import addresses, is_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lxml import etree

_PREVIEWS = frozenset(
    {
        "image", "image_src", "og:audio", "og:image", "og:image:secure_url", "og:image:url", "og:video",
        "og:video:url", "twitter:image", "twitter:image:src",
    }
)  # fmt: skip

_TIME = re.compile(r"(?<![0-9])[0-9]{10}(?=(?:[0-9]{3})?(?![0-9]))[0-9]*")
"""What may be a Unix time, in seconds or milliseconds."""

_AT_ONCE = 60
"""Seconds between a request and the time in its page that stands for the request."""

_ADDRESSES = frozenset({"@context", "@id", "target", "url", "urlTemplate"})
"""Names of JSON-LD whose texts are other ones at each address of a page."""

_OF_REQUESTS = frozenset({"dateModified", "userInteractionCount"})
"""Names of JSON-LD whose values may be other ones at each request."""

_WITH_ADDRESSES = (
    "//text()[contains(., '://') or contains(translate(., 'W', 'w'), 'www.')]"
    "[not(parent::script or parent::style)]"
)
_WRITTEN = re.compile(r"(?:\b[a-z][a-z0-9+.-]{1,15}://|\bwww\.)[^\s<>\"']*[^\s<>\"'.,:;!?)\]]", re.IGNORECASE)
"""An address in a text, without the signs after it."""

_URL = re.compile(r"\b[a-z]{2,10}://\S*|^/\S*$", re.IGNORECASE)
_NO_PATH = re.compile(r"[?#].*", re.DOTALL)

_MOST_LINKED = 1 << 18
"""Characters of JSON-LD that is read; what is longer is as it stands."""

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
    named = (*addresses(root), *_previews(root))
    return {*(_name(address, url, requested) for address in named), *_of_links(host_of(url), links)}


def title(root: etree._Element) -> str:
    """The title of a page, which is no part of its visible text; "" if there is none."""
    return " ".join((root.findtext(".//title") or "").split())


def written_addresses(url: str, root: etree._Element) -> set[str]:
    """The addresses of other sites that stand in the text of a page, which are no part of its visible text.

    >>> from lxml import etree
    >>> page = "<p>Read https://papers.example/1234, or www.papers.example/5 (from http://www.shop.com/?sid=7).</p>"
    >>> sorted(written_addresses("http://shop.com/", etree.HTML(page)))
    ['https://papers.example/1234', 'www.papers.example/5']
    """
    host = host_of(url)
    texts: Any = root.xpath(_WITH_ADDRESSES)
    found = (address[0] for text in texts for address in _WRITTEN.finditer(text))
    named = {address: host_of(address if "://" in address else f"//{address}") for address in found}
    return {address for address, other in named.items() if not may_be_one_site(other, host)}


def data(root: etree._Element) -> list[str]:
    r"""The data for scripts that a page holds. Of JSON-LD, what tells of the page and not of its address.

    >>> from lxml import etree
    >>> linked = '{"name": "Table", "sku": 7, "url": "http://a.example/?sid=1", "dateModified": "2026"}'
    >>> page = f'<script type=application/json>[1]</script><script type=application/ld+json>{linked}</script>'
    >>> data(etree.HTML(page))
    ['[1]', 'name: Table\nsku: 7']
    """
    found = ((each.get("type") or "", each.text or "") for each in root.iter("script"))
    return [_linked_data(text) if "ld+json" in kind else text for kind, text in found if "json" in kind]


def _linked_data(text: str) -> str:
    """The names and values of JSON-LD, but for addresses, times of changes and counters of visits.

    What cannot be read is as it stands: more pages differ then, and none is lost.
    """
    if len(text) > _MOST_LINKED:
        return text
    try:
        waiting: list[tuple[str, Any]] = [("", json.loads(text, strict=False))]
    except (ValueError, RecursionError):
        return text
    told: list[str] = []
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(reversed(value.items()))
        elif isinstance(value, list):
            waiting.extend(("", each) for each in reversed(value))
        elif name not in _OF_REQUESTS and (name not in _ADDRESSES or not isinstance(value, str)):
            told.append(f"{name}: {_URL.sub(_file_of, str(value))}")
    return "\n".join(told)


def _file_of(address: re.Match[str]) -> str:
    """The file that an address names, such as an image; "" if it is that of a page."""
    name = _NO_PATH.sub("", address[0]).rpartition("/")[2]
    return name if is_file(name) else ""


def _previews(root: etree._Element) -> Iterator[str]:
    """The media that other sites show of a page."""
    for element in root.iter("meta", "link"):
        names = (element.get(name) or "" for name in ("property", "name", "itemprop", "rel"))
        address = element.get("content") or element.get("href")
        if address and any(name.lower() in _PREVIEWS for name in names):
            yield address


def _of_links(host: str, links: Iterable[str]) -> Iterator[str]:
    for link in links:
        bare, _, query = link.partition("?")
        if is_file(bare):
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
    if is_file(name):
        return name
    return f"{name}?{_TIME.sub(lambda found: _unless_of(requested, found[0]), parts.query)}"


def _unless_of(requested: float, number: str) -> str:
    """Nothing in place of the time of a request."""
    return "" if abs(int(number[:10]) - requested) <= _AT_ONCE else number
