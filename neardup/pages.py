"""The pages a detector knows: their ids, fingerprints and canonical pages, by row number and by URL."""

from __future__ import annotations

import hashlib
from array import array
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

NONE = -1
"""Row number that stands for *no page*."""

PAGES_PER_CRAWL = 1_000_000_000
"""Ids a crawl may give out: page ``n`` of crawl ``c`` has the id ``c * PAGES_PER_CRAWL + n``.

The id of a page is needed before its row is committed, and several crawls may write to one database. The crawl's
own id, given out by the database, makes the ranges disjoint without any further agreement.
"""


def page_url(url: str) -> str:
    """The URL that identifies a page: without its fragment, which no server ever sees.

    >>> page_url("http://a.example/x?y=1#part")
    'http://a.example/x?y=1'
    """
    return url.partition("#")[0]


def url_key(url: str) -> bytes:
    """16-byte BLAKE2b digest of a page's URL: the unique key of a page, for URLs of any length.

    Not a fast hash: whoever could make two URLs collide could make one page pass for another.
    """
    return hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class KnownPages:
    """Columns over all known pages; a row number never changes its meaning.

    The index stores row numbers, so that it needs neither ids nor URLs. ``canonical[row]`` is the row of the canonical
    page, the row itself if the page is canonical, and ``NONE`` if the page is neither (too short to be matched).
    """

    def __init__(self) -> None:
        self._row_of_key: dict[bytes, int] = {}
        self.ids = array("q")
        self.urls: list[str] = []
        self.values = array("Q")
        self.canonical = array("q")

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, url: str) -> int:
        """Row number of the page with this URL, or ``NONE``."""
        return self._row_of_key.get(url_key(url), NONE)

    def fingerprints(self, rows: Sequence[int]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Fingerprints of the given rows and the rows themselves, both of shape (n,)."""
        chosen = np.array(rows, dtype=np.int64)
        return np.array(self.values, dtype=np.uint64)[chosen], chosen

    def add(self, url: str, *, page_id: int, value: int, canonical: int) -> int:
        """Append a page and return its row number."""
        row = len(self.ids)
        self._row_of_key[url_key(url)] = row
        self.ids.append(page_id)
        self.urls.append(url)
        self.values.append(value)
        self.canonical.append(canonical)
        return row
