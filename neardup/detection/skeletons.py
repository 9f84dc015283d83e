"""Pages that say the same but for dates, such as the weeks of a calendar.

Such pages may pass for new, each by its date. What else they say is known when the dates are left out, and
the numbers that are made up for each request. The *skeleton* of a page is what is left without any number.

To find a skeleton takes as long as to fingerprint the page. So only pages are asked whose URLs and headlines
differ from those of other pages in numbers alone.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING

from neardup.address import host_of
from neardup.detection.latest import keep_latest
from neardup.detection.page_numbers import Said
from neardup.text.headline import DATE_OR_NUMBER
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from neardup.detection.page_numbers import Place
    from neardup.text.headline import Headline

ENOUGH = 2
"""Pages that are needed to tell that pages are alike: of one shape, and then of one skeleton."""

_MOST = 100_000
"""Shapes, skeletons, texts and pages that are remembered, some 20 MB each. What was quiet the longest is
forgotten first.
"""

_DIGITS = re.compile("[0-9]+")


class Skeletons:
    """The skeletons of the pages of one crawl, and what they say but for dates."""

    def __init__(self) -> None:
        self._shapes: OrderedDict[int, int] = OrderedDict()
        """How many pages have a URL and a headline of this shape."""
        self._skeletons: OrderedDict[int, int] = OrderedDict()
        """How many pages have this skeleton."""
        self._said: OrderedDict[int, int] = OrderedDict()
        """The first page, by its id, that says this but for dates."""
        self._first: OrderedDict[int, int] = OrderedDict()
        """The first page that says the same as another one, by their ids."""

    def add(
        self,
        url: str,
        page_id: int,
        headline: Headline | None,
        text: Callable[[], str],
        made_up: Collection[Place] = (),
    ) -> bool:
        """Take note of a page that is canonical, or may turn out to be; whether enough have its skeleton.

        ``text`` gives the visible text of the page, and is called if it is needed. ``made_up`` are the places
        of numbers that are others with each request.
        """
        words_of_headline = b"" if headline is None else headline[headline & DATE_OR_NUMBER == 0].tobytes()
        shape = hash((_DIGITS.sub("0", url), words_of_headline))
        of_shape = _count(self._shapes, shape)
        if of_shape <= ENOUGH:
            return False
        skeleton, said = _but_for_dates(url, text(), made_up)
        of_skeleton = _count(self._skeletons, skeleton)
        first = self._said.get(said, page_id)
        keep_latest(self._said, said, first, _MOST)
        if first != page_id:
            keep_latest(self._first, page_id, first, _MOST)
        return of_skeleton > ENOUGH

    def first_like(self, page_id: int) -> int:
        """The first page that says the same as another one but for dates, by its id; that one itself, if none
        is known.
        """
        return self._first.get(page_id, page_id)

    def first_saying(self, url: str, text: str, made_up: Collection[Place] = ()) -> int | None:
        """The first page that says what a text says but for dates, by its id."""
        return self._said.get(_but_for_dates(url, text, made_up)[1])


def _but_for_dates(url: str, text: str, made_up: Collection[Place]) -> tuple[int, int]:
    """Hashes of the skeleton of a page, and of what the page says but for dates; others on another host."""
    said = Said(words(text))
    skeleton, numbers = said.between_numbers(said.numbers_but(said.dated(made_up)))
    of_skeleton = hash((host_of(url), skeleton))
    return of_skeleton, hash((of_skeleton, numbers))


def _count(among: OrderedDict[int, int], key: int) -> int:
    """How often a key has been counted, this time included."""
    number = among.get(key, 0) + 1
    keep_latest(among, key, number, _MOST)
    return number
