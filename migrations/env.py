"""Alembic's entry: runs on the connection that neardup hands over, never on one of its own."""

from __future__ import annotations

from typing import Any

from alembic import context
from sqlalchemy import String

from neardup.store.schema import VERSION_TABLE, metadata


def _types_differ(_context: Any, _column: Any, _own_column: Any, found: Any, own: Any) -> bool | None:
    """SQLite keeps a text of any length, and its migrations leave the length of a column as it was; None: as
    Alembic has it.
    """
    is_sqlite = context.config.attributes["connection"].dialect.name == "sqlite"
    return False if is_sqlite and isinstance(found, String) and isinstance(own, String) else None


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    compare_type=_types_differ,
    # The database may hold tables of other applications; they are not ours to compare or to drop.
    include_name=lambda name, kind, _: kind != "table" or name in metadata.tables,
)
with context.begin_transaction():
    context.run_migrations()
