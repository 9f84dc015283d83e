"""Batches that wait to be stored.

A batch is divided if it is large, or if the database does not take it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from neardup.detection.verdict import Relation
    from neardup.store.history import Visit
    from neardup.store.page_links import StoredLinks
    from neardup.store.url_rules import StoredRule
    from neardup.urls.rules import Rule

MOST_ROWS = 5_000
"""So that what has piled up while the database was away does not become one endless transaction."""

_SHOWN_CHARACTERS = 200

_ROW_BYTES = 1_000
"""Of a page, about, beside its URL."""

_OTHERS = ("links", "page_links", "flags", "soft_404", "reconciled", "frequencies", "rules", "ips")
"""What a batch has beside visits, by the names of its fields."""


@dataclass(slots=True)
class Batch:
    """What is stored in one transaction, by page: visits, and what else is known of pages.

    ``links`` are numbers of links that were not followed. ``page_links`` are the links themselves
    (:mod:`neardup.store.page_links`). ``flags`` are times at which canonical pages were
    flagged. ``soft_404`` are pages that stand for others that are not there. ``reconciled`` are pages that
    have become duplicates, because two crawls had called near-copies new. The last visit of a page counts;
    visits before the last are there for the history only.
    ``frequencies`` are pages and counts by host (:mod:`neardup.store.frequencies`). ``rules`` are rules of
    URLs (:mod:`neardup.store.url_rules`). ``ips`` are times at which a host had an IP address, by both
    (:mod:`neardup.store.host_ips`).
    """

    visits: dict[int, list[Visit]] = field(default_factory=dict)
    links: dict[int, int] = field(default_factory=dict)
    page_links: dict[int, StoredLinks] = field(default_factory=dict)
    flags: dict[int, datetime] = field(default_factory=dict)
    soft_404: dict[int, bool] = field(default_factory=dict)
    reconciled: dict[int, tuple[Relation, datetime]] = field(default_factory=dict)
    frequencies: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    rules: dict[Rule, StoredRule] = field(default_factory=dict)
    ips: dict[tuple[str, str], datetime] = field(default_factory=dict)

    def __len__(self) -> int:
        # Asked for several times a page: a loop over _OTHERS takes three times as long.
        of_pages = len(self.visits) + len(self.links) + len(self.page_links)
        of_pages += len(self.flags) + len(self.soft_404) + len(self.reconciled)
        return of_pages + len(self.frequencies) + len(self.rules) + len(self.ips)

    @property
    def stands_alone(self) -> bool:
        """Whether it is one page, maybe with its links, or one other row: nothing that can be divided."""
        of_visits = sum(
            links.keys() <= self.visits.keys() and len(links) for links in (self.links, self.page_links)
        )
        return len(self) == 1 or (len(self.visits) == 1 and len(self) == 1 + of_visits)

    @property
    def name(self) -> str:
        """What a row that stands alone is called in the log: its URL, or the beginning of a long one."""
        if self.frequencies:
            (host,) = self.frequencies
            return f"the host {host!r}"
        if self.rules:
            (rule,) = self.rules
            return f"the rule {str(rule)!r}"
        if self.ips:
            ((host, ip),) = self.ips
            return f"the IP address {ip} of {host!r}"
        if not self.visits:
            (page_id,) = {*self.links, *self.page_links, *self.flags, *self.soft_404, *self.reconciled}
            return f"page {page_id}"
        ((verdict, _),) = next(iter(self.visits.values()))[-1:]
        if len(verdict.url) <= _SHOWN_CHARACTERS:
            return verdict.url
        return f"{verdict.url[:_SHOWN_CHARACTERS]}... ({len(verdict.url):,} characters)"


def split(everything: Batch) -> tuple[Batch, Batch]:
    """A batch of bearable size and what is left. Visits go first: nothing else may be stored
    before its page.
    """
    if len(everything) <= MOST_ROWS:
        return everything, Batch()
    pages = list(everything.visits)[:MOST_ROWS]
    now = Batch({page: everything.visits.pop(page) for page in pages})
    if not everything.visits:
        for name in _OTHERS:
            rows = getattr(everything, name)
            setattr(now, name, {key: rows.pop(key) for key in list(rows)[:MOST_ROWS]})
    return now, everything


def halves(batch: Batch) -> tuple[Batch, Batch]:
    """The two parts of a batch that does not stand alone, to be stored one after the other.

    Each part has about half of the bytes of the URLs.
    Pages come before what refers to them: the canonical pages before their duplicates, and each with its
    links.
    """
    if not batch.visits:
        rows = [(name, key, value) for name in _OTHERS for key, value in getattr(batch, name).items()]
        return _of_rows(rows[: len(rows) // 2]), _of_rows(rows[len(rows) // 2 :])
    pages = sorted(batch.visits, key=lambda page_id: batch.visits[page_id][-1][0].is_duplicate)
    # Where one row is longer than all others together, it stands alone after two divisions.
    ends = list(accumulate(_ROW_BYTES + len(batch.visits[page_id][-1][0].url) for page_id in pages))
    first = dict.fromkeys(islice(pages, max(1, bisect_left(ends, ends[-1] / 2))))
    return (
        Batch(
            {page_id: batch.visits[page_id] for page_id in first},
            {page_id: batch.links[page_id] for page_id in first if page_id in batch.links},
            {page_id: batch.page_links[page_id] for page_id in first if page_id in batch.page_links},
        ),
        Batch(
            {page_id: batch.visits[page_id] for page_id in pages if page_id not in first},
            {page_id: links for page_id, links in batch.links.items() if page_id not in first},
            {page_id: links for page_id, links in batch.page_links.items() if page_id not in first},
            batch.flags,
            batch.soft_404,
            batch.reconciled,
            batch.frequencies,
            batch.rules,
            batch.ips,
        ),
    )


def _of_rows(rows: list[tuple[str, int | str | Rule | tuple[str, str], Any]]) -> Batch:
    batch = Batch()
    for name, key, value in rows:
        getattr(batch, name)[key] = value
    return batch
