"""Loops over hashed words: frequencies, shingles and the min-wise sketch; see feature_kernels.py."""

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from neardup.fingerprint._bits cimport (
    choose_instructions, draw_wide, is_wide, match_wide, popcount, shingles_wide,
)
from neardup.text._murmur cimport mix

choose_instructions()


cdef uint64_t STEP = 0x9E3779B97F4A7C15
cdef uint64_t NOTHING = ~<uint64_t>0  # drawn for a place so far
cdef Py_ssize_t FEW = 64
cdef Py_ssize_t MOST = 0xFFFFFFFF


def count(const uint64_t[::1] hashes, uint64_t salt):
    cdef Py_ssize_t size = hashes.shape[0], slots = 64, found = 0
    if size > MOST:
        raise ValueError(f"{size:,} hashes are too many")
    while slots < 2 * size:
        slots *= 2
    cdef Places places = Places(of=<uint32_t*>calloc(slots, sizeof(uint32_t)), mask=slots - 1, salt=salt)
    if places.of == NULL:
        raise MemoryError
    try:
        made = np.empty(size, dtype=np.uint64)
        counts = np.empty(size, dtype=np.float64)
        if size:
            found = fill_counts(hashes, &places, made, counts)
    finally:
        free(places.of)
    return made[:found].copy(), counts[:found].copy()


cdef struct Places:
    # A table of open addresses that is never half full: one more than the place of a hash; 0: none.
    uint32_t* of
    uint64_t mask
    uint64_t salt


cdef Py_ssize_t fill_counts(
    const uint64_t[::1] hashes, const Places* places, uint64_t[::1] distinct, double[::1] counts
) except -1:
    cdef uint64_t value, slot
    cdef uint32_t place
    cdef Py_ssize_t i, found = 0
    for i in range(hashes.shape[0]):
        value = hashes[i]
        slot = mix(value ^ places.salt) & places.mask
        while places.of[slot] and distinct[places.of[slot] - 1] != value:
            slot = (slot + 1) & places.mask
        place = places.of[slot]
        if place == 0:
            distinct[found] = value
            counts[found] = 1.0
            found += 1
            places.of[slot] = <uint32_t>found
        else:
            counts[place - 1] += 1.0
    return found


def shingles(const uint64_t[::1] hashes, Py_ssize_t width):
    cdef Py_ssize_t length = min(width, hashes.shape[0])
    if width < 1:
        raise ValueError(f"a shingle has one word or more, not {width}")
    if length == 0:
        return np.empty(0, dtype=np.uint64)
    made = np.empty(hashes.shape[0] - length + 1, dtype=np.uint64)
    cdef uint64_t[::1] values = made
    if is_wide:
        shingles_wide(&hashes[0], length, values.shape[0], &values[0])
    else:
        fill_shingles(hashes, length, values)
    return made


cdef void fill_shingles(const uint64_t[::1] hashes, Py_ssize_t length, uint64_t[::1] made) noexcept nogil:
    cdef uint64_t value
    cdef Py_ssize_t i, j
    for i in range(made.shape[0]):
        value = length
        for j in range(length):
            value = mix(value + STEP) ^ hashes[i + j]
        made[i] = mix(value)


cdef enum:
    WIDE_PLACES = 1024  # of sketches that draw_wide fills
    WIDE_WORDS = 16     # with a bit for each of them

cdef struct Drawing:
    Py_ssize_t turn
    Py_ssize_t empty


def draw(const uint64_t[::1] elements, Py_ssize_t size):
    if elements.shape[0] == 0 or not 0 < size < 1 << 32:
        raise ValueError("a sketch needs at least one element and one place, and fewer than 2**32 places")
    made, held = np.empty(size, dtype=np.uint64), np.empty(size, dtype=np.int64)
    cdef uint64_t[::1] values = made
    cdef int64_t[::1] rows = held
    cdef Drawing drawing
    memset(&values[0], 0xFF, 8 * size)
    drawing.turn = 0
    drawing.empty = size
    draw_elements(elements, values, rows, &drawing)
    if drawing.empty == 0:
        return made, held
    # Rows of what is drawn from now on are not those of the given elements.
    distinct = np.unique(elements)
    draw_elements(distinct, values, rows, &drawing)
    if drawing.empty:
        draw_elements(distinct[:FEW], values, rows, &drawing)
    from neardup.text.feature_kernels import holders

    return made, holders(np.asarray(elements), made)


