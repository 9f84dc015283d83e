"""Spaces of URLs without end, each beside ordinary pages that are all to be found."""

from __future__ import annotations

import random
from datetime import date, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from tests.support.sites.served import Answer, Ask, page
from tests.support.sites.sessions import Pages
from tests.support.sites.text import passage, prose

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST = date(2026, 11, 1)
_EVENT_EVERY = 3
"""Months from one event to the next."""
_MONTHS_WITH_EVENTS = 24
_NOTICES = 300
"""Words that stand on every page of the calendar."""


def _next_month(month: date) -> date:
    return (month + timedelta(days=31)).replace(day=1)


def _last_month(month: date) -> date:
    return (month - timedelta(days=1)).replace(day=1)


def _with_link(answer: Answer, href: str, name: str) -> Answer:
    """A page with one link more."""
    return Answer(answer.body.replace("</nav>", f'<a href="{href}">{name}</a></nav>'), key=answer.key)


def time_taken(asked: int) -> str:
    """What a page says of how long it took to be made."""
    return f"Page made in 0.{random.Random(asked).randrange(10, 400):03d} s."


def clock(asked: int) -> str:
    """The time on a page, with seconds."""
    seconds = 36_000 + 7 * asked
    return f"It is {seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}."


class Calendar(Pages):
    """A calendar of months, each linked with the one before and after; the first two years have an event
    every third month.

    ``days``: each month links to its days, each of which links to the day before and after. ``foot`` gives
    what else stands on a page, anew for each request.
    """

    most_requests = 10_000

    def __init__(
        self, pages: int = 30, *, days: bool = False, foot: Callable[[int], str] = lambda _: ""
    ) -> None:
        super().__init__(pages)
        self._days = days
        self._foot = foot
        self._asked = 0
        self._notices = passage("calendar", _NOTICES)
        month, self._events = _FIRST, []
        for number in range(_MONTHS_WITH_EVENTS):
            if number % _EVENT_EVERY == 0:
                self._events.append(f"{month:%Y-%m}")
            month = _next_month(month)
        self.keys |= {"calendar"} | {f"event {month}" for month in self._events}
        if days:
            self.keys |= {"day"}

    def answer(self, ask: Ask) -> Answer:
        self._asked += 1
        if ask.path == "/calendar":
            return self._month(date.fromisoformat(f"{ask.query['month']}-01"))
        if ask.path == "/day":
            return self._day(date.fromisoformat(ask.query["date"]))
        month = ask.path.removeprefix("/event/")
        if month in self._events:
            return page(f"Event of {month}", prose(ask.path, 150), key=f"event {month}", links={"/": "Home"})
        return super().answer(ask)

    def numbered(self, number: int, query: str) -> Answer:
        return _with_link(super().numbered(number, query), f"/calendar?month={_FIRST:%Y-%m}", "Calendar")

    def _month(self, month: date) -> Answer:
        before, after = _last_month(month), _next_month(month)
        days = [month + timedelta(days=number) for number in range((after - month).days)]
        cells = "".join(f"<td>{self._cell(day)}</td>" for day in days)
        links = {f"/calendar?month={other:%Y-%m}": f"{other:%B %Y}" for other in (before, after)}
        name = f"{month:%Y-%m}"
        if name in self._events:
            links[f"/event/{name}"] = "Event"
        table = f"<table><tr>{cells}</tr></table>"
        shown = table, self._notices, self._foot(self._asked)
        return page(f"{month:%B %Y}", *shown, key="calendar", links=links | {"/": "Home"})

    def _cell(self, day: date) -> str:
        return f'<a href="/day?date={day}">{day.day}</a>' if self._days else str(day.day)

    def _day(self, day: date) -> Answer:
        others = (day - timedelta(days=1), day + timedelta(days=1))
        links = {f"/day?date={other}": f"{other:%d %B}" for other in others}
        links[f"/calendar?month={day:%Y-%m}"] = f"{day:%B %Y}"
        shown = "Nothing on this day.", self._notices, self._foot(self._asked)
        return page(f"{day:%d %B %Y}", *shown, key="day", links=links)


