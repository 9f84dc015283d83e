"""The worst mistakes, chosen and shown so that a person can judge them."""

from __future__ import annotations

import difflib
import re
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_WORDS_A_LINE = 12
_MOST_COMPARED = 5_000
_MOST_SHOWN = 24
_LONGEST_LINE = 160

_SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")


def each_page_once(pairs: Iterable[tuple[int, int]], number: int) -> list[tuple[int, int]]:
    """The first ``number`` of the pairs, no page in two of them: else one cluster would fill the list.

    >>> each_page_once([(1, 2), (2, 3), (3, 4), (5, 6)], 2)
    [(1, 2), (3, 4)]
    """
    seen: set[int] = set()
    chosen: list[tuple[int, int]] = []
    for pair in pairs:
        if len(chosen) == number:
            break
        if seen.isdisjoint(pair):
            seen.update(pair)
            chosen.append(pair)
    return chosen


def diff(a: str, b: str) -> list[str]:
    """A unified diff of two texts in lines of a few words, at most ``_MOST_SHOWN`` lines and a last one that
    counts the rest.

    A line also ends where a sentence does, so that one more word does not shift all that follows. Of long
    texts the first 60,000 words or so are compared.
    """
    lines = list(difflib.unified_diff(_lines(a), _lines(b), n=1, lineterm=""))[2:]
    shown = [line[:_LONGEST_LINE] for line in lines[:_MOST_SHOWN]]
    if len(lines) > len(shown):
        shown.append(f"… {len(lines) - len(shown):,} more lines")
    return shown


def _lines(text: str) -> list[str]:
    def wrapped() -> Iterable[str]:
        for sentence in _SENTENCE_END.split(text):
            words = sentence.split()
            for start in range(0, len(words), _WORDS_A_LINE):
                yield " ".join(words[start : start + _WORDS_A_LINE])

    return list(islice(wrapped(), _MOST_COMPARED))
