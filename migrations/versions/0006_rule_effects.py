"""What came of rules of URLs in each crawl, unique pages by requests made, and declared canonical URLs.

Revision ID: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from neardup.store.types import COUNTED, LONG_TEXT, ON_MYSQL, fixed_bytes

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rule_effects",
        sa.Column("rule_key", fixed_bytes(16), nullable=False),
        sa.Column("crawl_id", COUNTED, nullable=False),
        sa.Column("deferred", sa.Integer(), nullable=False),
        sa.Column("dropped", sa.Integer(), nullable=False),
        sa.Column("explored", sa.Integer(), nullable=False),
        sa.Column("copies", sa.Integer(), nullable=False),
        sa.Column("others", sa.Integer(), nullable=False),
        sa.Column("saved", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("rule_key", "crawl_id", name="pk_rule_effects"),
        sa.ForeignKeyConstraint(["rule_key"], ["url_rules.rule_key"], name="fk_rule_effects_rule_key"),
        sa.ForeignKeyConstraint(["crawl_id"], ["crawls.id"], name="fk_rule_effects_crawl_id"),
        **ON_MYSQL,
    )
    op.create_index("ix_rule_effects_crawl_id", "rule_effects", ["crawl_id"])
    op.add_column("crawls", sa.Column("curve", sa.Text()))
    op.add_column("simhash_values", sa.Column("declared_url", LONG_TEXT))


def downgrade() -> None:
    op.drop_column("simhash_values", "declared_url")
    op.drop_column("crawls", "curve")
    op.drop_table("rule_effects")
