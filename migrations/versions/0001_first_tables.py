"""The first tables: crawls, simhash_values, duplicate_values.

Revision ID: 0001
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from neardup.store.types import LONG_TEXT, Unsigned64, UtcDateTime, fixed_bytes

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
_COUNTED = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "crawls",
        sa.Column("id", _COUNTED, autoincrement=True, nullable=False),
        sa.Column("spider", sa.String(255), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime()),
        sa.Column("finish_reason", sa.String(255)),
        sa.Column("scheme", sa.String(64), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("pages", sa.Integer()),
        sa.Column("new", sa.Integer()),
        sa.Column("duplicates", sa.Integer()),
        sa.Column("links_skipped", sa.Integer()),
        sa.Column("requests_saved", sa.Integer()),
        sa.PrimaryKeyConstraint("id", name="pk_crawls"),
        **_MYSQL,
    )
    op.create_table(
        "simhash_values",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hash_value", Unsigned64()),
        sa.Column("actual_url", LONG_TEXT, nullable=False),
        sa.Column("url_key", fixed_bytes(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("scheme", sa.String(64), nullable=False),
        sa.Column("features", sa.Integer(), nullable=False),
        sa.Column("weak_bits", fixed_bytes(48)),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("crawl_id", _COUNTED, nullable=False),
        sa.Column("last_crawl_id", _COUNTED, nullable=False),
        sa.Column("first_seen", UtcDateTime(), nullable=False),
        sa.Column("last_seen", UtcDateTime(), nullable=False),
        sa.Column("links_skipped", sa.Integer(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_simhash_values"),
        sa.UniqueConstraint("url_key", name="uq_simhash_values_url_key"),
        sa.ForeignKeyConstraint(["crawl_id"], ["crawls.id"], name="fk_simhash_values_crawl_id"),
        sa.ForeignKeyConstraint(["last_crawl_id"], ["crawls.id"], name="fk_simhash_values_last_crawl_id"),
        **_MYSQL,
    )
    for columns in (["crawl_id"], ["last_crawl_id"], ["last_seen"], ["host", "last_seen"]):
        op.create_index(f"ix_simhash_values_{'_'.join(columns)}", "simhash_values", columns)
    op.create_table(
        "duplicate_values",
        sa.Column("id", _COUNTED, autoincrement=True, nullable=False),
        sa.Column("actual_hash_id", sa.BigInteger(), nullable=False),
        sa.Column("duplicate_hash_id", sa.BigInteger(), nullable=False),
        sa.Column("percentage", sa.Double(), nullable=False),
        sa.Column("hamming_distance", sa.SmallInteger(), nullable=False),
        sa.Column("crawl_id", _COUNTED, nullable=False),
        sa.Column("found_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_duplicate_values"),
        sa.UniqueConstraint("duplicate_hash_id", name="uq_duplicate_values_duplicate_hash_id"),
        sa.ForeignKeyConstraint(
            ["actual_hash_id"], ["simhash_values.id"], name="fk_duplicate_values_actual_hash_id"
        ),
        sa.ForeignKeyConstraint(
            ["duplicate_hash_id"], ["simhash_values.id"], name="fk_duplicate_values_duplicate_hash_id"
        ),
        sa.ForeignKeyConstraint(["crawl_id"], ["crawls.id"], name="fk_duplicate_values_crawl_id"),
        **_MYSQL,
    )
    op.create_index("ix_duplicate_values_actual_hash_id", "duplicate_values", ["actual_hash_id"])
    op.create_index("ix_duplicate_values_crawl_id", "duplicate_values", ["crawl_id"])


def downgrade() -> None:
    for table in ("duplicate_values", "simhash_values", "crawls"):
        op.drop_table(table)
