"""A wiki: each article in many views."""

from __future__ import annotations

from itertools import islice

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import names, prose

_REVISIONS = 4
_REMOVED_EVERY = 4
"""Of every fourth article an old revision links to an article that no current one links to any more."""
_ORDERS = ("title", "date", "size")


class Wiki(MadeSite):
    """Articles with print views, histories, old revisions and an index in six orders.

    Old revisions 2 and up are near-copies of the article; revision 1 is a text of its own. Some articles are
    found through old revisions alone.
    """

    def __init__(self, articles: int = 100) -> None:
        super().__init__()
        self._titles = list(islice(names("wiki"), articles))
        self._texts = [prose(f"article {number}", 400) for number in range(articles)]
        self.keys = frozenset(
            ["index"]
            + [f"{kind} {number}" for kind in ("article", "stub", "history") for number in range(articles)]
            + [f"removed {number}" for number in range(0, articles, _REMOVED_EVERY)]
        )

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            return self._index(ask.query.get("sort", "title"), ask.query.get("dir", "asc"))
        kind, _, name = ask.path.removeprefix("/").partition("/")
        if not name.isdigit() or int(name) >= len(self._titles):
            return NOT_FOUND
        number = int(name)
        if kind == "removed":
            return page(f"Removed {number}", prose(ask.path, 150), key=f"removed {number}")
        if "oldid" in ask.query:
            return self._revision(number, int(ask.query["oldid"]))
        if ask.query.get("action") == "history":
            return self._history(number)
        return self._article(number, printable="printable" in ask.query)

    def _index(self, order: str, direction: str) -> Answer:
        sort = {
            "title": lambda number: self._titles[number],
            "date": lambda number: number * 37 % 101,
            "size": lambda number: len(self._texts[number]),
        }[order]
        numbers = sorted(range(len(self._titles)), key=sort, reverse=direction == "desc")
        links = {f"/article/{number}": self._titles[number] for number in numbers}
        views = {f"/?sort={name}&amp;dir={way}": name for name in _ORDERS for way in ("asc", "desc")}
        return page("All articles", key="index", links=links | views)

    def _article(self, number: int, *, printable: bool) -> Answer:
        here = f"/article/{number}"
        links = {f"/article/{(number * 3 + 1) % len(self._titles)}": "See also", "/": "All articles"}
        if not printable:
            links |= {f"{here}?printable=yes": "Print", f"{here}?action=history": "History"}
        return page(self._titles[number], self._texts[number], key=f"article {number}", links=links)

    def _history(self, number: int) -> Answer:
        links = {f"/article/{number}?oldid={old}": f"Revision {old}" for old in range(1, _REVISIONS + 1)}
        return page(
            f"History of {self._titles[number]}",
            prose(f"history {number}", 60),
            key=f"history {number}",
            links=links,
        )

    def _revision(self, number: int, old: int) -> Answer:
        links = {f"/article/{number}": "Current revision"}
        if old == 1:
            return page(self._titles[number], prose(f"stub {number}", 100), key=f"stub {number}", links=links)
        if old == 2 and number % _REMOVED_EVERY == 0:
            links[f"/removed/{number}"] = "See also"
        text = f"{self._texts[number]} Revision {old}."
        return page(self._titles[number], text, key=f"article {number}", links=links)
