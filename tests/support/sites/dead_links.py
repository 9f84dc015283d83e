"""A site with dead links: what it answers for pages that it does not have."""

from __future__ import annotations

from itertools import islice
from typing import Literal

from tests.support.sites.served import Answer, Ask, MadeSite, page
from tests.support.sites.text import names, passage, prose

_DEAD_ON_A_PAGE = 2
_FOLDERS = ("news", "stories", "archive")


class DeadLinks(MadeSite):
    """Articles in three folders. Each links to the next one and to two of its folder that are not there.

    ``missing`` is the answer for the latter, and for whatever else is not there: status 404; with status 200
    a notice, one whose heading names what was asked for, or the home page.
    """

    def __init__(
        self,
        number: int = 60,
        *,
        missing: Literal["404", "notice", "echo", "home"] = "notice",
        robots: str = "",
    ) -> None:
        super().__init__()
        self._missing = missing
        self.made_up_for: set[str] = set()
        """Paths of pages that are there by now, though they were dead."""
        self._robots = robots
        self._titles = list(islice(names("dead links"), number))
        self._notice = passage("dead links", 80)
        self.keys = frozenset(["home", *(f"article {place}" for place in range(number))])

    def path(self, place: int) -> str:
        """The path of an article: those of a folder follow each other."""
        folder = _FOLDERS[place * len(_FOLDERS) // len(self._titles)]
        return f"/{folder}/{self._titles[place].lower().replace(' ', '-')}.html"

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/robots.txt":
            return Answer(self._robots, headers={"Content-Type": "text/plain"})
        if ask.path == "/":
            links = {self.path(place): title for place, title in enumerate(self._titles) if place % 10 == 0}
            return page("Home", prose("dead home", 150), key="home", links=links)
        if ask.path in self.made_up_for:
            return page(ask.path, prose(ask.path, 200), links={"/": "Home"})
        place = next((at for at in range(len(self._titles)) if self.path(at) == ask.path), None)
        if place is None:
            return self._not_there(ask)
        folder = self.path(place).rpartition("/")[0]
        links = {f"{folder}/gone-{place}-{n}.html": f"Older {n}" for n in range(_DEAD_ON_A_PAGE)}
        if place + 1 < len(self._titles):
            links[self.path(place + 1)] = self._titles[place + 1]
        text = prose(f"dead links {place}", 200)
        return page(self._titles[place], text, key=f"article {place}", links=links)

    def _not_there(self, ask: Ask) -> Answer:
        if self._missing == "home":
            home = self.answer(Ask("GET", "/", "/", {}, {}, {}))
            return Answer(home.body)
        title = f"There is no {ask.path}" if self._missing == "echo" else "This page is not there"
        found = page(title, self._notice, links={"/": "Home"})
        return found if self._missing != "404" else Answer(found.body, status=404)
