"""Whether copies have links that nothing else has: then not fetching the copies would lose what is behind.

A random sample of the copies tells. The order of a crawl is none: pages of one kind are asked for one after
the other. So likely copies are asked for in rounds, which are chosen by hashes of their URLs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from typing import TYPE_CHECKING

import mmh3

from neardup.urls.tally import Tally, wilson_lower

if TYPE_CHECKING:
    from neardup.urls.rules import Rule

LEAST_LOWER = 0.94
"""Least lower bound of the share of copies without links of their own: 72 such copies are enough.

With 40 copies, 2 of 32 crawls of a made wiki lost some pages. There, 1 in 12 copies has such links.
"""

MOST_OWN = 0.01
"""Largest share of the copies of a sample that may have links of their own."""

ROUNDS = (1 / 32, 1 / 8, 1 / 2, 1.0)
"""Share of the likely copies that is asked for by the end of each round."""

MOST_RULES = 10_000
"""Rules that are remembered, some 3 MB. The one that was asked for the longest ago is forgotten first."""


def round_of(url: str) -> int:
    """The round, from 0, in which a URL is asked for: a random one, the same in each crawl."""
    return bisect_right(ROUNDS, mmh3.hash(url, 1, signed=False) / (1 << 32))


class Leads:
    """What the copies that a rule predicted have led to, as far as they were fetched.

    A rule counts for its host and its part of a URL, whatever its context.
    """

    def __init__(self) -> None:
        self.generation = 0
        """Rises when the copies of a rule, which led nowhere so far, are found to have links of their own."""
        self._rules: OrderedDict[tuple[str, str, str], Tally] = OrderedDict()

    def fetched(self, rule: Rule, *, leads_on: bool) -> None:
        """Count a copy; ``leads_on``: it has a link that no other page had, and that is no likely copy."""
        led_nowhere = self.leads_nowhere(rule)
        self._of(rule).add(hit=not leads_on)
        self.generation += led_nowhere and not self.leads_nowhere(rule)

    def leads_nowhere(self, rule: Rule) -> bool:
        """Whether enough copies were fetched to say that such copies have no links of their own."""
        tally = self._of(rule)
        own = tally.trials - tally.hits
        return own <= MOST_OWN * tally.trials and wilson_lower(tally.hits, tally.trials) >= LEAST_LOWER

    def _of(self, rule: Rule) -> Tally:
        key = rule.host, rule.slot, rule.value
        found = self._rules.setdefault(key, Tally())
        self._rules.move_to_end(key)
        if len(self._rules) > MOST_RULES:
            self._rules.popitem(last=False)
        return found
