"""The headline of a page: the words of its title and of its first main heading.

The headline tells what a page is about, also where a menu is most of the page's text. The headline is no part
of the content and changes no fingerprint.

Kept are the first distinct words, after the symbols that belong to names, such as those of "C++". Each word
is 32 bits: MurmurHash3 x86 32 of its UTF-8. Bit 0 is set if the word is a number, or the name of a month or
of a weekday. So "5 May" and "17 June" differ no more than "5.5." and "17.6." do.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import mmh3
import numpy as np

from neardup import native
from neardup.text.visible_text import text_of_tree
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt
    from lxml import etree

    Headline = npt.NDArray[np.uint32]

TITLE_WORDS = 12
"""Distinct words of a title that are kept. A Debian manual's longest title of 4,424 has 11."""

HEADING_WORDS = 8
"""Distinct words of the first heading that are kept."""

DATE_OR_NUMBER = 1
"""The bit of a word that is set if it is a number, or the name of a month or of a weekday."""

BYTES = 4 * (TITLE_WORDS + HEADING_WORDS)
"""Bytes of a headline, in memory and in the store."""

DATE_WORDS = Path(__file__).with_name("date_words.txt")
"""Names of months and days in the languages of most web pages; ``python -m tests.support.date_words`` makes
the file.
"""

SHORT_MONTHS = Path(__file__).with_name("short_months.txt")
"""Short names of months, such as ``nov``; of the same languages, and made by the same command. Most are other
words, too.
"""

_SYMBOLS = re.compile(r"[-+#*&%=<>~^|$](?<=\w.)(?:(?<!-)|(?=[-=>]))[+#*&%=<>~^|$!-]*")
"""What tells C from C++ and C#, and one operator from another. A symbol that follows no letter or digit at
once is punctuation. The class in front lets the search skip what is no symbol.
"""

_MOST_CHARACTERS = 500
_MOST_PIECES = 50
"""Pieces of text in one title that are read."""

_MOST_HEADINGS = 20
"""Headings that are looked at for words."""


def none() -> Headline:
    """The headline of a page that has neither title nor heading: zeros."""
    return np.zeros(TITLE_WORDS + HEADING_WORDS, dtype=np.uint32)


def of_tree(root: etree._Element) -> Headline:
    """The headline of a page by the lxml tree of its document, shape (20,), dtype uint32; 0 stands for no
    word.
    """
    made = none()
    _put(made, 0, _first_words(_titles(root), TITLE_WORDS))
    _put(made, TITLE_WORDS, _first_words(_headings(root), HEADING_WORDS))
    return made


def of_texts(title: str, heading: str = "") -> Headline:
    """The headline of a page with this title and this heading."""
    made = none()
    _put(made, 0, _word_hashes(title, TITLE_WORDS))
    _put(made, TITLE_WORDS, _word_hashes(heading, HEADING_WORDS))
    return made


def _titles(root: etree._Element) -> Iterator[str]:
    # Not root.iter("title"): having found the title, lxml looks for another one through the whole tree.
    head = root.find("head")
    for element in () if head is None else head.iterchildren("title"):
        # Most titles are one piece of text, which needs no iterator.
        pieces = islice(element.itertext(), _MOST_PIECES) if len(element) else [element.text or ""]
        yield " ".join(map(str, pieces))


def _headings(root: etree._Element) -> Iterator[str]:
    element = heading_after(root, None)
    for _ in range(_MOST_HEADINGS):
        if element is None:
            return
        # As the page shows it, without scripts and pictures.
        yield text_of_tree(element, alt_texts=False)
        element = heading_after(root, element)


@native.twin
def heading_after(root: etree._Element, after: etree._Element | None) -> etree._Element | None:
    """The first ``h1`` of a tree in document order after an element of the tree; None: there is none."""
    headings = root.iter("h1")
    if after is not None:
        for element in headings:
            if element is after:
                break
    return next(headings, None)


@native.twin
def titles_and_headings(root: etree._Element) -> Iterator[etree._Element]:
    """All ``title``, ``h1`` and ``h2`` of a tree in document order."""
    return root.iter("title", "h1", "h2")


def to_bytes(headline: Headline) -> bytes:
    """A headline as it is stored, the same on every machine."""
    return headline.astype("<u4").tobytes()


def from_bytes(data: bytes | None) -> Headline:
    """The headline that :func:`to_bytes` wrote; that of a page stored without one is :func:`none`."""
    return none() if data is None else np.frombuffer(data, dtype="<u4").astype(np.uint32)


def _put(headline: Headline, start: int, hashes: list[int]) -> None:
    headline[start : start + len(hashes)] = hashes


def _first_words(texts: Iterable[str], most: int) -> list[int]:
    """The words of the first text that has any."""
    return next(filter(None, (_word_hashes(text, most) for text in texts)), [])


def _word_hashes(text: str, most: int) -> list[int]:
    text = text[:_MOST_CHARACTERS]
    return hashes(_SYMBOLS.findall(text), text, most)


@native.twin
def hashes(symbols: list[str], text: str, most: int) -> list[int]:
    """Hashes of the first distinct words, of which ``symbols`` come before those of ``text``."""
    return [word_hash(word) for word in islice(dict.fromkeys([*symbols, *words(text)]), most)]


def word_hash(word: str) -> int:
    """A word as a headline keeps it, 32 bits."""
    # 2 in place of 0, which stands for no word.
    said = DATE_OR_NUMBER if word.isdigit() or word in date_words() else 0
    return (mmh3.hash(word.encode("utf-8", "surrogatepass"), signed=False) & ~DATE_OR_NUMBER | said) or 2


@cache
def date_words() -> frozenset[str]:
    """What :data:`DATE_WORDS` has."""
    return _lines(DATE_WORDS)


@cache
def short_months() -> frozenset[str]:
    """What :data:`SHORT_MONTHS` has."""
    return _lines(SHORT_MONTHS)


def _lines(file: Path) -> frozenset[str]:
    lines = file.read_text(encoding="utf-8").splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))
