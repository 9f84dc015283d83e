"""A shop whose products name their brands by number, and a spider that reads the names first."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import scrapy

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.spiders import BREADTH_FIRST
from tests.support.sites.text import passage, prose, vocabulary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response

_NUMBER = 40
_ON_A_LIST = 20


class Brands(MadeSite):
    """So many brands, whose pages are alike, and products, which are not. Each product is to be found."""

    spider = "brands"

    def __init__(self, *, first: bool) -> None:
        """``first``: the spider gives the pages of brands a priority. If not, it reads breadth first."""
        super().__init__()
        if first:
            self.arguments = {"priority": "10"}
        self._frame = passage("brand", 150)
        self.keys = frozenset(f"/product/{number}" for number in range(_NUMBER))

    @staticmethod
    def name(brand: int) -> str:
        return " ".join(random.Random(brand).sample(vocabulary(), 2))

    def answer(self, ask: Ask) -> Answer:
        kind, _, number = ask.path[1:].partition("/")
        if kind == "brand":
            return page("Brand", self._frame, f'<p id="name">{self.name(int(number))}</p>')
        if kind == "product":
            return page(number, prose(number, 150), f'<p id="brand">{number}</p>', key=ask.path)
        if kind == "brands":
            return page("Brands", links={f"/brand/{each}": "Brand" for each in range(_NUMBER)})
        if kind == "list":
            first = int(number) * _ON_A_LIST
            products = {f"/product/{each}": f"Product {each}" for each in range(first, first + _ON_A_LIST)}
            return page(f"List {number}", links=products)
        if kind:
            return NOT_FOUND
        lists = {f"/list/{each}": f"List {each}" for each in range(_NUMBER // _ON_A_LIST)}
        return page("Shop", links={"/brands": "Brands"} | lists)


class BrandsSpider(scrapy.Spider):
    """Keeps the names of brands by itself, for the items of products."""

    name = "brands"
    custom_settings = BREADTH_FIRST | {"CONCURRENT_REQUESTS": 1}

    def __init__(self, start: str, priority: str = "0", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start]
        self.names: dict[str, str] = {}
        self.priority = int(priority)

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        callbacks = {"/list/": self.parse, "/brand/": self.brand, "/product/": self.product}
        for link in response.css("nav a::attr(href)").getall():
            request = response.follow(link)
            path = urlsplit(request.url).path
            first = self.priority * path.startswith("/brand")
            callback = next((callback for name, callback in callbacks.items() if name in path), self.parse)
            yield request.replace(callback=callback, priority=first)

    def brand(self, response: Response) -> Iterator[Any]:
        name = self.names[response.url.rpartition("/")[2]] = str(response.css("#name::text").get())
        if self.priority:  # so that its callback is known to give something
            yield {"name": name}

    def product(self, response: Response) -> Iterator[Any]:
        number = str(response.css("#brand::text").get())
        yield {"number": number, "brand": self.names.get(number)}
