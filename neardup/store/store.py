"""One database with its checked schema and scheme: opening it, crawls in it, and what a crawl must know at
start.
"""

from __future__ import annotations

import hashlib
import json
import logging
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sqlalchemy import case, func, insert, literal, or_, select, update
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.stored_page import StoredPage
from neardup.errors import SchemeMismatch
from neardup.store import change_feed, election, migrate
from neardup.store.decided import load_decisions
from neardup.store.engine import (
    ANSWER_SECONDS,
    PATIENT_SECONDS,
    WRITES,
    database_url,
    is_conflict,
    make_engine,
    masked,
    reason,
    unavailable,
)
from neardup.store.frequencies import load_frequencies, remove_frequencies
from neardup.store.migrate import State
from neardup.store.schema import crawls, duplicate_values, simhash_values
from neardup.store.statements import count_batch, state_of
from neardup.store.url_rules import load_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from datetime import timedelta
    from types import TracebackType

    from sqlalchemy import URL, ColumnElement, Connection, Engine, Insert

    from neardup.detection.decisions import Decisions
    from neardup.detection.document_frequencies import DocumentFrequencies
    from neardup.detection.rule import Rule
    from neardup.errors import DatabaseUnavailable
    from neardup.store.election import Elected
    from neardup.store.url_rules import UrlRules

logger = logging.getLogger(__name__)

_Result = TypeVar("_Result")

_ROWS_AT_ONCE = 10_000

_WAITS = (0.1, 0.3, 1.0, 3.0)
"""Seconds between the tries of a transaction that others are in the way of."""

_TO_UPGRADE = {State.MISSING, State.OLDER}


