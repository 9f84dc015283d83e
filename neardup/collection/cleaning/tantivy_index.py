"""Another embedded search: a full-text index of a collection by tantivy, ranked by BM25 (extra ``tantivy``).

Pages and words are those of :mod:`neardup.collection.cleaning.text_index`. tantivy finds the best pages
without ranking all others, so a query of frequent words takes a fraction of the time. It keeps the length of
a text in one byte. So pages of nearly equal rank may change places.
"""

from __future__ import annotations

import importlib
import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection.cleaning.text_index import inputs_of, query_words
from neardup.collection.failing import failing
from neardup.errors import ConfigurationError, NeardupError
from neardup.text.words import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from neardup.collection.cleaning.pages import CleanPages, Rows
    from neardup.collection.cleaning.work import Query
    from neardup.collection.dataset import Collection

_RESULTS_AT_FIRST = 1_000
_ANALYZER = "neardup"
_LONGEST_WORD = 65_000
"""Bytes. tantivy takes no term of 65,531 bytes or more."""


class TantivyIndex:
    """Pages that have all words of a query, the best first by BM25; ``folder`` is that of a complete index.

    NeardupError: the index cannot be read.
    """

    def __init__(self, folder: Path, pages: CleanPages) -> None:
        if not _note(folder).is_file():
            raise NeardupError(f"{folder} is gone; give --inputs to make it again")
        self._folder, self._pages = folder, pages
        self._tantivy = _module()
        with _refusing(folder):
            self._index = self._tantivy.Index.open(str(folder))
            self._searcher = self._index.searcher()

    def results(self, query: Query) -> Iterator[Rows]:
        """The rows of the results, some at a time; -1 for pages that are not in the collection."""
        found = query_words(query)
        if not found:
            return
        of, schema = self._tantivy, self._index.schema
        terms = [(of.Occur.Must, of.Query.term_query(schema, "text", word)) for word in found]
        start, at_once = 0, _RESULTS_AT_FIRST
        while True:
            with _refusing(self._folder):
                some = self._searcher.search(
                    of.Query.boolean_query(terms), at_once, count=False, offset=start
                ).hits
                ids = self._searcher.fast_field_values("id", [address for _, address in some])
            if not some:
                return
            # The order of equals within the index depends on when its parts were merged.
            order = np.lexsort((ids, [-score for score, _ in some]))
            yield self._pages.rows_of(np.array(ids, dtype=np.int64)[order])
            start, at_once = start + at_once, start + 2 * at_once

    def close(self) -> None:
        """Nothing is open but what is read."""


def index_folder(collection: Collection) -> Path:
    """Where the index of a collection stands."""
    return collection.folder / "clean" / "tantivy"


def is_complete(collection: Collection) -> bool:
    """Whether the index has the texts of all inputs that the collection is built of now."""
    return _read_note(index_folder(collection)).get("complete") == inputs_of(collection)


class GrowingTantivyIndex:
    """An index that gets texts; it goes on with what is there. NeardupError: it cannot be written."""

    def __init__(self, collection: Collection) -> None:
        self._folder, self._inputs = index_folder(collection), inputs_of(collection)
        self.done: dict[str, int] = {}
        """Texts of each part of an input that is indexed."""

    def __enter__(self) -> Self:
        of = _module()
        noted = _read_note(self._folder)
        before = noted.get("inputs")
        with _refusing(self._folder):
            if before is None or self._inputs[: len(before)] != before:
                shutil.rmtree(self._folder, ignore_errors=True)
            else:
                self.done = noted["parts"]
            self._folder.mkdir(parents=True, exist_ok=True)
            schema = (
                of.SchemaBuilder()
                .add_text_field("text", tokenizer_name=_ANALYZER, index_option="freq")
                .add_text_field("part", tokenizer_name="raw", index_option="basic")
                .add_integer_field("id", fast=True)
                .build()
            )
            self._document = of.Document
            index = of.Index(schema, str(self._folder))
            index.register_tokenizer(_ANALYZER, of.TextAnalyzerBuilder(of.Tokenizer.whitespace()).build())
            self._writer = index.writer(num_threads=1)
        return self

    def __exit__(self, *_: object) -> None:
        with _refusing(self._folder):
            self._writer.rollback()
            self._writer.wait_merging_threads()

    def add(self, name: str, texts: Iterable[tuple[int, str]]) -> int:
        """Index the texts of a part by the ids of their pages: as a whole or not at all. How many?"""
        number = 0
        with _refusing(self._folder):
            # Of a command that was killed before it could note the part.
            self._writer.delete_documents_by_term("part", name)
            for page_id, text in texts:
                known = " ".join(word for word in words(text) if len(word.encode()) <= _LONGEST_WORD)
                self._writer.add_document(self._document(text=known, part=name, id=page_id))
                number += 1
            self._writer.commit()
            self.done[name] = number
            self._write_note({})
        return number

    def finish(self) -> None:
        """All parts are indexed."""
        with _refusing(self._folder):
            self._write_note({"complete": self._inputs})

    def _write_note(self, more: dict[str, Any]) -> None:
        begun = _note(self._folder).with_suffix(".writing")
        begun.write_text(json.dumps({"inputs": self._inputs, "parts": self.done, **more}))
        begun.replace(_note(self._folder))


def _note(folder: Path) -> Path:
    return folder / "neardup.json"


def _read_note(folder: Path) -> dict[str, Any]:
    try:
        found = json.loads(_note(folder).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _module() -> Any:
    try:
        return importlib.import_module("tantivy")
    except ImportError as exc:
        raise ConfigurationError("--search tantivy needs tantivy: pip install 'neardup[tantivy]'") from exc


@contextmanager
def _refusing(folder: Path) -> Iterator[None]:
    """What tantivy says of an index, as an error that names the folder."""
    with failing(folder):
        try:
            yield
        except ValueError as exc:
            raise NeardupError(
                f"{folder}: {exc}; what was done is kept, and the same command goes on from there. If the"
                " index is damaged, delete the folder"
            ) from exc
