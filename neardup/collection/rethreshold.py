"""What a store would hold with other thresholds, from what is stored, without a new crawl.

Pages are judged in the order in which crawls met them, by the judge of stored pages
(:class:`neardup.detection.reconciliation.Reconciler`). What is rare on a site cannot be compared again
without the pages. A duplicate by its headline, or by what is rare, stays one if the distance allows it. A
raised least resemblance ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neardup.address import Address
from neardup.detection.detector import Detector
from neardup.detection.known_pages import NONE
from neardup.detection.reconciliation import Reconciler
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind, Relation
from neardup.store.standings import Standing, restand, standings

if TYPE_CHECKING:
    from collections.abc import Callable

    from neardup.detection.detector import DetectorOptions
    from neardup.detection.rule import Rule
    from neardup.detection.stored_page import StoredPage
    from neardup.store.store import Store

_EXAMPLES = 10
_NOT_COMPARED_AGAIN = {Evidence.HEADLINE.value, Evidence.RARE.value}


@dataclass(frozen=True, slots=True)
class Example:
    """A page whose standing would change, and its canonical pages before and then; None: canonical."""

    url: str
    before: str | None
    then: str | None


@dataclass(slots=True)
class Outcome:
    """Sums before and then, and what changes: relations and pages by their ids."""

    pages: int = 0
    duplicates_before: int = 0
    duplicates_then: int = 0
    clusters_before: int = 0
    clusters_then: int = 0
    gained: int = 0
    lost: int = 0
    moved: int = 0
    examples: list[Example] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    canonical: list[int] = field(default_factory=list)
    too_short: list[int] = field(default_factory=list)


def rethreshold(
    store: Store, options: DetectorOptions, now: Rule, progress: Callable[[int], None]
) -> Outcome:
    """Judge all pages by other options; ``now`` is the rule by which they were judged. Nothing is stored.

    Memory holds what a crawl holds that starts with the store.
    """
    judge = _Judge(store, options, now)
    outcome = Outcome()
    before, then = set[int](), set[int]()
    with store.reading() as connection:
        for standing in standings(connection):
            page, found = standing.page, judge.relation(standing)
            outcome.pages += 1
            if page.canonical_id is not None:
                before.add(page.canonical_id)
                outcome.duplicates_before += 1
            if found is not None:
                then.add(found.canonical_id)
                outcome.duplicates_then += 1
            _note(outcome, judge, page, found)
            progress(outcome.pages)
    outcome.clusters_before, outcome.clusters_then = len(before), len(then)
    return outcome


def apply(store: Store, outcome: Outcome) -> None:
    """Give the pages the standing that they would have, in one transaction."""
    with store.writing() as connection:
        restand(connection, outcome.relations, outcome.canonical, outcome.too_short)


class _Judge:
    """Judges stored pages by their ids in ascending order, as if each were met for the first time."""

    def __init__(self, store: Store, options: DetectorOptions, now: Rule) -> None:
        self._detector = Detector(options)
        store.load_frequencies(self._detector.verifier.frequencies)
        self._detector.verifier.decisions = store.decisions()
        self._reconciler = Reconciler(self._detector)
        rule = self._detector.rule
        self._max_distance = rule.max_distance
        self._is_stricter = rule.verify > now.verify
        self._rows: dict[int, int] = {}
        """Rows of all pages by their ids."""

    def is_too_short(self, page: StoredPage) -> bool:
        return not page.can_be_canonical(self._detector.options.min_features) or page.weak_bits is None

    def url(self, page_id: int) -> str | None:
        row = self._rows.get(page_id)
        return None if row is None else self._detector.pages.urls[row]

    def relation(self, standing: Standing) -> Relation | None:
        """The relation that a page would have; None: it would be canonical, or too short."""
        page, pages = standing.page, self._detector.pages
        if self.is_too_short(page):
            return None
        decided = standing.evidence == Evidence.DECISION.value
        kept = self._kept(standing)
        found = [] if decided and kept else self._reconciler.apply(_afresh(page))
        row = pages.row(Address(page.url))
        if row == NONE:
            row = pages.add(Address(page.url), page_id=page.page_id, value=0, canonical=NONE)
        self._rows[page.page_id] = row
        if found:
            return found[0]
        if kept is not None:
            canonical = self._rows[kept.canonical_id]
            self._detector.set_canonical(row, page.value or 0, canonical=canonical)
        return kept

    def _kept(self, standing: Standing) -> Relation | None:
        """The relation that is stored, if it stays though it cannot be judged again."""
        page = standing.page
        row = NONE if page.canonical_id is None else self._rows.get(page.canonical_id, NONE)
        if row == NONE or self._detector.pages.canonical[row] != row or standing.evidence is None:
            return None
        assert page.canonical_id is not None
        assert page.distance is not None
        near = page.distance <= self._max_distance and not self._is_stricter
        if standing.evidence == Evidence.DECISION.value or (
            standing.evidence in _NOT_COMPARED_AGAIN and near
        ):
            evidence, resemblance = Evidence(standing.evidence), standing.resemblance or 0.0
            return Relation(page.page_id, page.canonical_id, page.distance, resemblance, evidence)
        return None


def _afresh(page: StoredPage) -> StoredPage:
    return page._replace(canonical_id=None, distance=None, kind=Kind.NEW.value)


def _note(outcome: Outcome, judge: _Judge, page: StoredPage, found: Relation | None) -> None:
    """What of a page changes."""
    then = None if found is None else found.canonical_id
    is_short, was_short = judge.is_too_short(page), page.kind == Kind.TOO_SHORT.value
    if then == page.canonical_id and is_short == was_short:
        return
    if found is not None:
        outcome.relations.append(found)
    elif is_short:
        outcome.too_short.append(page.page_id)
    else:
        outcome.canonical.append(page.page_id)
    if then == page.canonical_id:
        return
    if page.canonical_id is None:
        outcome.gained += 1
    elif then is None:
        outcome.lost += 1
    else:
        outcome.moved += 1
    if len(outcome.examples) < _EXAMPLES:
        before = None if page.canonical_id is None else judge.url(page.canonical_id)
        outcome.examples.append(Example(page.url, before, None if then is None else judge.url(then)))
