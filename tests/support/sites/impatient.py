"""Sites where a request that waits loses pages."""

from __future__ import annotations

import time

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import prose


class ShortCut(MadeSite):
    """The short way to a hub leads through a copy, a longer one does not; behind the hub are ten leaves."""

    leaves = 10
    others = 30
    """Ways that keep the crawl busy while the copy's link waits."""
    depth = 5
    """Of the last pages by the short way. By the longer one the hub has that depth, too."""

    def __init__(self) -> None:
        super().__init__()
        self._links = {
            "/": {
                **{f"/other/{number}/1": f"Other {number}" for number in range(self.others)},
                "/guide": "Guide",
                "/guide/print": "Print",
            },
            "/guide": {"/way/1": "Next"},
            "/guide/print": {"/door": "Door"},
            "/door": {"/hub": "Hub"},
            **{f"/way/{step}": {f"/way/{step + 1}": "Next"} for step in range(1, 3)},
            "/way/3": {"/hub": "Hub"},
            "/hub": {f"/leaf/{number}": f"Leaf {number}" for number in range(self.leaves)},
            **{f"/leaf/{number}": {f"/end/{number}": "Deeper"} for number in range(self.leaves)},
            **{f"/end/{number}": {} for number in range(self.leaves)},
        }
        for number in range(self.others):
            for step in range(1, self.depth):
                self._links[f"/other/{number}/{step}"] = {f"/other/{number}/{step + 1}": "Next"}
            self._links[f"/other/{number}/{self.depth}"] = {}
        self.keys = frozenset(self._key(path) for path in self._links)

    def answer(self, ask: Ask) -> Answer:
        if ask.path not in self._links:
            return NOT_FOUND
        key = self._key(ask.path)
        links = {"/": "Home", **self._links[ask.path]}
        return page(f"Page {key}", prose(key, 120), key=key, links=links)

    def _key(self, path: str) -> str:
        return path.removesuffix("/print")


class Signed(MadeSite):
    """Articles with print views, which link to an appendix by a URL that is good for so many requests."""

    good_for = 20

    def __init__(self, number: int = 30) -> None:
        super().__init__()
        self._number = number
        self._asked = 0
        names = (f"{kind} {place}" for kind in ("article", "appendix") for place in range(number))
        self.keys = frozenset({"home", *names})

    def answer(self, ask: Ask) -> Answer:
        self._asked += 1
        if ask.path == "/":
            links = {f"/article/{place}": f"Article {place}" for place in range(self._number)}
            return page("Home", prose("home", 80), key="home", links=links)
        kind, place, view = (ask.path[1:] + "//").split("/")[:3]
        if kind not in {"article", "appendix"} or not place.isdigit() or int(place) >= self._number:
            return NOT_FOUND
        key = f"{kind} {place}"
        links = {}
        if kind == "appendix":
            if self._asked - int(ask.query["sig"]) > self.good_for:
                return Answer("<h1>Expired</h1>", status=403)
        elif view == "print":
            links = {f"/appendix/{place}?expires={int(time.time()) + 300}&sig={self._asked}": "Appendix"}
        else:
            links = {f"/article/{place}/print": "Print"}
        return page(key.title(), prose(key, 120), key=key, links=links)
