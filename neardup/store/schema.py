"""The tables, after figure 10 of Khan & Ali: ``simhash_values`` one-to-many ``duplicate_values``; ``crawls``,
``page_versions``, ``page_links``, ``page_ranks``, ``document_frequencies``, ``url_rules``, ``rule_effects``,
``decisions``, ``page_texts`` and ``host_ips``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
)

from neardup.store.types import (
    COUNTED,
    HOST_CHARACTERS,
    IP_CHARACTERS,
    LONG_BYTES,
    LONG_TEXT,
    ON_MYSQL,
    Unsigned64,
    UtcDateTime,
    fixed_bytes,
)
from neardup.text import headline

if TYPE_CHECKING:
    from sqlalchemy import Connection

VERSION_TABLE = "neardup_alembic_version"
"""Alembic's bookkeeping; not its default name, because the database may be shared with an application that
has one.
"""

REVISION = "0009"
"""The newest migration; its tables are those below."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

crawls = Table(
    "crawls",
    metadata,
    Column("id", COUNTED, primary_key=True, autoincrement=True),
    Column("spider", String(255), nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    Column("finish_reason", String(255)),
    Column("scheme", String(255), nullable=False),
    Column("settings", Text, nullable=False),
    Column("pages", Integer),
    Column("new", Integer),
    Column("duplicates", Integer),
    Column("links_withheld", Integer),
    Column("requests_saved", Integer),
    Column("recall_checked", Integer),
    Column("recall_found", Integer),
    Column("batches", Integer, nullable=False),
    Column("shared", SmallInteger, nullable=False),
    Column("reconciled_batches", Integer, nullable=False),
    Column("curve", Text),
    Column("endless_spaces", LONG_TEXT),
)

simhash_values = Table(
    "simhash_values",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("hash_value", Unsigned64),
    Column("actual_url", LONG_TEXT, nullable=False),
    Column("url_key", fixed_bytes(16), nullable=False, unique=True),
    Column("host", String(HOST_CHARACTERS), nullable=False),
    Column("scheme", String(255), nullable=False),
    Column("features", Integer, nullable=False),
    Column("weak_bits", fixed_bytes(48)),
    Column("sketch", LargeBinary),
    Column("text_digest", Unsigned64),
    Column("kind", String(16), nullable=False),
    Column("crawl_id", COUNTED, ForeignKey("crawls.id"), nullable=False, index=True),
    Column("last_crawl_id", COUNTED, ForeignKey("crawls.id"), nullable=False, index=True),
    Column("first_seen", UtcDateTime, nullable=False),
    Column("last_seen", UtcDateTime, nullable=False, index=True),
    Column("links_withheld", Integer, nullable=False),
    Column("flagged_at", UtcDateTime),
    Column("batch_id", BigInteger, nullable=False, index=True),
    Column("headline", fixed_bytes(headline.BYTES)),
    Column("declared_url", LONG_TEXT),
    Column("soft_404", SmallInteger),
    Index(None, "host", "last_seen"),
)

duplicate_values = Table(
    "duplicate_values",
    metadata,
    Column("id", COUNTED, primary_key=True, autoincrement=True),
    Column("actual_hash_id", BigInteger, ForeignKey("simhash_values.id"), nullable=False, index=True),
    Column("duplicate_hash_id", BigInteger, ForeignKey("simhash_values.id"), nullable=False, unique=True),
    Column("percentage", Double, nullable=False),
    Column("hamming_distance", SmallInteger, nullable=False),
    Column("resemblance", Double, nullable=False),
    Column("crawl_id", COUNTED, ForeignKey("crawls.id"), nullable=False, index=True),
    Column("found_at", UtcDateTime, nullable=False),
    Column("evidence", String(16)),
)

page_versions = Table(
    "page_versions",
    metadata,
    Column("id", COUNTED, primary_key=True, autoincrement=True),
    Column("page_id", BigInteger, ForeignKey("simhash_values.id"), nullable=False),
    Column("crawl_id", COUNTED, ForeignKey("crawls.id"), nullable=False, index=True),
    Column("seen_at", UtcDateTime, nullable=False),
    Column("kind", String(16), nullable=False),
    Column("hash_value", Unsigned64),
    Column("features", Integer, nullable=False),
    Column("own_distance", SmallInteger),
    UniqueConstraint("page_id", "seen_at"),
)

page_links = Table(
    "page_links",
    metadata,
    Column("crawl_id", COUNTED, ForeignKey("crawls.id"), primary_key=True, autoincrement=False),
    Column("page_id", BigInteger, ForeignKey("simhash_values.id"), primary_key=True, index=True),
    Column("numbers", LargeBinary, nullable=False),
    Column("links", LONG_BYTES, nullable=False),
)

page_ranks = Table(
    "page_ranks",
    metadata,
    Column("page_id", BigInteger, ForeignKey("simhash_values.id"), primary_key=True, autoincrement=False),
    Column("pagerank", Double, nullable=False),
)

document_frequencies = Table(
    "document_frequencies",
    metadata,
    Column("host", String(HOST_CHARACTERS), primary_key=True),
    Column("pages", Integer, nullable=False, index=True),
    Column("counts", LONG_BYTES, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

url_rules = Table(
    "url_rules",
    metadata,
    Column("rule_key", fixed_bytes(16), primary_key=True),
    Column("host", String(HOST_CHARACTERS), nullable=False, index=True),
    Column("slot", String(16), nullable=False),
    Column("value", Text, nullable=False),
    Column("context", Text, nullable=False),
    Column("trials", Double, nullable=False),
    Column("hits", Double, nullable=False),
    Column("clusters", Integer, nullable=False),
    Column("directories", Integer, nullable=False),
    Column("state", String(16), nullable=False),
    Column("example_url", Text, nullable=False),
    Column("partner_url", Text, nullable=False),
    Column("crawl_id", COUNTED, ForeignKey("crawls.id"), index=True),
    Column("decisions", Integer, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
)

rule_effects = Table(
    "rule_effects",
    metadata,
    Column("rule_key", fixed_bytes(16), ForeignKey("url_rules.rule_key"), primary_key=True),
    Column("crawl_id", COUNTED, ForeignKey("crawls.id"), primary_key=True, autoincrement=False, index=True),
    Column("deferred", Integer, nullable=False),
    Column("dropped", Integer, nullable=False),
    Column("explored", Integer, nullable=False),
    Column("copies", Integer, nullable=False),
    Column("others", Integer, nullable=False),
    Column("saved", Integer, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", COUNTED, primary_key=True, autoincrement=True),
    Column("page_key", fixed_bytes(16), nullable=False, index=True),
    Column("page_url", LONG_TEXT, nullable=False),
    Column("other_key", fixed_bytes(16)),
    Column("other_url", LONG_TEXT),
    Column("decision", String(16), nullable=False),
    Column("note", Text, nullable=False),
    Column("decided_by", String(255), nullable=False),
    Column("decided_at", UtcDateTime, nullable=False),
    Column("undone_by", String(255)),
    Column("undone_at", UtcDateTime),
    Column("before_key", fixed_bytes(16)),
    Column("before_distance", SmallInteger),
    Column("before_evidence", String(16)),
)

page_texts = Table(
    "page_texts",
    metadata,
    Column("page_id", BigInteger, ForeignKey("simhash_values.id"), primary_key=True, autoincrement=False),
    Column("text", LONG_BYTES, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
)

host_ips = Table(
    "host_ips",
    metadata,
    Column("host", String(HOST_CHARACTERS), primary_key=True),
    Column("ip", String(IP_CHARACTERS), primary_key=True),
    Column("first_seen", UtcDateTime, nullable=False),
    Column("last_seen", UtcDateTime, nullable=False),
)

TABLES = (
    crawls,
    simhash_values,
    duplicate_values,
    page_versions,
    page_links,
    page_ranks,
    document_frequencies,
    url_rules,
    rule_effects,
    decisions,
    page_texts,
    host_ips,
)
"""No row refers to one of a later table."""


@event.listens_for(metadata, "before_create")
def _set_options(made: MetaData, connection: Connection, **_: Any) -> None:
    # Not as arguments of the tables: SQLAlchemy imports the dialect of MySQL to check such arguments, which
    # took 7 ms of the start of every crawl.
    if connection.dialect.name == "sqlite":
        page_links.kwargs["sqlite_with_rowid"] = False  # 15 bytes a row, of some 60
    if connection.dialect.name == "mysql":
        for table in made.tables.values():
            table.kwargs.update(ON_MYSQL)
