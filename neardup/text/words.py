r"""Text → words, of every script.

A word is a run of ``\w`` as the ``regex`` module sees it. Unlike ``re``, ``regex`` keeps the combining marks
that Indic scripts, Arabic and Thai cannot do without. Words are case-folded and NFC-normalised, so neither
the case nor the composed or decomposed form of the text shows in the features.

Chinese, Japanese, Thai, Khmer, Lao and Burmese put no spaces between words. Runs of these scripts become
overlapping character bigrams, which need no dictionary and no guess at the language. A run of one character
is a feature by itself. Such a run ends where the script ends, so "Python入門" is "python" and "入門". Korean
has spaces and keeps its words. Instead of as bigrams, such runs can be read by the dictionaries of ICU
(:func:`dictionary_words`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from operator import add
from typing import TYPE_CHECKING, TypeAlias

import regex

from neardup import native
from neardup.errors import ConfigurationError
from neardup.text.characters import UNSPACED, UNSPACED_RANGES, UNSPACED_SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterator

Splitter: TypeAlias = Callable[[str], Iterable[str]]
"""Makes words of a run of characters of a script without spaces."""

_WORD = regex.compile(r"\w+")
_UNSPACED = regex.compile(UNSPACED, regex.V1)
_RUNS = "|".join(rf"{script}(?:{script}|\p{{M}})*+" for script in UNSPACED_SCRIPTS)
_UNSPACED_RUN = regex.compile(rf"(?={UNSPACED_RANGES})({_RUNS})", regex.V1)

_ASCII_WORDS = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() or chr(byte) == "_" else ord(" ") for byte in range(128)
) + bytes(range(128, 256))
"""Translation of UTF-8 that leaves lower-case ASCII words, spaces, and all other characters as they are."""

_MOST_OTHERS = 4
"""One word in so many may have other characters than ASCII before it pays to look at the text as a whole."""

SIGNS = "\u00a0\u00a7\u00a9\u00ab\u00ae\u00b0\u00b6\u00b7\u00bb\u00d7"
SIGNS += "\u2013\u2014\u2018\u2019\u201c\u201d\u2022\u2026\u2190\u2192\u2122"
"""Signs that are no part of a word (§ © « » – ’ “ ” …). Most texts that have nothing else beyond ASCII have
such signs.
"""

MOST_REMEMBERED = 1 << 16
_LONGEST_REMEMBERED = 128
"""Runs and bytes: some 12 MB at most, whatever comes."""

_NO_ICU = "features with +icu need ICU: pip install 'neardup[icu]'"

_LONG_MARKS = regex.compile(r"[[^\p{ccc=0}]||[\u0F73\u0F75\u0F81]]{32,}", regex.V1)
"""Long runs of combining characters, and of the three that are none but decompose into nothing else."""


def bigrams(run: str) -> Iterable[str]:
    """Overlapping pairs of characters; of a single one itself.

    >>> list(bigrams("入門書"))
    ['入門', '門書']
    """
    return map(add, run, run[1:]) if len(run) > 1 else (run,)


def dictionary_words() -> Splitter:
    """The splitter by the dictionaries of ICU; ConfigurationError if it is not installed.

    It takes about 7 µs a run, and 0.25 µs a character of long ones whatever they are. Dictionaries change
    from one release of ICU to another, and with them a few words.
    """
    try:
        from icu4py.breakers import WordBreaker  # noqa: PLC0415  # an extra
    except ImportError as exc:
        raise ConfigurationError(_NO_ICU) from exc

    def split(run: str) -> Iterator[str]:
        # ICU has one dictionary for Chinese and Japanese and takes it for every language, so none is named.
        return iter(WordBreaker(run, "root"))

    return split


def dictionary_release() -> str:
    """The release of ICU, such as ``78.3``; ConfigurationError if it is not installed."""
    try:
        from icu4py import icu_version  # noqa: PLC0415  # an extra
    except ImportError as exc:
        raise ConfigurationError(_NO_ICU) from exc
    return str(icu_version)


class Parts(dict[bytes, bytes]):
    """What the native core leaves to Python: the words in a run of word characters, both in UTF-8. Words have
    NULs between them.

    The last runs are remembered. ``split`` is for scripts without spaces.
    """

    def __init__(self, split: Splitter = bigrams) -> None:
        super().__init__()
        self.split = split
        self.scripts = split is not bigrams
        """Whether runs of scripts without spaces are asked for as well."""

    def __missing__(self, run: bytes) -> bytes:
        found = "\0".join(parts(_decoded(run), self.split)).encode("utf-8", "surrogatepass")
        if len(run) <= _LONGEST_REMEMBERED:
            if len(self) >= MOST_REMEMBERED:
                self.clear()
            self[run] = found
        return found

    @staticmethod
    def in_nfc(text: bytes) -> bytes:
        """A text in UTF-8 in NFC."""
        return nfc(_decoded(text)).encode("utf-8", "surrogatepass")


@native.twin
def words(text: str, split: Splitter = bigrams, check: Callable[[int], None] | None = None) -> list[str]:
    """The words of ``text`` in the order they stand in; ``split`` is for scripts without spaces.

    ``check`` is told how many there are at least, as soon as that is known, and may raise.

    >>> words("The page, the PAGE")
    ['the', 'page', 'the', 'page']
    >>> words("Python入門書")
    ['python', '入門', '門書']
    """
    # Most words of most pages have only ASCII characters. Split in C, such words need no expression. What is
    # left is looked at distinct word by distinct word. Found by an expression, the words of 92 pages of the
    # Clang manual took twice as long.
    text = nfc(text)
    if not text.isascii():
        for sign in SIGNS:
            text = text.replace(sign, " ")
    data = text.encode("utf-8", "surrogatepass").translate(_ASCII_WORDS)
    found = data.decode("utf-8", "surrogatepass").split()
    if check is not None:
        check(len(found))
    if text.isascii():
        return found
    others = [word for word in set(found) if not word.isascii()]
    if len(others) * _MOST_OTHERS > len(found):
        return parts(text, split)
    parted = {other: parts(other, split) for other in others}
    return [part for word in found for part in parted.get(word, (word,))]


def parts(text: str, split: Splitter = bigrams) -> list[str]:
    """:func:`words` by expressions."""
    text = nfc(nfc(text).casefold())
    if _UNSPACED.search(text) is None:
        return _WORD.findall(text)
    found: list[str] = []
    # Split at a group: what stands between the runs and the runs themselves, in turn.
    for place, piece in enumerate(_UNSPACED_RUN.split(text)):
        found.extend(split(piece) if place % 2 else _WORD.findall(piece))
    return found


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")


def nfc(text: str) -> str:
    if unicodedata.is_normalized("NFC", text):
        return text
    return unicodedata.normalize("NFC", _LONG_MARKS.sub(_in_canonical_order, text))


def _in_canonical_order(marks: regex.Match[str]) -> str:
    # CPython puts marks in order by insertion: one unsorted run of 40,000 took 1.2 s, of 80,000 4.8 s. So a
    # hostile page of a megabyte would hold up the crawl for minutes. Marks sorted beforehand by the same key
    # take no time.
    run = marks[0]
    decomposed = run.translate({ord(mark): unicodedata.normalize("NFD", mark) for mark in set(run)})
    return "".join(sorted(decomposed, key=unicodedata.combining))
