"""What copies have led to.

Copies may have links that nothing else has. Then not fetching the copies would lose what is behind.

A random sample of the copies tells. The order of a crawl is none: pages of one kind are asked for one after
the other. So likely copies are asked for in rounds, which are chosen by hashes of their URLs.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

import mmh3

from neardup.urls.slots import names_of
from neardup.urls.tally import Tallies, Tally, wilson_lower

if TYPE_CHECKING:
    from neardup.urls.rules import Rule

LEAST_LOWER = 0.94
"""Least lower bound of the share of copies without links of their own: 72 such copies are enough.

Where 1 in 12 copies has such links, as on a made wiki, 2 in 1,000 samples of 72 have none; of 40, 31.
"""

MOST_OWN = 0.01
"""Largest share of the copies of a sample that may have links of their own."""

LEAST_SURE = 0.9
"""Least share of the copies that must be sure ones (:attr:`neardup.detection.verdict.Verdict.is_sure`).

Forms that differ in one word pass for copies of each other on a small site. Items are not dropped on such
evidence, and neither are requests: 482 of 601 such forms were lost. To ask for one in twenty all the same
tells nothing there, because the answer is taken for a copy, too.
"""

FEWEST_SURE = 10
"""Copies of a rule that a crawl must have fetched before ``skip`` leaves out links to more of them."""

ROUNDS = (1 / 32, 1 / 8, 1 / 2, 1.0)
"""Share of the likely copies that is asked for by the end of each round."""

MOST_RULES = 10_000
"""Rules that are remembered, some 6 MB. The one that was asked for the longest ago is forgotten first."""


MOST_HOSTS = 10_000
"""Hosts of which it is known what links of duplicates have led to, some 3 MB."""

_WEIGHT = 3.0
"""Links that count for as many copies as others before anything is known."""


def round_of(url: str) -> int:
    """The round, from 0, in which a URL is asked for: a random one, the same in each crawl."""
    return bisect_right(ROUNDS, mmh3.hash(url, 1, signed=False) / (1 << 32))


class Leads:
    """What the copies that a rule predicted have led to, as far as they were fetched.

    A rule counts for its host and its parts of a URL, whatever its context. Rules about the same part count
    together: of two that speak of one page, now the one and now the other is surer.
    """

    def __init__(self) -> None:
        self.generation = 0
        """Rises when copies, which led nowhere so far, are found to have links of their own, or to be less
        sure.
        """
        self._nowhere = Tallies[tuple[str, str]](MOST_RULES)
        self._sure = Tallies[tuple[str, str]](MOST_RULES)

    def fetched(self, rule: Rule, *, leads_on: bool, is_sure: bool) -> None:
        """Count a copy, and whether it is a sure one.

        ``leads_on``: it has a link that no other page had, and that is no likely copy.
        """
        copies = self._of(rule)
        had_nothing = [_have_nothing(*each) for each in copies]
        for nowhere, sure in copies:
            nowhere.add(hit=not leads_on)
            sure.add(hit=is_sure)
        self.generation += any(had_nothing) and not all(_have_nothing(*each) for each in copies)

    def leads_nowhere(self, rule: Rule) -> bool:
        """Whether enough copies were fetched to say that such copies are copies for sure, and have no links
        of their own.
        """
        copies = self._of(rule)
        whole = copies[0][0]
        enough = wilson_lower(whole.hits, whole.trials) >= LEAST_LOWER
        return enough and all(_have_nothing(*each) for each in copies)

    def are_sure(self, rule: Rule) -> bool:
        """Whether enough copies were fetched to say that most of such copies are copies for sure."""
        sure = [sure for _, sure in self._of(rule)]
        return sure[0].trials >= FEWEST_SURE and all(map(_are_sure, sure))

    def _of(self, rule: Rule) -> list[tuple[Tally, Tally]]:
        """Pairs of tallies: of the copies that led nowhere, and of the sure ones. The first pair is of all
        that a rule is about. Those of each part follow, if there are several.
        """
        whole = names_of(rule)
        parts = whole.split(" ")
        keys = [(rule.host, name) for name in (whole, *(parts if len(parts) > 1 else ()))]
        return [(self._nowhere.of(key), self._sure.of(key)) for key in keys]


class LinksOfDuplicates:
    """How often the links of duplicates have brought copies, by host, of one crawl."""

    def __init__(self) -> None:
        self._hosts = Tallies[str](MOST_HOSTS)

    def judged(self, host: str, *, is_copy: bool) -> None:
        """Count a page that a link of a duplicate has led to."""
        self._hosts.of(host).add(hit=is_copy)

    def share(self, host: str) -> float:
        """The share of copies on a host, drawn towards one half."""
        return (self._hosts.get(host) or _NOTHING_KNOWN).share(0.5, _WEIGHT)


_NOTHING_KNOWN = Tally()


def _have_nothing(nowhere: Tally, sure: Tally) -> bool:
    """Whether hardly any copy has links of its own, of those fetched so far, and most are sure copies."""
    return _are_sure(sure) and nowhere.trials - nowhere.hits <= MOST_OWN * nowhere.trials


def _are_sure(sure: Tally) -> bool:
    return sure.hits >= LEAST_SURE * sure.trials
