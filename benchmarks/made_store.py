"""Stores of any size, made up and written in bulk: pages, their duplicates and the crawls that saw them.

Sixty hosts in three domains, some far larger than others, and forty crawls a week apart. Every fourth page is
a duplicate of an earlier canonical page; sizes of clusters fall as a power law. Half of the pages were seen
again by a later crawl, one in a hundred is too short. All is drawn with a fixed seed.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.schema import AddConstraint, CreateIndex, DropConstraint, DropIndex

from neardup.address import Address
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.rule import Evidence
from neardup.fingerprint.hamming import percentage
from neardup.fingerprint.scheme import Scheme
from neardup.store.schema import crawls, duplicate_values, simhash_values
from neardup.store.statements import BATCHES_PER_CRAWL
from neardup.text import headline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import numpy.typing as npt

    Row = tuple[Any, ...]
    Send = Callable[[sa.Table, list[Row]], None]

CRAWLS = 40
START = datetime(2025, 1, 5)  # in UTC, as it is stored
SCHEME = str(Scheme())
BATCH_ROWS = 500
HOSTS = [f"docs{number}.example.{('org', 'com', 'net')[number % 3]}" for number in range(60)]
_WORDS = ("guide", "reference", "release", "notes", "install", "download", "archive", "index", "user", "api")
_WEEK, _BETWEEN_PAGES = timedelta(days=7), np.timedelta64(25, "ms")
_AT_ONCE = 20_000
_COLUMNS = {
    table: [column for column in table.columns if column is not duplicate_values.c.id]
    for table in (simhash_values, duplicate_values)
}


class MadePages:
    """Pages 1 to n by their places in arrays; ``of`` is the place of the canonical page, the page itself
    unless it is a duplicate.
    """

    def __init__(self, pages: int) -> None:
        rng, places = np.random.default_rng(3), np.arange(pages)
        self.crawl = (places * CRAWLS // pages + 1).astype(np.int64)
        self.within = places - np.searchsorted(self.crawl, self.crawl) + 1
        self.ids = self.crawl * PAGES_PER_CRAWL + self.within
        # Half of them are seen again, by any of the crawls to come.
        later = (CRAWLS + 1 - self.crawl) * np.maximum(0.0, 2 * rng.random(pages) - 1)
        self.last_crawl = self.crawl + later.astype(np.int64)
        self.duplicate = places % 4 == 3
        self.short = (places % 101 == 7) & ~self.duplicate
        canonical = np.flatnonzero(~self.duplicate & ~self.short)
        copies = np.flatnonzero(self.duplicate)
        earlier = np.searchsorted(canonical, copies) * rng.random(copies.size) ** 3
        self.of = places.copy()
        self.of[copies] = canonical[earlier.astype(np.int64)]
        self.distance = np.where(self.duplicate, rng.integers(0, 4, pages, dtype=np.int8), 0)
        self.values = rng.integers(0, 2**64, pages, dtype=np.uint64)
        self.values[copies] = _flipped(self.values[self.of[copies]], self.distance[copies], rng)
        self.hosts = (len(HOSTS) * rng.random(pages) ** 2).astype(np.int8)
        at_home = copies[
            rng.random(copies.size) < 0.9
        ]  # most copies are on the host of what they are copies of
        self.hosts[at_home] = self.hosts[self.of[at_home]]
        self.names_canonical = places % 8 == 3  # half of the duplicates
        self.flagged = np.zeros(pages, dtype=bool)
        self.flagged[canonical[: canonical.size // 100_000 + 1]] = True

    def __len__(self) -> int:
        return self.ids.size

    def url(self, place: int) -> str:
        mixed = (place + 1) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
        words = f"{_WORDS[mixed >> 30 & 7]}/{_WORDS[mixed >> 40 & 7]}/{_WORDS[mixed >> 50 & 7]}"
        return (
            f"https://{HOSTS[self.hosts[place]]}/{words}/page-{place + 1}.html?lang=en&session={mixed:016x}"
        )

    def rows(self, start: int, stop: int) -> list[Row]:
        """Rows of ``simhash_values``."""
        some, count = slice(start, stop), stop - start
        rng = np.random.default_rng([3, start])
        short, duplicate = self.short[some], self.duplicate[some]
        urls = [self.url(place) for place in range(start, stop)]
        again = self.last_crawl[some] > self.crawl[some]
        kinds = np.select([duplicate, short, again], ["duplicate", "too_short", "unchanged"], "new")
        last_seen = _times(self.last_crawl[some], self.within[some])
        made: dict[str, Iterable[Any]] = {
            "id": self.ids[some].tolist(),
            "hash_value": _unless(short, self.values[some].view(np.int64).tolist()),
            "actual_url": urls,
            "url_key": [Address(url).key for url in urls],
            "host": [HOSTS[host] for host in self.hosts[some].tolist()],
            "scheme": [SCHEME] * count,
            "features": np.where(short, 5, rng.integers(50, 2000, count)).tolist(),
            "weak_bits": _unless(
                short, _pieces(rng.integers(0, 64, 48 * count, dtype=np.uint8).tobytes(), 48)
            ),
            "sketch": _unless(short, _pieces(rng.bytes(128 * count), 128)),
            "headline": _unless(short, _pieces(rng.bytes(headline.BYTES * count), headline.BYTES)),
            "declared_url": [
                self.url(int(self.of[place])) if self.names_canonical[place] else None
                for place in range(start, stop)
            ],
            "soft_404": [None] * count,
            "text_digest": _unless(short, rng.integers(-(2**63), 2**63, count).tolist()),
            "kind": kinds.tolist(),
            "crawl_id": self.crawl[some].tolist(),
            "last_crawl_id": self.last_crawl[some].tolist(),
            "first_seen": _times(self.crawl[some], self.within[some]),
            "last_seen": last_seen,
            "links_withheld": (duplicate * 25).tolist(),
            "flagged_at": _unless(~self.flagged[some], last_seen),
            "batch_id": (
                self.last_crawl[some] * BATCHES_PER_CRAWL + (self.within[some] - 1) // BATCH_ROWS + 1
            ).tolist(),
        }
        return list(zip(*(made[column.name] for column in _COLUMNS[simhash_values]), strict=True))

    def relations(self, start: int, stop: int) -> list[Row]:
        """Rows of ``duplicate_values`` without their ids."""
        copies = start + np.flatnonzero(self.duplicate[start:stop])
        distances = self.distance[copies].tolist()
        made: dict[str, Iterable[Any]] = {
            "actual_hash_id": self.ids[self.of[copies]].tolist(),
            "duplicate_hash_id": self.ids[copies].tolist(),
            "percentage": map(percentage, distances),
            "hamming_distance": distances,
            "resemblance": [1.0 - distance / 20 for distance in distances],
            "evidence": [Evidence.RARE.value] * copies.size,
            "crawl_id": self.crawl[copies].tolist(),
            "found_at": _times(self.crawl[copies], self.within[copies]),
        }
        return list(zip(*(made[column.name] for column in _COLUMNS[duplicate_values]), strict=True))


def _flipped(
    values: npt.NDArray[np.uint64], distances: npt.NDArray[np.int8], rng: np.random.Generator
) -> npt.NDArray[np.uint64]:
    """The values with so many of their bits flipped, at most three."""
    first = rng.integers(0, 64, values.size)
    for number in range(3):
        bit = np.uint64(1) << ((first + 21 * number) % 64).astype(np.uint64)
        values = np.where(distances > number, values ^ bit, values)
    return values


def _times(crawl: npt.NDArray[np.int64], within: npt.NDArray[np.int64]) -> list[str]:
    start = np.datetime64(START, "us")
    seen = start + (crawl - 1) * np.timedelta64(_WEEK) + within * _BETWEEN_PAGES
    return [text.replace("T", " ") for text in np.datetime_as_string(seen).tolist()]


def _unless(missing: npt.NDArray[np.bool_], values: Iterable[Any]) -> list[Any]:
    return [None if gone else value for gone, value in zip(missing.tolist(), values, strict=True)]


def _pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


def fill(url: sa.URL, pages: MadePages, count: int) -> None:
    """Store the first so many pages, with their relations and crawls, in the empty tables of a database."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        made = [_crawl(number, pages) for number in range(1, CRAWLS + 1)]
        connection.execute(sa.insert(crawls), made)
        assert connection.execute(sa.select(sa.func.max(crawls.c.id))).scalar_one() == CRAWLS
    with _without_keys(engine), _SENDERS[engine.dialect.name](url) as send:
        for start in range(0, count, _AT_ONCE):
            stop = min(start + _AT_ONCE, count)
            send(simhash_values, pages.rows(start, stop))
            send(duplicate_values, pages.relations(start, stop))


