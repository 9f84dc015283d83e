"""Work on stored collections of fingerprints; nothing here is imported by a crawl."""

from __future__ import annotations

from neardup.collection.distinct import Kept, distinct

__all__ = ["Kept", "distinct"]
