"""Many short ways below a list: each page on them is like those of the other ways, but for a few numbers."""

from __future__ import annotations

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
