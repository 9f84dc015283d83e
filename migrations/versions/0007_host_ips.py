"""IP addresses of hosts, by which mirrors are found.

Revision ID: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from neardup.store.types import ON_MYSQL, UtcDateTime

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "host_ips",
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("ip", sa.String(45), nullable=False),
        sa.Column("first_seen", UtcDateTime(), nullable=False),
        sa.Column("last_seen", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("host", "ip", name="pk_host_ips"),
        **ON_MYSQL,
    )


def downgrade() -> None:
    op.drop_table("host_ips")
