"""Lists of numbers that grow without Python."""

from libc.stdint cimport uint32_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy


cdef struct Growing:
    uint32_t *numbers
    Py_ssize_t count
    Py_ssize_t room


cdef inline uint32_t *grown(Growing *growing, Py_ssize_t more) except NULL nogil:
    """Where to write ``more`` numbers behind the last one; they count from now on. Raises MemoryError."""
    cdef Py_ssize_t room = growing.room
    cdef void *moved
    if growing.count + more > room:
        room = max(2 * room, growing.count + more, 1024)
        moved = realloc(growing.numbers, room * sizeof(uint32_t))
        if moved == NULL:
            with gil:
                raise MemoryError(f"no memory for {room} numbers")
        growing.numbers = <uint32_t *>moved
        growing.room = room
    growing.count += more
    return growing.numbers + growing.count - more


cdef inline void copy_to(const Growing *growing, uint32_t[::1] array) noexcept nogil:
    """Fill an array of ``count`` numbers."""
    if growing.count:
        memcpy(&array[0], growing.numbers, growing.count * sizeof(uint32_t))
