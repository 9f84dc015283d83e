"""Selectors for the native walk."""

from libc.stdint cimport uint64_t
from lxml.includes.tree cimport xmlNode


cdef enum:
    MOST_STEPS = 64


cdef struct Test:
    const char* attribute
    const char* value  # NULL: the attribute need only be there
    size_t size        # of the value
    bint is_word       # the value is one of the words of the attribute


cdef struct Matched:
    # Steps that match an element, and those that match it or one above it.
    uint64_t here
    uint64_t above


cdef class Automaton:
    cdef list kept
    cdef const char* names[MOST_STEPS]
    cdef Test* tests
    cdef int first_test[MOST_STEPS + 1]
    cdef int size
    cdef uint64_t first       # steps that ask for nothing above
    cdef uint64_t below       # those that ask for the step before somewhere above
    cdef uint64_t just_below  # and just above
    cdef uint64_t with_tests
    cdef uint64_t any_name
    cdef readonly bint includes
    cdef uint64_t included    # the last steps of selectors
    cdef uint64_t excluded

    cdef uint64_t steps_of_name(self, const char* name) noexcept
    cdef int match(self, xmlNode* node, uint64_t steps, const Matched* parent, Matched* matched) except -1
