"""What mirrors are found by: the addresses, clusters and sketches of stored pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import func, select

from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.statements import in_parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection

_ROWS_AT_ONCE = 10_000
_IDS_AT_ONCE = 500

_page, _relation = simhash_values.c, duplicate_values.c


class ClusteredPage(NamedTuple):
    """``cluster``: id of the canonical page. ``digest``: that of the text."""

    url: str
    page_id: int
    cluster: int
    digest: int


def clustered_pages(connection: Connection) -> Iterator[ClusteredPage]:
    """All pages that have a fingerprint, in the order of their ids."""
    query = (
        select(
            _page.actual_url,
            _page.id,
            func.coalesce(_relation.actual_hash_id, _page.id).label("cluster"),
            _page.text_digest,
        )
        .join_from(simhash_values, duplicate_values, _relation.duplicate_hash_id == _page.id, isouter=True)
        .where(_page.hash_value.is_not(None))
        .order_by(_page.id)
    )
    result = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)
    return (ClusteredPage(*row) for row in result)


def sketches_of(connection: Connection, page_ids: Sequence[int]) -> dict[int, bytes]:
    """The sketches of pages, as stored; of those that are there."""
    found: dict[int, bytes] = {}
    for ids in in_parts(page_ids, _IDS_AT_ONCE):
        query = select(_page.id, _page.sketch).where(_page.id.in_(ids), _page.sketch.is_not(None))
        found |= {row.id: bytes(row.sketch) for row in connection.execute(query)}
    return found
