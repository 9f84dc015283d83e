"""The detector: page in, verdict out. Every entry (spider middleware, pipeline, command line) takes this one
path.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral, Real
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from neardup.address import Address
from neardup.detection.cluster_sizes import ClusterSizes
from neardup.detection.doubts import Doubt, Doubts
from neardup.detection.known_bits import KnownBits
from neardup.detection.known_digests import KnownDigests
from neardup.detection.known_pages import NONE, KnownPages
from neardup.detection.recall import RecallMonitor
from neardup.detection.rule import MIN_FEATURES, VERIFY, Evidence, Rule
from neardup.detection.scope import ANY, Scope
from neardup.detection.traits import Traits
from neardup.detection.verdict import Found, Kind, Verdict, reason, unjudged
from neardup.detection.verification import Verifier
from neardup.errors import ConfigurationError, PageTooLarge, about
from neardup.fingerprint import hamming, sketch
from neardup.fingerprint.reader import Reader
from neardup.index.psm.psm_index import RECALL, PSMIndex
from neardup.index.registry import PSM, make_index
from neardup.text import headline as headlines
from neardup.text import limits
from neardup.text.content import BODY, Content
from neardup.text.features import DEFAULT, Features
from neardup.text.visible_text import ALT_TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lxml import etree

    from neardup.detection.stored_page import StoredPage
    from neardup.fingerprint.reader import Reading, Response
    from neardup.fingerprint.sketch import Compact
    from neardup.index.base import Index

_PAGES_AT_ONCE = 10_000

NEAR_EXACT = 0.97
"""Resemblance from which on a page with the headline of its canonical page is surely a copy. Such a copy says
nothing about what is template.
"""

AGAIN = 4
"""How many duplicates a crawl judges again after each page, if so many are due: some 0.5 ms."""

MOST_VERIFIED = 4096
"""How many pages within ``max_distance`` have their sketches compared with one page's. So a site of
near-alike pages that are no duplicates of each other costs a bounded time a page. The likeliest pages are
compared, because the index probes in falling probability.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorOptions:
    """What decides whether two pages are near-duplicates, and for how many pages of a cluster links are
    followed.

    - ``features``, ``content``, ``selectors`` and ``alt_texts`` are those of
      :class:`neardup.text.features.Features` and :class:`neardup.text.content.Content`.
    - ``verify`` is the least resemblance, estimated from sketches, of a duplicate to its canonical page. With
      0, the distance alone decides.
    - ``max_distance`` (bits, inclusive) is that of the features if None.
    - ``scope`` is that of :class:`neardup.detection.scope.Scope`.
    - ``recall`` is that of :class:`neardup.index.psm.psm_index.PSMIndex`.
    - ``recall_sample`` is the share of the queries of which the recall is measured.
    - ``index`` is a name of :mod:`neardup.index.registry`.
    - ``min_features``: a page with fewer distinct words is never matched.
    - ``follow_per_cluster`` counts pages of this crawl, the canonical page included if it is one of them.
    - ``max_page_bytes`` and the other three are the limits of :class:`neardup.text.limits.Limits`.
    """

    features: str = DEFAULT
    content: str = BODY
    selectors: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    alt_texts: bool = ALT_TEXTS
    sketch_size: int = sketch.SIZE
    verify: float = VERIFY
    max_distance: int | None = None
    scope: str = ANY
    recall: float = RECALL
    index: str = PSM
    recall_sample: float = 0.05
    min_features: int = MIN_FEATURES
    follow_per_cluster: int = 1
    max_page_bytes: int = limits.PAGE_BYTES
    max_tags: int = limits.TAGS
    max_attributes: int = limits.ATTRIBUTES
    max_words: int = limits.WORDS

    def __post_init__(self) -> None:
        for name, (said, is_right) in _EXPECTED.items():
            value = getattr(self, name)
            if not is_right(value):
                raise ConfigurationError(f"{name} must be {said}, not {value!r}")
        self.make_index(self.make_rule(self.make_reader().features))
        Scope(self.scope)
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

    def make_reader(self, *, keeps_text: bool = False) -> Reader:
        with about("content"):
            Content(self.content)
        with about("selectors"):
            content = Content(self.content, self.selectors, self.alt_texts)
        with about("features"):
            features = Features(self.features)
        budget = limits.Limits(self.max_page_bytes, self.max_tags, self.max_attributes, self.max_words)
        return Reader(content, features, self.sketch_size, budget, keeps_text=keeps_text)

    def make_rule(self, features: Features) -> Rule:
        """The rule; ``max_distance`` is the one that belongs to the features, with or without verification,
        unless given.
        """
        distance = self.max_distance
        if distance is None:
            distance = features.verified_max_distance if self.verify else features.max_distance
        return Rule(distance, self.verify)

    def make_index(self, rule: Rule) -> Index:
        return make_index(self.index, max_distance=rule.max_distance, recall=self.recall)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


