"""Re-election: who is canonical among the duplicates of a page that is canonical no longer.

Clusters are stars: every duplicate is within the rule of its canonical page. Without that page, nothing says
that its duplicates are within the rule of each other. So the duplicate with the lowest id, which was stored
first, becomes canonical (kind ``new``). The duplicates within the rule of the new canonical page become its
duplicates. The same is done with the duplicates that are left, until none is. The outcome is what a crawl
would have found, had it seen these pages alone, in the order of their ids.

What is compared is what is stored: texts by their digests, fingerprints, headlines, and estimates from whole
sketches. What is rare on a site in two pages can be compared only with one of the pages in hand. So a page
that was a duplicate by what is rare alone may become canonical. What people have decided holds whatever the
rule says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from sqlalchemy import bindparam, delete, insert, select, update

from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind
from neardup.detection.verification import stored_evidence
from neardup.fingerprint import hamming, sketch
from neardup.store.decided import load_decisions
from neardup.store.frequencies import frequencies_of
from neardup.store.schema import duplicate_values, page_ranks, simhash_values
from neardup.store.statements import SET_DUPLICATE, count_change, in_parts, replaced_relation
from neardup.store.types import UtcDateTime
from neardup.text import headline as headlines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from sqlalchemy import Connection

    from neardup.detection.decisions import Decisions
    from neardup.detection.document_frequencies import DocumentFrequencies
    from neardup.detection.rule import Rule
    from neardup.fingerprint.sketch import Compact
    from neardup.text.headline import Headline

_NEITHER = (Kind.TOO_SHORT.value, Kind.GONE.value)
"""Kinds of pages that are neither canonical nor duplicates."""

_IDS_AT_ONCE = 500
MOST_TRIED = 100
_SKETCHES_AT_ONCE = 16_384
"""Sketches that are compared with one at a time, so that a huge cluster is not copied as a whole."""


@dataclass(slots=True)
class Elected:
    """How many pages became canonical, and how many became duplicates of those."""

    canonical: int = 0
    duplicates: int = 0

    def __iadd__(self, other: Elected) -> Self:
        self.canonical += other.canonical
        self.duplicates += other.duplicates
        return self


def reelect(connection: Connection, canonical_ids: Iterable[int], rule: Rule, batch_id: int) -> Elected:
    """Choose new canonical pages among the duplicates of pages that are not canonical any more; no relation
    names these then.

    The pages themselves are left alone: the caller removes them, or has given them another standing. Memory
    holds the fingerprints and sketches of the duplicates of 500 of them at a time. All that changes is marked
    as of the batch.
    """
    elected = Elected()
    for some in in_parts(canonical_ids, _IDS_AT_ONCE):
        elected += _reelect_some(connection, some, rule, batch_id)
    return elected


def resolve(connection: Connection, changed_ids: Iterable[int], rule: Rule, batch_id: int) -> Elected:
    """Choose canonical pages for the duplicates of pages that have changed, and are stored as they are now.

    A page that still is canonical keeps those of its duplicates that are within the rule of it. A page that
    has become a duplicate hands on those of its duplicates that are within the rule of its own canonical
    page. The canonical page takes these duplicates over. The others are re-elected, as by :func:`reelect`.
    """
    elected = Elected()
    for some in in_parts(changed_ids, _IDS_AT_ONCE):
        elected += _reelect_some(connection, some, rule, batch_id, _heads(connection, some))
    return elected


def _heads(connection: Connection, changed_ids: list[int]) -> dict[int, int]:
    """The pages that the duplicates of some pages may become duplicates of: the page itself, or its canonical
    page.
    """
    page, relation = simhash_values.c, duplicate_values.c
    above = dict(
        connection.execute(
            select(relation.duplicate_hash_id, relation.actual_hash_id).where(
                relation.duplicate_hash_id.in_(changed_ids)
            )
        ).all()
    )
    wanted = {page_id: above.get(page_id, page_id) for page_id in changed_ids}
    query = (
        select(page.id)
        .join_from(simhash_values, duplicate_values, relation.duplicate_hash_id == page.id, isouter=True)
        .where(page.id.in_(set(wanted.values())), page.kind.not_in(_NEITHER), relation.id.is_(None))
    )
    canonical = set(connection.execute(query).scalars())
    return {page_id: head for page_id, head in wanted.items() if head in canonical}


def _reelect_some(
    connection: Connection,
    canonical_ids: list[int],
    rule: Rule,
    batch_id: int,
    heads: Mapping[int, int] = MappingProxyType({}),
) -> Elected:
    """``heads``: canonical pages that come first in the clusters of some of the pages."""
    roots = _members(connection, canonical_ids)
    heads = {root: heads[root] for root in set(roots.values()) if root in heads}
    pages = _Pages(connection, sorted({*roots, *heads.values()}))
    places_of = {page_id: place for place, page_id in enumerate(pages.ids)}
    clusters: dict[int, list[int]] = {}
    for page_id in pages.ids:
        if page_id in roots:
            clusters.setdefault(roots[page_id], []).append(places_of[page_id])
    canonical: list[int] = []
    relations: list[dict[str, Any]] = []
    for root, head in heads.items():
        if head in places_of and root in clusters:
            clusters[root].insert(0, places_of[head])
    compared = (place for places in clusters.values() if len(places) > 1 for place in places)
    frequencies = frequencies_of(connection, (pages.hosts[place] for place in compared))
    decisions = load_decisions(connection)
    now = datetime.now(UTC)
    for root, places in clusters.items():
        for page_id, followers in pages.stars(np.array(places), rule, frequencies, decisions):
            if page_id != heads.get(root):
                canonical.append(page_id)
            relations += [{**follower, "canonical": page_id, "now": now} for follower in followers]
    for ids in in_parts(canonical, _IDS_AT_ONCE):
        relation = duplicate_values.c.duplicate_hash_id
        connection.execute(delete(duplicate_values).where(relation.in_(ids)))
        page = simhash_values.c.id
        connection.execute(
            update(simhash_values).where(page.in_(ids)).values(kind=Kind.NEW.value, batch_id=batch_id)
        )
    if relations:
        connection.execute(_MOVE, relations)
    for ids in in_parts((relation["page"] for relation in relations), _IDS_AT_ONCE):
        page = simhash_values.c.id
        connection.execute(update(simhash_values).where(page.in_(ids)).values(batch_id=batch_id))
    return Elected(len(canonical), len(relations))


def _members(connection: Connection, canonical_ids: list[int]) -> dict[int, int]:
    """The duplicates of some pages, and the last of these pages that each duplicate hangs on.

    Crawls that run at once can make a duplicate of a page that has duplicates. Crawls can also make one of
    the given pages a duplicate of another. The pages of such a chain come along, and the chain ends as stars.
    """
    relation = duplicate_values.c
    above: dict[int, int] = {}
    last = canonical_ids
    while last:
        found: list[int] = []
        for ids in in_parts(last, _IDS_AT_ONCE):
            query = select(relation.actual_hash_id, relation.duplicate_hash_id).where(
                relation.actual_hash_id.in_(ids)
            )
            for actual, duplicate in connection.execute(query.with_for_update()):
                if duplicate not in above:
                    above[duplicate] = actual
                    found.append(duplicate)
        last = found
    return {page_id: _top(page_id, above) for page_id in above}


def _top(page_id: int, above: Mapping[int, int]) -> int:
    """Where a chain ends; anywhere in it if it ends nowhere, because two crawls have made two pages each
    other's duplicates.
    """
    seen = {page_id}
    while (page_id := above.get(page_id, page_id)) not in seen:
        seen.add(page_id)
    return min(seen) if page_id in above else page_id


class _Pages:
    """What some pages are compared by, in the order of their ids."""

    def __init__(self, connection: Connection, ids: list[int]) -> None:
        page = simhash_values.c
        self.ids: list[int] = []
        values: list[int] = []
        sketches: list[Compact] = []
        self.hosts: list[str] = []
        self._digests: list[int | None] = []
        self._keys: list[bytes] = []
        of_headlines: list[Headline] = []
        for some in in_parts(ids, _IDS_AT_ONCE):
            # But not those that somebody has removed just now, or found gone.
            query = (
                select(
                    page.id,
                    page.hash_value,
                    page.sketch,
                    page.host,
                    page.text_digest,
                    page.headline,
                    page.url_key,
                )
                .where(page.id.in_(some), page.hash_value.is_not(None))
                .order_by(page.id)
            )
            for page_id, value, drawn, host, digest, headline, key in connection.execute(query):
                self.ids.append(page_id)
                values.append(value)
                sketches.append(sketch.from_bytes(drawn))
                self.hosts.append(host)
                self._digests.append(digest)
                self._keys.append(bytes(key))
                of_headlines.append(headlines.from_bytes(headline))
        self._values = np.array(values, dtype=np.uint64)
        self._sketches = np.array(sketches, dtype=np.uint64)
        self._headlines = np.array(of_headlines, dtype=np.uint32)

    def stars(
        self,
        left: npt.NDArray[np.int64],
        rule: Rule,
        frequencies: DocumentFrequencies,
        decisions: Decisions,
    ) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Each new canonical page of a cluster, given by the places of its pages, with the relations of its
        duplicates.
        """
        while left.size:
            first, rest = int(left[0]), left[1:]
            distances = hamming.distances(self._values[rest], int(self._values[first]))
            estimates = self._estimates(rest, first)
            places = rest.tolist()
            others = self._headlines[rest], [self.hosts[place] for place in places]
            page = self._headlines[first], self.hosts[first]
            reasons = stored_evidence(rule, frequencies, page, others, distances=distances, wholes=estimates)
            followers: list[dict[str, Any]] = []
            taken = np.zeros(rest.size, dtype=np.bool_)
            for at, (place, reason) in enumerate(zip(places, reasons, strict=True)):
                distance, estimate = int(distances[at]), float(estimates[at])
                is_copy = not distance and estimate == 1.0 and self._digests[place] == self._digests[first]
                by_rule = Evidence.TEXT if is_copy else reason
                evidence = decisions.evidence(self._keys[place], self._keys[first], by_rule)
                if evidence is None:
                    continue
                taken[at] = True
                followers.append(
                    {
                        "page": self.ids[place],
                        "its_distance": distance,
                        "its_percentage": hamming.percentage(distance),
                        "its_resemblance": estimate,
                        "its_evidence": evidence.value,
                    }
                )
            yield self.ids[first], followers
            left = rest[~taken]

    def is_decided(self, place: int, decisions: Decisions) -> bool:
        """Whether somebody has said that a page is a duplicate of another."""
        return self._keys[place] in decisions.decided_duplicates()

    def _estimates(self, places: npt.NDArray[np.int64], other: int) -> npt.NDArray[np.float64]:
        """Resemblances to one page."""
        estimates = np.empty(places.size)
        for start in range(0, places.size, _SKETCHES_AT_ONCE):
            some = places[start : start + _SKETCHES_AT_ONCE]
            estimates[start : start + _SKETCHES_AT_ONCE] = sketch.compact_estimates(
                self._sketches[some], self._sketches[other]
            )
        return estimates


