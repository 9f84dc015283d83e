"""Work on stored collections of fingerprints; nothing here is imported by a crawl."""

from __future__ import annotations

from neardup.collection.distinct import distinct

__all__ = ["distinct"]
