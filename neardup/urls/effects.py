"""What a crawl did about requests because of each rule, and whether the rule was right."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from neardup.urls.rules import Rule

MOST_RULES = 50_000
"""Rules that are counted, some 25 MB. Rules that come after so many are not counted."""


class Effect(NamedTuple):
    """What came of the predictions of one rule. All are numbers of requests.

    - ``deferred``: were made last.
    - ``dropped``: were not made, each time that this was so.
    - ``explored``: were made although they might have been dropped.
    - ``copies``, ``others``: brought a copy of a page of the same crawl, or another page.
    - ``saved``: were dropped and not queued again, or were left when the crawl ended within its loss budget.
    """

    deferred: int = 0
    dropped: int = 0
    explored: int = 0
    copies: int = 0
    others: int = 0
    saved: int = 0


class Effects:
    """Counts what came of the rules of one crawl."""

    def __init__(self) -> None:
        self._counts: dict[Rule, Counter[str]] = {}

    def count(self, rule: Rule, what: str, number: int = 1) -> None:
        """Count so many more of a field of :class:`Effect`."""
        counts = self._counts.get(rule)
        if counts is None:
            if len(self._counts) >= MOST_RULES:
                return
            counts = self._counts[rule] = Counter()
        counts[what] += number

    def of(self, rule: Rule) -> Effect:
        """What came of a rule so far."""
        counts = self._counts.get(rule)
        return Effect() if counts is None else Effect(**counts)

    def rules(self) -> list[Rule]:
        """The rules of which something came."""
        return list(self._counts)
