"""Text for made sites: sentences and words of the real pages in ``tests/pages``, drawn with a seed."""

from __future__ import annotations

import hashlib
import random
import re
from functools import cache
from itertools import count
from typing import TYPE_CHECKING

from lxml import html

from tests.support.places import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

_PAGES = PAGES
_FOLDERS = (
    "clang-13",
    "clang-14",
    "clang-15",
    "clang-16",
    "apache/de",
    "apache/es",
    "apache/fr",
    "apache/tr",
)
"""Those in scripts with spaces: a number of words is asked for."""

_LEAST_WORDS, _MOST_WORDS = 6, 40
"""Of a sentence; what is shorter is a heading or a menu, what is longer is code."""


@cache
def sentences() -> tuple[str, ...]:
    """All sentences of the real pages, each once."""
    found: dict[str, None] = {}
    for folder in _FOLDERS:
        for file in sorted((_PAGES / folder).rglob("*.html")):
            for element in html.fromstring(file.read_bytes()).iter("p", "li", "dd"):
                text = " ".join("".join(map(str, element.itertext())).split())
                for sentence in re.split(r"(?<=[.!?])\s+", text):
                    if _LEAST_WORDS <= len(sentence.split()) <= _MOST_WORDS:
                        found[sentence.translate({ord(c): " " for c in '<>&"'})] = None
    return tuple(found)


@cache
def vocabulary() -> tuple[str, ...]:
    """The words of four to ten letters of the English pages."""
    english = " ".join(sentence for sentence in sentences() if sentence.isascii())
    return tuple(sorted(set(re.findall(r"\b[a-z]{4,10}\b", english))))


def digest(text: str) -> str:
    """32 hexadecimal digits for a text, as ids and addresses have them."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def prose(seed: str, words: int) -> str:
    """Sentences drawn at random, of so many words; the same for the same seed."""
    draw = random.Random(seed)
    chosen: list[str] = []
    while len(chosen) < words:
        chosen += draw.choice(sentences()).split()
    return " ".join(chosen[:words])


def passage(seed: str, words: int) -> str:
    """Sentences in a random order, none twice as long as there are others, of so many words: the frame of a
    site's pages.
    """
    draw = random.Random(seed)
    chosen: list[str] = []
    while len(chosen) < words:
        for sentence in draw.sample(sentences(), len(sentences())):
            chosen += sentence.split()
    return " ".join(chosen[:words])


def names(seed: str) -> Iterator[str]:
    """Names of three words, each once: ``Static Folder Warning``."""
    draw = random.Random(seed)
    given: set[str] = set()
    for _ in count():
        name = " ".join(draw.sample(vocabulary(), 3)).title()
        if name not in given:
            given.add(name)
            yield name
