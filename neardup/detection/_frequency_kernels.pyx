"""Loops over the counts of a host and over headlines; see frequency_kernels.py."""

import numpy as np

from libc.stdint cimport int8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    TITLE_WORDS = 12   # as in neardup/text/headline.py
    HEADLINE_WORDS = 20
    UNKNOWN = 0
    SAME = 1
    DIFFERENT = 2
    REWORDED = 3
    NOTHING = 4        # a page has no title, or no heading
    MOST_COUNT = 0xFFFF

cdef uint64_t STEP = 0x9E3779B97F4A7C15
cdef uint64_t WHOLE = 0xD6E8FEB86659FD93


cdef int check(const uint16_t[:, ::1] cells) except -1:
    if cells.shape[0] != 2 or cells.shape[1] < 1 or cells.shape[1] & (cells.shape[1] - 1):
        raise ValueError("counts are two rows of cells, their number a power of two")
    return 0


cdef inline uint16_t count_of(const uint16_t[:, ::1] cells, uint64_t key) noexcept nogil:
    cdef uint64_t mask = <uint64_t>cells.shape[1] - 1
    cdef uint16_t first = cells[0, <Py_ssize_t>(key & mask)]
    cdef uint16_t second = cells[1, <Py_ssize_t>(key >> 32 & mask)]
    return first if first < second else second


def look_up(const uint16_t[:, ::1] cells, const uint64_t[::1] keys):
    check(cells)
    made = np.empty(keys.shape[0], dtype=np.uint16)
    cdef uint16_t[::1] counts = made
    cdef Py_ssize_t i
    for i in range(keys.shape[0]):
        counts[i] = count_of(cells, keys[i])
    return made


def count(uint16_t[:, ::1] cells, const uint64_t[::1] keys):
    check(cells)
    made = np.empty(keys.shape[0], dtype=np.uint16)
    cdef uint16_t[::1] raised = made
    cdef uint64_t mask = <uint64_t>cells.shape[1] - 1
    cdef uint16_t lesser
    cdef Py_ssize_t i, first, second
    cdef Py_ssize_t taken = 0
    for i in range(keys.shape[0]):
        lesser = count_of(cells, keys[i])
        raised[i] = lesser + 1 if lesser < MOST_COUNT else lesser
    for i in range(keys.shape[0]):
        first = <Py_ssize_t>(keys[i] & mask)
        second = <Py_ssize_t>(keys[i] >> 32 & mask)
        taken += cells[0, first] == 0
        if cells[0, first] < raised[i]:
            cells[0, first] = raised[i]
        if cells[1, second] < raised[i]:
            cells[1, second] = raised[i]
    return taken


cdef inline uint64_t word_key(uint32_t word) noexcept nogil:
    cdef uint64_t mixed = <uint64_t>(word >> 1) * STEP
    return mixed ^ mixed >> 32 ^ (word & 1)


cdef struct Part:
    int start
    int end
    bint common  # whether many canonical pages have all of it


cdef struct Described:
    uint32_t words[HEADLINE_WORDS]
    bint rare[HEADLINE_WORDS]
    Part title
    Part heading


cdef uint64_t whole_key(const uint32_t *words, int start, int end) noexcept nogil:
    cdef uint64_t sum = 0
    cdef int i
    for i in range(start, end):
        if words[i]:
            sum += word_key(words[i])
    cdef uint64_t mixed = (sum ^ WHOLE) * STEP
    return mixed ^ mixed >> 32


def headline_keys(const uint32_t[::1] headline):
    if headline.shape[0] != HEADLINE_WORDS:
        raise ValueError(f"a headline has {HEADLINE_WORDS} words, not {headline.shape[0]}")
    cdef uint64_t[HEADLINE_WORDS + 2] keys
    cdef Py_ssize_t found = 0
    cdef int i
    for i in range(HEADLINE_WORDS):
        if headline[i]:
            keys[found] = word_key(headline[i])
            found += 1
    keys[found] = whole_key(&headline[0], 0, TITLE_WORDS)
    keys[found + 1] = whole_key(&headline[0], TITLE_WORDS, HEADLINE_WORDS)
    made = np.empty(found + 2, dtype=np.uint64)
    cdef uint64_t[::1] values = made
    memcpy(&values[0], keys, (found + 2) * sizeof(uint64_t))
    return made


cdef bint is_common(
    const uint32_t *words, int start, int end, const uint16_t[:, ::1] cells, int limit
) noexcept nogil:
    return count_of(cells, whole_key(words, start, end)) > limit


