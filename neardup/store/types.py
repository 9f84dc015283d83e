"""Column types and options of tables by which all three databases store alike.

MySQL stands for MariaDB, too, here and in all of the store.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, DateTime, Integer, LargeBinary, Text, TypeDecorator
from sqlalchemy.dialects import mysql

if TYPE_CHECKING:
    from sqlalchemy import Dialect
    from sqlalchemy.types import TypeEngine

_SIGN = 1 << 63
_MODULUS = 1 << 64


class Unsigned64(TypeDecorator[int]):
    """An unsigned 64-bit integer in a signed BIGINT, by two's complement.

    All three databases store and index a signed integer alike. MySQL's UNSIGNED has no counterpart in the
    others. The order in SQL is that of the signed values, not of the fingerprints: sort in NumPy, not in SQL.
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> int | None:
        if value is None:
            return None
        if not 0 <= value < _MODULUS:
            raise ValueError(f"{value} is not an unsigned 64-bit integer")
        return value - _MODULUS if value >= _SIGN else value

    def process_result_value(self, value: int | None, dialect: Dialect) -> int | None:
        return value + _MODULUS if value is not None and value < 0 else value


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime, stored as UTC without a zone: the databases do not agree on zones."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        # MySQL's DATETIME ends at the second unless asked for more.
        return dialect.type_descriptor(mysql.DATETIME(fsp=6) if dialect.name == "mysql" else DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


ON_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
"""Options of every table. MySQL compares text by its collation: by this one byte for byte."""

COUNTED = BigInteger().with_variant(Integer(), "sqlite")
"""A key that the database counts up; SQLite counts up only INTEGER keys."""

LONG_TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql")
"""Text of any length; MySQL's TEXT ends at 64 kB."""


def fixed_bytes(length: int) -> LargeBinary:
    """Binary of a fixed length; MySQL indexes only BINARY, not BLOB."""
    return LargeBinary(length).with_variant(mysql.BINARY(length), "mysql")
