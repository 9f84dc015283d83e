"""Making and changing the tables, by Alembic."""

from __future__ import annotations

import importlib.resources
import sys
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Column, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect, select

from neardup.errors import SchemaOutdated
from neardup.store.schema import REVISION, VERSION_TABLE, metadata

if TYPE_CHECKING:
    from alembic.config import Config
    from sqlalchemy import Connection

_WAY_OUT = "run: neardup db upgrade, with the same --database URL if you gave one"

_VERSION = Table(
    VERSION_TABLE,
    MetaData(),  # of its own: the tables of the schema are ours, this one is Alembic's
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
"""As Alembic makes it."""


class State(Enum):
    """How the tables of a database relate to this version of neardup."""

    MISSING = auto()
    OLDER = auto()
    CURRENT = auto()
    UNKNOWN = auto()


def upgrade(connection: Connection) -> None:
    """Bring the tables to this version, from nothing or from an older one."""
    if state(connection) is State.MISSING:
        # The first crawl of a project starts here, and should not wait 0.2 s for Alembic's import. A test
        # holds that all migrations together make the same tables.
        metadata.create_all(connection, checkfirst=False)
        _VERSION.create(connection, checkfirst=True)
        connection.execute(insert(_VERSION).values(version_num=REVISION))
        return
    from alembic import command  # noqa: PLC0415

    command.upgrade(config(connection), "head")


def current_revision(connection: Connection) -> str | None:
    """The revision of the tables; None if there are none."""
    # Not by Alembic: its import takes 0.2 s, which every start of a crawl would pay.
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(select(_VERSION.c.version_num)).scalar_one_or_none()


def state(connection: Connection) -> State:
    """Compare the tables' revision with those this version has migrations for."""
    found = current_revision(connection)
    if found is None:
        return State.MISSING
    if found == REVISION:
        return State.CURRENT
    from alembic.script import ScriptDirectory  # noqa: PLC0415

    known = {script.revision for script in ScriptDirectory.from_config(config(connection)).walk_revisions()}
    return State.OLDER if found in known else State.UNKNOWN


def require_current(connection: Connection, *, database: str) -> None:
    """SchemaOutdated, with the way out, unless the tables are those of this version of neardup."""
    found = state(connection)
    if found is State.MISSING:
        raise SchemaOutdated(f"database {database} has no tables of neardup yet; {_WAY_OUT}")
    if found is State.OLDER:
        raise SchemaOutdated(
            f"database {database} is of the older revision {current_revision(connection)}; {_WAY_OUT}"
        )
    if found is State.UNKNOWN:
        raise SchemaOutdated(
            f"database {database} is of revision {current_revision(connection)}, which this neardup does"
            " not know: a newer one made it. Upgrade neardup"
        )


def config(connection: Connection) -> Config:
    """Alembic's configuration for our migrations on a connection of ours."""
    from alembic.config import Config  # noqa: PLC0415

    # Alembic's default is what standard output was when its module was imported.
    made = Config(stdout=sys.stdout)
    made.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    made.attributes["connection"] = connection
    return made


def _scripts() -> Path:
    """The migrations: inside the package when installed, beside it in a checkout."""
    package = Path(str(importlib.resources.files("neardup")))
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"
