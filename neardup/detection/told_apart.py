"""Canonical pages whose duplicates each have words of their own: pages of one kind, and no copies.

The pages of a section may have one headline and much text in common, with one sentence about each article.
Nobody can see by two such pages whether the one is a copy of the other, in which a sentence was changed. Many
such pages tell: each of them has words that none before has had. Copies with other session ids, clocks,
counters or orders have the same words.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from neardup.detection.page_numbers import is_number
from neardup.text.headline import date_words
from neardup.text.words import words

FEWEST = 3
"""Duplicates with words of their own, beside the first one, by which their canonical page is told apart."""

_MOST_WORDS = 500_000
"""Words that are remembered, some 40 MB. The duplicates that have been quiet the longest are forgotten
first.
"""


@dataclass(slots=True, eq=False)
class _Duplicates:
    words: set[int] = field(default_factory=set)
    """Hashes, which live as long as this process."""
    with_own: int = 0


class ToldApart:
    """Watches the duplicates of each canonical page, in one crawl.

    >>> told_apart = ToldApart()
    >>> texts = [f"Our article is made of {stuff}" for stuff in ("wood", "wool", "steel", "clay")]
    >>> [told_apart.add(1, text) for text in texts]
    [False, False, False, True]
    >>> any(told_apart.add(2, f"There are {number} visitors today") for number in range(9))
    False
    """

    def __init__(self) -> None:
        self._duplicates: OrderedDict[int, _Duplicates] = OrderedDict()
        self._remembered = 0
        self._apart: set[int] = set()

    def __contains__(self, canonical_id: int | None) -> bool:
        """Whether a canonical page has been told apart from its duplicates."""
        return canonical_id in self._apart

    def add(self, canonical_id: int, text: str) -> bool:
        """Take note of the text of a duplicate; whether the canonical page is told apart by that.

        Words with digits, and names of months and days, tell nothing. What the canonical page says is not
        known, so the first duplicate stands for it.
        """
        if canonical_id in self._apart:
            return False
        said = {hash(word) for word in set(words(text)) - date_words() if not is_number(word)}
        duplicates = self._duplicates.setdefault(canonical_id, _Duplicates())
        self._duplicates.move_to_end(canonical_id)
        before = len(duplicates.words)
        duplicates.words |= said
        self._remembered += len(duplicates.words) - before
        duplicates.with_own += before > 0 and len(duplicates.words) > before
        if duplicates.with_own >= FEWEST:
            self._remembered -= len(self._duplicates.pop(canonical_id).words)
            self._apart.add(canonical_id)
            return True
        while self._remembered > _MOST_WORDS and len(self._duplicates) > 1:
            self._remembered -= len(self._duplicates.popitem(last=False)[1].words)
        return False
