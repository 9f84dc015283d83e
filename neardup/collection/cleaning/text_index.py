"""The embedded search: a full-text index of a collection in SQLite (FTS5), ranked by BM25."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection.dataset import read_state
from neardup.collection.failing import failing
from neardup.errors import NeardupError
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from neardup.collection.cleaning.pages import CleanPages, Rows
    from neardup.collection.cleaning.work import Query
    from neardup.collection.dataset import Collection

_RESULTS_AT_ONCE = 1_000
_MOST_WORDS = 250
"""Of a query: SQLite takes expressions of 256 parts."""

# The words are those of neardup; all that is no word character stands between them only.
_SCHEMA = """
DROP TABLE IF EXISTS texts;
DROP TABLE IF EXISTS parts;
DROP TABLE IF EXISTS built;
CREATE VIRTUAL TABLE texts USING fts5(
    text, content = '', tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co Pc S* P* C*'"
);
CREATE TABLE parts (name TEXT PRIMARY KEY, texts INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE built (inputs TEXT NOT NULL);
"""


class TextIndex:
    """Pages that have all words of a query, the best first by BM25; ``path`` is that of a complete index.

    NeardupError: the index cannot be read.
    """

    def __init__(self, path: Path, pages: CleanPages) -> None:
        if not path.is_file():
            raise NeardupError(f"{path} is gone; give --inputs to make it again")
        self._path, self._pages = path, pages
        with failing(path):
            self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)

    def results(self, query: Query) -> Iterator[Rows]:
        """The rows of the results, some at a time; -1 for pages that are not in the collection."""
        found = query_words(query)
        if not found:
            return
        expression = " ".join(f'"{word}"' for word in found)
        with failing(self._path):
            cursor = self._connection.execute(
                "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts), rowid", (expression,)
            )
            while some := cursor.fetchmany(_RESULTS_AT_ONCE):
                yield self._pages.rows_of(np.fromiter((one[0] for one in some), np.int64, len(some)))

    def close(self) -> None:
        self._connection.close()


def query_words(query: Query) -> list[str]:
    """The words of a query that are searched for."""
    return [word for word in words(query.text) if "\0" not in word][:_MOST_WORDS]


def index_file(collection: Collection) -> Path:
    """Where the index of a collection stands."""
    return collection.folder / "clean" / "index.db"


def is_complete(collection: Collection) -> bool:
    """Whether the index has the texts of all inputs that the collection is built of now."""
    path = index_file(collection)
    if not path.is_file():
        return False
    with failing(path), closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'built'").fetchone()
        saved = connection.execute("SELECT inputs FROM built").fetchone() if tables[0] else None
    return saved is not None and json.loads(saved[0]) == inputs_of(collection)


class GrowingTextIndex:
    """An index that gets texts; it goes on with what is there. NeardupError: it cannot be written."""

    def __init__(self, collection: Collection) -> None:
        self._path, self._inputs = index_file(collection), inputs_of(collection)
        self.done: dict[str, int] = {}
        """Texts of each part of an input that is indexed."""

    def __enter__(self) -> Self:
        self._path.parent.mkdir(exist_ok=True)
        with failing(self._path):
            self._connection = sqlite3.connect(self._path, isolation_level=None)
            _begin(self._connection, self._inputs)
            self.done = dict(self._connection.execute("SELECT name, texts FROM parts"))
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, name: str, texts: Iterable[tuple[int, str]]) -> int:
        """Index the texts of a part by the ids of their pages: as a whole or not at all. How many?"""
        number = 0
        with failing(self._path):
            self._connection.execute("BEGIN")
            for page_id, text in texts:
                self._connection.execute(
                    "INSERT INTO texts (rowid, text) VALUES (?, ?)", (page_id, " ".join(words(text)))
                )
                number += 1
            self._connection.execute("INSERT INTO parts VALUES (?, ?)", (name, number))
            self._connection.execute("COMMIT")
        self.done[name] = number
        return number

    def finish(self) -> None:
        """All parts are indexed."""
        with failing(self._path):
            self._connection.execute("DELETE FROM built")
            self._connection.execute("INSERT INTO built VALUES (?)", (json.dumps(self._inputs),))


def _begin(connection: sqlite3.Connection, now: list[Any]) -> None:
    """Go on with the index of inputs that the collection still has, or begin with an empty one."""
    connection.execute("CREATE TABLE IF NOT EXISTS begun (inputs TEXT NOT NULL)")
    saved = connection.execute("SELECT inputs FROM begun").fetchone()
    before = json.loads(saved[0]) if saved else None
    if before is None or now[: len(before)] != before:
        connection.execute("DELETE FROM begun")
        connection.executescript(_SCHEMA)
    connection.execute("DELETE FROM begun")
    connection.execute("INSERT INTO begun VALUES (?)", (json.dumps(now),))


def inputs_of(collection: Collection) -> list[Any]:
    """What a collection is built of, as JSON has it."""
    return list((read_state(collection.folder) or {})["inputs"])
