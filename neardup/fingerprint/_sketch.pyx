"""Compact sketches; see sketch.py."""

import numpy as np

from libc.stdint cimport uint64_t


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
