"""What native modules take from ``matching_kernels.py``: chosen bits, and grouping by them."""

from libc.stdint cimport int64_t, uint32_t, uint64_t


cdef enum:
    MOST_BITS = 30  # of a prefix: 2^30 offsets have 4 GiB


# What each byte of a fingerprint, the lowest first, contributes to a prefix of so many bits.
cdef struct Spread:
    int bits
    uint32_t[8][256] parts


cdef inline uint32_t prefix_of(const Spread *spread, uint64_t value) noexcept nogil:
    """The chosen bits of a fingerprint, side by side."""
    cdef uint32_t prefix = 0
    cdef int byte
    for byte in range(8):
        prefix |= spread.parts[byte][value >> (8 * byte) & 0xFF]
    return prefix


# Fingerprints and their rows. No rows: they are numbered.
cdef struct Rows:
    const uint64_t *values
    const uint32_t *rows
    Py_ssize_t count


cdef int choose(
    const uint64_t *sample, Py_ssize_t size, uint64_t allowed, int64_t *chosen, Py_ssize_t number
) except -1 nogil
"""See ``choose_bits`` of matching_kernels.py; ``number`` is at most that of the ones of ``allowed``."""

cdef void spread_bits(const int64_t *bits, Py_ssize_t count, Spread *spread) noexcept nogil
"""Prepare :func:`prefix_of`. ``bits``: up to 30 positions from the most significant bit; the first becomes
the highest of the prefix."""

cdef void sort_by_prefix(
    Rows given, const Spread *spread, uint32_t *offsets, uint64_t *values, uint32_t *rows
) noexcept nogil
"""Sort stably by counting into ``values`` and ``rows``. ``offsets`` (2^p + 1) gets where each prefix begins,
and the end."""
