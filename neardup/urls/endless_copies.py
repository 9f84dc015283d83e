"""When a parameter makes copies without end: each page hands out a new session id, say.

Each page of such a site has copies of its own, so that a count for one page grows slowly. Here the copies of
a host count together. A copy counts if it was surely predicted, and has links that no page had. Each of these
must differ from a known URL in one and the same parameter. The first ``OFTEN`` copies of each page do not
count.

A site with an end may count for long, too: old revisions that link to the one before, or filters that can be
combined. So the count alone is no end. Whoever is told of a parameter asks for a page once more. Only if all
links of the page have other values then, the site makes them up.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from enum import Enum

OFTEN = 8
"""Copies of one page that do not count."""

TIMES = 3
"""Times the limit of one page's copies: so many copies in a row, and no page that is new, are in question. If
more pages of the host have copies than the limit, times the number of these pages.
"""

MOST_LINKS = 20
"""New links of a copy that are looked at, from the first one on."""

_MOST_HOSTS = 10_000
"""Hosts that are remembered. The one that has been quiet the longest is forgotten first."""

_MOST_NAMES = 50
"""Parameters of a host that are counted."""

_MOST_PAGES = 1_000_000
"""Pages remembered, some 100 MB. When there are more, all are forgotten, which makes crawls longer."""


class _State(Enum):
    COUNTING = "counting"
    IN_QUESTION = "in question"
    ENDLESS = "endless"
    FINITE = "finite"


@dataclass(slots=True, eq=False)
class _Space:
    count: int = 0
    state: _State = _State.COUNTING
    times: Counter[int] = field(default_factory=Counter)
    """Copies of each page, by its id."""


class EndlessCopies:
    """Counts the copies of one crawl that led to further copies only, by host and parameter.

    ``limit`` is that of the copies of one page. With 0, no parameter is ever in question.
    """

    def __init__(self, limit: int) -> None:
        self._limit = TIMES * limit
        self._hosts: OrderedDict[str, dict[str, _Space]] = OrderedDict()
        self._pages = 0

    def read(self, host: str, name: str, copy_of: int) -> bool:
        """Count a copy of a page whose new links all differ from known ones in the parameter of this name.

        Returns whether the parameter is in question by that. Then :meth:`settle` is to be called.
        """
        if not self._limit:
            return False
        space = self._space(host, name)
        if space is None or space.state is not _State.COUNTING:
            return False
        times = space.times[copy_of]
        space.times[copy_of] = times + 1
        if not times:
            self._remember_one_more()
        if times < OFTEN:
            return False
        space.count += 1
        if space.count < max(self._limit, TIMES * len(space.times)):
            return False
        space.state = _State.IN_QUESTION
        return True

    def settle(self, host: str, name: str, *, makes_up_values: bool) -> None:
        """Say whether a page that was asked for once more had other values of a parameter."""
        space = self._hosts.get(host, {}).get(name)
        if space is not None and space.state is _State.IN_QUESTION:
            space.state = _State.ENDLESS if makes_up_values else _State.FINITE

    def found_new(self, host: str) -> None:
        """Note a page of a host that is no copy: the counts begin anew."""
        for space in self._hosts.get(host, {}).values():
            if space.state is not _State.FINITE:
                space.count, space.state = 0, _State.COUNTING

    def is_endless(self, host: str, name: str) -> bool:
        """Whether sure copies that differ from known pages in a parameter are to be requested no further."""
        space = self._hosts.get(host, {}).get(name)
        return space is not None and space.state is _State.ENDLESS

    def _space(self, host: str, name: str) -> _Space | None:
        spaces = self._hosts.setdefault(host, {})
        self._hosts.move_to_end(host)
        if len(self._hosts) > _MOST_HOSTS:
            _, quiet = self._hosts.popitem(last=False)
            self._pages -= sum(len(space.times) for space in quiet.values())
        if name not in spaces and len(spaces) >= _MOST_NAMES:
            return None
        return spaces.setdefault(name, _Space())

    def _remember_one_more(self) -> None:
        self._pages += 1
        if self._pages > _MOST_PAGES:
            for spaces in self._hosts.values():
                for space in spaces.values():
                    space.times.clear()
            self._pages = 0
