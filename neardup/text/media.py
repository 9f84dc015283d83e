"""What a page has beside the words of its text: names of media and files, what is not shown, and symbols."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

import mmh3
from lxml import etree

from neardup.address import host_of, without_host
from neardup.text.anchors import anchors
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN = ("img", "source", "video", "audio", "embed", "iframe", "frame", "object", "input")
"""Elements whose media stand on the page itself. Of ``input``, only images do."""

_FILE = re.compile(
    r"\.(?!(?:[sx]?html?|php\d?|aspx?|jspx?|jsf|cfm|cgi|do|pl)$)[a-z][a-z0-9]{1,4}$", re.IGNORECASE
)
"""The ending of a name that is no page's."""

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
_NAMED = etree.XPath("descendant-or-self::*/@class | descendant-or-self::*/@id", smart_strings=False)
_LINKS_WITH_SCHEME = etree.XPath("descendant-or-self::*/@href[contains(., ':')]", smart_strings=False)

_NOT_SHOWN = ("annotation", "canvas", "datalist", "noscript", "option", "svg", "template", "text", "title")
_LEAST_LETTERS = 3
"""Of an ASCII word that may be a name."""

_VALUE = re.compile(r"[^/?&=;#]{4,}")
"""A part of a URL that may be a session id."""

_HELD = "data:"
_NUMBERED = ("geo:", "magnet:", "sms:", "tel:")
"""Links that say something by numbers."""

_DIGITS = re.compile(r"[0-9]+")
_MEDIA_NUMBER = re.compile(r"[0-9]{3,}")
_NUMBER = re.compile(
    r"(?<![0-9A-Za-z])(?!(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:[0-3][0-9])?(?![0-9]))[0-9]{3,9}(?![0-9A-Za-z])"
)
"""A number that is no day of a month, no date or time, and no part of a token."""

_TIME_TAKEN = re.compile(r"(?:time|duration|elapsed)\W{1,4}[0-9.]+", re.IGNORECASE)
"""How long the server took, as in ``"wgBackendResponseTime":123``."""

_SMALL = re.compile(r"(?<![0-9A-Za-z])[0-9]{1,9}(?![0-9A-Za-z])")
_APART = "\x00"
"""Stands between texts, and in none: a parser of HTML knows no such sign."""

_ONE = r"[0-9]++(?:\.[0-9]++)?+"
_BETWEEN = r"(?:[-\s,;\"']++[A-Za-z]?+[-\s,;\"']*+|[A-Za-z][-\s,;\"']*+)"
_ROW = re.compile(rf"(?<![0-9]){_ONE}(?:{_BETWEEN}{_ONE}){{3,}}+")
"""Numbers in a row, as data of a chart or the path of a drawing has them."""

_YEAR = re.compile(r"(?<![0-9.])(?:19|20)[0-9]{2}(?![0-9.])")
_SYMBOLS = re.compile(r"(?<!\S)[^\w\s]++(?!\S)")


class Beside(NamedTuple):
    """What a page has beside the words of its text: names, or words that are not shown, and numbers."""

    names: set[str]
    numbers: set[str]


def of_media(url: str, root: etree._Element) -> Beside:
    """The last parts of the paths of all ``src`` and ``srcset``, and of the files that are linked to, without
    digits. The query counts where the path names no file. An image that the page holds counts whole.

    Names that count up, and names made of dates and times, are the same without digits. Digests differ. The
    numbers are those of media, files and scripts. Of numbers and queries, what stands in the URL of the page
    is left out, as the id of a session.

    >>> from lxml import html
    >>> page = html.fromstring('<img src="/i/beach_07.jpg?v=3"><img srcset="/s/451.png"><a href="/a.pdf">')
    >>> [sorted(found) for found in of_media("http://a.example/7", page)]
    [['.png', 'a.pdf', 'beach_.jpg'], ['451']]
    """
    own = _values(url)
    media = list(addresses(root))
    files = [path for href in anchors(root)[2] if is_file(path := href.partition("?")[0])]
    names = {_name(address, own) for address in (*media, *files)} - {""}
    parts = [address.partition("?") for address in media if not address.startswith(_HELD)]
    paths = " ".join(path for path, _, _ in parts)
    queries = (query for path, _, query in parts if not is_file(path))
    scripts = (script.text or "" for script in root.iter("script"))
    numbers = {*_MEDIA_NUMBER.findall(paths), *_NUMBER.findall(" ".join((*queries, *files, *scripts)))}
    return Beside(names, numbers.difference(_MEDIA_NUMBER.findall(url)))


def addresses(root: etree._Element) -> Iterator[str]:
    """What the media elements of a page show, and what styles name: images behind the text."""
    element: Any
    for element in root.iter(*_SHOWN):
        if element.tag == "input" and element.get("type") != "image":
            continue
        yield from (value for name in _SOURCES if (value := element.get(name)))
        listed = (each.split() for name in _SETS for each in element.get(name, "").split(","))
        yield from (parts[0] for parts in listed if parts)
    for style in cast("list[str]", _STYLES(root)):
        yield from _STYLED.findall(style)


