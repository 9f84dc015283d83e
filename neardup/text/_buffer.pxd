"""Bytes that grow, for native modules."""

from libc.stdint cimport uint8_t
from libc.stdlib cimport realloc


cdef struct Buffer:
    uint8_t* bytes
    size_t size
    size_t room


cdef inline int reserve(Buffer* buffer, size_t more) except -1:
    """Make room for so many bytes behind those there are."""
    cdef size_t room = 2 * (buffer.size + more)
    cdef uint8_t* moved
    if buffer.size + more > buffer.room:
        moved = <uint8_t*>realloc(buffer.bytes, room)
        if moved == NULL:
            raise MemoryError
        buffer.bytes = moved
        buffer.room = room
    return 0
