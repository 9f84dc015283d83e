"""The hash table from a page's key (of its URL, of its text) to its row.

numba compiles the loops, and :class:`KeyTable` is made of these loops.

To the loops, a table of n slots is two arrays:

- ``keys``, shape (n, 2), dtype int64: the two halves of the key that lives in a slot;
- ``rows``, shape (n,), dtype int32: the key's row number plus one; 0 marks an empty slot.

The halves are signed because numba would compile everything twice for Python ints below and above 2^63. At
least one slot must be empty, or a search would not end.
"""

from __future__ import annotations

import math
import mmap
from itertools import pairwise
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.compiled import compiled
from neardup.detection.snapshot import SnapshotError

if TYPE_CHECKING:
    import numpy.typing as npt

SHARDS = 1024
"""Tables that the keys are spread over, by the low bits of their first half; a power of two."""

_FEWEST_SLOTS = 16
_FULLEST = 0.8
_GROWTH = 1.25
_BYTES_OF_A_SLOT = 20
_BYTES_OF_ITS_OWN = 1 << 15
# Not shared with child processes, which is what mmap does by itself; Windows has no such choice.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
_HALF = np.uint64(32)
_KEY = Struct("<qq")


@compiled
def home(low: int, slots: int) -> int:
    """The slot where the search for a key begins: the top 32 bits of its second half, scaled to the number of
    slots.

    Scaled and not masked, so that a table can grow by a quarter and need not double. The first half is not
    used: it has chosen the table already.
    """
    return np.int64(((np.uint64(low) >> _HALF) * np.uint64(slots)) >> _HALF)  # type: ignore[return-value]


@compiled
def slot_of(keys: npt.NDArray[np.int64], rows: npt.NDArray[np.int32], high: int, low: int) -> int:
    """The slot that holds a key, or else the empty slot where it belongs."""
    slots = rows.size
    slot = home(low, slots)
    while rows[slot] != 0 and (keys[slot, 0] != high or keys[slot, 1] != low):
        slot += 1
        if slot == slots:
            slot = 0
    return slot


@compiled
def find(keys: npt.NDArray[np.int64], rows: npt.NDArray[np.int32], high: int, low: int) -> int:
    """The row stored under a key, or -1."""
    return rows[slot_of(keys, rows, high, low)] - 1  # type: ignore[no-any-return]


@compiled
def put(keys: npt.NDArray[np.int64], rows: npt.NDArray[np.int32], high: int, low: int, row: int) -> int:
    """Store a row under a key, in place of what is stored there; returns the number of slots newly taken, 0
    or 1.
    """
    slot = slot_of(keys, rows, high, low)
    taken = 1 if rows[slot] == 0 else 0
    keys[slot, 0] = high
    keys[slot, 1] = low
    rows[slot] = row + 1
    return taken


@compiled
def put_many(
    keys: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int32],
    new_keys: npt.NDArray[np.int64],
    new_rows: npt.NDArray[np.int64],
) -> int:
    """:func:`put` for ``new_keys`` of shape (n, 2) and ``new_rows`` of shape (n,); returns the slots newly
    taken.
    """
    taken = 0
    for i in range(new_rows.size):
        taken += put(keys, rows, new_keys[i, 0], new_keys[i, 1], new_rows[i])
    return taken


@compiled
def remove(keys: npt.NDArray[np.int64], rows: npt.NDArray[np.int32], high: int, low: int) -> int:
    """Take a key out; returns the number of slots freed, 0 or 1.

    The keys behind it move up, as far as their homes allow, so that no search ends too early.
    """
    slots = rows.size
    gap = slot_of(keys, rows, high, low)
    if rows[gap] == 0:
        return 0
    slot = gap
    while True:
        slot = slot + 1 if slot + 1 < slots else 0
        if rows[slot] == 0:
            break
        # Distances behind: a table is a ring.
        if (slot - home(keys[slot, 1], slots)) % slots >= (slot - gap) % slots:
            keys[gap, 0] = keys[slot, 0]
            keys[gap, 1] = keys[slot, 1]
            rows[gap] = rows[slot]
            gap = slot
    rows[gap] = 0
    return 1


@compiled
def move(
    keys: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int32],
    new_keys: npt.NDArray[np.int64],
    new_rows: npt.NDArray[np.int32],
) -> None:
    """Copy a table into an empty one of another size."""
    for slot in range(rows.size):
        if rows[slot] != 0:
            put(new_keys, new_rows, keys[slot, 0], keys[slot, 1], rows[slot] - 1)


