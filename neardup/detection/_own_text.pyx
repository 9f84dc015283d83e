"""The bits of the places of a sketch that hold what is rare; see own_text.py."""

import numpy as np

from libc.stdint cimport uint16_t, uint64_t

from neardup.fingerprint._bits cimport popcount

cdef enum:
    FEWEST_SHINGLES = 11  # as in own_text.py
    FEWEST_PLACES = 12


def rare_bits(
    const uint16_t[::1] counts, Py_ssize_t uncounted, const uint16_t[::1] held, const uint16_t[::1] limits
):
    if held.shape[0] % 64:
        raise ValueError(f"the number of places must be a multiple of 64, not {held.shape[0]}")
    made = np.zeros((limits.shape[0], held.shape[0] // 64), dtype=np.uint64)
    cdef uint64_t[:, ::1] words = made
    cdef uint16_t highest = 0
    cdef Py_ssize_t i
    for i in range(counts.shape[0]):
        highest = max(highest, counts[i])
    for i in range(limits.shape[0]):
        if limits[i] >= highest:
            words[i] = ~<uint64_t>0
        elif uncounted + rare_of(counts, limits[i]) >= FEWEST_SHINGLES:
            if fill_bits(held, limits[i], words[i]) < FEWEST_PLACES:
                words[i] = 0
    return made


cdef Py_ssize_t rare_of(const uint16_t[::1] counts, uint16_t limit) noexcept nogil:
    cdef Py_ssize_t rare = 0, i
    for i in range(counts.shape[0]):
        rare += counts[i] <= limit
    return rare


cdef Py_ssize_t fill_bits(const uint16_t[::1] held, uint16_t limit, uint64_t[::1] words) noexcept nogil:
    """Fill in the bits of one limit; returns how many are set."""
    cdef Py_ssize_t places = 0, i
    cdef uint64_t word
    cdef int j
    for i in range(words.shape[0]):
        word = 0
        for j in range(64):
            # Byte after byte, in each the highest bit first.
            word |= <uint64_t>(held[64 * i + j] <= limit) << (j ^ 7)
        words[i] = word
        places += popcount(word)
    return places
