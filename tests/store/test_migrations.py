"""Tables are made by migrations, and a later version brings those of this one on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.script import ScriptDirectory

from neardup.address import Address
from neardup.cli.main import main
from neardup.detection.verdict import Kind
from neardup.errors import SchemaOutdated
from neardup.fingerprint.scheme import Scheme
from neardup.store import migrate
from neardup.store.engine import database_url as checked
from neardup.store.engine import make_engine
from neardup.store.migrate import State
from neardup.store.schema import REVISION, VERSION_TABLE, metadata
from neardup.store.store import Store
from neardup.text.headline import of_texts, to_bytes
from tests.support.places import ROOT
from tests.support.stores import pages_of, relations_of, upgraded, write
from tests.support.verdicts import duplicate, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def engine(empty_url: str) -> Iterator[sa.Engine]:
    made = make_engine(checked(empty_url))
    yield made
    made.dispose()


def described(engine: sa.Engine, *, there: bool = False) -> dict[str, Any]:
    """All that the database tells of its tables, but for the order of their constraints; ``there``: of those
    that are there.
    """
    found = sa.inspect(engine)
    tables: dict[str, Any] = {}
    names = {*metadata.tables, VERSION_TABLE}
    for name in names & set(found.get_table_names()) if there else names:
        columns = [{**column, "type": repr(column["type"])} for column in found.get_columns(name)]
        constraints = [
            *found.get_foreign_keys(name),
            *found.get_unique_constraints(name),
            *found.get_check_constraints(name),
            *found.get_indexes(name),
        ]
        tables[name] = {
            "columns": columns,
            "primary key": found.get_pk_constraint(name),
            "constraints": sorted(map(repr, constraints)),
            # Older releases of SQLAlchemy know options of tables on MySQL only.
            "options": found.get_table_options(name) if engine.name in {"mysql", "mariadb"} else {},
        }
    return tables


class TestTables:
    def test_from_nothing(self, engine: sa.Engine) -> None:
        with engine.begin() as connection:
            assert migrate.state(connection) is State.MISSING
            migrate.upgrade(connection)
        with engine.begin() as connection:
            assert migrate.state(connection) is State.CURRENT
        assert set(sa.inspect(engine).get_table_names()) == {*metadata.tables, VERSION_TABLE}

    def test_migrations_make_what_is_made_without_them(self, engine: sa.Engine) -> None:
        with engine.begin() as connection:
            command.upgrade(migrate.config(connection), "head")
        migrated = described(engine)
        metadata.drop_all(engine)
        with engine.begin() as connection:
            connection.execute(sa.text(f"DROP TABLE {VERSION_TABLE}"))
            migrate.upgrade(connection)

        assert migrated == described(engine)

    def test_alembic_finds_no_difference(self, engine: sa.Engine, capsys: pytest.CaptureFixture[str]) -> None:
        with engine.begin() as connection:
            migrate.upgrade(connection)
        with engine.begin() as connection:
            command.check(migrate.config(connection))

        assert (
            "No new upgrade operations" in capsys.readouterr().out
        )  # not in what was standard output before

    def test_upgrade_twice_is_harmless_and_leaves_other_tables_alone(self, engine: sa.Engine) -> None:
        with engine.begin() as connection:
            connection.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
            connection.execute(sa.text("INSERT INTO alembic_version VALUES ('theirs')"))
            migrate.upgrade(connection)
            migrate.upgrade(connection)
        with engine.begin() as connection:
            command.check(migrate.config(connection))
            assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == "theirs"

    def test_revision_is_that_of_the_newest_migration(self, tmp_path: Path) -> None:
        engine = make_engine(checked(f"sqlite:///{tmp_path}/n.db"))
        with engine.begin() as connection:
            assert ScriptDirectory.from_config(migrate.config(connection)).get_current_head() == REVISION
        engine.dispose()


class TestSecond:
    """Headlines, evidence and document frequencies, which stores of the first tables lack."""

    def test_up_and_down_again(self, engine: sa.Engine, empty_url: str) -> None:
        with engine.begin() as connection:
            command.upgrade(migrate.config(connection), "0001")
        first = described(engine, there=True)
        with engine.begin() as connection:
            connection.execute(sa.text(_OLD_CRAWL))
            connection.execute(sa.text(_OLD_PAGE), {"key": Address("u").key})
            migrate.upgrade(connection)

        with Store.open(empty_url, scheme="s") as store:
            (known,) = store.known_pages()
            (stored,) = pages_of(store)
            # The crawl that comes next fills in what was not stored before.
            write(store, page(1_000_000_001, "u", Kind.UNCHANGED, headline=of_texts("One title")), crawl=1)
            (later,) = pages_of(store)
        assert (known.url, known.headline, stored["headline"]) == ("u", None, None)
        assert later["headline"] == to_bytes(of_texts("One title"))

        with engine.begin() as connection:
            command.downgrade(migrate.config(connection), "0001")
            assert migrate.state(connection) is State.OLDER
        assert described(engine, there=True) == first


_OLD_CRAWL = (
    "INSERT INTO crawls (id, spider, started_at, scheme, settings, batches, shared, reconciled_batches)"
    " VALUES (1, 's', '2026-01-01 00:00:00', 's', '{}', 1, 1, 1)"
)
_OLD_PAGE = (
    "INSERT INTO simhash_values (id, actual_url, url_key, host, scheme, features, kind, crawl_id,"
    " last_crawl_id, first_seen, last_seen, links_withheld, batch_id)"
    " VALUES (1000000001, 'u', :key, '', 's', 3, 'too_short', 1, 1,"
    " '2026-01-01 00:00:00', '2026-01-01 00:00:00', 0, 1000000001)"
)


LATER = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{revision}"


def upgrade():
    op.add_column("crawls", sa.Column("colour", sa.Integer()))
"""


