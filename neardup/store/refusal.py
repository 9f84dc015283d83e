"""Whose fault a failure is: that of the database or that of a row.

A database at fault is waited for. A row at fault is found by halving its batch.

A database that refuses a row need not say so. A row longer than ``max_allowed_packet`` has MySQL and MariaDB
drop the connection, as a restart of the server does. Only a trial tells the row from the restart: whether the
database takes another row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, StatementError

from neardup.address import Address
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.verdict import Kind, Verdict
from neardup.store.engine import is_conflict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.exc import SQLAlchemyError

_NO_ROOM = {
    "53100", "57014", "58030",  # PostgreSQL: disk full, statement timeout, error of the file system
    1021, 1026, 1030, 1114, 1317, 1969,  # MariaDB: disk full (four), query interrupted, statement timeout
}  # fmt: skip
"""Where a small row may pass and a larger one may not, though both are right."""


def is_refusal(exc: SQLAlchemyError) -> bool:
    """Whether the database, or the driver, says that it will never take these rows."""
    return isinstance(exc, DataError | IntegrityError) or type(exc) is StatementError


def may_be_refusal(exc: SQLAlchemyError) -> bool:
    """Whether a row may be the reason for a failure that does not say so; if the database takes other rows,
    one is.

    SQLite says so always. What took too long is never taken for the fault of a row: somebody may hold a lock
    on it.
    """
    if not isinstance(exc, DBAPIError) or is_conflict(exc) or type(exc.orig).__module__ == "sqlite3":
        return False
    codes = {getattr(exc.orig, "sqlstate", None), *getattr(exc.orig, "args", ())[:1]}
    return codes.isdisjoint(_NO_ROOM) and not any(
        isinstance(cause, TimeoutError) for cause in _causes(exc.orig)
    )


def another_page(crawl_id: int) -> Verdict:
    """A small page under an id that a crawl gives to no page, to try whether the database takes any."""
    page_id = crawl_id * PAGES_PER_CRAWL
    address = Address(f"neardup:another-page-{page_id}")
    return Verdict(address=address, kind=Kind.TOO_SHORT, follow=True, reason="", page_id=page_id)


def _causes(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__
