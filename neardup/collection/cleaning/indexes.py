"""The full-text indexes that a clean-up can search with, by their names."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from neardup.collection.cleaning import tantivy_index, text_index
from neardup.collection.cleaning.tantivy_index import GrowingTantivyIndex, TantivyIndex
from neardup.collection.cleaning.text_index import GrowingTextIndex, TextIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from neardup.collection.build import Part
    from neardup.collection.cleaning.pages import CleanPages
    from neardup.collection.cleaning.texts import Texts
    from neardup.collection.dataset import Collection


class Engine(StrEnum):
    """What makes the index of a collection."""

    SQLITE = "sqlite"
    TANTIVY = "tantivy"


def is_complete(collection: Collection, engine: Engine) -> bool:
    """Whether the index has the texts of all inputs that the collection is built of now."""
    if engine is Engine.TANTIVY:
        return tantivy_index.is_complete(collection)
    return text_index.is_complete(collection)


def open_index(collection: Collection, engine: Engine, pages: CleanPages) -> TextIndex | TantivyIndex:
    """The complete index of a collection; NeardupError: it cannot be read."""
    if engine is Engine.TANTIVY:
        return TantivyIndex(tantivy_index.index_folder(collection), pages)
    return TextIndex(text_index.index_file(collection), pages)


def build(
    collection: Collection,
    engine: Engine,
    texts: Texts,
    pages: CleanPages,
    on_progress: Callable[[int], None],
) -> int:
    """Make the index, or go on with one; returns how many pages have a text in it.

    A part of an input is indexed as a whole or not at all. NeardupError: the index cannot be written.
    """
    with (GrowingTantivyIndex if engine is Engine.TANTIVY else GrowingTextIndex)(collection) as index:
        total = sum(index.done.values())

        def told(part: Part) -> Iterator[tuple[int, str]]:
            for number, found in enumerate(texts.of(part, pages.ids), total + 1):
                yield found
                on_progress(number)

        for part in texts.parts():
            if part.name not in index.done:
                total += index.add(part.name, told(part))
        index.finish()
    return total