def _crawl(number: int, pages: MadePages) -> dict[str, Any]:
    started = START.replace(tzinfo=UTC) + (number - 1) * _WEEK
    mine = pages.crawl == number
    duplicates = int(pages.duplicate[mine].sum())
    return {
        "spider": "made",
        "started_at": started,
        "finished_at": started + timedelta(days=6),
        "finish_reason": "finished",
        "scheme": SCHEME,
        "settings": "{}",
        "pages": int(mine.sum()),
        "new": int(mine.sum()) - duplicates,
        "duplicates": duplicates,
        "links_withheld": 25 * duplicates,
        "requests_saved": 20 * duplicates,
        "batches": len(pages) // CRAWLS // BATCH_ROWS + 2,
        "shared": 1,
        "reconciled_batches": 0,
    }


@contextmanager
def _without_keys(engine: sa.Engine) -> Iterator[None]:
    """Without indexes and foreign keys as long as rows are written; all are there again at the end.

    Primary keys stay, and with SQLite all that belongs to the definition of a table.
    """
    tables = [simhash_values, duplicate_values]
    indexes = [
        index for table in tables for index in sorted(table.indexes, key=lambda index: str(index.name))
    ]
    constraints = [
        constraint
        for table in tables
        for kind in (sa.UniqueConstraint, sa.ForeignKeyConstraint)
        for constraint in sorted(table.constraints, key=lambda constraint: str(constraint.name))
        if isinstance(constraint, kind)
    ]
    if engine.dialect.name == "sqlite":
        constraints = []
    # Isolated from its table, which is the default, a constraint would be missing in all tables made later.
    add = [AddConstraint(constraint, isolate_from_table=False) for constraint in constraints]
    _run(engine, [*map(DropConstraint, reversed(constraints)), *map(DropIndex, indexes)])
    yield
    _run(engine, [*map(CreateIndex, indexes), *add])


