"""The sub-tables of the exact indexes, and the search through them; see table_kernels.py."""

import numpy as np

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from neardup.fingerprint._bits cimport choose_instructions, next_near64, popcount, prefetch

cdef enum:
    BATCH = 32      # runs that are fetched before any is compared: memory then answers them side by side
    FETCHED = 128   # entries of a run that are fetched so; as in table_kernels.py

cdef uint32_t DEAD = 0xFFFFFFFF

choose_instructions()


cdef struct Block:
    int turn       # by how many bits a fingerprint is rotated to bring the block to its place in the prefix
    uint64_t mask  # the block in that place


cdef struct Key:
    Block first
    Block second


cdef struct Run:
    Py_ssize_t table  # number of the sub-table
    Py_ssize_t first
    Py_ssize_t last


cdef struct Match:
    uint64_t row
    uint64_t value
    uint64_t distance


cdef inline uint64_t picked(uint64_t value, Block block) noexcept nogil:
    return (value << block.turn | value >> (-block.turn & 63)) & block.mask


cdef inline uint64_t prefix(Key key, uint64_t value) noexcept nogil:
    cdef uint64_t made = picked(value, key.first)  # most keys have no second block
    return made | picked(value, key.second) if key.second.mask else made


cdef Block block_of(int start, int bits, int below) except *:
    """So many bits of a fingerprint, for a prefix with ``below`` bits after them."""
    if not (0 <= start <= 64 and 0 <= bits <= 64 - start and 0 <= below <= 32 - bits):
        raise ValueError(f"a prefix cannot have {bits} bits from bit {start} on, and {below} after them")
    return Block((start + bits + below) & 63, ((<uint64_t>1 << bits) - 1) << below)


