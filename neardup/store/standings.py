"""All pages with their standing, as they are stored, and the standing of many pages set at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import delete, select, update

from neardup.detection.stored_page import StoredPage
from neardup.detection.verdict import Kind
from neardup.fingerprint import hamming
from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.statements import SET_DUPLICATE, count_change, in_parts, upsert_relation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

    from neardup.detection.verdict import Relation

_ROWS_AT_ONCE = 5_000
_IDS_AT_ONCE = 500

_page, _relation = simhash_values.c, duplicate_values.c


class Standing(NamedTuple):
    """A page, and the evidence and the resemblance of its relation; None unless the page is a duplicate."""

    page: StoredPage
    evidence: str | None
    resemblance: float | None


def standings(connection: Connection) -> Iterator[Standing]:
    """All pages in the order of their ids, but for those that are gone; some at a time."""
    query = (
        select(
            _page.id,
            _page.actual_url,
            _page.hash_value,
            _page.features,
            _relation.actual_hash_id,
            _page.sketch,
            _page.text_digest,
            _page.headline,
            _page.weak_bits,
            _page.kind,
            _relation.hamming_distance,
            _relation.evidence,
            _relation.resemblance,
        )
        .join_from(simhash_values, duplicate_values, _relation.duplicate_hash_id == _page.id, isouter=True)
        .where(_page.kind != Kind.GONE.value)
        .order_by(_page.id)
    )
    for row in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
        page = StoredPage(*row[:8], weak_bits=row.weak_bits, kind=row.kind, distance=row.hamming_distance)
        yield Standing(page, row.evidence, row.resemblance)


def restand(
    connection: Connection, relations: Iterable[Relation], canonical: Iterable[int], too_short: Iterable[int]
) -> None:
    """Make pages duplicates, canonical or too short, all in the transaction of the caller."""
    change = count_change(connection)
    for kind, ids in ((Kind.NEW, canonical), (Kind.TOO_SHORT, too_short)):
        for some in in_parts(ids, _IDS_AT_ONCE):
            connection.execute(delete(duplicate_values).where(_relation.duplicate_hash_id.in_(some)))
            values = {"kind": kind.value, "batch_id": change}
            connection.execute(update(simhash_values).where(_page.id.in_(some)).values(values))
    now, upsert = datetime.now(UTC), upsert_relation(connection.dialect.name)
    for found in in_parts(relations, _IDS_AT_ONCE):
        ids = [relation.duplicate_id for relation in found]
        last = select(_page.id, _page.last_crawl_id).where(_page.id.in_(ids))
        crawl_of = {row.id: row.last_crawl_id for row in connection.execute(last)}
        connection.execute(
            upsert,
            [
                {
                    "actual_hash_id": one.canonical_id,
                    "duplicate_hash_id": one.duplicate_id,
                    "percentage": hamming.percentage(one.distance),
                    "hamming_distance": one.distance,
                    "resemblance": one.resemblance,
                    "crawl_id": crawl_of[one.duplicate_id],
                    "found_at": now,
                    "evidence": one.evidence.value,
                }
                for one in found
            ],
        )
        connection.execute(SET_DUPLICATE, {"ids": ids, "batch": change})
