"""What several native modules take from MurmurHash3 (Appleby)."""

from libc.stdint cimport uint64_t


cdef inline uint64_t mix(uint64_t value) noexcept nogil:
    """The finaliser: a fixed permutation of the 64-bit integers that looks random."""
    value = (value ^ (value >> 33)) * <uint64_t>0xFF51AFD7ED558CCD
    value = (value ^ (value >> 33)) * <uint64_t>0xC4CEB9FE1A85EC53
    return value ^ (value >> 33)
