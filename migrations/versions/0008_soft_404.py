"""Pages that a site serves in place of pages that it does not have.

Revision ID: 0008
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("simhash_values", sa.Column("soft_404", sa.SmallInteger()))


def downgrade() -> None:
    op.drop_column("simhash_values", "soft_404")
