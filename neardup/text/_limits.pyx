"""The search for tags that may have many attributes, in one pass; see limits.py."""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, Py_UNICODE_ISSPACE
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from neardup.fingerprint._bits cimport signs64, trailing_zeros

cdef Py_ssize_t SHORTEST_ATTRIBUTE = 2
"""Characters, with the space before it."""

cdef enum:
    SEEN = 64    # characters that are looked at together
    OTHER = 255  # stands for characters beyond it, none of which is a sign

ctypedef fused Character:
    uint8_t
    uint16_t
    uint32_t


def overview(str html not None, Py_ssize_t most):
    """Signs ``<``, whether there are NULs, and whether a tag may have more attributes than ``most``."""
    cdef Py_ssize_t size = PyUnicode_GET_LENGTH(html)
    cdef int width = PyUnicode_KIND(html)
    cdef void* text = PyUnicode_DATA(html)
    if width == 1:
        return found(<const uint8_t*>text, size, most)
    if width == 2:
        return found(<const uint16_t*>text, size, most)
    return found(<const uint32_t*>text, size, most)


cdef tuple found(const Character* text, Py_ssize_t size, Py_ssize_t most):
    cdef Py_ssize_t start, at, tags = 0
    cdef Py_ssize_t tag = size  # the first letter of the first tag after the last > that ends one
    cdef bint in_double = False, in_single = False, has_nuls = False, has_many = False
    cdef uint64_t signs
    cdef Character sign
    for start in range(0, size, SEEN):
        signs = signs_of(text + start, size - start)
        while signs:
            at = start + trailing_zeros(signs)
            signs &= signs - 1
            sign = text[at]
            if sign == c"<":
                tags += 1
                if tag == size and at + 1 < size and c"a" <= (text[at + 1] | 0x20) <= c"z":
                    tag = at + 1
            elif sign == c">":
                if not in_double and not in_single:
                    has_many = has_many or has_places(text, tag, at, most)
                    tag = size
            elif sign == c'"':
                in_double = opens_value(text, at)
            elif sign == c"'":
                in_single = opens_value(text, at)
            else:
                has_nuls = True
    return tags, bool(has_nuls), bool(has_many or has_places(text, tag, size, most))


cdef inline uint64_t signs_of(const Character* text, Py_ssize_t size) noexcept:
    """Which of the next 64 characters begin or end tags and values, or are NUL."""
    cdef uint8_t[SEEN] narrow
    cdef Py_ssize_t i
    if Character is uint8_t and size >= SEEN:
        return signs64(text)
    memset(narrow, OTHER, SEEN)
    for i in range(min(size, <Py_ssize_t>SEEN)):
        narrow[i] = <uint8_t>(text[i] if text[i] < OTHER else OTHER)
    return signs64(narrow)


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
