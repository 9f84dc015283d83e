"""Notices that are alike, newest first, and spiders that stop at the first one they know."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import CloseSpider

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.spiders import BREADTH_FIRST, FollowSpider
from tests.support.sites.text import passage, vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

_ON_A_PAGE = 10


class Notices(MadeSite):
    """Lists of ten notices each, and the notices: a long text, a street and an hour. ``known`` are those up
    to that number; the others are to be found.
    """

    def __init__(self, newest: int, *, known: int = 0, spider: str) -> None:
        super().__init__()
        self.spider, self.arguments = spider, {"known": str(known)}
        self._newest = newest
        self._frame = passage("water", 150)
        self.keys = frozenset(str(number) for number in range(known + 1, newest + 1))

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            return self._list(int(ask.query.get("page", "1")))
        number = int(ask.path.removeprefix("/notice/"))
        if not 0 < number <= self._newest:
            return NOT_FOUND
        street = " ".join(random.Random(number).sample(vocabulary(), 2))
        said = f"No water in {street} from {number % 24}:00."
        return page("Notice", self._frame, said, f'<p id="number">{number}</p>', key=str(number))

    def _list(self, at: int) -> Answer:
        first = self._newest - (at - 1) * _ON_A_PAGE
        numbers = range(first, max(0, first - _ON_A_PAGE), -1)
        links = {f"/notice/{number}": "Notice" for number in numbers}
        if numbers[-1] > 1:
            links[f"/?page={at + 1}"] = "Older"
        return page("Notices", links=links)


class _UntilKnownSpider(FollowSpider):
    """Reads notices in order, until it meets one that it knows."""

    custom_settings = BREADTH_FIRST | {"CONCURRENT_REQUESTS": 1}

    def __init__(self, known: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.known = int(known)

    def item(self, response: Response) -> Any:
        return {"number": response.css("#number::text").get()}

    def is_known(self, response: Response) -> bool:
        return int(response.css("#number::text").get(default=str(self.known + 1))) <= self.known


class ClosingSpider(_UntilKnownSpider):
    name = "closing"

    def parse(self, response: Response) -> Iterator[Any]:
        if self.is_known(response):
            raise CloseSpider("known")
        yield from super().parse(response)


class SwitchedSpider(_UntilKnownSpider):
    name = "switched"
    stopped = False

    def parse(self, response: Response) -> Iterator[Any]:
        if self.is_known(response):
            self.stopped = True
        if not self.stopped:
            yield from super().parse(response)
