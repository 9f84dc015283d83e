"""All pages of a store with what they are compared by, for collections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, select

from neardup.detection.verdict import Kind
from neardup.store.schema import page_texts, simhash_values
from neardup.store.texts import unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from sqlalchemy import Connection

_ROWS_AT_ONCE = 1_000

_IS_THERE = simhash_values.c.kind != Kind.GONE.value


class PageRow(NamedTuple):
    """A page as ``simhash_values`` has it."""

    actual_url: str
    first_seen: datetime
    hash_value: int | None
    weak_bits: bytes | None
    sketch: bytes | None
    features: int
    text_digest: int | None
    headline: bytes | None


def state(connection: Connection) -> dict[str, Any]:
    """What tells whether the pages of a store are still the same."""
    latest = func.max(simhash_values.c.last_seen)
    row = connection.execute(select(func.count(), latest).where(_IS_THERE)).one()
    return {"pages": row[0], "last_seen": str(row[1])}


def page_rows(connection: Connection) -> Iterator[PageRow]:
    """All pages that are not gone, in the order of their ids."""
    columns = [simhash_values.c[name] for name in PageRow._fields]
    query = select(*columns).where(_IS_THERE).order_by(simhash_values.c.id)
    for row in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
        yield PageRow(*row)


def kept_texts(connection: Connection) -> Iterator[str | None]:
    """The kept texts of the pages of :func:`page_rows`, in the same order; None where there is none."""
    query = (
        select(page_texts.c.text)
        .select_from(simhash_values.outerjoin(page_texts, page_texts.c.page_id == simhash_values.c.id))
        .where(_IS_THERE)
        .order_by(simhash_values.c.id)
    )
    for (packed,) in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
        yield None if packed is None else unpacked(packed)
