"""From a database URL to an engine: which databases there are, how each is set up, and what is said when one
fails.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from neardup.errors import ConfigurationError, DatabaseUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection, Dialect, Engine
    from sqlalchemy.pool import ConnectionPoolEntry

BUSY_SECONDS = 30
"""How long SQLite waits for another process's lock before it reports one."""

WRITES = "neardup_writes"
"""Execution option of connections whose transactions write."""

_CONNECT_SECONDS = 10

ANSWER_SECONDS = 30
"""How long a server may be silent in an answer to the writer before its connection is given up, and the batch
tried again.
"""

PATIENT_SECONDS = 600
"""The same for reports and the reading of all pages, which a server may have to sort first."""

_CONFLICTS = {
    "40001", "40P01", "55P03",  # PostgreSQL: serialisation failure, deadlock, lock not available
    1213, 1205, 1020,  # MariaDB: deadlock, lock wait timeout, record has changed since last read
}  # fmt: skip
"""SQLite has none: its one lock is waited for."""

# What a URL may begin with, the driver it gets and the extra that installs it. SQLAlchemy 2.0 and 2.1 differ
# in the driver they take by default, so it is always named.
_DRIVERS = {
    "sqlite": ("sqlite+pysqlite", "sqlite"),
    "postgresql": ("postgresql+psycopg", "postgres"),
    "mysql": ("mysql+pymysql", "mysql"),
    "mariadb": ("mysql+pymysql", "mysql"),
}

_ALLOWED = "sqlite:///PATH, postgresql://USER:PASSWORD@HOST/DATABASE or mysql://USER:PASSWORD@HOST/DATABASE"


