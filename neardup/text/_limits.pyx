"""The search for tags that may have many attributes, in one pass; see limits.py."""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, Py_UNICODE_ISSPACE
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef Py_ssize_t SHORTEST_ATTRIBUTE = 2
"""Characters, with the space before it."""

cdef extern from *:
    """
    #define SIGNS 0x5000008400000000u  /* the bits of " ' < > */
    """
    const uint64_t SIGNS

ctypedef fused Character:
    uint8_t
    uint16_t
    uint32_t


def may_have_attributes(str html not None, Py_ssize_t most):
    """Whether a tag may have more attributes than ``most``."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(html)
    cdef int width = PyUnicode_KIND(html)
    cdef void* text = PyUnicode_DATA(html)
    if width == 1:
        return bool(found(<const uint8_t*>text, size, most))
    if width == 2:
        return bool(found(<const uint16_t*>text, size, most))
    return bool(found(<const uint32_t*>text, size, most))


cdef bint found(const Character* text, Py_ssize_t size, Py_ssize_t most) noexcept:
    cdef Py_ssize_t at, tag = size  # the first letter of the first tag after the last > that ends one
    cdef bint in_double = False, in_single = False
    cdef Character sign
    for at in range(size):
        sign = text[at]
        if sign > c">" or not (SIGNS >> sign) & 1:  # nearly all characters of a page
            continue
        if sign == c"<":
            if tag == size and at + 1 < size and c"a" <= (text[at + 1] | 0x20) <= c"z":
                tag = at + 1
        elif sign == c">":
            if not in_double and not in_single:
                if has_places(text, tag, at, most):
                    return True
                tag = size
        elif sign == c'"':
            in_double = opens_value(text, at)
        elif sign == c"'":
            in_single = opens_value(text, at)
    return has_places(text, tag, size, most)


cdef bint has_places(const Character* text, Py_ssize_t begin, Py_ssize_t end, Py_ssize_t most) noexcept:
    """Whether more attributes than ``most`` may begin in a part of a page."""
    cdef Py_ssize_t at, places = 0
    if end - begin <= SHORTEST_ATTRIBUTE * most:
        return False
    for at in range(begin, end):
        if is_space_or_slash(text[at]) or text[at] == c'"' or text[at] == c"'":
            if at + 1 == end or not (is_space_or_slash(text[at + 1]) or text[at + 1] == c">"):
                places += 1
    return places > most


cdef inline bint is_space_or_slash(Character sign) noexcept:
    return sign == c" " or sign == c"/" or 9 <= sign <= 13 and sign != 11


cdef bint opens_value(const Character* text, Py_ssize_t quote) noexcept:
    """Whether only white space stands between a quotation mark and an equals sign before it."""
    cdef Py_ssize_t at = quote - 1
    while at >= 0 and Py_UNICODE_ISSPACE(text[at]):
        at -= 1
    return at >= 0 and text[at] == c"="
