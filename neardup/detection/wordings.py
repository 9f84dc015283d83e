"""What pages say, word by word: whether one page of a cluster has said all that another one says."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_MOST_BYTES = 120_000_000
"""What is remembered: the wordings of 100,000 pages of 300 words. When there is more, all are forgotten."""

_MOST_OF_CLUSTER = 100
"""Pages of one cluster that are remembered: to look through as many takes about a millisecond."""


class Wordings:
    """The wordings of pages, by cluster.

    >>> wordings = Wordings()
    >>> wordings.add(1, wording(["red", "size", "small"]))
    >>> wordings.add(1, wording(["blue", "large", "size"]))
    >>> wordings.have(1, wording(["size", "red"])), wordings.have(2, wording(["red"]))
    (True, False)
    >>> wordings.have(1, wording(["red", "large"])), wordings.have(1, wording(["red", "red"]))
    (False, False)
    """

    def __init__(self) -> None:
        self._pages: defaultdict[int | None, deque[bytes]] = defaultdict(
            lambda: deque(maxlen=_MOST_OF_CLUSTER)
        )
        self._remembered = 0

    def have(self, cluster: int | None, said: bytes) -> bool:
        """Whether one page of a cluster has said all that a wording has."""
        hashes = _hashes(said)
        return any(
            len(page) >= len(said) and bool(np.isin(hashes, _hashes(page), assume_unique=True).all())
            for page in self._pages.get(cluster, ())
        )

    def add(self, cluster: int | None, said: bytes) -> None:
        """Take note of what a page of a cluster says."""
        self._remembered += len(said)
        if self._remembered > _MOST_BYTES:
            self._pages.clear()
            self._remembered = len(said)
        self._pages[cluster].append(said)


def wording(words: Iterable[str]) -> bytes:
    """What a page says: a hash of 32 bits for each word and how often it was said before, in order, each one
    once. Of 300 words, two have the same hash in one of 100,000 pages.
    """
    often: Counter[str] = Counter()
    hashes = []
    for word in words:
        hashes.append(hash((word, often[word])) & 0xFFFFFFFF)
        often[word] += 1
    return np.unique(np.array(hashes, dtype=np.uint32)).tobytes()


def _hashes(said: bytes) -> NDArray[np.uint32]:
    return np.frombuffer(said, dtype=np.uint32)
