"""The names of the images and other media that a page shows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from lxml import etree

_SHOWN = ("img", "source", "video", "audio")
_DIGITS = re.compile(r"[0-9]+")


def media_names(root: etree._Element) -> set[str]:
    """The last parts of the paths of all ``src`` and ``srcset``, without digits.

    Names that count up, and names made of dates and times, are the same without digits. Digests differ.

    >>> from lxml import html
    >>> page = html.fromstring('<p><img src="/i/beach_07.jpg?v=3"><img srcset="/sun.png 2x, /moon.png">')
    >>> sorted(media_names(page))
    ['beach_.jpg', 'moon.png', 'sun.png']
    """
    found = set()
    for element in root.iter(*_SHOWN):
        sources = [element.get("src", ""), *element.get("srcset", "").split(",")]
        for source in filter(str.strip, sources):
            found.add(_name(source.split()[0]))
    return found - {""}


def _name(source: str) -> str:
    try:
        path = urlsplit(source).path
    except ValueError:
        return ""
    return _DIGITS.sub("", path.rpartition("/")[2].partition(";")[0])
