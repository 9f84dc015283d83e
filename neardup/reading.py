"""Page in, fingerprint and sketch out: the one way to what a page is compared by."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from neardup import feature_kernels, simhash, sketch, templates
from neardup.content import LEARNED
from neardup.scheme import Scheme

if TYPE_CHECKING:
    from lxml import etree

    from neardup.content import Content
    from neardup.features import Features
    from neardup.simhash import Fingerprint
    from neardup.sketch import Compact, Hashes


@dataclass(slots=True)
class ReadingSeconds:
    """Seconds spent on each step so far."""

    purify: float = 0.0
    features: float = 0.0
    simhash: float = 0.0
    sketch: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a page is compared by; ``fingerprint`` is None if its content has no features, ``sketch`` if it has no words.

    ``shingles`` are those of its text in their order, shape (n,); ``drawn`` is their whole sketch, shape (size,), of which
    ``sketch`` keeps a bit each.
    """

    fingerprint: Fingerprint | None
    sketch: Compact | None
    shingles: Hashes
    drawn: Hashes
    distinct_words: int


class Reader:
    """Reads pages by one choice of content, features and size of sketches."""

    def __init__(self, content: Content, features: Features, sketch_size: int = sketch.SIZE) -> None:
        if content.mode == LEARNED:
            templates.check_size(sketch_size)
        self.content = content
        self.features = features
        self.scheme = Scheme(
            features=features.name, content=content.name, sketch_size=sketch.check_size(sketch_size)
        )
        self.seconds = ReadingSeconds()

    def read_tree(self, url: str, root: etree._Element) -> Reading:
        """Read an HTML page by the lxml tree of its document, which is not changed."""
        started = perf_counter()
        text = self.content.text(url, root)
        self.seconds.purify += perf_counter() - started
        return self.read_text(text)

    def read_html(self, url: str, html: str | bytes) -> Reading:
        """Read a page by its HTML, or plain text, which is HTML without tags."""
        started = perf_counter()
        text = self.content.text_of_html(url, html)
        self.seconds.purify += perf_counter() - started
        return self.read_text(text)

    def read_text(self, text: str) -> Reading:
        """Read a purified text."""
        seconds = self.seconds
        started = perf_counter()
        extracted = self.features.extract(text)
        extracted_at = perf_counter()
        fingerprint = simhash.fingerprint(extracted.hashes, extracted.weights)
        fingerprinted_at = perf_counter()
        shingles = feature_kernels.shingles(extracted.words, sketch.WIDTH)
        drawn, compacted = shingles, None
        if shingles.size:
            drawn = sketch.minwise(shingles, self.scheme.sketch_size)
            compacted = sketch.compact(drawn)
        seconds.features += extracted_at - started
        seconds.simhash += fingerprinted_at - extracted_at
        seconds.sketch += perf_counter() - fingerprinted_at
        return Reading(fingerprint, compacted, shingles, drawn, extracted.distinct_words)