class Store:
    """A database that holds fingerprints of one scheme.

    A store is opened with :meth:`open`. ``location`` names the database for people: the path of a SQLite
    file, or the URL with its password masked.
    """

    def __init__(self, url: URL, engine: Engine, scheme: str | None) -> None:
        self.engine = engine
        # Connections of their own: how long a server may be silent is a property of a connection.
        self._patient_engine = (
            engine if url.get_backend_name() == "sqlite" else make_engine(url, answer_within=PATIENT_SECONDS)
        )
        self.scheme = scheme
        self.location = (url.database or "") if url.get_backend_name() == "sqlite" else masked(url)
        self._url = url

    @classmethod
    def open(cls, url: str, *, scheme: str | None, create: bool = True) -> Store:
        """Connect and check that the database can be used with this version of neardup and this scheme (None:
        any).

        The tables of a SQLite database are made or migrated on the way; ``create`` says whether a missing
        file is made. If they are there, nothing is written, and nobody's lock is waited for. Raises
        ConfigurationError (the URL), DatabaseUnavailable, SchemaOutdated or SchemeMismatch.
        """
        checked = database_url(url)
        engine = make_engine(checked, create=create, answer_within=ANSWER_SECONDS)
        store = cls(checked, engine, scheme)
        try:
            # SQLite has one lock for all who write: what only reads must not ask for it, or a long
            # transaction keeps reports waiting.
            with store.reading(patiently=False) as connection:
                upgrade_first = engine.dialect.name == "sqlite" and migrate.state(connection) in _TO_UPGRADE
            if upgrade_first:
                with store.begin_write() as connection:
                    migrate.upgrade(connection)  # nothing to do if another process has done it by now
            with store.reading(patiently=False) as connection:
                migrate.require_current(connection, database=store.location)
                if scheme is not None:
                    _check_scheme(connection, scheme, store.location)
        except SQLAlchemyError as exc:
            engine.dispose()
            raise unavailable(checked, exc) from exc
        except BaseException:
            engine.dispose()
            raise
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.engine.dispose()
        self._patient_engine.dispose()

    def of_scheme(self, scheme: str) -> Store:
        """The same database, opened to store fingerprints of a scheme. SchemeMismatch: it has another one."""
        return self.opener(scheme)()

    def opener(self, scheme: str | None = None) -> Callable[[], Store]:
        """What opens the same database once more, also in another process; ``scheme`` as in :meth:`open`."""
        return partial(
            Store.open, self._url.render_as_string(hide_password=False), scheme=scheme, create=False
        )

    def begin_write(self, *, patiently: bool = False) -> AbstractContextManager[Connection]:
        """A transaction that is going to write; committed at the end of the block, rolled back if it raises.

        ``patiently``: whether the database may think for minutes before it answers.
        """
        engine = self._patient_engine if patiently else self.engine
        return engine.execution_options(**{WRITES: True}).begin()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """As :meth:`begin_write`, patiently, with DatabaseUnavailable if the database fails on the way."""
        try:
            with self.begin_write(patiently=True) as connection:
                yield connection
        except DBAPIError as exc:
            raise self.unavailable(exc) from exc

    def transact(self, work: Callable[[Connection], _Result], *, patiently: bool = False) -> _Result:
        """What ``work`` returns, called in a transaction that is going to write; DatabaseUnavailable if the
        database fails.

        A deadlock, a serialisation failure, or a lock that was waited for in vain rolls back the transaction.
        The transaction is then tried again, a few times, with growing waits. ``work`` must leave
        nothing but what is in the database.
        """
        waits = iter(_WAITS)
        while True:
            try:
                with self.begin_write(patiently=patiently) as connection:
                    return work(connection)
            except DBAPIError as exc:
                problem = self.unavailable(exc)
                wait = next(waits, None) if is_conflict(exc) else None
                if wait is None:
                    raise problem from exc
            logger.warning("neardup: %(problem)s; trying again", {"problem": problem})
            sleep(wait)

    def would_take(self, statement: Insert, row: Mapping[str, object]) -> bool:
        """Whether the database takes a row now; it is not kept."""
        engine = self.engine.execution_options(**{WRITES: True})
        try:
            with engine.connect() as connection:  # nothing is committed
                connection.execute(statement, row)
        except SQLAlchemyError:
            return False
        return True

    @contextmanager
    def reading(self, *, patiently: bool = True) -> Iterator[Connection]:
        """A connection to read from; DatabaseUnavailable if the database fails on the way.

        ``patiently``: whether the database may think for minutes before it answers.
        """
        engine = self._patient_engine if patiently else self.engine
        try:
            with engine.connect() as connection:
                yield connection
        except DBAPIError as exc:
            raise self.unavailable(exc) from exc

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """As :meth:`reading`, but the database refuses to be written to."""
        with self.reading(patiently=False) as connection:
            on_sqlite = connection.dialect.name == "sqlite"
            connection.exec_driver_sql("PRAGMA query_only = ON" if on_sqlite else "SET TRANSACTION READ ONLY")
            try:
                yield connection
            finally:
                if on_sqlite:  # where it belongs to the connection, not to the transaction
                    connection.exec_driver_sql("PRAGMA query_only = OFF")

    def unavailable(self, exc: Exception) -> DatabaseUnavailable:
        """The error to raise for a failure of the database: DatabaseUnavailable with the driver's reason."""
        return unavailable(self._url, exc)

    def reason(self, exc: Exception) -> str:
        """What the driver says of a failure, without the password."""
        return reason(self._url, exc)

    def begin_crawl(self, *, spider: str, settings: Mapping[str, object], shared: bool = True) -> int:
        """Record that a crawl starts; returns its id, which no other crawl has.

        ``shared``: whether other crawls see its pages before it has been finished.
        """
        row = {
            "spider": spider[:255],
            "started_at": datetime.now(UTC),
            "scheme": self.scheme,
            "settings": json.dumps(settings, sort_keys=True),
            "batches": 0,
            "shared": int(shared),
            "reconciled_batches": 0,
        }

        def work(connection: Connection) -> int:
            if self.engine.dialect.name == "sqlite":
                row["id"] = last_crawl_id(connection) + 1
            key = connection.execute(insert(crawls).values(row)).inserted_primary_key
            assert key is not None
            return int(key[0])

        return self.transact(work)

    def finish_crawl(self, crawl_id: int, *, reason: str, counts: Mapping[str, int | str | None]) -> None:
        """Record the end of a crawl, all of which is stored, and what is kept of it, by the names of the
        columns of ``crawls``.

        From now on other crawls see its pages.
        """
        values = {"finished_at": datetime.now(UTC), "finish_reason": reason[:255], "shared": 1, **counts}
        finish = update(crawls).where(crawls.c.id == crawl_id).values(values)
        self.transact(lambda connection: connection.execute(finish))

    def share_crawl(self, crawl_id: int) -> bool:
        """Let other crawls see the pages of a crawl from now on; False if there is no such crawl."""

        def work(connection: Connection) -> bool:
            found = connection.execute(select(crawls.c.id).where(crawls.c.id == crawl_id)).scalar()
            connection.execute(update(crawls).where(crawls.c.id == crawl_id).values(shared=1))
            return found is not None

        return self.transact(work)

    def resolve(
        self, crawl_id: int, changed_ids: Iterable[int], rule: Rule
    ) -> tuple[Elected, list[StoredPage]]:
        """Give the duplicates of canonical pages that have changed their canonical pages, by
        :func:`neardup.store.election.resolve`.

        Also returns the pages whose standing this has changed.
        """
        ids = list(changed_ids)

        def work(connection: Connection) -> tuple[Elected, list[StoredPage]]:
            batch_id = count_batch(connection, crawl_id)
            elected = election.resolve(connection, ids, rule, batch_id)
            return elected, change_feed.pages_of_batch(connection, batch_id)

        return self.transact(work)

    def pages_by_id(self, page_ids: Iterable[int]) -> list[StoredPage]:
        """Some pages as they are stored now; those that have been removed are missing."""
        with self.reading(patiently=False) as connection:
            return change_feed.pages_by_id(connection, page_ids)

    def load_frequencies(self, frequencies: DocumentFrequencies) -> list[str]:
        """Read what crawls have learned of hosts, by :func:`neardup.store.frequencies.load_frequencies`."""
        with self.reading() as connection:
            return load_frequencies(connection, frequencies)

    def remove_frequencies(self, hosts: Iterable[str]) -> None:
        """Forget what crawls have learned of some hosts."""
        names = list(hosts)
        self.transact(lambda connection: remove_frequencies(connection, names))

    def decisions(self) -> Decisions:
        """What people have decided, by :func:`neardup.store.decided.load_decisions`."""
        with self.reading() as connection:
            return load_decisions(connection)

    def load_rules(self, rules: UrlRules) -> None:
        """Read what crawls have learned of URLs, by :func:`neardup.store.url_rules.load_rules`."""
        with self.reading() as connection:
            load_rules(connection, rules)

    def has_page(self, page_id: int) -> bool:
        """Whether a page is stored."""
        query = select(simhash_values.c.id).where(simhash_values.c.id == page_id)
        with self.reading(patiently=False) as connection:
            return connection.execute(query).scalar() is not None

    def snapshot_path(self, folder: Path) -> Path:
        """Where a snapshot of this database is kept: :meth:`beside` it."""
        return self.beside(folder, "snapshot")

    def beside(self, folder: Path, what: str) -> Path:
        """Where something of this database is kept: beside a SQLite file, else in ``folder``, under a name of
        its own.
        """
        if self._url.get_backend_name() == "sqlite":
            return Path(f"{self._url.database}.{what}")
        name = hashlib.blake2b(masked(self._url).encode(), digest_size=8).hexdigest()
        return folder / f"{name}.{what}"

    def state(self, *, but: int) -> list[list[Any]]:
        """See :func:`neardup.store.statements.state_of`."""
        with self.reading(patiently=False) as connection:
            return state_of(connection, but=but)

    def known_pages(self, *, max_age: timedelta | None = None) -> Iterator[StoredPage]:
        """All stored pages in the order of their ids, read in parts so that memory holds none of them twice.

        Pages that were seen by crawls only that are not shared are left out. Those last seen longer ago than
        ``max_age`` are not fresh.
        """
        fresh: ColumnElement[int] = literal(1)
        if max_age is not None:
            fresh = case((simhash_values.c.last_seen >= datetime.now(UTC) - max_age, 1), else_=0)
        query = (
            select(
                simhash_values.c.id,
                simhash_values.c.actual_url,
                simhash_values.c.hash_value,
                simhash_values.c.features,
                duplicate_values.c.actual_hash_id,
                case((duplicate_values.c.actual_hash_id.is_(None), simhash_values.c.sketch)),
                case((duplicate_values.c.actual_hash_id.is_(None), simhash_values.c.text_digest)),
                case((duplicate_values.c.actual_hash_id.is_(None), simhash_values.c.headline)),
                fresh.label("fresh"),
            )
            .join_from(
                simhash_values,
                duplicate_values,
                duplicate_values.c.duplicate_hash_id == simhash_values.c.id,
                isouter=True,
            )
            .order_by(simhash_values.c.id)
        )
        hidden = select(crawls.c.id).where(crawls.c.shared == 0)
        with self.reading() as connection:
            # Two conditions on each page cost time, which few have reason to pay.
            if ids := list(connection.execute(hidden).scalars()):
                page = simhash_values.c
                query = query.where(or_(page.crawl_id.not_in(ids), page.last_crawl_id.not_in(ids)))
            for row in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
                yield StoredPage(*row)


