"""The sum over all features; see simhash.py."""

from libc.math cimport rint
from libc.stdint cimport uint8_t, uint64_t

from neardup.fingerprint._bits cimport accumulate_wide, choose_instructions, is_wide

choose_instructions()

cdef enum:
    WEAK_BITS_STORED = 24  # as in simhash.py
    WEIGHT_STEPS = 255

cdef double WEIGHT_RANGE = 0.25

cdef double[256][8] SIGNS
"""For each byte +1 where a bit of it is 1, else −1; the most significant bit comes first."""

cdef int _byte, _bit
for _byte in range(256):
    for _bit in range(8):
        SIGNS[_byte][_bit] = 1.0 if _byte >> (7 - _bit) & 1 else -1.0


def accumulate(const uint64_t[::1] hashes, const double[::1] weights, double[::1] bit_weights):
    if weights.shape[0] != hashes.shape[0] or bit_weights.shape[0] != 64:
        raise ValueError("each hash needs a weight, and there are 64 bit weights")
    cdef uint64_t value = 0
    cdef int j
    if hashes.shape[0]:
        if is_wide:
            accumulate_wide(&hashes[0], &weights[0], hashes.shape[0], &bit_weights[0])
        else:
            add_all(hashes, weights, bit_weights)
    for j in range(64):
        value = value << 1 | (bit_weights[j] > 0.0)
    return value


cdef void add_all(
    const uint64_t[::1] hashes, const double[::1] weights, double[::1] bit_weights
) noexcept nogil:
    cdef double[16] sums  # so few that a processor keeps them in its registers
    cdef const double* high
    cdef const double* low
    cdef Py_ssize_t i
    cdef int first, j
    for first in range(0, 64, 16):
        for j in range(16):
            sums[j] = bit_weights[first + j]
        for i in range(hashes.shape[0]):
            high = SIGNS[hashes[i] >> (56 - first) & 0xFF]
            low = SIGNS[hashes[i] >> (48 - first) & 0xFF]
            for j in range(8):
                sums[j] += weights[i] * high[j]
                sums[8 + j] += weights[i] * low[j]
        for j in range(16):
            bit_weights[first + j] = sums[j]


def pack_weakest(const double[::1] relative):
    if relative.shape[0] != 64:
        raise ValueError(f"there are 64 relative weights, not {relative.shape[0]}")
    cdef uint8_t[2 * WEAK_BITS_STORED] packed
    cdef int number = 0, j, at
    # The weakest so far, in order; of equal ones the first bit stays in front.
    for j in range(64):
        at = number
        while at and relative[packed[at - 1]] > relative[j]:
            if at < WEAK_BITS_STORED:
                packed[at] = packed[at - 1]
            at -= 1
        if at < WEAK_BITS_STORED:
            packed[at] = <uint8_t>j
            number = min(number + 1, WEAK_BITS_STORED)
    for at in range(WEAK_BITS_STORED):
        packed[WEAK_BITS_STORED + at] = <uint8_t>min(
            rint(relative[packed[at]] * (WEIGHT_STEPS / WEIGHT_RANGE)), <double>WEIGHT_STEPS
        )
    return packed[: 2 * WEAK_BITS_STORED]
