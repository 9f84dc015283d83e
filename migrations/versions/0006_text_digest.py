"""The digest of a page's purified text.

Revision ID: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # NULL of the pages that are there: a crawl that sees one again stores its digest.
    op.add_column("simhash_values", sa.Column("text_digest", sa.BigInteger()))


def downgrade() -> None:
    op.drop_column("simhash_values", "text_digest")
