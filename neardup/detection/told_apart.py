"""Canonical pages whose duplicates each have words or numbers of their own: pages of one kind, and no copies.

The pages of a section may have one headline and much text in common, with one sentence about each article.
Nobody can see by two such pages whether the one is a copy of the other, in which a sentence was changed. Many
such pages tell: each of them has words that none before has had. Copies with other session ids, clocks,
counters or orders have the same words.

Many pages may tell by their numbers, too. Clocks and counters are numbers that are others at the second time.
Versions of a page often differ in the number of the version, so it takes more pages.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from neardup.detection.page_numbers import Said

FEWEST = 3
"""Duplicates with words of their own, beside the first one, by which their canonical page is told apart."""

FEWEST_UNSURE = 10
"""As many, if they are no sure ones, or have something of their own beside their texts.

Versions of a page differ in words and titles, too, and a site has few versions.
"""

FEWEST_BY_NUMBERS = 10
"""Duplicates with different numbers after which it is asked whether the numbers of the last one last."""

_MOST_WORDS = 500_000
"""Words that are remembered, some 40 MB. The duplicates that have been quiet the longest are forgotten
first.
"""

_MOST_CANONICAL = 10_000
"""Canonical pages whose duplicates are watched, of which the same holds."""


@dataclass(slots=True, eq=False)
class _Duplicates:
    words: set[int] = field(default_factory=set)
    """Hashes, which live as long as this process."""
    with_own: int = 0
    sure_with_own: int = 0
    beside: int = 0
    """How many have something beside their text that none before has had."""
    numbers: set[int] = field(default_factory=set)
    """Hashes of all numbers of a page."""


class ToldApart:
    """Watches the duplicates of each canonical page, in one crawl.

    >>> from neardup.detection.page_numbers import Said
    >>> told_apart = ToldApart()
    >>> texts = [f"Our article is made of {stuff}" for stuff in ("wood", "wool", "steel", "clay")]
    >>> [told_apart.add(1, Said(text.split())) for text in texts]
    [False, False, False, True]
    """

    def __init__(self) -> None:
        self._duplicates: OrderedDict[int, _Duplicates] = OrderedDict()
        self._remembered = 0
        self._apart: set[int] = set()

    def __contains__(self, canonical_id: int | None) -> bool:
        """Whether a canonical page has been told apart from its duplicates."""
        return canonical_id in self._apart

    def go_on(self, apart: set[int]) -> None:
        """Go on where an earlier run of the crawl ended; the canonical pages that are told apart are kept in
        ``apart`` from now on.
        """
        self._apart = apart

    def add(self, canonical_id: int, said: Said, *, is_sure: bool = True) -> bool:
        """Take note of the words of a duplicate; whether the canonical page is told apart by that.

        Words with digits, and names of months and days, tell nothing. What the canonical page says is not
        known, so the first duplicate stands for it.
        """
        if canonical_id in self._apart:
            return False
        duplicates = self._of(canonical_id)
        before = len(duplicates.words)
        duplicates.words.update(map(hash, set(said.words) - said.numbers - said.date_words))
        self._remembered += len(duplicates.words) - before
        while self._remembered > _MOST_WORDS:
            self._forget(next(iter(self._duplicates)))
        has_own = before > 0 and len(duplicates.words) > before
        duplicates.with_own += has_own
        duplicates.sure_with_own += has_own and is_sure
        if duplicates.sure_with_own < FEWEST and duplicates.with_own < FEWEST_UNSURE:
            return False
        self.tell_apart(canonical_id)
        return True

    def add_numbers(self, canonical_id: int, numbers: Iterable[str]) -> bool:
        """Take note of the numbers of a duplicate that may be content.

        True: it is time to ask for the page once more, to find out whether its numbers last.
        """
        sorted_numbers = sorted(numbers)
        if canonical_id in self._apart or not sorted_numbers:
            return False
        known = self._of(canonical_id).numbers
        known.add(hash(tuple(sorted_numbers)))
        if len(known) < FEWEST_BY_NUMBERS:
            return False
        known.clear()
        return True

    def add_beside(self, canonical_id: int) -> None:
        """Take note of a duplicate that has something beside its text that none before has had."""
        if canonical_id not in self._apart:
            duplicates = self._of(canonical_id)
            duplicates.beside += 1
            if duplicates.beside >= FEWEST_UNSURE:
                self.tell_apart(canonical_id)

    def tell_apart(self, canonical_id: int) -> None:
        """Take the duplicates of a canonical page for pages of their own."""
        self._forget(canonical_id)
        self._apart.add(canonical_id)

    def _of(self, canonical_id: int) -> _Duplicates:
        duplicates = self._duplicates.setdefault(canonical_id, _Duplicates())
        self._duplicates.move_to_end(canonical_id)
        if len(self._duplicates) > _MOST_CANONICAL:
            self._forget(next(iter(self._duplicates)))
        return duplicates

    def _forget(self, canonical_id: int) -> None:
        if (forgotten := self._duplicates.pop(canonical_id, None)) is not None:
            self._remembered -= len(forgotten.words)
