"""What the headlines of two pages say about whether the pages are one."""

from __future__ import annotations

from enum import Enum
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

import numpy as np

from neardup.detection import frequency_kernels
from neardup.text import headline
from neardup.text.headline import DATE_OR_NUMBER, TITLE_WORDS
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.detection.frequency_kernels import Site
    from neardup.text.headline import Headline

_MOST_CHARACTERS = 500
"""Characters of a name that are read."""

_CHAPTERS = 1000
"""Numbers below are taken for those of chapters and sections. Years and numbers of articles are above."""

_NO_NAMES = frozenset({"index", "default"})
"""What stands for a folder, whichever it is."""


class Likeness(Enum):
    """How two headlines compare."""

    UNKNOWN = frequency_kernels.UNKNOWN
    """No headline, one that many pages have, or another number."""
    SAME = frequency_kernels.SAME
    """No rare word differs, and the headline says what the page is about."""
    DIFFERENT = frequency_kernels.DIFFERENT
    """A rare word differs."""
    NAMED_APART = 4
    """A word differs that is common, or a number, and the names of the files differ in the same word."""
    RENUMBERED = 5
    """Only the numbers of chapters or sections differ, and the files have one name."""
    REWORDED = frequency_kernels.REWORDED
    """As ``SAME``, but a word differs, common or a number, or words may differ that are not kept."""


_LIKENESSES = {each.value: each for each in Likeness}


class Sites(Protocol):
    """What is known of the headlines of hosts."""

    def site(self, host: str) -> Site:
        """The counts of a host's headlines, or None where nothing is known of the host; and its limit."""


def compare_many(
    own: Headline,
    own_host: str,
    others: npt.NDArray[np.uint32],
    other_hosts: Sequence[str],
    frequencies: Sites,
) -> list[Likeness]:
    """Compare the headline of a page with n others, shape (n, 20), of pages of these hosts.

    A word that is not rare on its host says nothing: the name of a site, "print", a version. A rare number
    says little: it may be that of a version, a chapter or a visitor, but also that of a product. So does the
    name of a month or a weekday. A title that many pages have says nothing either. Then the headings are
    compared.

    "Shirt, red" and "Shirt, black" differ in words that are common in a shop, "Archive 2025/03" and "Archive
    2025/04" in numbers. Such headlines are reworded. So are "Shirt" and "Shirt, red", and those whose last
    words are not kept: a shop may write the colour at the end.
    """
    found = np.empty(len(others), dtype=np.int8)
    own_site = frequencies.site(own_host)
    places_of: dict[str, list[int]] = {}
    for place, host in enumerate(other_hosts):
        places_of.setdefault(host, []).append(place)
    for host, places in places_of.items():
        found[places] = frequency_kernels.likenesses(own, own_site, others[places], frequencies.site(host))
    return [_LIKENESSES[code] for code in found.tolist()]


def are_named_apart(one: Headline, url: str, other: Headline, other_url: str) -> bool:
    """Whether the headlines of two pages differ in a word in which the names of their files differ, too.

    So do "Release 3.35.3" at ``3_35_3.html`` and "Release 3.35.4" at ``3_35_4.html``, but not the versions of
    one page in two folders. Common words and numbers say nothing in a headline alone; the name says that the
    word tells pages apart.
    """
    if one.tobytes() == other.tobytes():
        return False  # so it is with most versions of a page, and the names take long
    if "?" not in url and "?" not in other_url and url.rpartition("/")[2] == other_url.rpartition("/")[2]:
        return False  # most versions of a page have one name
    mine, theirs, _ = _words_apart(one, other)
    words = mine | theirs
    return bool(words) and not words.isdisjoint(_name_words(url) ^ _name_words(other_url))


def are_renumbered(one: Headline, url: str, other: Headline, other_url: str) -> bool:
    """Whether the headlines of two pages differ in numbers of chapters only, and the files have one name.

    So do "9.24. Array Functions" at ``13/functions-array.html`` and "9.25. Array Functions" at
    ``15/functions-array.html``. A number that stands in the URL of its page tells the page from others. So
    does a query.
    """
    (path, query), (other_path, other_query) = _path_and_query(url), _path_and_query(other_url)
    if query or other_query or not _have_one_name(path, other_path):
        return False
    mine, theirs, both = _words_apart(one, other)
    return (
        bool(mine | theirs)
        and mine | theirs <= _chapter_numbers()
        and any(not word & DATE_OR_NUMBER for word in both)
        and mine.isdisjoint(_path_words(path))
        and theirs.isdisjoint(_path_words(other_path))
    )


def _have_one_name(path: str, other: str) -> bool:
    """Whether the last segments of two paths are one, and the name of a file."""
    name = path.rpartition("/")[2]
    return name == other.rpartition("/")[2] and name.partition(".")[0].lower() not in {"", *_NO_NAMES}


def _path_and_query(url: str) -> tuple[str, str]:
    """Both are empty if the URL is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", ""
    return parts.path, parts.query


def _path_words(path: str) -> frozenset[int]:
    """The words of a path with its folders, hashed as those of headlines are."""
    text = unquote(path[-_MOST_CHARACTERS:]).replace("_", " ")
    return frozenset(map(headline.word_hash, words(text)))


@cache
def _chapter_numbers() -> frozenset[int]:
    return frozenset(headline.word_hash(str(number)) for number in range(_CHAPTERS))


def _words_apart(one: Headline, other: Headline) -> tuple[set[int], set[int], set[int]]:
    """The words of a title that the other title has not, the other way round, and those of both; with those
    of headings likewise.

    A part of a headline that one of the pages has not got tells nothing.
    """
    only, beside, both = set[int](), set[int](), set[int]()
    for part in (slice(0, TITLE_WORDS), slice(TITLE_WORDS, None)):
        mine, theirs = (set(each[part].tolist()) - {0} for each in (one, other))
        if mine and theirs:
            only |= mine - theirs
            beside |= theirs - mine
            both |= mine & theirs
    return only, beside, both


def _name_words(url: str) -> frozenset[int]:
    """The words of the last segment of a URL's path, hashed as those of headlines are. Most are names of
    files.

    The name of a folder is none, so that versions of a manual in folders of their own have no such words.
    """
    return _words_of_name(_path_and_query(url)[0].rpartition("/")[2][:_MOST_CHARACTERS])


@lru_cache(1000)  # versions of a page have one name
def _words_of_name(name: str) -> frozenset[int]:
    return frozenset(map(headline.word_hash, words(unquote(name).replace("_", " "))))
