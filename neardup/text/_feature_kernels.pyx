"""Loops over hashed words: frequencies, shingles and the min-wise sketch; see feature_kernels.py."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from neardup.text._murmur cimport mix


cdef uint64_t STEP = 0x9E3779B97F4A7C15
cdef Py_ssize_t FEW = 64


def count(const uint64_t[::1] hashes, uint64_t salt):
    made = np.empty(hashes.shape[0], dtype=np.uint64)
    counts = np.empty(hashes.shape[0], dtype=np.float64)
    cdef uint64_t slots = 16
    while slots < 2 * <uint64_t>hashes.shape[0]:
        slots *= 2
    cdef int64_t[::1] place_of = np.full(slots, -1, dtype=np.int64)
    cdef uint64_t[::1] distinct = made
    cdef double[::1] occurrences = counts
    cdef Py_ssize_t found
    with nogil:
        found = fill_counts(hashes, salt, place_of, distinct, occurrences)
    return made[:found].copy(), counts[:found].copy()


cdef Py_ssize_t fill_counts(
    const uint64_t[::1] hashes, uint64_t salt, int64_t[::1] place_of, uint64_t[::1] distinct, double[::1] counts
) noexcept nogil:
    """Count in a table of open addresses, ``place_of``, whose size is a power of two and never half full."""
    cdef uint64_t mask = place_of.shape[0] - 1
    cdef uint64_t value, slot
    cdef int64_t place
    cdef Py_ssize_t i, found = 0
    for i in range(hashes.shape[0]):
        value = hashes[i]
        slot = mix(value ^ salt) & mask
        while place_of[slot] >= 0 and distinct[place_of[slot]] != value:
            slot = (slot + 1) & mask
        place = place_of[slot]
        if place < 0:
            place_of[slot] = found
            distinct[found] = value
            counts[found] = 1.0
            found += 1
        else:
            counts[place] += 1.0
    return found


def shingles(const uint64_t[::1] hashes, Py_ssize_t width):
    cdef Py_ssize_t length = min(width, hashes.shape[0])
    if length == 0:
        return np.empty(0, dtype=np.uint64)
    made = np.empty(hashes.shape[0] - length + 1, dtype=np.uint64)
    cdef uint64_t[::1] values = made
    with nogil:
        fill_shingles(hashes, length, values)
    return made


cdef void fill_shingles(const uint64_t[::1] hashes, Py_ssize_t length, uint64_t[::1] made) noexcept nogil:
    cdef uint64_t value
    cdef Py_ssize_t i, j
    for i in range(made.shape[0]):
        value = length
        for j in range(length):
            value = mix(value + STEP) ^ hashes[i + j]
        made[i] = mix(value)


cdef struct Drawing:
    Py_ssize_t turn
    Py_ssize_t empty


def minwise(const uint64_t[::1] elements, Py_ssize_t size):
    made = np.full(size, ~np.uint64(0), dtype=np.uint64)
    cdef uint64_t[::1] values = made
    cdef Drawing drawing = Drawing(turn=0, empty=size)
    with nogil:
        draw(elements, values, &drawing)
    if drawing.empty:
        elements = np.unique(elements)
        with nogil:
            draw(elements, values, &drawing)
    if drawing.empty:
        elements = elements[:FEW]
        with nogil:
            draw(elements, values, &drawing)
    return made


cdef void draw(const uint64_t[::1] elements, uint64_t[::1] values, Drawing* drawing) noexcept nogil:
    """Draw every element once a turn, until no place is empty or ``FEW`` draws a place are made."""
    cdef Py_ssize_t count = elements.shape[0]
    cdef uint64_t size = values.shape[0]
    cdef uint64_t turn = drawing.turn
    cdef uint64_t last = FEW * size // count if count > FEW else 2 * size
    cdef uint64_t nothing = ~<uint64_t>0
    cdef uint64_t salt, stamp, drawn, value, place
    cdef Py_ssize_t i
    while drawing.empty and turn <= last:
        salt = turn * STEP
        stamp = turn << 32
        for i in range(count):
            drawn = mix(elements[i] + salt)
            place = ((drawn >> 32) * size) >> 32 if turn < size else turn - size
            value = stamp | (drawn & <uint64_t>0xFFFFFFFF)
            if value < values[place]:
                drawing.empty -= values[place] == nothing
                values[place] = value
        turn += 1
    drawing.turn = turn
