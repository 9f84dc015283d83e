"""What a store would hold with other thresholds, from what is stored, without a new crawl.

Pages are judged in the order in which crawls met them, by the judge of stored pages
(:class:`neardup.detection.reconciliation.Reconciler`). What is rare on a site cannot be compared again
without the pages. A duplicate by its headline, or by what is rare, stays one if the distance allows it. A
raised least resemblance ends it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from neardup.address import Address
from neardup.detection.detector import Detector
from neardup.detection.known_pages import NONE
from neardup.detection.reconciliation import Reconciler
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind, Relation
from neardup.store.standings import Standing, restand, standings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from neardup.detection.detector import DetectorOptions
    from neardup.detection.rule import Rule
    from neardup.detection.stored_page import StoredPage
    from neardup.store.store import Store

_EXAMPLES = 5
"""Of each kind of change."""

_PARTS = 5
"""Of a cluster that is split, that an example names."""

_EVIDENCE = tuple(Evidence)
_NOT_COMPARED_AGAIN = {Evidence.HEADLINE.value, Evidence.RARE.value}


@dataclass(frozen=True, slots=True)
class Example:
    """A page whose standing would change, and its canonical pages before and then; None: canonical."""

    url: str
    before: str | None
    then: str | None


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a cluster that is split: so many of its pages would be of the cluster of this page."""

    canonical_url: str
    pages: int


@dataclass(frozen=True, slots=True)
class Split:
    """A cluster of so many pages, its canonical page included, whose pages would be of ``clusters`` clusters;
    the largest ``parts``.
    """

    canonical_url: str
    pages: int
    clusters: int
    parts: list[Part]


@dataclass(slots=True)
class Outcome:
    """Sums before and then, with examples of each kind of change.

    - ``gained``, ``lost``, ``moved``: pages that become duplicates, cease to be, or get another canonical
      page.
    - ``clusters_gained``: clusters then without a page of a cluster before; ``clusters_lost``: the reverse.
    - ``clusters_split``: clusters before whose pages are in several clusters then; ``clusters_merged``: the
      reverse.
    """

    pages: int = 0
    duplicates_before: int = 0
    duplicates_then: int = 0
    clusters_before: int = 0
    clusters_then: int = 0
    gained: int = 0
    lost: int = 0
    moved: int = 0
    clusters_gained: int = 0
    clusters_lost: int = 0
    clusters_split: int = 0
    clusters_merged: int = 0
    examples: list[Example] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)


class Changes:
    """What is stored when an outcome is applied: relations, and ids of pages that get another standing.

    Kept as numbers: 26 bytes a relation, which another process gets at once.
    """

    def __init__(self) -> None:
        self.canonical, self.too_short = array("q"), array("q")
        self._duplicates, self._canonicals = array("q"), array("q")
        self._distances, self._resemblances, self._evidence = array("B"), array("d"), array("B")

    def add(self, relation: Relation) -> None:
        self._duplicates.append(relation.duplicate_id)
        self._canonicals.append(relation.canonical_id)
        self._distances.append(relation.distance)
        self._resemblances.append(relation.resemblance)
        self._evidence.append(_EVIDENCE.index(relation.evidence))

    def relations(self) -> Iterator[Relation]:
        columns = self._duplicates, self._canonicals, self._distances, self._resemblances, self._evidence
        for duplicate_id, canonical_id, distance, resemblance, evidence in zip(*columns, strict=True):
            yield Relation(
                int(duplicate_id), int(canonical_id), int(distance), resemblance, _EVIDENCE[int(evidence)]
            )


def rethreshold(
    store: Store, options: DetectorOptions, now: Rule, progress: Callable[[int], None]
) -> tuple[Outcome, Changes]:
    """Judge all pages by other options; ``now`` is the rule by which they were judged. Nothing is stored.

    Memory holds what a crawl holds that starts with the store.
    """
    judge = _Judge(store, options, now)
    counting = _Counting(judge)
    with store.reading() as connection:
        for standing in standings(connection):
            counting.add(standing.page, judge.relation(standing))
            progress(counting.outcome.pages)
    counting.finish()
    return counting.outcome, counting.changes


