"""Which of the pages within ``max_distance`` a page is a duplicate of.

SimHash proposes. Headlines and sketches decide, the latter by what is rare on the site.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from neardup.address import Address, host_of
from neardup.detection import own_text
from neardup.detection.decisions import Decisions
from neardup.detection.document_frequencies import DocumentFrequencies
from neardup.detection.headlines import Likeness, are_named_apart, are_renumbered, compare_many
from neardup.detection.own_text import OwnText
from neardup.detection.rule import KNOWN_PAGES, Own
from neardup.detection.verdict import Found
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import numpy.typing as npt

    from neardup.detection.cluster_sizes import ClusterSizes
    from neardup.detection.headlines import Sites
    from neardup.detection.known_bits import KnownBits
    from neardup.detection.known_pages import KnownPages
    from neardup.detection.rule import Evidence, Rule
    from neardup.detection.scope import Scope
    from neardup.fingerprint.reader import Reading
    from neardup.fingerprint.sketch import Compact
    from neardup.text.headline import Headline

MOST_JUDGED = 48
"""Candidates that are judged one by one: those that agree most, of all whose sketches were compared."""


class Known(Protocol):
    """What canonical pages are compared by, by row; a detector has it."""

    pages: KnownPages
    sketches: KnownBits
    headlines: KnownBits
    sizes: ClusterSizes


class Verifier:
    """Confirms matches by rule and scope."""

    def __init__(
        self, rule: Rule, scope: Scope, known: Known, frequencies: DocumentFrequencies | None = None
    ) -> None:
        self.rule = rule
        self.scope = scope
        self.known = known
        self.decisions = Decisions()
        """What people have said, of pages that a crawl loads them for."""
        self.frequencies = DocumentFrequencies() if frequencies is None else frequencies

    def exact_copies(self, page: Address, value: int, compact: Compact, rows: Sequence[int]) -> list[int]:
        """Of ``rows``, canonical pages of the same text digest, those in scope with the same fingerprint and
        sketch.

        Two texts of one digest can be made on purpose. To pass for copies they would need all three.
        """
        pages = self.known.pages
        alike = [row for row in rows if pages.values[row] == value and self.takes(page, pages.urls[row])]
        if not alike:
            return alike
        same = (self.known.sketches.of(np.array(alike)) == compact).all(axis=1)
        return [row for row, is_same in zip(alike, same.tolist(), strict=True) if is_same]

    def takes(self, page: Address, canonical_url: str) -> bool:
        """Whether the page at ``canonical_url`` may be the canonical page of ``page``."""
        apart = self.decisions.apart_from(page)
        return self.scope.takes(page, canonical_url) and not (apart and Address(canonical_url).key in apart)

    def comparison(self, page: Address, reading: Reading) -> Comparison:
        """The comparison of a page in hand with canonical pages."""
        return Comparison(self, page, reading)


class Comparison:
    """One page in hand, compared with canonical pages as often as asked.

    What is rare in the page is looked up once, when the first candidate asks for it.
    """

    def __init__(self, verifier: Verifier, page: Address, reading: Reading) -> None:
        assert reading.sketch is not None
        self._verifier = verifier
        self._page = page
        self._headline = reading.headline
        self._reading = reading
        self._sketch = reading.sketch
        self._host = verifier.frequencies.of(page.host)

    @cached_property
    def _own(self) -> OwnText | None:
        return None if self._host is None else OwnText(self._reading, self._host)

    @cached_property
    def _is_all_rare(self) -> bool:
        """Whether the site is known, and next to nothing in the page is template."""
        return (
            self._host is not None
            and self._own is not None
            and self._host.pages >= KNOWN_PAGES
            and self._own.is_all_rare()
        )

    @cached_property
    def _is_article(self) -> bool:
        return self._own is not None and self._own.is_article()

    def confirmed(self, matches: npt.NDArray[np.int64]) -> Found | None:
        """Of ``matches``, columns row and distance, shape (n, 2), the page that agrees most of those that
        rule and scope take.
        """
        verifier, known = self._verifier, self._verifier.known
        rule = verifier.rule
        matches = matches[matches[:, 1] <= rule.max_distance]
        rows = matches[:, 0]
        stored = known.sketches.of(rows)
        wholes = agreeing = sketch.compact_estimates(stored, self._sketch)
        rares: npt.NDArray[np.float64] | None = None
        places = None if self._own is None else self._own.places()
        if places is not None:
            rares = own_text.resemblances(stored, self._sketch, wholes, places)
            agreeing = np.maximum(wholes, rares)
        # A cluster of its own can only bring what is rare nearer to the whole.
        order = (agreeing >= rule.least).nonzero()[0]
        if verifier.scope.is_bounded or verifier.decisions.apart_from(self._page):
            in_scope = [verifier.takes(self._page, known.pages.urls[row]) for row in rows[order].tolist()]
            order = order[np.array(in_scope, dtype=np.bool_)]
        if not order.size:
            return None
        if order.size > 1:
            order = order[np.argsort(-(agreeing + wholes)[order], kind="stable")[:MOST_JUDGED]]
        ordered = rows[order]
        urls = [known.pages.urls[row] for row in ordered.tolist()]
        hosts = list(map(host_of, urls))
        others = known.headlines.of(ordered).view(np.uint32)
        likenesses = compare_many(self._headline, self._page.host, others, hosts, verifier.frequencies)
        in_places: list[float | None] = [None] * order.size
        if places is not None:
            in_places = own_text.agreements(stored[order], self._sketch, places).tolist()
        for place, url, likeness, headline, agrees in zip(
            order.tolist(), urls, likenesses, others, in_places, strict=True
        ):
            row, whole = int(rows[place]), float(wholes[place])
            rare = None if rares is None else float(rares[place])
            own = self._own_beside(row, stored[place], whole, rare, agrees)
            if likeness is Likeness.UNKNOWN and are_renumbered(self._headline, self._page.url, headline, url):
                likeness = Likeness.RENUMBERED  # noqa: PLW2901
            evidence = rule.evidence(whole, likeness, own)
            if evidence is not None and are_named_apart(self._headline, self._page.url, headline, url):
                evidence = rule.evidence(whole, Likeness.NAMED_APART, own)
            if evidence is not None:
                return Found(row, int(matches[place, 1]), whole, evidence)
        return None

    def _own_beside(
        self, row: int, stored: Compact, whole: float, rare: float | None, agreeing: float | None
    ) -> Own | None:
        """What is known of what is rare in this page and in a canonical page; ``rare`` and ``agreeing`` are
        None if too little is.
        """
        if self._own is None:
            return None
        beside = self._own.places(self._verifier.known.sizes.of(row))
        of_cluster = rare
        if beside is not self._own.places():
            of_cluster = None if beside is None else own_text.resemblance(stored, self._sketch, whole, beside)
        return Own(rare, of_cluster, agreeing, is_all=self._is_all_rare, is_article=self._is_article)


def stored_evidence(
    rule: Rule,
    frequencies: Sites,
    page: tuple[Headline, str],
    others: tuple[npt.NDArray[np.uint32], Sequence[str]],
    *,
    distances: npt.NDArray[np.integer[Any]],
    wholes: npt.NDArray[np.float64],
) -> list[Evidence | None]:
    """Why a stored page matches each of n others, of which headlines, hosts and sketches are at hand; None:
    it does not.

    ``page`` has a headline and a host. ``others`` have theirs, headlines of shape (n, 20). ``distances`` and
    ``wholes``, the resemblances, have the shape (n,).

    What is rare in two pages can be told only with one of the pages in hand. So stored pages that do not
    match as a whole do not match at all.
    """
    found: list[Evidence | None] = [None] * len(wholes)
    near = np.flatnonzero(rule.are_matches(distances, wholes))
    headlines, hosts = others
    likenesses = compare_many(*page, headlines[near], [hosts[place] for place in near.tolist()], frequencies)
    # All of them match as a whole. How much they resemble each other beyond that makes no difference.
    evidence = {likeness: rule.evidence(rule.verify, likeness) for likeness in Likeness}
    for place, likeness in zip(near.tolist(), likenesses, strict=True):
        found[place] = evidence[likeness]
    return found
