"""The project's own store, whose pages have their fingerprints already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from neardup.collection.inputs.found import End, Known, Origin, Record, Values
from neardup.store.store import Store
from neardup.store.stored_pages import kept_texts, page_rows, state

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class StoredPages:
    """The pages of a database in the order of their ids, in one part. A place is a number in this order."""

    url: str = field(repr=False)
    scheme: str
    size: int

    @classmethod
    def open(cls, url: str, scheme: str) -> tuple[StoredPages, dict[str, object]]:
        """The pages, and what tells them from others. StoreError if they are of another scheme."""
        with Store.open(url, scheme=scheme, create=False) as store, store.reading() as connection:
            found = state(connection)
            return cls(url, scheme, int(found["pages"])), {"path": store.location, **found}

    @property
    def starts(self) -> list[int]:
        return [0]

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        place = 0
        with Store.open(self.url, scheme=self.scheme, create=False) as store, store.reading() as connection:
            for place, row in enumerate(page_rows(connection)):
                origin = Origin(place=place, url=row.actual_url, date=row.first_seen)
                yield Known(origin, Values(*row[2:]))
        yield End(place + 1)

    def texts(self) -> Iterator[tuple[int, str]]:
        """The texts that crawls have kept (``NEARDUP_KEEP_TEXT``), with the places of their pages."""
        with Store.open(self.url, scheme=self.scheme, create=False) as store, store.reading() as connection:
            for place, text in enumerate(kept_texts(connection)):
                if text is not None:
                    yield place, text
