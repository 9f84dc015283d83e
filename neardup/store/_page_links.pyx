"""Codes of links and their marks as they are stored; see page_links.py."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc, qsort

cdef enum:
    LONGEST = 10  # bytes of an integer of 64 bits


cdef int64_t[4] runs
runs[0], runs[1], runs[2], runs[3] = 2, 3, 4, 16


cdef int compared(const void* one, const void* other) noexcept nogil:
    cdef uint64_t first = (<const uint64_t*>one)[0], second = (<const uint64_t*>other)[0]
    return (first > second) - (first < second)


def encoded(dict marks_of_codes not None):
    """Codes, 0 or more and below 2**61, and their marks as they are stored."""
    cdef Py_ssize_t count = len(marks_of_codes), i = 0
    cdef uint64_t* links = <uint64_t*>malloc((8 + LONGEST) * count + 1)
    cdef uint8_t* made = <uint8_t*>(links + count)
    cdef uint8_t* end = made
    cdef int64_t code, before = 0, marks, marks_before = -1, run = 0
    cdef uint64_t value
    if links == NULL:
        raise MemoryError
    try:
        for code, marks in marks_of_codes.items():
            links[i] = <uint64_t>code << 2 | <uint64_t>marks
            i += 1
        qsort(links, count, sizeof(uint64_t), compared)
        for i in range(count):
            code, marks = links[i] >> 2, links[i] & 3
            if code == before + 1 and marks == marks_before:
                run += 1
            else:
                end = put_run(end, run, marks_before)
                value = <uint64_t>(code - before) << 2 | <uint64_t>marks
                while value > 127:
                    end[0] = value & 127 | 128
                    value >>= 7
                    end += 1
                end[0] = value
                end += 1
                run = 0
            before, marks_before = code, marks
        end = put_run(end, run, marks_before)
        return PyBytes_FromStringAndSize(<char*>made, end - made)
    finally:
        free(links)


cdef uint8_t* put_run(uint8_t* end, int64_t run, int64_t marks) noexcept nogil:
    """Append so many links to one code after the other, with the same marks."""
    cdef int integer = 3
    while run > 1:
        while run < runs[integer]:
            integer -= 1
        end[0] = integer
        end += 1
        run -= runs[integer]
    if run:
        end[0] = 1 << 2 | marks
        end += 1
    return end
