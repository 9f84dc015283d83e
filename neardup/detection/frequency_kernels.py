"""Loops over the counts of a host (:mod:`neardup.detection.document_frequencies`) and over headlines.

A table of counts has the shape (2, cells) and the dtype uint16; the number of cells is a power of two. A key
has one cell in each row: by the low bits of its lower and of its upper half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import native
from neardup.text.headline import TITLE_WORDS

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.text.headline import Headline

    Cells = npt.NDArray[np.uint16]
    Headlines = npt.NDArray[np.uint32]
    Keys = npt.NDArray[np.uint64]
    Site = tuple[Cells | None, int]

UNKNOWN, SAME, DIFFERENT, REWORDED = 0, 1, 2, 3
"""What :func:`likenesses` gives."""

MOST_COUNT = (1 << 16) - 1
_HALF = np.uint64(32)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_WHOLE = np.uint64(0xD6E8FEB86659FD93)


@native.twin
def look_up(cells: Cells, keys: Keys) -> npt.NDArray[np.uint16]:
    """The counts of keys, shape (n,): of the two cells the lesser."""
    first, second = _places(cells, keys)
    return np.asarray(np.minimum(cells[0, first], cells[1, second]))


@native.twin
def count(cells: Cells, keys: Keys) -> int:
    """Raise the counts of keys by one, a key that is repeated once (conservative update).

    Returns how many cells of the first row were 0 before.
    """
    first, second = _places(cells, keys)
    taken = np.unique(first[cells[0, first] == 0]).size
    raised = np.minimum(np.minimum(cells[0, first], cells[1, second]), MOST_COUNT - 1) + np.uint16(1)
    np.maximum.at(cells[0], first, raised)
    np.maximum.at(cells[1], second, raised)
    return int(taken)


def _places(cells: Cells, keys: Keys) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    mask = np.uint64(cells.shape[1] - 1)
    return (keys & mask).astype(np.int64), ((keys >> _HALF) & mask).astype(np.int64)


def word_keys(words: Headlines) -> Keys:
    """The keys that words of headlines are counted by; of the same shape."""
    wide = words.astype(np.uint64)
    mixed = (wide >> np.uint64(1)) * _STEP
    return np.asarray(mixed ^ (mixed >> _HALF) ^ (wide & np.uint64(1)))


def whole_keys(headlines: Headlines) -> Keys:
    """The keys that titles and headings are counted by as a whole, whatever the order of their words; shape
    (…, 2) for (…, 20).
    """
    keys = np.where(headlines != 0, word_keys(headlines), np.uint64(0))
    parts = keys[..., :TITLE_WORDS], keys[..., TITLE_WORDS:]
    sums = np.stack([part.sum(axis=-1, dtype=np.uint64) for part in parts], axis=-1)
    mixed = (sums ^ _WHOLE) * _STEP
    return np.asarray(mixed ^ (mixed >> _HALF))


@native.twin
def headline_keys(headline: Headline) -> Keys:
    """The keys that a headline is counted by: those of its words, and of its title and heading as a whole."""
    return np.concatenate((word_keys(headline[headline != 0]), whole_keys(headline)))


@native.twin
def likenesses(own: Headline, own_site: Site, others: Headlines, other_site: Site) -> npt.NDArray[np.int8]:
    """How a headline compares with n others of one host, shape (n, 20); shape (n,).

    A site is the table of a host and its limit. The table is None where nothing is known of the host. A word
    whose count is above the limit says nothing. See :func:`neardup.detection.headlines.compare_many`.
    """
    (page,) = _describe(own[np.newaxis], *own_site)
    is_cut = all(part.all() or not part.any() for part in (own[:TITLE_WORDS], own[TITLE_WORDS:]))
    found = np.empty(len(others), dtype=np.int8)
    for place, other in enumerate(_describe(others, *other_site)):
        code = _compare(page, other)
        found[place] = REWORDED if code == SAME and (is_cut or _differ(page, other)) else code
    return found


class _Part(NamedTuple):
    """A title, or a heading: the words, the rare ones among them, and whether many pages have all
    of it.
    """

    words: set[int]
    rare: set[int]
    common: bool


_Described = tuple[_Part, _Part]


def _describe(headlines: Headlines, cells: Cells | None, limit: int) -> list[_Described]:
    """Titles and headings of pages of one host; shape (n, 20)."""
    rare = headlines != 0
    common = np.zeros((len(headlines), 2), dtype=np.bool_)
    if cells is not None:
        rare &= look_up(cells, word_keys(headlines).ravel()).reshape(headlines.shape) <= limit
        common = look_up(cells, whole_keys(headlines).ravel()).reshape(-1, 2) > limit
    return [
        (
            _Part(set(words[:TITLE_WORDS]) - {0}, set(rarest[:TITLE_WORDS]) - {0}, many[0]),
            _Part(set(words[TITLE_WORDS:]) - {0}, set(rarest[TITLE_WORDS:]) - {0}, many[1]),
        )
        for words, rarest, many in zip(
            headlines.tolist(), np.where(rare, headlines, 0).tolist(), common.tolist(), strict=True
        )
    ]


def _compare(own: _Described, other: _Described) -> int:
    title = _compare_parts(own[0], other[0])
    if title is not None and title != SAME:
        return title
    if title == SAME and not own[0].common and not other[0].common:
        return SAME
    heading = _compare_parts(own[1], other[1])
    if heading == SAME and (own[1].common or other[1].common):
        return UNKNOWN
    return UNKNOWN if heading is None else heading


def _differ(own: _Described, other: _Described) -> bool:
    """Whether the titles have different words, or the headings; a page without one has none to differ."""
    pairs = zip(own, other, strict=True)
    return any(one.words != another.words for one, another in pairs if one.words and another.words)


def _compare_parts(own: _Part, other: _Part) -> int | None:
    """Compare titles, or headings; None if a page has none."""
    if not own.words or not other.words:
        return None
    rare = (own.rare - other.words) | (other.rare - own.words)
    if not rare:
        return SAME
    return UNKNOWN if all(word & 1 for word in rare) else DIFFERENT
