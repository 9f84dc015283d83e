"""A site whose articles have two URLs each: rewritten ones, and those of the program behind them."""

from __future__ import annotations

import re

from tests.support.sites.cms import articles
from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page

_FOLDERS = ("news", "sport", "culture")
_LISTED = 10


class TwoWays(MadeSite):
    """Articles are ``/news/story_7.html`` and ``/news/story.php?id=7``. Lists of ten link to the first, and
    articles link to the list and to the next three articles by the second.
    """

    def __init__(self, number: int = 150) -> None:
        super().__init__()
        self._articles = articles("two ways", number)
        self._lists = -(-number // _LISTED)
        lists = [f"list {place}" for place in range(self._lists)]
        self.keys = frozenset(["home", *lists, *(f"article {place}" for place in range(number))])

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            links = {f"/list/{place}": f"List {place}" for place in range(self._lists)}
            return page("Home", "Articles in lists.", key="home", links=links)
        folder, _, name = ask.path.removeprefix("/").partition("/")
        if folder == "list" and name.isdigit() and int(name) < self._lists:
            first = int(name) * _LISTED
            listed = range(first, min(first + _LISTED, len(self._articles)))
            links = {self._path(place): self._articles[place].title for place in listed}
            return page(f"List {name}", *links.values(), key=f"list {name}", links=links)
        found = re.fullmatch(r"story_(\d+)\.html", name)
        number = found[1] if found else ask.query.get("id", "") if name == "story.php" else ""
        if not number.isdigit() or int(number) >= len(self._articles):
            return NOT_FOUND
        return self._article(int(number))

    def _path(self, place: int) -> str:
        return f"/{_FOLDERS[place % 3]}/story_{place}.html"

    def _article(self, place: int) -> Answer:
        links = {f"/list/{place // _LISTED}": "List"}
        for other in range(place + 1, min(place + 4, len(self._articles))):
            links[f"/{_FOLDERS[other % 3]}/story.php?id={other}"] = self._articles[other].title
        title, text = self._articles[place]
        return page(title, text, key=f"article {place}", links=links)
