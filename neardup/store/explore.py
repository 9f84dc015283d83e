"""What the live page asks of a store: clusters, members of one, two pages side by side, a host, crawls.

Lists are read by key: each part says after which row the next begins. So the first part and the last take the
same time. Pages are named by their keys, in hexadecimal: a URL may have any length, a key has 32 digits.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote

import numpy as np
from sqlalchemy import func, or_, select, true

from neardup.address import Address
from neardup.detection.rule import Evidence
from neardup.detection.verdict import CANONICAL
from neardup.fingerprint import hamming, sketch
from neardup.fingerprint.simhash import WEAK_BITS_STORED, Fingerprint
from neardup.store.schema import (
    crawls,
    duplicate_values,
    page_ranks,
    page_versions,
    simhash_values,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Row, Select

    from neardup.store.cluster_table import ClusterTable

_Row = TypeVar("_Row")

ROWS = 50
"""Rows of a part of a list."""

_SEARCHED = 25_000
"""Pages whose URLs one search looks at."""

_GROUPED = 50_000
"""Duplicates that a database may group while somebody waits: some 60 ms."""

_COUNTED = 100_000
"""Pages of crawls without an end that are counted while somebody waits: some 40 ms."""

_KEY = re.compile(r"[0-9a-f]{32}")

_RANK = re.compile(r"-?0x[01]\.[0-9a-f]{1,13}p[+-][0-9]{1,4}")
"""A PageRank as Python writes floats exactly."""

_page, _relation, _rank = simhash_values.c, duplicate_values.c, page_ranks.c


@dataclass(frozen=True, slots=True)
class Listed(Generic[_Row]):
    """A part of a list; ``after`` is the key with which the next part begins, None if this is the last."""

    rows: Sequence[_Row]
    after: str | None


class Order(StrEnum):
    """How clusters are sorted."""

    LARGEST = "largest"
    OLDEST = "oldest"
    NEWEST = "newest"
    PAGERANK = "pagerank"
    """Those whose canonical pages have the highest PageRank; without a PageRank last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFilters:
    """Which clusters are listed.

    - ``host``: those whose canonical page is on this host.
    - ``kind``: those whose canonical page has this verdict.
    - ``crawl``: those with duplicates that this crawl found; only these are counted.
    - ``least``, ``most``: those with so many duplicates.
    """

    host: str | None = None
    kind: str | None = None
    crawl: int | None = None
    least: int | None = None
    most: int | None = None
    order: Order = Order.LARGEST

    @property
    def has_index(self) -> bool:
        """Whether the database finds such clusters quickly, however many there are."""
        limits = (self.host, self.kind, self.crawl, self.least, self.most)
        return self.order in {Order.OLDEST, Order.NEWEST} and limits.count(None) == len(limits)

    @property
    def need_table(self) -> bool:
        """Whether only a table of all clusters finds such clusters."""
        return self.kind is not None or self.order is Order.PAGERANK


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRow:
    """A cluster by its canonical page."""

    key: str
    url: str
    host: str
    kind: str
    duplicates: int
    pagerank: float | None
    first_seen: datetime
    last_seen: datetime
    flagged_at: datetime | None
    soft_404: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRow:
    """A stored page. ``fingerprint`` is hexadecimal; None if the page has no words.

    ``declared_url``: the page of the same site that the page itself calls its canonical one, if another.
    """

    page_id: int
    key: str
    url: str
    host: str
    kind: str
    fingerprint: str | None
    features: int
    first_seen: datetime
    first_crawl: int
    last_seen: datetime
    last_crawl: int
    links_withheld: int
    flagged_at: datetime | None
    soft_404: bool
    declared_url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A duplicate of a cluster, and why it is one."""

    key: str
    url: str
    distance: int
    percentage: float
    resemblance: float
    evidence: str | None
    confidence: float | None
    found_at: datetime
    crawl_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A canonical page and some of its duplicates, in the order in which these were found."""

    page: PageRow
    duplicates: int
    members: Listed[Member]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """A version of a page. ``own_distance``: bits that differ from the version before."""

    seen_at: datetime
    crawl_id: int
    kind: str
    own_distance: int | None
    features: int
    fingerprint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page, its canonical page if it is a duplicate, how many duplicates it has, and its versions."""

    page: PageRow
    canonical: Member | None
    duplicates: int
    versions: Listed[VersionRow]


@dataclass(frozen=True, slots=True)
class Bit:
    """A bit of two fingerprints, counted from the most significant one.

    ``weights``: relative weights of the bit in both pages; None where the bit is none of the weak ones, whose
    weights are stored.
    """

    number: int
    values: tuple[int, int]
    weights: tuple[float | None, float | None]

    @property
    def differs(self) -> bool:
        return self.values[0] != self.values[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two pages. ``relation`` is that of ``a`` to ``b``, or of ``b`` to ``a``; ``bits`` are empty unless both
    have fingerprints.
    """

    a: PageRow
    b: PageRow
    distance: int | None
    percentage: float | None
    resemblance: float | None
    same_text: bool
    relation: Member | None
    bits: list[Bit]


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlRow:
    """A crawl. Of one that has not ended, pages and duplicates are those that are stored so far.

    ``counted_all``: whether there are no more than are counted.
    """

    crawl_id: int
    spider: str
    started_at: datetime
    finished_at: datetime | None
    finish_reason: str | None
    pages: int
    new: int | None
    duplicates: int
    counted_all: bool
    links_withheld: int | None
    requests_saved: int | None


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page whose URL has what was searched."""

    key: str
    url: str
    kind: str


@dataclass(frozen=True, slots=True)
class Found:
    """Pages found; ``searched_all`` is False if more pages are left to search, from ``after`` on."""

    pages: Listed[FoundPage]
    searched_all: bool


def page_key(key: str) -> bytes | None:
    """A key as it is stored; None if the text is no key."""
    return bytes.fromhex(key) if _KEY.fullmatch(key) else None


def clusters(connection: Connection, filters: ClusterFilters, after: str | None = None) -> Listed[ClusterRow]:
    """Some of the clusters; ``after`` is that of the part before.

    The filters must not be those that :attr:`ClusterFilters.need_table` tells of.
    """
    size = func.count()
    grouped = select(_relation.actual_hash_id.label("canonical_id"), size.label("size")).group_by(
        _relation.actual_hash_id
    )
    if filters.crawl is not None:
        grouped = grouped.where(_relation.crawl_id == filters.crawl)
    if filters.host is not None:
        of_host = select(_page.id).where(_page.host == filters.host)
        grouped = grouped.where(_relation.actual_hash_id.in_(of_host))
    if filters.least is not None:
        grouped = grouped.having(size >= filters.least)
    if filters.most is not None:
        grouped = grouped.having(size <= filters.most)
    query = _sorted(grouped, size, filters.order, after).limit(ROWS + 1)
    found = [(row.canonical_id, row.size, row.size) for row in connection.execute(query)]
    return _cluster_rows(connection, found)


def groups_quickly(connection: Connection) -> bool:
    """Whether there are so few duplicates that :func:`clusters` is quick with any filters."""
    return _count(connection, select(_relation.id), most=_GROUPED) < _GROUPED


def clusters_of(
    connection: Connection, table: ClusterTable, filters: ClusterFilters, after: str | None = None
) -> Listed[ClusterRow]:
    """As :func:`clusters`, by any filters and in any order, of the clusters as they are in the table."""
    sizes = table.sizes(filters.crawl)
    wanted = table.are(host=filters.host, kind=filters.kind) & (sizes >= max(1, filters.least or 1))
    if filters.most is not None:
        wanted &= sizes <= filters.most
    is_newest = filters.order is Order.NEWEST
    values = table.ranks if filters.order is Order.PAGERANK else sizes
    ties = -table.ids if is_newest else table.ids
    by_id = is_newest or filters.order is Order.OLDEST
    keys = ties if by_id else -values
    last = _place(after)
    if last is not None:
        tie = -last[1] if is_newest else last[1]
        key = tie if by_id else -last[0]
        wanted &= (keys > key) | ((keys == key) & (ties > tie))
    rows = np.flatnonzero(wanted)
    rows = rows[np.lexsort((ties[rows], keys[rows]))[: ROWS + 1]]
    found = [(int(table.ids[row]), int(sizes[row]), values[row].item()) for row in rows]
    return _cluster_rows(connection, found)


def _cluster_rows(connection: Connection, found: list[tuple[int, int, float]]) -> Listed[ClusterRow]:
    """Clusters by the ids of their canonical pages, their sizes, and what the next part begins with.

    A list may go on in the other way: by the table what the database began.
    """
    ids = [page_id for page_id, *_ in found]
    pages, ranks = _pages(connection, _page.id.in_(ids)), _ranks(connection, ids)
    rows = [
        _cluster_row(pages[page_id], size, ranks.get(page_id))
        for page_id, size, _ in found[:ROWS]
        if page_id in pages
    ]
    if len(found) <= ROWS:
        return Listed(rows, None)
    page_id, _, key = found[ROWS - 1]
    return Listed(rows, f"{key.hex() if isinstance(key, float) else key}:{page_id}")


def _place(after: str | None) -> tuple[float, int] | None:
    """Where a list of the table goes on: what it is sorted by, and the id of the last cluster."""
    key, _, page_id = (after or "").partition(":")
    if not page_id.isdecimal() or len(page_id) > 18:
        return None
    if _RANK.fullmatch(key):
        return float.fromhex(key), int(page_id)
    return (int(key), int(page_id)) if re.fullmatch(r"-?[0-9]{1,18}", key) else None


def first_rank(connection: Connection) -> list[float]:
    """The PageRank of the first page that has one: another one when PageRank was computed again."""
    return list(connection.execute(select(_rank.pagerank).order_by(_rank.page_id).limit(1)).scalars())


def _ranks(connection: Connection, page_ids: Sequence[int]) -> dict[int, float]:
    rows = connection.execute(select(_rank.page_id, _rank.pagerank).where(_rank.page_id.in_(page_ids)))
    return {row.page_id: row.pagerank for row in rows}


def _sorted(grouped: Select[Any], size: ColumnElement[int], order: Order, after: str | None) -> Select[Any]:
    of_page = _relation.actual_hash_id
    last = _numbers(after, 2)
    if order is Order.LARGEST:
        if last is not None:
            grouped = grouped.having(or_(size < last[0], (size == last[0]) & (of_page > last[1])))
        return grouped.order_by(size.desc(), of_page)
    if last is not None:
        grouped = grouped.where(of_page > last[1] if order is Order.OLDEST else of_page < last[1])
    return grouped.order_by(of_page if order is Order.OLDEST else of_page.desc())


def _cluster_row(page: PageRow, duplicates: int, pagerank: float | None) -> ClusterRow:
    return ClusterRow(
        key=page.key,
        url=page.url,
        host=page.host,
        kind=page.kind,
        duplicates=duplicates,
        pagerank=pagerank,
        first_seen=page.first_seen,
        last_seen=page.last_seen,
        flagged_at=page.flagged_at,
        soft_404=page.soft_404,
    )


def cluster(connection: Connection, key: bytes, after: str | None = None) -> Cluster | None:
    """The cluster of a canonical page, or that of a duplicate; None if there is no such page."""
    page = _one(connection, key)
    if page is None:
        return None
    above = _relations(connection, _relation.duplicate_hash_id == page.page_id, of=_relation.actual_hash_id)
    if above:
        page = _one(connection, bytes.fromhex(above[0][1].key)) or page
    last = _numbers(after, 1)
    condition = _relation.actual_hash_id == page.page_id
    if last is not None:
        condition &= _relation.id > last[0]
    found = _relations(connection, condition, of=_relation.duplicate_hash_id, limit=ROWS + 1)
    members = [member for _, member in found[:ROWS]]
    return Cluster(
        page=page,
        duplicates=_count_duplicates(connection, page.page_id),
        members=Listed(members, str(found[ROWS - 1][0]) if len(found) > ROWS else None),
    )


def page(connection: Connection, key: bytes, after: str | None = None) -> Page | None:
    """All about one page; None if it is not stored."""
    found = _one(connection, key)
    if found is None:
        return None
    above = _relations(connection, _relation.duplicate_hash_id == found.page_id, of=_relation.actual_hash_id)
    return Page(
        page=found,
        canonical=above[0][1] if above else None,
        duplicates=_count_duplicates(connection, found.page_id),
        versions=_versions(connection, found.page_id, _numbers(after, 1)),
    )


def pair(connection: Connection, a: bytes, b: bytes) -> Pair | None:
    """Two pages side by side; None if one of them is not stored."""
    columns = {
        bytes(row.url_key): row
        for row in connection.execute(select(simhash_values).where(_page.url_key.in_([a, b])))
    }
    if a not in columns or b not in columns:
        return None
    one, other = columns[a], columns[b]
    distance, resemblance, bits = None, None, list[Bit]()
    if one.hash_value is not None and other.hash_value is not None:
        distance = hamming.distance(one.hash_value, other.hash_value)
        bits = _bits(one, other)
    if one.sketch is not None and other.sketch is not None and len(one.sketch) == len(other.sketch):
        stored = sketch.from_bytes(one.sketch)[np.newaxis]
        resemblance = float(sketch.compact_estimates(stored, sketch.from_bytes(other.sketch))[0])
    ids = (one.id, other.id)
    related = _relations(
        connection,
        _relation.duplicate_hash_id.in_(ids) & _relation.actual_hash_id.in_(ids),
        of=_relation.actual_hash_id,
    )
    return Pair(
        a=_page_row(one),
        b=_page_row(other),
        distance=distance,
        percentage=None if distance is None else hamming.percentage(distance),
        resemblance=resemblance,
        same_text=one.text_digest is not None and one.text_digest == other.text_digest,
        relation=related[0][1] if related else None,
        bits=bits,
    )


def _bits(one: Row[Any], other: Row[Any]) -> list[Bit]:
    values = [row.hash_value for row in (one, other)]
    weights = [_weak_weights(row.hash_value, row.weak_bits) for row in (one, other)]
    return [
        Bit(
            number,
            (values[0] >> 63 - number & 1, values[1] >> 63 - number & 1),
            (weights[0].get(number), weights[1].get(number)),
        )
        for number in range(hamming.FINGERPRINT_BITS)
    ]


def _weak_weights(value: int, weak_bits: bytes | None) -> dict[int, float]:
    """Relative weights of the weak bits by their numbers."""
    if weak_bits is None:
        return {}
    weights = Fingerprint.unpack(value, bytes(weak_bits)).relative_weights()
    weakest = bytes(weak_bits)[:WEAK_BITS_STORED]
    return {number: round(float(weights[number]), 4) for number in weakest}


def has_host(connection: Connection, name: str) -> bool:
    """Whether a page of a host is stored."""
    query = select(_page.id).where(_page.host == name).limit(1)
    return connection.execute(query).scalar() is not None


def canonical_of_host(connection: Connection, name: str) -> PageRow | None:
    """The canonical page of a host that was seen last; None: there is none."""
    query = (
        select(simhash_values)
        .where(_page.host == name, _page.kind.in_([kind.value for kind in CANONICAL]))
        .order_by(_page.last_seen.desc(), _page.id.desc())
        .limit(1)
    )
    row = connection.execute(query).first()
    return None if row is None else _page_row(row)


def crawl_list(connection: Connection, after: str | None = None) -> Listed[CrawlRow]:
    """Some of the crawls, newest first."""
    last = _numbers(after, 1)
    query = select(crawls).where(true() if last is None else crawls.c.id < last[0])
    found = connection.execute(query.order_by(crawls.c.id.desc()).limit(ROWS + 1)).all()
    shown = found[:ROWS]
    without_end = sum(row.finished_at is None for row in shown)
    rows = [_crawl_row(connection, row, most=_COUNTED // max(1, without_end)) for row in shown]
    return Listed(rows, str(rows[-1].crawl_id) if len(found) > ROWS else None)


def _crawl_row(connection: Connection, row: Row[Any], *, most: int) -> CrawlRow:
    """Sums are kept with a crawl at its end. Until then, rows are counted by an index, so many at most."""
    pages, duplicates, counted_all = row.pages or 0, row.duplicates or 0, True
    if row.finished_at is None:
        pages = _count(connection, select(_page.id).where(_page.last_crawl_id == row.id), most=most)
        duplicates = _count(connection, select(_relation.id).where(_relation.crawl_id == row.id), most=most)
        counted_all = max(pages, duplicates) < most
    return CrawlRow(
        crawl_id=row.id,
        spider=row.spider,
        started_at=row.started_at,
        finished_at=row.finished_at,
        finish_reason=row.finish_reason,
        pages=pages,
        new=row.new,
        duplicates=duplicates,
        counted_all=counted_all,
        links_withheld=row.links_withheld,
        requests_saved=row.requests_saved,
    )


def _count(connection: Connection, rows: Select[Any], *, most: int) -> int:
    """How many rows there are, as far as somebody wants to know."""
    query = select(func.count()).select_from(rows.limit(most).subquery())
    return connection.execute(query).scalar_one()


def search(connection: Connection, text: str, after: str | None = None) -> Found:
    """Pages whose URLs have a text, whatever the case of its letters; the page with this very URL comes
    first.

    A call looks at 25,000 pages at most.
    """
    last = _numbers(after, 1)
    exact = [] if last else list(_pages(connection, _page.url_key == Address.of(text).key).values())
    looked_at = _page.id > (last[0] if last else 0)
    # Not as a table in the query: MariaDB would write all these pages down first.
    nth = select(_page.id).where(looked_at).order_by(_page.id).offset(_SEARCHED - 1).limit(1)
    end = connection.execute(nth).scalar()
    if end is not None:
        looked_at &= _page.id <= end
    # Letters of other scripts stand in most URLs as their bytes.
    lowered, parts = func.lower(_page.actual_url), {text.lower(), _encoded(text).lower()}
    query = (
        select(_page.id, _page.url_key, _page.actual_url, _page.kind)
        .where(looked_at, or_(*(lowered.contains(part, autoescape=True) for part in parts)))
        .order_by(_page.id)
        .limit(ROWS)
    )
    rows = connection.execute(query).all()
    searched_all = end is None and len(rows) < ROWS
    next_id = rows[-1].id if len(rows) == ROWS else end
    pages = [FoundPage(one.key, one.url, one.kind) for one in exact]
    pages += [
        FoundPage(bytes(row.url_key).hex(), row.actual_url, row.kind)
        for row in rows
        if row.id not in {one.page_id for one in exact}
    ]
    return Found(Listed(pages, None if searched_all else str(next_id)), searched_all)


def _encoded(text: str) -> str:
    """A text as a URL has it, all ASCII left as it is."""
    return quote(text, safe=string.printable, errors="surrogatepass")


def _versions(connection: Connection, page_id: int, last: tuple[int, ...] | None) -> Listed[VersionRow]:
    """Newest first."""
    column = page_versions.c
    query = select(page_versions).where(column.page_id == page_id)
    if last is not None:
        query = query.where(column.id < last[0])
    found = connection.execute(query.order_by(column.id.desc()).limit(ROWS + 1)).all()
    rows = [
        VersionRow(
            seen_at=row.seen_at,
            crawl_id=row.crawl_id,
            kind=row.kind,
            own_distance=row.own_distance,
            features=row.features,
            fingerprint=hexadecimal(row.hash_value),
        )
        for row in found[:ROWS]
    ]
    return Listed(rows, str(found[ROWS - 1].id) if len(found) > ROWS else None)


def _one(connection: Connection, key: bytes) -> PageRow | None:
    return next(iter(_pages(connection, _page.url_key == key).values()), None)


def _pages(connection: Connection, condition: ColumnElement[bool]) -> dict[int, PageRow]:
    """Pages by id."""
    rows = connection.execute(select(simhash_values).where(condition))
    return {row.id: _page_row(row) for row in rows}


def _page_row(row: Row[Any]) -> PageRow:
    return PageRow(
        page_id=row.id,
        key=bytes(row.url_key).hex(),
        url=row.actual_url,
        host=row.host,
        kind=row.kind,
        fingerprint=hexadecimal(row.hash_value),
        features=row.features,
        first_seen=row.first_seen,
        first_crawl=row.crawl_id,
        last_seen=row.last_seen,
        last_crawl=row.last_crawl_id,
        links_withheld=row.links_withheld,
        flagged_at=row.flagged_at,
        soft_404=bool(row.soft_404),
        declared_url=row.declared_url,
    )


def hexadecimal(fingerprint: int | None) -> str | None:
    """A fingerprint as text: JSON's numbers end before 64 bits do."""
    return None if fingerprint is None else f"{fingerprint:016x}"


