from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from neardup.fingerprint.scheme import Scheme
from neardup.store import migrate
from neardup.store.engine import database_url as checked
from neardup.store.engine import make_engine
from neardup.store.migrate import State
from neardup.store.schema import REVISION, VERSION_TABLE, metadata

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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


def test_rows_survive_every_migration_up_and_down(database_url: str) -> None:
    engine = make_engine(checked(database_url))
    with engine.begin() as connection:
        command.upgrade(migrate.config(connection), "0001")
    old = sa.MetaData()
    with engine.begin() as connection:
        old.reflect(connection, only=["crawls", "simhash_values", "duplicate_values"])
        now = datetime(2026, 11, 21, tzinfo=None)
        scheme = "word-tf/mmh3-x64-128/seed0/v1"
        crawl = {"id": 1, "spider": "s", "started_at": now, "scheme": scheme, "settings": "{}"}
        connection.execute(old.tables["crawls"].insert(), [crawl])
        page = {
            "scheme": scheme,
            "host": "h",
            "features": 30,
            "kind": "new",
            "crawl_id": 1,
            "last_crawl_id": 1,
        }
        page |= {"first_seen": now, "last_seen": now, "links_skipped": 0}
        rows = [page | {"id": i, "actual_url": f"u{i}", "url_key": bytes([i] * 16)} for i in (1, 2)]
        connection.execute(old.tables["simhash_values"].insert(), rows)
        relation: dict[str, object] = {
            "actual_hash_id": 1,
            "duplicate_hash_id": 2,
            "percentage": 100.0,
            "hamming_distance": 0,
        }
        relation |= {"crawl_id": 1, "found_at": now}
        connection.execute(old.tables["duplicate_values"].insert(), [relation])
    sizes = {"crawls": 1, "simhash_values": 2, "duplicate_values": 1}

    with engine.begin() as connection:
        migrate.upgrade(connection)
    with engine.begin() as connection:
        assert {name: _rows(connection, name) for name in sizes} == sizes
        assert connection.execute(sa.text("SELECT DISTINCT scheme FROM simhash_values")).scalars().all() == [
            str(Scheme(content="body"))  # alt texts were not read then
        ]
        migrate.downgrade(connection, "0001")
    with engine.begin() as connection:
        assert {name: _rows(connection, name) for name in sizes} == sizes
        assert connection.execute(sa.text("SELECT scheme FROM crawls")).scalars().all() == [scheme]
    engine.dispose()


def _rows(connection: sa.Connection, name: str) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(sa.table(name))).scalar_one())


def test_models_equal_migrations(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    engine = make_engine(checked(database_url))
    with engine.begin() as connection:
        migrate.upgrade(connection)
    with engine.begin() as connection:
        command.check(migrate.config(connection))
    assert "No new upgrade operations" in capsys.readouterr().out  # not in what was standard output before
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
