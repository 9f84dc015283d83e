"""The texts of a collection, read once more from its inputs: the dataset itself has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.collection.build import PLACE_BITS, numbered, parts_of, read_note, response_of
from neardup.collection.dataset import read_state
from neardup.collection.inputs.archives import Archive
from neardup.collection.inputs.found import Page, Text
from neardup.collection.inputs.stores import StoredPages
from neardup.collection.inputs.tables import Names
from neardup.errors import ConfigurationError
from neardup.text.visible_text import cleaned

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from neardup.collection.build import OpenPage, Part
    from neardup.collection.dataset import Collection
    from neardup.collection.inputs.found import End, Record
    from neardup.detection.detector import DetectorOptions


class Texts:
    """The texts of the pages of a collection, by its inputs as ``neardup collection build`` got them.

    ConfigurationError: inputs are missing, new, or have changed.
    """

    def __init__(
        self, collection: Collection, inputs: Sequence[str], options: DetectorOptions, open_page: OpenPage
    ) -> None:
        state = read_state(collection.folder) or {}
        self._inputs = numbered(collection, inputs, Names(**state["options"]))
        if new := [one.name for one in self._inputs.values()][len(state["inputs"]) :]:
            raise ConfigurationError(
                f"{collection.folder} was not built of {new[0]}: give it to neardup collection build first"
            )
        self._collection = collection
        self._reader = options.make_reader()
        self._open_page = open_page

    def parts(self) -> Iterator[Part]:
        """The parts of the inputs, in order."""
        return parts_of(self._inputs)

    def of(self, part: Part, ids: npt.NDArray[np.int64]) -> Iterator[tuple[int, str]]:
        """The texts of a part with the ids of their pages. ``ids``: those of the collection, rising."""
        first = part.number << PLACE_BITS
        places = ids[np.searchsorted(ids, first) : np.searchsorted(ids, first + (1 << PLACE_BITS))] - first
        wanted = set(places.tolist())
        stored = self._inputs[part.number].pages
        if isinstance(stored, StoredPages):
            yield from ((first + place, text) for place, text in stored.texts() if place in wanted)
            return
        for found in self._records(part):
            # What was built could be read: so no page that is in the collection fails here.
            if isinstance(found, Page | Text) and found.origin.place in wanted:
                yield first + found.origin.place, self._text(found)

    def _records(self, part: Part) -> Iterator[Record | End]:
        pages = self._inputs[part.number].pages
        if not isinstance(pages, Archive):
            return pages.records(part.start, part.end)
        # Where a part of an archive begins was found out when the collection was built.
        first = read_note(self._collection, part).first
        return pages.records(first, part.end, exact=True) if first < part.end else iter(())

    def _text(self, found: Page | Text) -> str:
        if isinstance(found, Text):
            return cleaned(found.text)
        response = response_of(found, self._open_page)
        return self._reader.content.utf8(response.url, response.selector.root).decode("utf-8", "replace")
