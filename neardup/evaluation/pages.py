"""The pages to be compared, each read once by every choice of features."""

from __future__ import annotations

import hashlib
from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.fingerprint import sketch
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.fingerprint.reader import Reader
from neardup.fingerprint.simhash import Fingerprint
from neardup.text.content import Content
from neardup.text.features import Features
from neardup.text.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


class Prints(NamedTuple):
    """What one choice of features makes of all pages; zeros for a page without words."""

    values: npt.NDArray[np.uint64]
    """Fingerprints, shape (n,)."""
    weights: npt.NDArray[np.float64]
    """Their bit weights, shape (n, 64)."""
    sketches: npt.NDArray[np.uint64]
    """Compact sketches, shape (n, size // 64)."""

    def fingerprint(self, row: int) -> Fingerprint:
        return Fingerprint(int(self.values[row]), self.weights[row])


class _Column:
    """Fingerprints and sketches by one reader, as they come in."""

    def __init__(self, features: Features) -> None:
        self._reader = Reader(Content(), features)
        self._values = array("Q")
        self._weights: list[npt.NDArray[np.float64]] = []
        self._sketches: list[npt.NDArray[np.uint64]] = []

    def read(self, text: str) -> None:
        reading = self._reader.read_text(text)
        made, compact = reading.fingerprint, reading.sketch
        self._values.append(0 if made is None else made.value)
        self._weights.append(np.zeros(FINGERPRINT_BITS) if made is None else made.weights)
        self._sketches.append(np.zeros(sketch.SIZE // 64, dtype=np.uint64) if compact is None else compact)

    def prints(self) -> Prints:
        return Prints(
            np.array(self._values, dtype=np.uint64),
            np.array(self._weights, dtype=np.float64).reshape(-1, FINGERPRINT_BITS),
            np.array(self._sketches, dtype=np.uint64).reshape(-1, sketch.SIZE // 64),
        )


class Pages:
    """Pages by row number: ``names``, and ``sets`` of 3-word shingles, from which the exact resemblance is
    computed.

    Words are always those of the plain features, so that the truth does not depend on what the truth
    measures. Apart from the set, some 700 bytes of a page are kept for each choice of features. The text of a
    page is not kept.
    """

    def __init__(self, features: Sequence[Features]) -> None:
        self._plain = Features()
        self._columns = {one.name: _Column(one) for one in features}
        self._distinct_words = array("q")
        self._texts = array("q")
        self._known_texts: dict[bytes, int] = {}
        self.names: list[str] = []
        self.sets: list[npt.NDArray[np.uint64]] = []

    def __len__(self) -> int:
        return len(self.names)

    def add(self, name: str, text: str, *, min_features: int = 0) -> int | None:
        """Row of a new page with a visible text; None, and nothing is kept, if it has fewer distinct words.

        Raises PageTooLarge, and keeps nothing, if it has too many words.
        """
        extracted = self._plain.extract(text, Limits().check_words)
        if extracted.distinct_words < min_features:
            return None
        for column in self._columns.values():
            column.read(text)
        digest = hashlib.blake2b(extracted.words.tobytes(), digest_size=16).digest()
        self._texts.append(self._known_texts.setdefault(digest, len(self._known_texts)))
        self._distinct_words.append(extracted.distinct_words)
        self.names.append(name)
        self.sets.append(sketch.shingle_set(extracted.words))
        return len(self.names) - 1

    @property
    def distinct_words(self) -> Ints:
        """Shape (n,)."""
        return np.array(self._distinct_words, dtype=np.int64)

    @property
    def texts(self) -> Ints:
        """Numbers, shape (n,), equal for pages that have the same words in the same order."""
        return np.array(self._texts, dtype=np.int64)

    def prints(self, features: str) -> Prints:
        return self._columns[features].prints()
