"""What was measured of a crawl's recall, and how often it has written: whether a snapshot is still true.

Revision ID: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("crawls", sa.Column("recall_checked", sa.Integer()))
    op.add_column("crawls", sa.Column("recall_found", sa.Integer()))
    op.add_column("crawls", sa.Column("batches", sa.Integer(), server_default="0", nullable=False))


def downgrade() -> None:
    for name in ("recall_checked", "recall_found", "batches"):
        op.drop_column("crawls", name)