_MOVE = (
    update(duplicate_values)
    .where(duplicate_values.c.duplicate_hash_id == bindparam("page"))
    .ordered_values(
        *replaced_relation(
            {
                "actual_hash_id": bindparam("canonical"),
                "hamming_distance": bindparam("its_distance"),
                "percentage": bindparam("its_percentage"),
                "resemblance": bindparam("its_resemblance"),
                "evidence": bindparam("its_evidence"),
                "found_at": bindparam("now", type_=UtcDateTime),
            },
            "found_at",
        )
    )
)
"""A relation that has been so already keeps since when it is known."""


@dataclass(frozen=True, slots=True)
class Preferred:
    """A page that became canonical, the page that was, and how many duplicates it has now.

    ``rule``: the first of the rules by which the page comes before the other.
    """

    url: str
    before: str
    duplicates: int
    rule: str


@dataclass(slots=True)
class Elections:
    """``clusters`` that were looked at, and those that ``changed`` their canonical page.

    ``kept`` clusters have a page that comes first by the rules, but not all of their pages are like this one.
    """

    clusters: int = 0
    changed: list[Preferred] = field(default_factory=list)
    kept: int = 0


class _Candidate(NamedTuple):
    """A page of a cluster, with what the rules compare; the id decides at last."""

    keys: tuple[Any, ...]
    page_id: int
    url: str
    crawl_id: int


