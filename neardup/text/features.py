"""Words → hashed features with weights, under one name that is part of the scheme.

A choice is named ``BASE[+MODIFIER…]``. The bases:

- ``word-tf``: words by their frequency;
- ``word-log-tf``: 1 + ln of it;
- ``word-tfidf:FILE``: frequency × inverse document frequency from a frozen table (:mod:`neardup.text.idf`);
- ``shingle-2``, ``shingle-3``…: the set of runs of so many words, each with the weight 1.

The modifiers:

- ``stop-english`` leaves out stop words;
- ``stem-english`` (or any algorithm of Snowball) stems words;
- ``icu`` finds the words of Chinese, Japanese, Thai, Khmer, Lao and Burmese by dictionary instead of as
  bigrams.

In the canonical name, modifiers stand in this order. A table goes by its own name and contents, not by the
path of its file. ``icu`` goes by its release (``icu-78.3``), because another release has other dictionaries.
The release may be left out when ``icu`` is asked for.

Sood (2011, VII.A) used tf·idf of words after Porter's stemming and the removal of stop words. That is
``word-tfidf:FILE+stop-english+stem-porter``.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, NamedTuple

import mmh3
import numpy as np

from neardup import native
from neardup.errors import ConfigurationError
from neardup.text import feature_kernels, idf
from neardup.text.words import MOST_REMEMBERED, Parts, bigrams, dictionary_release, dictionary_words, words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]
    Weights = npt.NDArray[np.float64]

SEED = 0
"""Seed of the feature hash; part of the scheme."""

HASH = f"mmh3-x64-128-seed{SEED}"
"""The feature hash, by the name that tables of frequencies have it under."""

_SALT = np.uint64(secrets.randbits(64))
"""Of the tables that features are counted in."""

_LONGEST_REMEMBERED = 64
"""Characters: a cache of hashes stays below some 12 MB whatever comes."""

_LONGEST_STEMMED = 64
"""Characters."""

# Split as the words of pages are: "don't" is "don" and "t".
_STOP_ENGLISH = """
a about above after again all also am an and any are as at be because been before being below between both but
by can could d did do does doing don down during each few for from further had has have having he her here
hers him his how i if in into is it its just ll m may me might more most must my no nor not now of off on once
only or other our ours out over own re s same shall she should so some such t than that the their theirs them
then there these they this those through to too under until up upon us ve very was we were what when where
which while who whom whose why will with would you your yours
"""
STOP_ENGLISH = frozenset(_STOP_ENGLISH.split())


def hash_feature(feature: str) -> int:
    """Unsigned 64-bit murmur3 hash of a word: the first half of x64-128 with the scheme's seed.

    >>> hash_feature("a") == mmh3.hash64("a", 0, signed=False)[0]
    True
    """
    return mmh3.mmh3_x64_128_utupledigest(feature.encode(), SEED)[0]


class _Hashes(dict[str, int]):
    """Hashes of words seen; each distinct word is hashed once, until there are too many to keep."""

    def __init__(self, make: Callable[[str], int]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, word: str) -> int:
        value = self._make(word)
        if len(word) <= _LONGEST_REMEMBERED:
            if len(self) >= MOST_REMEMBERED:
                self.clear()
            self[word] = value
        return value

    def of(self, found: Sequence[str]) -> Hashes:
        return np.fromiter(map(self.__getitem__, found), dtype=np.uint64, count=len(found))


_HASHES = _Hashes(hash_feature)


@native.twin
def word_hashes(text: bytes, parts: Parts, check: Callable[[int], None] | None = None) -> Hashes:
    """Hashes of the words of a text in UTF-8, in their order, shape (n,).

    ``parts`` remembers runs that the native core leaves to Python, and knows how to split scripts without
    spaces. ``check`` is told the number of words, and may raise.
    """
    hashes = _HASHES.of(words(text.decode("utf-8", "surrogatepass"), parts.split, check))
    if check is not None:
        check(hashes.size)
    return hashes


_STOP_HASHES = np.array(sorted(map(hash_feature, STOP_ENGLISH)), dtype=np.uint64)


def _is_stop_word(hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Of words given by their hashes, by which features are told apart anyway."""
    places = np.minimum(np.searchsorted(_STOP_HASHES, hashes), _STOP_HASHES.size - 1)
    return np.asarray(_STOP_HASHES[places] == hashes)