def _count_duplicates(connection: Connection, page_id: int) -> int:
    query = select(func.count()).select_from(duplicate_values).where(_relation.actual_hash_id == page_id)
    return connection.execute(query).scalar_one()


def _relations(
    connection: Connection, condition: ColumnElement[bool], *, of: ColumnElement[int], limit: int = 1
) -> list[tuple[int, Member]]:
    """Relations with their ids and the page at one of their ends, ``of``, in the order of the ids."""
    query = (
        select(duplicate_values, _page.url_key, _page.actual_url)
        .join_from(duplicate_values, simhash_values, _page.id == of)
        .where(condition)
        .order_by(_relation.id)
        .limit(limit)
    )
    return [
        (
            row.id,
            Member(
                key=bytes(row.url_key).hex(),
                url=row.actual_url,
                distance=row.hamming_distance,
                percentage=row.percentage,
                resemblance=row.resemblance,
                evidence=row.evidence,
                confidence=None if row.evidence is None else Evidence(row.evidence).confidence,
                found_at=row.found_at,
                crawl_id=row.crawl_id,
            ),
        )
        for row in connection.execute(query)
    ]


def _numbers(after: str | None, count: int) -> tuple[int, ...] | None:
    """The numbers of a key of a list; None if it is none, and the list begins."""
    parts = (after or "").split(":")
    if len(parts) != count or not all(part.isdecimal() and len(part) < 19 for part in parts):
        return None
    return tuple(map(int, parts))
