"""A site whose pages say which one is their canonical page, and which are versions for other languages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import names, prose

if TYPE_CHECKING:
    from collections.abc import Callable


class Declaring(MadeSite):
    """Another site, in whose heads the canonical URL stands that ``canonical_of`` gives."""

    def __init__(self, site: MadeSite, canonical_of: Callable[[Ask], str]) -> None:
        super().__init__()
        self._site = site
        self._canonical_of = canonical_of
        self.keys = site.keys
        self.start = site.start
        self.most_requests = site.most_requests

    def answer(self, ask: Ask) -> Answer:
        answer = self._site.answer(ask)
        link = f'<link rel="canonical" href="{self._canonical_of(ask)}">'
        return replace(answer, body=answer.body.replace("<head>", f"<head>{link}", 1))


class Regions(MadeSite):
    """Pages with the same text for each of three regions; ``tells``: each names the other two as versions."""

    REGIONS = ("en-us", "en-gb", "en-au")

    def __init__(self, number: int = 20, *, tells: bool = True) -> None:
        super().__init__()
        titles = names("regions")
        self._titles = [next(titles) for _ in range(number)]
        self._texts = [prose(f"region page {place}", 200) for place in range(number)]
        self._tells = tells
        self.keys = frozenset(["home", *(f"page {place}" for place in range(number))])

    def answer(self, ask: Ask) -> Answer:
        _, _, rest = ask.path.removeprefix("/").partition("/")
        if not rest:
            links = {
                f"/{region}/d{place % 3}/{place}": title
                for region in self.REGIONS
                for place, title in enumerate(self._titles)
            }
            return page("Home", prose("regions", 200), key="home", links=links)
        place = int(rest.partition("/")[2])
        if place >= len(self._titles):
            return NOT_FOUND
        answer = page(self._titles[place], self._texts[place], key=f"page {place}", links={"/": "Home"})
        if not self._tells:
            return answer
        said = "".join(
            f'<link rel="alternate" hreflang="{region}" href="/{region}/{rest}">' for region in self.REGIONS
        )
        return replace(answer, body=answer.body.replace("<head>", f"<head>{said}", 1))