class Extracted(NamedTuple):
    """What is taken from a text: its words, and the features that its fingerprint is made of."""

    words: Hashes
    """Hashes of all words in the order they stand in, shape (n,). They are neither stemmed nor left out."""
    hashes: Hashes
    """Distinct features, shape (m,)."""
    weights: Weights
    """Their weights, shape (m,), none below 0."""
    distinct_words: int


class _Base(NamedTuple):
    """How far apart near-duplicates may be in fingerprints of these features."""

    max_distance: int
    """Where the distance alone decides."""
    verified_max_distance: int
    """Where sketches decide, and the distance only proposes."""


_BASES = {
    "word-tf": _Base(3, 8),
    "word-log-tf": _Base(3, 8),
    "word-tfidf": _Base(3, 12),
    "shingle": _Base(6, 11),
}
_WIDEST = 10
"""Words of a shingle at most: those of Broder's first experiments."""

_MODIFIERS = re.compile(
    r"(?P<base>.*?)(?P<modifiers>(?:\+(?:stop-\w*|stem-\w*|icu(?:-[0-9.]+)?))*)", re.DOTALL
)
_SHINGLE = re.compile(r"shingle-([1-9][0-9]?)", re.ASCII)

DEFAULT = "word-tf"


class Features:
    """One choice of features; ``name`` is its canonical name.

    The caches and the stemmer of a choice belong to one thread. Raises ConfigurationError if there is no such
    choice. Also raises ConfigurationError if a choice needs what is not installed, or a table that cannot be
    used.
    """

    def __init__(self, name: str = DEFAULT) -> None:
        match = _MODIFIERS.fullmatch(name)
        assert match is not None  # the expression fits every text
        base: str = match["base"]
        modifiers = _modifiers(name, match["modifiers"])
        self._parts = Parts(dictionary_words() if modifiers.icu is not None else bigrams)
        self._without = STOP_ENGLISH if modifiers.stop else frozenset()
        self._stems = None if modifiers.stem is None else _Hashes(_hash_of_stem(name, modifiers.stem))
        self._frequencies: idf.Frequencies | None = None
        self._width = 0
        kind, _, file = base.partition(":")
        if kind == "word-tfidf" and file:
            self._frequencies = idf.load(file)
            _check_table(self._frequencies, name, modifiers)
            base = f"{kind}:{self._frequencies.identity}"
        elif (shingle := _SHINGLE.fullmatch(base)) and int(shingle[1]) <= _WIDEST:
            kind, self._width = "shingle", int(shingle[1])
        elif base not in {"word-tf", "word-log-tf"}:
            raise ConfigurationError(
                f"there are no features {name!r}, but word-tf, word-log-tf, word-tfidf:FILE and shingle-1 to"
                f" shingle-{_WIDEST}, and to each of them +stop-english, +stem-LANGUAGE and +icu"
            )
        self.name = f"{base}{modifiers}"
        self._logarithmic = kind == "word-log-tf"
        self.max_distance, self.verified_max_distance = _BASES[kind]

    def extract(self, text: str | bytes, check: Callable[[int], None] | None = None) -> Extracted:
        """Words and features of a visible text, or of its UTF-8.

        All are empty if it has no words. A text of stop words only has no features.

        ``check`` is told the number of words, and may raise.
        """
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogatepass")
        hashes = kept = word_hashes(text, self._parts, check)
        distinct, counts = feature_kernels.count(hashes, _SALT)
        distinct_words = distinct.size
        if self._stems is not None:
            kept = self._stems.of(self._kept(text))
            distinct, counts = feature_kernels.count(kept, _SALT)
        elif self._without:
            kept = hashes[~_is_stop_word(hashes)] if self._width else hashes
            is_kept = ~_is_stop_word(distinct)
            distinct, counts = distinct[is_kept], counts[is_kept]
        if self._width:
            distinct, _ = feature_kernels.count(feature_kernels.shingles(kept, self._width), _SALT)
            counts = np.ones(distinct.size)
        elif self._logarithmic:
            counts = 1.0 + np.log(counts)
        elif self._frequencies is not None:
            counts *= self._frequencies.weights(distinct)
        return Extracted(hashes, distinct, counts, distinct_words)

    def words(self, text: str) -> list[str]:
        """The words whose hashes :meth:`extract` gives, in their order."""
        return words(text, self._parts.split)

    def _kept(self, text: bytes) -> list[str]:
        """The words without stop words."""
        found = self.words(text.decode("utf-8", "surrogatepass"))
        return [word for word in found if word not in self._without]


