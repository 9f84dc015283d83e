"""The links of a page: where its anchors lead to.

An anchor is an ``a`` or ``area`` element with ``href``. What leads to another place of the same page is no
link. ``python -m benchmarks.bench_build`` measures what links cost beside reading a page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from neardup import native
from neardup.address import is_web, page_url

if TYPE_CHECKING:
    from lxml import etree

_NOFOLLOW = "nofollow"

_SEGMENT = r"[\w%~-][\w%~.-]*+"
_HOST = r"https?://[\w.-]++(?::\d++)?"
_QUERY = r"(?:\?[\w%~.=&+-]++)?"
_PLAIN_URL = re.compile(rf"{_HOST}/[\w%~./-]*+{_QUERY}", re.ASCII)
_PLAIN_PATH = re.compile(rf"(?:\./)?+((?:\.\./)*+)({_SEGMENT}(?:/{_SEGMENT})*+/?{_QUERY})", re.ASCII)
_PLAIN_BASE = re.compile(rf"(?:{_HOST}|file://)/((?:{_SEGMENT}/)*)[^/?#;]*+(?:\?|\Z)", re.ASCII)
"""Links and bases that are joined here. ``urljoin`` gives the same, and takes 20 times the time."""

_LONGEST_HREF = 250
_MOST_REMEMBERED = 32_768


class _Remembered:
    """Where links of pages in a folder lead to. Pages of one folder have many links in common.

    :data:`_MOST_REMEMBERED` links take about 10 MB, and at most 40. Apache's manual of 828
    pages has 11,500 of them in 68 folders.
    """

    def __init__(self) -> None:
        self._by_folder: dict[str, dict[str, str]] = {}
        self._count = 0

    def of_folder(self, folder: str) -> dict[str, str]:
        """URLs by the value of ``href``."""
        known = self._by_folder.get(folder)
        if known is None:
            self._make_room()
            known = self._by_folder[folder] = {}
        return known

    def add(self, known: dict[str, str], href: str, link: str) -> None:
        """Remember a link of a folder."""
        if len(href) <= _LONGEST_HREF:
            self._make_room()
            known[href] = link

    def _make_room(self) -> None:
        if self._count >= _MOST_REMEMBERED:
            self._by_folder.clear()
            self._count = 0
        self._count += 1


_remembered = _Remembered()


def links(url: str, root: etree._Element) -> dict[str, bool]:
    """The URLs without fragments that a page links to, in the order of the page, each once.

    The URLs are http(s), or files if the page is one. The value is whether all anchors with this URL say
    ``nofollow``, or the page does.

    >>> from lxml import etree
    >>> page = "<a href=z#1>1</a><a href=?q rel=nofollow>2</a><a href=#top>3</a>"
    >>> links("http://a.example/x/y", etree.HTML(page))
    {'http://a.example/x/z': False, 'http://a.example/x/y?q': True}
    """
    own_base, is_nofollow, hrefs = anchors(root)
    base = url if own_base is None else _joined(url, own_base.strip()) or url
    plain = _PLAIN_BASE.match(base)
    known = _remembered.of_folder(base[: plain.end(1)]) if plain else {}
    found: dict[str, bool] = {}
    for href, marked in hrefs.items():
        link = known.get(href)
        if link is None:
            link = _link(base, plain, href, known)
        if link:
            found[link] = found.get(link, True) and (marked or is_nofollow)
    found.pop(page_url(url), None)
    return found


@native.twin
def anchors(root: etree._Element) -> tuple[str | None, bool, dict[str, bool]]:
    """The first ``base`` of a page, whether a ``meta`` says ``nofollow`` of all links, and the links.

    The links are the values of ``href`` without fragments, and without what is a fragment alone. The value of
    each is whether all anchors that have it say ``nofollow``.
    """
    base, is_nofollow = None, False
    hrefs: dict[str, bool] = {}
    for element in root.iter("a", "area", "base", "meta"):
        if element.tag == "meta":
            is_robots = (element.get("name") or "").lower() == "robots"
            is_nofollow = is_nofollow or (is_robots and _NOFOLLOW in (element.get("content") or "").lower())
            continue
        href = element.get("href")
        if element.tag == "base":
            base = href if base is None else base
            continue
        if href is None or href.startswith("#"):
            continue
        link = href.partition("#")[0]
        rel = element.get("rel")
        hrefs[link] = hrefs.get(link, True) and rel is not None and _NOFOLLOW in rel.lower()
    return base, is_nofollow, hrefs


def _link(base: str, plain: re.Match[str] | None, whole: str, known: dict[str, str]) -> str:
    """A URL; "" if it leads to no page. ``plain``: the match of ``_PLAIN_BASE`` in the base; None: there is
    none. ``whole``: an ``href`` without fragment.
    """
    href = whole.strip()
    if _PLAIN_URL.fullmatch(href):
        link = href
    elif plain is not None and (path := _PLAIN_PATH.fullmatch(href.removeprefix("/"))):
        top = plain.start(1)
        folder = base[: top if href[0] == "/" else plain.end(1)]
        link = _raised(folder, len(path[1]) // 3, top) + path[2]
    else:
        return _joined(base, href) if href else ""
    # Neither way depends on more than the folder of the base.
    _remembered.add(known, whole, link)
    return link


def _raised(folder: str, levels: int, top: int) -> str:
    """The folder so many levels above one, but not above ``top``, where the path begins."""
    for _ in range(levels):
        folder = folder[: max(top, folder.rfind("/", 0, -1) + 1)]
    return folder


def _joined(base: str, href: str) -> str:
    """A URL without fragment; "" if it leads to no page: to none of the web, nor from a file to a file."""
    try:
        url = urljoin(base, href)
    except ValueError:
        return ""
    is_page = is_web(url) or (url.startswith("file:") and base.startswith("file:"))
    return page_url(url) if is_page else ""
