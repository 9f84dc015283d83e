"""The rule: when two pages are near-duplicates, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.detection.headlines import Likeness
from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy.typing as npt

VERIFY = 0.83
"""Least resemblance of near-duplicates, unless said otherwise.

The resemblance is estimated from sketches of 1,024 places. With this value, next to none of the pages taken
resemble each other less than 0.8. That holds even among the template pages of the LLVM manual, thousands of
whose pairs have 0.75 to 0.8. Of those taken there, .996 have a resemblance of 0.8 or more (with 0.8 as the
least: .87, with 0.82: .98). None with 0.9 is refused (``neardup evaluate --pages``).
"""

SAME_HEADLINE = 0.7
"""Least resemblance of what is rare in pages of one headline, with ``VERIFY``. With another least resemblance
of the whole, the distance of this value from 1 grows or shrinks in proportion.

Without the headline, ``VERIFY`` is asked of what is rare, too. With 0.7, 69 of libstdc++'s 3,905 pages were
called duplicates of others on that evidence (lists of members, all with one title), with 0.83: 39.
"""

OTHER_HEADLINE = 0.95
"""Least resemblance of what is rare in pages whose headlines differ: one article under two headlines."""

AGAINST_RARE = 0.9
"""Least resemblance of whole texts of one headline, where what is rare says no. A short page that is template
but for a word or two would reach ``VERIFY``.
"""

SURELY_RARE = 0.95
"""Least resemblance of what is rare in pages of one headline that are surely copies.

Adverts for cars of one make, and the leaflets of one drug, have one headline. They differ in a price, a
town or a dose, and resemble each other by 0.7 to 0.9 in what is rare. ``drop`` lost a tenth of such adverts.

As large a share of the rare places must agree as well. What is rare in both is reckoned for pages of one
size. A diff, an old revision and a reply that quotes all have more than the page that they are like. On a
wiki of 70 articles, 14 of 120 sure duplicates had more than 8 other words, and then 0 of 81. On another one
it was 16 of 249, and then 0 of 116.
"""

MIN_FEATURES = 10
"""Distinct words that a page must have to be matched, unless said otherwise."""

KNOWN_PAGES = 50
"""Pages of a host from which on what is rare there is known well enough to say that all of a page is rare."""


class Evidence(StrEnum):
    """Why a page is a duplicate; the strongest evidence comes first."""

    DECISION = "decision"
    """Somebody has said so."""
    TEXT = "text"
    """The very text of the canonical page."""
    HEADLINE = "headline"
    """The very headline of the canonical page, and next to all of its text."""
    RARE = "rare"
    """What is rare on the site is alike in both pages."""
    WHOLE = "whole"
    """The whole texts are alike. The site's template may be what is alike."""
    DISTANCE = "distance"
    """The fingerprints are near, and nothing else is asked for."""

    @property
    def confidence(self) -> float:
        """The share of such duplicates that have the main item of their canonical page, as measured."""
        return _CONFIDENCE[self]

    @property
    def is_sure(self) -> bool:
        """Whether items are dropped, and callbacks not called, because of such a duplicate.

        Without the very headline or text it is not sure: the template of the site may be what is alike.
        Deferring waits for nothing, because a deferred request is made all the same.
        """
        return self.confidence >= SURE

    @property
    def is_doubtful(self) -> bool:
        """Whether the duplicate is judged again when more is known of its site."""
        return self not in {Evidence.TEXT, Evidence.DECISION}


SURE = 0.9
"""Least confidence of a duplicate that is sure."""

_CONFIDENCE = {
    Evidence.DECISION: 1.0,
    Evidence.TEXT: 1.0,
    Evidence.HEADLINE: 0.98,
    Evidence.RARE: 0.76,
    Evidence.WHOLE: 0.75,
    Evidence.DISTANCE: 0.65,
}
"""By headline, 1,661 of 1,695 duplicates were right, by what is rare 60 of 65, truth by path. The pages were
two versions each of manuals that were held out (``benchmarks/results/main-item.md``). On sites opened later,
1,112 of 1,114 and 272 of 274 were right. By what is rare, 75 of 99 were right before the rule asked more of
short pages. Its confidence stays at that: two versions of LilyPond, with most of the mistakes, were not
measured again.

The distance's is that of plain word frequencies on labelled pairs. By the whole text, 471 of 562 were right,
and next to all of these in one manual. It is set below what actions ask for: nobody knows it of a site that
is not known.
"""


class Own(NamedTuple):
    """How alike two pages are in what is rare on the site.

    - ``rare``: the resemblance of what is rare; None if too little is, or all.
    - ``beside_cluster``: the same, if what the cluster's own pages have in common counts as rare.
    - ``agreeing``: the share of the places of what is rare that agree; None with ``rare``.
    - ``is_all``: the site is known, and next to nothing in the page is template.
    - ``is_article``: so much of the page is rare that the headline is a small part of that.
    """

    rare: float | None
    beside_cluster: float | None
    agreeing: float | None
    is_all: bool
    is_article: bool


