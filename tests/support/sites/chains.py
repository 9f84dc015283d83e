"""Chains of pages that are nearly alike, each reached from the one before only; they have an end."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from itertools import count
from random import Random

from tests.support.sites.drawn import BESIDE
from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import digest, passage, prose


class Chain(MadeSite):
    """So many pages, whose numbers count from a first one, up or down."""

    name = "entry"

    def __init__(self, first: int, length: int, *, step: int = 1) -> None:
        super().__init__()
        self.numbers = range(first, first + length * step, step)
        self.keys = frozenset({"home"} | {f"{self.name} {number}" for number in self.numbers})

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            return page("Home", prose("home", 100), key="home", links={self._path(self.numbers[0]): "All"})
        name = ask.path.removeprefix(f"/{self.name}/")
        if not name.isdigit() or int(name) not in self.numbers:
            return NOT_FOUND
        number = int(name)
        following = number + self.numbers.step
        links = {self._path(following): "Next"} if following in self.numbers else {}
        return page(*self.shown(number), key=f"{self.name} {number}", links=links)

    def _path(self, number: int) -> str:
        return f"/{self.name}/{number}"

    def shown(self, number: int) -> tuple[str, ...]:
        """Heading and parts of a page."""
        raise NotImplementedError


class Album(Chain):
    """Photos without captions: no text tells them apart."""

    name = "photo"

    def __init__(self) -> None:
        super().__init__(1, 90)
        self._prints = passage("prints", 60)

    def shown(self, number: int) -> tuple[str, ...]:
        return "Photo", f'<figure><img src="/img/{number}.jpg"></figure>', self._prints


class Drawings(Album):
    """Drawings without captions, at addresses that do not count; each image has one name.

    ``lasting``: if it is False, a name is made up whenever a page is asked for.
    """

    name = "drawing"

    def __init__(self, *, lasting: bool = True) -> None:
        super().__init__()
        self._lasting = lasting
        self._answers = count()

    def _made_up(self) -> str:
        """Hexadecimal digits that no answer had before, the same ones in each crawl."""
        return digest(f"answer {next(self._answers)}")

    def answer(self, ask: Ask) -> Answer:
        by_name = {self._path(number): number for number in self.numbers}
        number = by_name.get(ask.path)
        return super().answer(ask if number is None else replace(ask, path=f"/{self.name}/{number}"))

    def _path(self, number: int) -> str:
        return f"/{self.name}/{digest(str(number))}"

    def shown(self, number: int) -> tuple[str, ...]:
        name = digest(f"image {number}") if self._lasting else self._made_up()
        return "Drawing", f'<img src="/img/{name}.jpg">', self._prints


class Beside(Drawings):
    """Pages of one text, at addresses that do not count; ``shows`` names what tells them apart
    (:data:`tests.support.sites.drawn.BESIDE`). Each answer has a token and a time that are not shown.
    """

    name = "page"

    def __init__(self, shows: str) -> None:
        super().__init__()
        self._shows = BESIDE[shows]

    def shown(self, number: int) -> tuple[str, ...]:
        token = self._made_up()
        made_up = (
            f'<input type="hidden" name="token" value="{token}"><script>at({int(token[:4], 16)})</script>'
        )
        return "A page", self._shows(Random(number)), made_up, self._prints


class Strips(Drawings):
    """A comic strip a day, backwards from the last one; address and image tell the day."""

    name = "strip"
    _last = date(2026, 3, 5)

    def _path(self, number: int) -> str:
        return f"/strip/{self._day(number)}"

    def shown(self, number: int) -> tuple[str, ...]:
        return "The Daily Duck", f'<img src="/strips/{self._day(number):%y%m%d}.gif">', self._prints

    def _day(self, number: int) -> date:
        return self._last - timedelta(days=number)


class Draws(Strips):
    """Draws of a lottery, a day each, backwards from the last one; the numbers are below 50.

    ``spelling``: how the address spells the day.
    """

    name = "draw"

    def __init__(self, spelling: str) -> None:
        super().__init__()
        self._spelling = spelling
        self._rules = passage("lottery", 120)

    def _path(self, number: int) -> str:
        return f"/draw/{self._day(number):{self._spelling}}"

    def shown(self, number: int) -> tuple[str, ...]:
        drawn = sorted(Random(number).sample(range(1, 50), 6))
        return "Lottery", " ".join(map(str, drawn)), self._rules


class Readings(Drawings):
    """Readings of a meter, of which a number is all that tells the pages apart."""

    name = "reading"

    def shown(self, number: int) -> tuple[str, ...]:
        made = digest(f"reading {number}") if self._lasting else self._made_up()
        return "Reading", f"{int(made[:8], 16) % 100_000 + 1000} kWh", self._prints


class Customers(Drawings):
    """Forms to change customers; only what stands in the field tells the forms apart."""

    name = "customer"

    def shown(self, number: int) -> tuple[str, ...]:
        field = f'<input name="customer" value="{self._made_name(number)}">'
        return "Customer", f"<form>{field}</form>", self._prints

    def _made_name(self, number: int) -> str:
        return name_of(digest(f"name {number}") if self._lasting else self._made_up())


class Guests(Customers):
    """Pages that say who else is there."""

    name = "guests"

    def shown(self, number: int) -> tuple[str, ...]:
        return "Guests", f"Here is {self._made_name(number)}.", self._prints


class Scripted(Customers):
    """Customers that a script shows, which holds their names."""

    def shown(self, number: int) -> tuple[str, ...]:
        script = f'<script>window.state = {{customer: "{self._made_name(number)}"}};</script>'
        return "Customer", script, self._prints


def name_of(digits: str) -> str:
    """Two words without a digit, made of hexadecimal digits."""
    letters = digits.translate(str.maketrans("0123456789", "ghijklmnop"))
    return f"{letters[:4]} {letters[4:8]}"


class Guestbook(Chain):
    """The newest entry comes first; 60 in a row were removed, and say all the same."""

    removed = range(21, 81)

    def __init__(self, first: int = 100, length: int = 100, *, step: int = -1) -> None:
        super().__init__(first, length, step=step)
        self._removed = passage("removed", 60)

    def shown(self, number: int) -> tuple[str, ...]:
        return "Guestbook", self._removed if number in self.removed else prose(f"entry {number}", 60)


class Diary(Guestbook):
    """The server has pages of all days to come. They say what removed ones say, and lead back alone."""

    removed = range(21, 128)

    def __init__(self) -> None:
        super().__init__(1, 130, step=1)

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            return super().answer(ask)
        number = int(ask.path.rpartition("/")[2])
        links = {self._path(number - 1): "Back"} if number > 1 else {}
        if number not in self.numbers:
            return page("Guestbook", self._removed, links=links)
        if number + 1 in self.numbers:
            links[self._path(number + 1)] = "Next"
        return page(*self.shown(number), key=f"{self.name} {number}", links=links)


class PrintedGuestbook(Guestbook):
    """The first link is to an entry of a hundred removed ones in a row. A parameter counts, and each entry
    has a view for printing and links to those beside it.
    """

    removed = range(86, 186)

    def __init__(self) -> None:
        super().__init__(0, 260, step=1)

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            return page("Home", prose("home", 100), key="home", links={self._path(130): "An entry"})
        number = int(ask.query["id"])
        beside = [other for other in (number - 1, number + 1) if other in self.numbers]
        links = {self._path(other): "More" for other in beside} | {f"{self._path(number)}&print=1": "Print"}
        return page(*self.shown(number), key=f"{self.name} {number}", links=links)

    def _path(self, number: int) -> str:
        return f"/{self.name}?id={number}"


class Washers(Chain):
    """Products with one name, that differ in two numbers."""

    name = "washer"

    def __init__(self) -> None:
        super().__init__(1001, 100)
        self._of_all = passage("washers", 600)

    def shown(self, number: int) -> tuple[str, ...]:
        return "Washer", f"Article {number}, {number % 7}.{number % 10} mm", self._of_all


class Revisions(MadeSite):
    """Articles whose revisions are copies, each with a link to the one before. The first revision of each
    links to a page that nothing else links to.
    """

    def __init__(self, articles: int = 12, revisions: int = 40) -> None:
        super().__init__()
        self._articles, self._revisions = articles, revisions
        self.keys = frozenset(
            f"{kind} {number}" for kind in ("article", "note") for number in range(articles)
        )
        self.keys |= {"home"}

    def answer(self, ask: Ask) -> Answer:
        if ask.path == "/":
            links = {f"/article/{number}": f"Article {number}" for number in range(self._articles)}
            return page("Home", prose("home", 100), key="home", links=links)
        kind, _, name = ask.path[1:].partition("/")
        if kind == "note":
            return page(f"Note {name}", prose(ask.path, 150), key=f"note {name}")
        old = int(ask.query.get("oldid", self._revisions))
        before = f"{ask.path}?oldid={old - 1}" if old else f"/note/{name}"
        return page(f"Article {name}", prose(ask.path, 300), key=f"article {name}", links={before: "Older"})
