"""Duplicates that are judged again when more is known of their site.

What is template is known only after some pages. Until then, pages of one template may pass for copies. What
such pages were compared by is kept for a while, and compared again when the number of the host's pages has
grown by half. Whatever happens, the memory is bounded: the pages that have waited longest are forgotten, and
keep the verdict that they have.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, NamedTuple

from neardup.detection.latest import keep_latest

if TYPE_CHECKING:
    from neardup.address import Address
    from neardup.detection.rule import Evidence
    from neardup.fingerprint.reader import Reading

MOST_BYTES = 64 << 20
"""Memory of the readings that are kept."""

FIRST_PAGES = 12
"""Pages of a host after which its doubtful duplicates are judged again for the first time."""

GROWTH = 1.5
"""Each further time, the host has so many times the pages."""

_MOST_HOSTS = 100_000


class Doubt(NamedTuple):
    """A page that is a duplicate, what it was judged by, and why it is one."""

    address: Address
    reading: Reading
    evidence: Evidence


class Doubts:
    """The doubtful duplicates of a crawl, by row."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, Doubt] = OrderedDict()
        self._rows: dict[str, dict[int, None]] = {}
        self._next: OrderedDict[str, float] = OrderedDict()
        self._due: deque[int] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, row: int, doubt: Doubt) -> None:
        """Keep a page to judge it again."""
        self.drop(row)
        self._kept[row] = doubt
        self._rows.setdefault(doubt.address.host, {})[row] = None
        self._bytes += _size(doubt)
        while self._bytes > MOST_BYTES:
            self.drop(next(iter(self._kept)))

    def drop(self, row: int) -> None:
        """Forget a page, if it is kept."""
        doubt = self._kept.pop(row, None)
        if doubt is None:
            return
        self._bytes -= _size(doubt)
        rows = self._rows[doubt.address.host]
        del rows[row]
        if not rows:
            del self._rows[doubt.address.host]

    def host_grew(self, host: str, pages: int) -> None:
        """Take note of the number of pages of a host: the host's pages may be due."""
        if pages < self._next.get(host, FIRST_PAGES):
            return
        keep_latest(self._next, host, pages * GROWTH, _MOST_HOSTS)
        self._due.extend(self._rows.get(host, ()))

    def all_are_due(self) -> None:
        """Have all pages that are kept judged again."""
        self._due = deque(self._kept)

    def next_due(self) -> tuple[int, Doubt] | None:
        """A page to judge again, which stays; None: there is none now."""
        while self._due:
            row = self._due.popleft()
            doubt = self._kept.get(row)
            if doubt is not None:
                return row, doubt
        return None


def _size(doubt: Doubt) -> int:
    reading = doubt.reading
    return reading.shingles.nbytes + reading.holders.nbytes + len(reading.text or b"") + 1024
