"""Pages that a site serves, with status 200, in place of pages that it does not have.

Source: Bar-Yossef, Broder, Kumar, Tomkins, "Sic transit gloria telae: towards an understanding of the web's
decay" (WWW 2004). They ask for a page that surely does not exist, by a random name in the directory of a
page. If the answer is like that page, the page is a *soft 404*. The root of a site is none, whatever the
answer is. They ask about each page. Here, such a *probe* is made only where pages under several names have
proved copies of one page, once in a directory. So a site without such pages is asked for nothing more.

A soft 404 may name what was asked for. Such pages are told by what is left of their texts without their own
names (:func:`without_name`).
"""

from __future__ import annotations

import random
import re
import string
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

import mmh3

from neardup.address import place_of
from neardup.urls.parts import Parts, parts_of, plain_spelling

if TYPE_CHECKING:
    from collections.abc import Iterable

FEWEST_NAMES = 5
"""Different names of copies of one page before a probe is made.

The same page in another directory has the same name: a version of a manual, a mirror, a print view.
"""

MOST_PROBES = 4
"""Probes of one site, whatever comes of them."""

NAME_LETTERS = 25
"""Letters of a random name, as many as Bar-Yossef et al. take."""

MOST_PAGES = 64
"""Copies of a page that are remembered to be marked, should they be soft 404s."""

MOST_WATCHED = 10_000
"""Sites and clusters that are remembered, 20 MB at most. Of each, the one that has been quiet the longest is
forgotten first.
"""

_EXTENSION = re.compile(r"\.[A-Za-z][0-9A-Za-z]{0,5}$")


class Probe(NamedTuple):
    """A page to be asked for that surely does not exist, and the site that is asked (host and port)."""

    url: str
    site: str


@dataclass(slots=True, eq=False)
class _Cluster:
    """Copies of one page on one site: hashes of their names, and their URLs by id.

    Hashes live as long as this process.
    """

    names: set[int] = field(default_factory=set)
    pages: dict[int, str] = field(default_factory=dict)
    is_soft_404: bool = False


class Soft404s:
    """Says when a probe is due, and which clusters are soft 404s, of one crawl.

    A cluster is looked at on each site by itself: what one site serves in place of missing pages may be a
    page of another. A cluster is named by the id of its canonical page. The negative number that
    :func:`without_name` gives names the pages that are alike but for their own names.
    """

    def __init__(self) -> None:
        self._clusters: OrderedDict[tuple[str, int], _Cluster] = OrderedDict()
        self._probed: OrderedDict[str, list[int]] = OrderedDict()
        """By site: hashes of the directories where a probe was made."""
        self._asked: set[str] = set()
        """Sites that have not answered a probe yet."""

    def is_soft_404(self, url: str, cluster: int) -> bool:
        """Whether a page of a cluster is a soft 404."""
        known = self._clusters.get((place_of(url), cluster))
        return known is not None and known.is_soft_404 and not is_root(url)

    def copy(self, url: str, page_id: int, cluster: int) -> Probe | None:
        """Take note of a page of a cluster with several pages; the probe that is due by that."""
        parts = parts_of(url)
        if parts is None or _is_root(parts):
            return None
        site = place_of(url)
        known = self._clusters.setdefault((site, cluster), _Cluster())
        self._clusters.move_to_end((site, cluster))
        if len(self._clusters) > MOST_WATCHED:
            self._clusters.popitem(last=False)
        if known.is_soft_404:
            return None
        if len(known.pages) < MOST_PAGES:
            known.pages[page_id] = url
        directory, name = _divided(parts)
        if len(known.names) < FEWEST_NAMES:
            known.names.add(hash(name))
        if len(known.names) < FEWEST_NAMES or not self._may_probe(site, hash(directory)):
            return None
        return Probe("/".join((parts.origin, *directory, _random_name(name, parts.segments))), site)

    def _may_probe(self, site: str, directory: int) -> bool:
        """Whether no probe was made in a directory of a site, and few in others; one is noted as made."""
        probed = self._probed.setdefault(site, [])
        self._probed.move_to_end(site)
        if len(self._probed) > MOST_WATCHED:
            self._probed.popitem(last=False)
        if site in self._asked or directory in probed or len(probed) >= MOST_PROBES:
            return False
        probed.append(directory)
        self._asked.add(site)
        return True

    def answered(self, site: str, cluster: int | None) -> dict[int, str]:
        """Note that a probe of a site is over; the pages so far that are soft 404s by that, URLs by id.

        ``cluster`` is that of the page that the answer is a copy of; None: it is a copy of none.
        """
        self._asked.discard(site)
        if cluster is None:
            return {}
        known = self._clusters.setdefault((site, cluster), _Cluster())
        known.is_soft_404 = True
        pages, known.pages = known.pages, {}
        return pages


def is_root(url: str) -> bool:
    """Whether a URL is that of the root of a site, which is no soft 404.

    >>> is_root("http://a.example/index.html?from=mail"), is_root("http://a.example/x/")
    (True, False)
    """
    parts = parts_of(url)
    return parts is not None and _is_root(parts)


def named_in(url: str, headings: Iterable[str]) -> bool:
    """Whether one of some headings names the path of a URL, or its last part.

    >>> named_in("http://a.example/x/old-news.html", ["Sorry", "There is no page old-news"])
    True
    >>> named_in("http://a.example/x/old-news.html", ["Old news"]), named_in("http://a.example/", ["/"])
    (False, False)
    """
    names = _names(url)
    if not names:
        return False
    return any(name in heading for heading in headings for name in names)


def without_name(url: str, text: str) -> int | None:
    """A negative number: the same for texts that differ in nothing but the names of their own URLs. None if
    the text does not name its URL.

    >>> one = without_name("http://a.example/x/old.html", "There is no /x/old.html here. Try old, or home.")
    >>> one == without_name("http://a.example/y/new.html", "There is no /y/new.html here. Try new, or home.")
    True
    >>> without_name("http://a.example/x/old.html", "Some news.")
    """
    blanked = text
    for name in _names(url):
        blanked = blanked.replace(name, "\0")
    if blanked == text:
        return None
    return -1 - mmh3.mmh3_x64_128_utupledigest(blanked.encode("utf-8", "surrogatepass"))[0]


def _names(url: str) -> list[str]:
    """How a page may name its own URL, the longest name first."""
    path = unquote(urlsplit(url).path)
    name = path.rstrip("/").rpartition("/")[2]
    if not name:
        return []
    return [path, path.strip("/"), name, _EXTENSION.sub("", name) or name]


def _is_root(parts: Parts) -> bool:
    return plain_spelling(parts.segments)[0] == ("",)


def _divided(parts: Parts) -> tuple[tuple[str, ...], str]:
    """The directory of a page, and its name there: that of its file or, after a last slash, of its folder."""
    names = parts.segments if parts.segments[-1] or len(parts.segments) == 1 else parts.segments[:-1]
    return names[:-1], names[-1]


def _random_name(like: str, segments: tuple[str, ...]) -> str:
    """A name that no page has. With the extension of another, or its last slash, the same program answers."""
    extension = _EXTENSION.search(like)
    last = "/" if segments[-1] == "" else ""
    letters = "".join(random.choices(string.ascii_lowercase, k=NAME_LETTERS))  # noqa: S311  # no secret
    return letters + (extension[0] if extension else "") + last
