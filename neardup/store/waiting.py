"""What waits to be stored: a batch, and how a large one is divided."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from neardup.store.history import Visit
    from neardup.verdict import Relation

MOST_ROWS = 5_000
"""So that what has piled up while the database was away does not become one endless transaction."""


@dataclass(slots=True)
class Batch:
    """What is stored in one transaction, by page: visits, links that were not followed, canonical pages flagged, and pages that have
    become duplicates because two crawls had called near-copies new.

    Of the visits of a page the last counts; those before it are there for its history only.
    """

    visits: dict[int, list[Visit]] = field(default_factory=dict)
    links: dict[int, int] = field(default_factory=dict)
    flags: dict[int, datetime] = field(default_factory=dict)
    reconciled: dict[int, tuple[Relation, datetime]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.visits) + len(self.links) + len(self.flags) + len(self.reconciled)


def split(everything: Batch) -> tuple[Batch, Batch]:
    """A batch of bearable size and what is left. Visits go first: nothing else may be stored before its page."""
    if len(everything) <= MOST_ROWS:
        return everything, Batch()
    pages = list(everything.visits)[:MOST_ROWS]
    now = Batch({page: everything.visits.pop(page) for page in pages})
    if not everything.visits:
        now.links, everything.links = everything.links, {}
        now.flags, everything.flags = everything.flags, {}
        now.reconciled, everything.reconciled = everything.reconciled, {}
    return now, everything
