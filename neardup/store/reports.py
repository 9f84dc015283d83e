"""What the stored crawls say: rates by host, by distance, by evidence and by crawl; the largest clusters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, String, and_, case, func, literal_column, select, true

from neardup.address import registered_domain
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind
from neardup.store.schema import crawls, duplicate_values, page_ranks, simhash_values

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from sqlalchemy import Connection, Select


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which pages count: those of one host, last seen within [since, until)."""

    host: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    def condition(self) -> ColumnElement[bool]:
        conditions: list[ColumnElement[bool]] = [true()]
        if self.host is not None:
            conditions.append(simhash_values.c.host == self.host)
        if self.since is not None:
            conditions.append(simhash_values.c.last_seen >= self.since)
        if self.until is not None:
            conditions.append(simhash_values.c.last_seen < self.until)
        return and_(*conditions)


@dataclass(frozen=True, slots=True)
class Share:
    """Pages of one group and how many of them are duplicates."""

    name: str
    pages: int
    duplicates: int

    @property
    def distinct(self) -> int:
        return self.pages - self.duplicates

    @property
    def rate(self) -> float:
        """Duplicates in percent of the pages."""
        return 100.0 * self.duplicates / self.pages if self.pages else 0.0


@dataclass(frozen=True, slots=True)
class Overview:
    """All pages together; ``exact`` of the duplicates have the fingerprint of their canonical page."""

    share: Share
    exact: int
    too_short: int
    clusters: int


@dataclass(frozen=True, slots=True)
class Cluster:
    """A canonical page and its duplicates, one of them as an example."""

    canonical_url: str
    duplicates: int
    example_url: str


def overview(connection: Connection, filters: Filters) -> Overview:
    relation = duplicate_values.c
    # Relations first, here and below: a crawl that writes meanwhile adds no duplicate without its page.
    exact = case((relation.hamming_distance == 0, 1), else_=0)
    duplicates, of_them_exact, clusters = connection.execute(
        _of_relations(
            filters,
            func.count(),
            func.coalesce(func.sum(exact), 0),
            func.count(relation.actual_hash_id.distinct()),
        )
    ).one()
    short = case((simhash_values.c.kind == Kind.TOO_SHORT.value, 1), else_=0)
    pages, too_short = connection.execute(
        select(func.count(), func.coalesce(func.sum(short), 0)).where(filters.condition())
    ).one()
    return Overview(Share("all", pages, duplicates), int(of_them_exact), int(too_short), clusters)


def by_host(connection: Connection, filters: Filters) -> list[Share]:
    """Most pages first."""
    counts = _shares(connection, filters, simhash_values.c.host, _unsorted(simhash_values.c.host))
    return most_pages_first(Share(host, *count) for host, count in counts.items())


@dataclass(frozen=True, slots=True)
class AtDistance:
    """Duplicates at one distance, with the mean and the least of their resemblances."""

    distance: int
    duplicates: int
    resemblance: float
    least_resemblance: float


def by_distance(connection: Connection, filters: Filters) -> list[AtDistance]:
    """In ascending order of the distance."""
    distance, resemblance = duplicate_values.c.hamming_distance, duplicate_values.c.resemblance
    query = (
        _of_relations(filters, distance, func.count(), func.avg(resemblance), func.min(resemblance))
        .group_by(distance)
        .order_by(distance)
    )
    return [AtDistance(*row) for row in connection.execute(query)]


@dataclass(frozen=True, slots=True)
class WithEvidence:
    """Duplicates of one kind of evidence, with the mean and the least of their resemblances.

    ``evidence`` and ``confidence`` are None for those that an older version of neardup found.
    """

    evidence: str | None
    confidence: float | None
    duplicates: int
    resemblance: float
    least_resemblance: float


