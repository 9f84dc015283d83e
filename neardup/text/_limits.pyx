"""The search for tags that may have many attributes, in one pass; see limits.py."""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, Py_UNICODE_ISSPACE
from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef Py_ssize_t SHORTEST_ATTRIBUTE = 2
"""Characters, with the space before it."""

ctypedef fused Character:
    uint8_t
    uint16_t
    uint32_t


def may_have_attributes(str html not None, Py_ssize_t most):
    """Whether a tag may have more attributes than ``most``, or does not end with its first ``>``."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(html), longest = SHORTEST_ATTRIBUTE * most
    cdef int width = PyUnicode_KIND(html)
    cdef void* text = PyUnicode_DATA(html)
    if width == 1:
        return bool(found(<const uint8_t*>text, size, longest))
    if width == 2:
        return bool(found(<const uint16_t*>text, size, longest))
    return bool(found(<const uint32_t*>text, size, longest))


cdef bint found(const Character* text, Py_ssize_t size, Py_ssize_t longest) noexcept:
    cdef Py_ssize_t at, tag = size  # the first letter of the first tag after the last >
    cdef bint in_double = False, in_single = False
    cdef Character sign
    for at in range(size):
        sign = text[at]
        if sign > c">" or sign < c'"':  # nearly all characters of a page
            continue
        if sign == c"<":
            if tag == size and at + 1 < size and c"a" <= (text[at + 1] | 0x20) <= c"z":
                tag = at + 1
        elif sign == c">":
            if in_double or in_single or at - tag > longest:
                return True
            tag = size
        elif sign == c'"':
            in_double = opens_value(text, at)
        elif sign == c"'":
            in_single = opens_value(text, at)
    return size - tag > longest


cdef bint opens_value(const Character* text, Py_ssize_t quote) noexcept:
    """Whether only white space stands between a quotation mark and an equals sign before it."""
    cdef Py_ssize_t at = quote - 1
    while at >= 0 and Py_UNICODE_ISSPACE(text[at]):
        at -= 1
    return at >= 0 and text[at] == c"="
