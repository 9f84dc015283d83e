"""What the ready-made spider yields: one item a page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class PageItem:
    """A crawled page and its verdict; ``distance`` (bits), ``percentage`` and ``resemblance`` are those to
    the canonical page.
    """

    url: str
    title: str
    verdict: str
    canonical_url: str | None = None
    distance: int | None = None
    percentage: float | None = None
    resemblance: float | None = None