def last_crawl_id(connection: Connection) -> int:
    """The highest id that a crawl has had; 0 if there was none.

    SQLite gives the id of the last crawl anew when that crawl has been removed. Pages that it brought and
    another crawl has kept, or knows, would then have the ids of pages to come.
    """
    crawl = connection.execute(select(func.max(crawls.c.id))).scalar() or 0
    page = connection.execute(select(func.max(simhash_values.c.id))).scalar() or 0
    retired = 0
    if connection.dialect.name == "sqlite":
        retired = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
    return max(crawl, page // PAGES_PER_CRAWL, retired)


def retire_crawl_id(connection: Connection, crawl_id: int) -> None:
    """Have no later crawl get the id of one that is removed; servers see to that by themselves."""
    if connection.dialect.name == "sqlite":
        # A number that SQLite keeps in the file for the program whose file it is.
        last = max(crawl_id, last_crawl_id(connection))
        connection.exec_driver_sql(f"PRAGMA user_version = {last:d}")


def upgrade(url: str) -> str:
    """Make or migrate the tables of a database; returns its location, as :class:`Store` names it."""
    checked = database_url(url)
    engine = make_engine(checked)
    store = Store(checked, engine, None)
    try:
        with store.begin_write() as connection:
            if migrate.state(connection) is not State.UNKNOWN:
                migrate.upgrade(connection)
            migrate.require_current(connection, database=store.location)
    except SQLAlchemyError as exc:
        raise unavailable(checked, exc) from exc
    finally:
        engine.dispose()
    return store.location


def _check_scheme(connection: Connection, scheme: str, database: str) -> None:
    stored = connection.execute(select(crawls.c.scheme).where(crawls.c.scheme != scheme).limit(1)).scalar()
    if stored is not None:
        raise SchemeMismatch(
            f"database {database} holds fingerprints of the scheme {stored!r}, the settings make {scheme!r};"
            " they must never be compared. Name another database with NEARDUP_DATABASE_URL, or set"
            " NEARDUP_FEATURES,"
            " NEARDUP_CONTENT, NEARDUP_SELECTORS, NEARDUP_ALT_TEXTS and NEARDUP_SKETCH_SIZE as they were"
        )
