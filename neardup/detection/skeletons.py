"""Pages that say the same but for numbers and dates, such as the weeks of a calendar.

Such pages may pass for new, each by its date. The *skeleton* of a page is what is left of its words without
the numbers, and without the names of months and days. To find it takes as long as to fingerprint the page. So
only pages are asked whose URLs and headlines differ from those of other pages in numbers alone.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

from neardup.address import host_of
from neardup.detection.page_numbers import is_number
from neardup.text.headline import DATE_OR_NUMBER, date_words
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.text.headline import Headline

Value = TypeVar("Value")

ENOUGH = 2
"""Pages that are needed to tell that pages are alike: of one shape, and then of one skeleton."""

_MOST = 100_000
"""Shapes, skeletons and pages that are remembered, some 10 MB each. What was quiet the longest is
forgotten first.
"""

_DIGITS = re.compile("[0-9]+")


class Skeletons:
    """The skeletons of the pages of one crawl."""

    def __init__(self) -> None:
        self._shapes: OrderedDict[int, int] = OrderedDict()
        """How many pages have a URL and a headline of this shape."""
        self._skeletons: OrderedDict[int, tuple[int, int]] = OrderedDict()
        """The first page of a skeleton, by its id, and how many have it."""
        self._first: OrderedDict[int, int] = OrderedDict()
        """The first page like each page, by their ids."""

    def add(self, url: str, page_id: int, headline: Headline | None, text: Callable[[], str]) -> bool:
        """Take note of a page that is canonical, or may turn out to be; whether enough pages are like it.

        ``text`` gives the visible text of the page, and is called if it is needed.
        """
        said = b"" if headline is None else headline[headline & DATE_OR_NUMBER == 0].tobytes()
        shape = hash((_DIGITS.sub("0", url), said))
        of_shape = self._shapes.pop(shape, 0) + 1
        _put(self._shapes, shape, of_shape)
        if of_shape <= ENOUGH:
            return False
        key = _key(url, text())
        first, of_skeleton = self._skeletons.pop(key, (page_id, 0))
        _put(self._skeletons, key, (first, of_skeleton + 1))
        if of_skeleton:
            _put(self._first, page_id, first)
        return of_skeleton >= ENOUGH

    def first_like(self, page_id: int) -> int:
        """The first page like another one, by its id; that one itself, if no other is known."""
        return self._first.get(page_id, page_id)

    def first_saying(self, url: str, text: str) -> int | None:
        """The first page of the skeleton of a text, by its id, if enough pages have that skeleton."""
        first, of_skeleton = self._skeletons.get(_key(url, text), (None, 0))
        return first if of_skeleton > ENOUGH else None


def skeleton(text: str) -> tuple[str, ...]:
    """The words of a text without numbers, months and days.

    >>> skeleton("Monday, 3 May 2031: no events"), skeleton("Friday, 4 July 2031: no events")
    (('no', 'events'), ('no', 'events'))
    """
    found = words(text)
    distinct = set(found)
    left_out = distinct & date_words() | {word for word in distinct if is_number(word)}
    return tuple(word for word in found if word not in left_out)


def _key(url: str, text: str) -> int:
    return hash((host_of(url), skeleton(text)))


def _put(among: OrderedDict[int, Value], key: int, value: Value) -> None:
    among[key] = value
    if len(among) > _MOST:
        among.popitem(last=False)
