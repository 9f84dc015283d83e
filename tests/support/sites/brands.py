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

    def __init__(self, spider: str, *, brands: int = _NUMBER, **arguments: str) -> None:
        """``brands``: so many are on a list."""
        super().__init__()
        self._brands = brands
        self.spider, self.arguments = spider, arguments
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
            at = int(number or 0)
            brands = {f"/brand/{each}": "Brand" for each in range(at, at + self._brands)}
            further = {f"/brands/{at + self._brands}": "More"} if at + self._brands < _NUMBER else {}
            return page("Brands", self._frame, links=brands | further)
        if kind == "list":
            first = int(number) * _ON_A_LIST
            products = {f"/product/{each}": f"Product {each}" for each in range(first, first + _ON_A_LIST)}
            return page(f"List {number}", links=products)
        if kind:
            return NOT_FOUND
        lists = {f"/list/{each}": f"List {each}" for each in range(_NUMBER // _ON_A_LIST)}
        return page("Shop", links={"/brands": "Brands"} | lists)


class BrandsSpider(scrapy.Spider):
    """Keeps the names of brands in a list, for the items of products: its source tells that of no other list.

    ``priority``: of the pages of brands and their lists. ``products``: of the pages of products. ``gives``:
    the pages of brands give items, too.
    """

    name = "brands"
    custom_settings = BREADTH_FIRST | {"CONCURRENT_REQUESTS": 1}

    def __init__(
        self, start: str, priority: str = "0", products: str = "0", gives: str = "", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start]
        self.names: list[tuple[str, str]] = []
        self.priorities, self.gives = {"/brand": int(priority), "/product": int(products)}, bool(gives)

    def parse(self, response: Response) -> Iterator[scrapy.Request]:
        callbacks = {"/list/": self.parse, "/brand/": self.brand, "/product/": self.product}
        for link in response.css("nav a::attr(href)").getall():
            request = response.follow(link)
            path = urlsplit(request.url).path
            priority = sum(each for name, each in self.priorities.items() if path.startswith(name))
            callback = next((callback for name, callback in callbacks.items() if name in path), self.parse)
            yield request.replace(callback=callback, priority=priority)

    def brand(self, response: Response) -> Iterator[Any]:
        self.names.append(read_brand(response))
        if self.gives:
            yield {"name": read_brand(response)[1]}

    def product(self, response: Response) -> Iterator[Any]:
        number = read_number(response)
        yield {"number": number, "brand": dict(self.names).get(number)}


class DictionarySpider(BrandsSpider):
    """Keeps the names in a dictionary."""

    name = "brands in a dictionary"

    def __init__(self, start: str, **kwargs: Any) -> None:
        super().__init__(start, gives="yes", **kwargs)
        self.by_number: dict[str, str] = {}

    def brand(self, response: Response) -> Iterator[Any]:
        number, self.by_number[number] = read_brand(response)
        yield {"name": self.by_number[number]}

    def product(self, response: Response) -> Iterator[Any]:
        number = read_number(response)
        yield {"number": number, "brand": self.by_number.get(number)}


def read_brand(response: Response) -> tuple[str, str]:
    """The number and the name of a brand."""
    return response.url.rpartition("/")[2], str(response.css("#name::text").get())


def read_number(response: Response) -> str:
    """The number of the brand of a product."""
    return str(response.css("#brand::text").get())
