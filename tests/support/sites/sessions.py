"""Sites of ordinary and of alike pages, with or without session ids in their URLs."""

from __future__ import annotations

from random import sample
from uuid import uuid4

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import names, prose


class Pages(MadeSite):
    """So many pages with texts of their own, in a tree; each links to its two children, to its parent and to
    the first page.
    """

    def __init__(self, pages: int = 85, words: int = 200) -> None:
        super().__init__()
        titles = names("pages")
        self.titles = [next(titles) for _ in range(pages)]
        self._texts = [prose(f"page {number}", words) for number in range(pages)]
        self.keys = frozenset(f"page {number}" for number in range(pages))

    def answer(self, ask: Ask) -> Answer:
        number = self.number(ask.path)
        if number is None:
            return NOT_FOUND
        return self.numbered(number, query="")

    def number(self, path: str) -> int | None:
        """The page at a path."""
        if path == "/":
            return 0
        name = path.removeprefix("/page/")
        return int(name) if name.isdigit() and 0 < int(name) < len(self.titles) else None

    def numbered(self, number: int, query: str) -> Answer:
        """A page, with links that carry a query."""
        count = len(self.titles)
        others = (2 * number + 1, 2 * number + 2, (number - 1) // 2)
        links = {f"/page/{other}{query}": self.titles[other] for other in others if 0 < other < count}
        return page(
            self.titles[number],
            self._texts[number],
            key=f"page {number}",
            links={f"/{query}": "Home", **links},
        )


class SessionIds(Pages):
    """The links of a page carry the session id that it was asked with; who has none gets a new one.

    ``endless``: each page hands out new ids forever, so that there are endlessly many URLs.
    """

    def __init__(self, pages: int = 85, words: int = 200, *, endless: bool = False) -> None:
        super().__init__(pages, words)
        self._endless = endless

    def answer(self, ask: Ask) -> Answer:
        number = self.number(ask.path)
        if number is None:
            return NOT_FOUND
        session = "" if self._endless else ask.query.get("sid", "")
        return self.numbered(number, query=f"?sid={session or uuid4().hex}")


class AlikeSessions(SessionIds):
    """Pages of one heading and one long text, each with a name of its own; each answer hands out a new id.

    Each links to the next and to two others, or to the next alone if they stand ``in_a_row``.
    """

    def __init__(self, pages: int, *, in_a_row: bool = False) -> None:
        super().__init__(pages, words=1, endless=True)
        self._common = prose("alike", 400)
        self._in_a_row = in_a_row

    def numbered(self, number: int, query: str) -> Answer:
        others = (number + 1,) if self._in_a_row else (number + 1, 31 * number + 7, 17 * number + 3)
        links = {f"/page/{other % len(self.titles)}{query}": "More" for other in others}
        return page(
            "Flowers",
            f"<p>{self.titles[number]}</p>",
            self._common,
            key=f"page {number}",
            links={f"/{query}": "Home", **links},
        )


class Teasers(Pages):
    """Alike items, each with a name of its own, at ``/item?id=…``. Each answer links to some others."""

    drawn = 5
    """How many: each item is named several times, since answers to a look ahead have links, too."""

    def __init__(self, pages: int) -> None:
        super().__init__(pages, words=1)
        self._common = prose("drawn", 400)
        self._left: list[int] = []

    def answer(self, ask: Ask) -> Answer:
        number = int(ask.query.get("id", 0))
        if number >= len(self.titles):
            return NOT_FOUND
        if len(self._left) < self.drawn:
            self._left += sample(range(1, len(self.titles)), len(self.titles) - 1)
        drawn, self._left = self._left[: self.drawn], self._left[self.drawn :]
        return page(
            "Flowers",
            f"<p>{self.titles[number]}</p>",
            self._common,
            key=f"page {number}",
            links={f"/item?id={other}": "Another one" for other in drawn},
        )
