"""The pages a detector knows: their ids, fingerprints and canonical pages, by row number and by URL.

The columns are made for tens of millions of pages. A page takes no Python object, and 58 bytes plus its URL.
Nothing pauses when something grows. Columns are lists of chunks, so that nothing is copied to make room. The
table from URL to row is 1,024 small tables, each of which grows by itself. A snapshot's memory maps are taken
over as they are (:meth:`KnownPages.from_arrays`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.address import encoded_url, key_of
from neardup.detection.key_table import SHARDS, KeyTable
from neardup.detection.records import Column, Records, fields
from neardup.detection.snapshot import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from neardup.address import Address

NONE = -1
"""Row number that stands for *no page*."""

PAGES_PER_CRAWL = 1_000_000_000
"""Ids a crawl may give out: page ``n`` of crawl ``c`` has the id ``c * PAGES_PER_CRAWL + n``.

The id of a page is needed before its row is committed, and several crawls may write to one database. The
crawl's own id, given out by the database, makes the ranges disjoint without any further agreement.
"""

_GROUP_BITS = 12  # the URLs of so many pages, some 300 kB, lie in one run of bytes
_GROUP = 1 << _GROUP_BITS


class Urls:
    """The URLs by row: UTF-8 in runs of bytes, one for each 4,096 pages, decoded when asked for."""

    __slots__ = ("_groups", "_offsets", "tail")

    def __init__(self, offsets: Column, ends: npt.NDArray[np.int64], text: npt.NDArray[np.uint8]) -> None:
        """Take over the arrays that :meth:`parts` gives; ``text`` stays where it is but for the
        last group.
        """
        self._offsets = offsets
        self._groups: list[bytes | bytearray | memoryview] = []
        self.tail = bytearray()
        start, view = 0, text.data
        for end in ends.tolist():
            self._groups.append(view[start:end])
            start = end
        if len(offsets) & (_GROUP - 1):
            self.tail = bytearray(self._groups[-1])
            self._groups[-1] = self.tail

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, row: int) -> str:
        offsets = self._offsets
        start, after = offsets[row], row + 1
        group = self._groups[row >> _GROUP_BITS]
        end = offsets[after] if after & (_GROUP - 1) and after < len(offsets) else len(group)
        return str(group[start:end], "utf-8", "surrogatepass")

    def check(self) -> None:
        """SnapshotError if one cannot be decoded; most groups are ASCII, which is seen at a glance."""
        for number, group in enumerate(self._groups):
            if len(group) and np.frombuffer(group, dtype=np.uint8).max() > 127:
                try:
                    list(map(self.__getitem__, range(number * _GROUP, min((number + 1) * _GROUP, len(self)))))
                except UnicodeDecodeError as exc:
                    raise SnapshotError(f"known pages: a URL cannot be decoded: {exc}") from exc

    def extend(self, encoded: list[bytes]) -> list[int]:
        """Add the text of the next pages, before their records; returns where in its group each begins."""
        offsets = []
        for row, text in enumerate(encoded, len(self._offsets)):
            if not row & (_GROUP - 1):
                self.begin_group(row)
            offsets.append(len(self.tail))
            self.tail += text
        return offsets

    def begin_group(self, row: int) -> None:
        """Let :attr:`tail` be that of the 4,096 pages from ``row`` on."""
        number = row >> _GROUP_BITS
        if number and isinstance(self._groups[number - 1], bytearray):
            self._groups[number - 1] = bytes(self._groups[number - 1])  # without the room for growing
        self.tail = bytearray()
        self._groups[number:] = [self.tail]  # in place of one that is there because adding to it failed

    def parts(self) -> dict[str, list[npt.NDArray[Any]]]:
        """``urls`` uint8, the bytes of all groups, and ``url_ends`` int64, where in it each group ends."""
        # There may be one group more, if adding to it failed.
        count = (len(self._offsets) + _GROUP - 1) >> _GROUP_BITS
        groups = self._groups[:count]
        ends = np.cumsum([len(group) for group in groups], dtype=np.int64)
        text = [np.frombuffer(group, dtype=np.uint8) for group in groups if len(group)]
        return {"url_ends": [ends], "urls": text or [np.empty(0, dtype=np.uint8)]}


class KnownPages:
    """Columns over all known pages; a row number never changes its meaning.

    The index stores row numbers, so that it needs neither ids nor URLs. ``canonical[row]`` is the row of the
    canonical page, or the row itself if the page is canonical. ``canonical[row]`` is ``NONE`` if the page is
    neither (too short to be matched). ``ids`` (int64), ``values`` (uint64) and ``canonical`` (int32) give and
    take Python ints; ``urls`` gives strings. Only one thread at a time may use the columns, :meth:`arrays`
    included.
    """

    def __init__(self) -> None:
        self._take(
            Records(np.empty((0, 3), dtype=np.uint64)),
            ends=np.empty(0, dtype=np.int64),
            text=np.empty(0, dtype=np.uint8),
            rows=KeyTable(),
        )

    def _take(
        self, records: Records, *, ends: npt.NDArray[np.int64], text: npt.NDArray[np.uint8], rows: KeyTable
    ) -> None:
        self._records = records
        self._rows = rows
        self.ids, self.values, self.canonical = records.ids, records.values, records.canonical
        self.urls = Urls(records.offsets, ends, text)

    def __len__(self) -> int:
        return len(self.ids)

    def row(self, page: Address) -> int:
        """Row number of a page, or ``NONE``."""
        return self.row_of_key(page.key)

    def row_of_key(self, key: bytes) -> int:
        """Row number of the page with a key, or ``NONE``."""
        return self._rows.find(key)

    def rows_of_ids(self, page_ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Row numbers of the pages with these ids, ``NONE`` for an unknown one; both of shape (n,).

        For many at once: each call looks at all pages, and sorts their ids if they are not in order.
        """
        wanted, ids = np.asarray(page_ids, dtype=np.int64), self.ids.array()
        if not ids.size:
            return np.full(wanted.shape, NONE, dtype=np.int64)
        order = None if np.all(ids[:-1] <= ids[1:]) else np.argsort(ids, kind="stable")
        at = np.minimum(np.searchsorted(ids, wanted, sorter=order), ids.size - 1)
        rows = at if order is None else order[at]
        return np.where(ids[rows] == wanted, rows, NONE)

    def fingerprints(self, rows: Sequence[int]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Fingerprints of the given rows and the rows themselves, both of shape (n,)."""
        chosen = np.asarray(rows, dtype=np.int64)
        return self.values.array()[chosen], chosen

    def add(self, page: Address, *, page_id: int, value: int, canonical: int) -> int:
        """Append a page and return its row number; ValueError, and nothing added, if a number
        does not fit.
        """
        row = self._records.length
        if not row & (_GROUP - 1):
            self.urls.begin_group(row)
        tail = self.urls.tail
        offset = len(tail)
        self._records.append(page_id, value, canonical, offset)
        try:
            tail += page.encoded
            self._rows.put(page.key, row)
        except BaseException:
            # Out of memory: what is half added would become part of the next page.
            self._records.length = row
            del tail[offset:]
            raise
        return row

    def extend(
        self, urls: Sequence[str], *, ids: npt.ArrayLike, values: npt.ArrayLike, canonical: npt.ArrayLike
    ) -> None:
        """Append n pages at once; the numbers have shape (n,). Some 10,000 at a time is the fastest.

        Raises ValueError if the numbers are not n each, OverflowError if one is too large; then nothing is
        added.
        """
        new_ids = np.asarray(ids, dtype=np.int64)
        new_values = np.asarray(values, dtype=np.uint64)
        new_canonical = np.asarray(canonical, dtype=np.int32)
        if any(column.shape != (len(urls),) for column in (new_ids, new_values, new_canonical)):
            raise ValueError(
                f"{len(urls)} URLs need as many ids, values and canonical rows, not"
                f" {new_ids.shape}, {new_values.shape} and {new_canonical.shape}"
            )
        row = self._records.length
        records = np.empty((len(urls), 3), dtype=np.uint64)
        of_ids, of_values, of_canonical, of_offsets = fields(records)
        of_ids[:], of_values[:], of_canonical[:] = new_ids, new_values, new_canonical
        encoded = [encoded_url(url) for url in urls]
        keys = np.frombuffer(b"".join(map(key_of, encoded)), dtype="<i8").reshape(-1, 2)
        of_offsets[:] = self.urls.extend(encoded)
        self._records.extend(records)
        self._rows.put_many(keys, np.arange(row, row + len(urls)))

    def arrays(self) -> dict[str, list[npt.NDArray[Any]]]:
        """All there is, for :func:`neardup.detection.snapshot.save`: each array in pieces, which show the
        memory in use.
        """
        return {
            "records": self._records.parts(),
            **self.urls.parts(),
            **self._rows.parts(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> KnownPages:
        """Take over the arrays of a snapshot without a copy; they may be read-only or mapped copy-on-write.

        Raises SnapshotError if they are not what :meth:`arrays` gives, each in one piece.
        """
        arrays = _checked(arrays)
        pages = cls()
        pages._take(
            Records(arrays["records"]),
            ends=arrays["url_ends"],
            text=arrays["urls"],
            rows=KeyTable(arrays["key_ends"], arrays["keys"], arrays["key_rows"]),
        )
        pages.urls.check()
        return pages


def _checked(arrays: Mapping[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The arrays as plain ones of native dtypes; SnapshotError if following their numbers would lead out of
    them.
    """
    own = KnownPages().arrays()
    if arrays.keys() != own.keys():
        raise SnapshotError(f"known pages are the arrays {sorted(own)}, not {sorted(arrays)}")
    for name, (sample, *_) in own.items():
        if arrays[name].dtype != sample.dtype or arrays[name].shape[1:] != sample.shape[1:]:
            raise SnapshotError(f"array {name} of known pages: {arrays[name].dtype} {arrays[name].shape}")
    pages, slots = len(arrays["records"]), arrays["key_rows"].size
    for name, length in (
        ("url_ends", (pages + _GROUP - 1) // _GROUP),
        ("key_ends", SHARDS),
        ("keys", slots),
    ):
        if len(arrays[name]) != length:
            raise SnapshotError(f"array {name} of known pages: {len(arrays[name])} entries, not {length}")
    for name, length in (("url_ends", arrays["urls"].size), ("key_ends", slots)):
        ends = arrays[name]
        if np.any(ends < np.append(0, ends[:-1])) or (ends[-1] if ends.size else 0) != length:
            raise SnapshotError(f"array {name} of known pages does not end where what it divides ends")
    plain = {name: np.asarray(array).view(own[name][0].dtype) for name, array in arrays.items()}
    canonical = fields(plain["records"])[2]
    for numbers, lowest, highest in ((canonical, NONE, pages - 1), (plain["key_rows"], 0, pages)):
        if numbers.size and not (lowest <= numbers.min() and numbers.max() <= highest):
            raise SnapshotError(f"known pages: a row number beyond the {pages} pages")
    return plain