class _Modifiers(NamedTuple):
    """What the modifiers of a choice ask for, ``icu`` as its release; as text they stand in their canonical
    order.
    """

    stop: bool
    stem: str | None
    icu: str | None

    def __str__(self) -> str:
        stem = "" if self.stem is None else f"+stem-{self.stem}"
        icu = "" if self.icu is None else f"+icu-{self.icu}"
        return f"{'+stop-english' * self.stop}{stem}{icu}"


def _modifiers(name: str, given: str) -> _Modifiers:
    values: dict[str, str] = {}
    for modifier in given.split("+")[1:]:
        kind, _, value = modifier.partition("-")
        if kind in values:
            raise ConfigurationError(f"features {name!r}: +{kind} stands there twice")
        values[kind] = value
    if values.get("stop", "english") != "english":
        raise ConfigurationError(f"features {name!r}: the only list of stop words is stop-english")
    release = dictionary_release() if "icu" in values else None
    if values.get("icu") and values["icu"] != release:
        raise ConfigurationError(
            f"features {name!r}: the release of ICU is {release} here; ask for +icu, and what was made by"
            " another release"
            " must be made again"
        )
    return _Modifiers("stop" in values, values.get("stem"), release)


def _hash_of_stem(name: str, language: str) -> Callable[[str], int]:
    """Word → hash of its stem, by Snowball."""
    try:
        # Not snowballstemmer, which turns to Python without a word where this package is missing.
        import Stemmer  # noqa: PLC0415  # an extra
    except ImportError as exc:
        raise ConfigurationError(f"features {name!r} need Snowball: pip install 'neardup[stem]'") from exc
    languages: list[str] = Stemmer.algorithms()
    if language not in languages:
        raise ConfigurationError(f"features {name!r}: stem-LANGUAGE can be {', '.join(languages)}")
    # A stem is asked for once a word, so the stemmer need not remember any.
    stem: Callable[[str], str] = Stemmer.Stemmer(language, 0).stemWord
    # Some take quadratic time: the Serbian one 30 s for a "word" of a megabyte. So long ones have no stem
    # anyway.
    return lambda word: hash_feature(stem(word) if len(word) <= _LONGEST_STEMMED else word)


def _check_table(table: idf.Frequencies, name: str, modifiers: _Modifiers) -> None:
    if table.hashed_by != HASH:
        raise ConfigurationError(
            f"features {name!r}: the words of the table are hashed by {table.hashed_by}, not {HASH}; learn"
            " it again"
        )
    # A table may hold words that are left out here, but the stems of one are not the words of another.
    if table.modifiers not in {str(modifiers), str(modifiers._replace(stop=False))}:
        raise ConfigurationError(
            f"features {name!r}: the table was learned with {table.modifiers or 'plain words'};"
            f" take word-tfidf:FILE{table.modifiers}, or learn one with --modifiers '{str(modifiers)[1:]}'"
        )