class Agenda(Pages):
    """Views of years, weeks and days, each linked with the one before and after.

    A year links to its weeks, a week to its days. Twenty days of the first year have an event. Weeks tell
    dates and little else, so that each passes for new. All views tell the time.
    """

    most_requests = 20_000
    _hours = " ".join(f"{hour}:{minutes}" for hour in range(8, 20) for minutes in ("00", "30"))

    def __init__(self, pages: int = 10) -> None:
        super().__init__(pages)
        chosen = random.Random(3).sample(range(365), 20)
        self._events = {_FIRST + timedelta(days=number): prose(f"event {number}", 60) for number in chosen}
        self._asked = 0
        self.keys |= {"year", "week", "day"} | {f"event {day}" for day in self._events}

    def answer(self, ask: Ask) -> Answer:
        view = ask.path.removeprefix("/")
        if view == "year":
            return self._year(int(ask.query["year"]))
        if view not in {"week", "day"}:
            return super().answer(ask)
        day = date.fromisoformat(ask.query["from"])
        return self._week(day) if view == "week" else self._day(day)

    def numbered(self, number: int, query: str) -> Answer:
        return _with_link(super().numbered(number, query), "/year?year=2026", "Agenda")

    def _year(self, year: int) -> Answer:
        first = date(year, 1, 1)
        days = [first + timedelta(days=number) for number in range(365)]
        cells = " ".join(
            (f"{day:%B} " if day.day == 1 else "")
            + (f'<a href="/week?from={day}">{day:%V}</a> ' if day.weekday() == 0 else "")
            + str(day.day)
            for day in days
        )
        links = {f"/year?year={other}": str(other) for other in (year - 1, year + 1)}
        return self._view(f"{year}", [cells], "year", links)

    def _week(self, start: date) -> Answer:
        days = [start + timedelta(days=number) for number in range(7)]
        shown = [f"{day:%A, %d} {self._hours} {self._events.get(day, '')}" for day in days]
        links = {f"/day?from={day}": f"{day:%A}" for day in days}
        links |= {f"/week?from={start + timedelta(days=step)}": "other week" for step in (-7, 7)}
        return self._view(f"Week {start:%V, %b %Y}", shown, "week", links)

    def _day(self, day: date) -> Answer:
        links = {f"/day?from={day + timedelta(days=step)}": "other day" for step in (-1, 1)}
        monday = day - timedelta(days=day.weekday())
        links |= {f"/week?from={monday}": "Week", f"/year?year={day.year}": "Year"}
        key = f"event {day}" if day in self._events else "day"
        return self._view(f"{day:%A, %B %d, %Y}", [self._hours, self._events.get(day, "")], key, links)

    def _view(self, title: str, shown: list[str], key: str, links: dict[str, str]) -> Answer:
        self._asked += 1
        return page(title, *shown, clock(self._asked), key=key, links=links)


class BeyondTheLast(Pages):
    """Listings of the pages by tens, each with a link to the next; beyond the last one there is the last one
    again, for ever. ``counted``: a listing says the numbers of the pages that were asked for.
    """

    most_requests = 2_000
    _per_listing = 10

    def __init__(self, pages: int = 85, *, counted: bool = False) -> None:
        super().__init__(pages)
        self._counted = counted
        self._listings = -(-pages // self._per_listing)
        self.keys |= {f"listing {number}" for number in range(1, self._listings + 1)}

    def answer(self, ask: Ask) -> Answer:
        if ask.path != "/list":
            return super().answer(ask)
        asked = int(ask.query["page"])
        number = min(asked, self._listings)
        first = (number - 1) * self._per_listing
        shown = range(first, min(first + self._per_listing, len(self.titles)))
        links = {f"/page/{other}" if other else "/": self.titles[other] for other in shown}
        links[f"/list?page={asked + 1}"] = "Next"
        last = asked * self._per_listing
        told = f"Pages {last - self._per_listing + 1} to {last}." if self._counted else ""
        text = prose(f"listing {number}", 80)
        return page("All pages", told, text, key=f"listing {number}", links=links)

    def numbered(self, number: int, query: str) -> Answer:
        return _with_link(super().numbered(number, query), "/list?page=1", "All pages")


class Visited(Pages):
    """A calendar whose months are counted from the first one, for ever: each page has a clock, the number of
    its visitors, and a token of its own.
    """

    most_requests = 2_000

    def __init__(self, pages: int = 30) -> None:
        super().__init__(pages)
        self._notices = passage("calendar", _NOTICES)
        self._visits = 0
        self.keys |= {"month"}

    def answer(self, ask: Ask) -> Answer:
        name = ask.path.removeprefix("/month/")
        if name == ask.path:
            return super().answer(ask)
        self._visits += 1
        month = date(2026 + (number := int(name)) // 12, number % 12 + 1, 1)
        time = f"{self._visits % 24}:{self._visits * 7 % 60:02d}"
        told = f"Visitor {98_000 + self._visits}, {time}. Form {uuid4().hex}"
        links = {f"/month/{number + 1}": "Next month"}
        return page("Calendar", f"{month:%B %Y}", self._notices, told, key="month", links=links)

    def numbered(self, number: int, query: str) -> Answer:
        return _with_link(super().numbered(number, query), "/month/100", "Calendar")
