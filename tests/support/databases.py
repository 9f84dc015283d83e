"""Fresh databases for the tests: SQLite, and real PostgreSQL and MySQL/MariaDB servers where reachable.

``NEARDUP_TEST_POSTGRESQL_URL`` and ``NEARDUP_TEST_MYSQL_URL`` name the servers, by a database there that may
be connected to. With ``NEARDUP_TEST_SERVERS=required`` a server that is away fails the tests instead of
skipping them.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SERVERS = {
    "postgresql": os.environ.get(
        "NEARDUP_TEST_POSTGRESQL_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres"
    ),
    # PyMySQL reads the machine's certificates for each connection: half of the CPU time of such tests.
    "mysql": os.environ.get(
        "NEARDUP_TEST_MYSQL_URL", "mysql+pymysql://root@127.0.0.1:3306/test?ssl_disabled=true"
    ),
}
_UNKNOWN_THREAD = 1094
"""What MySQL says of a connection that has ended by itself since it was listed."""
BACKENDS = ("sqlite", *SERVERS)
MYSQL_SLOWLY = ("sqlite", "postgresql", pytest.param("mysql", marks=pytest.mark.slow))
"""For the first tests of SQL itself: more of them would add minutes to those that are not slow."""
SERVERS_SLOWLY = ("sqlite", *(pytest.param(name, marks=pytest.mark.slow) for name in SERVERS))
"""For all other tests."""


@contextmanager
def new_database(backend: str, folder: Path) -> Iterator[str]:
    """URL of an empty database that is gone afterwards."""
    if backend == "sqlite":
        yield f"sqlite:///{folder}/neardup.db"
        return
    server = sa.create_engine(SERVERS[backend], isolation_level="AUTOCOMMIT")
    name = f"neardup_test_{secrets.token_hex(6)}"
    try:
        with server.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
    except (sa.exc.OperationalError, ModuleNotFoundError) as exc:
        server.dispose()
        reason = f"no {backend} server at {server.url.render_as_string(hide_password=True)}: {exc}"
        if os.environ.get("NEARDUP_TEST_SERVERS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    try:
        yield server.url.set(database=name).render_as_string(hide_password=False)
    finally:
        with server.connect() as connection:
            force = " WITH (FORCE)" if backend == "postgresql" else ""
            connection.execute(sa.text(f"DROP DATABASE {name}{force}"))
        server.dispose()


def disconnect_all(url: str) -> None:
    """Break every other connection to a database, as a restart of its server does."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        disconnect_others(connection)


def disconnect_others(connection: sa.Connection) -> None:
    """Break every connection to a database but this one."""
    if connection.dialect.name == "postgresql":
        connection.execute(
            sa.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    else:
        others = sa.text(
            "SELECT id FROM information_schema.processlist WHERE db = database() AND id <> connection_id()"
        )
        for number in connection.execute(others).scalars().all():
            try:
                connection.execute(sa.text(f"KILL {number}"))
            except sa.exc.OperationalError as exc:
                if exc.orig is None or exc.orig.args[0] != _UNKNOWN_THREAD:
                    raise
