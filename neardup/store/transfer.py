"""A whole store out of one database and into another: all rows, their ids, and where counting goes on."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, LargeBinary, String, delete, func, insert, select, text
from sqlalchemy.exc import DataError, IntegrityError

from neardup.errors import ConfigurationError, StoreError
from neardup.store.archive.layout import Column, Header, Kind, Table
from neardup.store.schema import (
    REVISION,
    TABLES,
    crawls,
    decisions,
    document_frequencies,
    duplicate_values,
    page_versions,
)
from neardup.store.store import last_crawl_id
from neardup.store.types import Unsigned64, UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import sqlalchemy as sa
    from sqlalchemy import Connection
    from sqlalchemy.exc import DBAPIError

    from neardup.store.archive.layout import Archive, Batch
    from neardup.store.store import Store

    Progress = Callable[[int], None]
    """Told how many rows are done."""

_ROWS_AT_ONCE = 1_000
_HOSTS_AT_ONCE = 50
"""Rows of ``document_frequencies``, which may have half a megabyte each."""
_REFUSALS = (DataError, IntegrityError)


def _column(column: sa.Column[Any]) -> Column:
    kinds: list[tuple[type, Kind]] = [
        (Unsigned64, Kind.FINGERPRINT),
        (UtcDateTime, Kind.TIME),
        (LargeBinary, Kind.BYTES),
        (String, Kind.TEXT),
        (Integer, Kind.INTEGER),
    ]
    # A type of ours stands before that of SQLAlchemy which it is made of.
    types = (column.type, getattr(column.type, "impl", column.type))
    kind = next((kind for type_, kind in kinds if any(isinstance(of, type_) for of in types)), Kind.NUMBER)
    return Column(column.name, kind, bool(column.nullable), getattr(column.type, "length", None))


EXPORTED = tuple(Table(table.name, tuple(map(_column, table.columns))) for table in TABLES)
"""What an export of this version holds; no row refers to a later one."""

_TABLE = {table.name: table for table in TABLES}


@contextmanager
def snapshot_of(store: Store) -> Iterator[Connection]:
    """A connection that sees the store as it is now, whatever a crawl writes meanwhile."""
    with store.reading() as connection:
        if connection.dialect.name != "sqlite":  # whose transactions are always so
            connection.execution_options(isolation_level="REPEATABLE READ")
        yield connection


def header_of(connection: Connection) -> Header:
    """The header of an export."""
    rows = {
        table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in TABLES
    }
    scheme = connection.execute(select(crawls.c.scheme).order_by(crawls.c.id.desc()).limit(1)).scalar()
    return Header(revision=REVISION, scheme=scheme, rows=rows)


def stored_rows(connection: Connection, progress: Progress) -> Iterator[tuple[Table, list[tuple[Any, ...]]]]:
    """All rows of all tables in the order of their keys, some at a time."""
    done = 0
    for exported in EXPORTED:
        table = _TABLE[exported.name]
        query = select(table).order_by(*table.primary_key.columns)
        some = _HOSTS_AT_ONCE if table is document_frequencies else _ROWS_AT_ONCE
        result = connection.execution_options(yield_per=some).execute(query)
        for rows in result.partitions():
            yield exported, [tuple(row) for row in rows]
            done += len(rows)
            progress(done)


def import_rows(store: Store, archive: Archive, progress: Progress) -> None:
    """Store all rows of an export in an empty database, in one transaction: all of them or none.

    Raises StoreError if the database is not empty, or ConfigurationError if the export is of another
    revision, or a row of it cannot be stored.
    """
    header = archive.header
    if header.revision != REVISION:
        raise ConfigurationError(
            f"the export is of tables of revision {header.revision}, this neardup has {REVISION}; import it"
            " with the version that"
            " made it, run: neardup db upgrade, and export it again"
        )
    stored = dict.fromkeys(_TABLE, 0)
    with store.writing() as connection:
        _require_empty(connection, store.location)
        for batch in archive.batches():
            _check_schemes(batch, header.scheme)
            _insert(connection, batch)
            stored[batch.table] += len(batch.rows)
            progress(sum(stored.values()))
        _check_complete(stored, header.rows)
        _count_on(connection)


def _require_empty(connection: Connection, location: str) -> None:
    for table in TABLES:
        if connection.execute(select(*table.primary_key.columns).limit(1)).scalar() is not None:
            raise StoreError(
                f"database {location} is not empty: {table.name} has rows. Import into a new one"
                " (--database URL)"
            )


def _check_schemes(batch: Batch, scheme: str | None) -> None:
    for row, place in zip(batch.rows, batch.places, strict=True):
        if row.get("scheme", scheme) != scheme:
            raise ConfigurationError(
                f"{place}: the row is of the scheme {row['scheme']!r}, the export of {scheme!r}"
            )


def _insert(connection: Connection, batch: Batch) -> None:
    table = _TABLE[batch.table]
    if _refusal(connection, table, batch.rows) is None:
        return
    # One of them is refused; which one?
    for row, place in zip(batch.rows, batch.places, strict=True):
        if (refusal := _refusal(connection, table, [row])) is not None:
            reason = " ".join(str(refusal.orig).split())
            raise ConfigurationError(f"{place}: the database refuses the row: {reason}") from refusal


def _refusal(connection: Connection, table: sa.Table, rows: list[dict[str, Any]]) -> DBAPIError | None:
    """Store rows; what the database has against one of them, and none is stored then."""
    savepoint = connection.begin_nested()
    try:
        connection.execute(insert(table), rows)
    except _REFUSALS as exc:
        savepoint.rollback()
        return exc
    # Any other failure leaves the savepoint: a full disk has ended it, and a rollback would hide the reason.
    savepoint.commit()
    return None


def _check_complete(stored: Mapping[str, int], expected: Mapping[str, int]) -> None:
    for name, rows in stored.items():
        if rows != expected.get(name):
            raise ConfigurationError(
                f"the export is not complete: {rows} rows of {name}, its header says {expected.get(name)}"
            )


def _count_on(connection: Connection) -> None:
    """Have the next crawl and the next relation get ids that none has had."""
    last = last_crawl_id(connection)
    if connection.dialect.name == "postgresql":
        for table in (crawls, duplicate_values, page_versions, decisions):
            stored = connection.execute(select(func.max(table.c.id))).scalar() or 0
            if highest := last if table is crawls else stored:
                connection.execute(
                    text("SELECT setval(pg_get_serial_sequence(:name, 'id'), :highest)"),
                    {"name": table.name, "highest": highest},
                )
    elif connection.dialect.name == "mysql" and last:
        # Counting goes on after the highest id that was ever stored, even if the row is gone.
        newest = select(crawls).order_by(crawls.c.id.desc()).limit(1)
        row = dict(connection.execute(newest).mappings().one())
        if row["id"] < last:
            connection.execute(insert(crawls), {**row, "id": last})
            connection.execute(delete(crawls).where(crawls.c.id == last))
