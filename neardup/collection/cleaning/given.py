"""Results that a search engine has found: a TREC run, its answers in a file, or its answers over HTTP."""

from __future__ import annotations

import json
import sqlite3
import urllib.request
from http.client import HTTPException
from operator import itemgetter
from typing import TYPE_CHECKING
from urllib.parse import quote

from neardup.collection.answers import MOST_RESULTS, SearchAnswer
from neardup.collection.cleaning.search_log import clean_query
from neardup.collection.failing import failing
from neardup.errors import ConfigurationError, NeardupError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from neardup.collection.cleaning.pages import CleanPages, Rows
    from neardup.collection.cleaning.work import Query

_LINES = (".jsonl", ".jl", ".ndjson", ".jsonlines", ".json")
_RUN_COLUMNS = 6
_SECONDS = 60
_MOST_BYTES = 100_000_000
_PLACES = 1 << 14
"""Places in a file that are noted at once."""


class LiveSearch:
    """The answers of Elasticsearch, OpenSearch or Solr to a URL with ``{query}``, and perhaps ``{depth}``.

    NeardupError: the engine does not answer, or its answer has no results.
    """

    def __init__(self, url: str, url_field: str, pages: CleanPages, depth: int) -> None:
        self._url, self._url_field, self._pages = url, url_field, pages
        self._depth = min(depth, MOST_RESULTS)

    def results(self, query: Query) -> Iterator[Rows]:
        url = self._url.replace("{query}", quote(query.text, safe="")).replace("{depth}", str(self._depth))
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310  # checked: http(s)
                body = response.read(_MOST_BYTES)
            found = SearchAnswer.of_json(body).results
        except (OSError, HTTPException, ValueError, NeardupError) as exc:
            raise NeardupError(
                f"{url}: {exc}; what was done is kept, and the same command goes on from there"
            ) from exc
        yield self._pages.rows_of_urls(one.text(self._url_field) or str(one.id) for one in found)

    def close(self) -> None:
        """Nothing is open between queries."""


class FiledSearch:
    """Results in a file, found by the names of queries; :func:`note_places` has been over the file.

    A TREC run has lines of ``query Q0 URL rank score tag``. JSON Lines have ``query`` and ``answer``, an
    answer of Elasticsearch, OpenSearch or Solr.
    """

    def __init__(self, path: Path, places: Path, url_field: str, pages: CleanPages) -> None:
        self._path, self._url_field, self._pages = path, url_field, pages
        with failing(path):
            self._file = path.open("rb")
            self._connection = sqlite3.connect(f"{places.absolute().as_uri()}?mode=ro", uri=True)

    def results(self, query: Query) -> Iterator[Rows]:
        with failing(self._path):
            rows = self._connection.execute(
                "SELECT start, bytes FROM places WHERE name = ? ORDER BY start", (query.name,)
            )
            found = b"".join(self._read(*row) for row in rows)
        if not found:
            return
        if _is_answers(self._path):
            results = [result for line in found.splitlines() for result in _answer(self._path, line).results]
            urls: Iterable[str] = (one.text(self._url_field) or str(one.id) for one in results)
        else:
            ranked = [(int(row[3]), row[2]) for row in map(_columns, found.splitlines()) if row]
            urls = (url for _, url in sorted(ranked, key=itemgetter(0)))
        yield self._pages.rows_of_urls(urls)

    def close(self) -> None:
        self._connection.close()
        self._file.close()

    def _read(self, start: int, length: int) -> bytes:
        self._file.seek(start)
        return self._file.read(length)


def note_places(path: Path, connection: sqlite3.Connection) -> int:
    """Note where the results of each query stand in a file; returns how many lines say nothing."""
    connection.execute("CREATE TABLE places (name TEXT NOT NULL, start INTEGER, bytes INTEGER)")
    damaged = start = 0
    noted: list[tuple[str, int, int]] = []
    try:
        with path.open("rb") as file:
            for line in file:
                name = _name(path, line)
                if name is None:
                    damaged += bool(line.strip())
                elif noted and noted[-1][0] == name and sum(noted[-1][1:]) == start:
                    noted[-1] = (name, noted[-1][1], noted[-1][2] + len(line))
                else:
                    if len(noted) >= _PLACES:
                        connection.executemany("INSERT INTO places VALUES (?, ?, ?)", noted)
                        noted = []
                    noted.append((name, start, len(line)))
                start += len(line)
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror or exc}") from exc
    connection.executemany("INSERT INTO places VALUES (?, ?, ?)", noted)
    connection.execute("CREATE INDEX places_by_name ON places (name)")
    return damaged


def _is_answers(path: Path) -> bool:
    return path.suffix.lower() in _LINES


def _name(path: Path, line: bytes) -> str | None:
    """The query that the results of a line are of; None: the line is damaged."""
    if not _is_answers(path):
        columns = _columns(line)
        return clean_query(columns[0]) if columns else None
    try:
        found = json.loads(line)
        SearchAnswer(found["answer"])
        return clean_query(found["query"]) if isinstance(found["query"], str) else None
    except (ValueError, KeyError, TypeError, RecursionError, NeardupError):
        return None


def _columns(line: bytes) -> list[str] | None:
    columns = line.decode("utf-8", "replace").split()
    return columns if len(columns) == _RUN_COLUMNS and columns[3].isdecimal() else None


def _answer(path: Path, line: bytes) -> SearchAnswer:
    try:
        return SearchAnswer(json.loads(line)["answer"])
    except (ValueError, KeyError, TypeError, NeardupError) as exc:
        raise NeardupError(f"{path} has changed while it was read: {exc}") from exc
