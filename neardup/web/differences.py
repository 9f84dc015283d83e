"""What differs between two texts, word by word.

Words that stand once in both texts, in the same order, divide the texts (patience, Cohen). Between them, the
parts are compared by ``difflib`` where they are short, and shown as wholly different where they are not. So
the time stays bounded, whatever the texts.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_WORDS = 60_000
"""Of each text, that are compared."""

MOST_CHARACTERS = 1_000_000
"""Of each text, that are compared: a word may have any length."""

_LONGEST_PART = 800
"""Words of a part that difflib compares: some 10 ms."""

_UNTOUCHED = 12
"""Words shown of what is the same, on either side of a difference."""

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]\s*|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+\s*"
)
"""A word with the space after it. Scripts without spaces are taken apart by characters."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of words: the ``same`` in both texts, or of one of them. ``template``: of the site's template.

    ``skipped``: so many words are left out in its place.
    """

    text: str
    same: bool
    template: bool = False
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of both texts, side by side."""

    a: list[Piece]
    b: list[Piece]

    @property
    def same(self) -> bool:
        return all(piece.same for piece in (*self.a, *self.b))


@dataclass(frozen=True, slots=True)
class Differences:
    """Two texts as blocks in order; ``changed_a`` and ``changed_b`` count words of one text only.

    ``rows`` are the same for two columns: a row ends where something is left out. ``is_cut``: of long texts
    only the beginnings are compared.
    """

    blocks: list[Block]
    rows: list[Block]
    words_a: int
    words_b: int
    changed_a: int
    changed_b: int
    is_cut: bool


def words_of(text: str) -> list[str]:
    """The first words of a text for people, each with the space that follows it: one more than are compared,
    at most. The last word has a space, too, because the other text may go on after it.

    >>> words_of("Zwei  Wörter, 中文 b")
    ['Zwei  ', 'Wörter, ', '中', '文 ', 'b ']
    """
    return [found[0] for found in islice(_WORD.finditer(f"{text} "), MOST_WORDS + 1)]


def differences(
    a: Sequence[str],
    b: Sequence[str],
    templates: tuple[Sequence[bool], Sequence[bool]] | None = None,
    *,
    is_cut: bool = False,
) -> Differences:
    """Compare two texts given by their words; ``templates`` says of each word whether it is template, and
    ``is_cut`` whether the texts have more.
    """
    is_cut |= max(len(a), len(b)) > MOST_WORDS
    a, b = a[:MOST_WORDS], b[:MOST_WORDS]
    dim = templates or ([False] * len(a), [False] * len(b))
    blocks: list[Block] = []
    changed = [0, 0]
    runs = list(_runs([_plain(word) for word in a], [_plain(word) for word in b]))
    for number, (same, (a_from, a_to), (b_from, b_to)) in enumerate(runs):
        if same:
            edges = (number > 0, number < len(runs) - 1)
            pieces = [
                _shortened(a[a_from:a_to], dim[0][a_from:a_to], edges),
                _shortened(b[b_from:b_to], dim[1][b_from:b_to], edges),
            ]
        else:
            changed[0] += a_to - a_from
            changed[1] += b_to - b_from
            pieces = [
                pieces_of(a[a_from:a_to], dim[0][a_from:a_to], same=False),
                pieces_of(b[b_from:b_to], dim[1][b_from:b_to], same=False),
            ]
        blocks.append(Block(*pieces))
    return Differences(blocks, _rows(blocks), len(a), len(b), changed[0], changed[1], is_cut)


def _rows(blocks: Sequence[Block]) -> list[Block]:
    rows = [Block([], [])]
    for block in blocks:
        for side, pieces in enumerate((block.a, block.b)):
            cut = next((place for place, piece in enumerate(pieces) if piece.skipped), None)
            end = len(pieces) if cut is None else cut + 1
            if not side:
                into = rows[-1]
                if cut is not None:
                    rows.append(Block([], []))
            (into.b if side else into.a).extend(pieces[:end])
            (rows[-1].b if side else rows[-1].a).extend(pieces[end:])
    return [row for row in rows if row.a or row.b]


