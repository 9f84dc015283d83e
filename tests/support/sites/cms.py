"""Sites with all the URLs that such sites have for one page: a content management system, a forum."""

from __future__ import annotations

import random
from datetime import date, timedelta
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import names, passage, prose

_SECTIONS = 6
_ON_A_PAGE = 5
_ORDERS = ("date", "title", "author")
_ON_A_BOARD = 10
_WORDS = 300
_FIRST_DAY = date(2020, 1, 1)
_DAYS = 2_000
"""Days of the calendar: more than anybody asks for."""


class Article(NamedTuple):
    """What an article of a made site shows."""

    title: str
    text: str


def articles(seed: str, number: int) -> list[Article]:
    """So many articles, each with a text of its own."""
    titles = islice(names(seed), number)
    return [Article(title, prose(f"{seed} {place}", _WORDS)) for place, title in enumerate(titles)]


def handed_out(ask: Ask, name: str, one_in: int) -> str:
    """The session id of the links of a page: that of its URL, or, for one URL of so many, a new one."""
    draw = random.Random(f"{ask.host}{ask.target}")
    old = ask.query.get(name, "")
    return old if old and draw.randrange(one_in) else f"{draw.getrandbits(64):016x}"


class Cms(MadeSite):
    """Articles in sections, with parameters, views, a mirror and a calendar that nobody needs.

    - ``?sid=``: some pages hand out new session ids in their links, without end.
    - ``?sort=``: the five articles on each page of a section in three orders.
    - ``/print/``: each article once more.
    - a mirror host that has everything.
    - ``/calendar/``: days without events, each linked with the next.
    """

    most_requests = 1_500
    host = "http://www.cms.example.com"
    mirror = "http://mirror.cms.example.com"

    def __init__(self, number: int = 300) -> None:
        super().__init__()
        self._articles = articles("cms", number)
        self._frame = passage("cms", 60)
        self.keys = frozenset(
            ["home", "calendar"]
            + [f"article {place}" for place in range(number)]
            + [
                f"section {section} page {place}"
                for section in range(_SECTIONS)
                for place in range(-(-len(range(section, number, _SECTIONS)) // _ON_A_PAGE))
            ]
        )

    def answer(self, ask: Ask) -> Answer:
        kind, _, rest = ask.path.removeprefix("/").partition("/")
        if not kind:
            return self._home(ask)
        if kind == "calendar":
            return self._day(ask, rest)
        if kind == "print":
            return self._article(ask, rest, printed=True)
        if rest:
            return self._article(ask, f"{kind}/{rest}", printed=False)
        return self._section(ask, kind)

    def _links(self, ask: Ask, targets: dict[str, str]) -> dict[str, str]:
        """Targets with the session id of the page, and the page itself on the mirror."""
        sid = handed_out(ask, "sid", 8)
        told = {
            f"{target}{'&amp;' if '?' in target else '?'}sid={sid}": text for target, text in targets.items()
        }
        return told | {f"{self.mirror}{ask.path}": "Mirror"}

    def _home(self, ask: Ask) -> Answer:
        targets = {f"/section{number}": f"Section {number}" for number in range(_SECTIONS)}
        links = self._links(ask, targets | {f"/calendar/{_FIRST_DAY:%Y/%m/%d}": "Calendar"})
        return page("Home", self._frame, prose("cms home", _WORDS), key="home", links=links)

    def _section(self, ask: Ask, name: str) -> Answer:
        section = name.removeprefix("section")
        if not section.isdigit() or int(section) >= _SECTIONS:
            return NOT_FOUND
        order, number = ask.query.get("sort", ""), int(ask.query.get("page", "0"))
        places = range(int(section), len(self._articles), _SECTIONS)
        shown = list(places[number * _ON_A_PAGE : (number + 1) * _ON_A_PAGE])
        if not shown:
            return NOT_FOUND
        random.Random(order).shuffle(shown)
        targets = {f"/{name}/{place}.html": "Read" for place in shown}
        targets |= {f"/{name}?sort={other}": f"By {other}" for other in _ORDERS} | {"/": "Home"}
        if len(places) > (number + 1) * _ON_A_PAGE:
            ordered = f"sort={order}&amp;" if order else ""
            targets[f"/{name}?{ordered}page={number + 1}"] = "More"
        teasers = [f"{self._articles[place].title}. {prose(f'teaser {place}', 120)}" for place in shown]
        return page(
            f"Section {section}",
            *teasers,
            key=f"section {section} page {number}",
            links=self._links(ask, targets),
        )

    def _article(self, ask: Ask, rest: str, *, printed: bool) -> Answer:
        name, _, file = rest.partition("/")
        number = file.removesuffix(".html")
        if not number.isdigit() or int(number) >= len(self._articles):
            return NOT_FOUND
        place = int(number)
        title, text = self._articles[place]
        targets = {f"/{name}": "Up"}
        if not printed:
            other = (place * 7 + 5) % len(self._articles)
            targets |= {
                f"/print/{name}/{place}.html": "Print",
                f"/section{other % _SECTIONS}/{other}.html": self._articles[other].title,
                "/": "Home",
            }
        parts = [text] if printed else [self._frame[:120], text]
        return page(title, *parts, key=f"article {place}", links=self._links(ask, targets))

    def _day(self, ask: Ask, rest: str) -> Answer:
        try:
            day = date(*map(int, rest.split("/")))
        except (TypeError, ValueError):
            return NOT_FOUND
        next_day, last_day = day + timedelta(days=1), day - timedelta(days=1)
        targets = {
            f"/calendar/{other:%Y/%m/%d}": text
            for other, text in ((last_day, "Before"), (next_day, "After"))
            if _FIRST_DAY <= other < _FIRST_DAY + timedelta(days=_DAYS)
        }
        return page(
            f"{day:%d %B %Y}",
            self._frame,
            "There are no events on this day.",
            key="calendar",
            links=self._links(ask, targets),
        )


class SessionPaths(MadeSite):
    """Articles below a segment that is a session id; some pages hand out new ones, without end."""

    most_requests = 1_500
    host = "http://paths.example.com"

    def __init__(self, number: int = 200) -> None:
        super().__init__()
        self._articles = articles("session paths", number)
        self.keys = frozenset(["home"] + [f"article {place}" for place in range(number)])

    def answer(self, ask: Ask) -> Answer:
        session, _, rest = ask.path.removeprefix("/").partition("/")
        draw = random.Random(f"paths {ask.path}")
        if not session or not draw.randrange(6):
            session = f"s-{draw.getrandbits(80):020x}"
        number = rest.removeprefix("docs/").removeprefix("article").removesuffix(".html")
        if not number.isdigit():
            return self._shown(session, None)
        return self._shown(session, int(number)) if int(number) < len(self._articles) else NOT_FOUND

    def _shown(self, session: str, place: int | None) -> Answer:
        count = len(self._articles)
        others = range(1, 6) if place is None else (place * 5 + step for step in range(1, 6))
        links = {
            f"/{session}/docs/article{other % count}.html": self._articles[other % count].title
            for other in others
        }
        links[f"/{session}/"] = "Home"
        if place is None:
            return page("Home", prose("paths home", _WORDS), key="home", links=links)
        return page(*self._articles[place], key=f"article {place}", links=links)


class Forum(MadeSite):
    """Threads and posts as forums have them: by number and by name, with words marked, printed, and with the
    place of one post.
    """

    host = "http://forum.example.com"

    def __init__(self, number: int = 200, posts: int = 3) -> None:
        super().__init__()
        self._articles = articles("forum", number)
        self._posts = posts
        self.keys = frozenset(
            ["boards"]
            + [f"board {board}" for board in range(number // _ON_A_BOARD)]
            + [f"thread {place}" for place in range(number)]
        )

    def answer(self, ask: Ask) -> Answer:
        if ask.path in {"/", "/index.php"}:
            links = {"/viewforum.php?f=0": "First board"}
            links["/index.php"] = "Boards"
            return page("Boards", prose("forum", _WORDS), key="boards", links=links)
        if ask.path == "/viewforum.php":
            return self._board(int(ask.query.get("f", "0")))
        if ask.path == "/viewtopic.php":
            return self._thread(int(ask.query.get("t", "0")), printed="view" in ask.query)
        name = ask.path.removeprefix("/thread_").removesuffix(".html")
        return self._thread(int(name), printed=False) if name.isdigit() else NOT_FOUND

    def _board(self, board: int) -> Answer:
        places = range(board * _ON_A_BOARD, min((board + 1) * _ON_A_BOARD, len(self._articles)))
        links = {f"/viewtopic.php?f={board}&amp;t={place}": self._articles[place].title for place in places}
        links |= {f"/thread_{place}.html": "Archive" for place in places}
        links["/index.php"] = "Boards"
        if (board + 1) * _ON_A_BOARD < len(self._articles):
            links[f"/viewforum.php?f={board + 1}"] = "Next board"
        return page(f"Board {board}", prose(f"board {board}", _WORDS), key=f"board {board}", links=links)

    def _thread(self, place: int, *, printed: bool) -> Answer:
        if not 0 <= place < len(self._articles):
            return NOT_FOUND
        here = f"/viewtopic.php?f={place // _ON_A_BOARD}&amp;t={place}"
        links = {"/index.php": "Boards", f"/viewforum.php?f={place // _ON_A_BOARD}": "Board"}
        if not printed:
            links |= {f"{here}&amp;p={place * 10 + post}": f"Post {post}" for post in range(self._posts)}
            links |= {f"{here}&amp;view=print": "Print", f"{here}&amp;hilit=word": "Marked"}
        return page(*self._articles[place], key=f"thread {place}", links=links)


def asked(url: str) -> Ask:
    """A GET request of a URL, as a site sees it."""
    parts = urlsplit(url)
    query = dict(pair.partition("=")[::2] for pair in parts.query.split("&") if pair)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    return Ask("GET", target, parts.path, query, {}, {}, f"{parts.scheme}://{parts.netloc}")