cdef class Table:
    cdef readonly object key
    cdef Key bits
    cdef int radius
    cdef const uint32_t[::1] flips
    cdef uint32_t[::1] offsets
    cdef uint64_t[::1] _values
    cdef uint32_t[::1] _rows

    def __cinit__(self, key, sources):
        cdef const uint64_t[::1] values
        cdef const uint32_t[::1] rows
        cdef Py_ssize_t size = 0
        self.key = key
        start, bits, start_2, bits_2, self.radius, self.flips = key
        self.bits = Key(block_of(start, bits, bits_2), block_of(start_2, bits_2, 0))
        if self.flips.shape[0] and np.max(self.flips) >> (bits + bits_2):
            raise ValueError(f"no prefix of {bits} + {bits_2} bits has all the bits to flip")
        for values, rows in sources:
            if values.shape[0] != rows.shape[0]:
                raise ValueError(f"a row for each value, not {rows.shape[0]} for {values.shape[0]}")
            size += values.shape[0]
        if size > DEAD:
            raise ValueError(f"a level holds at most {DEAD} entries, not {size}")
        # One array, because NumPy asks for large pages for those of 4 MB and more.
        memory = np.empty(12 * size + 4 * ((1 << (bits + bits_2)) + 1), dtype=np.uint8)
        self._values = memory[: 8 * size].view(np.uint64)
        self._rows = memory[8 * size : 12 * size].view(np.uint32)
        self.offsets = memory[12 * size :].view(np.uint32)
        self.offsets[:] = 0
        for values, _ in sources:
            self.tally(values)
        self.sum_up()
        for values, rows in reversed(sources):
            self.place(values, rows)

    cdef void tally(self, const uint64_t[::1] values) noexcept:
        """Count the entries of each prefix."""
        cdef Key key = self.bits
        cdef Py_ssize_t i
        with nogil:
            for i in range(values.shape[0]):
                self.offsets[prefix(key, values[i])] += 1

    cdef void sum_up(self) noexcept:
        """From counts to the end of each run; ``place`` moves it on to the beginning."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(1, self.offsets.shape[0]):
                self.offsets[i] += self.offsets[i - 1]

    cdef void place(self, const uint64_t[::1] values, const uint32_t[::1] rows) noexcept:
        """Write entries into their runs, the last first. Entries in order of a similar prefix are written
        nearly in order.
        """
        cdef Key key = self.bits
        cdef uint64_t run
        cdef uint32_t to
        cdef Py_ssize_t i
        with nogil:
            for i in range(values.shape[0] - 1, -1, -1):
                run = prefix(key, values[i])
                to = self.offsets[run] - 1
                self.offsets[run] = to
                self._values[to] = values[i]
                self._rows[to] = rows[i]

    def __reduce__(self):
        return Table, (self.key, [(self.values, self.rows)])  # sorted once more, they keep their places

    @property
    def values(self):
        return np.asarray(self._values)

    @property
    def rows(self):
        return np.asarray(self._rows)

    @property
    def nbytes(self):
        return self._values.nbytes + self._rows.nbytes + self.offsets.nbytes

    def __contains__(self, uint64_t value):
        return self.find(value, DEAD) >= 0

    def bury(self, uint64_t value, uint32_t row):
        cdef Py_ssize_t place = -1 if row == DEAD else self.find(value, row)
        if place >= 0:
            self._rows[place] = DEAD
        return place >= 0

    cdef Py_ssize_t find(self, uint64_t value, uint32_t row) noexcept:
        """Where a fingerprint is stored under a row and not removed; under any row if it is ``DEAD``. -1 if
        nowhere.
        """
        cdef uint64_t run = prefix(self.bits, value)
        cdef Py_ssize_t at, last = self.offsets[run + 1]
        for at in range(self.offsets[run], last):
            if self._values[at] == value and self._rows[at] != DEAD and (row == DEAD or self._rows[at] == row):
                return at
        return -1


cdef inline void fetch(Table table, Run run) noexcept:
    """Ask memory for a run, without waiting for it."""
    cdef Py_ssize_t entry
    for entry in range(run.first, min(run.last, run.first + FETCHED), 8):  # a cache line each
        prefetch(&table._values[entry])


cdef class Search:
    cdef readonly Py_ssize_t probes, empty_probes, candidates
    cdef uint64_t query
    cdef int max_distance
    cdef bint every
    cdef Match* found
    cdef Py_ssize_t count, room

    def __cinit__(self, uint64_t query, int max_distance, *, bint every):
        self.query = query
        self.max_distance = max_distance
        self.every = every

    def __dealloc__(self):
        PyMem_Free(self.found)

    @property
    def first(self):
        return (self.found.row, self.found.value, self.found.distance) if self.count else None

    @property
    def matches(self):
        made = np.empty((self.count, 3), dtype=np.uint64)
        cdef uint64_t[:, ::1] columns = made
        if self.count:
            memcpy(&columns[0, 0], self.found, self.count * sizeof(Match))
        return made

    def scan(self, const uint64_t[:, ::1] entries, Py_ssize_t size):
        cdef Py_ssize_t at
        if entries.shape[0] != 2 or not 0 <= size <= entries.shape[1]:
            raise ValueError(f"entries must have shape (2, n) with n ≥ {size}, not {entries.shape[0]} rows")
        self.candidates += size
        at = next_near64(&entries[0, 0], 0, size, self.query, self.max_distance) if size else 0
        while at < size:
            self.report(entries[1, at], entries[0, at])
            if not self.every:
                return
            at = next_near64(&entries[0, 0], at + 1, size, self.query, self.max_distance)

    @cython.nonecheck(True)
    def probe(self, list tables not None):
        cdef Run[BATCH] runs
        cdef Table table
        cdef Py_ssize_t number = 0, flip = 0, pending, i
        cdef uint64_t own
        while number < len(tables) and not self.is_over():
            pending = 0
            while number < len(tables) and pending < BATCH:
                table = tables[number]
                own = prefix(table.bits, self.query)
                while flip < table.flips.shape[0] and pending < BATCH:
                    runs[pending].table = number
                    runs[pending].first = table.offsets[own ^ table.flips[flip]]
                    runs[pending].last = table.offsets[(own ^ table.flips[flip]) + 1]
                    pending += 1
                    flip += 1
                if flip == table.flips.shape[0]:
                    number += 1
                    flip = 0
            for i in range(pending):
                fetch(tables[runs[i].table], runs[i])
            for i in range(pending):
                if not self.is_over():
                    self.compare(tables, runs[i])

    cdef bint is_over(self) noexcept:
        return self.count > 0 and not self.every

    cdef int compare(self, list tables, Run run) except -1:
        """Compare the query with the entries of a run."""
        cdef Table table = tables[run.table]
        cdef Py_ssize_t at
        self.probes += 1
        self.empty_probes += run.first == run.last
        self.candidates += run.last - run.first
        if run.first == run.last:
            return 0
        at = next_near64(&table._values[0], run.first, run.last, self.query, self.max_distance)
        while at < run.last:
            if table._rows[at] != DEAD and not self.found_before(tables, run.table, table._values[at]):
                self.report(table._rows[at], table._values[at])
                if not self.every:
                    return 0
            at = next_near64(&table._values[0], at + 1, run.last, self.query, self.max_distance)
        return 0

    cdef bint found_before(self, list tables, Py_ssize_t number, uint64_t value) except -1:
        """Whether a sub-table before this one finds a fingerprint."""
        cdef Table table
        cdef Py_ssize_t earlier
        for earlier in range(number):
            table = tables[earlier]
            if popcount(prefix(table.bits, value ^ self.query)) <= table.radius:
                return True
        return False

    cdef int report(self, uint64_t row, uint64_t value) except -1:
        cdef Match* moved
        if self.count == self.room:
            moved = <Match*>PyMem_Realloc(self.found, (2 * self.room + 1) * sizeof(Match))
            if moved == NULL:
                raise MemoryError
            self.found = moved
            self.room = 2 * self.room + 1
        self.found[self.count] = Match(row, value, popcount(value ^ self.query))
        self.count += 1
        return 0
