"""The hash table from a page's key to its row; see key_table.py."""

import math
import mmap

import numpy as np

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from neardup.detection.snapshot import SnapshotError


SHARDS = 1024
FEWEST_SLOTS = 16
BYTES_OF_A_SLOT = 20
BYTES_OF_ITS_OWN = 1 << 15
# Not shared with child processes, which is what mmap does by itself; Windows has no such choice.
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}

cdef double FULLEST = 0.8
cdef double GROWTH = 1.25
cdef int64_t ROWS = 0x7FFFFFFF


cdef struct Key:
    uint64_t high
    uint64_t low


cdef struct Shard:
    Key* keys
    int32_t* rows
    Py_ssize_t slots
    Py_ssize_t count
    Py_ssize_t limit


cdef inline Py_ssize_t home(const Shard* shard, uint64_t low) noexcept nogil:
    return ((low >> 32) * <uint64_t>shard.slots) >> 32


cdef inline Py_ssize_t behind(const Shard* shard, Py_ssize_t slot) noexcept nogil:
    return slot + 1 if slot + 1 < shard.slots else 0


cdef inline Py_ssize_t distance(const Shard* shard, Py_ssize_t slot, Py_ssize_t other) noexcept nogil:
    """How many steps the other slot lies behind the slot."""
    return other - slot if other >= slot else other - slot + shard.slots


cdef inline Py_ssize_t slot_of(const Shard* shard, Key key) noexcept nogil:
    """The slot that holds a key, or else the empty slot where it belongs."""
    cdef Py_ssize_t slot = home(shard, key.low)
    while shard.rows[slot] and (shard.keys[slot].low != key.low or shard.keys[slot].high != key.high):
        slot = behind(shard, slot)
    return slot


cdef inline void store(Shard* shard, Key key, int64_t row) noexcept nogil:
    cdef Py_ssize_t slot = slot_of(shard, key)
    shard.count += shard.rows[slot] == 0
    shard.keys[slot] = key
    shard.rows[slot] = <int32_t>(row + 1)


cdef void take_out(Shard* shard, Py_ssize_t gap) noexcept nogil:
    """Empty a slot; the keys behind it move up, as far as their homes allow, so that no search ends too
    early.
    """
    cdef Py_ssize_t slot = behind(shard, gap)
    while shard.rows[slot]:
        if distance(shard, home(shard, shard.keys[slot].low), slot) >= distance(shard, gap, slot):
            shard.keys[gap] = shard.keys[slot]
            shard.rows[gap] = shard.rows[slot]
            gap = slot
        slot = behind(shard, slot)
    shard.rows[gap] = 0
    shard.count -= 1


cdef inline Key halves_of(bytes key) except *:
    """As a little-endian machine reads them."""
    cdef Key halves
    if PyBytes_GET_SIZE(key) != sizeof(Key):
        raise ValueError(f"a key has {sizeof(Key)} bytes, not {len(key)}")
    memcpy(&halves, PyBytes_AS_STRING(key), sizeof(Key))
    return halves


