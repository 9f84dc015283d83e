from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from neardup.store import migrate
from neardup.store.engine import database_url as checked
from neardup.store.engine import make_engine
from neardup.store.migrate import State
from neardup.store.schema import REVISION, VERSION_TABLE, metadata

if TYPE_CHECKING:
    from pathlib import Path


def tables(connection: sa.Connection) -> set[str]:
    return set(sa.inspect(connection).get_table_names())


def test_revision_is_that_of_the_newest_migration(tmp_path: Path) -> None:
    engine = make_engine(checked(f"sqlite:///{tmp_path}/n.db"))
    with engine.begin() as connection:
        assert ScriptDirectory.from_config(migrate.config(connection)).get_current_head() == REVISION
    engine.dispose()


def test_from_nothing_up_and_down_again(database_url: str) -> None:
    engine = make_engine(checked(database_url))
    with engine.begin() as connection:
        assert migrate.state(connection) is State.MISSING
        migrate.upgrade(connection)
    with engine.begin() as connection:
        assert migrate.state(connection) is State.CURRENT
        assert tables(connection) == {*metadata.tables, VERSION_TABLE}
        migrate.downgrade(connection, "base")
    with engine.begin() as connection:
        assert tables(connection) == {VERSION_TABLE}
        assert migrate.state(connection) is State.MISSING
    engine.dispose()


def test_models_equal_migrations(database_url: str) -> None:
    engine = make_engine(checked(database_url))
    with engine.begin() as connection:
        migrate.upgrade(connection)
    with engine.begin() as connection:
        command.check(migrate.config(connection))
    engine.dispose()


def test_upgrade_twice_is_harmless_and_leaves_other_tables_alone(database_url: str) -> None:
    engine = make_engine(checked(database_url))
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        connection.execute(sa.text("INSERT INTO alembic_version VALUES ('theirs')"))
        migrate.upgrade(connection)
        migrate.upgrade(connection)
    with engine.begin() as connection:
        command.check(migrate.config(connection))
        migrate.downgrade(connection, "base")
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == "theirs"
    engine.dispose()
