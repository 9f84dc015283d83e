"""The history of pages: a row of ``page_versions`` for each version of a page, not for each visit.

A visit makes a version if the page has none yet. A visit also makes one if the fingerprint or the standing of
the page is not that of the last version. There are four standings: canonical (``new``, ``unchanged`` or
``changed``), ``duplicate`` (of whichever page), ``too_short`` and ``gone``.

A visit is compared with the last version stored, not with what its verdict says of the past. A verdict does
not tell what standing the page had, and the past may be that of crawls that kept no history.

A page that is judged again was not visited. Its last version gets the new standing.

A visit that is not later than the last version stored makes none. Either the visit has been stored before (in
a batch that was tried twice), or another crawl has seen the page since. Two crawls that meet the same change
at once store one version. The crawl that writes the page later waits for the other crawl's transaction, and
reads the version in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import bindparam, func, insert, select, update

from neardup.detection.verdict import CANONICAL
from neardup.fingerprint import hamming
from neardup.store.schema import page_versions, simhash_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import Connection

    from neardup.detection.verdict import Verdict

    Visit = tuple[Verdict, datetime]

_version = page_versions.c
_other = page_versions.alias("other").c

_LAST_VERSIONS = (
    select(_version.page_id, _version.seen_at, _version.kind, _version.hash_value)
    .join_from(simhash_values, page_versions, _version.page_id == simhash_values.c.id)
    .where(
        simhash_values.c.id.in_(bindparam("ids", expanding=True)),
        _version.seen_at
        == select(func.max(_other.seen_at))
        .where(_other.page_id == simhash_values.c.id)
        .correlate(simhash_values)
        .scalar_subquery(),
    )
)
"""One look-up in an index a page, however long its history is."""

_CORRECT = (
    update(page_versions)
    .where(_version.page_id == bindparam("page"), _version.seen_at == bindparam("at"))
    .values(kind=bindparam("its_kind"))
)
"""The standing of a version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a page, as the page was when this version was first seen.

    ``own_distance``: bits that differ from the version before.
    """

    seen_at: datetime
    crawl_id: int
    kind: str
    own_distance: int | None
    features: int
    fingerprint: int | None


class _Last(NamedTuple):
    """What the next visit of a page is compared with."""

    seen_at: datetime
    kind: str
    value: int | None


def add_versions(connection: Connection, crawl_id: int, visits: Mapping[int, Sequence[Visit]]) -> int:
    """Store the versions that visits have shown, by the ids of their pages, which are stored; returns how
    many rows were written.
    """
    last = {
        row.page_id: _Last(row.seen_at, row.kind, row.hash_value)
        for row in connection.execute(_LAST_VERSIONS, {"ids": list(visits)})
    }
    rows: list[dict[str, Any]] = []
    corrected: dict[int, dict[str, Any]] = {}
    for page_id, seen in visits.items():
        before = last.get(page_id)
        for verdict, at in seen:
            value = None if verdict.fingerprint is None else verdict.fingerprint.value
            now = _Last(at, verdict.kind.value, value)
            if verdict.again and before is not None and before.value == value:
                before = before._replace(kind=now.kind)
                if rows and rows[-1]["page_id"] == page_id:
                    rows[-1]["kind"] = now.kind
                else:
                    corrected[page_id] = {"page": page_id, "at": before.seen_at, "its_kind": now.kind}
                continue
            if before is not None and not _is_new_version(before, now):
                continue
            rows.append(
                {
                    "page_id": page_id,
                    "crawl_id": crawl_id,
                    "seen_at": at,
                    "kind": now.kind,
                    "hash_value": value,
                    "features": verdict.features,
                    "own_distance": _distance(before, now),
                }
            )
            before = now
    if corrected:
        connection.execute(_CORRECT, list(corrected.values()))
    if rows:
        connection.execute(insert(page_versions), rows)
    return len(corrected) + len(rows)


def versions_of(connection: Connection, page_id: int, *, limit: int) -> list[Version]:
    """The last versions of a page, newest first."""
    query = (
        select(page_versions)
        .where(_version.page_id == page_id)
        .order_by(_version.seen_at.desc())
        .limit(limit)
    )
    return [
        Version(
            seen_at=row.seen_at,
            crawl_id=row.crawl_id,
            kind=row.kind,
            own_distance=row.own_distance,
            features=row.features,
            fingerprint=row.hash_value,
        )
        for row in connection.execute(query)
    ]


def version_count(connection: Connection, page_id: int) -> int:
    query = select(func.count()).select_from(page_versions).where(_version.page_id == page_id)
    return connection.execute(query).scalar_one()


def _is_new_version(before: _Last, now: _Last) -> bool:
    if now.seen_at <= before.seen_at:
        return False
    return now.value != before.value or _standing(now.kind) != _standing(before.kind)


def _standing(kind: str) -> str:
    return "canonical" if kind in CANONICAL else kind


def _distance(before: _Last | None, now: _Last) -> int | None:
    if before is None or before.value is None or now.value is None:
        return None
    return hamming.distance(before.value, now.value)