def _plain(word: str) -> str:
    return word.strip().casefold()


_Range = tuple[int, int]


def _runs(a: list[str], b: list[str]) -> Iterator[tuple[bool, _Range, _Range]]:
    """Runs of words that are the same, or not, in order, with where they stand in both; none is empty."""
    matches = [*_matches(a, b), (len(a), len(b), 0)]
    at_a = at_b = 0
    for place_a, place_b, length in matches:
        if at_a < place_a or at_b < place_b:
            yield False, (at_a, place_a), (at_b, place_b)
        if length:
            yield True, (place_a, place_a + length), (place_b, place_b + length)
        at_a, at_b = place_a + length, place_b + length


def _matches(a: list[str], b: list[str]) -> Iterator[tuple[int, int, int]]:
    """Places and lengths of what is the same; neighbours are joined."""
    last: tuple[int, int, int] | None = None
    at_a = at_b = 0
    for next_a, next_b in [*_anchors(a, b), (len(a), len(b))]:
        anchor = [(next_a, next_b, 1)] if next_a < len(a) or next_b < len(b) else []
        for found in [*_within(a[at_a:next_a], b[at_b:next_b], at_a, at_b), *anchor]:
            if last is not None and (last[0] + last[2], last[1] + last[2]) == found[:2]:
                last = (last[0], last[1], last[2] + found[2])
                continue
            if last is not None:
                yield last
            last = found
        at_a, at_b = next_a + 1, next_b + 1
    if last is not None:
        yield last


def _anchors(a: list[str], b: list[str]) -> list[tuple[int, int]]:
    """Words that each text has once, as far as they come in the same order: the longest such sequence."""
    counts_a, counts_b = Counter(a), Counter(b)
    where_b = {word: place for place, word in enumerate(b) if counts_b[word] == 1}
    pairs = [
        (place, where_b[word]) for place, word in enumerate(a) if counts_a[word] == 1 and word in where_b
    ]
    ends: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(tails[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        tails[length : length + 1] = [number]
    chosen: list[tuple[int, int]] = []
    number = tails[-1] if tails else -1
    while number >= 0:
        chosen.append(pairs[number])
        number = before[number]
    return chosen[::-1]


def _within(a: list[str], b: list[str], at_a: int, at_b: int) -> list[tuple[int, int, int]]:
    """What two parts have in common: at their beginning and end, and between if they are short."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    found = [(at_a, at_b, start)]
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    if middle_a and middle_b and max(len(middle_a), len(middle_b)) <= _LONGEST_PART:
        matcher = SequenceMatcher(None, middle_a, middle_b, autojunk=False)
        found += [
            (at_a + start + place_a, at_b + start + place_b, length)
            for place_a, place_b, length in matcher.get_matching_blocks()
        ]
    found.append((at_a + len(a) - end, at_b + len(b) - end, end))
    return [match for match in found if match[2]]


def _shortened(words: Sequence[str], dim: Sequence[bool], edges: tuple[bool, bool]) -> list[Piece]:
    """What is the same: its ends, if it is long. ``edges``: whether something differs before and after."""
    first, last = (_UNTOUCHED if edge else 0 for edge in edges)
    skipped = len(words) - first - last
    if skipped <= _UNTOUCHED:
        return pieces_of(words, dim, same=True)
    return [
        *pieces_of(words[:first], dim[:first], same=True),
        Piece("", same=True, skipped=skipped),
        *pieces_of(words[first + skipped :], dim[first + skipped :], same=True),
    ]


def pieces_of(words: Sequence[str], dim: Sequence[bool], *, same: bool) -> list[Piece]:
    """Runs of words that are all template, or none of them; ``dim`` says of each word whether it is."""
    found: list[Piece] = []
    start = 0
    for place in range(1, len(words) + 1):
        if place == len(words) or dim[place] != dim[start]:
            found.append(Piece("".join(words[start:place]), same=same, template=dim[start]))
            start = place
    return found
