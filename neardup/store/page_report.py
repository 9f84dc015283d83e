"""All that is stored about one page, and what a page outside the store is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import bindparam, func, select

from neardup.address import Address, encoded_url, key_of, page_url
from neardup.detection.rule import Evidence
from neardup.fingerprint import hamming
from neardup.store.history import Version, version_count, versions_of
from neardup.store.schema import TABLES, crawls, duplicate_values, simhash_values
from neardup.store.statements import in_parts

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    import numpy.typing as npt
    from sqlalchemy import Connection, Select

_ROWS_AT_ONCE = 100_000
_IDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Relation:
    """A page at the other end of a relation.

    ``evidence`` and ``confidence`` are None if an older version of neardup found the relation.
    """

    url: str
    distance: int
    percentage: float
    resemblance: float
    evidence: str | None
    confidence: float | None
    differing_bits: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReport:
    """A stored page. ``canonical`` is None unless the page is a duplicate.

    ``duplicates`` are the first of ``duplicate_count``, and ``versions`` the newest of ``version_count``.
    """

    page_id: int
    url: str
    kind: str
    fingerprint: int | None
    scheme: str
    features: int
    first_seen: datetime
    first_crawl: str
    last_seen: datetime
    last_crawl: str
    links_withheld: int
    flagged_at: datetime | None
    declared_url: str | None
    soft_404: bool
    canonical: Relation | None
    duplicate_count: int
    duplicates: list[Relation]
    version_count: int
    versions: list[Version]


def page_report(connection: Connection, url: str, *, limit: int = 20) -> PageReport | None:
    """All about the page with this URL; None if it is not stored."""
    page = (
        connection.execute(select(simhash_values).where(simhash_values.c.url_key == Address.of(url).key))
        .mappings()
        .one_or_none()
    )
    if page is None:
        return None
    relation = duplicate_values.c
    its_relation = _OTHER_ENDS.where(
        relation.duplicate_hash_id == page["id"], simhash_values.c.id == relation.actual_hash_id
    )
    its_duplicates = _OTHER_ENDS.where(
        relation.actual_hash_id == page["id"], simhash_values.c.id == relation.duplicate_hash_id
    )
    count = select(func.count()).select_from(duplicate_values).where(relation.actual_hash_id == page["id"])
    canonical = _relations(connection, page["hash_value"], its_relation)
    return PageReport(
        page_id=page["id"],
        url=page["actual_url"],
        kind=page["kind"],
        fingerprint=page["hash_value"],
        scheme=page["scheme"],
        features=page["features"],
        first_seen=page["first_seen"],
        first_crawl=_crawl_name(connection, page["crawl_id"]),
        last_seen=page["last_seen"],
        last_crawl=_crawl_name(connection, page["last_crawl_id"]),
        links_withheld=page["links_withheld"],
        flagged_at=page["flagged_at"],
        declared_url=page["declared_url"],
        soft_404=bool(page["soft_404"]),
        canonical=canonical[0] if canonical else None,
        duplicate_count=connection.execute(count).scalar_one(),
        duplicates=_relations(connection, page["hash_value"], its_duplicates.limit(limit)),
        version_count=version_count(connection, page["id"]),
        versions=versions_of(connection, page["id"], limit=limit),
    )


def canonical_fingerprints(
    connection: Connection, *, min_features: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Ids and fingerprints of all canonical pages, both of shape (n,)."""
    query = (
        select(simhash_values.c.id, simhash_values.c.hash_value)
        .join_from(
            simhash_values,
            duplicate_values,
            duplicate_values.c.duplicate_hash_id == simhash_values.c.id,
            isouter=True,
        )
        .where(duplicate_values.c.id.is_(None))
        .where(simhash_values.c.hash_value.is_not(None))
        .where(simhash_values.c.features >= min_features)
    )
    ids: list[int] = []
    values: list[int] = []
    for page_id, value in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
        ids.append(page_id)
        values.append(value)
    return np.array(ids, dtype=np.int64), np.array(values, dtype=np.uint64)


def weak_bits_of_some(connection: Connection, *, limit: int) -> list[tuple[int, bytes]]:
    """Fingerprint and weak bits of some pages."""
    query = (
        select(simhash_values.c.hash_value, simhash_values.c.weak_bits)
        .where(simhash_values.c.hash_value.is_not(None))
        .order_by(simhash_values.c.url_key)  # a digest: as good as chance
        .limit(limit)
    )
    return [(value, bytes(weak_bits)) for value, weak_bits in connection.execute(query)]


