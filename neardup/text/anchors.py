"""The links of a page: where its anchors lead to.

An anchor is an ``a`` or ``area`` element with ``href``. What leads to another place of the same page is no
link. ``python -m benchmarks.bench_build`` measures what links cost beside reading a page.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from neardup import native
from neardup.address import is_web, page_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from lxml import etree

_NOFOLLOW = "nofollow"

_PART = r"\w%~+(),!$'*@-"
_SEGMENT = rf"[{_PART}][.{_PART}]*+"
_HOST = r"https?://[\w.-]++(?::\d++)?"
_QUERY = rf"(?:\?[.=&/:;?{_PART}]++)?"
_PLAIN_URL = re.compile(rf"{_HOST}(?:/[./{_PART}]*+{_QUERY})?", re.ASCII)
_PLAIN_PATH = re.compile(rf"(?:\./)?+((?:\.\./)*+)({_SEGMENT}(?:/{_SEGMENT})*+/?{_QUERY})", re.ASCII)
_PLAIN_BASE = re.compile(rf"(?:{_HOST}|file://)/((?:{_SEGMENT}/)*)[^/?#;]*+(?:\?|\Z)", re.ASCII)
"""Links and bases that are joined here. ``urljoin`` gives the same, and takes much longer."""


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
    folder, top = (base[: plain.end(1)], plain.start(1)) if plain else ("", 0)
    found = led_to(hrefs, folder, top, is_nofollow, partial(_joined, base))
    found.pop(page_url(url), None)
    return found


def anchor_texts(root: etree._Element) -> set[str]:
    """The texts of the anchors that have one.

    >>> from lxml import etree
    >>> anchor_texts(etree.HTML("<a href=/1>Row <b>1</b></a><a href=/2><img src=x></a>"))
    {'Row 1'}
    """
    found = (" ".join("".join(map(str, each.itertext())).split()) for each in root.iter("a"))
    return {text for text in found if text}


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


@native.twin
def led_to(
    hrefs: dict[str, bool], folder: str, top: int, is_nofollow: bool, joined: Callable[[str], str]
) -> dict[str, bool]:
    """The URLs that values of ``href`` without fragments lead to, and whether all of them say ``nofollow``.

    ``folder``: the base up to the last slash of its path; "" if the base is not plain. ``top``: where its
    path begins, behind the first slash. ``joined`` is asked for the URLs of all others than plain links; ""
    stands for none.
    """
    found: dict[str, bool] = {}
    for whole, marked in hrefs.items():
        href = whole.strip()
        link = _plain_link(folder, top, href) or (joined(href) if href else "")
        if link:
            found[link] = found.get(link, True) and (marked or is_nofollow)
    return found


def _plain_link(folder: str, top: int, href: str) -> str | None:
    """Where a plain link leads to; None: it is not plain."""
    if _PLAIN_URL.fullmatch(href):
        return href
    path = _PLAIN_PATH.fullmatch(href.removeprefix("/")) if folder else None
    if path is None:
        return None
    raised = folder[:top] if href[0] == "/" else folder
    for _ in range(len(path[1]) // 3):
        raised = raised[: max(top, raised.rfind("/", 0, -1) + 1)]
    return raised + path[2]


def _joined(base: str, href: str) -> str:
    """A URL without fragment; "" if it leads to no page: to none of the web, nor from a file to a file."""
    try:
        url = urljoin(base, href)
    except ValueError:
        return ""
    is_page = is_web(url) or (url.startswith("file:") and base.startswith("file:"))
    return page_url(url) if is_page else ""
