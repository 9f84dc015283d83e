"""The hash table from a page's key (of its URL, of its text) to its row.

The table is 1,024 small tables, the shards; the low bits of a key's first half choose its shard. Each shard
grows by itself, so that no insertion pauses. A shard of n slots is two arrays, which a snapshot holds as they
are:

- ``keys``, shape (n, 2), dtype int64: the two halves of the key that lives in a slot;
- ``rows``, shape (n,), dtype int32: the key's row number plus one; 0 marks an empty slot.

A key lives in its home slot, or in the first slot behind it that was empty when the key came. The method is
linear probing (Knuth 1998, The Art of Computer Programming 3, section 6.4). Behind the last slot comes the
first. At least one slot of a shard is empty, or a search would not end.
"""

from __future__ import annotations

import math
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup import native
from neardup.detection.snapshot import SnapshotError

if TYPE_CHECKING:
    import numpy.typing as npt

    Keys = npt.NDArray[np.int64]
    Rows = npt.NDArray[np.int32]

SHARDS = 1024
"""A power of two."""

_FEWEST_SLOTS = 16
_FULLEST = 0.8
_GROWTH = 1.25
_ROWS = 2**31 - 1
"""A row number plus one has 31 bits."""

_KEY = Struct("<qq")


@native.twin
class KeyTable:
    """From 16-byte key to row number.

    A key takes 25 to 31 bytes. At ten million pages a shard has 10,000 keys, and to let it grow by a quarter
    takes some 0.1 ms.
    """

    def __init__(
        self, ends: npt.NDArray[np.int64] | None = None, keys: Keys | None = None, rows: Rows | None = None
    ) -> None:
        """An empty table, or one that takes over what :meth:`parts` gives, each array in one piece.

        A shard in read-only memory is copied when written to. Raises ValueError if these are not such arrays,
        and SnapshotError if a shard has no empty slot.
        """
        if ends is None or keys is None or rows is None:
            ends = np.arange(1, SHARDS + 1, dtype=np.int64) * _FEWEST_SLOTS
            keys = np.zeros((SHARDS * _FEWEST_SLOTS, 2), dtype=np.int64)
            rows = np.zeros(SHARDS * _FEWEST_SLOTS, dtype=np.int32)
        if ends.dtype != np.int64 or keys.dtype != np.int64 or rows.dtype != np.int32:
            raise ValueError(f"a table is not of {ends.dtype}, {keys.dtype} and {rows.dtype}")
        bounds = [0, *ends.tolist()]
        if len(ends) != SHARDS or keys.shape != (rows.size, 2) or bounds[-1] != rows.size:
            raise ValueError(f"{len(ends)} ends, keys {keys.shape} and rows {rows.shape} are no table")
        if any(start > end for start, end in pairwise(bounds)):
            raise ValueError("the ends of a table's shards are not in order")
        self._shards = [_Shard(keys[start:end], rows[start:end]) for start, end in pairwise(bounds)]
        if any(shard.count >= shard.rows.size for shard in self._shards):
            raise SnapshotError("a table of keys has no empty slot")

    def __len__(self) -> int:
        return sum(shard.count for shard in self._shards)

    def reserve(self, keys: int) -> None:
        """Make room for so many more keys at once, if they are spread evenly."""
        each = keys // SHARDS + 4 * math.isqrt(keys // SHARDS)
        for shard in self._shards:
            shard.make_room(each)

    def find(self, key: bytes) -> int:
        """The row stored under a key, or -1. Raises ValueError if the key has not 16 bytes."""
        high, low = _halves(key)
        return self._shards[high & (SHARDS - 1)].find(high, low)

    def put(self, key: bytes, row: int) -> None:
        """Store a row number under a key, in place of what is stored there.

        Raises ValueError if the key has not 16 bytes, and OverflowError if the row is not from 0 to 2^31 − 2.
        """
        high, low = _halves(key)
        if not 0 <= row < _ROWS:
            raise OverflowError(f"a row is from 0 to {_ROWS - 1}, not {row}")
        shard = self._shards[high & (SHARDS - 1)]
        shard.make_room(1)
        shard.put(high, low, row)

    def remove(self, key: bytes) -> None:
        """Forget a key and its row number, if it is there. Raises ValueError if the key has not 16 bytes."""
        high, low = _halves(key)
        self._shards[high & (SHARDS - 1)].remove(high, low)

    def put_many(self, keys: Keys, rows: npt.NDArray[np.int64]) -> None:
        """Store row numbers of shape (n,) under keys of shape (n, 2), the later the stronger.

        Raises ValueError for arrays of other types or shapes, and OverflowError if a row is not from 0 to
        2^31 − 2. Nothing is stored then.
        """
        if keys.dtype != np.int64 or rows.dtype != np.int64 or keys.shape != (rows.size, 2):
            raise ValueError(f"keys {keys.dtype} {keys.shape} and rows {rows.dtype} {rows.shape}")
        if rows.size and not 0 <= rows.min() <= rows.max() < _ROWS:
            raise OverflowError(f"rows are from 0 to {_ROWS - 1}, not {rows.min()} to {rows.max()}")
        news = np.bincount(keys[:, 0] & (SHARDS - 1), minlength=SHARDS)
        for number in np.flatnonzero(news).tolist():
            self._shards[number].make_room(int(news[number]))
        for (high, low), row in zip(keys.tolist(), rows.tolist(), strict=True):
            self._shards[high & (SHARDS - 1)].put(high, low, row)

    def parts(self) -> dict[str, list[npt.NDArray[Any]]]:
        """``keys`` int64 (slots, 2) and ``key_rows`` int32 (slots,) of each shard, and ``key_ends`` int64
        (1024,): where in both each shard ends.
        """
        ends = np.cumsum([shard.rows.size for shard in self._shards], dtype=np.int64)
        return {
            "key_ends": [ends],
            "keys": [shard.keys for shard in self._shards],
            "key_rows": [shard.rows for shard in self._shards],
        }


