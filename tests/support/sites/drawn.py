"""Sites that are drawn at random: kinds of pages, what tells them apart, how they link and are addressed.

Each page that says something of its own is to be found. That may be a number, a word, an image, or a value
that is not shown. Beside it stands what all pages of its kind have in common, and perhaps a clock, a counter,
a token or random words. Whoever drops or leaves such a page has lost it.
"""

from __future__ import annotations

import html
import itertools
import json
import random
import re
import time
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from tests.support.sites.served import NOT_FOUND, Answer, Ask, MadeSite, page
from tests.support.sites.text import digest, passage, prose, vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

_LAST_DAY = date(2026, 11, 20)


def _digest(*of: object) -> str:
    return digest(repr(of))


def _words(draw: Random, number: int) -> str:
    return " ".join(draw.sample(vocabulary(), number))


def _numbers(draw: Random, number: int, below: int) -> str:
    return " ".join(str(draw.randrange(below)) for _ in range(number))


def _rows(draw: Random) -> str:
    return "".join(f"<tr><td>{_words(draw, 1)}</td><td>{draw.randrange(100)}</td></tr>" for _ in range(8))


def _data(draw: Random) -> str:
    return f'<script type="application/ld+json">{json.dumps({"name": _words(draw, 2)})}</script>'


OWN: dict[str, Callable[[Random], str]] = {
    "number": lambda draw: f"<p>Value: {draw.randrange(1_000_000)}</p>",
    "numbers": lambda draw: f"<p>{_numbers(draw, 6, 50)}</p>",
    "readings": lambda draw: f"<p>Degrees {_numbers(draw, 4, 35)}</p>",
    "price": lambda draw: f"<p>{draw.randrange(5, 9_000)}.{draw.randrange(100):02} EUR</p>",
    "status": lambda draw: f"<p>Room {draw.randrange(1_000_000)}: {draw.choice(('open', 'closed'))}</p>",
    "name": lambda draw: f"<p>{_words(draw, 2).title()}</p>",
    "names": lambda draw: f"<p>By {_words(draw, 3).title()}</p>",
    "sentence": lambda draw: f"<p>{_words(draw, 12)}.</p>",
    "text": lambda draw: f"<p>{prose(str(draw.random()), 150)}</p>",
    "rows": lambda draw: f"<table>{_rows(draw)}</table>",
    "image": lambda draw: f'<img src="/img/{_digest(draw.random())[:8]}.jpg">',
    "field": lambda draw: f'<form><input name="customer" value="{_words(draw, 2)}"></form>',
    "data": _data,
}
"""What tells a page from the others of its kind."""

BESIDE: dict[str, Callable[[Random], str]] = {
    "video": lambda draw: f'<iframe src="https://v.example/embed/{_digest(draw.random())[:11]}"></iframe>',
    "file": lambda draw: f'<p><a href="/files/{_digest(draw.random())[:10]}.pdf">Download</a></p>',
    "number of a file": lambda draw: f'<p><a href="/files/{draw.randrange(1_000_000)}.zip">Download</a></p>',
    "elsewhere": lambda draw: f'<a href="https://shop.example/p/{draw.randrange(1_000_000)}">Buy</a>',
    "place": lambda draw: f'<a href="https://m.example/?q={draw.random():.5f},{draw.random():.5f}">Map</a>',
    "attribute": lambda draw: f'<div data-sku="{draw.randrange(1_000_000)}"></div>',
    "class": lambda draw: f'<p class="post-{draw.randrange(1_000_000)}">A post</p>',
    "query of an image": lambda draw: f'<img src="/image.php?id={draw.randrange(1_000_000)}">',
    "image in the page": lambda draw: f'<img src="data:image/png;base64,{_digest(draw.random())}">',
    "drawing": lambda draw: f'<svg><path d="M{_numbers(draw, 3, 60)}L{_numbers(draw, 3, 60)}"/></svg>',
    "chart": lambda draw: f"<script>plot([{_numbers(draw, 9, 60).replace(' ', ', ')}])</script>",
    "symbols": lambda draw: f"<p>{''.join(draw.choices('★☆♠♥♦♣+=', k=8))}</p>",
}
"""What tells a page from the others of its kind, without a word or a number that is shown."""


class Graph(NamedTuple):
    """The pages of a kind by number: those that are linked to from above, and the links of each."""

    entries: list[int]
    links: list[list[int]]


