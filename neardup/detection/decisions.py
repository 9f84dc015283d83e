"""What people have decided about pages: it holds whatever the rule says.

Pages are named by their keys (:func:`neardup.address.key_of`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from neardup.address import Address
from neardup.detection.rule import Evidence

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


class Decision(StrEnum):
    """The kinds of decisions."""

    SAME = "same"
    """The page is a duplicate of the other page."""
    DIFFERENT = "different"
    """Neither page is a duplicate of the other."""
    CANONICAL = "canonical"
    """The page is no duplicate of any other."""
    PIN = "pin"
    """The page keeps the standing that it had: canonical, or a duplicate of the other page."""


_NOTHING: frozenset[bytes] = frozenset()


class Decisions:
    """All decisions that hold, by the keys of pages; later ones replace earlier ones that they contradict."""

    def __init__(self) -> None:
        self._same: dict[bytes, bytes] = {}
        self._canonical: set[bytes] = set()
        self._apart: dict[bytes, set[bytes]] = {}

    def add(self, decision: Decision, page: bytes, other: bytes | None) -> None:
        """Take over a decision, the oldest first."""
        if decision is Decision.DIFFERENT:
            if other is not None:
                self._apart.setdefault(page, set()).add(other)
                self._apart.setdefault(other, set()).add(page)
        elif other is not None:
            self._same[page] = other
            self._canonical.discard(page)
        else:
            self._canonical.add(page)
            self._same.pop(page, None)

    def same_as(self, page: Address) -> bytes | None:
        """The page that a page is a duplicate of, as somebody has said."""
        return self._same.get(page.key) if self._same else None

    def is_canonical(self, page: Address) -> bool:
        """Whether somebody has said that a page is no duplicate."""
        return bool(self._canonical) and page.key in self._canonical

    def apart_from(self, page: Address) -> AbstractSet[bytes]:
        """The pages that a page is no duplicate of."""
        return self._apart.get(page.key, _NOTHING) if self._apart else _NOTHING

    def are_free(self, page: Address, other: str) -> bool:
        """Whether nobody has said that these pages must not become one cluster."""
        if not self._apart and not self._canonical:
            return True
        others = Address(other)
        one_stands = self.is_canonical(page) or self.is_canonical(others)
        return not one_stands and others.key not in self.apart_from(page)

    def evidence(self, page: bytes, canonical: bytes, found: Evidence | None) -> Evidence | None:
        """Why a page is a duplicate of a canonical one; ``found`` is what the rule says. None: it is none."""
        if self._same.get(page) == canonical:
            return Evidence.DECISION
        stands = page in self._canonical or page in self._same or canonical in self._apart.get(page, _NOTHING)
        return None if stands else found

    def decided_duplicates(self) -> AbstractSet[bytes]:
        """The pages that somebody has said to be duplicates."""
        return self._same.keys()
