"""Decisions of people, and texts of pages.

Revision ID: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from neardup.store.types import COUNTED, LONG_BYTES, LONG_TEXT, ON_MYSQL, UtcDateTime, fixed_bytes

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "decisions",
        sa.Column("id", COUNTED, autoincrement=True, nullable=False),
        sa.Column("page_key", fixed_bytes(16), nullable=False),
        sa.Column("page_url", LONG_TEXT, nullable=False),
        sa.Column("other_key", fixed_bytes(16)),
        sa.Column("other_url", LONG_TEXT),
        sa.Column("decision", sa.String(16), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("decided_by", sa.String(255), nullable=False),
        sa.Column("decided_at", UtcDateTime(), nullable=False),
        sa.Column("undone_by", sa.String(255)),
        sa.Column("undone_at", UtcDateTime()),
        sa.Column("before_key", fixed_bytes(16)),
        sa.Column("before_distance", sa.SmallInteger()),
        sa.Column("before_evidence", sa.String(16)),
        sa.PrimaryKeyConstraint("id", name="pk_decisions"),
        **ON_MYSQL,
    )
    op.create_index("ix_decisions_page_key", "decisions", ["page_key"])
    op.create_table(
        "page_texts",
        sa.Column("page_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("text", LONG_BYTES, nullable=False),
        sa.Column("seen_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("page_id", name="pk_page_texts"),
        sa.ForeignKeyConstraint(["page_id"], ["simhash_values.id"], name="fk_page_texts_page_id"),
        **ON_MYSQL,
    )


def downgrade() -> None:
    op.drop_table("page_texts")
    op.drop_table("decisions")
