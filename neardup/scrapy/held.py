"""Requests that were held back because of doubtful duplicates, to be made if a page turns out to be none."""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from scrapy import Request

MOST_REQUESTS = 10_000
"""Requests that are kept. A queue in memory has most of these anyway."""


class Why(Enum):
    """Why a request is kept."""

    DEFERRED = "put at the end of the queue"
    WITHHELD = "not made at all"
    UNHEARD = "made, but items of its page were dropped, or the callback was not called"


class Held(NamedTuple):
    """A request, with the priority that it came with."""

    request: Request
    priority: int
    why: Why


class HeldRequests:
    """Requests of doubtful duplicates, by page and fingerprint. The first one of the page kept for longest is
    forgotten first.
    """

    def __init__(self) -> None:
        self._pages: OrderedDict[int, dict[int, Held]] = OrderedDict()
        self._number = 0

    def __len__(self) -> int:
        return self._number

    def keep(self, page_id: int, fingerprint: int, held: Held) -> None:
        """Keep a request of a page."""
        of_page = self._pages.setdefault(page_id, {})
        self._number += fingerprint not in of_page
        of_page[fingerprint] = held
        if self._number > MOST_REQUESTS:
            first, oldest = next(iter(self._pages.items()))
            self.forget(first, next(iter(oldest)))

    def forget(self, page_id: int, fingerprint: int) -> None:
        """Forget one request of a page, if it is kept."""
        of_page = self._pages.get(page_id, {})
        if of_page.pop(fingerprint, None) is not None:
            self._number -= 1
            if not of_page:
                del self._pages[page_id]

    def __iter__(self) -> Iterator[Held]:
        return (held for of_page in self._pages.values() for held in of_page.values())

    def pages(self, are_of: Callable[[Held], bool]) -> list[int]:
        """The pages that have such requests."""
        return [page_id for page_id, of_page in self._pages.items() if any(map(are_of, of_page.values()))]

    def pop(self, page_id: int, why: Why | None = None) -> dict[int, Held]:
        """The requests of a page, or those kept for one reason, which are forgotten by that."""
        of_page = self._pages.pop(page_id, {})
        popped = {key: held for key, held in of_page.items() if why in {None, held.why}}
        self._number -= len(popped)
        if len(popped) < len(of_page):
            self._pages[page_id] = {key: held for key, held in of_page.items() if key not in popped}
        return popped
