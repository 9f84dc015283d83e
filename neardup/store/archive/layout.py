"""What an export holds: tables of typed columns, a header that says how many rows of each, and rows in
batches.
"""

from __future__ import annotations

import secrets
import sys
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FORMAT = 1
"""Counts up when an older neardup could not read the files any more."""

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_FIRST_TIME, _LAST_TIME = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


class Kind(Enum):
    """What the values of a column are."""

    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    BYTES = "bytes"
    TIME = "time"
    FINGERPRINT = "fingerprint"
    """An unsigned integer of 64 bits."""


_TYPES: dict[Kind, type | tuple[type, ...]] = {
    Kind.INTEGER: int,
    Kind.NUMBER: (int, float),
    Kind.TEXT: str,
    Kind.BYTES: bytes,
    Kind.TIME: datetime,
    Kind.FINGERPRINT: int,
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column. ``length`` is the length of every value (bytes), or the most that a value may have (text).

    None: values may have any length.
    """

    name: str
    kind: Kind
    nullable: bool
    length: int | None = None

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value; None if it can stand in this column."""
        if value is None:
            return None if self.nullable else f"{self.name} is missing"
        if not isinstance(value, _TYPES[self.kind]) or isinstance(value, bool):
            return f"{self.name} must be {self.kind.value}, not {value!r:.100}"
        return f"{self.name} cannot be {value!r:.100}" if self._is_out_of_range(value) else None

    def _is_out_of_range(self, value: Any) -> bool:
        if self.kind is Kind.INTEGER:
            return not _LEAST <= value <= _MOST
        if self.kind is Kind.FINGERPRINT:
            return not 0 <= value < 1 << 64
        if self.kind is Kind.NUMBER:
            return not -sys.float_info.max <= value <= sys.float_info.max
        if self.kind is Kind.TIME:
            return value.tzinfo is None or not _FIRST_TIME <= value <= _LAST_TIME
        if self.kind is Kind.BYTES:
            return self.length is not None and len(value) != self.length
        return _is_unstorable(value) or (self.length is not None and len(value) > self.length)


@dataclass(frozen=True, slots=True)
class Table:
    """A table. The tables that its rows refer to come before it."""

    name: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What stands before all rows. ``export`` names one export, so that files of two exports are not taken
    for one.
    """

    revision: str
    scheme: str | None
    rows: Mapping[str, int]
    made_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    export: str = field(default_factory=lambda: secrets.token_hex(8))

    def as_dict(self) -> dict[str, Any]:
        return {"neardup": FORMAT, **asdict(self)}

    @classmethod
    def from_dict(cls, read: Any, where: str) -> Header:
        """The header that was written as :meth:`as_dict`; ConfigurationError if it was not, or by a newer
        neardup.
        """
        if not isinstance(read, dict) or not isinstance(read.get("neardup"), int):
            raise ConfigurationError(f"{where}: this is no export of neardup")
        if read["neardup"] != FORMAT:
            raise ConfigurationError(
                f"{where}: an export of format {read['neardup']}; this neardup reads format {FORMAT}."
                " Use the version that made it"
            )
        header = {name: value for name, value in read.items() if name != "neardup"}
        scheme, rows = header.get("scheme"), header.get("rows")
        if (
            header.keys() != {"revision", "scheme", "rows", "made_at", "export"}
            or not isinstance(header["revision"], str)
            or not isinstance(scheme, str | None)
            or not isinstance(rows, dict)
            or not all(type(number) is int and number >= 0 for number in rows.values())
        ):
            raise ConfigurationError(f"{where}: the header of this export is damaged")
        return cls(**header)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows of a table, and the place of each in the file, for messages."""

    table: str
    rows: list[dict[str, Any]]
    places: list[str]


class Archive(Protocol):
    """An export that is there."""

    @property
    def header(self) -> Header: ...

    def batches(self) -> Iterator[Batch]:
        """All rows, table by table as they were written; ConfigurationError names the place of one that is
        wrong.
        """


def _is_unstorable(text: str) -> bool:
    """No database takes a lone surrogate, nor PostgreSQL a NUL."""
    return "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text)
