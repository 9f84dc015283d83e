"""Which of the pages within ``max_distance`` a page is a duplicate of.

SimHash proposes. Headlines and sketches decide, the latter by what is rare on the site.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.address import host_of
from neardup.detection import own_text
from neardup.detection.document_frequencies import DocumentFrequencies
from neardup.detection.headlines import compare, compare_many
from neardup.detection.own_text import OwnText
from neardup.detection.rule import KNOWN_PAGES, Own
from neardup.detection.verdict import Found
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.address import Address
    from neardup.detection.cluster_sizes import ClusterSizes
    from neardup.detection.known_pages import KnownPages
    from neardup.detection.known_sketches import KnownSketches
    from neardup.detection.rule import Evidence, Rule
    from neardup.detection.scope import Scope
    from neardup.fingerprint.reader import Reading
    from neardup.fingerprint.sketch import Compact
    from neardup.text.headline import Headline

MOST_JUDGED = 48
"""Candidates that are judged one by one: those that agree most, of all whose sketches were compared."""


class Verifier:
    """Confirms matches by rule and scope."""

    def __init__(self, rule: Rule, scope: Scope) -> None:
        self.rule = rule
        self.scope = scope
        self.frequencies = DocumentFrequencies()

    def exact_copies(
        self,
        page: Address,
        value: int,
        compact: Compact,
        *,
        rows: Sequence[int],
        pages: KnownPages,
        sketches: KnownSketches,
    ) -> list[int]:
        """Of ``rows``, canonical pages of the same text digest, those in scope with the same fingerprint and
        sketch.

        Two texts of one digest can be made on purpose. To pass for copies they would need all three.
        """
        alike = [
            row for row in rows if pages.values[row] == value and self.scope.takes(page, pages.urls[row])
        ]
        if not alike:
            return alike
        same = (sketches.of(np.array(alike)) == compact).all(axis=1)
        return [row for row, is_same in zip(alike, same.tolist(), strict=True) if is_same]

    def confirmed(
        self,
        page: Address,
        reading: Reading,
        *,
        pages: KnownPages,
        sketches: KnownSketches,
        headlines: KnownSketches,
        sizes: ClusterSizes,
        matches: npt.NDArray[np.int64],
    ) -> Found | None:
        """Of ``matches``, columns row and distance, shape (n, 2), the page that agrees most of those that
        rule and scope take.
        """
        assert reading.sketch is not None
        matches = matches[matches[:, 1] <= self.rule.max_distance]
        rows = matches[:, 0]
        stored = sketches.of(rows)
        wholes = sketch.compact_estimates(stored, reading.sketch)
        host = self.frequencies.of(page.host)
        own = None if host is None else OwnText(reading, host)
        known = host is not None and host.pages >= KNOWN_PAGES
        rares = np.full(rows.size, np.nan)
        if own is not None and (places := own.places()) is not None:
            rares = own_text.resemblances(stored, reading.sketch, wholes, places)
        agreeing = np.fmax(wholes, rares)
        # A cluster of its own can only bring what is rare nearer to the whole.
        eligible = np.flatnonzero(agreeing >= self.rule.least)
        if self.scope.is_bounded:
            in_scope = [self.scope.takes(page, pages.urls[row]) for row in rows[eligible].tolist()]
            eligible = eligible[np.array(in_scope, dtype=np.bool_)]
        order = eligible[np.argsort(-(agreeing + wholes)[eligible], kind="stable")[:MOST_JUDGED]]
        if not order.size:
            return None
        hosts = [host_of(pages.urls[row]) for row in rows[order].tolist()]
        others = headlines.of(rows[order]).view(np.uint32)
        likenesses = compare_many(reading.headline, page.host, others, hosts, self.frequencies)
        for place, likeness in zip(order.tolist(), likenesses, strict=True):
            row, whole = int(rows[place]), float(wholes[place])
            of_own: Own | None = None
            if own is not None:
                rare = None if np.isnan(rares[place]) else float(rares[place])
                cluster = sizes.of(row)
                beside = own.resemblance(stored[place], whole, cluster) if cluster else rare
                of_own = Own(rare, beside, is_all=known and own.is_all_rare())
            evidence = self.rule.evidence(whole, likeness, of_own)
            if evidence is not None:
                return Found(row, int(matches[place, 1]), whole, evidence)
        return None

    def stored_evidence(
        self, own: Headline, other: Headline, own_host: str, other_host: str, resemblance: float
    ) -> Evidence | None:
        """Why two stored pages within ``max_distance`` match, of which only headlines and sketches are at
        hand; None: they do not.
        """
        likeness = compare(own, other, own_host=own_host, other_host=other_host, frequencies=self.frequencies)
        return self.rule.evidence(resemblance, likeness)