class KeyTable:
    """From 16-byte key to row number: 1,024 open-addressing tables, chosen by a key's low bits.

    At ten million pages one table has 10,000 keys, and to let it grow by a quarter takes some 0.1 ms.
    """

    __slots__ = ("_counts", "_keys", "_limits", "_rows")

    def __init__(
        self,
        ends: npt.NDArray[np.int64] | None = None,
        keys: npt.NDArray[np.int64] | None = None,
        rows: npt.NDArray[np.int32] | None = None,
    ) -> None:
        """An empty table, or one that takes over what :meth:`parts` gives; read-only memory is copied when
        written to.
        """
        if ends is None or keys is None or rows is None:
            ends = np.arange(1, SHARDS + 1, dtype=np.int64) * _FEWEST_SLOTS
            keys = np.zeros((SHARDS * _FEWEST_SLOTS, 2), dtype=np.int64)
            rows = np.zeros(SHARDS * _FEWEST_SLOTS, dtype=np.int32)
        bounds = list(pairwise([0, *ends.tolist()]))
        self._keys = [keys[start:end] for start, end in bounds]
        self._rows = [rows[start:end] for start, end in bounds]
        self._counts = [int(np.count_nonzero(shard)) for shard in self._rows]
        fullest = _FULLEST if keys.flags.writeable and rows.flags.writeable else 0.0
        self._limits = [int(shard.size * fullest) for shard in self._rows]
        if any(count >= shard.size for count, shard in zip(self._counts, self._rows, strict=True)):
            raise SnapshotError("a table of URL keys has no empty slot")

    def __len__(self) -> int:
        return sum(self._counts)

    @staticmethod
    def warm_up() -> None:
        """Compile what the first page would otherwise wait for."""
        table = KeyTable()
        keys = [_KEY.pack(0, number) for number in range(2 * _FEWEST_SLOTS)]  # all in one shard: it grows
        for row, key in enumerate(keys):
            table.put(key, row)
        table.find(keys[0])
        table.put_many(np.zeros((1, 2), dtype=np.int64), np.zeros(1, dtype=np.int64))
        table.remove(keys[0])

    def reserve(self, keys: int) -> None:
        """Make room for so many more keys at once, if they are spread evenly."""
        each = keys // SHARDS + 4 * math.isqrt(keys // SHARDS)
        for shard in range(SHARDS):
            if self._counts[shard] + each > self._limits[shard]:
                self._grow(shard, each)

    def find(self, key: bytes) -> int:
        """The row stored under a key, or -1."""
        high, low = _KEY.unpack(key)
        shard = high & (SHARDS - 1)
        return find(self._keys[shard], self._rows[shard], high, low)

    def put(self, key: bytes, row: int) -> None:
        """Store a row number under a key, in place of what is stored there."""
        high, low = _KEY.unpack(key)
        shard = high & (SHARDS - 1)
        if self._counts[shard] >= self._limits[shard]:
            self._grow(shard, 1)
        self._counts[shard] += put(self._keys[shard], self._rows[shard], high, low, row)

    def remove(self, key: bytes) -> None:
        """Forget a key and its row number, if it is there."""
        high, low = _KEY.unpack(key)
        shard = high & (SHARDS - 1)
        if not self._limits[shard]:  # read-only
            self._grow(shard, 0)
        self._counts[shard] -= remove(self._keys[shard], self._rows[shard], high, low)

    def put_many(self, keys: npt.NDArray[np.int64], new_rows: npt.NDArray[np.int64]) -> None:
        """Store row numbers of shape (n,) under keys of shape (n, 2), the later the stronger."""
        shards = (keys[:, 0] & (SHARDS - 1)).astype(np.uint16)  # which are sorted four times as fast
        order = np.argsort(shards, kind="stable")
        bounds = np.searchsorted(shards[order], np.arange(SHARDS + 1)).tolist()
        for shard, (start, end) in enumerate(pairwise(bounds)):
            if start == end:
                continue
            chosen = order[start:end]
            if self._counts[shard] + chosen.size > self._limits[shard]:
                self._grow(shard, chosen.size)
            self._counts[shard] += put_many(
                self._keys[shard], self._rows[shard], keys[chosen], new_rows[chosen]
            )

    def parts(self) -> dict[str, list[npt.NDArray[Any]]]:
        """``keys`` int64 (slots, 2), ``key_rows`` int32 (slots,) and ``key_ends`` int64 (1024,), of each
        table in both.
        """
        ends = np.cumsum([rows.size for rows in self._rows], dtype=np.int64)
        return {"key_ends": [ends], "keys": list(self._keys), "key_rows": list(self._rows)}

    def _grow(self, shard: int, more: int) -> None:
        old_keys, old_rows = self._keys[shard], self._rows[shard]
        slots = max(int(old_rows.size * _GROWTH), int((self._counts[shard] + more) / _FULLEST) + 1)
        keys, rows = _empty(slots)
        move(old_keys, old_rows, keys, rows)
        self._keys[shard], self._rows[shard], self._limits[shard] = keys, rows, int(slots * _FULLEST)


def _empty(slots: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """The two arrays of a table without keys.

    A large one is given back to the system when it is outgrown. Left to malloc, a thousand tables that grow
    in turn leave gaps between them, which cost 7 bytes a page at ten million pages.
    """
    size = slots * _BYTES_OF_A_SLOT
    memory = bytearray(size) if size < _BYTES_OF_ITS_OWN else mmap.mmap(-1, size, **_PRIVATE)
    keys = np.frombuffer(memory, dtype=np.int64, count=2 * slots).reshape(slots, 2)
    return keys, np.frombuffer(memory, dtype=np.int32, count=slots, offset=keys.nbytes)
