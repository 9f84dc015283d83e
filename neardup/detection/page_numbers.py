"""The numbers that a page says: where they stand, and which of them are no dates.

A number is a word with a digit. Where it stands is told by the words before and after a row of numbers. In
``It is 10:05:33``, the third number is two places behind the first one after ``is``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from neardup.text.headline import date_words

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


def numbers_of(found: list[str]) -> Numbers:
    """The numbers among the words of a page.

    >>> numbers_of(["it", "is", "10", "05", "now"])
    {('is', 0): ['10'], ('now', -2): ['10'], ('is', 1): ['05'], ('now', -1): ['05']}
    """
    numbers: Numbers = defaultdict(list)
    for row in _rows(found, numbers_among(found)):
        for index, *places in _places_in(row, found):
            for place in places:
                numbers[place].append(found[index])
    return dict(numbers)


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


def without_dates(found: list[str], made_up: Collection[Place]) -> list[str]:
    """The words of a page, with an empty one for each number of a date, or in one of the places given.

    A row of numbers that counts up has the days of a month, with the numbers of the weeks between.
    """
    said, numbers = list(found), numbers_among(found)
    for index in _in_dates(found, numbers):
        said[index] = ""
    for row in _rows(found, numbers):
        counts_up = _counts_up([found[index] for index in row])
        if not counts_up and not made_up:
            continue
        for index, before, after in _places_in(row, found):
            if counts_up or before in made_up or after in made_up:
                said[index] = ""
    return said


def without_numbers(found: list[str]) -> list[str]:
    """The words of a page, with an empty one for each number, and for the months and days in a row with one.

    >>> without_numbers(["may", "we", "meet", "on", "friday", "2", "may"])
    ['may', 'we', 'meet', 'on', '', '', '']
    """
    said, numbers = list(found), numbers_among(found)
    dated = numbers | date_words().intersection(found)
    for is_dated, row in groupby(range(len(found)), lambda at: found[at] in dated):
        indices = list(row) if is_dated else []
        if any(found[index] in numbers for index in indices):
            for index in indices:
                said[index] = ""
    return said


def numbers_beside(said: Sequence[str], url: str = "") -> tuple[str, ...]:
    """The numbers among words that do not stand in a URL.

    >>> numbers_beside(["day", "05", "rain", "12"], "http://a.example/day/5")
    ('12',)
    """
    in_tokens = [_NUMBER.findall(token) for token in _TOKEN.findall(url)]
    of_url = {number.lstrip("0") for token in in_tokens if len(token) <= _MOST_OF_TOKEN for number in token}
    numbers = numbers_among(said)
    return tuple(word for word in said if word in numbers and word.lstrip("0") not in of_url)


def _rows(found: list[str], numbers: set[str]) -> Iterator[list[int]]:
    """The indices of the numbers, by rows without another word between."""
    indices = [index for index, word in enumerate(found) if word in numbers]
    for _, row in groupby(enumerate(indices), lambda each: each[1] - each[0]):
        yield [index for _, index in row]


def _places_in(row: list[int], found: list[str]) -> Iterator[tuple[int, Place, Place]]:
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


def _in_dates(found: list[str], numbers: set[str]) -> Iterator[int]:
    """The indices of the numbers that are years, or stand beside a year or a month, with a number between at
    most.
    """
    of_dates = date_words().intersection(found) | {word for word in numbers if _YEAR.fullmatch(word)}
    for index, said in enumerate(found):
        if said not in of_dates:
            continue
        if said in numbers:
            yield index
        beside = found[max(0, index - _OF_A_DATE + 1) : index][::-1], found[index + 1 : index + _OF_A_DATE]
        for step, words in zip((-1, 1), beside, strict=True):
            for away, word in enumerate(words, 1):
                if word not in numbers:
                    break
                yield index + step * away


def numbers_among(found: Iterable[str]) -> set[str]:
    """Which words are numbers; a page says most of its words several times."""
    return {word for word in set(found) if _is_number(word)}
