"""What a clean-up has done so far, in a file of SQLite, so that the same command goes on from there.

Queries stand in the order of their frequency and are done in batches of 100. What a batch has marked is
written together with the note that the batch is done.
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.collection.cleaning import given
from neardup.collection.cleaning.search_log import Damaged, read_log
from neardup.collection.failing import failing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Self

BATCH = 100
"""Queries of a batch: the smallest group of queries in table I of the paper."""

_LINES_AT_ONCE = 10_000
_NAMED = 3

_SCHEMA = """
CREATE TABLE run (identity TEXT NOT NULL, told TEXT NOT NULL);
CREATE TABLE log (query TEXT PRIMARY KEY, count INTEGER, name TEXT, line INTEGER) WITHOUT ROWID;
CREATE TABLE queries (place INTEGER PRIMARY KEY, query TEXT, count INTEGER, name TEXT);
CREATE TABLE done (
    way TEXT, number INTEGER, queries INTEGER, hit INTEGER, results INTEGER, unknown INTEGER, seconds REAL,
    PRIMARY KEY (way, number)
) WITHOUT ROWID;
CREATE TABLE marks (
    way TEXT, page INTEGER, canonical INTEGER, place INTEGER, max_distance INTEGER,
    PRIMARY KEY (way, page, canonical)
) WITHOUT ROWID;
"""


class Way(StrEnum):
    """How queries are done (Pi et al., II.B and III.C)."""

    SEQUENTIAL = "sequential"
    """One after the other, on a repository that gets smaller with each."""
    PARALLEL = "parallel"
    """Each on the whole repository; what is marked is deleted at the end."""


class Query(NamedTuple):
    """A query; its place by frequency, from 1 on."""

    place: int
    text: str
    asked: int
    name: str


class Mark(NamedTuple):
    """A page that is a near-duplicate of its canonical page in the results of a query, by their ids."""

    page: int
    canonical: int
    place: int
    max_distance: int


@dataclass(slots=True)
class Batch:
    """What a batch of queries has found; ``seconds`` of processor time."""

    way: Way
    number: int
    queries: int
    hit: int = 0
    results: int = 0
    unknown: int = 0
    seconds: float = 0.0
    marks: list[Mark] = field(default_factory=list)


@dataclass(slots=True)
class Told:
    """What was read of the log and of results: numbers of lines, and examples of those that say nothing."""

    lines: int = 0
    queries: int = 0
    damaged: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)
    damaged_results: int = 0


class Work:
    """The file of one clean-up. What was done of another, by ``identity`` (as JSON has it), is removed.

    NeardupError: the file cannot be read or written.
    """

    def __init__(self, path: Path, identity: Any) -> None:
        self.path = path
        self._identity = json.dumps(identity, sort_keys=True)
        with failing(path):
            path.parent.mkdir(exist_ok=True)
            if path.exists() and not self._is_of_this():
                path.unlink()
            self._connection = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _is_of_this(self) -> bool:
        connection = sqlite3.connect(self.path)
        try:
            return bool(connection.execute("SELECT identity = ? FROM run", (self._identity,)).fetchone()[0])
        except (sqlite3.Error, TypeError):
            return False
        finally:
            connection.close()

    def read(self, log: Path, results: Path | None) -> Told:
        """Read the log, and where results stand in a file, unless that is done; returns what was read."""
        with failing(self.path):
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'run'")
            if tables.fetchone()[0]:
                (saved,) = self._connection.execute("SELECT told FROM run").fetchone()
                return Told(**json.loads(saved))
            self._connection.execute("BEGIN")
            try:
                for statement in _SCHEMA.split(";"):
                    self._connection.execute(statement)
                told = self._read_log(log)
                if results is not None:
                    told.damaged_results = given.note_places(results, self._connection)
                saved = json.dumps({name: getattr(told, name) for name in Told.__slots__})
                self._connection.execute("INSERT INTO run VALUES (?, ?)", (self._identity, saved))
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
        return told

    def _read_log(self, log: Path) -> Told:
        told = Told()
        rows: list[tuple[Any, ...]] = []
        for found in read_log(log):
            told.lines += 1
            if isinstance(found, Damaged):
                told.damaged += 1
                if len(told.examples) < _NAMED:
                    told.examples.append((found.line, found.reason))
                continue
            rows.append((*found, told.lines))
            if len(rows) >= _LINES_AT_ONCE:
                self._add(rows)
                rows = []
        self._add(rows)
        # A query that stands in several lines counts as often as all of them say.
        self._connection.execute(
            "INSERT INTO queries"
            " SELECT row_number() OVER (ORDER BY count DESC, line), query, count, name FROM log"
        )
        self._connection.execute("DROP TABLE log")
        told.queries = self._connection.execute("SELECT count(*) FROM queries").fetchone()[0]
        return told

    def _add(self, rows: list[tuple[Any, ...]]) -> None:
        self._connection.executemany(
            "INSERT INTO log VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET count = min(count + excluded.count, 1 << 60)",
            rows,
        )

    def missing(self, way: Way) -> Iterator[tuple[int, list[Query]]]:
        """The batches that are not done, with their queries."""
        with failing(self.path):
            done = {
                number
                for (number,) in self._connection.execute("SELECT number FROM done WHERE way = ?", (way,))
            }
            (total,) = self._connection.execute("SELECT count(*) FROM queries").fetchone()
        for number in range(-(-total // BATCH)):
            if number not in done:
                yield number, self._queries(number)

    def _queries(self, number: int) -> list[Query]:
        with failing(self.path):
            return [
                Query(*row)
                for row in self._connection.execute(
                    "SELECT place, query, count, name FROM queries WHERE place > ? AND place <= ?"
                    " ORDER BY place",
                    (number * BATCH, (number + 1) * BATCH),
                )
            ]

    def add(self, batch: Batch) -> None:
        """Keep a batch. Of a page and a canonical page, the mark by the most frequent query stays."""
        with failing(self.path):
            self._connection.execute("BEGIN")
            try:
                self._connection.executemany(
                    "INSERT INTO marks VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE"
                    " SET place = excluded.place, max_distance = excluded.max_distance"
                    " WHERE excluded.place < place",
                    ((batch.way, *mark) for mark in batch.marks),
                )
                self._connection.execute(
                    "INSERT INTO done VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        batch.way, batch.number, batch.queries, batch.hit, batch.results, batch.unknown,
                        batch.seconds,
                    ),
                )  # fmt: skip
                self._connection.execute("COMMIT")
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    def marked(self, way: Way) -> list[int]:
        """The ids of the pages that are marked."""
        with failing(self.path):
            rows = self._connection.execute("SELECT DISTINCT page FROM marks WHERE way = ?", (way,))
            return [page for (page,) in rows]

    def batches(self, way: Way) -> list[Batch]:
        """The batches that are done, in order, without their marks."""
        with failing(self.path):
            rows = self._connection.execute("SELECT * FROM done WHERE way = ? ORDER BY number", (way,))
            return [Batch(Way(name), *rest) for name, *rest in rows]

    def marks(self, way: Way, at_once: int) -> Iterator[list[tuple[Mark, str]]]:
        """All marks by page and canonical page, each with its query, some at a time."""
        with failing(self.path):
            rows = self._connection.execute(
                "SELECT page, canonical, place, max_distance, query FROM marks JOIN queries USING (place)"
                " WHERE way = ? ORDER BY page, canonical",
                (way,),
            )
            while some := rows.fetchmany(at_once):
                yield [(Mark(*row[:4]), row[4]) for row in some]

    def remove(self) -> None:
        """All is done: nothing is left to go on with."""
        self._connection.close()
        self.path.unlink(missing_ok=True)
