"""The detector: page in, verdict out. Every entry (spider middleware, pipeline, command line) takes this one path."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup import features, hamming, simhash
from neardup.errors import ConfigurationError
from neardup.index.base import Match
from neardup.index.choice import PSM, make_index
from neardup.index.psm import PSMIndex
from neardup.pages import NONE, KnownPages, page_url
from neardup.purify import purify_bytes, purify_html, purify_tree
from neardup.recall import RecallMonitor
from neardup.verdict import Kind, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Protocol

    import numpy.typing as npt
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


_PAGES_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorOptions:
    """What decides whether two pages are near-duplicates, and for how many pages of a cluster links are followed.

    ``max_distance`` (bits, inclusive) and ``recall`` are those of :class:`neardup.index.psm.PSMIndex`; ``index`` is a name of
    :mod:`neardup.index.choice`. Of ``recall_sample`` of the queries the recall is measured. A page with fewer than
    ``min_features`` distinct words is never matched. ``follow_per_cluster`` counts the canonical page.
    """

    max_distance: int = 3
    recall: float = 0.95
    index: str = PSM
    recall_sample: float = 0.05
    min_features: int = 10
    follow_per_cluster: int = 1

    def __post_init__(self) -> None:
        self.make_index()
        PSMIndex(recall=self.recall)  # checked whichever index is chosen
        if not 0.0 <= self.recall_sample <= 1.0:
            raise ConfigurationError(f"recall_sample must be between 0 and 1, not {self.recall_sample}")
        if self.min_features < 1:
            raise ConfigurationError(f"min_features must be at least 1, not {self.min_features}")
        if self.follow_per_cluster < 1:
            raise ConfigurationError(
                "follow_per_cluster must be at least 1 (the canonical page itself),"
                f" not {self.follow_per_cluster}"
            )

    def make_index(self) -> Index:
        return make_index(self.index, max_distance=self.max_distance, recall=self.recall)


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
        self.index: Index = options.make_index()
        self.pages = KnownPages()
        self.recall: RecallMonitor | None = None
        self.seconds = StepSeconds()
        self._next_id = first_id
        self._followed: Counter[int] = Counter()

    def warm_up(self) -> None:
        """Compile what pages would otherwise wait for: seconds after an installation, 0.1 s from then on."""
        KnownPages.warm_up()
        fingerprint = simhash.fingerprint({"warm": 1, "up": 1})
        assert fingerprint is not None
        index = self.options.make_index()
        index.extend(*self.pages.fingerprints([]))
        for row in range(1000):  # enough to make it grow
            index.add(fingerprint.value ^ row, row)
        index.find_first(fingerprint)
        index.remove(fingerprint.value, 0)
        if isinstance(index, PSMIndex):
            index.nearest(fingerprint.value, rows=1000, but=0)

    def restore(self, remembered: Iterable[RememberedPage]) -> int:
        """Take over the pages of earlier crawls, in any order, before the first page is judged; returns their number."""
        pages, options = self.pages, self.options
        duplicates: list[int] = []
        canonical_ids: list[int] = []
        for some in _batches(remembered):
            first = len(pages)
            standing = [NONE] * len(some)
            for place, page in enumerate(some):
                if page.canonical_id is not None:
                    duplicates.append(first + place)
                    canonical_ids.append(page.canonical_id)
                elif page.value is not None and page.features >= options.min_features:
                    standing[place] = first + place
            pages.extend(
                [page.url for page in some],
                ids=[page.page_id for page in some],
                values=[page.value or 0 for page in some],
                canonical=standing,
            )
        for row, canonical in zip(duplicates, pages.rows_of_ids(canonical_ids).tolist(), strict=True):
            pages.canonical[row] = canonical
        self._fill_index()
        return len(pages)

    def arrays(self) -> dict[str, Any]:
        """All that is known, for :func:`neardup.snapshot.save`; :meth:`restore_arrays` takes it over again."""
        arrays: dict[str, Any] = {f"pages/{name}": array for name, array in self.pages.arrays().items()}
        if isinstance(self.index, PSMIndex):
            arrays |= {f"index/{name}": array for name, array in self.index.arrays().items()}
        return arrays

    def restore_arrays(self, arrays: Mapping[str, npt.NDArray[Any]]) -> int:
        """Take over the pages of earlier crawls from a snapshot; returns their number.

        Raises SnapshotError or ValueError if the arrays do not fit together; nothing is taken over then.
        """
        pages = KnownPages.from_arrays(_below("pages/", arrays))
        stored = _below("index/", arrays)
        options = self.options
        if options.index == PSM and stored:
            self.index = PSMIndex.from_arrays(
                stored, max_distance=options.max_distance, recall=options.recall
            )
            self.pages = pages
        else:
            self.pages = pages
            self._fill_index()
        return len(pages)

    def _fill_index(self) -> None:
        """Put the canonical pages into the index."""
        rows = np.flatnonzero(self.pages.canonical.array() == np.arange(len(self.pages)))
        self.index.extend(self.pages.values.array()[rows], rows)

    def watch_recall(self) -> RecallMonitor | None:
        """Measure the recall from now on; the monitor is to be closed at the end. None: nothing to measure."""
        if isinstance(self.index, PSMIndex) and self.options.recall_sample > 0.0:
            self.recall = RecallMonitor(self.index, share=self.options.recall_sample)
        return self.recall

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
                match = self._match(standing, fingerprint, row)
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

    def _match(self, standing: int, fingerprint: Fingerprint, row: int) -> Match | None:
        """The canonical page that a page had before, if it still holds; else what the index finds (PSM_F)."""
        if standing != NONE and self.pages.canonical[standing] == standing:
            value = self.pages.values[standing]
            if hamming.within(value, fingerprint.value, self.options.max_distance):
                return Match(standing, value, hamming.distance(value, fingerprint.value))
        match = self.index.find_first(fingerprint)
        if self.recall is not None:
            self.recall.query_answered(fingerprint.value, match, rows=len(self.pages), row=row)
        return match

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


def _batches(remembered: Iterable[RememberedPage]) -> Iterator[list[RememberedPage]]:
    pages = iter(remembered)
    while some := list(islice(pages, _PAGES_AT_ONCE)):
        yield some


def _below(prefix: str, arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


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
