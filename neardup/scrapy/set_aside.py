"""Requests that are not made now, found again by what speaks against them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scrapy import Request


class SetAside:
    """Requests that are not made now, the last ones, as many as fit.

    They are found by their keys, and by the known page that their page would be a copy of.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._requests: dict[int, tuple[Request, str]] = {}
        self._by_partner: dict[str, dict[int, None]] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def put(self, key: int, request: Request, partner: str | None) -> None:
        self.pop(key)
        self._requests[key] = request, partner or ""
        self._by_partner.setdefault(partner or "", {})[key] = None
        if len(self._requests) > self._most:
            self.pop(self.first())

    def pop(self, key: int) -> Request | None:
        if key not in self._requests:
            return None
        request, partner = self._requests.pop(key)
        keys = self._by_partner[partner]
        del keys[key]
        if not keys:
            del self._by_partner[partner]
        return request

    def first(self) -> int:
        """The key of the request that was put in before all others."""
        return next(iter(self._requests))

    def copies_of(self, partners: Iterable[str], most: int) -> list[tuple[int, Request]]:
        """Keys and requests whose pages would be copies of one of these; so many at most."""
        keys = (key for partner in partners for key in self._by_partner.get(partner, ()))
        return [(key, self._requests[key][0]) for key in islice(keys, most)]
