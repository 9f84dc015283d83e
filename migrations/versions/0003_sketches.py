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
    with op.batch_alter_table("simhash_values") as pages:
        pages.add_column(sa.Column("sketch", sa.LargeBinary()))
        pages.add_column(sa.Column("flagged_at", time))
        pages.alter_column(
            "scheme", type_=sa.String(255), existing_type=sa.String(64), existing_nullable=False
        )
    with op.batch_alter_table("crawls") as crawls:
        crawls.alter_column(
            "scheme", type_=sa.String(255), existing_type=sa.String(64), existing_nullable=False
        )
    with op.batch_alter_table("duplicate_values") as relations:
        relations.add_column(sa.Column("resemblance", sa.Double()))
    _rename_scheme(_OLD_SCHEME, _NEW_SCHEME)


def downgrade() -> None:
    _rename_scheme(_NEW_SCHEME, _OLD_SCHEME)
    with op.batch_alter_table("duplicate_values") as relations:
        relations.drop_column("resemblance")
    with op.batch_alter_table("crawls") as crawls:
        crawls.alter_column(
            "scheme", type_=sa.String(64), existing_type=sa.String(255), existing_nullable=False
        )
    with op.batch_alter_table("simhash_values") as pages:
        pages.alter_column(
            "scheme", type_=sa.String(64), existing_type=sa.String(255), existing_nullable=False
        )
        for name in ("flagged_at", "sketch"):
            pages.drop_column(name)


def _rename_scheme(old: str, new: str) -> None:
    for name in ("crawls", "simhash_values"):
        table = sa.table(name, sa.column("scheme", sa.String))
        op.execute(table.update().where(table.c.scheme == old).values(scheme=new))
