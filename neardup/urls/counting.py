"""URLs that count up or down in one number or date, and what they would be further on."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from neardup.address import without_host
from neardup.urls.dates import dates_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

FEWEST = 4
"""Pages by whose URLs a number is seen to count."""

_NUMBER = re.compile(r"(?<![0-9])([0-9]{1,18})(?![0-9a-zA-Z])")
"""A number that ends a word, as in ``p17``. Those within ids in hexadecimal do not count."""

_MONTH = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])?")
"""A month such as 202611, or a day such as 20261101."""

_YEAR = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")

_LAST_OF_A_YEAR = 366
"""Months, weeks and days beside a year count up to here at the most, and begin anew."""

_TIME_DIGITS = 10
"""Digits of a time in seconds since 1970. Longer numbers are milliseconds, or random."""


class Further(NamedTuple):
    """A URL so many steps further on, and the one before it.

    None: the number would be negative, so that no such URL is to be expected.
    """

    steps: int
    url: str | None
    before: str | None


def further_on(urls: Sequence[str], distances: Iterable[int]) -> list[Further]:
    """What the last of these URLs would be so many steps further on, if they count in a number or a date.

    The URLs stand in the order in which their pages came. A chain of pages may be walked in both directions
    at once; so each number but a few has to be beyond those before it. Years, months and times by themselves
    do not count as numbers: they begin anew, or nobody knows which of them a site has.

    >>> further_on([f"http://a.example/photo/{number}" for number in range(101, 109)], [100])[0][:2]
    (100, 'http://a.example/photo/208')
    >>> further_on([f"http://a.example/comic/2026-11-{day:02}" for day in range(9, 1, -1)], [100])[0][1:]
    ('http://a.example/comic/2026-07-25', 'http://a.example/comic/2026-07-26')
    >>> further_on(["http://a.example/?id=7x", "http://a.example/?id=8x"], [100])
    []
    """
    last = urls[-1]
    start = len(last) - len(without_host(last))
    for spelling in dates_in(last, start):
        # With others among them, these are numbers that look like dates.
        dates = spelling.read(_middles(urls, spelling.found))
        if dates is not None and (step := _step(dates.numbers)):
            further = _until_none(spelling.found, dates.numbers[-1], step, distances, dates.write)
            return [there for there in further if there.url]  # no calendar ends with the year 1
    for found in _NUMBER.finditer(last, start):
        written = [middle for middle in _middles(urls, found) if middle.isascii() and middle.isdigit()]
        numbers = [int(one) for one in written]
        beside = without_host(last[: found.start()]) + "*" + last[found.end() :]
        if _is_time(numbers) or (max(numbers) <= _LAST_OF_A_YEAR and _YEAR.search(beside)):
            continue
        if step := _step(numbers):
            digits = max((len(one) for one in written if one.startswith("0")), default=1)
            return _until_none(found, numbers[-1], step, distances, f"{{:0{digits}}}".format)
    return []


def are_neighbours(url: str, other: str) -> bool:
    """Whether two URLs differ in one number alone, and by one.

    >>> page, others = "http://a.example/?id=9&sort=1", ("id=10&sort=1", "id=11&sort=1", "id=8&sort=2")
    >>> [are_neighbours(page, f"http://a.example/?{other}") for other in others]
    [True, False, False]
    """
    parts, beside = (_NUMBER.split(each) for each in (url, other))
    if len(parts) != len(beside):
        return False
    differing = [place for place, part in enumerate(parts) if part != beside[place]]
    # Numbers stand between the other parts.
    return (
        len(differing) == 1
        and differing[0] % 2 == 1
        and abs(int(parts[differing[0]]) - int(beside[differing[0]])) == 1
    )


def _until_none(
    found: re.Match[str], last: int, step: int, distances: Iterable[int], write: Callable[[int], str]
) -> list[Further]:
    """The URLs with another number in the place of one that was found."""

    def url_of(number: int) -> str | None:
        start, end = found.span()
        return None if number < 0 else f"{found.string[:start]}{write(number)}{found.string[end:]}"

    further = []
    for distance in distances:
        number = last + distance * step
        further.append(Further(distance, url_of(number), url_of(number - step)))
        if number < 0:
            break
    return further


def _middles(urls: Sequence[str], found: re.Match[str]) -> Iterator[str]:
    """What stands in the place of a part of the last URL in all URLs that are the same otherwise."""
    before, after = found.string[: found.start()], found.string[found.end() :]
    for url in urls:
        if len(url) > len(before) + len(after) and url.startswith(before) and url.endswith(after):
            yield url[len(before) : len(url) - len(after)]


def _step(numbers: list[int]) -> int:
    """How much the numbers count up, or down if it is negative; 0: they do not count."""
    different = sorted(set(numbers))
    if len(different) < FEWEST:
        return 0
    beyond = 0
    lowest = highest = numbers[0]
    for number in numbers[1:]:
        beyond += not lowest <= number <= highest
        lowest, highest = min(lowest, number), max(highest, number)
    if beyond * 4 < (len(numbers) - 1) * 3:
        return 0
    step = int(median(b - a for a, b in pairwise(different))) or 1
    return step if numbers[-1] > median(different) else -step


def _is_time(numbers: list[int]) -> bool:
    """Whether these may be years, months, days, or seconds since 1970. A calendar of years has this one."""
    lowest, highest = min(numbers), max(numbers)
    return (
        lowest <= datetime.now(UTC).year <= highest
        or all(_MONTH.fullmatch(str(number)) for number in numbers)
        or len(str(highest)) >= _TIME_DIGITS
    )