def database_url(text: str) -> URL:
    """Read and check a database URL; ConfigurationError says what is allowed, and never shows a password."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        # Not a URL, or one whose port is no number: no part of it can be told to be the password, so none is
        # shown. Nor is the cause: SQLAlchemy repeats the whole text in it (2.0.36 does, 2.0.44 does not), for
        # every log with a traceback.
        raise ConfigurationError(f"the database URL cannot be read; it must be like {_ALLOWED}") from None
    backend = url.get_backend_name()
    if backend != "sqlite" and "@" in f"{url.host}{url.database}":
        # The password ends at the first @; what is left of it has become the host, which is not masked.
        raise ConfigurationError(
            'the database URL cannot be read: an "@" in the password must be written "%40"'
        )
    if backend not in _DRIVERS:
        raise ConfigurationError(f"database URL {masked(url)}: must be like {_ALLOWED}")
    if backend == "sqlite":
        if not url.database or url.database == ":memory:" or url.query:
            raise ConfigurationError(
                f"database URL {masked(url)}: a SQLite database must be a file (sqlite:///PATH), because"
                " what is"
                " only in memory cannot be shared with the writer's thread, nor with reports"
            )
        return url.set(drivername=_DRIVERS[backend][0])
    if not url.database:
        raise ConfigurationError(f"database URL {masked(url)} names no database; it must be like {_ALLOWED}")
    if backend in {"mysql", "mariadb"}:
        url = url.update_query_dict({"charset": "utf8mb4"})
    return url.set(drivername=_DRIVERS[backend][0])


def masked(url: URL) -> str:
    """The URL for logs and messages, its password as three asterisks, secrets in its query too."""
    hidden = {name: "***" for name in url.query if "pass" in name.lower() or "key" in name.lower()}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def make_engine(url: URL, *, create: bool = True, answer_within: float | None = None) -> Engine:
    """An engine for a checked URL; it has not connected yet.

    ``create``: whether a SQLite file that is missing may be made, with its folder; if not,
    DatabaseUnavailable. ``answer_within``: how many seconds a server may be silent before the connection
    fails, if not for ever.
    """
    backend = url.get_backend_name()
    connect_args: dict[str, object] = {"connect_timeout": _CONNECT_SECONDS}
    if backend == "sqlite":
        _prepare_file(url, create=create)
        connect_args = {"timeout": BUSY_SECONDS}
    elif backend != "postgresql" and answer_within is not None:
        limits = {"read_timeout": answer_within, "write_timeout": answer_within}
        connect_args |= {name: limit for name, limit in limits.items() if name not in url.query}
    try:
        engine = create_engine(
            url,
            connect_args=connect_args,
            pool_pre_ping=backend != "sqlite",
            # MySQL's own choice shows a plain query what was stored when the transaction began, but one that
            # locks what is stored now: they would contradict each other. PostgreSQL's is this one.
            **({"isolation_level": "READ COMMITTED"} if backend in {"mysql", "mariadb"} else {}),
        )
    except ValueError as exc:
        raise _refused_options(url, exc) from exc
    except ModuleNotFoundError as exc:
        extra = _DRIVERS[backend][1]
        raise ConfigurationError(
            f'database URL {masked(url)} needs the driver {exc.name}: pip install "neardup[{extra}]"'
        ) from exc
    if backend == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin)
    else:

        @event.listens_for(engine, "do_connect")
        def connect(dialect: Dialect, record: object, args: list[Any], options: dict[str, Any]) -> Any:
            try:
                if backend == "postgresql":
                    return _connect_to_postgresql(answer_within, *args, **options)
                return dialect.connect(*args, **options)
            except (TypeError, ValueError) as exc:
                # PyMySQL takes the options of the URL as arguments: an unknown one is no error of its own.
                raise _refused_options(url, exc) from exc

    return engine


def _connect_to_postgresql(answer_within: float | None, *args: Any, **options: Any) -> Any:
    from neardup.store.postgresql import LimitedConnection  # noqa: PLC0415  # its driver may not be installed

    connection = LimitedConnection.connect(*args, **options)
    connection.answer_within = answer_within
    return connection


def is_conflict(exc: DBAPIError) -> bool:
    """Whether a server gave up a transaction because of another one; it may be tried again as a whole."""
    codes = {getattr(exc.orig, "sqlstate", None), *getattr(exc.orig, "args", ())[:1]}
    return not codes.isdisjoint(_CONFLICTS)


def unavailable(url: URL, exc: Exception) -> DatabaseUnavailable:
    """What to raise when the database does not do as told; the driver's own words, without the password."""
    hint = "check that the server runs and NEARDUP_DATABASE_URL is right"
    if isinstance(exc, DBAPIError) and is_conflict(exc):
        hint = "another transaction was in the way"
    elif url.get_backend_name() == "sqlite":
        hint = (
            "check the path and its permissions, the free space, whether another program holds a lock, or"
            " whether its file system is read-only: a copy elsewhere can be read"
        )
    return DatabaseUnavailable(f"database {masked(url)} cannot be used: {reason(url, exc)} ({hint})")


def _refused_options(url: URL, exc: Exception) -> ConfigurationError:
    return ConfigurationError(f"database URL {masked(url)}: the driver refuses an option: {reason(url, exc)}")


def reason(url: URL, exc: Exception) -> str:
    """What the driver says, in one line and without the password."""
    said = " ".join(str(exc.orig if isinstance(exc, DBAPIError) else exc).split())
    return said.replace(str(url.password), "***") if url.password else said


def _prepare_file(url: URL, *, create: bool) -> None:
    path = Path(url.database or "")
    if path.is_dir():
        raise unavailable(url, IsADirectoryError("it is a folder, not a file"))
    if not create and not path.is_file():
        raise DatabaseUnavailable(
            f"there is no database {path}; a crawl makes it, or name another one with NEARDUP_DATABASE_URL"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise unavailable(url, exc) from exc


def _set_up_sqlite(connection: sqlite3.Connection, record: ConnectionPoolEntry) -> None:
    # The driver would begin transactions by itself, late and not for tables; _begin does.
    connection.isolation_level = None
    try:
        # Readers and the writer do not hold each other up; a commit that was reported survives a crash of the
        # process.
        _use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")
    except sqlite3.Error as exc:
        raise OperationalError("PRAGMA", None, exc) from exc


def _use_wal(connection: sqlite3.Connection) -> None:
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as exc:
        # A copy by VACUUM INTO has lost the mode, which is no reason not to read it where nothing can be
        # written.
        if exc.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY:
            raise


def _begin(connection: Connection) -> None:
    # A transaction that first reads and then writes would fail at once, not wait, if another process wrote
    # between.
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
