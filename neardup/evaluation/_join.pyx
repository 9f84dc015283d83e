"""All pairs of sets that share an indexed element; see join.py."""

import numpy as np

cimport cython
from libc.stdint cimport int64_t, uint8_t

cdef double ROUNDING = 1e-6


@cython.final
cdef class Indexed:
    """The sets, and of the later one of a pair which elements it has, and which sets it has met."""

    cdef const int64_t[::1] elements
    cdef const int64_t[::1] starts
    cdef const int64_t[::1] prefixes
    cdef const int64_t[::1] postings
    cdef const int64_t[::1] places
    cdef uint8_t[::1] has
    cdef int64_t[::1] met

    def __cinit__(self, sets):
        self.elements, self.starts, self.prefixes = sets.elements, sets.starts, sets.prefixes
        self.postings, self.places = sets.postings, sets.places
        cdef Py_ssize_t count = self.prefixes.shape[0]
        check_bounds(self.starts, count, self.elements.shape[0])
        check_bounds(self.places, self.places.shape[0] - 1, self.postings.shape[0])
        check_numbers(self.elements, self.places.shape[0] - 1)
        check_numbers(self.postings, count)
        cdef Py_ssize_t number
        for number in range(count):
            if not 0 <= self.prefixes[number] <= self.size(number):
                raise ValueError(f"set {number} has no {self.prefixes[number]} elements to be indexed")
        self.has = np.zeros(self.places.shape[0], dtype=np.uint8)
        self.met = np.full(count, -1, dtype=np.int64)

    cdef inline Py_ssize_t size(self, Py_ssize_t number) noexcept nogil:
        return self.starts[number + 1] - self.starts[number]

    cdef void mark(self, Py_ssize_t number, uint8_t has) noexcept nogil:
        """Say of each element of a set whether the later set has it."""
        cdef Py_ssize_t i
        for i in range(self.starts[number], self.starts[number + 1]):
            self.has[self.elements[i]] = has

    cdef Py_ssize_t shared(self, Py_ssize_t number) noexcept nogil:
        """How many elements of a set the later set has."""
        cdef Py_ssize_t i, both = 0
        for i in range(self.starts[number], self.starts[number + 1]):
            both += self.has[self.elements[i]]
        return both


cdef int check_bounds(const int64_t[::1] bounds, Py_ssize_t parts, Py_ssize_t size) except -1:
    cdef Py_ssize_t i
    if parts < 0 or bounds.shape[0] != parts + 1:
        raise ValueError(f"{bounds.shape[0]} bounds are not those of {parts} parts")
    for i in range(parts):
        if not 0 <= bounds[i] <= bounds[i + 1] <= size:
            raise ValueError(f"part {i} goes from {bounds[i]} to {bounds[i + 1]} of {size}")
    return 0


cdef int check_numbers(const int64_t[::1] numbers, Py_ssize_t end) except -1:
    cdef Py_ssize_t i
    for i in range(numbers.shape[0]):
        if not 0 <= numbers[i] < end:
            raise ValueError(f"{numbers[i]} is not among {end}")
    return 0


def compare(sets, double cut):
    cdef Indexed indexed = Indexed(sets)
    cdef Found found = Found()
    cdef Py_ssize_t later
    with nogil:
        for later in range(indexed.prefixes.shape[0]):
            indexed.mark(later, True)
            compare_with_earlier(indexed, later, cut, found)
            indexed.mark(later, False)
    return found.array[: found.count].copy()


cdef int compare_with_earlier(Indexed sets, Py_ssize_t later, double cut, Found found) except -1 nogil:
    cdef Py_ssize_t size = sets.size(later)
    cdef Py_ssize_t i, place, element, earlier, smaller, both
    for i in range(sets.starts[later], sets.starts[later] + sets.prefixes[later]):
        element = sets.elements[i]
        for place in range(sets.places[element], sets.places[element + 1]):
            earlier = sets.postings[place]
            if earlier >= later:
                break
            smaller = sets.size(earlier)
            if sets.met[earlier] == later or smaller < cut * size - ROUNDING:
                continue
            sets.met[earlier] = later
            both = sets.shared(earlier)
            if both >= cut * (size + smaller - both) - ROUNDING:
                found.add(earlier, later, both)
    return 0


@cython.final
cdef class Found:
    """Rows of three numbers, with room for more."""

    cdef object array
    cdef int64_t[:, ::1] rows
    cdef Py_ssize_t count

    def __cinit__(self):
        self.rows = self.array = np.empty((1024, 3), dtype=np.int64)

    cdef int add(self, int64_t first, int64_t second, int64_t third) except -1 nogil:
        if self.count == self.rows.shape[0]:
            with gil:
                self.rows = self.array = np.concatenate((self.array, np.empty_like(self.array)))
        self.rows[self.count, 0] = first
        self.rows[self.count, 1] = second
        self.rows[self.count, 2] = third
        self.count += 1
        return 0
