"""What pages say of themselves by ``rel=canonical``, beside what their texts say.

A canonical tag is the word of a site, and sites set it wrongly. So nothing is decided by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from neardup.address import Address
from neardup.detection.verdict import COMPARED
from neardup.store.schema import duplicate_values, simhash_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection, Row

    from neardup.store.reports import Filters

_ROWS_AT_ONCE = 1_000
"""Pages of which it is asked at once which pages they name: fewer than any database takes parameters."""

_page, _relation = simhash_values.c, duplicate_values.c
# By a subquery for each page: for a join, planners read the relations of all pages for each thousand.
_canonical = select(_relation.actual_hash_id).where(_relation.duplicate_hash_id == _page.id).scalar_subquery()
_cluster = func.coalesce(_canonical, _page.id).label("cluster")
_IS_COMPARED = _page.kind.in_([kind.value for kind in COMPARED])


class Says(StrEnum):
    """What a page says, in the order of the report."""

    OTHER_CLUSTER = "names a page of another cluster"
    NOTHING = "duplicate that names no page"
    NOT_COMPARED = "names a page that was not compared"
    """The page named is not stored, too short, or gone."""
    SAME_CLUSTER = "names a page of its cluster"


@dataclass(frozen=True, slots=True)
class Tagged:
    """So many pages that say one thing; the first of them, and the page that it names, if any."""

    says: Says
    pages: int
    example_url: str
    named_url: str | None


def canonical_tags(connection: Connection, filters: Filters) -> list[Tagged]:
    """What the pages say that were compared with others; empty, if no page names another one of its site.

    A page that names itself counts as one that names none.
    """
    found: dict[Says, Tagged] = {}
    for some in _naming_another(connection, filters):
        keys = {row.declared_url: Address.of(row.declared_url).key for row in some}
        is_named = _page.url_key.in_(set(keys.values()))
        named = select(_page.url_key, _cluster).where(is_named, _IS_COMPARED)
        clusters = {row.url_key: row.cluster for row in connection.execute(named)}
        for row in some:
            cluster = clusters.get(keys[row.declared_url])
            says = (
                Says.NOT_COMPARED if cluster is None
                else Says.SAME_CLUSTER if cluster == row.cluster
                else Says.OTHER_CLUSTER
            )  # fmt: skip
            known = found.setdefault(says, Tagged(says, 0, row.actual_url, row.declared_url))
            found[says] = replace(known, pages=known.pages + 1)
    if found and (untagged := _duplicates_that_name_none(connection, filters)) is not None:
        found[Says.NOTHING] = untagged
    return [found[says] for says in Says if says in found]


def _naming_another(connection: Connection, filters: Filters) -> Iterator[list[Row[Any, Any, Any, Any]]]:
    query = (
        select(_page.id, _page.actual_url, _page.declared_url, _cluster)
        .where(_page.declared_url.is_not(None), _IS_COMPARED, filters.condition())
        .order_by(_page.id)
        .limit(_ROWS_AT_ONCE)
    )
    last = 0
    while some := list(connection.execute(query.where(_page.id > last))):
        yield some
        last = some[-1].id


def _duplicates_that_name_none(connection: Connection, filters: Filters) -> Tagged | None:
    untagged = (
        select(func.count(), func.min(_page.id))
        .join_from(duplicate_values, simhash_values, _relation.duplicate_hash_id == _page.id)
        .where(_page.declared_url.is_(None), filters.condition())
    )
    pages, example = connection.execute(untagged).one()
    if not pages:
        return None
    url = connection.execute(select(_page.actual_url).where(_page.id == example)).scalar_one()
    return Tagged(Says.NOTHING, pages, url, None)