NOTHING_KNOWN = Own(None, None, None, is_all=False, is_article=False)
"""Of a site that is not known."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Two pages match if at most ``max_distance`` bits differ, and the evidence is enough.

    ``verify`` is the least resemblance of the whole texts. With ``verify`` 0, the distance alone decides.
    """

    max_distance: int
    verify: float = VERIFY

    def __post_init__(self) -> None:
        if not 0.0 <= self.verify <= 1.0:
            raise ConfigurationError(f"verify must be a resemblance between 0 (off) and 1, not {self.verify}")

    @property
    def least_rare(self) -> float:
        """Least resemblance of what is rare in pages of one headline."""
        return _in_proportion(SAME_HEADLINE, self.verify)

    @property
    def least_against_rare(self) -> float:
        """Least resemblance of whole texts of one headline, where what is rare says no."""
        return _in_proportion(AGAINST_RARE, self.verify)

    @property
    def least_of_sure(self) -> float:
        """Least resemblance of what is rare in pages of one headline, so that one surely is a copy. The same
        share of the rare places must agree.
        """
        return _in_proportion(SURELY_RARE, self.verify)

    @property
    def least(self) -> float:
        """Pages that resemble each other less, as a whole and in what is rare, are no near-duplicates."""
        return min(self.least_rare, self.verify)

    @property
    def cuts(self) -> tuple[float, ...]:
        """All resemblances that :meth:`evidence` compares others with, in ascending order."""
        cuts = {
            self.least_rare,
            self.verify,
            self.least_against_rare,
            self.least_of_sure,
            self._least_of_others,
        }
        return tuple(sorted(cuts))

    @property
    def _least_of_others(self) -> float:
        """Least resemblance of what is rare in pages whose headlines differ."""
        return max(OTHER_HEADLINE, self.least_rare)

    def are_matches(
        self, distances: npt.NDArray[np.integer[Any]], estimates: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.bool_]:
        """Whether pages at these distances, and of these estimated resemblances, match; all of shape (n,).
        So judge those who have nothing else of the pages.
        """
        near = np.asarray(distances <= self.max_distance)
        return near & (estimates >= self.verify) if self.verify else near

    def evidence(self, whole: float, headlines: Likeness, own: Own | None = None) -> Evidence | None:
        """Why two pages within ``max_distance`` match; None: they do not.

        ``whole`` is the resemblance of the whole texts. ``own`` says what is rare on the site; None where
        nothing is known of the site.

        A headline, or what is rare, is evidence only where what is rare agrees without regard to the cluster.
        Otherwise the pages may as well be pages of one template that nothing else on the site has.
        """
        if not self.verify:
            return Evidence.DISTANCE
        own = own or NOTHING_KNOWN
        if headlines is Likeness.DIFFERENT:
            return self._under_two_headlines(whole, own.rare, own)
        if headlines is Likeness.NAMED_APART and (own.rare is not None or own.is_all):
            return self._under_two_headlines(whole, whole if own.rare is None else own.rare, own)
        if headlines in {Likeness.SAME, Likeness.REWORDED}:
            return self._of_one_headline(whole, own, is_the_very_one=headlines is Likeness.SAME)
        is_known = own.is_all or own.beside_cluster is not None
        renumbered = headlines is Likeness.RENUMBERED and is_known
        return self._without_headlines(whole, own, self.least_rare if renumbered else self.verify)

    def _under_two_headlines(self, whole: float, rare: float | None, own: Own) -> Evidence | None:
        alike = rare is not None and rare >= self._least_of_others and whole >= self.verify
        return Evidence.RARE if alike and own.is_article else None

    def _of_one_headline(self, whole: float, own: Own, *, is_the_very_one: bool) -> Evidence | None:
        least = self.least_rare
        if own.is_all:
            alike = max(whole, own.beside_cluster or 0.0) >= least
        elif own.beside_cluster is None:
            alike = whole >= self.verify
        else:
            alike = own.beside_cluster >= least or whole >= self.least_against_rare
        if not alike:
            return None
        of_its_own = own.rare if own.rare is not None else whole if own.is_all else 0.0
        agreeing = of_its_own if own.agreeing is None else own.agreeing
        if is_the_very_one and min(of_its_own, agreeing) >= self.least_of_sure:
            return Evidence.HEADLINE
        return Evidence.RARE if own.is_all or of_its_own >= least else Evidence.WHOLE

    def _without_headlines(self, whole: float, own: Own, least: float) -> Evidence | None:
        compared = whole if own.beside_cluster is None else own.beside_cluster
        if compared < least:
            return None
        sure = own.is_all if own.rare is None else own.rare >= least
        return Evidence.RARE if sure else Evidence.WHOLE


@lru_cache
def _in_proportion(value: float, verify: float) -> float:
    """What a value that goes with ``VERIFY`` is with ``verify``. Asked for each pair, so it is remembered."""
    return max(0.0, 1.0 - (1.0 - verify) * (1.0 - value) / (1.0 - VERIFY))
