"""Eight characters of ASCII at once."""

from libc.stdint cimport uint64_t


cdef enum:
    EIGHT = 8


cdef inline uint64_t each(uint64_t value) noexcept nogil:
    """A byte in all eight."""
    return value * <uint64_t>0x0101010101010101


cdef inline uint64_t at_least(uint64_t ascii, uint64_t value) noexcept nogil:
    """The highest bit of each of eight bytes of ASCII that is this value or more."""
    return (ascii | each(128)) - each(value) & each(128)


cdef inline uint64_t between(uint64_t ascii, uint64_t first, uint64_t last) noexcept nogil:
    """The highest bit of each of eight bytes of ASCII from the first value to the last."""
    return at_least(ascii, first) & ~at_least(ascii, last + 1)


cdef inline uint64_t whole_bytes(uint64_t highest) noexcept nogil:
    """All bits of the bytes whose highest is given."""
    return (highest >> 7) * 255
