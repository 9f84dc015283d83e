"""Codes of links and their marks as they are stored; see page_links.py."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc

cdef enum:
    LONGEST = 10  # bytes of an integer of 64 bits


def encoded(dict marks_of_codes not None):
    """Codes, 0 or more, and their marks as they are stored."""
    cdef uint8_t* made = <uint8_t*>malloc(LONGEST * len(marks_of_codes) + 1)
    cdef uint8_t* end = made
    cdef int64_t code, before = 0
    cdef uint64_t value
    if made == NULL:
        raise MemoryError
    try:
        for code in sorted(marks_of_codes):
            value = <uint64_t>(code - before) << 2 | <uint64_t>marks_of_codes[code]
            before = code
            while value > 127:
                end[0] = value & 127 | 128
                value >>= 7
                end += 1
            end[0] = value
            end += 1
        return PyBytes_FromStringAndSize(<char*>made, end - made)
    finally:
        free(made)
