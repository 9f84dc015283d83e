"""Taking pages out of the store: those that only one crawl brought, or those not seen for long.

Pages go in batches, each a transaction after which the store is whole. An interrupted removal is ended by
starting it again. Duplicates go before canonical pages, so that no page that is about to go is elected. So
the outcome does not depend on the size of the batches. Each transaction changes what
:meth:`neardup.store.store.Store.state` says, so that no snapshot outlives it. A transaction that another one
is in the way of is tried again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, delete, exists, func, or_, select, true, update

from neardup.store.election import Elected, reelect
from neardup.store.schema import (
    crawls,
    document_frequencies,
    duplicate_values,
    host_ips,
    page_links,
    page_ranks,
    page_texts,
    page_versions,
    rule_effects,
    simhash_values,
    url_rules,
)
from neardup.store.statements import batch_id, count_change, in_parts
from neardup.store.store import retire_crawl_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import ColumnElement, Connection, Select

    from neardup.detection.rule import Rule
    from neardup.store.store import Store

_PAGES_AT_ONCE = 2_000
_HOSTS_AT_ONCE = 100
_SILENCE = timedelta(hours=1)
"""A crawl that has not ended and has stored nothing for so long is taken for dead."""


@dataclass(frozen=True, slots=True)
class ToRemove:
    """What would be removed, before anything is.

    ``left_behind`` duplicates stay while their canonical pages go, ``canonical_with_others`` in number.
    """

    pages: int
    duplicates: int
    canonical_with_others: int
    left_behind: int


@dataclass(slots=True)
class Removed:
    """What has been removed so far, and who was elected in the place of canonical pages."""

    pages: int = 0
    duplicates: int = 0
    elected: Elected = field(default_factory=Elected)


def only_of(crawl_id: int) -> ColumnElement[bool]:
    """Pages that this crawl saw and no other."""
    return and_(simhash_values.c.crawl_id == crawl_id, simhash_values.c.last_crawl_id == crawl_id)


def older_than(moment: datetime) -> ColumnElement[bool]:
    """Pages last seen before a moment."""
    return simhash_values.c.last_seen < moment


def to_remove(connection: Connection, condition: ColumnElement[bool]) -> ToRemove:
    """Count what :func:`remove_pages` would remove."""
    relation = duplicate_values.c
    pages, duplicates = connection.execute(
        select(func.count(), func.count(relation.id))
        .join_from(
            simhash_values, duplicate_values, relation.duplicate_hash_id == simhash_values.c.id, isouter=True
        )
        .where(condition)
    ).one()
    # Not "duplicate not in ids", for which PostgreSQL goes through all of millions of ids for every relation.
    goes_too = exists().where(simhash_values.c.id == relation.duplicate_hash_id, condition)
    canonical, left_behind = connection.execute(
        select(func.count(relation.actual_hash_id.distinct()), func.count()).where(
            relation.actual_hash_id.in_(select(simhash_values.c.id).where(condition)), ~goes_too
        )
    ).one()
    return ToRemove(pages, duplicates, canonical, left_behind)


def remove_pages(
    store: Store, condition: ColumnElement[bool], rule: Rule, *, leaving: int = 0
) -> Iterator[Removed]:
    """Remove the pages of a condition with their relations, versions, links and ranks, and what was learned
    of hosts that no page is left of. No change counts for the crawl ``leaving``.

    Yields the sums after each transaction.
    """
    removed = Removed()
    is_duplicate = exists().where(duplicate_values.c.duplicate_hash_id == simhash_values.c.id)
    for which in (is_duplicate, true()):
        query = select(simhash_values.c.id).where(condition, which).limit(_PAGES_AT_ONCE).with_for_update()
        remove = partial(_remove_some, query, rule, leaving)
        while (some := store.transact(remove, patiently=True)).pages:
            removed.pages += some.pages
            removed.duplicates += some.duplicates
            removed.elected += some.elected
            yield removed


def _remove_some(query: Select[Any], rule: Rule, leaving: int, connection: Connection) -> Removed:
    """Remove the pages of a query of ids."""
    batch_id = count_change(connection, leaving)
    ids = list(connection.execute(query).scalars())
    if not ids:
        return Removed()
    relation = duplicate_values.c.duplicate_hash_id
    found = connection.execute(delete(duplicate_values).where(relation.in_(ids)))
    elected = reelect(connection, ids, rule, batch_id)
    for table in (page_versions, page_links, page_ranks, page_texts):
        connection.execute(delete(table).where(table.c.page_id.in_(ids)))
    page = simhash_values.c
    hosts = list(connection.execute(select(page.host).where(page.id.in_(ids)).distinct()).scalars())
    connection.execute(delete(simhash_values).where(page.id.in_(ids)))
    _forget_hosts(connection, sorted(hosts))
    return Removed(len(ids), found.rowcount, elected)


def _forget_hosts(connection: Connection, hosts: list[str]) -> None:
    """Remove what was learned of those of some hosts that no page is left of."""
    for table in (document_frequencies, url_rules, host_ips):
        no_pages = ~exists().where(simhash_values.c.host == table.c.host)
        for some in in_parts(hosts, _HOSTS_AT_ONCE):
            gone = table.c.host.in_(some), no_pages
            if table is url_rules:
                keys = select(url_rules.c.rule_key).where(*gone)
                connection.execute(delete(rule_effects).where(rule_effects.c.rule_key.in_(keys)))
            connection.execute(delete(table).where(*gone))


def remove_crawl(store: Store, crawl_id: int, rule: Rule) -> Iterator[Removed]:
    """Remove a crawl with the pages that only it saw; yields the sums after each transaction.

    What other crawls saw, too, stays. A page that the removed crawl saw first goes to the crawl that saw the
    page last. A page that the removed crawl saw last goes back to the crawl that saw the page first, because
    the tables name no crawl between. Relations that the removed crawl found between pages that stay go to the
    last crawl of the duplicate. Versions and links of pages that the removed crawl found go, and what came of
    rules of URLs in the removed crawl. The rules stay, and name no crawl from then on.
    """
    yield from remove_pages(store, only_of(crawl_id), rule, leaving=crawl_id)
    store.transact(partial(_hand_on, crawl_id), patiently=True)


def _hand_on(crawl_id: int, connection: Connection) -> None:
    """Give what is left of a crawl to others, and remove its row."""
    change = count_change(connection, crawl_id)
    retire_crawl_id(connection, crawl_id)
    page, relation = simhash_values.c, duplicate_values.c
    reconciled = connection.execute(
        select(crawls.c.reconciled_batches).where(crawls.c.id == crawl_id)
    ).scalar()
    if change and reconciled is not None:
        # What it changed and nobody has reconciled is left to the next crawl, as of the change.
        after, below = batch_id(crawl_id, reconciled), batch_id(crawl_id + 1, 0)
        connection.execute(
            update(simhash_values).where(page.batch_id > after, page.batch_id < below).values(batch_id=change)
        )
    connection.execute(
        update(simhash_values).where(page.crawl_id == crawl_id).values(crawl_id=page.last_crawl_id)
    )
    connection.execute(
        update(simhash_values).where(page.last_crawl_id == crawl_id).values(last_crawl_id=page.crawl_id)
    )
    last = select(page.last_crawl_id).where(page.id == relation.duplicate_hash_id).scalar_subquery()
    connection.execute(update(duplicate_values).where(relation.crawl_id == crawl_id).values(crawl_id=last))
    for table in (page_versions, page_links, rule_effects):
        connection.execute(delete(table).where(table.c.crawl_id == crawl_id))
    connection.execute(update(url_rules).where(url_rules.c.crawl_id == crawl_id).values(crawl_id=None))
    connection.execute(delete(crawls).where(crawls.c.id == crawl_id))


def crawl_ids(connection: Connection) -> dict[int, bool]:
    """All crawls, and whether each has ended."""
    query = select(crawls.c.id, crawls.c.finished_at.is_not(None)).order_by(crawls.c.id)
    return {crawl_id: bool(ended) for crawl_id, ended in connection.execute(query)}


def running(connection: Connection) -> list[int]:
    """Crawls that seem to be running: not ended, and started or heard of within the last hour."""
    since = datetime.now(UTC) - _SILENCE
    wrote = exists().where(simhash_values.c.last_crawl_id == crawls.c.id, simhash_values.c.last_seen >= since)
    query = (
        select(crawls.c.id)
        .where(crawls.c.finished_at.is_(None), or_(crawls.c.started_at >= since, wrote))
        .order_by(crawls.c.id)
    )
    return list(connection.execute(query).scalars())
