"""Links of pages, and what PageRank makes of them.

Revision ID: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from neardup.store.types import COUNTED, LONG_BYTES, ON_MYSQL

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "page_links",
        sa.Column("crawl_id", COUNTED, nullable=False),
        sa.Column("page_id", sa.BigInteger(), nullable=False),
        sa.Column("numbers", sa.LargeBinary(), nullable=False),
        sa.Column("links", LONG_BYTES, nullable=False),
        sa.PrimaryKeyConstraint("crawl_id", "page_id", name="pk_page_links"),
        sa.ForeignKeyConstraint(["crawl_id"], ["crawls.id"], name="fk_page_links_crawl_id"),
        sa.ForeignKeyConstraint(["page_id"], ["simhash_values.id"], name="fk_page_links_page_id"),
        sqlite_with_rowid=False,
        **ON_MYSQL,
    )
    op.create_index("ix_page_links_page_id", "page_links", ["page_id"])
    op.create_table(
        "page_ranks",
        sa.Column("page_id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("pagerank", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("page_id", name="pk_page_ranks"),
        sa.ForeignKeyConstraint(["page_id"], ["simhash_values.id"], name="fk_page_ranks_page_id"),
        **ON_MYSQL,
    )


def downgrade() -> None:
    op.drop_table("page_ranks")
    op.drop_table("page_links")
