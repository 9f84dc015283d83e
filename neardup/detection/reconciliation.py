"""Reconciliation: a detector applies what other crawls write; near-copies of two crawls become one cluster.

Two crawls that see near-copies in the same interval call both new, because neither knows the other's yet.
Whoever reads of the other's page finds that both are canonical and within the rule of each other. Of two such
pages the one with the lower id stays canonical, and the other becomes its duplicate. The lower id is that of
the crawl that began first. So the outcome is the same, whichever crawl notices. Duplicates that hang on a
page that is canonical no longer are resolved at the end of a crawl (:func:`neardup.store.election.resolve`).

Compared is what is stored: fingerprints, their weak bits and plain estimates from whole sketches, as in a
re-election.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.address import Address, host_of
from neardup.detection.detector import MOST_VERIFIED
from neardup.detection.known_pages import NONE
from neardup.detection.rule import Evidence
from neardup.detection.traits import Traits
from neardup.detection.verdict import Found, Kind, Relation
from neardup.detection.verification import stored_evidence
from neardup.fingerprint import hamming, sketch
from neardup.fingerprint.simhash import Fingerprint
from neardup.text import headline as headlines

if TYPE_CHECKING:
    from neardup.detection.decisions import Decisions
    from neardup.detection.detector import Detector
    from neardup.detection.known_pages import KnownPages
    from neardup.detection.stored_page import StoredPage


class Reconciler:
    """Tells a detector of pages that others have judged.

    With ``reconcile``, near-copies are made one cluster as they come. Without, :meth:`reconcile_all` makes
    the clusters when asked to.
    """

    def __init__(self, detector: Detector, *, reconcile: bool = True) -> None:
        self._detector = detector
        self._reconcile = reconcile
        self._left: dict[int, bytes] = {}
        """Weak bits of the pages that are not reconciled yet, by row."""

    def apply(self, page: StoredPage) -> list[Relation]:
        """Take over a page as it is stored, whatever was known of it; the near-copies that have been
        reconciled with it.
        """
        detector, pages = self._detector, self._detector.pages
        row = self._row(page.page_id, page.url)
        value, canonical = page.value or 0, NONE
        digest = detector.verifier.scope.digest(Address(page.url), page.text_digest)
        was_canonical = pages.canonical[row] == row
        if page.canonical_id is not None and page.canonical_url is not None:
            known = pages.row(Address(page.canonical_url)) != NONE
            canonical = self._row(page.canonical_id, page.canonical_url)
            if known and (
                pages.canonical[canonical] != canonical
                or hamming.distance(value, pages.values[canonical]) != page.distance
            ):
                detector.no_longer_canonical.add(page.canonical_id)  # it has changed since they were compared
        elif page.can_be_canonical(detector.options.min_features):
            canonical = row
        if was_canonical:
            as_it_was = canonical == row and value == pages.values[row]
            # With the same words in another order a page is unchanged, but may have become a copy.
            if as_it_was and page.kind == Kind.UNCHANGED.value and digest == detector.digests.of(row):
                return []
            # One that is new or has changed, though it is known like that, was loaded before its near-copies
            # were looked for.
            if not as_it_was or page.kind == Kind.CHANGED.value:
                detector.no_longer_canonical.add(page.page_id)
        if canonical != row:
            detector.set_canonical(row, value, canonical=canonical)
            return []
        assert page.sketch is not None
        assert page.weak_bits is not None
        traits = Traits(sketch.from_bytes(page.sketch), headlines.from_bytes(page.headline), digest)
        if self._reconcile:
            return self._join(row, value, page.weak_bits, traits)
        self._left[row] = page.weak_bits
        detector.set_canonical(row, value, traits, canonical=row)
        return []

    def look_again(self, page: StoredPage) -> list[Relation]:
        """Reconcile a page that was known from the start, and whose near-copies nobody has looked for; if it
        is canonical, as it is stored.
        """
        pages = self._detector.pages
        row = pages.row(Address(page.url))
        if row == NONE or pages.canonical[row] != row or pages.values[row] != page.value:
            return []
        assert page.value is not None
        assert page.sketch is not None
        assert page.weak_bits is not None
        digest = self._detector.verifier.scope.digest(Address(page.url), page.text_digest)
        traits = Traits(sketch.from_bytes(page.sketch), headlines.from_bytes(page.headline), digest)
        return self._join(row, page.value, page.weak_bits, traits)

    def reconcile_all(self) -> list[Relation]:
        """Reconcile the near-copies of all pages taken over so far, if that was not done as they came; from
        now on it is.
        """
        done: list[Relation] = []
        pages, sketches, digests = self._detector.pages, self._detector.sketches, self._detector.digests
        for row, weak_bits in self._left.items():
            if pages.canonical[row] == row:
                (compact,) = sketches.of(np.array([row]))
                (headline,) = self._detector.headlines.of(np.array([row])).view(np.uint32)
                traits = Traits(compact, headline, digests.of(row))
                done += self._join(row, pages.values[row], weak_bits, traits)
        self._left = {}
        self._reconcile = True
        return done

    def _row(self, page_id: int, url: str) -> int:
        """The row of a page under the id that it is stored by; one without a standing if it was not known."""
        pages = self._detector.pages
        page = Address(url)
        row = pages.row(page)
        if row == NONE:
            return pages.add(page, page_id=page_id, value=0, canonical=NONE)
        pages.ids[row] = page_id
        return row

    def _join(self, row: int, value: int, weak_bits: bytes, traits: Traits) -> list[Relation]:
        """Place a page that its crawl called canonical among the near-copies known; who is a duplicate by
        that.
        """
        detector, pages = self._detector, self._detector.pages
        page_id = pages.ids[row]
        detector.set_canonical(row, value, canonical=NONE)  # out of the index: it must not find itself
        rivals = self._rivals(row, value, weak_bits, traits)
        lower = [rival for rival in rivals if rival[0] < page_id]
        if lower:
            other, found = max(lower, key=lambda rival: (rival[1].resemblance, -rival[0]))
            detector.no_longer_canonical.add(page_id)
            detector.set_canonical(row, value, canonical=found.row)
            return [Relation(page_id, other, found.distance, found.resemblance, found.evidence)]
        for other, found in rivals:
            detector.set_canonical(found.row, pages.values[found.row], canonical=row)
            detector.no_longer_canonical.add(other)
        detector.set_canonical(row, value, traits, canonical=row)
        return [
            Relation(other, page_id, found.distance, found.resemblance, found.evidence)
            for other, found in rivals
        ]

    def _rivals(self, row: int, value: int, weak_bits: bytes, traits: Traits) -> list[tuple[int, Found]]:
        """Ids of the canonical pages that a page is within the rule of, and how.

        Exact copies come first.
        """
        detector, pages = self._detector, self._detector.pages
        page = Address(pages.urls[row])
        exact = detector.exact_copies(page, value, traits.sketch, traits.digest)
        decisions = detector.verifier.decisions
        exact = [copy for copy in exact if decisions.are_free(page, pages.urls[copy])]
        copies = [(pages.ids[copy], Found(copy, 0, 1.0, Evidence.TEXT)) for copy in exact]
        matches = detector.index.match_table(Fingerprint.unpack(value, weak_bits), MOST_VERIFIED)
        free = [decisions.are_free(page, pages.urls[other]) for other in matches[:, 0].tolist()]
        matches = matches[np.array(free, dtype=np.bool_)]
        rows, distances = matches[:, 0].astype(np.int64), matches[:, 2].astype(np.int64)
        estimates = sketch.compact_estimates(detector.sketches.of(rows), traits.sketch)
        others = detector.headlines.of(rows).view(np.uint32)
        urls = [pages.urls[other] for other in rows.tolist()]
        reasons = stored_evidence(
            detector.rule,
            detector.verifier.frequencies,
            (traits.headline, page.host),
            (others, [host_of(url) for url in urls]),
            distances=distances,
            wholes=estimates,
        )
        for other, url, distance, estimate, evidence in zip(
            rows.tolist(), urls, distances.tolist(), estimates.tolist(), reasons, strict=True
        ):
            if evidence is not None and other not in exact and detector.verifier.takes(page, url):
                copies.append((pages.ids[other], Found(other, distance, estimate, evidence)))
        return copies


def unresolved(pages: KnownPages, max_distance: int, decisions: Decisions) -> list[int]:
    """Ids of pages whose duplicates are unresolved, because the crawl that should have done it died.

    They are duplicates themselves, or gone, or farther than ``max_distance`` from one of their duplicates,
    though nobody has decided that.
    """
    canonical, values = pages.canonical.array(), pages.values.array()
    duplicates = np.flatnonzero((canonical != NONE) & (canonical != np.arange(canonical.size)))
    of = canonical[duplicates]
    chained = (canonical[of] != of) & (canonical[of] != NONE)
    far = np.bitwise_count(values[duplicates] ^ values[of]) > max_distance
    decided = [pages.row_of_key(key) for key in decisions.decided_duplicates()]
    far &= ~np.isin(duplicates, decided)
    # Not by np.unique, which imports the masked arrays of NumPy at its first call (6 ms).
    rows = sorted(set(of[chained | far].tolist()))
    return [int(page_id) for page_id in pages.ids.array()[rows]]