def by_evidence(connection: Connection, filters: Filters) -> list[WithEvidence]:
    """The surest first; of those as sure, those with most duplicates."""
    evidence, resemblance = duplicate_values.c.evidence, duplicate_values.c.resemblance
    query = _of_relations(
        filters, evidence, func.count(), func.avg(resemblance), func.min(resemblance)
    ).group_by(evidence)
    found = [
        WithEvidence(name, None if name is None else Evidence(name).confidence, *rest)
        for name, *rest in connection.execute(query)
    ]
    return sorted(found, key=lambda row: (-(row.confidence or 0.0), -row.duplicates, row.evidence or ""))


def by_crawl(connection: Connection, filters: Filters) -> list[tuple[dict[str, Any], Share]]:
    """The crawls that last saw the pages, with what is kept of each crawl; in their order."""
    crawl = simhash_values.c.last_crawl_id
    counts = _shares(
        connection, filters, crawl if filters == Filters() else _unsorted(crawl), _unsorted(crawl)
    )
    shares = {crawl_id: Share(str(crawl_id), *count) for crawl_id, count in counts.items()}
    rows = connection.execute(select(crawls).order_by(crawls.c.id)).mappings()
    return [(dict(row), shares.get(row["id"], Share(str(row["id"]), 0, 0))) for row in rows]


def largest_clusters(
    connection: Connection, filters: Filters, *, limit: int, flagged: bool = False, by_rank: bool = False
) -> list[Cluster]:
    """The canonical pages with most duplicates, or those among the flagged ones; the filters are those of the
    duplicates. ``by_rank``: those with the highest PageRank instead.
    """
    relation, canonical = duplicate_values.c, simhash_values.alias("canonical")
    cluster = relation.actual_hash_id if filters == Filters() else _unsorted(relation.actual_hash_id)
    size = func.count()
    grouped = (
        _of_relations(filters, cluster.label("canonical_id"), size.label("size"))
        .where(relation.actual_hash_id.in_(_FLAGGED) if flagged else true())
        .group_by(cluster)
    )
    if by_rank:
        sizes = grouped.subquery()
        rank = func.coalesce(page_ranks.c.pagerank, 0.0)
        ranked = select(sizes, rank.label("rank")).join_from(
            sizes, page_ranks, page_ranks.c.page_id == sizes.c.canonical_id, isouter=True
        )
        order: tuple[ColumnElement[Any], ...] = (rank.desc(), sizes.c.size.desc(), sizes.c.canonical_id)
    else:
        ranked = grouped.add_columns(literal_column("0").label("rank"))
        order = size.desc(), cluster
    largest = ranked.order_by(*order).limit(limit).subquery()
    first = (
        _of_relations(filters, func.min(relation.duplicate_hash_id))
        .where(relation.actual_hash_id == largest.c.canonical_id)
        .correlate(largest)
        .scalar_subquery()
    )
    clusters = select(largest, first.label("example_id")).subquery()
    example = simhash_values.alias("example_page")
    query = (
        select(canonical.c.actual_url, clusters.c.size, example.c.actual_url)
        .join_from(clusters, canonical, canonical.c.id == clusters.c.canonical_id)
        .join(example, example.c.id == clusters.c.example_id)
        .order_by(clusters.c.rank.desc(), clusters.c.size.desc(), clusters.c.canonical_id)
    )
    return [Cluster(*row) for row in connection.execute(query)]


@dataclass(frozen=True, slots=True)
class Soft404s:
    """So many pages of a host that stand for others that are not there, one of them as an example."""

    host: str
    pages: int
    example_url: str


def soft_404s(connection: Connection, filters: Filters) -> list[Soft404s]:
    """Soft 404s by host, most pages first."""
    page = simhash_values.c
    host = _unsorted(page.host)
    grouped = (
        select(host.label("host"), func.count().label("pages"), func.min(page.id).label("example_id"))
        .where(page.soft_404 == 1, filters.condition())
        .group_by(host)
        .subquery()
    )
    example = simhash_values.alias("example_page")
    query = (
        select(grouped.c.host, grouped.c.pages, example.c.actual_url)
        .join_from(grouped, example, example.c.id == grouped.c.example_id)
        .order_by(grouped.c.pages.desc(), grouped.c.host)
    )
    return [Soft404s(*row) for row in connection.execute(query)]


