"""Scrapy's HTTP cache in a DBM database (``DbmCacheStorage``), a file, or some, for each spider.

The responses are pickled. A pickle may have any function called. So of what a pickle names, nothing but the
addresses of servers is made.
"""

from __future__ import annotations

import dbm
import ipaddress
import pickle
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from w3lib.http import headers_dict_to_raw

from neardup.collection.inputs.found import PART_ROWS, End, Origin, Page, Record, Skipped, Unreadable, Why
from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DB = ".db"
_ENDINGS = ("", ".dat", ".dir", ".pag", ".db", ".bak")
"""Behind the name of a database, by its kind."""

_DATA, _TIME = b"_data", b"_time"
_SQLITE = "dbm.sqlite3"
_ADDRESSES = {"IPv4Address": ipaddress.IPv4Address, "IPv6Address": ipaddress.IPv6Address}
_DAMAGE = (
    *dbm.error, pickle.UnpicklingError, EOFError, ValueError, KeyError, TypeError, AttributeError, IndexError,
    SyntaxError,
)  # fmt: skip
"""What pickle and the kinds of DBM raise at damage; one of these has lines of Python."""


@dataclass(frozen=True, slots=True)
class DbmCache:
    """The responses in a database by their keys, which are sorted; a place is a number in this order."""

    path: Path
    keys: tuple[bytes, ...] = field(repr=False)

    @property
    def size(self) -> int:
        return len(self.keys)

    @property
    def starts(self) -> list[int]:
        return [0, *range(PART_ROWS, self.size, PART_ROWS)]

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        try:
            opened = _opened(self.path)
        except _DAMAGE as exc:
            raise ConfigurationError(f"{self.path} cannot be read as an HTTP cache of Scrapy: {exc}") from exc
        with opened as database:
            for place, key in enumerate(self.keys[start:end], start):
                try:
                    yield _page(place, database[key + _DATA], database[key + _TIME])
                except _DAMAGE as exc:
                    yield Skipped(place, Why.DAMAGED, f"{self.path}, {key.decode()}: {exc}")
        yield End(min(end, self.size))


def find(path: Path) -> tuple[Path, DbmCache | Unreadable, list[Path]] | None:
    """The database that a path is one, or the only, file of, its pages, and all of its files.

    None: the path is of no cache. Unreadable: the database is damaged, a crawl is writing it, or Python has
    not its kind of database.
    """
    base = path if path.suffix == _DB else path.with_suffix("")
    if base.suffix != _DB or not (kind := dbm.whichdb(str(base))):
        return None
    files = [found for ending in _ENDINGS if (found := base.with_name(base.name + ending)).exists()]
    try:
        with _opened(base) as database:
            keys = [key.removesuffix(_DATA) for key in database.keys() if key.endswith(_DATA)]  # noqa: SIM118
    except _DAMAGE as exc:
        if kind == _SQLITE:  # any other database of SQLite
            return None
        return base, Unreadable(Why.DAMAGED, f"cannot be read as an HTTP cache of Scrapy: {exc}"), files
    return (base, DbmCache(base, tuple(sorted(keys))), files) if keys else None


def _opened(path: Path) -> Any:
    return dbm.open(str(path), "r")


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "ipaddress" and name in _ADDRESSES:
            return _ADDRESSES[name]
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a response")


def _page(place: int, data: bytes, time: bytes) -> Page:
    response = _Unpickler(BytesIO(data)).load()
    address = response.get("ip_address")
    origin = Origin(
        place=place,
        url=str(response["url"]),
        date=datetime.fromtimestamp(float(time), UTC),
        ip=None if address is None else str(address),
    )
    headers = headers_dict_to_raw(response["headers"]) or b""
    return Page(origin, int(response["status"]), headers, bytes(response["body"]))