class _Shard:
    """The keys are given as their two halves, as signed integers."""

    __slots__ = ("count", "keys", "limit", "rows")

    def __init__(self, keys: Keys, rows: Rows) -> None:
        self.keys, self.rows = keys, rows
        self.count = int(np.count_nonzero(rows))
        written = keys.flags.writeable and rows.flags.writeable
        self.limit = int(rows.size * _FULLEST) if written else 0
        """Keys that are never exceeded; 0 in read-only memory, too."""

    def find(self, high: int, low: int) -> int:
        return int(self.rows[self._slot(high, low)]) - 1

    def put(self, high: int, low: int, row: int) -> None:
        slot = self._slot(high, low)
        self.count += int(self.rows[slot] == 0)
        self.keys[slot] = high, low
        self.rows[slot] = row + 1

    def remove(self, high: int, low: int) -> None:
        """The keys behind it move up, as far as their homes allow, so that no search ends too early."""
        if self.find(high, low) < 0:
            return
        if not self.limit:
            self._grow(0)
        slots = self.rows.size
        gap = slot = self._slot(high, low)
        while self.rows[slot := (slot + 1) % slots]:
            if (slot - _home(int(self.keys[slot, 1]), slots)) % slots >= (slot - gap) % slots:
                self.keys[gap], self.rows[gap] = self.keys[slot], self.rows[slot]
                gap = slot
        self.rows[gap] = 0
        self.count -= 1

    def make_room(self, more: int) -> None:
        if self.count + more > self.limit:
            self._grow(more)

    def _grow(self, more: int) -> None:
        keys, rows = self.keys, self.rows
        slots = max(int(rows.size * _GROWTH), int((self.count + more) / _FULLEST) + 1)
        self.keys, self.rows = np.zeros((slots, 2), dtype=np.int64), np.zeros(slots, dtype=np.int32)
        self.count, self.limit = 0, int(slots * _FULLEST)
        for slot in np.flatnonzero(rows).tolist():
            self.put(int(keys[slot, 0]), int(keys[slot, 1]), int(rows[slot]) - 1)

    def _slot(self, high: int, low: int) -> int:
        """The slot that holds a key, or else the empty slot where it belongs."""
        slots = self.rows.size
        slot = _home(low, slots)
        while self.rows[slot] and (self.keys[slot, 0] != high or self.keys[slot, 1] != low):
            slot = (slot + 1) % slots
        return slot


def _home(low: int, slots: int) -> int:
    """The slot where the search for a key begins: the top 32 bits of its second half, scaled to the number of
    slots.

    Scaled and not masked, so that a table can grow by a quarter and need not double. The first half is not
    used: it has chosen the shard already.
    """
    return ((low >> 32 & 0xFFFFFFFF) * slots) >> 32


def _halves(key: bytes) -> tuple[int, int]:
    if len(key) != _KEY.size:
        raise ValueError(f"a key has {_KEY.size} bytes, not {len(key)}")
    high, low = _KEY.unpack(key)
    return high, low