def _run(engine: sa.Engine, statements: list[Any]) -> None:
    prepare = {
        "postgresql": "SET maintenance_work_mem = '1GB'",
        # InnoDB checks foreign keys that are added only while it copies the whole table.
        "mysql": "SET foreign_key_checks = 0",
        "sqlite": "PRAGMA synchronous = OFF",
    }
    with engine.connect() as connection:
        connection.exec_driver_sql(prepare[engine.dialect.name])
        for statement in statements:
            connection.execute(statement)
            connection.commit()


@contextmanager
def _sqlite(url: sa.URL) -> Iterator[Send]:
    connection = sqlite3.connect(str(url.database))
    for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000"):
        connection.execute(f"PRAGMA {pragma}")

    def send(table: sa.Table, rows: list[Row]) -> None:
        columns = _COLUMNS[table]
        names, places = ", ".join(column.name for column in columns), ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({places})", rows)
        connection.commit()

    yield send
    connection.close()


@contextmanager
def _postgresql(url: sa.URL) -> Iterator[Send]:
    import psycopg

    with psycopg.connect(
        url.set(drivername="postgresql").render_as_string(hide_password=False)
    ) as connection:

        def send(table: sa.Table, rows: list[Row]) -> None:
            names = ", ".join(column.name for column in _COLUMNS[table])
            with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                copy.write(_text(rows, before_bytes=r"\\x"))
            connection.commit()

        yield send


@contextmanager
def _mysql(url: sa.URL) -> Iterator[Send]:
    engine = sa.create_engine(url, connect_args={"local_infile": True})
    with TemporaryDirectory() as folder, engine.connect() as connection:
        path = Path(folder) / "rows"

        def send(table: sa.Table, rows: list[Row]) -> None:
            path.write_bytes(_text(rows, before_bytes=""))
            packed = [column.name for column in _COLUMNS[table] if _is_bytes(column.type)]
            names = ", ".join(
                f"@{column.name}" if column.name in packed else column.name for column in _COLUMNS[table]
            )
            unpack = f" SET {', '.join(f'{name} = UNHEX(@{name})' for name in packed)}" if packed else ""
            connection.exec_driver_sql(
                f"LOAD DATA LOCAL INFILE '{path}' INTO TABLE {table} CHARACTER SET utf8mb4 ({names}){unpack}"
            )
            connection.commit()

        connection.exec_driver_sql("SET unique_checks = 0, foreign_key_checks = 0")
        yield send
    engine.dispose()


def _is_bytes(type_: sa.types.TypeEngine[Any]) -> bool:
    """Whether values are bytes, also where a type of ours wraps that of the database."""
    return isinstance(type_.impl if isinstance(type_, sa.TypeDecorator) else type_, sa.LargeBinary)


def _text(rows: list[Row], *, before_bytes: str) -> bytes:
    """Lines of values between tabs, as both COPY and LOAD DATA read them."""
    return "".join(
        "\t".join(
            [
                r"\N"
                if value is None
                else before_bytes + value.hex()
                if isinstance(value, bytes)
                else str(value)
                for value in row
            ]
        )
        + "\n"
        for row in rows
    ).encode()


_SENDERS = {"sqlite": _sqlite, "postgresql": _postgresql, "mysql": _mysql}
