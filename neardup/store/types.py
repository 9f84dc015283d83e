"""Column types and options of tables by which all three databases store alike.

MySQL stands for MariaDB, too, here and in all of the store.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, DateTime, Integer, LargeBinary, Text, TypeDecorator

if TYPE_CHECKING:
    from sqlalchemy import Dialect
    from sqlalchemy.types import TypeEngine

_SIGN = 1 << 63
_MODULUS = 1 << 64


IP_CHARACTERS = 45
"""The longest text of an IP address: an IPv4 address within an IPv6 one."""


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
        if dialect.name != "mysql":
            return dialect.type_descriptor(DateTime())
        from sqlalchemy.dialects.mysql import DATETIME  # noqa: PLC0415  # only MySQL's users pay for it

        # MySQL's DATETIME ends at the second unless asked for more.
        return dialect.type_descriptor(DATETIME(fsp=6))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


class _LongText(TypeDecorator[str]):
    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "mysql":
            return dialect.type_descriptor(Text())
        from sqlalchemy.dialects.mysql import LONGTEXT  # noqa: PLC0415  # only MySQL's users pay for it

        return dialect.type_descriptor(LONGTEXT())


class _LongBytes(TypeDecorator[bytes]):
    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "mysql":
            return dialect.type_descriptor(LargeBinary())
        from sqlalchemy.dialects.mysql import LONGBLOB  # noqa: PLC0415  # only MySQL's users pay for it

        return dialect.type_descriptor(LONGBLOB())


class _FixedBytes(TypeDecorator[bytes]):
    impl = LargeBinary
    cache_ok = True

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.length = length

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "mysql":
            return dialect.type_descriptor(LargeBinary(self.length))
        from sqlalchemy.dialects.mysql import BINARY  # noqa: PLC0415  # only MySQL's users pay for it

        return dialect.type_descriptor(BINARY(self.length))


ON_MYSQL: dict[str, Any] = {
    "mysql_engine": "InnoDB",
    "mysql_charset": "utf8mb4",
    "mysql_collate": "utf8mb4_bin",
}
"""Options of every table. MySQL compares text by its collation: by this one byte for byte."""

COUNTED = BigInteger().with_variant(Integer(), "sqlite")
"""A key that the database counts up; SQLite counts up only INTEGER keys."""

LONG_TEXT = _LongText()
"""Text of any length; MySQL's TEXT ends at 64 kB."""


LONG_BYTES = _LongBytes()
"""Bytes of any length; MySQL's BLOB ends at 64 kB."""


HOST_CHARACTERS = 255
"""Of a host, that are stored; one that can be resolved has no more."""


def storable(text: str) -> str:
    """A text as it is stored. URLs are data: PostgreSQL takes no NUL, and no database takes a lone
    surrogate.
    """
    return text.replace("\x00", "%00").encode("utf-8", "replace").decode()


def stored_host(host: str) -> str:
    """A host as the tables name it."""
    return storable(host)[:HOST_CHARACTERS]


def fixed_bytes(length: int) -> TypeDecorator[bytes]:
    """Binary of a fixed length; MySQL indexes only BINARY, not BLOB."""
    return _FixedBytes(length)