cdef class KeyTable:
    """From 16-byte key to row number; see key_table.py."""

    cdef Shard* _shards
    cdef Py_ssize_t _size
    cdef list _keys
    cdef list _rows

    def __cinit__(self, ends=None, keys=None, rows=None):
        if ends is None or keys is None or rows is None:
            ends = np.arange(1, SHARDS + 1, dtype=np.int64) * FEWEST_SLOTS
            keys = np.zeros((SHARDS * FEWEST_SLOTS, 2), dtype=np.int64)
            rows = np.zeros(SHARDS * FEWEST_SLOTS, dtype=np.int32)
        self._size = SHARDS
        self._shards = <Shard*>calloc(self._size, sizeof(Shard))
        if self._shards == NULL:
            raise MemoryError
        self._keys, self._rows = [], []
        self._take_over(ends, keys, rows)

    def __dealloc__(self):
        free(self._shards)

    cdef int _take_over(self, const int64_t[::1] ends, keys, rows) except -1:
        cdef const int64_t[:, ::1] halves = keys
        cdef const int32_t[::1] numbers = rows
        cdef bint written = keys.flags.writeable and rows.flags.writeable
        cdef Py_ssize_t number, slot, start = 0, end = 0
        cdef Shard* shard
        if ends.shape[0] != self._size or halves.shape[0] != numbers.shape[0] or halves.shape[1] != 2:
            raise ValueError(f"{len(ends)} ends, keys {keys.shape} and rows {rows.shape} are no table")
        if ends[self._size - 1] != numbers.shape[0]:
            raise ValueError(f"the shards of a table end at {ends[self._size - 1]}, its rows at {len(numbers)}")
        for number in range(ends.shape[0]):
            start, end = end, ends[number]
            if not start <= end <= numbers.shape[0]:
                raise ValueError("the ends of a table's shards are not in order")
            shard = &self._shards[number]
            shard.slots = end - start
            for slot in range(start, end):
                shard.count += numbers[slot] != 0
            if shard.count == shard.slots:
                raise SnapshotError("a table of keys has no empty slot")
            # What is read-only is not written to: the limit lets the shard be copied before.
            shard.keys = <Key*>&halves[start, 0]
            shard.rows = <int32_t*>&numbers[start]
            shard.limit = <Py_ssize_t>(shard.slots * FULLEST) if written else 0
            self._keys.append(keys[start:end])
            self._rows.append(rows[start:end])
        return 0

    def __len__(self):
        cdef Py_ssize_t count = 0
        cdef Py_ssize_t number
        for number in range(self._size):
            count += self._shards[number].count
        return count

    def reserve(self, keys):
        """Make room for so many more keys at once, if they are spread evenly."""
        each = keys // self._size + 4 * math.isqrt(keys // self._size)
        for number in range(self._size):
            self._make_room(number, each)

    def find(self, bytes key not None):
        """The row stored under a key, or -1."""
        cdef Key halves = halves_of(key)
        cdef const Shard* shard = &self._shards[self._place(halves)]
        return shard.rows[slot_of(shard, halves)] - 1

    def put(self, bytes key not None, int64_t row):
        """Store a row number under a key, in place of what is stored there."""
        cdef Key halves = halves_of(key)
        if not 0 <= row < ROWS:
            raise OverflowError(f"a row is from 0 to {ROWS - 1}, not {row}")
        self._make_room(self._place(halves), 1)
        store(&self._shards[self._place(halves)], halves, row)

    def remove(self, bytes key not None):
        """Forget a key and its row number, if it is there."""
        cdef Key halves = halves_of(key)
        cdef Shard* shard = &self._shards[self._place(halves)]
        if not shard.rows[slot_of(shard, halves)]:
            return
        if not shard.limit:
            self._grow(self._place(halves), 0)
        take_out(shard, slot_of(shard, halves))

    def put_many(self, const int64_t[:, ::1] keys not None, const int64_t[::1] rows not None):
        """Store row numbers of shape (n,) under keys of shape (n, 2), the later the stronger."""
        cdef Py_ssize_t i, count = rows.shape[0]
        cdef Key key
        if keys.shape[0] != count or keys.shape[1] != 2:
            raise ValueError(f"keys ({keys.shape[0]}, {keys.shape[1]}) and rows ({count},)")
        cdef int64_t[::1] news = np.zeros(self._size, dtype=np.int64)
        for i in range(count):
            if not 0 <= rows[i] < ROWS:
                raise OverflowError(f"a row is from 0 to {ROWS - 1}, not {rows[i]}")
            news[keys[i, 0] & (self._size - 1)] += 1
        for i in range(news.shape[0]):
            if news[i]:
                self._make_room(i, news[i])
        with nogil:
            for i in range(count):
                key = Key(high=keys[i, 0], low=keys[i, 1])
                store(&self._shards[self._place(key)], key, rows[i])

    def parts(self):
        """``keys``, ``key_rows`` and ``key_ends``; see key_table.py."""
        ends = np.cumsum([len(rows) for rows in self._rows], dtype=np.int64)
        return {"key_ends": [ends], "keys": list(self._keys), "key_rows": list(self._rows)}

    cdef inline Py_ssize_t _place(self, Key key) noexcept nogil:
        """Where the shard of a key is."""
        return key.high & <uint64_t>(self._size - 1)

    cdef inline int _make_room(self, Py_ssize_t number, Py_ssize_t more) except -1:
        if self._shards[number].count + more > self._shards[number].limit:
            self._grow(number, more)
        return 0

    cdef int _grow(self, Py_ssize_t number, Py_ssize_t more) except -1:
        cdef Shard old = self._shards[number]
        cdef Shard shard
        cdef Py_ssize_t slot
        shard.slots = max(
            <Py_ssize_t>(old.slots * GROWTH), <Py_ssize_t>((old.count + more) / FULLEST) + 1
        )
        shard.limit = <Py_ssize_t>(shard.slots * FULLEST)
        shard.count = 0
        keys, rows = empty(shard.slots)
        cdef int64_t[:, ::1] halves = keys
        cdef int32_t[::1] numbers = rows
        shard.keys = <Key*>&halves[0, 0]
        shard.rows = &numbers[0]
        for slot in range(old.slots):
            if old.rows[slot]:
                store(&shard, old.keys[slot], old.rows[slot] - 1)
        self._shards[number] = shard
        self._keys[number] = keys
        self._rows[number] = rows
        return 0


def empty(Py_ssize_t slots):
    """The two arrays of a shard without keys.

    A large one is given back to the system when it is outgrown. Left to malloc, a thousand tables that grow
    in turn leave gaps between them, which cost 7 bytes a page at ten million pages.
    """
    size = slots * BYTES_OF_A_SLOT
    memory = bytearray(size) if size < BYTES_OF_ITS_OWN else mmap.mmap(-1, size, **PRIVATE)
    keys = np.frombuffer(memory, dtype=np.int64, count=2 * slots).reshape(slots, 2)
    return keys, np.frombuffer(memory, dtype=np.int32, count=slots, offset=keys.nbytes)
