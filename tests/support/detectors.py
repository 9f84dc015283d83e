"""Detectors, the texts they judge, and those texts changed a little."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.stored_page import StoredPage
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from neardup.detection.verdict import Verdict

TEXTS = {
    name: " ".join(f"{name}{i}" for i in range(60)) + " shared words of one site"
    for name in ("apple", "pear", "plum", "fig")
}


def detector(**options: Any) -> Detector:
    return Detector(DetectorOptions(**options))


def edited(text: str, words: int = 1) -> str:
    """The text with some of its words replaced."""
    parts = text.split()
    parts[:words] = [f"edit{i}" for i in range(words)]
    return " ".join(parts)


def shuffled(text: str, seed: int = 1) -> str:
    """The same words in another order: the same word frequencies, but other shingles."""
    words = text.split()
    random.Random(seed).shuffle(words)
    return " ".join(words)


def remembered(verdict: Verdict) -> StoredPage:
    """A verdict as a store gives it back to the next crawl."""
    assert verdict.page_id is not None
    value = verdict.fingerprint.value if verdict.fingerprint else None
    drawn = None if verdict.sketch is None else sketch.to_bytes(verdict.sketch)
    return StoredPage(
        verdict.page_id,
        verdict.url,
        value,
        verdict.features,
        verdict.canonical_id,
        drawn,
        verdict.text_digest,
    )
