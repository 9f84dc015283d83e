"""What native modules take from ``flips.py``: how likely each bit is to differ."""

from libc.math cimport fabs, sqrt


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
