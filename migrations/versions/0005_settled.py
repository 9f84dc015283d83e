"""How many batches of a crawl have been reconciled with all others.

Revision ID: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("crawls", sa.Column("settled", sa.Integer(), server_default="0", nullable=False))
    # What is there was reconciled as far as it could be: a crawl is not to compare all of it again.
    op.execute("UPDATE crawls SET settled = batches")


def downgrade() -> None:
    op.drop_column("crawls", "settled")
