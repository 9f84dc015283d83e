"""Alembic's entry: runs on the connection that neardup hands over, never on one of its own."""

from __future__ import annotations

from alembic import context

from neardup.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    # The database may hold tables of other applications; they are not ours to compare or to drop.
    include_name=lambda name, kind, _: kind != "table" or name in metadata.tables,
)
with context.begin_transaction():
    context.run_migrations()
