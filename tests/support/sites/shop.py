"""Shops: products behind listings that differ in their cards alone."""

from __future__ import annotations

import random
from itertools import islice
from typing import Literal, get_args

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import names, passage, prose

Cards = Literal["names", "images with alt", "images"]
"""What a card of a listing shows beside the price."""

Paging = Literal["next", "window", "numbered"]
"""Which listings a listing links to: the next one, those up to three before and after it, or all."""

Products = Literal["own", "names", "numbers"]
"""Product pages have texts of their own, or 550 words that differ in the name, which is words or a number."""

CARDS: tuple[Cards, ...] = get_args(Cards)
PAGINGS: tuple[Paging, ...] = get_args(Paging)

_WINDOW = 3
_ALIKE_WORDS = 550
_OWN_WORDS = 120


class Shop(MadeSite):
    """So many products, ``per_listing`` on a listing with so many words of ``boilerplate``."""

    def __init__(
        self,
        products: int = 2_000,
        per_listing: int = 20,
        *,
        cards: Cards = "names",
        boilerplate: int = 2_000,
        paging: Paging = "next",
        alike: Products = "own",
    ) -> None:
        super().__init__()
        self._per_listing = per_listing
        self._cards = cards
        self._paging = paging
        self._alike = alike
        self._boilerplate = passage("shop", boilerplate)
        self._names = list(islice(names("products"), products))
        if alike == "numbers":
            self._names = [f"Product {number + 1}" for number in range(products)]
        draw = random.Random("prices")
        self._prices = [
            f"{draw.randrange(5, 90)}.{draw.choice(('00', '50', '95', '99'))}" for _ in self._names
        ]
        self._same_text = passage("every product", _ALIKE_WORDS)
        self.listings = -(-products // per_listing)
        self.keys = frozenset(
            ["home"]
            + [f"product {number}" for number in range(products)]
            + [f"listing {number}" for number in range(1, self.listings + 1)]
        )

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            return page("The shop", prose("home", 150), key="home", links={"/list?page=1": "All products"})
        if ask.path == "/list":
            number = int(ask.query["page"])
            return self._listing(number) if 1 <= number <= self.listings else NOT_FOUND
        number = int(ask.path.removeprefix("/product/"))
        return self._product(number) if number < len(self._names) else NOT_FOUND

    def _product(self, number: int) -> Answer:
        name = self._names[number]
        text = prose(f"product {number}", _OWN_WORDS) if self._alike == "own" else self._same_text
        return page(
            name, f"Price: {self._prices[number]}", text, key=f"product {number}", links={"/": "The shop"}
        )

    def _listing(self, number: int) -> Answer:
        first = (number - 1) * self._per_listing
        shown = range(first, min(first + self._per_listing, len(self._names)))
        cards = "".join(f"<li>{self._card(product)}</li>" for product in shown)
        half = len(self._boilerplate) // 2
        return page(
            "All products",
            self._boilerplate[:half],
            f"<ul>{cards}</ul>",
            self._boilerplate[half:],
            key=f"listing {number}",
            links={f"/list?page={other}": text for other, text in self._others(number).items()},
        )

    def _card(self, product: int) -> str:
        name = self._names[product]
        what = name
        if self._cards != "names":
            alt = f' alt="{name}"' if self._cards == "images with alt" else ""
            what = f'<img src="/images/{product}.jpg"{alt}>'
        return f'<a href="/product/{product}">{what}</a> <span>{self._prices[product]}</span>'

    def _others(self, number: int) -> dict[int, str]:
        """The listings that one links to, with the texts of the links."""
        if self._paging == "next":
            return {number + 1: "Next"} if number < self.listings else {}
        first, last = 1, self.listings
        if self._paging == "window":
            first, last = max(first, number - _WINDOW), min(last, number + _WINDOW)
        return {other: str(other) for other in range(first, last + 1) if other != number}
