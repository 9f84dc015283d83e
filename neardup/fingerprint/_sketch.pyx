"""Compact sketches; see sketch.py."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from neardup.fingerprint._bits cimport popcount


def compact(const uint64_t[::1] sketch):
    if sketch.shape[0] % 64:
        raise ValueError(f"the number of places must be a multiple of 64, not {sketch.shape[0]}")
    made = np.empty(sketch.shape[0] // 64, dtype=np.uint64)
    cdef uint64_t[::1] words = made
    cdef uint64_t word
    cdef Py_ssize_t i
    cdef int j
    for i in range(words.shape[0]):
        word = 0
        for j in range(64):
            # Byte after byte, in each the highest bit first.
            word |= (sketch[64 * i + j] & 1) << (j ^ 7)
        words[i] = word
    return made


def differing(const uint64_t[:, :] stored, const uint64_t[:] sketch, const uint64_t[:] places=None):
    if stored.shape[1] != sketch.shape[0] or (places is not None and places.shape[0] != sketch.shape[0]):
        raise ValueError("compact sketches of different sizes cannot be compared")
    made = np.empty(stored.shape[0], dtype=np.int64)
    cdef int64_t[::1] counts = made
    cdef int64_t count
    cdef uint64_t bits
    cdef Py_ssize_t i, j
    for i in range(stored.shape[0]):
        count = 0
        for j in range(sketch.shape[0]):
            bits = stored[i, j] ^ sketch[j]
            if places is not None:
                bits &= places[j]
            count += popcount(bits)
        counts[i] = count
    return made


def compact_estimates(const uint64_t[:, :] stored, const uint64_t[:] sketch):
    cdef const int64_t[::1] counts = differing(stored, sketch)
    made = np.empty(counts.shape[0])
    cdef double[::1] found = made
    cdef Py_ssize_t i
    for i in range(counts.shape[0]):
        found[i] = max(0.0, 1.0 - 2.0 * counts[i] / (64 * sketch.shape[0]))
    return made
