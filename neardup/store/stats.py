"""What is in the store and how much room it takes: by table, by kind, by scheme, by crawl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import case, func, select, text

from neardup.detection.verdict import CANONICAL, Kind
from neardup.store.page_report import store_sizes
from neardup.store.schema import crawls, simhash_values

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection

_BYTES_OF_TABLE = {
    "postgresql": text("SELECT pg_total_relation_size(to_regclass(:name))"),
    "mysql": text(
        "SELECT data_length + index_length FROM information_schema.tables"
        " WHERE table_schema = DATABASE() AND table_name = :name"
    ),
}
"""Rows and indexes of a table; MySQL's number is as old as its statistics."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """Rows of a table and its bytes on disk, None where the database does not tell them apart (SQLite)."""

    name: str
    rows: int
    bytes_on_disk: int | None


@dataclass(frozen=True, slots=True)
class FileSize:
    """A SQLite file: its bytes, and how many of them are free for rows to come."""

    bytes_on_disk: int
    bytes_free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemePages:
    """The pages of one scheme; ``canonical`` ones are neither duplicates nor too short."""

    scheme: str
    pages: int
    canonical: int
    duplicates: int
    flagged: int
    oldest: datetime
    newest: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPages:
    """A crawl, the pages that it saw first and last, and its own count of duplicates, None before its end."""

    crawl_id: int
    spider: str
    started_at: datetime
    finished_at: datetime | None
    finish_reason: str | None
    shared: bool
    pages_first: int
    pages_last: int
    duplicates: int | None
    scheme: str


def table_sizes(connection: Connection) -> list[TableSize]:
    query = _BYTES_OF_TABLE.get(connection.dialect.name)
    sizes = []
    for name, rows in store_sizes(connection).items():
        found = None if query is None else connection.execute(query, {"name": name}).scalar()
        sizes.append(TableSize(name, rows, None if found is None else int(found)))
    return sizes


def file_size(connection: Connection) -> FileSize | None:
    """None unless the database is a file."""
    if connection.dialect.name != "sqlite":
        return None
    pages, free, size = (
        connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
        for name in ("page_count", "freelist_count", "page_size")
    )
    return FileSize(pages * size, free * size)


def pages_by_kind(connection: Connection) -> dict[str, int]:
    """Most pages first."""
    count = func.count().label("pages")
    query = (
        select(simhash_values.c.kind, count).group_by(simhash_values.c.kind).order_by(count.desc(), "kind")
    )
    return {row.kind: row.pages for row in connection.execute(query)}


def pages_by_scheme(connection: Connection) -> list[SchemePages]:
    page = simhash_values.c

    def number_of(condition: ColumnElement[bool]) -> ColumnElement[Any]:
        return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)

    query = (
        select(
            page.scheme,
            func.count(),
            number_of(page.kind.in_([kind.value for kind in CANONICAL])),
            number_of(page.kind == Kind.DUPLICATE.value),
            number_of(page.flagged_at.is_not(None)),
            func.min(page.first_seen),
            func.max(page.last_seen),
        )
        .group_by(page.scheme)
        .order_by(page.scheme)
    )
    return [
        SchemePages(
            scheme=scheme,
            pages=pages,
            canonical=int(canonical),
            duplicates=int(duplicates),
            flagged=int(flagged),
            oldest=oldest,
            newest=newest,
        )
        for scheme, pages, canonical, duplicates, flagged, oldest, newest in connection.execute(query)
    ]


def crawl_pages(connection: Connection) -> list[CrawlPages]:
    """All crawls in their order."""
    page = simhash_values.c
    first, last = _rows_by(connection, page.crawl_id), _rows_by(connection, page.last_crawl_id)
    return [
        CrawlPages(
            crawl_id=row.id,
            spider=row.spider,
            started_at=row.started_at,
            finished_at=row.finished_at,
            finish_reason=row.finish_reason,
            shared=bool(row.shared),
            pages_first=first.get(row.id, 0),
            pages_last=last.get(row.id, 0),
            duplicates=row.duplicates,
            scheme=row.scheme,
        )
        for row in connection.execute(select(crawls).order_by(crawls.c.id))
    ]


def _rows_by(connection: Connection, column: ColumnElement[Any]) -> dict[int, int]:
    query = select(column.label("value"), func.count().label("rows")).group_by(column)
    return {row.value: row.rows for row in connection.execute(query)}


def newest_settings(connection: Connection) -> str:
    """The settings of the newest crawl, as JSON; an empty object if there is none."""
    query = select(crawls.c.settings).order_by(crawls.c.id.desc()).limit(1)
    return connection.execute(query).scalar() or "{}"


def settings_by_crawl(connection: Connection) -> list[tuple[int, str]]:
    """Ids of the crawls and their settings, as JSON."""
    query = select(crawls.c.id, crawls.c.settings).order_by(crawls.c.id)
    return [(row.id, row.settings) for row in connection.execute(query)]
