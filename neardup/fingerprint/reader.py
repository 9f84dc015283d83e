"""Page in, fingerprint and sketch out: the one way to what a page is compared by."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

import mmh3
import numpy as np

from neardup.fingerprint import simhash, sketch
from neardup.fingerprint.scheme import Scheme
from neardup.text import feature_kernels
from neardup.text import headline as headlines
from neardup.text.limits import Limits
from neardup.text.visible_text import decode, parse

if TYPE_CHECKING:
    from typing import Protocol

    from lxml import etree

    from neardup.fingerprint.simhash import Fingerprint
    from neardup.fingerprint.sketch import Compact, Hashes, Holders
    from neardup.text.content import Content
    from neardup.text.features import Features
    from neardup.text.headline import Headline

    class Selector(Protocol):
        @property
        def root(self) -> etree._Element: ...

    class Response(Protocol):
        """What is asked of Scrapy's HtmlResponse, in this order: what is asked last costs most."""

        @property
        def url(self) -> str: ...
        @property
        def body(self) -> bytes: ...
        @property
        def text(self) -> str: ...
        @property
        def selector(self) -> Selector: ...


_NO_HOLDERS: Holders = np.empty(0, dtype=np.int64)


@dataclass(slots=True)
class ReadingSeconds:
    """Seconds spent on each step so far."""

    text: float = 0.0
    features: float = 0.0
    simhash: float = 0.0
    sketch: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What a page is compared by.

    ``fingerprint`` is None if the content of the page has no features. ``sketch`` is None if the content has
    no words. ``shingles`` are those of the text in their order, shape (n,). ``holders`` are the
    rows of the shingles that hold the places of the full sketch, shape (size,). ``sketch`` keeps one bit of
    each place. ``text_digest`` is that
    of the visible text (64 bits, never 0). ``headline`` is that of :mod:`neardup.text.headline`.
    ``text`` is the visible text in UTF-8, if the reader keeps it.
    """

    fingerprint: Fingerprint | None
    sketch: Compact | None
    shingles: Hashes
    holders: Holders
    distinct_words: int
    text_digest: int
    headline: Headline
    text: bytes | None = None

    def can_be_matched(self, min_features: int) -> bool:
        """Whether the page has enough distinct words to be compared with others; a page without fingerprint
        or sketch has none.
        """
        has_words = self.fingerprint is not None and self.sketch is not None
        return has_words and self.distinct_words >= min_features


class Reader:
    """Reads pages by one choice of content, features and size of sketches.

    Raises PageTooLarge for a page over the limits.
    """

    def __init__(
        self,
        content: Content,
        features: Features,
        sketch_size: int = sketch.SIZE,
        limits: Limits | None = None,
        *,
        keeps_text: bool = False,
    ) -> None:
        self.keeps_text = keeps_text
        self.content = content
        self.features = features
        self.limits = limits or Limits()
        self.scheme = Scheme(
            features=features.name, content=content.name, sketch_size=sketch.check_size(sketch_size)
        )
        self.seconds = ReadingSeconds()
        self._last: tuple[str, etree._Element | None, bytes] = "", None, b""
        """URL, tree and text of the last tree that was read."""

    def read_response(self, response: Response) -> Reading:
        """Read a response, which is parsed if it has not been before."""
        self.limits.check_size(response.body)
        self.limits.check_html(response.text)
        return self.read_tree(response.url, response.selector.root)

    def read_tree(self, url: str, root: etree._Element) -> Reading:
        """Read an HTML page by the lxml tree of its document, which is not changed. Only its words are
        limited.
        """
        started = perf_counter()
        text = self.content.utf8(url, root)
        self._last = url, root, text
        headline = headlines.of_tree(root)
        self.seconds.text += perf_counter() - started
        return self._read(text, headline)

    def text_of(self, url: str, root: etree._Element) -> bytes:
        """The visible text of a page in UTF-8; the tree that was read last is not walked again."""
        last_url, last_root, text = self._last
        return text if root is last_root and url == last_url else self.content.utf8(url, root)

    def visible_text(self, url: str, root: etree._Element) -> str:
        """:meth:`text_of` as a string."""
        return self.text_of(url, root).decode("utf-8", "surrogatepass")

    def read_html(self, url: str, html: str | bytes) -> Reading:
        """Read a page by its HTML, or plain text, which is HTML without tags."""
        started = perf_counter()
        self.limits.check_size(html)
        html = html if isinstance(html, str) else decode(html)
        self.limits.check_html(html)
        root = parse(html)
        self.seconds.text += perf_counter() - started
        return self.read_text("") if root is None else self.read_tree(url, root)

    def read_text(self, text: str | bytes) -> Reading:
        """Read a visible text, or its UTF-8, which has no headline."""
        text = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        return self._read(text, headlines.none())

    def _read(self, text: bytes, headline: Headline) -> Reading:
        seconds = self.seconds
        started = perf_counter()
        extracted = self.features.extract(text, self.limits.check_words)
        extracted_at = perf_counter()
        fingerprint = simhash.fingerprint(extracted.hashes, extracted.weights)
        fingerprinted_at = perf_counter()
        shingles = feature_kernels.shingles(extracted.words, sketch.WIDTH)
        holders, compacted = _NO_HOLDERS, None
        if shingles.size:
            full_sketch, holders = sketch.draw(shingles, self.scheme.sketch_size)
            compacted = sketch.compact(full_sketch)
        digest = text_digest(text)
        seconds.features += extracted_at - started
        seconds.simhash += fingerprinted_at - extracted_at
        seconds.sketch += perf_counter() - fingerprinted_at
        return Reading(
            fingerprint,
            compacted,
            shingles,
            holders,
            extracted.distinct_words,
            digest,
            headline,
            text if self.keeps_text else None,
        )


def text_digest(text: str | bytes) -> int:
    """The first 64 bits of MurmurHash3 x64 128 of a text's UTF-8; 1 in place of 0, which stands for no
    digest.

    >>> hex(text_digest("hello"))
    '0xcbd8a7b341bd9b02'
    """
    if isinstance(text, str):
        # A lone surrogate has no UTF-8, but a page may hold one.
        text = text.encode("utf-8", "surrogatepass")
    return mmh3.mmh3_x64_128_utupledigest(text)[0] or 1