@dataclass(frozen=True, slots=True)
class Crossing:
    """So many duplicates of one site whose canonical pages are on another; "" are files."""

    site: str
    canonical_site: str
    duplicates: int


def across_hosts(connection: Connection, filters: Filters) -> list[Crossing]:
    """Duplicates whose canonical page is on another host, by both hosts; the most first. The filters are
    those of the duplicates.
    """
    relation, canonical = duplicate_values.c, simhash_values.alias("canonical")
    host, canonical_host = _unsorted(simhash_values.c.host), _unsorted(canonical.c.host)
    query = (
        select(host, canonical_host, func.count())
        .join_from(duplicate_values, simhash_values, relation.duplicate_hash_id == simhash_values.c.id)
        .join(canonical, relation.actual_hash_id == canonical.c.id)
        .where(filters.condition(), simhash_values.c.host != canonical.c.host)
        .group_by(host, canonical_host)
    )
    return _crossings(Crossing(*row) for row in connection.execute(query))


def across_domains(hosts: Iterable[Crossing]) -> list[Crossing]:
    """Those of them whose canonical page is in another registered domain, by both domains; the most first."""
    return _crossings(
        Crossing(
            registered_domain(between.site), registered_domain(between.canonical_site), between.duplicates
        )
        for between in hosts
    )


def _crossings(found: Iterable[Crossing]) -> list[Crossing]:
    counts: Counter[tuple[str, str]] = Counter()
    for between in found:
        # A host may be written with a full stop at its end.
        site, canonical_site = between.site.rstrip("."), between.canonical_site.rstrip(".")
        if site != canonical_site:
            counts[site, canonical_site] += between.duplicates
    return [
        Crossing(*sites, count) for sites, count in sorted(counts.items(), key=lambda at: (-at[1], at[0]))
    ]


_flagged_pages = simhash_values.alias("flagged")
_FLAGGED = select(_flagged_pages.c.id).where(_flagged_pages.c.flagged_at.is_not(None))


def _of_relations(filters: Filters, *columns: Any) -> Select[Any]:
    """Select from the relations of the pages that count; these are looked at only if not all do."""
    query = select(*columns).select_from(duplicate_values)
    if filters == Filters():
        return query
    its_page = duplicate_values.c.duplicate_hash_id == simhash_values.c.id
    return query.join(simhash_values, its_page).where(filters.condition())


def _shares(
    connection: Connection, filters: Filters, of_pages: ColumnElement[Any], of_relations: ColumnElement[Any]
) -> dict[Any, tuple[int, int]]:
    """Pages and duplicates among them by a value of the page, as it is best asked for in either statement.

    Not in one, which would look for the relation of every page.
    """
    pages = select(of_pages, func.count()).where(filters.condition()).group_by(of_pages)
    duplicates = (
        select(of_relations, func.count())
        .join_from(
            duplicate_values, simhash_values, duplicate_values.c.duplicate_hash_id == simhash_values.c.id
        )
        .where(filters.condition())
        .group_by(of_relations)
    )
    found = {row[0]: row[1] for row in connection.execute(duplicates)}
    return {value: (count, found.get(value, 0)) for value, count in connection.execute(pages)}


def _unsorted(column: ColumnElement[Any]) -> ColumnElement[Any]:
    """A column as an expression: SQLite would otherwise read all pages in the order of its index, to group
    them by it.
    """
    return (
        column.concat(literal_column("''"))
        if isinstance(column.type, String)
        else column + literal_column("0")
    )


def most_pages_first(shares: Iterable[Share]) -> list[Share]:
    return sorted(shares, key=lambda share: (-share.pages, share.name))
