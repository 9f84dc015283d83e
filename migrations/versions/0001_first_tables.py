"""The first tables: crawls, simhash_values, duplicate_values, page_versions.

Revision ID: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from neardup.store.types import COUNTED, LONG_TEXT, ON_MYSQL, Unsigned64, UtcDateTime, fixed_bytes

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "crawls",
        sa.Column("id", COUNTED, autoincrement=True, nullable=False),
        sa.Column("spider", sa.String(255), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime()),
        sa.Column("finish_reason", sa.String(255)),
        sa.Column("scheme", sa.String(255), nullable=False),
        sa.Column("settings", sa.Text(), nullable=False),
        sa.Column("pages", sa.Integer()),
        sa.Column("new", sa.Integer()),
        sa.Column("duplicates", sa.Integer()),
        sa.Column("links_withheld", sa.Integer()),
        sa.Column("requests_saved", sa.Integer()),
        sa.Column("recall_checked", sa.Integer()),
        sa.Column("recall_found", sa.Integer()),
        sa.Column("batches", sa.Integer(), nullable=False),
        sa.Column("shared", sa.SmallInteger(), nullable=False),
        sa.Column("reconciled_batches", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_crawls"),
        **ON_MYSQL,
    )
    op.create_table(
        "simhash_values",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("hash_value", Unsigned64()),
        sa.Column("actual_url", LONG_TEXT, nullable=False),
        sa.Column("url_key", fixed_bytes(16), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("scheme", sa.String(255), nullable=False),
        sa.Column("features", sa.Integer(), nullable=False),
        sa.Column("weak_bits", fixed_bytes(48)),
        sa.Column("sketch", sa.LargeBinary()),
        sa.Column("text_digest", Unsigned64()),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("crawl_id", COUNTED, nullable=False),
        sa.Column("last_crawl_id", COUNTED, nullable=False),
        sa.Column("first_seen", UtcDateTime(), nullable=False),
        sa.Column("last_seen", UtcDateTime(), nullable=False),
        sa.Column("links_withheld", sa.Integer(), nullable=False),
        sa.Column("flagged_at", UtcDateTime()),
        sa.Column("batch_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_simhash_values"),
        sa.UniqueConstraint("url_key", name="uq_simhash_values_url_key"),
        sa.ForeignKeyConstraint(["crawl_id"], ["crawls.id"], name="fk_simhash_values_crawl_id"),
        sa.ForeignKeyConstraint(["last_crawl_id"], ["crawls.id"], name="fk_simhash_values_last_crawl_id"),
        **ON_MYSQL,
    )
    for columns in (["crawl_id"], ["last_crawl_id"], ["last_seen"], ["batch_id"], ["host", "last_seen"]):
        op.create_index(f"ix_simhash_values_{'_'.join(columns)}", "simhash_values", columns)
    op.create_table(
        "duplicate_values",
        sa.Column("id", COUNTED, autoincrement=True, nullable=False),
        sa.Column("actual_hash_id", sa.BigInteger(), nullable=False),
        sa.Column("duplicate_hash_id", sa.BigInteger(), nullable=False),
        sa.Column("percentage", sa.Double(), nullable=False),
        sa.Column("hamming_distance", sa.SmallInteger(), nullable=False),
        sa.Column("resemblance", sa.Double(), nullable=False),
        sa.Column("crawl_id", COUNTED, nullable=False),
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
        **ON_MYSQL,
    )
    for columns in (["actual_hash_id"], ["crawl_id"]):
        op.create_index(f"ix_duplicate_values_{'_'.join(columns)}", "duplicate_values", columns)
    op.create_table(
        "page_versions",
        sa.Column("id", COUNTED, autoincrement=True, nullable=False),
        sa.Column("page_id", sa.BigInteger(), nullable=False),
        sa.Column("crawl_id", COUNTED, nullable=False),
        sa.Column("seen_at", UtcDateTime(), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("hash_value", Unsigned64()),
        sa.Column("features", sa.Integer(), nullable=False),
        sa.Column("own_distance", sa.SmallInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_page_versions"),
        sa.UniqueConstraint("page_id", "seen_at", name="uq_page_versions_page_id_seen_at"),
        sa.ForeignKeyConstraint(["page_id"], ["simhash_values.id"], name="fk_page_versions_page_id"),
        sa.ForeignKeyConstraint(["crawl_id"], ["crawls.id"], name="fk_page_versions_crawl_id"),
        **ON_MYSQL,
    )
    op.create_index("ix_page_versions_crawl_id", "page_versions", ["crawl_id"])