PREFERENCES: dict[str, Callable[[Any], Any]] = {
    "pagerank": lambda page: -(page.pagerank or 0.0),
    "first_seen": lambda page: page.first_seen,
    "https": lambda page: not page.actual_url.startswith("https:"),
    "shortest": lambda page: len(page.actual_url),
}
"""Rules by which one page of a cluster comes before another: the lower value comes first."""


def cluster_ids(connection: Connection) -> list[int]:
    """The ids of all canonical pages that have duplicates, in their order."""
    relation = duplicate_values.c.actual_hash_id
    return list(connection.execute(select(relation).distinct().order_by(relation)).scalars())


def prefer(
    connection: Connection, canonical_ids: Sequence[int], rule: Rule, preferences: Sequence[str], *, dry: bool
) -> Elections:
    """Make the page that comes first by the rules the canonical page of each of some clusters.

    A page is canonical only if all others of its cluster are within the rule of the page. So the first page
    of which that is true is chosen. Two pages change places, and no other one stops or starts to be a
    duplicate. At most 100 pages of a cluster are tried. ``dry``: nothing is stored.
    """
    found = Elections(len(canonical_ids))
    clusters = _candidates(connection, canonical_ids, preferences)
    pages = _Pages(connection, sorted(page.page_id for cluster in clusters.values() for page in cluster))
    places = {page_id: place for place, page_id in enumerate(pages.ids)}
    frequencies, decisions = frequencies_of(connection, pages.hosts), load_decisions(connection)
    batch_id = 0 if dry else count_change(connection)
    for before, cluster in clusters.items():
        cluster.sort()
        present = next(page for page in cluster if page.page_id == before)
        ahead = cluster[: min(cluster.index(present), MOST_TRIED)]
        for candidate in ahead:
            others = [places[page.page_id] for page in cluster if page is not candidate]
            order = np.array([places[candidate.page_id], *others])
            page_id, followers = next(pages.stars(order, rule, frequencies, decisions))
            if len(followers) < len(others) or pages.is_decided(places[page_id], decisions):
                continue
            if not dry:
                _change_places(connection, present, page_id, followers, batch_id)
            deciding = next(
                name
                for name, key, other in zip(
                    (*preferences, "stored first"),
                    (*candidate.keys, candidate.page_id),
                    (*present.keys, present.page_id),
                    strict=True,
                )
                if key != other
            )
            found.changed.append(Preferred(candidate.url, present.url, len(followers), deciding))
            break
        else:
            found.kept += bool(ahead)
    return found


