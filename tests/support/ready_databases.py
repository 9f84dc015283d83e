"""Databases with their tables made and nothing in them, of which most tests need one.

To make and to drop a database takes a server half a second to one, so those of servers are emptied and used
again by the next test of the process, unless a test has changed more than rows.
"""

from __future__ import annotations

import atexit
import re
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.store.schema import VERSION_TABLE, metadata
from tests.support.databases import SERVERS_SLOWLY, disconnect_others, new_database
from tests.support.stores import upgraded

if TYPE_CHECKING:
    from collections.abc import Iterator

_MANY_ROWS = 20_000
"""To delete more takes longer than to make a database."""
_CATALOGUE = """
SELECT attrelid::regclass, attname, atttypid::regtype || '', atttypmod || ' ' || attnotnull
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
UNION SELECT conrelid::regclass, conname, pg_get_constraintdef(oid), '' FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
UNION SELECT indexrelid::regclass, '', pg_get_indexdef(indexrelid), '' FROM pg_index
    JOIN pg_class ON pg_class.oid = indrelid WHERE relnamespace = 'public'::regnamespace
UNION SELECT tgrelid::regclass, tgname, pg_get_triggerdef(oid), '' FROM pg_trigger WHERE NOT tgisinternal
UNION SELECT 0::regclass, '', setconfig::text, '' FROM pg_db_role_setting
    JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database()
ORDER BY 1, 2, 3, 4
"""
"""What tests may have changed of a database of PostgreSQL, beside rows."""


@contextmanager
def ready_database(backend: str, folder: Path) -> Iterator[str]:
    """URL of a database with its tables made and nothing in them."""
    if backend == "sqlite":
        shutil.copyfile(_sqlite_file(), folder / "neardup.db")
        yield f"sqlite:///{folder}/neardup.db"
        return
    unused = _unused(backend)
    database = unused.pop() if unused else _Reused(backend, folder)
    try:
        yield database.url
    finally:
        if database.empty():
            unused.append(database)
        else:
            database.drop()


@pytest.fixture(params=SERVERS_SLOWLY)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database with its tables made and nothing in them, on each kind of server in turn."""
    with ready_database(request.param, tmp_path) as url:
        yield url


@cache
def _sqlite_file() -> Path:
    folder = tempfile.mkdtemp(prefix="neardup-tests-")
    atexit.register(shutil.rmtree, folder)
    upgraded(f"sqlite:///{folder}/n.db")
    return Path(folder, "n.db")


@cache
def _unused(backend: str) -> list[_Reused]:
    """Those that no test has at the moment. The end of the process drops them."""
    databases: list[_Reused] = []

    @atexit.register
    def drop_all() -> None:
        for database in databases:
            database.drop()

    return databases


class _Reused:
    """A database of a server."""

    def __init__(self, backend: str, folder: Path) -> None:
        self._stack = ExitStack()
        self.url = upgraded(self._stack.enter_context(new_database(backend, folder)))
        self._backend = backend
        self._engine = sa.create_engine(self.url, poolclass=sa.NullPool)
        with self._engine.connect() as connection:
            self._made = self._catalogue(connection)

    def drop(self) -> None:
        self._stack.close()

    def empty(self) -> bool:
        """Delete all rows; False if the database is not like a new one then, or that takes too long."""
        with self._engine.connect() as connection:
            disconnect_others(connection)
            if self._catalogue(connection) != self._made:
                return False
            deleted = 0
            for table in reversed(metadata.sorted_tables):
                deleted += connection.execute(sa.delete(table)).rowcount
                if deleted > _MANY_ROWS:
                    return False
            for table in metadata.sorted_tables:
                if table.autoincrement_column is not None:
                    self._restart(connection, table.autoincrement_column)
            connection.commit()
        return True

    def _restart(self, connection: sa.Connection, ids: sa.Column[Any]) -> None:
        """Have the ids of a table begin with 1 again."""
        table = ids.table.name
        if self._backend == "postgresql":
            sequence = f"pg_get_serial_sequence('{table}', '{ids.name}')"
            connection.exec_driver_sql(f"SELECT setval({sequence}, 1, false)")
            return
        query = sa.text(
            "SELECT auto_increment FROM information_schema.tables"
            " WHERE table_schema = database() AND table_name = :table"
        )
        if connection.execute(query, {"table": table}).scalar_one() > 1:
            connection.exec_driver_sql(f"ALTER TABLE {table} AUTO_INCREMENT = 1")

    def _catalogue(self, connection: sa.Connection) -> str:
        """All that a test may have changed beside rows; the revision, too, which is no row of a crawl."""
        queries = [f"SELECT * FROM {VERSION_TABLE}"]
        if self._backend == "postgresql":
            queries.append(_CATALOGUE)
        else:
            tables = connection.exec_driver_sql("SHOW TABLES").scalars()
            queries += [f"SHOW CREATE TABLE {table}" for table in sorted(tables)] + ["SHOW TRIGGERS"]
        rows = (connection.exec_driver_sql(query).all() for query in queries)
        return re.sub(r" AUTO_INCREMENT=\d+", "", str(list(rows)))
