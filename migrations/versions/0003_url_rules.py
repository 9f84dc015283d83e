"""Rules that were learned of URLs.

Revision ID: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from neardup.store.types import COUNTED, ON_MYSQL, UtcDateTime, fixed_bytes

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "url_rules",
        sa.Column("rule_key", fixed_bytes(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("slot", sa.String(16), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("context", sa.Text(), nullable=False),
        sa.Column("trials", sa.Double(), nullable=False),
        sa.Column("hits", sa.Double(), nullable=False),
        sa.Column("clusters", sa.Integer(), nullable=False),
        sa.Column("directories", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("example_url", sa.Text(), nullable=False),
        sa.Column("partner_url", sa.Text(), nullable=False),
        sa.Column("crawl_id", COUNTED),
        sa.Column("decisions", sa.Integer(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("rule_key", name="pk_url_rules"),
        sa.ForeignKeyConstraint(["crawl_id"], ["crawls.id"], name="fk_url_rules_crawl_id"),
        **ON_MYSQL,
    )
    op.create_index("ix_url_rules_host", "url_rules", ["host"])
    op.create_index("ix_url_rules_crawl_id", "url_rules", ["crawl_id"])


def downgrade() -> None:
    op.drop_table("url_rules")
