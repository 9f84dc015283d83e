"""Records of fixed size, one a page, in chunks.

Growing copies nothing, and what a snapshot maps stays where it is.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_CHUNK_BITS = 16  # 1.5 MB at a time, of which the system gives only what is touched
_CHUNK = 1 << _CHUNK_BITS
_RECORD = struct.Struct("=qQiI")


class Records:
    """Records of 24 bytes, one a page.

    A record has four fields: the page's id, its fingerprint, the row of its canonical page, and where its URL
    begins in its group. The records stand in a list of chunks of shape (2^16, 3), dtype uint64, so growing
    copies nothing. All four fields are written at once: an addition takes 2.2 µs. With a list of chunks for
    each field, an addition took 2.8 µs. Chunks may be read-only; a chunk is copied when first written to.
    """

    __slots__ = ("_chunks", "_tail", "canonical", "ids", "length", "offsets", "values")

    def __init__(self, records: npt.NDArray[np.uint64]) -> None:
        """Take over records of shape (n, 3), of which all but the last, incomplete chunk stay
        where they are.
        """
        self._chunks: list[npt.NDArray[np.uint64]] = []
        self.length = 0
        self.ids, self.values = Column(self), Column(self)
        self.canonical, self.offsets = Column(self), Column(self)
        whole = len(records) & ~(_CHUNK - 1)
        for start in range(0, whole, _CHUNK):
            self._set_chunk(len(self._chunks), records[start : start + _CHUNK])
        self.length = whole
        self.extend(records[whole:])

    def append(self, page_id: int, value: int, canonical: int, offset: int) -> None:
        """Add a record; ValueError, and nothing added, if a number does not fit."""
        at = self.length & (_CHUNK - 1)
        if not at:
            self._add_chunk()
        try:
            _RECORD.pack_into(self._tail, at * _RECORD.size, page_id, value, canonical, offset)
        except struct.error as exc:
            raise ValueError(
                f"page_id {page_id} and canonical {canonical} must be whole numbers of 64 and 32 bits,"
                f" value {value} one of 64 bits without a sign: {exc}"
            ) from exc
        self.length += 1

    def extend(self, records: npt.NDArray[np.uint64]) -> None:
        """Add records of shape (n, 3)."""
        done = 0
        while done < len(records):
            start = self.length & (_CHUNK - 1)
            if not start:
                self._add_chunk()
            count = min(_CHUNK - start, len(records) - done)
            self._chunks[-1][start : start + count] = records[done : done + count]
            self.length += count
            done += count

    def parts(self) -> list[npt.NDArray[np.uint64]]:
        """The records in pieces, at least one, that show their own memory."""
        whole, rest = divmod(self.length, _CHUNK)
        if not rest:
            return self._chunks[:whole] or [np.empty((0, 3), dtype=np.uint64)]
        return [*self._chunks[:whole], self._chunks[whole][:rest]]

    def own_chunk(self, number: int) -> None:
        """Put a copy in the place of a read-only chunk."""
        self._set_chunk(number, self._chunks[number].copy())

    def _add_chunk(self) -> None:
        number = self.length >> _CHUNK_BITS  # there already, if what was to be written into it failed
        if number == len(self._chunks):
            self._set_chunk(number, np.empty((_CHUNK, 3), dtype=np.uint64))
        self._tail = self._chunks[number].data.cast("B")

    def _set_chunk(self, number: int, chunk: npt.NDArray[np.uint64]) -> None:
        for column, field in zip(
            (self.ids, self.values, self.canonical, self.offsets), fields(chunk), strict=True
        ):
            column.views[number : number + 1] = [field.data]
        self._chunks[number : number + 1] = [chunk]


def fields(records: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[Any], ...]:
    """Views of records of shape (n, 3): ids int64, values uint64, canonical int32, offsets
    uint32, each (n,).
    """
    halves = records.view(np.int32)
    return records[:, 0].view(np.int64), records[:, 1], halves[:, 4], halves[:, 5].view(np.uint32)


class Column:
    """One field of all records, read and written as Python ints; IndexError beyond the last record."""

    __slots__ = ("_records", "views")

    def __init__(self, records: Records) -> None:
        self._records = records
        self.views: list[memoryview] = []

    def __len__(self) -> int:
        return self._records.length

    def __getitem__(self, row: int) -> int:
        if not 0 <= row < self._records.length:
            raise IndexError(f"there is no row {row} among {self._records.length}")
        return self.views[row >> _CHUNK_BITS][row & (_CHUNK - 1)]

    def __setitem__(self, row: int, value: int) -> None:
        if not 0 <= row < self._records.length:
            raise IndexError(f"there is no row {row} among {self._records.length}")
        chunk = row >> _CHUNK_BITS
        if self.views[chunk].readonly:
            self._records.own_chunk(chunk)
        self.views[chunk][row & (_CHUNK - 1)] = value

    def put_many(self, rows: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
        """Write n values at once, both of shape (n,); the rows are there and in ascending order."""
        chunks = rows >> _CHUNK_BITS
        # Not by np.unique, which imports the masked arrays of NumPy at its first call (6 ms).
        for chunk in chunks[np.flatnonzero(np.diff(chunks, prepend=-1))].tolist():
            start, end = np.searchsorted(chunks, [chunk, chunk + 1])
            if self.views[chunk].readonly:
                self._records.own_chunk(chunk)
            np.asarray(self.views[chunk])[rows[start:end] & (_CHUNK - 1)] = values[start:end]

    def array(self) -> npt.NDArray[Any]:
        """A copy of the whole column, of shape (n,)."""
        pieces = [np.asarray(view) for view in self.views]
        return np.concatenate(pieces)[: len(self)] if pieces else np.empty(0, dtype=np.int64)
