"""The store on real servers: what is opened, refused, and read back."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.errors import ConfigurationError, DatabaseUnavailable, SchemaOutdated, SchemeMismatch
from neardup.fingerprint.scheme import Scheme
from neardup.store import engine as engines
from neardup.store.engine import database_url as checked
from neardup.store.engine import make_engine, masked, unavailable
from neardup.store.schema import VERSION_TABLE, crawls
from neardup.store.store import Store
from neardup.store.types import Unsigned64, UtcDateTime
from tests.support.faults import small_disk

if TYPE_CHECKING:
    from pathlib import Path


class TestTypes:
    @pytest.mark.parametrize("value", [0, 1, 2**63 - 1, 2**63, 2**64 - 1, None])
    def test_unsigned_64_bits_round_trip(self, empty_url: str, value: int | None) -> None:
        engine = make_engine(checked(empty_url))
        table = sa.Table("numbers", sa.MetaData(), sa.Column("n", Unsigned64))
        with engine.begin() as connection:
            table.create(connection)
            connection.execute(sa.insert(table).values(n=value))
        with engine.connect() as connection:
            assert connection.execute(sa.select(table.c.n)).scalar_one() == value
            found = connection.execute(sa.select(sa.func.count()).where(table.c.n == value)).scalar_one()
            assert found == 1
        engine.dispose()

    @pytest.mark.parametrize("value", [-1, 2**64])
    def test_what_is_no_unsigned_64_bit_integer_is_refused(self, value: int) -> None:
        with pytest.raises(ValueError, match="is not an unsigned 64-bit integer"):
            Unsigned64().process_bind_param(value, sa.create_engine("sqlite://").dialect)

    def test_moments_keep_microseconds_and_zone(self, empty_url: str) -> None:
        from datetime import datetime, timedelta, timezone

        moment = datetime(2026, 11, 21, 4, 30, 5, 123456, tzinfo=timezone(timedelta(hours=5, minutes=30)))
        engine = make_engine(checked(empty_url))
        table = sa.Table("moments", sa.MetaData(), sa.Column("at", UtcDateTime))
        with engine.begin() as connection:
            table.create(connection)
            connection.execute(sa.insert(table).values(at=moment))
        with engine.connect() as connection:
            found = connection.execute(sa.select(table.c.at)).scalar_one()
        engine.dispose()
        assert found == moment
        assert found.utcoffset() == timedelta(0)


class TestUrls:
    @pytest.mark.parametrize(
        ("text", "driver"),
        [
            ("sqlite:////x/y.db", "sqlite+pysqlite"),
            ("postgresql://u:p@h/d", "postgresql+psycopg"),
            ("postgresql+psycopg2://u:p@h/d", "postgresql+psycopg"),
            ("mysql://u:p@h/d", "mysql+pymysql"),
            ("mariadb://u:p@h/d", "mysql+pymysql"),
        ],
    )
    def test_driver_is_always_the_one_we_test_with(self, text: str, driver: str) -> None:
        assert checked(text).drivername == driver

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("oracle://u:secret@h/d", r"oracle://u:\*\*\*@h/d: must be like sqlite:///PATH, postgresql://"),
            ("not a url, secret", "cannot be read; it must be like sqlite:///PATH"),
            ("postgresql://u:secret@h", "names no database"),
            ("sqlite://", "must be a file"),
            ("sqlite:///:memory:", "must be a file"),
            ("sqlite:///file:x?mode=memory&uri=true", "must be a file"),
        ],
    )
    def test_others_are_refused_and_no_password_is_shown(self, text: str, message: str) -> None:
        with pytest.raises(ConfigurationError, match=message) as caught:
            checked(text)

        assert "secret" not in str(caught.value)

    def test_masked_hides_passwords_wherever_they_stand(self) -> None:
        url = checked("postgresql://u:secret@h/d?sslpassword=secret&sslkey=secret&application_name=x")

        assert "secret" not in masked(url)
        assert "application_name=x" in masked(url)

    def test_drivers_own_words_do_not_show_the_password(self) -> None:
        error = unavailable(checked("mysql://u:secret@h/d"), OSError("denied: using password secret"))

        assert "secret" not in str(error)
        assert "denied" in str(error)

    def test_missing_driver_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import sys

        monkeypatch.setitem(sys.modules, "pymysql", None)

        with pytest.raises(ConfigurationError, match=r'pip install "neardup\[mysql\]"'):
            make_engine(checked("mysql://u:secret@h/d"))


class TestOpen:
    def test_sqlite_makes_folder_file_and_tables(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "folder" / "n.db"

        with Store.open(f"sqlite:///{path}", scheme=str(Scheme())) as store:
            assert store.location == str(path)
            assert list(store.known_pages()) == []
        assert path.exists()

    def test_sqlite_is_not_made_for_a_mere_reader(self, tmp_path: Path) -> None:
        with pytest.raises(DatabaseUnavailable, match="a crawl makes it"):
            Store.open(f"sqlite:///{tmp_path}/n.db", scheme=str(Scheme()), create=False)

        assert not (tmp_path / "n.db").exists()

    def test_read_only_file_system_is_named(self, tmp_path: Path) -> None:
        with small_disk(tmp_path):
            Store.open(f"sqlite:///{tmp_path}/n.db", scheme=str(Scheme())).close()
            subprocess.run(["mount", "-o", "remount,ro", str(tmp_path)], check=True)

            with pytest.raises(DatabaseUnavailable, match="its file system is read-only: a copy elsewhere"):
                Store.open(f"sqlite:///{tmp_path}/n.db", scheme=None, create=False)

    def test_servers_want_an_explicit_upgrade(self, empty_url: str) -> None:
        if empty_url.startswith("sqlite"):
            Store.open(empty_url, scheme=str(Scheme())).close()
        else:
            with pytest.raises(SchemaOutdated, match="run: neardup db upgrade"):
                Store.open(empty_url, scheme=str(Scheme()))

    def test_tables_of_a_newer_version_are_left_alone(self, database_url: str) -> None:
        engine = make_engine(checked(database_url))
        with engine.begin() as connection:
            connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
        engine.dispose()

        with pytest.raises(SchemaOutdated, match="revision 9999, which this neardup does not know"):
            Store.open(database_url, scheme=str(Scheme()))

    def test_another_scheme_is_refused(self, database_url: str) -> None:
        with Store.open(database_url, scheme="other/1") as store:
            store.begin_crawl(spider="s", settings={})

        with pytest.raises(
            SchemeMismatch, match=f"'other/1', the settings make '{re.escape(str(Scheme()))}'"
        ):
            Store.open(database_url, scheme=str(Scheme()))

    def test_not_a_database(self, tmp_path: Path) -> None:
        path = tmp_path / "n.db"
        path.write_bytes(b"certainly no database" * 100)

        with pytest.raises(
            DatabaseUnavailable, match=r"n\.db cannot be used: .*not a database .*check the path"
        ):
            Store.open(f"sqlite:///{path}", scheme=str(Scheme()))

    @pytest.mark.parametrize("create", [False, True])
    def test_folder_in_its_place(self, create: bool, tmp_path: Path) -> None:
        with pytest.raises(DatabaseUnavailable, match="it is a folder, not a file"):
            Store.open(f"sqlite:///{tmp_path}", scheme=None, create=create)

    def test_folder_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()

        with pytest.raises(DatabaseUnavailable, match="check the path and its permissions"):
            Store.open(f"sqlite:///{tmp_path}/file/n.db", scheme=str(Scheme()))

    def test_locked_before_there_are_tables(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(engines, "BUSY_SECONDS", 0.1)
        holder = sqlite3.connect(tmp_path / "n.db", isolation_level=None)
        holder.execute("PRAGMA journal_mode = WAL")
        holder.execute("BEGIN IMMEDIATE")

        with pytest.raises(DatabaseUnavailable, match=r"locked .*another program holds a lock"):
            Store.open(f"sqlite:///{tmp_path}/n.db", scheme=str(Scheme()))

        holder.close()

    @pytest.mark.parametrize(
        "url",
        ["postgresql://u:secret@127.0.0.1:1/d", "mysql://u:secret@127.0.0.1:1/d"],
        ids=["postgresql", "mysql"],
    )
    def test_server_away(self, url: str) -> None:
        with pytest.raises(DatabaseUnavailable, match="check that the server runs") as caught:
            Store.open(url, scheme=str(Scheme()))

        assert "secret" not in str(caught.value)
        assert "u:***@127.0.0.1:1/d" in str(caught.value)


class TestCrawls:
    def test_begin_and_finish(self, database_url: str) -> None:
        with Store.open(database_url, scheme=str(Scheme())) as store:
            first = store.begin_crawl(spider="s", settings={"NEARDUP_ACTION": "drop"})
            second = store.begin_crawl(spider="x" * 300, settings={})
            store.finish_crawl(first, reason="finished", counts={"pages": 3, "duplicates": 1})

            assert first != second
            with store.engine.connect() as connection:
                row: dict[str, Any] = dict(
                    connection.execute(sa.select(crawls).where(crawls.c.id == first)).mappings().one()
                )
        assert row["finished_at"] >= row["started_at"]
        assert (row["spider"], row["finish_reason"], row["scheme"]) == ("s", "finished", str(Scheme()))
        assert row["settings"] == '{"NEARDUP_ACTION": "drop"}'
        assert (row["pages"], row["duplicates"], row["new"]) == (3, 1, None)
