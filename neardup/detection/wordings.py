"""What pages say, word by word: whether one page of a cluster has said all that another one says."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

_MOST_WORDS = 30_000_000
"""Words that are remembered, 120 MB: those of 100,000 pages of 300 words. When there are more, all are
forgotten.
"""

_MOST_OF_CLUSTER = 100
"""Pages of one cluster that are remembered: to look through as many takes about a millisecond."""


class Wordings:
    """The words of pages, by cluster, each as often as the page says it.

    >>> wordings = Wordings()
    >>> wordings.add(1, ["red", "size", "small"])
    >>> wordings.add(1, ["blue", "large", "size"])
    >>> wordings.have(1, ["size", "red"]), wordings.have(2, ["red"])
    (True, False)
    >>> wordings.have(1, ["red", "large"]), wordings.have(1, ["red", "red"])
    (False, False)
    """

    def __init__(self) -> None:
        self._pages: defaultdict[int | None, deque[NDArray[np.uint32]]] = defaultdict(
            lambda: deque(maxlen=_MOST_OF_CLUSTER)
        )
        self._remembered = 0

    def have(self, cluster: int | None, words: Iterable[str]) -> bool:
        """Whether one page of a cluster has said all these words."""
        said = _hashes(words)
        return any(
            page.size >= said.size and bool(np.isin(said, page, assume_unique=True).all())
            for page in self._pages.get(cluster, ())
        )

    def add(self, cluster: int | None, words: Iterable[str]) -> None:
        """Take note of what a page of a cluster says."""
        said = _hashes(words)
        self._remembered += said.size
        if self._remembered > _MOST_WORDS:
            self._pages.clear()
            self._remembered = said.size
        self._pages[cluster].append(said)


def _hashes(words: Iterable[str]) -> NDArray[np.uint32]:
    """A hash for each word and how often it was said before, in order, each one once, shape (n,). Of 300
    words, two have the same hash in one of 100,000 pages.
    """
    often: Counter[str] = Counter()
    hashes = []
    for word in words:
        hashes.append(hash((word, often[word])) & 0xFFFFFFFF)
        often[word] += 1
    return np.unique(np.array(hashes, dtype=np.uint32))
