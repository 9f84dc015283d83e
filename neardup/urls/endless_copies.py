"""When copies lead to nothing but further copies, without end: each page hands out a new session id, say.

Each page of such a site has copies of its own, so that a count for one page grows slowly. Here the copies of
a host count together, as far as URLs have surely predicted them. A copy counts if it has links that no page
had, and if these surely lead to copies as well. So a site that ends never counts for long: the links of its
copies are known in the end.

A copy counts only after ``OFTEN`` others of the same page. Versions of a manual, and lists that are sorted
anew, are fewer.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass, field

OFTEN = 8
"""Copies of one page that do not count."""

TIMES = 3
"""Times the limit of one page's copies: so many copies in a row, and no page that is new, are the end. If
more pages of the host have copies than the limit, times the number of these pages.
"""

MOST_LINKS = 20
"""New links of a copy that are looked at, from the first one on."""

_MOST_HOSTS = 10_000
"""Hosts that are remembered. The one that has been quiet the longest is forgotten first."""

_MOST_PAGES = 1_000_000
"""Pages remembered, some 100 MB. When there are more, all are forgotten, which makes crawls longer."""


@dataclass(slots=True, eq=False)
class _Host:
    count: int = 0
    is_endless: bool = False
    times: Counter[int] = field(default_factory=Counter)
    """Copies of each page, by its id."""


class EndlessCopies:
    """Counts the copies of one crawl that led to further copies only, by host.

    ``limit`` is that of the copies of one page. With 0, no host is ever endless.
    """

    def __init__(self, limit: int) -> None:
        self.limit = TIMES * limit
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._pages = 0

    def read(self, host: str, copy_of: int, *, leads_to_copies: bool) -> bool:
        """Count a copy of a page that was surely predicted; whether the host turns out to be endless by that.

        ``leads_to_copies``: it has new links, and all of them are surely copies.
        """
        if not self.limit:
            return False
        of = self._hosts.setdefault(host, _Host())
        self._hosts.move_to_end(host)
        if len(self._hosts) > _MOST_HOSTS:
            _, quiet = self._hosts.popitem(last=False)
            self._pages -= len(quiet.times)
        times = of.times[copy_of]
        of.times[copy_of] = times + 1
        if not times:
            self._remember_one_more()
        if times < OFTEN or not leads_to_copies or of.is_endless:
            return False
        of.count += 1
        of.is_endless = of.count >= max(self.limit, TIMES * len(of.times))
        return of.is_endless

    def found_new(self, host: str) -> None:
        """Note a page of a host that is no copy: the count begins anew."""
        if host in self._hosts:
            self._hosts[host].count, self._hosts[host].is_endless = 0, False

    def is_endless(self, host: str) -> bool:
        """Whether sure copies of a host are to be requested no further."""
        return host in self._hosts and self._hosts[host].is_endless

    def _remember_one_more(self) -> None:
        self._pages += 1
        if self._pages > _MOST_PAGES:
            for of in self._hosts.values():
                of.times.clear()
            self._pages = 0
