"""A site whose pages differ in a tenth of their words: the rest is its template."""

from __future__ import annotations

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import passage, prose


class Template(MadeSite):
    """So many pages in a tree, each with its own words within those of the template; all have one title and
    one heading.
    """

    spider = "url"

    def __init__(self, pages: int = 40, *, words: int = 450, own: int = 50) -> None:
        super().__init__()
        self._template = passage("template", words)
        self._texts = [prose(f"own {number}", own) for number in range(pages)]
        self.keys = frozenset(f"page {number}" for number in range(pages))

    def answer(self, ask: Ask) -> Answer:
        name = ask.path.removeprefix("/page/")
        number = 0 if ask.path == "/" else int(name)
        if number >= len(self._texts):
            return NOT_FOUND
        children = range(3 * number + 1, min(3 * number + 4, len(self._texts)))
        half = len(self._template) // 2
        return page(
            "Our pages",
            self._template[:half],
            self._texts[number],
            self._template[half:],
            key=f"page {number}",
            links={f"/page/{child}": f"{child}" for child in children},
        )
