"""Which batch wrote a page last, which crawls are shared, and the versions of pages.

Revision ID: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from neardup.store.types import Unsigned64, UtcDateTime

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("crawls", sa.Column("shared", sa.SmallInteger(), server_default="1", nullable=False))
    op.add_column(
        "simhash_values", sa.Column("batch_id", sa.BigInteger(), server_default="0", nullable=False)
    )
    op.create_index("ix_simhash_values_batch_id", "simhash_values", ["batch_id"])
    counted = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "page_versions",
        sa.Column("id", counted, autoincrement=True, nullable=False),
        sa.Column("page_id", sa.BigInteger(), nullable=False),
        sa.Column("crawl_id", counted, nullable=False),
        sa.Column("seen_at", UtcDateTime(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("hash_value", Unsigned64()),
        sa.Column("features", sa.Integer(), nullable=False),
        sa.Column("own_distance", sa.SmallInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_page_versions"),
        sa.ForeignKeyConstraint(
            ["page_id"], ["simhash_values.id"], name="fk_page_versions_page_id_simhash_values"
        ),
        sa.ForeignKeyConstraint(["crawl_id"], ["crawls.id"], name="fk_page_versions_crawl_id_crawls"),
        sa.UniqueConstraint("page_id", "seen_at", name="uq_page_versions_page_id_seen_at"),
        mysql_engine="InnoDB",
        mysql_charset="utf8mb4",
        mysql_collate="utf8mb4_bin",
    )
    op.create_index("ix_page_versions_crawl_id", "page_versions", ["crawl_id"])


def downgrade() -> None:
    op.drop_table("page_versions")
    op.drop_index("ix_simhash_values_batch_id", "simhash_values")
    op.drop_column("simhash_values", "batch_id")
    op.drop_column("crawls", "shared")
