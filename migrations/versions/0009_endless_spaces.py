"""Endless spaces that a crawl has left.

Revision ID: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from neardup.store.types import LONG_TEXT

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("crawls", sa.Column("endless_spaces", LONG_TEXT))


def downgrade() -> None:
    op.drop_column("crawls", "endless_spaces")
