"""The numbers that a page says: where they stand, and which of them are no dates.

A number is a word with a digit. Where it stands is told by the words before and after a row of numbers. In
``It is 10:05:33``, the third number is two places behind the first one after ``is``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import filterfalse, groupby, pairwise
from typing import TYPE_CHECKING

from neardup.text.headline import date_words, short_months

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

_NUMBER = re.compile("[0-9]+")
_TOKEN = re.compile("[0-9A-Za-z]+")
_MOST_OF_TOKEN = 3
"""Numbers in what stands between two signs of a URL: ``5mar2031`` has two, an id in hexadecimal some ten."""
_YEAR = re.compile("(?:19|20)[0-9]{2}")

_OF_A_DATE = 3
"""Words that a date is made of: a day, a month, a year."""

_OF_A_CLOCK = 3
"""Numbers that tell a time: hours, minutes, seconds."""

_LONG_ROW = 7
"""Numbers of a row of which it is asked whether the row counts up: a week has as many."""

_MOST_DIGITS = 9
"""Of a number that may count up: to read a number takes the longer, the more digits it has."""

Place = tuple[str, int]
"""A word, and how many numbers stand between; negative, from -1 on, if the word comes after the number."""

Numbers = dict[Place, list[str]]
"""The numbers of a page by their places. Each number has two: one before and one after."""


def _is_number(word: str) -> bool:
    """Whether a word has a digit."""
    # Most words are letters only. To ask for those first takes a fourth of the time.
    return not word.isalpha() and any(map(str.isdigit, word))


class Said:
    """The words of a page, and where the numbers and the names of months and days among them stand."""

    __slots__ = ("_told", "_years", "date_words", "numbers", "words")

    def __init__(self, found: Sequence[str]) -> None:
        self.words = found
        # A page says most of its words several times. With distinct words, and the few places of those that
        # tell, all questions together take two thirds of the time of looking at all words for each.
        distinct = set(found)
        self.numbers = {word for word in distinct if _is_number(word)}
        self._years = {word for word in self.numbers if _YEAR.fullmatch(word)}
        self.date_words = date_words() & distinct
        if self._years and (short := short_months() & distinct):
            self.date_words |= self._beside_years(short)
        telling = self.numbers | self.date_words
        self._told = [index for index, word in enumerate(found) if word in telling]
        """The indices of numbers and of names of months and days, in order."""

    def by_place(self) -> Numbers:
        """The numbers by where they stand.

        >>> Said(["it", "is", "10", "05", "now"]).by_place()
        {('is', 0): ['10'], ('now', -2): ['10'], ('is', 1): ['05'], ('now', -1): ['05']}
        """
        numbers: Numbers = defaultdict(list)
        for row in self._rows():
            for index, *places in _places_in(row, self.words):
                for place in places:
                    numbers[place].append(self.words[index])
        return dict(numbers)

    def without_numbers(self) -> list[str]:
        """The words, with an empty one for each number, and for the months and days in a row with one.

        >>> Said(["may", "we", "meet", "on", "friday", "2", "may"]).without_numbers()
        ['may', 'we', 'meet', 'on', '', '', '']
        """
        said = list(self.words)
        for row in _in_rows(self._told):
            if any(said[index] in self.numbers for index in row):
                for index in row:
                    said[index] = ""
        return said

    def but_made_up(self, made_up: Collection[Place]) -> tuple[str, ...]:
        """The words, with an empty one for each number that stands in one of the places given.

        >>> Said(["it", "is", "10", "05", "now"]).but_made_up({("is", 1)})
        ('it', 'is', '10', '', 'now')
        """
        said = list(self.words)
        for index in self._at(made_up):
            said[index] = ""
        return tuple(said)

    def dated(self, made_up: Collection[Place]) -> set[int]:
        """The indices of the numbers that are of a date, or stand in one of the places given.

        A row of numbers that counts up has the days of a month, with the numbers of the weeks between.
        """
        dated = {*self._in_dates(), *self._at(made_up)}
        for row in self._rows():
            if _counts_up([self.words[index] for index in row]):
                dated.update(row)
        return dated

    def numbers_but(self, dated: Collection[int]) -> list[int]:
        """The indices of all numbers but those given."""
        return [index for index in self._told if self.words[index] in self.numbers and index not in dated]

    def between_numbers(self, numbers: Iterable[int]) -> tuple[tuple[str, ...], tuple[tuple[int, str], ...]]:
        """The words that are neither numbers nor names of months and days, and which of the numbers given
        stand after how many of these.

        >>> said = Said(["room", "5", "friday", "rain", "12"])
        >>> said.between_numbers([1, 4])
        (('room', 'rain'), ((1, '5'), (2, '12')))
        """
        telling = self.numbers | self.date_words
        before = {index: index - told for told, index in enumerate(self._told)}
        between = tuple(filterfalse(telling.__contains__, self.words))
        kept = ((before[index], self.words[index]) for index in numbers)
        return between, tuple((place, word) for place, word in kept if word not in self.date_words)

    def _beside_years(self, names: frozenset[str]) -> frozenset[str]:
        """The names that stand beside a year, with a number between at most: ``mar`` in ``Mar 5, 2031``."""
        found: set[str] = set()
        for index, word in enumerate(self.words):
            if word in self._years:
                for beside in self._around(index):
                    found.update(beside if beside and beside[0] in self.numbers else beside[:1])
        return names & found

    def _around(self, index: int) -> tuple[Sequence[str], Sequence[str]]:
        """The words before and after one that may be of a date with that one, the nearest first."""
        before = self.words[max(0, index - _OF_A_DATE + 1) : index]
        return before[::-1], self.words[index + 1 : index + _OF_A_DATE]

    def _rows(self) -> Iterator[list[int]]:
        """The indices of the numbers, by rows without another word between."""
        return _in_rows([index for index in self._told if self.words[index] in self.numbers])

    def _at(self, places: Collection[Place]) -> Iterator[int]:
        """The indices of the numbers that stand in one of these places."""
        for row in self._rows() if places else ():
            for index, before, after in _places_in(row, self.words):
                if before in places or after in places:
                    yield index

    def _in_dates(self) -> Iterator[int]:
        """The indices of the numbers that are years, or stand beside a year or a month, with a number between
        at most.
        """
        of_dates = self.date_words | self._years
        for index in self._told:
            said = self.words[index]
            if said not in of_dates:
                continue
            if said in self.numbers:
                yield index
            for step, beside in zip((-1, 1), self._around(index), strict=True):
                for away, word in enumerate(beside, 1):
                    if word not in self.numbers:
                        break
                    yield index + step * away


def changed(numbers: Numbers, again: Numbers) -> set[Place] | None:
    """Where a page has other numbers when it is asked for once more; None: it has none in the same places.

    Hours and minutes do not change with each second. So the two numbers before one that has changed count as
    changed.

    >>> sorted(changed({("is", 0): ["10"], ("is", 1): ["05"]}, {("is", 0): ["10"], ("is", 1): ["06"]}))
    [('is', 0), ('is', 1)]
    """
    both = numbers.keys() & again.keys()
    if not both:
        return None
    # Any page may begin or end with a number.
    others = [place for place in both if place[0] and numbers[place] != again[place]]
    return {
        (word, place - before) for word, place in others for before in range(_OF_A_CLOCK)
    } & numbers.keys()


def numbers_beside(numbers: Iterable[str], url: str) -> tuple[str, ...]:
    """The numbers that do not stand in a URL.

    >>> numbers_beside(["05", "12"], "http://a.example/day/5")
    ('12',)
    """
    in_tokens = [_NUMBER.findall(token) for token in _TOKEN.findall(url)]
    of_url = {number.lstrip("0") for token in in_tokens if len(token) <= _MOST_OF_TOKEN for number in token}
    return tuple(number for number in numbers if number.lstrip("0") not in of_url)


def _in_rows(indices: list[int]) -> Iterator[list[int]]:
    """Indices, by rows without another one between."""
    for _, row in groupby(enumerate(indices), lambda each: each[1] - each[0]):
        yield [index for _, index in row]


def _places_in(row: list[int], found: Sequence[str]) -> Iterator[tuple[int, Place, Place]]:
    """The index of each number of a row, and its two places."""
    start, end = row[0], row[-1] + 1
    before = found[start - 1] if start else ""
    after = found[end] if end < len(found) else ""
    for index in row:
        yield index, (before, index - start), (after, index - end)


def _counts_up(row: list[str]) -> bool:
    """Whether half of the numbers of a row are one more than the number before."""
    if len(row) < _LONG_ROW:
        return False
    numbers = [int(word) if _NUMBER.fullmatch(word) and len(word) <= _MOST_DIGITS else None for word in row]
    ups = sum(one is not None and other is not None and other - one == 1 for one, other in pairwise(numbers))
    return 2 * ups >= len(row)