def _listed(number: int, _: Random) -> Graph:
    return Graph(list(range(number)), [[] for _ in range(number)])


def _chain(number: int, _: Random) -> Graph:
    return Graph([0], [[at + 1] if at + 1 < number else [] for at in range(number)])


def _backwards(number: int, _: Random) -> Graph:
    return Graph([number - 1], [[at - 1] if at else [] for at in range(number)])


def _both_ways(number: int, _: Random) -> Graph:
    beside = [[other for other in (at - 1, at + 1) if 0 <= other < number] for at in range(number)]
    return Graph([number // 2], beside)


def _tree(number: int, _: Random) -> Graph:
    below = [[other for other in range(3 * at + 1, 3 * at + 4) if other < number] for at in range(number)]
    return Graph([0], below)


def _mesh(number: int, draw: Random) -> Graph:
    order = draw.sample(range(number), number)
    links: list[list[int]] = [[] for _ in range(number)]
    for at, following in itertools.pairwise(order):
        links[at] = [following, *draw.sample(order, min(2, number))]
    return Graph([order[0]], links)


GRAPHS: dict[str, Callable[[int, Random], Graph]] = {
    "listed": _listed,
    "chain": _chain,
    "backwards": _backwards,
    "both ways": _both_ways,
    "tree": _tree,
    "mesh": _mesh,
}
"""How pages of one kind link to each other. Lists may be in pages of their own."""

ADDRESSES = {
    "number": "/{base}/{count}",
    "parameter": "/{base}?id={at}",
    "two parameters": "/view?what={base}&nr={at}",
    "file": "/{base}/page{at:04}.html",
    "digest": "/{base}/{digest}",
    "words": "/{base}/{slug}",
    "number and words": "/{base}/{count}-{slug}",
    "day": "/{base}/{day:%Y/%m/%d}",
}

NOISE: dict[str, Callable[[int], str]] = {
    "clock": lambda _: f"<p>Page made at {time.strftime('%H:%M:%S')}</p>",
    "counter": lambda answers: f"<p>{answers + 1234} pages served</p>",
    "visitors": lambda _: f"<p>{random.randrange(2, 90)} visitors online</p>",
    "token": lambda _: f'<input type="hidden" name="csrf" value="{random.randbytes(8).hex()}">',
    "random words": lambda _: f"<p>Others like: {_words(random.Random(), 2)}</p>",
}
"""What is other at each answer, by the number of answers so far."""


@dataclass
class Kind:
    """Pages of one kind. ``below``: kinds of which each of these pages has some. ``removed``: the share of
    pages that say nothing of their own; ``gap``: how many such pages are in a row. ``on_a_list``: how many a
    list has, if there are lists; 0: there are none. ``views``: parameters of other addresses of each page.
    """

    name: str
    number: int
    own: str
    graph: str
    address: str
    words: int
    noise: str | None
    views: list[str]
    removed: float
    gap: int
    on_a_list: int
    is_counted: bool
    below: list[Kind]

    @classmethod
    def drawn(cls, draw: Random, own: Iterable[str], *, is_below: bool = False) -> Kind:
        """``own``: of what pages may be told apart by."""
        number = draw.choice((1, 1, 2)) if is_below else draw.choice((60, 260, 400))
        has_more = not is_below and draw.random() < 0.35
        return cls(
            name=draw.choice(vocabulary()),
            number=min(number, 150) if has_more else number,
            own=draw.choice(list(own)),
            graph="listed" if is_below else draw.choice(list(GRAPHS)),
            address=draw.choice(list(ADDRESSES)),
            words=draw.choice((5, 30, 120, 400, 1_000)),
            noise=draw.choice([None, None, None, *NOISE]),
            views=[view for view in ("print=1", "lang=en", "ref=7") if draw.random() < 0.12],
            removed=draw.choice((0, 0, 0, 0.1, 0.6)),
            gap=draw.choice((0, 0, 0, 30, 100)) if number >= 260 else 0,
            on_a_list=0 if is_below else draw.choice((0, 0, 5, 10, 30)),
            is_counted=draw.random() < 0.3,
            below=[cls.drawn(draw, own, is_below=True) for _ in range(draw.choice((1, 2, 3)))]
            if has_more
            else [],
        )


_ID = re.compile(r"[?&]sid=[0-9a-f]+")
_VERSION = re.compile(r"/v([0-9]+)(/.*)", re.DOTALL)
_OTHER_IN_VERSION = 0.05
"""Share of the pages that a version does not have, and of those that say more in a version."""

_EDITED = 0.06
"""Share of the pages of a site that grows which are edited or removed from one crawl to the next."""


def _with_new_id(target: str) -> str:
    return f"{target}{'&' if '?' in target else '?'}sid={uuid4().hex}"


def _of_version(target: str, version: int) -> str:
    """A link of a page in a version. The first pages of versions link to each other."""
    return f"/v{version}{target}" if version and not _VERSION.fullmatch(target) else target


def _without_id(target: str) -> str:
    return _ID.sub("", target)


class _Page(NamedTuple):
    heading: str
    own: str
    common: str
    key: str | None
    links: dict[str, str]
    noise: str | None


class Drawn(MadeSite):
    """A site that is drawn with a seed; it has an end.

    ``new_ids``: each link of each answer has a new session id, so that there are endlessly many URLs.
    ``versions``: so many of the whole site, of which all but the first have a directory. A few pages are
    missing in a version, others say more there.
    ``beside``: no words and numbers that are shown tell its pages apart.
    ``grows``: each crawl finds more pages than the one before, some that say something else now, and some
    that are removed.
    ``keeps``: the spider keeps an item by itself until it has read the pages below, in this order
    (:class:`tests.support.sites.spiders.KeepingSpider`). A header has the number of what a page shows.
    """

    spider = "url"

    def __init__(
        self,
        seed: int,
        *,
        new_ids: bool = False,
        versions: int = 1,
        beside: bool = False,
        grows: bool = False,
        keeps: str = "",
    ) -> None:
        super().__init__()
        if keeps:
            self.spider, self.arguments = "keeping", {"order": keeps}
        self._new_ids, self._versions = new_ids, versions
        draw = random.Random(seed)
        self.kinds = [Kind.drawn(draw, BESIDE if beside else OWN) for _ in range(draw.choice((1, 1, 2, 3)))]
        self.breadth_first = draw.random() < 0.5
        self._seed = seed
        self._frame = passage(f"frame {seed}", draw.choice((0, 20, 200)))
        self._answers = 0
        self._grows, self._crawl = grows, -1
        self._make()

    def begin(self) -> None:
        if self._grows:
            self._crawl += 1
            self._make()

    def _make(self) -> None:
        """Make the pages of the site, as this crawl is to find them."""
        self._pages: dict[str, _Page] = {}
        links: dict[str, str] = {}
        for number, kind in enumerate(self.kinds):
            links |= self._add(kind, f"{kind.name}{number}")
        links |= {f"/v{version}/": "Another version" for version in range(1, self._versions)}
        home = f"<p>{prose(f'home {self._seed}', 60)}</p>"
        self._pages["/"] = _Page("Home", home, "", "home", links, None)
        shown_in = (self._key(shown, at) for shown in self._pages.values() for at in range(self._versions))
        self.keys = frozenset(key for key in shown_in if key is not None)
        self._numbered = sorted(self.keys)
        self._numbers = {key: number for number, key in enumerate(self._numbered)}

    def key_of(self, target: str) -> str | None:
        """What the page at a path with its query shows."""
        version, target = self._in_version(target)
        return self._key(self._pages[target], version) if target in self._pages else None

    def keys_of(self, item: dict[str, Any]) -> set[str | None]:
        """What the pages show that an item was made of."""
        if "pages" in item:
            return {self._numbered[number] for number in item["pages"] if number is not None}
        return {self.key_of(urlsplit(item["url"])._replace(scheme="", netloc="").geturl())}

    def answer(self, ask: Ask) -> Answer:
        version, target = self._in_version(ask.target)
        shown = self._pages.get(target)
        if shown is None:
            return NOT_FOUND
        self._answers += 1
        noise = NOISE[shown.noise](self._answers) if shown.noise else ""
        key = self._key(shown, version)
        own = "<p>Not in this version.</p>" if shown.key is not None and key is None else shown.own
        if key != shown.key and key is not None:
            own += OWN["sentence"](random.Random(key))
        targets = {_of_version(to, version): text for to, text in {**shown.links, "/": "Home"}.items()}
        if self._new_ids:
            targets = {_with_new_id(to): text for to, text in targets.items()}
        links = {html.escape(to): text for to, text in targets.items()}
        made = page(
            shown.heading, f"<div>{self._frame}</div>", own + shown.common + noise, key=key, links=links
        )
        if key is None:
            return made
        return replace(made, headers={**made.headers, "X-Page": str(self._numbers[key])})

    def _in_version(self, target: str) -> tuple[int, str]:
        """The version of a page, and its path with its query in the first version."""
        found = _VERSION.fullmatch(target := _without_id(target))
        if found is None or not 0 < int(found[1]) < self._versions:
            return 0, target
        return int(found[1]), found[2]

    def _key(self, shown: _Page, version: int) -> str | None:
        """What a page shows in a version; None: it is missing there, or shows nothing of its own."""
        if shown.key is None or self._versions == 1 or shown.key == "home":
            return shown.key
        drawn = random.Random(_digest(self._seed, shown.key, "in version", version)).random()
        if drawn < _OTHER_IN_VERSION:
            return None
        return f"{shown.key} {version}" if drawn < 2 * _OTHER_IN_VERSION and version else shown.key

    def _add(self, kind: Kind, base: str, above: str | None = None) -> dict[str, str]:
        """Add the pages of a kind; returns the links that lead to them."""
        number = kind.number
        if self._grows and above is None:
            number = int(number * min(1.0, 0.7 + 0.1 * self._crawl))
        graph = GRAPHS[kind.graph](number, random.Random(_digest(self._seed, base)))
        targets = [self._address(kind, base, at) for at in range(number)]
        common = f"<p>{passage(f'{self._seed} {kind.name}', kind.words)}</p>"
        for at, target in enumerate(targets):
            links = {targets[other]: "More" for other in graph.links[at]} | ({above: "Up"} if above else {})
            for place, below in enumerate(kind.below):
                parts = self._add(below, f"{base}-{_digest(base, at)[:6]}/{below.name}{place}", target)
                links |= dict.fromkeys(parts, "A part")
            views = [f"{target}{'&' if '?' in target else '?'}{view}" for view in kind.views]
            links |= dict.fromkeys(views, "This page")
            edits = self._edits(base, at)
            is_removed = self._is_removed(kind, base, at) or None in edits
            own = (
                "<p>Removed.</p>"
                if is_removed
                else (OWN | BESIDE)[kind.own](random.Random(_digest(self._seed, base, at, *edits)))
            )
            heading = f"{kind.name.title()}{f' {at}' if kind.is_counted and not is_removed else ''}"
            key = None if is_removed else " ".join(map(str, (base, at, *edits)))
            shown = _Page(heading, own, common, key, links, kind.noise)
            self._pages |= dict.fromkeys([target, *views], shown)
        entries = {targets[at]: "To this" for at in graph.entries}
        if self._grows and random.Random(_digest("newest first", self._seed, base)).random() < 0.5:
            entries = dict(reversed(entries.items()))
        return self._add_lists(kind, base, list(entries)) if kind.on_a_list else entries

    def _add_lists(self, kind: Kind, base: str, targets: list[str]) -> dict[str, str]:
        """Add lists of pages, each with links to those beside it; returns the link to the first."""
        lists = [f"/{base}/list?page={at}" for at in range(-(-len(targets) // kind.on_a_list))]
        for at, address in enumerate(lists):
            listed = targets[at * kind.on_a_list : (at + 1) * kind.on_a_list]
            beside = lists[max(0, at - 2) : at + 3]
            links = {**dict.fromkeys(listed, kind.name), **dict.fromkeys(beside, "A list")}
            self._pages[address] = _Page(f"All of {kind.name}", "", "", None, links, kind.noise)
        return {lists[0]: "All"}

    def _is_removed(self, kind: Kind, base: str, at: int) -> bool:
        gap = range(kind.number // 3, kind.number // 3 + kind.gap)
        return at in gap or random.Random(_digest("removed", base, at)).random() < kind.removed

    def _edits(self, base: str, at: int) -> list[int | None]:
        """The crawls before which a page was edited; None: it was removed."""
        edits: list[int | None] = []
        for crawl in range(2, self._crawl + 1):
            drawn = random.Random(_digest("edited", self._seed, base, at, crawl)).random()
            if drawn < _EDITED:
                edits.append(None if drawn < _EDITED / 3 else crawl)
        return edits

    def _address(self, kind: Kind, base: str, at: int) -> str:
        own = _digest(self._seed, base, at, "address")
        slug = "-".join(random.Random(own).sample(vocabulary(), 3))
        day = _LAST_DAY - timedelta(days=at)
        form = ADDRESSES[kind.address]
        return form.format(base=base, at=at, count=at + 1, digest=own[:10], slug=slug, day=day)
