"""The bits of the places of a sketch that hold what is rare; see own_text.py."""

import numpy as np

from libc.stdint cimport uint16_t, uint64_t

from neardup.fingerprint._bits cimport popcount

cdef enum:
    FEWEST_SHINGLES = 11  # as in own_text.py
    FEWEST_PLACES = 12
    SHARP_PLACES = 64

cdef double LEAST_WHOLE = 0.5


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


def agreements(const uint64_t[:, ::1] stored, const uint64_t[::1] compact, own):
    cdef const uint64_t[::1] rare = own.bits
    cdef Py_ssize_t number = own.number, i
    if stored.shape[1] != compact.shape[0] or rare.shape[0] != compact.shape[0]:
        raise ValueError("compact sketches of different sizes cannot be compared")
    made = np.empty(stored.shape[0])
    cdef double[::1] found = made
    for i in range(stored.shape[0]):
        found[i] = agreeing_share(stored[i], compact, rare, number)
    return made


def resemblances(
    const uint64_t[:, ::1] stored, const uint64_t[::1] compact, const double[::1] wholes, own
):
    cdef const uint64_t[::1] rare = own.bits
    cdef Py_ssize_t number = own.number, n = stored.shape[0], size = compact.shape[0]
    if stored.shape[1] != size or rare.shape[0] != size:
        raise ValueError("compact sketches of different sizes cannot be compared")
    if wholes.shape[0] != n:
        raise ValueError(f"{wholes.shape[0]} resemblances of {n} pages")
    made = np.zeros(n)
    cdef double[::1] found = made
    cdef Py_ssize_t i
    cdef double share
    for i in range(n):
        if number < SHARP_PLACES and wholes[i] < LEAST_WHOLE:
            continue
        share = min(1.0, 2.0 * agreeing_share(stored[i], compact, rare, number) / (1.0 + wholes[i]))
        found[i] = share / (2.0 - share)
    return made


cdef double agreeing_share(
    const uint64_t[::1] stored, const uint64_t[::1] compact, const uint64_t[::1] rare, Py_ssize_t number
) noexcept nogil:
    cdef Py_ssize_t differing = 0, j
    for j in range(compact.shape[0]):
        differing += popcount((stored[j] ^ compact[j]) & rare[j])
    return max(0.0, 1.0 - 2.0 * differing / number)


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
