"""Many ways below a list: each page on them is like those of the other ways, but for a few numbers."""

from __future__ import annotations

import hashlib
import random

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import passage

_BELOW = {"station": "day", "day": "week", "week": "month"}
_READINGS = {"station": 1, "day": 8, "week": 14, "month": 12}


class Stations(MadeSite):
    """A list of weather stations, and the readings of each: of now, a day, a week and a month.

    Addresses have ids that do not count. Readings have one or two digits.
    """

    def __init__(self, stations: int) -> None:
        super().__init__()
        ids = random.Random(9).sample(range(100_000, 999_999), stations)
        self._stations = [str(station) for station in ids]
        self._known = frozenset(self._stations)
        self._network = passage("weather network", 120)
        self.keys = frozenset({"list", *(f"{kind} {each}" for kind in _READINGS for each in self._stations)})

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            listed = {f"/station/{station}": station for station in self._stations}
            return page("All stations", key="list", links=listed)
        kind, _, station = ask.path.strip("/").partition("/")
        if kind not in _READINGS or station not in self._known:
            return NOT_FOUND
        degrees = random.Random(ask.path)
        readings = " ".join(str(degrees.randrange(-9, 35)) for _ in range(_READINGS[kind]))
        below = _BELOW.get(kind)
        links = {"/": "All stations"} | ({f"/{below}/{station}": f"The {below}"} if below else {})
        shown = f"Degrees of the {kind}: {readings}.", self._network
        return page(kind.title(), *shown, key=f"{kind} {station}", links=links)


class Archive(MadeSite):
    """Years that lead to months, and months that lead to days, each with the one before and after.

    Addresses have ids that do not count. A page has six numbers below 15, and no other words of its own.
    """

    def __init__(self, years: int, months: int, days: int) -> None:
        super().__init__()
        self._below = {"archive": [f"year {year}" for year in range(years)]}
        for year in self._below["archive"]:
            self._below[year] = [f"{year} month {month}" for month in range(months)]
            for month in self._below[year]:
                self._below[month] = [f"{month} day {day}" for day in range(days)]
        self._above = {name: above for above, below in self._below.items() for name in below}
        self.keys = frozenset(self._above) | {"archive"}
        self._named = {_id_of(name): name for name in self._above}
        self._rules = passage("lottery", 120)

    def answer(self, ask: Ask) -> Answer:
        name = "archive" if ask.path == "/" else self._named.get(ask.path.removeprefix("/of/"))
        if name is None:
            return NOT_FOUND
        drawn = random.Random(name)
        numbers = " ".join(str(drawn.randrange(15)) for _ in range(6))
        beside = self._below[self._above[name]] if name in self._above else []
        shown = {*self._below.get(name, ()), *_neighbours(beside, name)}
        links = {f"/of/{_id_of(other)}": "Numbers" for other in sorted(shown)}
        return page("Draws", numbers, self._rules, key=name, links=links | {"/": "Archive"})


def _id_of(name: str) -> str:
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


def _neighbours(names: list[str], name: str) -> list[str]:
    place = names.index(name) if name in names else 0
    return [names[other] for other in (place - 1, place + 1) if names and 0 <= other < len(names)]