def symbols(text: str) -> set[str]:
    """What stands by itself in a text and has no letter and no digit.

    >>> sorted(symbols("A smile: 😀 ++ b+"))
    ['++', '😀']
    """
    return set(_SYMBOLS.findall(text))


def not_shown(url: str, root: etree._Element) -> Beside:
    """The words and numbers of a page's title, scripts, attributes and hidden elements, and of its links to
    elsewhere. Words of comments count as well, and numbers in names of classes and elements. Numbers of JSON
    do not: :func:`neardup.text.beside.data` tells what counts there.

    Each two words in a row are among the words, because names are often made of words that are known one by
    one. Words have no digits, as most tokens have. Those of one or two ASCII letters may be of a token, and
    are left out. A telephone number is a name.

    A row of numbers is one number, as a hash, and so are all numbers of attributes together. Both have no
    year: else each day of a calendar would have its own. How long the server took is left out.

    What stands in the URL of the page is left out: the id of a session tells nothing of the page.

    >>> from lxml import html
    >>> page = html.fromstring('<p data-name="Oak table" data-sku="4711"><a href="mailto:jo@b.example">')
    >>> names, numbers = not_shown("http://a.example/7", page)
    >>> sorted(names)
    ['example', 'mailto', 'mailto example', 'oak', 'oak table', 'table']
    >>> min(numbers, key=len)
    '4711'
    """
    attributes = cast("list[str]", _ATTRIBUTES(root))
    for meta in root.iter("meta"):  # noindex on each address of a page but one says nothing of the page
        if (meta.get("name") or "").lower() == "robots" and meta.get("content"):
            attributes.remove(str(meta.get("content")))
    host = host_of(url)
    elsewhere = [href for href in cast("list[str]", _LINKS_WITH_SCHEME(root)) if host_of(href) != host]
    said = [*attributes, *elsewhere, *_hidden(root)]
    scripts = [(script.get("type") or "", script.text or "") for script in root.iter("script")]
    comments = (comment.text or "" for comment in root.iter(etree.Comment))
    names = _words("\n".join((*said, *(text for _, text in scripts), *comments)), _values(url))
    names.update(href for href in elsewhere if href.startswith(_NUMBERED))
    programs = (text for kind, text in scripts if "json" not in kind)
    text = _TIME_TAKEN.sub("", _APART.join((*said, *programs, *cast("list[str]", _NAMED(root)))))
    rows = (" ".join(_SMALL.findall(_APART.join(attributes))), *_ROW.findall(text))
    numbers = {*_NUMBER.findall(text), *(_hashed(row) for row in rows if row and not _YEAR.search(row))}
    return Beside(names, numbers.difference(_MEDIA_NUMBER.findall(url)))


def _hidden(root: etree._Element) -> Iterator[str]:
    """The texts of hidden elements."""
    met: set[etree._Element] = set()
    for hidden in root.iter(*_NOT_SHOWN):
        if hidden not in met:
            met.update(hidden.iter(*_NOT_SHOWN))
            yield from map(str, hidden.itertext())


def _words(text: str, own: set[str]) -> set[str]:
    """The words of the lines of a text, and each two in a row, without the values of a URL."""
    for value in own:
        text = text.replace(value, " ")
    found: set[str] = set()
    for line in text.split("\n"):
        names = list(filter(_may_be_name, words(line)))
        found.update(names, map(" ".join, pairwise(names)))
    return found


def _may_be_name(word: str) -> bool:
    """Whether a word has no digit, as most tokens have, and is no ASCII word of one or two letters."""
    return (len(word) >= _LEAST_LETTERS or not word.isascii()) and not _DIGITS.search(word)


def _values(url: str) -> set[str]:
    """What stands in a URL and may be the id of a session."""
    return set(_VALUE.findall(unquote(without_host(url))))


def is_file(path: str) -> bool:
    """Whether the last part of a path is the name of a file, and of no page."""
    return _FILE.search(path.rpartition("/")[2]) is not None


def _hashed(text: str) -> str:
    return mmh3.hash_bytes(text.encode("utf-8", "surrogatepass")).hex()


def _name(source: str, own: set[str]) -> str:
    """``own``: values of the URL of the page, which are left out of a query. Images may be named as pages."""
    if source.startswith(_HELD):
        return _hashed(source)
    try:
        parts = urlsplit(source)
    except ValueError:
        return ""
    path = parts.path.partition(";")[0]
    name = path.rpartition("/")[2]
    query = "" if is_file(path) else unquote(parts.query)
    for value in own:
        query = query.replace(value, "")
    return _DIGITS.sub("", f"{name}?{query}" if query else name)
