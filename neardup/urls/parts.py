"""A URL in the parts that rules speak of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from neardup.address import host_of, is_web

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CHARACTERS = 2_048
"""Of a URL that rules are learned from, and asked about."""

MOST_SEGMENTS = 12
MOST_PARAMETERS = 16
"""A URL with more of them has no rules either."""

MOST_VALUE = 64
"""Characters of a name or segment that a rule may be about; longer ones are opaque."""

OPAQUE = "~"
"""Stands for a segment that is an id of a session or the like."""

_INDEX = re.compile(r"(?:index|default)\.[a-z]{3,5}", re.IGNORECASE)
_EXTENSION = re.compile(r"\.(?:html?|xhtml|php|aspx?|jsp)", re.IGNORECASE)
_ALIAS = re.compile(r"https?://(?:www\.)?", re.IGNORECASE)
_DIGITS = re.compile(r"[0-9]+")
_ID = re.compile(r"[0-9A-Za-z_=.~-]{12,}")
_WORDS = re.compile(r"(?:%[0-9A-Fa-f]{2}|[^\W\d_])+(?:[-_.+~]+(?:%[0-9A-Fa-f]{2}|[^\W\d_])+)*")
_CHANGE = re.compile(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")


@dataclass(frozen=True)
class Parts:
    """The parts of an http(s) URL as they stand there: nothing is decoded, so nothing can be broken.

    ``origin`` is scheme, host and port. ``segments`` are those of the path without its first slash, the last
    of them the file ("" after a slash). ``parameters`` are pairs of a name and the text of the parameter.

    Parameters of the path (``;name=value`` at its end) have a ``;`` before the name. Those of a query stand
    between ``&``, or between ``;`` if there is no ``&`` and each of them has a value.
    """

    origin: str
    host: str
    segments: tuple[str, ...]
    parameters: tuple[tuple[str, str], ...]

    @cached_property
    def directory(self) -> str:
        """The shape of the directories of the path."""
        return "/".join(["", *map(shape, self.segments[:-1][:4])])

    @cached_property
    def shape(self) -> str:
        """The shape of the path."""
        return f"{self.directory}/{shape(self.segments[-1])}"


@lru_cache(1_000)  # a URL is asked about, fetched, and looked at again
def parts_of(url: str) -> Parts | None:
    """The parts of a URL; None if it is none of the web, cannot be read, or has too many parts.

    >>> parts = parts_of("http://A.example:80/x;v=1?b=2&a")
    >>> parts.origin, parts.segments, parts.parameters
    ('http://a.example:80', ('x',), ((';v', ';v=1'), ('b', 'b=2'), ('a', 'a')))
    """
    if len(url) > MOST_CHARACTERS or not is_web(url):
        return None
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        return None
    host = host_of(url)
    path, *of_path = split.path.removeprefix("/").split(";")
    segments = tuple(path.split("/"))
    pairs = list(_named(of_path, split.query))
    if not host or len(segments) > MOST_SEGMENTS or len(pairs) > MOST_PARAMETERS:
        return None
    origin = f"{split.scheme}://{host}" if port is None else f"{split.scheme}://{host}:{port}"
    return Parts(origin, host, segments, tuple(pairs))


def parameter_names(url: str) -> tuple[str, ...]:
    """The shapes of the names of the parameters of any URL, sorted, each once; none, if the URL has too many.

    >>> parameter_names("http://a.example/x;v=1?b=2&a[7]&a[8]#?c=4"), parameter_names("http://a.example/?")
    ((';v', 'a[0]', 'b'), ())
    """
    if len(url) > MOST_CHARACTERS or ("?" not in url and ";" not in url):
        return ()
    path, _, query = url.partition("#")[0].partition("?")
    named = list(_named(path.split(";")[1:], query))
    return tuple(sorted({shape(name) for name, _ in named})) if len(named) <= MOST_PARAMETERS else ()


def _named(of_path: list[str], query: str) -> Iterator[tuple[str, str]]:
    """The parameters of a path and of a query: pairs of a name and the text."""
    for pair in of_path:
        yield f";{pair.partition('=')[0]}", f";{pair}"
    for pair in _pairs(query):
        yield pair.partition("=")[0], pair


def _pairs(query: str) -> list[str]:
    pairs = query.split("&")
    others = query.split(";")
    if len(pairs) == 1 and all("=" in pair for pair in others if pair):
        pairs = others
    return [pair for pair in pairs if pair]


def without_alias(url: str) -> str:
    """A URL of the web without its scheme and ``www.``, which hardly ever matter.

    >>> without_alias("https://www.a.example/x") == without_alias("http://a.example/x")
    True
    """
    return _ALIAS.sub("", url, count=1)


@lru_cache(10_000)  # the URLs of a site have most of their segments in common
def is_opaque(segment: str) -> bool:
    """Whether a segment looks like an id that somebody drew, and not like a word, a version or a date.

    >>> [is_opaque(one) for one in ("s-4f2a90cc81d24e07", "clang-16-doc", "2026-11-23", "AddressSanitizer")]
    [True, False, False, False]
    """
    if len(segment) > MOST_VALUE:
        return True
    return bool(_ID.fullmatch(segment)) and len(_CHANGE.findall(segment)) >= 3


@lru_cache(10_000)
def shape(segment: str) -> str:
    """A segment without what tells it from its like: numbers and ids.

    >>> shape("article-17.html"), shape("s-4f2a90cc81d24e07")
    ('article-0.html', '~')
    """
    return OPAQUE if is_opaque(segment) else _DIGITS.sub("0", segment)


def url_shape(url: str) -> str:
    """What the URLs of pages of one kind have in common; "" if a URL cannot be read.

    That is the site, the shape of the path, and the names of the parameters. If there are none, the words of
    the last name of the path stand for the page, and are left out.

    >>> url_shape("http://a.example/event/jazz-night/"), url_shape("http://a.example/day?date=2026-11-29")
    ('http://a.example/event/a', 'http://a.example/day?date')
    """
    parts = parts_of(url)
    if parts is None:
        return ""
    *folders, name = [segment for segment in parts.segments if segment] or [""]
    if not parts.parameters and not is_opaque(name):
        name = _WORDS.sub("a", name)
    path = "/".join([parts.origin, *map(shape, folders[:4]), shape(name)])
    return "?".join((path, *parameter_names(url)))


def plain_spelling(segments: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """A path in lower case, without index file, extension and last slash; and the names of what was changed.

    >>> plain_spelling(("Docs", "index.html"))
    (('docs',), 'case index')
    >>> plain_spelling(("docs", "")), plain_spelling(("docs", "a.htm"))
    ((('docs',), 'slash'), (('docs', 'a'), 'extension'))
    """
    changed = []
    plain = [segment.lower() for segment in segments]
    if tuple(plain) != segments:
        changed.append("case")
    if _INDEX.fullmatch(plain[-1]):
        plain[-1] = ""
        changed.append("index")
    elif found := _EXTENSION.search(plain[-1]):
        if found.end() == len(plain[-1]):
            plain[-1] = plain[-1][: found.start()]
            changed.append("extension")
    elif len(plain) > 1 and not plain[-1]:
        changed.append("slash")
    if len(plain) > 1 and not plain[-1]:
        plain.pop()
    return tuple(plain), " ".join(changed)
