"""Headlines of pages, evidence of relations, and on how many pages of a host a shingle stands.

Revision ID: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from neardup.store.types import LONG_BYTES, ON_MYSQL, UtcDateTime, fixed_bytes

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("simhash_values", sa.Column("headline", fixed_bytes(80)))
    op.add_column("duplicate_values", sa.Column("evidence", sa.String(16)))
    op.create_table(
        "document_frequencies",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("counts", LONG_BYTES, nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("host", name="pk_document_frequencies"),
        **ON_MYSQL,
    )
    op.create_index("ix_document_frequencies_pages", "document_frequencies", ["pages"])


def downgrade() -> None:
    op.drop_table("document_frequencies")
    op.drop_column("duplicate_values", "evidence")
    op.drop_column("simhash_values", "headline")