def urls_of(connection: Connection, ids: list[int]) -> dict[int, str]:
    """URLs by page id."""
    page = simhash_values.c
    found: dict[int, str] = {}
    for some in in_parts(ids, _IDS_AT_ONCE):
        query = select(page.id, page.actual_url).where(page.id.in_(some))
        found |= {row.id: row.actual_url for row in connection.execute(query)}
    return found


def cluster_sizes(connection: Connection, ids: list[int], *, but: int) -> dict[int, int]:
    """Number of duplicates by id of a canonical page, of those pages that have any; the duplicate ``but``
    does not count.
    """
    relation = duplicate_values.c
    found: dict[int, int] = {}
    for some in in_parts(ids, _IDS_AT_ONCE):
        query = (
            select(relation.actual_hash_id, func.count())
            .where(relation.actual_hash_id.in_(some), relation.duplicate_hash_id != but)
            .group_by(relation.actual_hash_id)
        )
        found |= {row[0]: row[1] for row in connection.execute(query)}
    return found


def ids_of_text(connection: Connection, ids: list[int], text_digest: int) -> list[int]:
    """Those of some pages whose text has this digest."""
    page = simhash_values.c
    found: list[int] = []
    for some in in_parts(ids, _IDS_AT_ONCE):
        query = select(page.id).where(page.id.in_(some), page.text_digest == text_digest)
        found += connection.execute(query).scalars()
    return found


def id_and_kind(connection: Connection, url: str) -> tuple[int, str] | None:
    """Id and last verdict of the page with this URL; None if it is not stored."""
    query = select(simhash_values.c.id, simhash_values.c.kind).where(
        simhash_values.c.url_key == Address.of(url).key
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.id, row.kind)


def ids_of_keys(connection: Connection, keys: Collection[bytes]) -> list[int]:
    """The ids of the pages with these keys that are stored."""
    query = select(simhash_values.c.id).where(simhash_values.c.url_key.in_(keys))
    return list(connection.execute(query).scalars())


def sketches_of(connection: Connection, urls: Collection[str], *, min_features: int) -> dict[str, bytes]:
    """Sketches by URL, of those URLs whose pages are stored and have so many distinct words."""
    by_key: dict[bytes, list[str]] = {}
    for url in urls:
        by_key.setdefault(key_of(encoded_url(page_url(url))), []).append(url)
    found: dict[str, bytes] = {}
    for keys in in_parts(by_key, _IDS_AT_ONCE):
        rows = connection.execute(_SKETCHES, {"keys": keys, "min_features": min_features}).all()
        for key, sketch in rows:
            for url in by_key[bytes(key)]:
                found[url] = bytes(sketch)
    return found


_SKETCHES = select(simhash_values.c.url_key, simhash_values.c.sketch).where(
    simhash_values.c.url_key.in_(bindparam("keys", expanding=True)),
    simhash_values.c.sketch.is_not(None),
    simhash_values.c.features >= bindparam("min_features"),
)
"""Made once: a search engine's answer is waited for, and to make the statement costs as much as to run it."""


def stored_scheme(connection: Connection) -> str | None:
    """The scheme of the fingerprints; None if there has been no crawl."""
    return connection.execute(select(crawls.c.scheme).order_by(crawls.c.id.desc()).limit(1)).scalar()


def store_sizes(connection: Connection) -> dict[str, int]:
    """Number of rows of each table."""
    return {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in TABLES
    }


_OTHER_ENDS = select(
    simhash_values.c.actual_url,
    duplicate_values.c.hamming_distance,
    duplicate_values.c.percentage,
    duplicate_values.c.resemblance,
    duplicate_values.c.evidence,
    simhash_values.c.hash_value,
).order_by(duplicate_values.c.hamming_distance, simhash_values.c.id)
"""Relations with the page at one of their ends: which end, a condition says."""


def _relations(connection: Connection, value: int | None, query: Select[Any]) -> list[Relation]:
    return [
        Relation(
            url,
            distance,
            percentage,
            resemblance,
            evidence,
            None if evidence is None else Evidence(evidence).confidence,
            hamming.differing_bits(value or 0, other or 0),
        )
        for url, distance, percentage, resemblance, evidence, other in connection.execute(query)
    ]


def _crawl_name(connection: Connection, crawl_id: int) -> str:
    spider, started = connection.execute(
        select(crawls.c.spider, crawls.c.started_at).where(crawls.c.id == crawl_id)
    ).one()
    return f"{crawl_id} (spider {spider}, {started:%Y-%m-%d %H:%M:%S} UTC)"
