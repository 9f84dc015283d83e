"""The digests of the texts of canonical pages: by row number, and from a digest to the pages that have it.

What the index proposes and the sketches confirm is a likely duplicate. A page of the very same text is a
certain duplicate. The digest finds such a page however many other pages are alike.
"""

from __future__ import annotations

from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.detection.key_table import KeyTable
from neardup.detection.pool import grown
from neardup.detection.snapshot import SnapshotError

if TYPE_CHECKING:
    import numpy.typing as npt

_AT_ONCE = 1 << 20
"""Digests that are put into the table together, so that what that takes of memory is bounded."""

_MOST_ROWS = 64
"""Pages of one digest that are told. There is one, but for what is said of :class:`KnownDigests`."""

_KEY = Struct("<QQ")


class KnownDigests:
    """Digests by row, and rows by digest.

    A digest of 0 stands for none. A page's site is mixed into the digest if the scope is bounded. The memory
    is eight bytes a page, and 25 to 31 for each page that has a digest.

    Two canonical pages may have the same digest, when two crawls met the text at once. The table then names
    the last page, and the other pages wait beside the table. When the page that is named goes, another is
    named.
    """

    def __init__(self) -> None:
        self._digests = np.zeros(1024, dtype=np.uint64)
        self._rows = KeyTable()
        self._others: dict[int, dict[int, None]] = {}
        """Rows that the table does not name, by digest, in the order in which they came."""

    def nbytes(self, pages: int) -> int:
        """Bytes that the digests of the first ``pages`` pages take."""
        parts = self._rows.parts()
        return 8 * pages + sum(part.nbytes for pieces in parts.values() for part in pieces)

    def of(self, row: int) -> int:
        """The digest of a page; 0: none."""
        return int(self._digests[row]) if row < self._digests.size else 0

    def rows(self, digest: int) -> list[int]:
        """Some pages that have this digest: all, unless there are more than 64."""
        row = self._rows.find(_key(digest))
        return [] if row < 0 else [row, *islice(self._others.get(digest, ()), _MOST_ROWS - 1)]

    def put(self, row: int, digest: int) -> None:
        """Keep the digest of a page in place of the one that it had."""
        if self.of(row) == digest:
            return
        self.drop(row)
        if row >= self._digests.size:
            self._digests = grown(self._digests, row + 1)
        named = self._rows.find(_key(digest))
        if named >= 0:
            self._others.setdefault(digest, {})[named] = None
        self._rows.put(_key(digest), row)
        self._digests[row] = digest

    def drop(self, row: int) -> None:
        """Forget the digest of a page, if there is one."""
        digest = self.of(row)
        if not digest:
            return
        self._digests[row] = 0
        others = self._others.get(digest)
        if others is None:
            self._rows.remove(_key(digest))
            return
        if row in others:
            del others[row]
        else:
            self._rows.put(_key(digest), others.popitem()[0])
        if not others:
            del self._others[digest]

    @classmethod
    def from_array(cls, digests: npt.NDArray[np.uint64]) -> KnownDigests:
        """Those of the first n pages, shape (n,); 0: none."""
        known = cls()
        known._digests = grown(known._digests, digests.size)
        known._digests[: digests.size] = digests
        rows = np.flatnonzero(digests)
        known._rows.reserve(rows.size)
        for start in range(0, rows.size, _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            keys = np.repeat(digests[some].view(np.int64), 2).reshape(-1, 2)
            known._rows.put_many(keys, some)
        if len(known._rows) < rows.size:
            rows = rows[np.argsort(digests[rows], kind="stable")]
            for row in rows[:-1][digests[rows[:-1]] == digests[rows[1:]]].tolist():
                known._others.setdefault(int(digests[row]), {})[row] = None
        return known

    @classmethod
    def from_snapshot(
        cls, digests: npt.NDArray[Any] | None, canonical: npt.NDArray[np.int32]
    ) -> KnownDigests:
        """Those of a snapshot whose pages have these canonical pages, shape (n,); SnapshotError if they are
        not n.
        """
        if digests is None or digests.dtype != np.uint64 or digests.shape != canonical.shape:
            raise SnapshotError("the digests of a snapshot are not those of its pages")
        return cls.from_array(np.where(canonical == np.arange(canonical.size), digests, np.uint64(0)))

    def array(self, pages: int) -> npt.NDArray[np.uint64]:
        """The digests of the first ``pages`` pages, shape (pages,); a view."""
        if pages > self._digests.size:
            self._digests = grown(self._digests, pages)
        return self._digests[:pages]


def _key(digest: int) -> bytes:
    # The table takes its shard from one half of a key and the place in it from other bits of the other half.
    return _KEY.pack(digest, digest)