cdef void describe(
    Described *page, const uint32_t[::1] headline, const uint16_t[:, ::1] cells, bint known, int limit
) noexcept nogil:
    cdef int i
    for i in range(HEADLINE_WORDS):
        page.words[i] = headline[i]
        page.rare[i] = headline[i] != 0 and (not known or count_of(cells, word_key(headline[i])) <= limit)
    page.title = Part(0, TITLE_WORDS, known and is_common(page.words, 0, TITLE_WORDS, cells, limit))
    cdef bint common = known and is_common(page.words, TITLE_WORDS, HEADLINE_WORDS, cells, limit)
    page.heading = Part(TITLE_WORDS, HEADLINE_WORDS, common)


cdef bint has(const Described *page, Part part, uint32_t word) noexcept nogil:
    cdef int i
    for i in range(part.start, part.end):
        if page.words[i] == word:
            return True
    return False


cdef int differing(const Described *one, const Described *other, Part part) noexcept nogil:
    """What the rare words say that only one of the pages has."""
    cdef int found = SAME
    cdef int i
    for i in range(part.start, part.end):
        if one.rare[i] and not has(other, part, one.words[i]):
            if not one.words[i] & 1:
                return DIFFERENT
            found = UNKNOWN
    return found


cdef bint is_empty(const Described *page, Part part) noexcept nogil:
    cdef int i
    for i in range(part.start, part.end):
        if page.words[i]:
            return False
    return True


cdef int compare_parts(const Described *own, const Described *other, Part part) noexcept nogil:
    if is_empty(own, part) or is_empty(other, part):
        return NOTHING
    cdef int ours = differing(own, other, part)
    cdef int others = differing(other, own, part)
    if ours == DIFFERENT or others == DIFFERENT:
        return DIFFERENT
    return SAME if ours == SAME and others == SAME else UNKNOWN


cdef int compare(const Described *own, const Described *other) noexcept nogil:
    cdef int title = compare_parts(own, other, own.title)
    if title == UNKNOWN or title == DIFFERENT:
        return title
    if title == SAME and not own.title.common and not other.title.common:
        return SAME
    cdef int heading = compare_parts(own, other, own.heading)
    if heading == NOTHING or (heading == SAME and (own.heading.common or other.heading.common)):
        return UNKNOWN
    return heading


cdef bint is_full(const Described *page, Part part) noexcept nogil:
    """Whether a title, or a heading, may have more words than are kept."""
    cdef int i
    for i in range(part.start, part.end):
        if not page.words[i]:
            return False
    return True


cdef bint is_cut(const Described *page) noexcept nogil:
    return (is_empty(page, page.title) or is_full(page, page.title)) and (
        is_empty(page, page.heading) or is_full(page, page.heading)
    )


cdef bint lacks(const Described *one, const Described *other, Part part) noexcept nogil:
    """Whether a page has a word that the other page has not."""
    cdef int i
    for i in range(part.start, part.end):
        if one.words[i] and not has(other, part, one.words[i]):
            return True
    return False


cdef bint differ(const Described *own, const Described *other, Part part) noexcept nogil:
    if is_empty(own, part) or is_empty(other, part):
        return False
    return lacks(own, other, part) or lacks(other, own, part)


def likenesses(const uint32_t[::1] own, tuple own_site, const uint32_t[:, ::1] others, tuple other_site):
    cdef const uint16_t[:, ::1] own_cells = own_site[0]
    cdef const uint16_t[:, ::1] other_cells = other_site[0]
    cdef int own_limit = own_site[1]
    cdef int other_limit = other_site[1]
    if own.shape[0] != HEADLINE_WORDS or others.shape[1] != HEADLINE_WORDS:
        raise ValueError(f"a headline has {HEADLINE_WORDS} words, not {own.shape[0]} and {others.shape[1]}")
    if own_cells is not None:
        check(own_cells)
    if other_cells is not None:
        check(other_cells)
    made = np.empty(others.shape[0], dtype=np.int8)
    cdef int8_t[::1] found = made
    cdef Described page, other
    cdef Py_ssize_t i
    describe(&page, own, own_cells, own_cells is not None, own_limit)
    cdef bint cut = is_cut(&page)
    for i in range(others.shape[0]):
        describe(&other, others[i], other_cells, other_cells is not None, other_limit)
        found[i] = compare(&page, &other)
        if found[i] == SAME and (
            cut or differ(&page, &other, page.title) or differ(&page, &other, page.heading)
        ):
            found[i] = REWORDED
    return made
