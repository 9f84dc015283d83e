"""Many ways below a list: each page on them is like those of the other ways, but for a few numbers."""

from __future__ import annotations

import random

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import digest, passage

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
    """A tree of pages, each with links to those below, and to the one before and after.

    ``below``: how many pages are below each page of a level. ``siblings``: whether the pages of the last
    level link to each other. Addresses have ids that do not count. A page has six numbers below 15, and no
    other words of its own. ``made_up``: these numbers are others at each request.
    """

    def __init__(self, *below: int, siblings: bool = True, made_up: bool = False) -> None:
        super().__init__()
        self._below: dict[str, list[str]] = {}
        level = ["archive"]
        for depth, number in enumerate(below):
            for name in level:
                self._below[name] = [f"{name} {depth}.{each}" for each in range(number)]
            level = [name for above in level for name in self._below[above]]
        self._alone = frozenset() if siblings else frozenset(level)
        self._made_up = made_up
        self._above = {name: above for above, names in self._below.items() for name in names}
        self.keys = frozenset(self._above) | {"archive"}
        self._named = {digest(name): name for name in self._above}
        self._rules = passage("lottery", 120)

    def answer(self, ask: Ask) -> Answer:
        name = "archive" if ask.path == "/" else self._named.get(ask.path.removeprefix("/of/"))
        if name is None:
            return NOT_FOUND
        drawn = random.Random(None if self._made_up else f"{name}{self.now()}")
        numbers = " ".join(str(drawn.randrange(15)) for _ in range(6))
        beside = [] if name in self._alone or name == "archive" else self._below[self._above[name]]
        shown = {*self._below.get(name, ()), *_neighbours(beside, name)}
        links = {f"/of/{digest(other)}": "Numbers" for other in sorted(shown)}
        return page("Draws", numbers, self._rules, key=name, links=links | {"/": "Archive"})

    def now(self) -> str:
        """What the numbers depend on beside their page."""
        return ""


def _neighbours(names: list[str], name: str) -> list[str]:
    place = names.index(name) if name in names else 0
    return [names[other] for other in (place - 1, place + 1) if names and 0 <= other < len(names)]
