"""The embedded search: a full-text index of a collection in SQLite (FTS5), ranked by BM25."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection.dataset import read_state
from neardup.errors import ConfigurationError, NeardupError
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from neardup.collection.cleaning.pages import CleanPages, Rows
    from neardup.collection.cleaning.texts import Texts
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
        found = [word for word in words(query.text) if "\0" not in word][:_MOST_WORDS]
        if not found:
            return
        expression = " ".join(f'"{word}"' for word in found)
        with failing(self._path):
            cursor = self._connection.execute(
                "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank", (expression,)
            )
            while some := cursor.fetchmany(_RESULTS_AT_ONCE):
                yield self._pages.rows_of(np.fromiter((one[0] for one in some), np.int64, len(some)))

    def close(self) -> None:
        self._connection.close()


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
    return saved is not None and json.loads(saved[0]) == _inputs(collection)


def build(collection: Collection, texts: Texts, pages: CleanPages, on_progress: Callable[[int], None]) -> int:
    """Make the index, or go on with one; returns how many pages have a text in it.

    A part of an input is indexed as a whole or not at all. NeardupError: the index cannot be written.
    """
    path = index_file(collection)
    path.parent.mkdir(exist_ok=True)
    with failing(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        _begin(connection, collection)
        done = dict(connection.execute("SELECT name, texts FROM parts"))
        total: int = sum(done.values())
        for part in texts.parts():
            if part.name in done:
                continue
            connection.execute("BEGIN")
            number = 0
            for page_id, text in texts.of(part, pages.ids):
                connection.execute(
                    "INSERT INTO texts (rowid, text) VALUES (?, ?)", (page_id, " ".join(words(text)))
                )
                number += 1
                on_progress(total + number)
            connection.execute("INSERT INTO parts VALUES (?, ?)", (part.name, number))
            connection.execute("COMMIT")
            total += number
        connection.execute("DELETE FROM built")
        connection.execute("INSERT INTO built VALUES (?)", (json.dumps(_inputs(collection)),))
    return total


def _begin(connection: sqlite3.Connection, collection: Collection) -> None:
    """Go on with the index of inputs that the collection still has, or begin with an empty one."""
    connection.execute("CREATE TABLE IF NOT EXISTS begun (inputs TEXT NOT NULL)")
    saved = connection.execute("SELECT inputs FROM begun").fetchone()
    now = _inputs(collection)
    before = json.loads(saved[0]) if saved else None
    if before is None or now[: len(before)] != before:
        connection.execute("DELETE FROM begun")
        connection.executescript(_SCHEMA)
    connection.execute("DELETE FROM begun")
    connection.execute("INSERT INTO begun VALUES (?)", (json.dumps(now),))


def _inputs(collection: Collection) -> list[Any]:
    return list((read_state(collection.folder) or {})["inputs"])


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """What SQLite and the file system say of a file, as an error that names it."""
    try:
        yield
    except sqlite3.Error as exc:
        if getattr(exc, "sqlite_errorcode", 0) in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise ConfigurationError(f"{path} is damaged ({exc}); delete it, and it is made again") from exc
        raise NeardupError(
            f"{path}: {exc}; what was done is kept, and the same command goes on from there"
        ) from exc
    except OSError as exc:
        raise NeardupError(
            f"{exc.filename or path}: {exc.strerror or exc}; what was done is kept, and the same command goes"
            " on from there"
        ) from exc
