"""What a page has beside its visible text: the names of its media, and words that are not shown."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from neardup.address import host_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml import etree

_SHOWN = ("img", "source", "video", "audio")
_SOURCES = ("src", "data-src", "data-original", "poster")
_SETS = ("srcset", "data-srcset")
_STYLED = re.compile(r"url\(\s*[\"']?([^\"')]+)")

_SAYS_NOTHING = frozenset(
    {
        "action",
        "align",
        "charset",
        "class",
        "color",
        "height",
        "href",
        "http-equiv",
        "id",
        "lang",
        "media",
        "method",
        "name",
        "rel",
        "role",
        "style",
        "target",
        "type",
        "width",
        "xmlns",
        *_SOURCES,
        *_SETS,
    }
)
"""Attributes that say how a page looks and where it leads; what they show is among the names of media."""

_NOT_SHOWN = frozenset(
    {
        "annotation",
        "canvas",
        "datalist",
        "noscript",
        "option",
        "svg",
        "template",
        "text",
        "title",
    }
)
_CHUNK = re.compile(r"""[^\s"'`:;,.{}()\[\]<>=/&?#|+@%_-]{3,}""")
_VALUE = re.compile(r"[^/?&=;#]{4,}")
"""A part of a URL that may be a session id."""

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
        sources = [element.get(name, "") for name in _SOURCES]
        sources += [each for name in _SETS for each in element.get(name, "").split(",")]
        for source in filter(str.strip, sources):
            found.add(_name(source.split()[0]))
    return {*found, *map(_name, addresses_in_styles(root))} - {""}


def addresses_in_styles(root: etree._Element) -> Iterator[str]:
    """What the ``style`` attributes of a page name: images behind its text."""
    for element in root.iterfind(".//*[@style]"):
        yield from _STYLED.findall(element.get("style", ""))


def words_not_shown(url: str, root: etree._Element) -> set[str]:
    """The words of a page's title, data, attributes and hidden elements, and of its links to elsewhere.

    Each two words in a row are among them, because names are often made of words that are known one by one.

    Words have three letters or more, and no digits, as most tokens have. What stands in the URL of the page
    is left out: a session id tells nothing of the page.

    >>> from lxml import html
    >>> page = html.fromstring('<p data-name="Oak table" data-sid="x7"><a href="mailto:jo@b.example">')
    >>> sorted(words_not_shown("http://a.example/7", page))
    ['example', 'mailto', 'mailto example', 'oak', 'oak table', 'table']
    """
    host = host_of(url)
    said: list[str] = []
    hidden: set[etree._Element | None] = set()
    element: Any
    for element in root.iter("*"):
        said += (value for name, value in element.items() if name not in _SAYS_NOTHING)
        href = element.get("href", "")
        if ":" in href and host_of(href) != host:
            said.append(href)
        is_within = element.getparent() in hidden
        if is_within or element.tag in _NOT_SHOWN:
            hidden.add(element)
            said += (element.text or "", (element.tail or "") if is_within else "")
        elif element.tag == "script" and "json" in element.get("type", ""):
            said.append(element.text or "")
    text = "\n".join(said)
    for value in set(_VALUE.findall(unquote(url.partition("//")[2].partition("/")[2]))):
        text = text.replace(value, " ")
    found: set[str] = set()
    for line in text.lower().split("\n"):
        words = [chunk for chunk in _CHUNK.findall(line) if chunk.isalpha()]
        found.update(words, map(" ".join, pairwise(words)))
    return found


def _name(source: str) -> str:
    try:
        path = urlsplit(source).path
    except ValueError:
        return ""
    return _DIGITS.sub("", path.rpartition("/")[2].partition(";")[0])
