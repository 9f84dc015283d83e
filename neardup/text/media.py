"""What a page has beside its visible text: the names of its media, and words that are not shown."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from lxml import etree

from neardup.address import host_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHOWN = ("img", "source", "video", "audio")
"""Elements whose media stand on the page itself."""

_SOURCES = ("src", "data-src", "data-original", "poster", "data")
_SETS = ("srcset", "data-srcset")
_STYLES = etree.XPath("descendant::*/@style", smart_strings=False)
_STYLED = re.compile(r"url\(\s*[\"']?([^\"')]+)")

# fmt: off
_SAYS_NOTHING = (
    "action", "align", "charset", "class", "color", "height", "href", "http-equiv", "id", "lang", "media",
    "method", "name", "rel", "role", "style", "target", "type", "width", "xmlns",
    "src", "data-src", "data-original", "poster", *_SETS,
)
# fmt: on
"""Attributes that say how a page looks and where it leads; what they show is among the names of media.

Elements that a site has made up may say anything by theirs.
"""

# In C: a page has thousands of attributes.
_ATTRIBUTES = etree.XPath(
    f"descendant-or-self::*/@*[not(contains('|{'|'.join(_SAYS_NOTHING)}|', concat('|', name(), '|')))]"
    " | descendant-or-self::*[contains(name(), '-')]/@*",
    smart_strings=False,
)
_LINKS_WITH_SCHEME = etree.XPath("descendant-or-self::*/@href[contains(., ':')]", smart_strings=False)

_NOT_SHOWN = ("annotation", "canvas", "datalist", "noscript", "option", "svg", "template", "text", "title")
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
    return set(map(_name, addresses(root, SHOWN))) - {""}


def addresses(root: etree._Element, elements: Iterable[str]) -> Iterator[str]:
    """What the media elements of these names show, and what styles name: images behind the text."""
    element: Any
    for element in root.iter(*elements):
        if element.tag == "input" and element.get("type") != "image":
            continue
        yield from (value for name in _SOURCES if (value := element.get(name)))
        listed = (each.split() for name in _SETS for each in element.get(name, "").split(","))
        yield from (words[0] for words in listed if words)
    for style in cast("list[str]", _STYLES(root)):
        yield from _STYLED.findall(style)


def words_not_shown(url: str, root: etree._Element) -> set[str]:
    """The words of a page's title, scripts, comments, attributes and hidden elements, and of its links to
    elsewhere.

    Each two words in a row are among them, because names are often made of words that are known one by one.

    Words have three letters or more, and no digits, as most tokens have. What stands in the URL of the page
    is left out: a session id tells nothing of the page.

    >>> from lxml import html
    >>> page = html.fromstring('<p data-name="Oak table" data-sid="x7"><a href="mailto:jo@b.example">')
    >>> sorted(words_not_shown("http://a.example/7", page))
    ['example', 'mailto', 'mailto example', 'oak', 'oak table', 'table']
    """
    host = host_of(url)
    said = cast("list[str]", _ATTRIBUTES(root))
    for meta in root.iter("meta"):  # noindex on each address of a page but one says nothing of the page
        if (meta.get("name") or "").lower() == "robots" and meta.get("content"):
            said.remove(str(meta.get("content")))
    led_to = cast("list[str]", _LINKS_WITH_SCHEME(root))
    said += (href for href in led_to if host_of(href) != host)
    said += (each.text or "" for each in root.iter("script", etree.Comment))
    met: set[etree._Element] = set()
    for hidden in root.iter(*_NOT_SHOWN):
        if hidden not in met:
            met.update(hidden.iter(*_NOT_SHOWN))
            said += map(str, hidden.itertext())
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