@pytest.fixture(scope="module")
def later(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a neardup stands that has one migration more."""
    folder = tmp_path_factory.mktemp("later")
    for part in ("neardup", "migrations"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "migrations" / "versions" / "9999_colour.py").write_text(LATER.format(revision=REVISION))
    schema = folder / "neardup" / "store" / "schema.py"
    text = schema.read_text()
    assert f'REVISION = "{REVISION}"' in text
    schema.write_text(text.replace(f'REVISION = "{REVISION}"', 'REVISION = "9999"'))
    return folder


@pytest.mark.slow
class TestLaterVersion:
    def test_its_tables(self, later: Path, empty_url: str) -> None:
        def run(verb: str) -> tuple[int, str]:
            done = subprocess.run(
                [sys.executable, "-m", "neardup", "db", verb, "--database", empty_url],
                cwd=later,
                env=os.environ | {"PYTHONPATH": str(later), "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
            return done.returncode, done.stdout + done.stderr

        with Store.open(upgraded(empty_url), scheme=str(Scheme())) as store:
            write(store, page(1, "u"), duplicate(2, "v", 1))
            before = pages_of(store), relations_of(store)

        if not empty_url.startswith("sqlite"):  # whose tables any command brings on
            code, said = run("info")
            assert code == 1
            assert f"is of the older revision {REVISION}; run: neardup db upgrade" in said
        assert run("upgrade")[0] == 0

        code, said = run("info")
        assert (code, "rows of simhash_values 2" in " ".join(said.split())) == (0, True), said
        engine = make_engine(checked(empty_url))
        assert "colour" in {column["name"] for column in sa.inspect(engine).get_columns("crawls")}
        engine.dispose()
        with pytest.raises(SchemaOutdated, match="revision 9999, which this neardup does not know"):
            Store.open(empty_url, scheme=str(Scheme()))
        assert main(["db", "upgrade", "--database", empty_url]) == 1  # there is no way back
        engine = make_engine(checked(empty_url))
        with engine.begin() as connection:
            connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '{REVISION}'"))
        engine.dispose()
        with Store.open(empty_url, scheme=str(Scheme())) as store:
            assert (pages_of(store), relations_of(store)) == before
