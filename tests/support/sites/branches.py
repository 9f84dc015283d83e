"""A map of branches that answers for small areas only: whoever wants all has to ask for ever smaller ones."""

from __future__ import annotations

import random
from typing import NamedTuple

from tests.support.sites.served import Answer, Ask, MadeSite, page
from tests.support.sites.text import names, passage


class Area(NamedTuple):
    """A square of a map."""

    x: int
    y: int
    width: int

    @classmethod
    def asked(cls, query: dict[str, str]) -> Area:
        """The area that the query of an address names."""
        return cls(*(int(query[name]) for name in cls._fields))

    def quarters(self) -> list[Area]:
        half = self.width // 2
        return [Area(x, y, half) for x in (self.x, self.x + half) for y in (self.y, self.y + half)]

    @property
    def target(self) -> str:
        return f"/near?x={self.x}&y={self.y}&width={self.width}"


class Branches(MadeSite):
    """No page has a link: the spider makes up the address of each area."""

    spider = "areas"
    most_listed = 5
    whole = Area(0, 0, 1_024)
    start = whole.target

    def __init__(self, number: int) -> None:
        super().__init__()
        draw = random.Random(number)
        named = zip(range(number), names("branches"), strict=False)
        self._branches = [(draw.randrange(1_024), draw.randrange(1_024), name) for _, name in named]
        self._frame = passage("map", 200)
        waiting, listed = [self.whole], []
        while waiting:
            area = waiting.pop()
            within = self._within(area)
            if len(within) > self.most_listed:
                waiting += area.quarters()
            elif within:
                listed.append(area.target)
        self.keys = frozenset(listed)

    def answer(self, ask: Ask) -> Answer:
        area = Area.asked(ask.query)
        within = self._within(area)
        if len(within) > self.most_listed:
            return page("Branches", self._frame, "There are too many here. Please look at a smaller area.")
        rows = "".join(f"<li>{name}</li>" for name in within) or "<li>None</li>"
        return page("Branches", self._frame, f"<ul>{rows}</ul>", key=area.target if within else None)

    def _within(self, area: Area) -> list[str]:
        return [
            name
            for x, y, name in self._branches
            if 0 <= x - area.x < area.width and 0 <= y - area.y < area.width
        ]
