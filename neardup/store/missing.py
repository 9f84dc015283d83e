"""Canonical pages that are missing in the tables, and what becomes of their duplicates.

Either the database has refused a missing page, or the page has been removed while the crawl ran. The
duplicates of a missing page are stored as new pages, so that they are not lost with it. The crawl at its end,
or the next crawl, finds that these new pages are near-copies of each other.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from neardup.detection.verdict import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from neardup.detection.verdict import Verdict
    from neardup.store.history import Visit


class MissingPages:
    """URLs of missing pages by their ids; one thread changes them, any may read ``urls``."""

    def __init__(self) -> None:
        self.urls: Mapping[int, str] = {}

    def discover(self, visits: Mapping[int, list[Visit]], is_stored: Callable[[int], bool]) -> bool:
        """Add a page that one of these is a duplicate of and that is not stored; whether there was one."""
        for seen in self.without(visits)[0].values():
            verdict = seen[-1][0]
            if verdict.canonical_id is not None and not is_stored(verdict.canonical_id):
                self.urls = {**self.urls, verdict.canonical_id: verdict.canonical_url or ""}
                return True
        return False

    def remove(self, page_ids: Iterable[int]) -> None:
        """These pages are stored by now."""
        if self.urls:
            gone = set(page_ids)
            self.urls = {page_id: url for page_id, url in self.urls.items() if page_id not in gone}

    def without(self, visits: Mapping[int, list[Visit]]) -> tuple[Mapping[int, list[Visit]], set[int]]:
        """Visits by page, those of duplicates of missing pages as of new pages; and the ids of pages that are
        that by now.
        """
        if not self.urls:
            return visits, set()
        changed = {
            page_id: [(self._on_its_own(verdict), at) for verdict, at in seen]
            for page_id, seen in visits.items()
        }
        return changed, {
            page_id for page_id, seen in visits.items() if seen[-1][0] is not changed[page_id][-1][0]
        }

    def _on_its_own(self, verdict: Verdict) -> Verdict:
        if verdict.canonical_id not in self.urls:
            return verdict
        return replace(
            verdict,
            kind=Kind.NEW,
            canonical_id=None,
            canonical_url=None,
            distance=None,
            resemblance=None,
            evidence=None,
        )
