"""What native modules take from ``flips.py``: the odds of each bit, and the combinations of bits to flip."""

from libc.math cimport fabs, sqrt
from libc.stdint cimport uint64_t


cdef enum:
    MOST_DISTANCE = 16  # largest one that there is room for


cdef struct Wanted:
    int prefix_bits
    int max_distance
    double recall


# Combinations of bits, most probable first, and their chances. There must be room for at least one.
cdef struct Flips:
    uint64_t *masks
    double *chances
    Py_ssize_t most
    Py_ssize_t count


cdef inline void flip_odds(const double *weights, int max_distance, double *odds) noexcept nogil:
    """Odds of each of 64 bits to differ in a near-duplicate at ``max_distance``; see flips.py."""
    cdef double squares = 0.0
    cdef double scale = 0.0
    cdef double falling
    cdef int j
    for j in range(64):
        squares += weights[j] * weights[j]
    if squares > 0.0:
        scale = 28.0 / ((max_distance + 1) * sqrt(squares))  # FLIP_SLOPE
    for j in range(64):
        falling = 1.0 / (1.0 + scale * fabs(weights[j]))
        falling *= falling
        falling *= falling
        odds[j] = falling * falling


cdef void write_flips(const double *weights, Wanted wanted, Flips *flips) noexcept nogil
"""Fill ``flips`` by 64 bit weights; see ``plan_flips`` of flips.py."""
