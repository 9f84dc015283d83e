"""When a parameter makes copies without end: each page hands out a new session id, say.

The links of such a site lead to its pages at ever new addresses. Whoever reads copies is told when to ask for
a page once more. All its links may have other values of the parameter then, but lead to the same pages: the
site makes the values up. Old revisions and filters have the same links again, and do not count.

From then on, those copies of a host count together that differ from a known page in the parameter alone.
Pages at other addresses come before them, and with each of these the count begins anew. So nothing else is
left to be requested when the count reaches the limit. It is asked once more, and the copies are left.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum

TIMES = 3
"""Times the limit of the copies of one page: so many copies in a row, and no page that is new, are enough."""

_FIRST_ASKED = 0.125
"""Times the limit of the copies of one page: copies after which it is asked first whether values are made up.
It is asked again after twice as many.
"""

_MOST_HOSTS = 10_000
"""Hosts that are remembered. The one that has been quiet the longest is forgotten first."""

_MOST_NAMES = 50
"""Parameters of a host that are counted."""


class _State(Enum):
    COUNTING = "counting"
    IN_QUESTION = "in question"
    ENDLESS = "endless"


@dataclass(slots=True, eq=False)
class _Space:
    ask_after: float
    """Copies before it is asked whether the values are made up."""
    copies: int = 0
    """Those since it was asked last."""
    count: int = 0
    """Copies in a row since the values are known to be made up."""
    state: _State = _State.COUNTING


class EndlessCopies:
    """Counts the copies of one crawl that differ from known pages in one parameter, by host and parameter.

    ``limit`` is that of the copies of one page. With 0, no parameter is ever in question.
    """

    def __init__(self, limit: int) -> None:
        self._first_asked = _FIRST_ASKED * limit
        self._limit = TIMES * limit
        self._hosts: OrderedDict[str, dict[str, _Space]] = OrderedDict()

    def read(self, host: str, name: str, *, is_made_up: bool) -> bool:
        """Count a copy with links of its own that differs from a known page in the parameter of this name.

        ``is_made_up``: the values of the parameter are known to be made up.

        Returns whether it is to be asked now if they are. Then :meth:`settle` is to be called.
        """
        space = self._space(host, name) if self._limit else None
        if space is None or space.state is not _State.COUNTING:
            return False
        if is_made_up:
            space.count += 1
            is_enough = space.count >= self._limit
        else:
            space.copies += 1
            is_enough = space.copies >= space.ask_after
        if is_enough:
            space.state = _State.IN_QUESTION
        return is_enough

    def settle(self, host: str, name: str, *, makes_up_values: bool) -> None:
        """Say whether a page that was asked for once more had other values of a parameter."""
        space = self._hosts.get(host, {}).get(name)
        if space is None:
            return
        if makes_up_values and space.count >= self._limit:
            space.state = _State.ENDLESS
            return
        space.state, space.count, space.copies = _State.COUNTING, 0, 0
        space.ask_after *= 2

    def found_new(self, host: str) -> None:
        """Note a page of a host that is no such copy: the counts begin anew."""
        for space in self._hosts.get(host, {}).values():
            space.count = 0
            if space.state is _State.ENDLESS:
                space.state = _State.COUNTING

    def is_endless(self, host: str, name: str) -> bool:
        """Whether copies that differ from known pages in a parameter are to be requested no further."""
        space = self._hosts.get(host, {}).get(name)
        return space is not None and space.state is _State.ENDLESS

    def _space(self, host: str, name: str) -> _Space | None:
        spaces = self._hosts.setdefault(host, {})
        self._hosts.move_to_end(host)
        if len(self._hosts) > _MOST_HOSTS:
            self._hosts.popitem(last=False)
        if name not in spaces and len(spaces) >= _MOST_NAMES:
            return None
        return spaces.setdefault(name, _Space(self._first_asked))
