"""The statements a batch is written with: upserts by page and by relation, alike on all three databases."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import bindparam, case, delete, func, select, update

from neardup.detection.verdict import Kind
from neardup.errors import StoreError
from neardup.store.schema import (
    crawls,
    document_frequencies,
    duplicate_values,
    host_ips,
    page_links,
    page_texts,
    rule_effects,
    simhash_values,
    url_rules,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from sqlalchemy import Connection, Table
    from sqlalchemy.sql.base import ReadOnlyColumnCollection
    from sqlalchemy.sql.dml import Insert

    Assignments = Callable[[ReadOnlyColumnCollection[str, Any]], list[tuple[str, Any]]]
    """Given the columns of the row that would have been inserted: what to set in the row that is there."""

_Key = TypeVar("_Key")

BATCHES_PER_CRAWL = 1_000_000_000
"""Ids of batches are crawl id × this + n, like those of pages."""

_KEPT_OF_A_PAGE = {"id", "url_key", "actual_url", "crawl_id", "first_seen", "flagged_at"}
"""What the first crawl that saw a page said of it stays."""


def upsert_page(dialect: str) -> Insert:
    """Insert a page; if its URL is there already, take over all but what tells its first visit.

    A page that is judged again does not say anew which page it calls its canonical one. So the last that it
    named stays.

    A visit may be earlier than the first visit stored. Either a crawl that ran at once was later to store its
    visit, or a clock is slow. Such a visit counts as at the time of the first visit.
    """
    first_seen = simhash_values.c.first_seen

    def assign(new: ReadOnlyColumnCollection[str, Any]) -> list[tuple[str, Any]]:
        new_of = {c.name: new[c.name] for c in simhash_values.columns if c.name not in _KEPT_OF_A_PAGE}
        seen = new["last_seen"]
        new_of["last_seen"] = case((seen > first_seen, seen), else_=first_seen)
        new_of["declared_url"] = func.coalesce(new["declared_url"], simhash_values.c.declared_url)
        return list(new_of.items())

    return _upsert(dialect, simhash_values, ["url_key"], assign)


def upsert_relation(dialect: str) -> Insert:
    """Insert a relation; if the page has one already, replace it, or keep since when it is known if it is the
    same.
    """

    def assign(new: ReadOnlyColumnCollection[str, Any]) -> list[tuple[str, Any]]:
        return replaced_relation(dict(new.items()), "crawl_id", "found_at")

    return _upsert(dialect, duplicate_values, ["duplicate_hash_id"], assign)


def upsert_frequencies(dialect: str) -> Insert:
    """Insert what has been learned of a host, or replace what is there unless that is of more pages."""
    old = document_frequencies.c

    def assign(new: ReadOnlyColumnCollection[str, Any]) -> list[tuple[str, Any]]:
        more = old.pages <= new["pages"]
        # MySQL assigns from left to right: the pages, which are compared, come last.
        names = ("counts", "updated_at", "pages")
        return [(name, case((more, new[name]), else_=old[name])) for name in names]

    return _upsert(dialect, document_frequencies, ["host"], assign)


def upsert_rule(dialect: str) -> Insert:
    """Insert a rule, or replace the one of its key."""

    def assign(new: ReadOnlyColumnCollection[str, Any]) -> list[tuple[str, Any]]:
        return [(c.name, new[c.name]) for c in url_rules.columns if not c.primary_key]

    return _upsert(dialect, url_rules, ["rule_key"], assign)


def upsert_effect(dialect: str) -> Insert:
    """Insert what came of a rule in a crawl, or replace it."""

    def assign(new: ReadOnlyColumnCollection[str, Any]) -> list[tuple[str, Any]]:
        return [(c.name, new[c.name]) for c in rule_effects.columns if not c.primary_key]

    return _upsert(dialect, rule_effects, ["rule_key", "crawl_id"], assign)


def upsert_links(dialect: str) -> Insert:
    """Insert what a crawl found of the links of a page, or replace what the crawl found before."""

    def assign(new: ReadOnlyColumnCollection[str, Any]) -> list[tuple[str, Any]]:
        return [("numbers", new["numbers"]), ("links", new["links"])]

    return _upsert(dialect, page_links, ["crawl_id", "page_id"], assign)


def upsert_text(dialect: str) -> Insert:
    """Insert the text of a page, or replace it."""

    def assign(new: ReadOnlyColumnCollection[str, Any]) -> list[tuple[str, Any]]:
        return [(name, new[name]) for name in ("text", "seen_at")]

    return _upsert(dialect, page_texts, ["page_id"], assign)


def upsert_ip(dialect: str) -> Insert:
    """Insert an IP address of a host, or note when the host had it last."""

    def assign(new: ReadOnlyColumnCollection[str, Any]) -> list[tuple[str, Any]]:
        seen, before = new["last_seen"], host_ips.c.last_seen
        return [("last_seen", case((seen > before, seen), else_=before))]

    return _upsert(dialect, host_ips, ["host", "ip"], assign)


def replaced_relation(new: Mapping[str, Any], *kept: str) -> list[tuple[str, Any]]:
    """What to set in a relation to replace it by a new one.

    If the new relation names the same canonical page, the columns ``kept`` stay as they are.
    """
    old = duplicate_values.c
    same = old.actual_hash_id == new["actual_hash_id"]
    stay = [(name, case((same, old[name]), else_=new[name])) for name in kept]
    # MySQL assigns from left to right: the comparison must come before what it compares is overwritten.
    measured = ("percentage", "hamming_distance", "resemblance", "evidence", "actual_hash_id")
    return stay + [(name, new[name]) for name in measured]


def _upsert(dialect: str, table: Table, key: list[str], assign: Assignments) -> Insert:
    # Imported here: a process writes to one of the three, and each of the others takes 7 to 15 ms.
    if dialect == "mysql":
        from sqlalchemy.dialects import mysql  # noqa: PLC0415

        mysql_insert = mysql.insert(table)
        return mysql_insert.on_duplicate_key_update(assign(mysql_insert.inserted))
    if dialect == "postgresql":
        from sqlalchemy.dialects import postgresql  # noqa: PLC0415

        postgresql_insert = postgresql.insert(table)
        return postgresql_insert.on_conflict_do_update(
            index_elements=key, set_=dict(assign(postgresql_insert.excluded))
        )
    from sqlalchemy.dialects import sqlite  # noqa: PLC0415

    sqlite_insert = sqlite.insert(table)
    # No key is named: SQLite would fail on the primary key, which a known page violates as well.
    return sqlite_insert.on_conflict_do_update(set_=dict(assign(sqlite_insert.excluded)))


def in_parts(keys: Iterable[_Key], size: int) -> Iterator[list[_Key]]:
    """Keys some at a time: a statement names only so many."""
    remaining = iter(keys)
    while part := list(islice(remaining, size)):
        yield part


STORED_IDS = select(simhash_values.c.id).where(simhash_values.c.id.in_(bindparam("ids", expanding=True)))

VALUES = (
    select(simhash_values.c.id, simhash_values.c.hash_value)
    .where(simhash_values.c.id.in_(bindparam("ids", expanding=True)))
    .order_by(simhash_values.c.id)
    .with_for_update()
)

IDS_BY_KEY = select(simhash_values.c.url_key, simhash_values.c.id).where(
    simhash_values.c.url_key.in_(bindparam("keys", expanding=True))
)

DELETE_RELATIONS = delete(duplicate_values).where(
    duplicate_values.c.duplicate_hash_id.in_(bindparam("ids", expanding=True))
)

SET_DUPLICATE = (
    update(simhash_values)
    .where(simhash_values.c.id.in_(bindparam("ids", expanding=True)))
    .values(kind=Kind.DUPLICATE.value, batch_id=bindparam("batch"))
)

SET_LINKS_WITHHELD = (
    update(simhash_values)
    .where(simhash_values.c.id == bindparam("page_id"))
    .values(links_withheld=bindparam("links"))
)

SET_FLAGGED = (
    update(simhash_values)
    .where(simhash_values.c.id == bindparam("page_id"), simhash_values.c.flagged_at.is_(None))
    .values(flagged_at=bindparam("at"))
)

SET_SOFT_404 = update(simhash_values).where(simhash_values.c.id == bindparam("page_id")).values(soft_404=1)

_COUNT_BATCH = update(crawls).where(crawls.c.id == bindparam("crawl")).values(batches=crawls.c.batches + 1)
_BATCHES = select(crawls.c.batches).where(crawls.c.id == bindparam("crawl"))


def count_batch(connection: Connection, crawl_id: int) -> int:
    """Count a transaction that writes pages as one more of this crawl, before it writes; returns the id of
    the batch.

    The row of the crawl is locked until the transaction ends, so the ids of a crawl's batches are in the
    order of their commits.
    """
    connection.execute(_COUNT_BATCH, {"crawl": crawl_id})
    number = connection.execute(_BATCHES, {"crawl": crawl_id}).scalar()
    if number is None:
        raise StoreError(f"crawl {crawl_id} has been removed from the database")
    return batch_id(crawl_id, number)


def count_change(connection: Connection, leaving: int = 0) -> int:
    """Have the state of the store differ from all before it; returns the id of the change, a batch of the
    oldest crawl.

    The crawl is the oldest of those that are shared. A crawl that runs leaves itself out when it compares
    states, and other crawls do not follow one that is not shared. The crawl ``leaving`` is about to go, and
    does not count.
    """
    query = select(crawls.c.id).where(crawls.c.id != leaving).order_by(crawls.c.shared.desc(), crawls.c.id)
    oldest = connection.execute(query.limit(1)).scalar()
    return 0 if oldest is None else count_batch(connection, oldest)


def batch_id(crawl_id: int, number: int) -> int:
    """The id of a crawl's batch of that number, counted from 1."""
    return crawl_id * BATCHES_PER_CRAWL + number


def state_of(connection: Connection, *, but: int = 0) -> list[list[Any]]:
    """What has been written by all crawls but one, as lists of id, start, batches and whether it is shared:
    equal states, equal pages.

    A crawl counts its batches in the transaction that writes them, so no page is stored or changed without
    the state changing. Crawls that have not written are left out.
    """
    query = (
        select(crawls.c.id, crawls.c.started_at, crawls.c.batches, crawls.c.shared)
        .where(crawls.c.id != but, crawls.c.batches > 0)
        .order_by(crawls.c.id)
    )
    return [
        [row.id, row.started_at.isoformat(), row.batches, row.shared] for row in connection.execute(query)
    ]