_EXPECTED: dict[str, tuple[str, Callable[[object], bool]]] = {
    **dict.fromkeys(("features", "content", "scope", "index"), ("a text", _is_text)),
    **dict.fromkeys(("verify", "recall", "recall_sample"), ("a number", _is_number)),
    **dict.fromkeys(
        (
            "sketch_size", "min_features", "follow_per_cluster", "max_page_bytes", "max_tags",
            "max_attributes", "max_words",
        ),
        ("a whole number", _is_whole),
    ),
    "max_distance": ("a whole number or None", lambda value: value is None or _is_whole(value)),
    "alt_texts": ("True or False", lambda value: isinstance(value, bool)),
    "selectors": ("a mapping of hosts", lambda value: isinstance(value, Mapping)),
}  # fmt: skip
"""What each option is, in words, and whether a value is that. Whoever has no type checker is told by name."""


class Detector:
    """Tells of each page whether the page is a near-duplicate of one already known, and remembers the page.

    Near-duplicate is not transitive, so clusters are stars: only canonical pages are in the index. A
    duplicate is within ``max_distance`` of its canonical page. Unless ``verify`` is 0, a duplicate also
    resembles its canonical page, as the sketches of both tell. A page with the very text of a canonical page
    is its duplicate, however many others are like it. Look-up and insertion are one synchronous step: of two
    copies that arrive together, the first judged is new and the second its duplicate.

    A page known by its URL is never a duplicate of itself. A page whose fingerprint is the same keeps its
    standing. The exception is a page whose text, the same words in another order, has become that of another
    canonical page. If a page's fingerprint has changed, the old fingerprint leaves the index and the page is
    judged afresh. The duplicates of a canonical page that has changed are judged afresh when they are seen
    again.

    ``first_id`` is the id of the first page that is not known yet; ids count up from there.
    """

    def __init__(self, options: DetectorOptions, *, reader: Reader | None = None, first_id: int = 1) -> None:
        self.options = options
        self.reader = reader or options.make_reader()
        self.rule = options.make_rule(self.reader.features)
        self.verifier = Verifier(self.rule, Scope(options.scope), self)
        self.index: Index = options.make_index(self.rule)
        self.pages = KnownPages()
        self.sketches = KnownBits(options.sketch_size)
        self.headlines = KnownBits(8 * headlines.BYTES)
        """The headlines of canonical pages, by row."""
        self.sizes = ClusterSizes()
        self.doubts = Doubts()
        self.digests = KnownDigests()
        self.recall: RecallMonitor | None = None
        self.search_seconds = 0.0
        """Spent on look-ups in the index, decisions and insertions."""
        self.no_longer_canonical: set[int] = set()
        """Ids of pages that were canonical before and have changed: their duplicates may be like them no
        longer.
        """
        self._next_id = first_id
        self._met = bytearray()
        """By row of a canonical page: pages of its cluster judged by this detector so far, 255 at most."""
        self._met_surely: set[int] = set()
        """Rows of canonical pages that were judged by this detector, they or sure duplicates of them."""

    def restore(self, remembered: Iterable[StoredPage]) -> int:
        """Take over the pages of earlier crawls, in any order, before the first page is judged; returns their
        number.
        """
        pages, options, scope = self.pages, self.options, self.verifier.scope
        duplicates, canonical_ids = array("q"), array("q")  # not lists, which take five times as much
        digests = array("Q", self.digests.array(len(pages)).tobytes())
        for some in _batches(remembered):
            first = len(pages)
            standing, its_digests = [NONE] * len(some), [0] * len(some)
            sketched, sketches = list[int](), list[bytes]()
            of_headlines = list[bytes]()
            for row, page in enumerate(some, first):
                if page.canonical_id is not None:
                    duplicates.append(row)
                    canonical_ids.append(page.canonical_id)
                elif page.fresh and page.can_be_canonical(options.min_features):
                    assert page.sketch is not None
                    standing[row - first] = row
                    its_digests[row - first] = scope.digest(Address(page.url), page.text_digest)
                    sketched.append(row)
                    sketches.append(page.sketch)
                    of_headlines.append(page.headline or bytes(headlines.BYTES))
            pages.extend(
                [page.url for page in some],
                ids=[page.page_id for page in some],
                values=[page.value or 0 for page in some],
                canonical=standing,
            )
            self.sketches.put_many(sketched, sketch.many_from_bytes(sketches, options.sketch_size))
            self.headlines.put_many(sketched, sketch.many_from_bytes(of_headlines, 8 * headlines.BYTES))
            digests.extend(its_digests)
        pages.canonical.put_many(np.array(duplicates), pages.rows_of_ids(np.array(canonical_ids)))
        self.digests = KnownDigests.from_array(np.frombuffer(digests, dtype=np.uint64))
        self.sizes = ClusterSizes(pages.canonical.array())
        self.fill_index()
        return len(pages)

    def fill_index(self) -> None:
        """Put the canonical pages into the index."""
        rows = np.flatnonzero(self.pages.canonical.array() == np.arange(len(self.pages)))
        self.index.extend(self.pages.values.array()[rows], rows)

    def watch_recall(self) -> RecallMonitor | None:
        """Measure the recall from now on; the monitor is to be closed at the end. None: nothing
        to measure.
        """
        if isinstance(self.index, PSMIndex) and self.options.recall_sample > 0.0:
            self.recall = RecallMonitor(self.index, share=self.options.recall_sample)
        return self.recall

    def examine_response(self, response: Response, *, always_follow: bool = False) -> Verdict:
        """Judge a response of Scrapy that is an HTML page; it is parsed only if it is within the limits."""
        return self._examine(response.url, lambda: self.reader.read_response(response), always_follow)

    def examine_tree(self, url: str, root: etree._Element, *, always_follow: bool = False) -> Verdict:
        """Judge an HTML page by the lxml tree of its document, which is only read."""
        return self._examine(url, lambda: self.reader.read_tree(url, root), always_follow)

    def examine_html(self, url: str, html: str | bytes, *, always_follow: bool = False) -> Verdict:
        """Judge a page by its HTML (or plain text, which is HTML without tags), outside a crawl or from an
        item.
        """
        return self._examine(url, lambda: self.reader.read_html(url, html), always_follow)

    def examine_text(self, url: str, text: str, *, always_follow: bool = False) -> Verdict:
        """Judge a page by its visible text."""
        return self._examine(url, lambda: self.reader.read_text(text), always_follow)

    def _examine(self, url: str, read: Callable[[], Reading], always_follow: bool) -> Verdict:
        try:
            return self.judge(url, read(), always_follow=always_follow)
        except PageTooLarge as exc:
            return unjudged(Address.of(url), exc)

    def judge(self, url: str, reading: Reading, *, always_follow: bool = False) -> Verdict:
        """Judge a page that has been read. ``always_follow``: its links are followed whatever it is."""
        started = perf_counter()
        verdict = self._judge(Address.of(url), reading, always_follow=always_follow)
        self.search_seconds += perf_counter() - started
        return verdict

    def _judge(self, page: Address, reading: Reading, *, always_follow: bool) -> Verdict:
        row = self.pages.row(page)
        known = row != NONE
        if not known:
            row = self.pages.add(page, page_id=self._next_id, value=0, canonical=NONE)
            self._next_id += 1
        standing, page_id = self.pages.canonical[row], self.pages.ids[row]
        own_distance: int | None = None
        same_text = self._has_same_text(page, row, reading)
        found: Found | None = None
        if not reading.can_be_matched(self.options.min_features):
            self.set_canonical(row, reading.fingerprint.value if reading.fingerprint else 0, canonical=NONE)
            kind = Kind.TOO_SHORT
        else:
            assert reading.fingerprint is not None
            if known and self.pages.values[row]:
                own_distance = hamming.distance(self.pages.values[row], reading.fingerprint.value)
            found = self._resolve(page, row, own_distance, reading)
            if not known or own_distance != 0:
                self._learn(page, reading, found)
            if found is not None:
                kind = Kind.DUPLICATE
            elif not known:
                kind = Kind.NEW
            else:
                kind = Kind.UNCHANGED if own_distance == 0 else Kind.CHANGED
        # One that was too old to be canonical when the crawl began may have duplicates, too.
        was_canonical = standing == row or (known and standing == NONE and kind is not Kind.TOO_SHORT)
        if was_canonical and kind is not Kind.UNCHANGED:
            self.no_longer_canonical.add(page_id)
        if found is not None and found.evidence.is_doubtful:
            self.doubts.keep(row, Doubt(page, reading, found.evidence))
        canonical = found.row if found else row
        met, repeated = self._meet(canonical), self._has_met(canonical, found)
        follow, why = self._follow(found, met, repeated=repeated, always_follow=always_follow)
        return self._verdict(
            page,
            row,
            kind,
            reading,
            found,
            own_distance=own_distance,
            same_text=same_text,
            follow=follow,
            why=why,
            repeated=repeated and met > 0,
        )

    def _has_same_text(self, page: Address, row: int, reading: Reading) -> bool | None:
        """Whether a page has the very text of its last version, which was canonical; None: nobody knows."""
        before = self.digests.of(row)
        if not before or reading.text_digest is None:
            return None
        return before == self.verifier.scope.digest(page, reading.text_digest)

    def _verdict(
        self,
        page: Address,
        row: int,
        kind: Kind,
        reading: Reading,
        found: Found | None,
        *,
        own_distance: int | None = None,
        same_text: bool | None = None,
        follow: bool = True,
        why: str = "",
        repeated: bool = False,
        again: bool = False,
    ) -> Verdict:
        distance, resemblance, evidence = (None, None, None) if found is None else found[1:]
        words = reading.distinct_words
        return Verdict(
            address=page,
            kind=kind,
            follow=follow,
            repeated=repeated,
            reason=reason(kind, found, own_distance=own_distance, same_text=same_text, words=words) + why,
            page_id=self.pages.ids[row],
            fingerprint=reading.fingerprint,
            sketch=reading.sketch,
            features=words,
            canonical_id=self.pages.ids[found.row] if found else None,
            canonical_url=self.pages.urls[found.row] if found else None,
            distance=distance,
            resemblance=resemblance,
            evidence=evidence,
            headline=reading.headline,
            again=again,
            own_distance=own_distance,
            same_text=same_text,
            text_digest=reading.text_digest,
            text=reading.text,
        )

    def _learn(self, page: Address, reading: Reading, found: Found | None) -> None:
        """Count a page among those of its host, unless the page is surely a copy."""
        if found is not None and (
            found.evidence in {Evidence.TEXT, Evidence.DECISION}
            or (found.evidence is Evidence.HEADLINE and found.resemblance >= NEAR_EXACT)
        ):
            return
        host = self.verifier.frequencies.count(page.host, reading.shingles, reading.headline)
        self.doubts.host_grew(page.host, host.pages)

    def judge_again(self, most: int) -> list[Verdict]:
        """Judge some of the duplicates again whose sites have become better known, as many as ``most``.

        Returns the verdicts that are others now, surer or less sure.
        """
        started = perf_counter()
        changed: list[Verdict] = []
        for _ in range(most):
            due = self.doubts.next_due()
            if due is None:
                break
            verdict = self._judge_again(*due)
            if verdict is not None:
                changed.append(verdict)
        self.search_seconds += perf_counter() - started
        return changed

    def judge_all_again(self) -> list[Verdict]:
        """Judge all doubtful duplicates again, at the end, as :meth:`judge_again` does."""
        self.doubts.all_are_due()
        return self.judge_again(len(self.doubts))

    def canonical_like(self, url: str, reading: Reading) -> Found | None:
        """The canonical page that a page, if it were judged, would be a duplicate of; nothing is remembered
        of the page. None: the page is like none, or too short.
        """
        if not reading.can_be_matched(self.options.min_features):
            return None
        assert reading.fingerprint is not None
        assert reading.sketch is not None
        page = Address.of(url)
        digest = self.verifier.scope.digest(page, reading.text_digest)
        if copies := self.exact_copies(page, reading.fingerprint.value, reading.sketch, digest):
            return Found(copies[0], 0, 1.0, Evidence.TEXT)
        matches = self.index.match_table(reading.fingerprint, MOST_VERIFIED)[:, [0, 2]].astype(np.int64)
        return self.verifier.comparison(page, reading).confirmed(matches)

    def canonical_of(self, url: str) -> str | None:
        """URL of the canonical page that a page is a duplicate of by now; None if it is no duplicate, or not
        known.
        """
        row = self.pages.row(Address.of(url))
        canonical = NONE if row == NONE else self.pages.canonical[row]
        return None if canonical in (row, NONE) else self.pages.urls[canonical]

    def _judge_again(self, row: int, doubt: Doubt) -> Verdict | None:
        page, reading, evidence = doubt
        standing = self.pages.canonical[row]
        assert reading.fingerprint is not None
        assert reading.sketch is not None
        if standing in (row, NONE) or self.pages.values[row] != reading.fingerprint.value:
            self.doubts.drop(row)  # judged in another way meanwhile
            return None
        # The page itself is no evidence that its canonical page's text is the site's template.
        self.sizes.add(standing, -1)
        digest = self.verifier.scope.digest(page, reading.text_digest)
        found = self._find(page, standing, reading, digest, row)
        self.sizes.add(standing, 1)
        if found is not None and found.row == standing and found.evidence is evidence:
            return None
        value = reading.fingerprint.value
        canonical = found.row if found else row
        self.set_canonical(row, value, Traits(reading.sketch, reading.headline, digest), canonical=canonical)
        repeated = self._has_met(canonical, found)
        if found is None:
            self.doubts.drop(row)
            return self._verdict(page, row, Kind.NEW, reading, None, again=True)
        self.doubts.keep(row, Doubt(page, reading, found.evidence))
        return self._verdict(page, row, Kind.DUPLICATE, reading, found, again=True, repeated=repeated)

    def _resolve(self, page: Address, row: int, own_distance: int | None, reading: Reading) -> Found | None:
        """Give a page its standing; its canonical page, or None if that is the page itself."""
        assert reading.fingerprint is not None
        assert reading.sketch is not None
        standing, value = self.pages.canonical[row], reading.fingerprint.value
        digest = self.verifier.scope.digest(page, reading.text_digest)
        if (
            standing == row
            and own_distance == 0
            and self.verifier.decisions.same_as(page) is None
            # With another digest it is the same words in another order, which may have become a copy.
            and (self.digests.of(row) == digest or not self.exact_copies(page, value, reading.sketch, digest))
        ):
            self._put_traits(row, Traits(reading.sketch, reading.headline, digest))
            return None
        # Out of the index first: a page must not be found as the canonical page of itself.
        self.set_canonical(row, value, canonical=NONE)
        found = self._find(page, standing, reading, digest, row)
        canonical = found.row if found else row
        self.set_canonical(row, value, Traits(reading.sketch, reading.headline, digest), canonical=canonical)
        return found

    def gone(self, url: str) -> Verdict | None:
        """The verdict of a page that is there no longer; None if it was not known. If it was canonical, its
        duplicates need another page.
        """
        page = Address.of(url)
        row = self.pages.row(page)
        if row == NONE:
            return None
        if self.pages.canonical[row] in (row, NONE):
            self.no_longer_canonical.add(self.pages.ids[row])
        self.set_canonical(row, 0, canonical=NONE)
        page_id = self.pages.ids[row]
        return Verdict(address=page, kind=Kind.GONE, follow=True, reason=reason(Kind.GONE), page_id=page_id)

    def set_canonical(self, row: int, value: int, traits: Traits | None = None, *, canonical: int) -> None:
        """Set the fingerprint (0: none) and the standing of a page; a canonical page needs its traits.

        Index, sketches, headlines and digests hold the canonical pages and no others.
        """
        before = self.pages.canonical[row]
        if before == row:
            self.index.remove(self.pages.values[row], row)
            self.sketches.drop(row)
            self.headlines.drop(row)
            self.digests.drop(row)
        elif before != NONE:
            self.sizes.add(before, -1)
        self.pages.values[row] = value
        self.pages.canonical[row] = canonical
        if canonical == row:
            assert traits is not None
            self.index.add(value, row)
            self._put_traits(row, traits)
        elif canonical != NONE:
            self.sizes.add(canonical, 1)

    def _put_traits(self, row: int, traits: Traits) -> None:
        self.sketches.put(row, traits.sketch)
        self.headlines.put(row, traits.headline.view(np.uint64))
        self.digests.put(row, traits.digest)

    def exact_copies(self, page: Address, value: int, compact: Compact, digest: int) -> list[int]:
        """Rows of canonical pages with the very text of a page, told by digest, fingerprint and sketch."""
        return self.verifier.exact_copies(page, value, compact, self.digests.rows(digest))

    def _find(self, page: Address, standing: int, reading: Reading, digest: int, row: int) -> Found | None:
        """The canonical page that people have decided on, else that which the rule finds."""
        if self.verifier.decisions.is_canonical(page):
            return None
        return self._decided(page, reading, row) or self._search(page, standing, reading, digest, row)

    def _search(self, page: Address, standing: int, reading: Reading, digest: int, row: int) -> Found | None:
        """A canonical page of the very text, the one that the page had before if it is one of these.

        Else it is the canonical page that the page had before, if that still holds. Else it is one that the
        index proposes (PSM_F). Unless the proposed page is confirmed and nearly the
        same, all pages within ``max_distance`` are asked for (PSM_A). The page that resembles this page most
        is then taken.
        """
        assert reading.fingerprint is not None
        assert reading.sketch is not None
        query = reading.fingerprint
        comparison = self.verifier.comparison(page, reading)
        # What is found so is not looked for in the index, nor counted as found there.
        copies = self.exact_copies(page, query.value, reading.sketch, digest)
        if copies:
            return Found(standing if standing in copies else copies[0], 0, 1.0, Evidence.TEXT)
        if standing != NONE and self.pages.canonical[standing] == standing:
            distance = hamming.distance(self.pages.values[standing], query.value)
            if found := comparison.confirmed(np.array([[standing, distance]], dtype=np.int64)):
                return found
        match = self.index.find_first(query)
        if self.recall is not None:
            self.recall.query_answered(query.value, match, rows=len(self.pages), row=row)
        if match is None:
            return None
        found = comparison.confirmed(np.array([[match.row, match.distance]], dtype=np.int64))
        if found and found.resemblance >= NEAR_EXACT:
            return found
        matches = self.index.match_table(query, MOST_VERIFIED)[:, [0, 2]].astype(np.int64)
        if len(matches) == 1 and matches[0, 0] == match.row:
            return found  # nothing else is near, as for most pages
        return comparison.confirmed(matches)

    def _decided(self, page: Address, reading: Reading, row: int) -> Found | None:
        """The canonical page that a page has because somebody has said so, and that is known."""
        key = self.verifier.decisions.same_as(page)
        other = NONE if key is None else self.pages.row_of_key(key)
        canonical = NONE if other == NONE else self.pages.canonical[other]
        if canonical in (row, NONE) or self.pages.canonical[canonical] != canonical:
            return None
        assert reading.fingerprint is not None
        assert reading.sketch is not None
        distance = hamming.distance(self.pages.values[canonical], reading.fingerprint.value)
        (estimate,) = sketch.compact_estimates(self.sketches.of(np.array([canonical])), reading.sketch)
        return Found(canonical, distance, float(estimate), Evidence.DECISION)

    def _meet(self, canonical: int) -> int:
        """Count a page for the cluster of a canonical page; returns how many of the cluster were judged
        before it.
        """
        if canonical >= len(self._met):
            self._met.extend(bytes(canonical + 1 - len(self._met)))
        met = self._met[canonical]
        self._met[canonical] = min(met + 1, 255)
        return met

    def _has_met(self, canonical: int, found: Found | None) -> bool:
        """Whether this detector has judged a page that stands for a page of a cluster; from now on it has.

        Any page of the cluster stands for a doubtful duplicate. For a sure one stands the canonical page, or
        another sure duplicate. The canonical page may be from an earlier crawl, and all pages of this crawl
        may be no more than like it.
        """
        if found is not None and not found.evidence.is_sure:
            return True
        has_met = canonical in self._met_surely
        self._met_surely.add(canonical)
        return has_met

    def _follow(
        self, found: Found | None, met: int, *, repeated: bool, always_follow: bool
    ) -> tuple[bool, str]:
        """Whether the links of a page are worth following at once, and the half-sentence that says why of a
        duplicate.

        ``met`` counts pages of this crawl only. What another crawl followed is no reason not to follow in
        this one.
        """
        if found is None:
            return True, ""
        if always_follow:
            return True, "; its links are followed at once (start URL)"
        if met < self.options.follow_per_cluster:
            return True, f"; its links are followed at once, as number {met + 1} of its cluster in this crawl"
        if not repeated:
            return True, "; its links are followed at once, for this crawl has not had its text"
        return False, "; its links can wait"


def _batches(remembered: Iterable[StoredPage]) -> Iterator[list[StoredPage]]:
    pages = iter(remembered)
    while some := list(islice(pages, _PAGES_AT_ONCE)):
        yield some