def _candidates(
    connection: Connection, canonical_ids: Sequence[int], preferences: Sequence[str]
) -> dict[int, list[_Candidate]]:
    """The pages of clusters by the ids of their canonical pages, the canonical page among them.

    A cluster is left out if another transaction has changed it, or if a page of it has no fingerprint.
    """
    page, relation = simhash_values.c, duplicate_values.c
    members = select(relation.duplicate_hash_id, relation.actual_hash_id).where(
        relation.actual_hash_id.in_(canonical_ids)
    )
    heads = {
        row.duplicate_hash_id: row.actual_hash_id for row in connection.execute(members.with_for_update())
    }
    heads |= {page_id: page_id for page_id in canonical_ids if page_id not in heads}
    clusters: dict[int, list[_Candidate]] = {}
    broken: set[int] = set()
    for ids in in_parts(sorted(heads), _IDS_AT_ONCE):
        query = (
            select(
                page.id,
                page.actual_url,
                page.first_seen,
                page.last_crawl_id,
                page.hash_value,
                page_ranks.c.pagerank,
            )
            .join_from(simhash_values, page_ranks, page_ranks.c.page_id == page.id, isouter=True)
            .where(page.id.in_(ids))
        )
        for row in connection.execute(query):
            head = heads[row.id]
            if row.hash_value is None:
                broken.add(head)
            keys = tuple(PREFERENCES[name](row) for name in preferences)
            clusters.setdefault(head, []).append(_Candidate(keys, row.id, row.actual_url, row.last_crawl_id))
    return {
        head: cluster
        for head, cluster in clusters.items()
        if head not in broken and any(candidate.page_id == head for candidate in cluster)
    }


def _change_places(
    connection: Connection, before: _Candidate, page_id: int, followers: list[dict[str, Any]], batch_id: int
) -> None:
    """Have a page be canonical instead of another one; the followers are all others of its cluster."""
    now = datetime.now(UTC)
    connection.execute(delete(duplicate_values).where(duplicate_values.c.duplicate_hash_id == page_id))
    moved = [
        {**follower, "canonical": page_id, "now": now}
        for follower in followers
        if follower["page"] != before.page_id
    ]
    if moved:
        connection.execute(_MOVE, moved)
    (its,) = (follower for follower in followers if follower["page"] == before.page_id)
    connection.execute(
        insert(duplicate_values).values(
            actual_hash_id=page_id,
            duplicate_hash_id=before.page_id,
            percentage=its["its_percentage"],
            hamming_distance=its["its_distance"],
            resemblance=its["its_resemblance"],
            evidence=its["its_evidence"],
            crawl_id=before.crawl_id,
            found_at=now,
        )
    )
    page = simhash_values.c
    for ids in in_parts((follower["page"] for follower in followers), _IDS_AT_ONCE):
        connection.execute(SET_DUPLICATE, {"ids": ids, "batch": batch_id})
    connection.execute(
        update(simhash_values).where(page.id == page_id).values(kind=Kind.NEW.value, batch_id=batch_id)
    )
