"""The detector: page in, verdict out. Every entry (spider middleware, pipeline, command line) takes this one path."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from neardup import features, hamming, simhash
from neardup.errors import ConfigurationError
from neardup.index.base import Match
from neardup.index.psm import PSMIndex
from neardup.pages import NONE, KnownPages, page_url
from neardup.purify import purify_bytes, purify_html, purify_tree
from neardup.verdict import Kind, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    from lxml import etree

    from neardup.index.base import Index
    from neardup.simhash import Fingerprint

    class RememberedPage(Protocol):
        """What is kept of a page between crawls; ``canonical_id`` is None unless the page is a duplicate."""

        @property
        def page_id(self) -> int: ...
        @property
        def url(self) -> str: ...
        @property
        def value(self) -> int | None: ...
        @property
        def features(self) -> int: ...
        @property
        def canonical_id(self) -> int | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorOptions:
    """What decides whether two pages are near-duplicates, and for how many pages of a cluster links are followed.

    ``max_distance`` (bits, inclusive) and ``recall`` are those of :class:`neardup.index.psm.PSMIndex`. A page with
    fewer than ``min_features`` distinct words is never matched. ``follow_per_cluster`` counts the canonical page.
    """

    max_distance: int = 3
    recall: float = 0.95
    min_features: int = 10
    follow_per_cluster: int = 1

    def __post_init__(self) -> None:
        PSMIndex(max_distance=self.max_distance, recall=self.recall)
        if self.min_features < 1:
            raise ConfigurationError(f"min_features must be at least 1, not {self.min_features}")
        if self.follow_per_cluster < 1:
            raise ConfigurationError(
                "follow_per_cluster must be at least 1 (the canonical page itself),"
                f" not {self.follow_per_cluster}"
            )


@dataclass(slots=True)
class StepSeconds:
    """Seconds spent in each step of judging pages."""

    purify: float = 0.0
    features: float = 0.0
    simhash: float = 0.0
    search: float = 0.0
    """Look-up in the index, decision, insertion."""


class Detector:
    """Tells of each page whether it is a near-duplicate of one already known, and remembers it.

    Near-duplicate is not transitive, so clusters are stars: only canonical pages are in the index, and a duplicate is within
    ``max_distance`` of its canonical page. Look-up and insertion are one synchronous step: of two copies that arrive
    together, the first judged is new and the second its duplicate.

    A page known by its URL is never a duplicate of itself. If its fingerprint is the same, it keeps its standing;
    if not, its old fingerprint leaves the index and it is judged afresh. The duplicates of a canonical page that has changed are
    judged afresh when they are seen again.

    ``first_id``: id of the first page that is not known yet; ids count up from there.
    """

    def __init__(self, options: DetectorOptions, *, first_id: int = 1) -> None:
        self.options = options
        self.index: Index = PSMIndex(max_distance=options.max_distance, recall=options.recall)
        self.pages = KnownPages()
        self.seconds = StepSeconds()
        self._next_id = first_id
        self._followed: Counter[int] = Counter()

    def warm_up(self) -> None:
        """Compile what pages would otherwise wait for: seconds after an installation, 0.1 s from then on."""
        fingerprint = simhash.fingerprint({"warm": 1, "up": 1})
        assert fingerprint is not None
        index = PSMIndex(max_distance=self.options.max_distance, recall=self.options.recall)
        index.extend(*self.pages.fingerprints([]))
        for row in range(1000):  # enough to make it grow
            index.add(fingerprint.value ^ row, row)
        index.find_first(fingerprint)
        index.remove(fingerprint.value, 0)

    def restore(self, remembered: Iterable[RememberedPage]) -> int:
        """Take over the pages of earlier crawls, in any order, before the first page is judged; returns their number."""
        row_of_id: dict[int, int] = {}
        duplicates: list[tuple[int, int]] = []
        canonical: list[int] = []
        for page in remembered:
            row = self.pages.add(page.url, page_id=page.page_id, value=page.value or 0, canonical=NONE)
            row_of_id[page.page_id] = row
            if page.canonical_id is not None:
                duplicates.append((row, page.canonical_id))
            elif page.value is not None and page.features >= self.options.min_features:
                self.pages.canonical[row] = row
                canonical.append(row)
        for row, canonical_id in duplicates:
            self.pages.canonical[row] = row_of_id[canonical_id]
        self.index.extend(*self.pages.fingerprints(canonical))
        return len(row_of_id)

    def examine_tree(self, url: str, root: etree._Element, *, always_follow: bool = False) -> Verdict:
        """Judge an HTML page by the lxml tree of its document, which is only read."""
        started = perf_counter()
        text = purify_tree(root)
        self.seconds.purify += perf_counter() - started
        return self.examine_text(url, text, always_follow=always_follow)

    def examine_html(self, url: str, html: str | bytes, *, always_follow: bool = False) -> Verdict:
        """Judge a page by its HTML (or plain text, which is HTML without tags), outside a crawl or from an item."""
        started = perf_counter()
        text = purify_html(html) if isinstance(html, str) else purify_bytes(html)
        self.seconds.purify += perf_counter() - started
        return self.examine_text(url, text, always_follow=always_follow)

    def examine_text(self, url: str, text: str, *, always_follow: bool = False) -> Verdict:
        """Judge a page by its purified text. ``always_follow``: its links are followed whatever it is."""
        started = perf_counter()
        counts = features.word_counts(text)
        counted = perf_counter()
        fingerprint = simhash.fingerprint(counts)
        fingerprinted = perf_counter()
        verdict = self._judge(page_url(url), fingerprint, len(counts), always_follow=always_follow)
        self.seconds.features += counted - started
        self.seconds.simhash += fingerprinted - counted
        self.seconds.search += perf_counter() - fingerprinted
        return verdict

    def _judge(
        self, url: str, fingerprint: Fingerprint | None, feature_count: int, *, always_follow: bool
    ) -> Verdict:
        row = self.pages.row(url)
        known = row != NONE
        if not known:
            row = self.pages.add(url, page_id=self._next_id, value=0, canonical=NONE)
            self._next_id += 1
        standing = self.pages.canonical[row]
        own_distance: int | None = None
        match: Match | None = None
        if fingerprint is None or feature_count < self.options.min_features:
            self._place(row, fingerprint, canonical=NONE)
            kind = Kind.TOO_SHORT
        else:
            if standing != NONE:
                own_distance = hamming.distance(self.pages.values[row], fingerprint.value)
            if standing != row or own_distance != 0:
                # Out of the index first: a page must not be found as the canonical page of itself.
                self._place(row, fingerprint, canonical=NONE)
                match = self._match(standing, fingerprint)
                self._place(row, fingerprint, canonical=match.row if match else row)
            if match is not None:
                kind = Kind.DUPLICATE
            elif not known:
                kind = Kind.NEW
            else:
                kind = Kind.UNCHANGED if own_distance == 0 else Kind.CHANGED
        follow, why = self._follow(match, always_follow=always_follow)
        return Verdict(
            url=url,
            kind=kind,
            follow=follow,
            reason=_reason(kind, match, own_distance, feature_count) + why,
            page_id=self.pages.ids[row],
            fingerprint=fingerprint,
            features=feature_count,
            canonical_id=self.pages.ids[match.row] if match else None,
            canonical_url=self.pages.urls[match.row] if match else None,
            distance=match.distance if match else None,
            own_distance=own_distance,
        )

    def _place(self, row: int, fingerprint: Fingerprint | None, *, canonical: int) -> None:
        """Set the fingerprint and the standing of a page; the index holds the canonical pages and no others."""
        if self.pages.canonical[row] == row:
            self.index.remove(self.pages.values[row], row)
        value = 0 if fingerprint is None else fingerprint.value
        self.pages.values[row] = value
        self.pages.canonical[row] = canonical
        if canonical == row:
            self.index.add(value, row)

    def _match(self, standing: int, fingerprint: Fingerprint) -> Match | None:
        """The canonical page that a page had before, if it still holds; else what the index finds (PSM_F)."""
        if standing != NONE and self.pages.canonical[standing] == standing:
            value = self.pages.values[standing]
            if hamming.within(value, fingerprint.value, self.options.max_distance):
                return Match(standing, value, hamming.distance(value, fingerprint.value))
        return self.index.find_first(fingerprint)

    def _follow(self, match: Match | None, *, always_follow: bool) -> tuple[bool, str]:
        """Whether to follow the links of a page, and the half-sentence that says why if it is a duplicate."""
        if match is None:
            return True, ""
        if always_follow:
            return True, "; its links are followed all the same (start URL)"
        # The canonical page is the first of its cluster, in this crawl or in the one that stored it.
        if self._followed[match.row] < self.options.follow_per_cluster - 1:
            self._followed[match.row] += 1
            return True, f"; its links are followed as number {self._followed[match.row] + 1} of its cluster"
        return False, "; its links need not be followed"


def _reason(kind: Kind, found: Match | None, own_distance: int | None, feature_count: int) -> str:
    if found is not None:
        return f"{found.distance} of {hamming.FINGERPRINT_BITS} bits differ from its canonical page"
    match kind:
        case Kind.TOO_SHORT:
            return f"too short to be matched: {feature_count} distinct words"
        case Kind.UNCHANGED:
            return "known, and the same as before"
        case Kind.CHANGED if own_distance is None:
            return "known, but too short to be matched until now"
        case Kind.CHANGED:
            return (
                f"known, but {own_distance} of {hamming.FINGERPRINT_BITS} bits differ from its last version"
            )
        case _:
            return "like no canonical page known"