cdef void draw_elements(
    const uint64_t[::1] elements, uint64_t[::1] values, int64_t[::1] rows, Drawing* drawing
) noexcept nogil:
    """Draw every element once a turn, until no place is empty or ``FEW`` draws a place are made."""
    cdef Py_ssize_t count = elements.shape[0]
    cdef Py_ssize_t size = values.shape[0]
    cdef Py_ssize_t last = FEW * size // count if count > FEW else 2 * size
    if is_wide and size <= WIDE_PLACES:
        draw_turns(elements, values, rows, min(last, size - 1), drawing)
    while drawing.empty and drawing.turn <= last:
        draw_turn(elements, values, rows, drawing)
        drawing.turn += 1


cdef void draw_turns(
    const uint64_t[::1] elements,
    uint64_t[::1] values,
    int64_t[::1] rows,
    Py_ssize_t last,
    Drawing* drawing,
) noexcept nogil:
    """All turns up to the last, by wide instructions."""
    cdef uint64_t[WIDE_WORDS] is_empty
    cdef Py_ssize_t size = values.shape[0], i, j
    for i in range(WIDE_WORDS):
        is_empty[i] = 0
        for j in range(min(64, size - 64 * i)):
            is_empty[i] |= <uint64_t>(values[64 * i + j] == NOTHING) << j
    drawing.turn = draw_wide(
        &elements[0], elements.shape[0], drawing.turn, last, &values[0], &rows[0], size, is_empty
    )
    drawing.empty = 0
    for i in range(WIDE_WORDS):
        drawing.empty += popcount(is_empty[i])


cdef void draw_turn(
    const uint64_t[::1] elements, uint64_t[::1] values, int64_t[::1] rows, Drawing* drawing
) noexcept nogil:
    cdef uint64_t size = values.shape[0]
    cdef uint64_t turn = drawing.turn
    cdef uint64_t salt = turn * STEP, stamp = turn << 32
    cdef uint64_t drawn, value, place
    cdef Py_ssize_t i
    for i in range(elements.shape[0]):
        drawn = mix(elements[i] + salt)
        place = ((drawn >> 32) * size) >> 32 if turn < size else turn - size
        value = stamp | (drawn & <uint64_t>0xFFFFFFFF)
        if value <= values[place]:
            drawing.empty -= values[place] == NOTHING
            values[place] = value
            rows[place] = i


def match(const uint64_t[::1] elements, const uint64_t[::1] sketch, Py_ssize_t first, Py_ssize_t end):
    found = np.full(sketch.shape[0], -1, dtype=np.int64)
    cdef int64_t[::1] rows = found
    cdef Py_ssize_t wide = min(end, sketch.shape[0])
    if is_wide and elements.shape[0] and first < wide:
        match_wide(&elements[0], elements.shape[0], first, wide, &sketch[0], sketch.shape[0], &rows[0])
        first = wide
    match_turns(elements, sketch, first, end, rows)
    return found


cdef void match_turns(
    const uint64_t[::1] elements,
    const uint64_t[::1] sketch,
    Py_ssize_t first,
    Py_ssize_t end,
    int64_t[::1] rows,
) noexcept nogil:
    cdef uint64_t size = sketch.shape[0], drawn, place, turn, salt, stamp
    cdef Py_ssize_t i
    for turn in range(first, end):
        salt, stamp = turn * STEP, turn << 32
        for i in range(elements.shape[0]):
            drawn = mix(elements[i] + salt)
            place = ((drawn >> 32) * size) >> 32 if turn < size else min(turn - size, size - 1)
            if sketch[place] == (stamp | (drawn & <uint64_t>0xFFFFFFFF)):
                rows[place] = i