def apply(store: Store, changes: Changes) -> None:
    """Give the pages the standing that they would have, in one transaction."""
    with store.writing() as connection:
        restand(connection, changes.relations(), changes.canonical, changes.too_short)


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


class _Counting:
    """Counts what changes, page by page in the order of their ids, then cluster by cluster."""

    def __init__(self, judge: _Judge) -> None:
        self.outcome, self.changes = Outcome(), Changes()
        self._judge = judge
        self._examples: Counter[str] = Counter()
        self._ids = array("q")
        self._before, self._then = array("q"), array("q")
        """Of each page the id of the head of its cluster: of its canonical page, or its own."""

    def add(self, page: StoredPage, found: Relation | None) -> None:
        then = None if found is None else found.canonical_id
        self._ids.append(page.page_id)
        self._before.append(page.page_id if page.canonical_id is None else page.canonical_id)
        self._then.append(page.page_id if then is None else then)
        self.outcome.pages += 1
        self.outcome.duplicates_before += page.canonical_id is not None
        self.outcome.duplicates_then += then is not None
        is_short, was_short = self._judge.is_too_short(page), page.kind == Kind.TOO_SHORT.value
        if then == page.canonical_id and is_short == was_short:
            return
        if found is not None:
            self.changes.add(found)
        elif is_short:
            self.changes.too_short.append(page.page_id)
        else:
            self.changes.canonical.append(page.page_id)
        if then != page.canonical_id:
            self._tell(page, then)

    def _tell(self, page: StoredPage, then: int | None) -> None:
        kind = "gained" if page.canonical_id is None else "lost" if then is None else "moved"
        setattr(self.outcome, kind, getattr(self.outcome, kind) + 1)
        self._examples[kind] += 1
        if self._examples[kind] <= _EXAMPLES:
            urls = (None if head is None else self._judge.url(head) for head in (page.canonical_id, then))
            self.outcome.examples.append(Example(page.url, *urls))

    def finish(self) -> None:
        """Compare the clusters before with those then."""
        outcome = self.outcome
        ids, before, then = (
            np.frombuffer(column, dtype=np.int64) for column in (self._ids, self._before, self._then)
        )
        were, are = _in_clusters(ids, before), _in_clusters(ids, then)
        outcome.clusters_before, outcome.clusters_then = _number(before[were]), _number(then[are])
        both = were & are
        pairs, sizes = np.unique(np.column_stack((before[both], then[both])), axis=0, return_counts=True)
        heads, parts = np.unique(pairs[:, 0], return_counts=True)
        merged, sources = np.unique(pairs[:, 1], return_counts=True)
        outcome.clusters_lost = outcome.clusters_before - heads.size
        outcome.clusters_gained = outcome.clusters_then - merged.size
        outcome.clusters_split = int((parts > 1).sum())
        outcome.clusters_merged = int((sources > 1).sum())
        split = np.flatnonzero(parts > 1)
        for place in split[np.argsort(-parts[split], kind="stable")[:_EXAMPLES]]:
            head = int(heads[place])
            of_head = np.flatnonzero(pairs[:, 0] == head)
            largest = of_head[np.argsort(-sizes[of_head], kind="stable")[:_PARTS]]
            shown = [Part(self._url(int(pairs[row, 1])), int(sizes[row])) for row in largest]
            pages = int((before == head).sum())
            outcome.splits.append(Split(self._url(head), pages, int(parts[place]), shown))

    def _url(self, page_id: int) -> str:
        return self._judge.url(page_id) or ""


def _in_clusters(ids: npt.NDArray[np.int64], heads: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which pages are duplicates or have some."""
    are_duplicates = ids != heads
    found: npt.NDArray[np.bool_] = are_duplicates | np.isin(ids, heads[are_duplicates])
    return found


def _number(heads: npt.NDArray[np.int64]) -> int:
    return int(np.unique(heads).size)
