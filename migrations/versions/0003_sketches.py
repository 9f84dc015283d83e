"""Sketches, verified resemblances, flagged canonical pages, and longer names of schemes.

Revision ID: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# The fingerprints are made as before; the name now tells the content and the sketches, too.
_OLD_SCHEME = "word-tf/mmh3-x64-128/seed0/v1"
_NEW_SCHEME = "word-tf/body/mmh3-x64-128-seed0/minwise-3x1024/v1"


def upgrade() -> None:
    time = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql")
    op.add_column("simhash_values", sa.Column("sketch", sa.LargeBinary()))
    op.add_column("simhash_values", sa.Column("flagged_at", time))
    op.add_column("duplicate_values", sa.Column("resemblance", sa.Double()))
    _set_scheme_length(64, 255)
    _rename_scheme(_OLD_SCHEME, _NEW_SCHEME)


def downgrade() -> None:
    _rename_scheme(_NEW_SCHEME, _OLD_SCHEME)
    _set_scheme_length(255, 64)
    op.drop_column("duplicate_values", "resemblance")
    op.drop_column("simhash_values", "flagged_at")
    op.drop_column("simhash_values", "sketch")


def _set_scheme_length(old: int, new: int) -> None:
    # SQLite keeps texts of any length, and would have to copy the table, which its foreign keys forbid.
    if op.get_bind().dialect.name != "sqlite":
        for name in ("crawls", "simhash_values"):
            op.alter_column(
                name, "scheme", type_=sa.String(new), existing_type=sa.String(old), existing_nullable=False
            )


def _rename_scheme(old: str, new: str) -> None:
    for name in ("crawls", "simhash_values"):
        table = sa.table(name, sa.column("scheme", sa.String))
        op.execute(table.update().where(table.c.scheme == old).values(scheme=new))
