"""A page as the store gives it back: to a crawl that starts, and to one that follows what others write."""

from __future__ import annotations

from typing import NamedTuple


class StoredPage(NamedTuple):
    """A page as it stands in the tables.

    ``canonical_id`` is None unless the page is a duplicate. ``value``, ``sketch`` and ``weak_bits`` are None
    if the page has no words. ``text_digest`` is None if the page is gone.

    A page that is not ``fresh`` is known, but no other page is its duplicate any more. The fields after
    ``fresh`` are read only of pages that other crawls write meanwhile. ``distance`` is that to the canonical
    page, in bits.
    """

    page_id: int
    url: str
    value: int | None
    features: int
    canonical_id: int | None
    sketch: bytes | None
    text_digest: int | None
    headline: bytes | None = None
    fresh: int = 1
    weak_bits: bytes | None = None
    canonical_url: str | None = None
    distance: int | None = None
    kind: str | None = None

    def can_be_canonical(self, min_features: int) -> bool:
        """Whether a page has enough words for others to be its duplicates."""
        return self.value is not None and self.sketch is not None and self.features >= min_features
