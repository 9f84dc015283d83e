r"""Text → weighted features: the words of a page and how often each occurs (``word-tf``).

A word is a run of ``\w`` as the ``regex`` module sees it, which unlike ``re`` keeps the combining marks that Indic
scripts, Arabic and Thai cannot do without. Words are case-folded and NFC-normalised, so neither the case nor the
composed or decomposed form of the text shows in the features.

Chinese, Japanese, Thai, Khmer, Lao and Burmese put no spaces between words. Their runs become overlapping character
bigrams, which need no dictionary and no guess at the language; a run of one character is a feature by itself. Such a
run ends where the script ends, so "Python入門" is "python" and "入門". Korean has spaces and keeps its words.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from itertools import chain
from operator import add
from typing import TYPE_CHECKING

import regex

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "word-tf"
"""Name of these features; part of the scheme that fingerprints are stored under."""

_RANGES = r"[\u0E00-\u1FFF\u2E80-\U0010FFFF]"
"""Nothing below lies outside. A range is cheap to try first: French text is searched six times as fast with it."""

_NOT_SHARED = r"--[\p{Script=Inherited}\u02BC]"
"""Not the tilde or the apostrophe that Thai shares with the rest: they stay in the word they stand in."""

# Script extensions, not scripts: ー, 〆 and the vertical repeat marks belong to no single script.
_UNSPACED_SCRIPTS = (
    r"\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}",
    r"\p{scx=Thai}",
    r"\p{scx=Khmer}",
    r"\p{scx=Lao}",
    r"\p{scx=Myanmar}",
)


def _word_characters(scripts: str) -> str:
    return rf"[{_RANGES}&&\w&&[{scripts}]{_NOT_SHARED}]"


UNSPACED = _word_characters("".join(_UNSPACED_SCRIPTS))
"""Set (``regex`` syntax, version 1) of the word characters of all scripts that are written without spaces."""

_WORD = regex.compile(r"\w+")
_UNSPACED = regex.compile(UNSPACED, regex.V1)
_RUNS = "|".join(rf"{s}(?:{s}|\p{{M}})*+" for s in map(_word_characters, _UNSPACED_SCRIPTS))
_UNSPACED_RUN = regex.compile(rf"(?={_RANGES})({_RUNS})", regex.V1)

_ASCII_WORDS = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() or chr(byte) == "_" else ord(" ") for byte in range(128)
) + bytes(range(128, 256))
"""Translation of UTF-8 that leaves lower-case ASCII words, spaces, and all other characters as they are."""

_MOST_OTHERS = 4
"""One word in so many may have other characters than ASCII before it pays to look at the text as a whole."""

_LONG_MARKS = regex.compile(r"[[^\p{ccc=0}]||[\u0F73\u0F75\u0F81]]{64,}", regex.V1)
"""Long runs of combining characters, and of the three that are none but decompose into nothing else."""


def word_counts(text: str) -> Counter[str]:
    """The words of ``text`` with their frequencies.

    >>> word_counts("The page, the PAGE") == {"the": 2, "page": 2}
    True
    >>> sorted(word_counts("Python入門書"))
    ['python', '入門', '門書']
    """
    # Most words of most pages have only ASCII characters: split and counted in C, they need no expression, and what
    # is left is looked at word by distinct word. Counted by an expression, 92 pages of the Clang manual took twice as long.
    text = _nfc(text)
    data = text.encode("utf-8", "surrogatepass").translate(_ASCII_WORDS)
    counts = Counter(data.decode("utf-8", "surrogatepass").split())
    others = [word for word in counts if not word.isascii()]
    if len(others) * _MOST_OTHERS > len(counts):
        return _count_any(text)
    for other in others:
        times = counts.pop(other)
        for word, frequency in _count_any(other).items():
            counts[word] += times * frequency
    return counts


def _count_any(text: str) -> Counter[str]:
    """:func:`word_counts` for text of any script."""
    text = _nfc(_nfc(text).casefold())
    if _UNSPACED.search(text) is None:
        return Counter(_WORD.findall(text))
    # Split at a group: what stands between the runs and the runs themselves, in turn.
    pieces = _UNSPACED_RUN.split(text)
    counts = Counter(_WORD.findall(" ".join(pieces[::2])))
    counts.update(chain.from_iterable(map(_bigrams, pieces[1::2])))
    return counts


def _bigrams(run: str) -> Iterable[str]:
    return map(add, run, run[1:]) if len(run) > 1 else (run,)


def _nfc(text: str) -> str:
    if unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", _LONG_MARKS.sub(_in_canonical_order, text))


def _in_canonical_order(marks: regex.Match[str]) -> str:
    # CPython puts marks in order by insertion: one unsorted run of 40,000 took 1.2 s, of 80,000 4.8 s, so a hostile page of
    # a megabyte would hold up the crawl for minutes. Sorted beforehand by the same key, they take no time.
    decomposed = "".join(unicodedata.normalize("NFD", mark) for mark in marks[0])
    return "".join(sorted(decomposed, key=unicodedata.combining))
