"""What mirrors are found by: the addresses, clusters and sketches of stored pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.statements import in_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

_ROWS_AT_ONCE = 10_000
_IDS_AT_ONCE = 500

_page, _relation = simhash_values.c, duplicate_values.c


def clustered_pages(connection: Connection) -> Iterator[tuple[str, int, int, int]]:
    """All pages that have a fingerprint, in the order of their ids.

    A row is URL, id, id of the canonical page, and digest of the text. A digest that is not known is one that
    no other page has.
    """
    query = (
        select(
            _page.actual_url,
            _page.id,
            func.coalesce(_relation.actual_hash_id, _page.id).label("cluster"),
            func.coalesce(_page.text_digest, _page.id),
        )
        .join_from(simhash_values, duplicate_values, _relation.duplicate_hash_id == _page.id, isouter=True)
        .where(_page.hash_value.is_not(None))
        .order_by(_page.id)
    )
    rows = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)
    return ((url, page_id, cluster, digest) for url, page_id, cluster, digest in rows)


def sketches_of(connection: Connection, page_ids: Sequence[int]) -> dict[int, bytes]:
    """The sketches of pages, as stored; of those that are there."""
    found: dict[int, bytes] = {}
    for ids in in_parts(page_ids, _IDS_AT_ONCE):
        query = select(_page.id, _page.sketch).where(_page.id.in_(ids), _page.sketch.is_not(None))
        found |= {row.id: bytes(row.sketch) for row in connection.execute(query)}
    return found
