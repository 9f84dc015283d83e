"""URLs that count up or down in one number, and what they would be further on."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FEWEST = 4
"""Pages by whose URLs a number is seen to count."""

_NUMBER = re.compile(r"(?<![0-9a-zA-Z])([0-9]+)(?![0-9a-zA-Z])")
"""A number that is no part of a word, so that ids in hexadecimal are none."""

_MONTH = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])?")
"""A month such as 202611, or a day such as 20261101."""

_YEAR = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")

_LAST_OF_A_YEAR = 366
"""Months, weeks and days beside a year count up to here at the most, and begin anew."""

_TIME_DIGITS = 10
"""Digits of a time in seconds since 1970. Longer numbers are milliseconds, or random."""


class Further(NamedTuple):
    """A URL so many steps further on; None: the number would be negative, so that no such URL is to be
    expected.
    """

    steps: int
    url: str | None


def further_on(urls: Sequence[str], distances: Iterable[int]) -> list[Further]:
    """What the last of these URLs would be so many steps further on, if the URLs count up or down in one
    number.

    The URLs stand in the order in which their pages came. A chain of pages may be walked in both directions
    at once; so each number but a few has to be beyond those before it. Dates and times do not count as
    numbers: nobody knows which of them a site has.

    >>> further_on([f"http://a.example/photo/{number}" for number in range(101, 109)], [100])
    [Further(steps=100, url='http://a.example/photo/208')]
    >>> further_on(["http://a.example/?id=7x", "http://a.example/?id=8x"], [100])
    []
    """
    for before, after, written in _numbers_alone(urls):
        numbers = [int(one) for one in written]
        if max(numbers) <= _LAST_OF_A_YEAR and _YEAR.search(_without_host(before) + "*" + after):
            continue
        step = _step(numbers)
        if step:
            digits = max((len(one) for one in written if one.startswith("0")), default=1)
            return _until_none(before, after, numbers[-1], step, distances, digits)
    return []


def _until_none(  # noqa: PLR0917  # the parts of a URL
    before: str, after: str, last: int, step: int, distances: Iterable[int], digits: int
) -> list[Further]:
    found = []
    for distance in distances:
        number = last + distance * step
        found.append(Further(distance, None if number < 0 else f"{before}{number:0{digits}}{after}"))
        if number < 0:
            break
    return found


def _numbers_alone(urls: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """For each number of the last URL: what stands before and after it, and the numbers there in all URLs
    that are the same otherwise.
    """
    last = urls[-1]
    for found in _NUMBER.finditer(last, len(last) - len(_without_host(last))):
        before, after = last[: found.start()], last[found.end() :]
        middles = (
            url[len(before) : len(url) - len(after)]
            for url in urls
            if len(url) > len(before) + len(after) and url.startswith(before) and url.endswith(after)
        )
        yield before, after, [middle for middle in middles if middle.isascii() and middle.isdigit()]


def _without_host(url: str) -> str:
    return url.partition("://")[2].partition("/")[2]


def _step(numbers: list[int]) -> int:
    """How much the numbers count up, or down if it is negative; 0: they do not count."""
    different = sorted(set(numbers))
    if len(different) < FEWEST or _is_time(different):
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


def _is_time(different: list[int]) -> bool:
    """Whether these may be years, months, days, or seconds since 1970. A calendar of years has this one."""
    lowest, highest = different[0], different[-1]
    return (
        lowest <= datetime.now(UTC).year <= highest
        or all(_MONTH.fullmatch(str(number)) for number in different)
        or len(str(highest)) >= _TIME_DIGITS
    )
