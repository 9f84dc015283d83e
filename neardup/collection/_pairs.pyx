"""All near-duplicates within one collection of fingerprints; see pairs.py."""

import numpy as np

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from neardup.collection._growing cimport Growing, copy_to, grown
from neardup.collection._matching_kernels cimport (
    MOST_BITS, Rows, Spread, choose, prefix_of, sort_by_prefix, spread_bits,
)
from neardup.fingerprint._bits cimport choose_instructions, next_near64, popcount


choose_instructions()

cdef Py_ssize_t TARGET = 32
cdef Py_ssize_t COMPARED = 512
cdef double WORTH = 0.75
cdef Py_ssize_t SMALLEST_SAMPLE = 64
cdef Py_ssize_t LARGEST_SAMPLE = 1 << 13

cdef enum:
    WIDEST = 22
    MOST_SETS = 17
    DEEPEST = 64


# Disjoint sets of bits: set t has ``bits[t * width : (t + 1) * width]``.
cdef struct Sets:
    int number
    int width
    int64_t[64] bits
    double left  # share of the comparisons that dividing by each in turn leaves


# What is looked for, and the sets of bits whose turn was before.
cdef struct Search:
    int max_distance
    int before
    uint64_t[(DEEPEST + 1) * MOST_SETS] forbidden
    Growing *found


def choose_sets(const uint64_t[::1] values, uint64_t used, int sets):
    if values.shape[0] < 2 or not 1 <= sets <= min(MOST_SETS, 64 - popcount(used)):
        raise ValueError(f"{sets} sets of bits for {values.shape[0]} values, {popcount(used)} bits are used")
    cdef Sets chosen
    with nogil:
        choose_sets_of(&values[0], values.shape[0], used, sets, &chosen)
    cdef int64_t[::1] bits = <int64_t[:sets * chosen.width]>chosen.bits
    return np.array(bits).reshape(sets, chosen.width), chosen.left


cdef int choose_sets_of(
    const uint64_t *values, Py_ssize_t count, uint64_t used, int sets, Sets *made
) except -1 nogil:
    cdef int64_t[64] chosen
    cdef Py_ssize_t size = min(count, max(SMALLEST_SAMPLE, min(LARGEST_SAMPLE, count // 32)))
    cdef uint64_t *sample = <uint64_t *>allocated(size * sizeof(uint64_t))
    cdef Py_ssize_t i
    made.number, made.width = sets, 1
    while count >> made.width > TARGET and made.width < WIDEST:
        made.width += 1
    made.width = min(made.width, (64 - popcount(used)) // sets)
    try:
        # Spread over the group, so that an order it may have does not matter.
        for i in range(size):
            sample[i] = values[i * count // size]
        choose(sample, size, ~used, chosen, sets * made.width)
        # Dealt out in turn, so that every set has its share of the best.
        for i in range(sets * made.width):
            made.bits[i % sets * made.width + i // sets] = chosen[i]
        made.left = left_together(sample, size, made)
    finally:
        free(sample)
    return 0


cdef void *allocated(Py_ssize_t size) except NULL nogil:
    cdef void *made = calloc(size, 1)
    if made == NULL:
        with gil:
            raise MemoryError(f"no memory for {size} bytes")
    return made


cdef double left_together(const uint64_t *sample, Py_ssize_t size, const Sets *sets) except -1 nogil:
    cdef Spread spread
    cdef uint32_t *counts = <uint32_t *>allocated((<Py_ssize_t>1 << sets.width) * sizeof(uint32_t))
    cdef uint32_t *count
    cdef uint64_t together = 0
    cdef Py_ssize_t i
    cdef int number
    for number in range(sets.number):
        spread_bits(sets.bits + number * sets.width, sets.width, &spread)
        for i in range(size):
            count = &counts[prefix_of(&spread, sample[i])]
            together += 2 * count[0]
            count[0] += 1
        for i in range(size):
            counts[prefix_of(&spread, sample[i])] = 0
    free(counts)
    return together / (size * (size - 1.0))


def divide(uint64_t[::1] values, uint32_t[::1] rows, const int64_t[::1] bits):
    check_rows(values, rows)
    cdef Py_ssize_t i
    for i in range(bits.shape[0]):
        if not 0 <= bits[i] < 64:
            raise ValueError(f"bits are 0 to 63, not {bits[i]}")
    if not 1 <= bits.shape[0] <= MOST_BITS:
        raise ValueError(f"a group is divided by 1 to {MOST_BITS} bits, not {bits.shape[0]}")
    made = np.zeros((1 << bits.shape[0]) + 1, dtype=np.uint32)
    cdef uint32_t[::1] offsets = made
    if values.shape[0]:
        with nogil:
            divide_group(&values[0], &rows[0], values.shape[0], &bits[0], bits.shape[0], &offsets[0])
    return made


cdef check_rows(uint64_t[::1] values, uint32_t[::1] rows):
    if not values.shape[0] == rows.shape[0] < 1 << 32:
        raise ValueError(f"{values.shape[0]} values have {rows.shape[0]} rows")


cdef int divide_group(
    uint64_t *values,
    uint32_t *rows,
    Py_ssize_t count,
    const int64_t *bits,
    Py_ssize_t width,
    uint32_t *offsets,
) except -1 nogil:
    """See ``divide``; there are one or more of all."""
    cdef Spread spread
    cdef uint64_t *spare = <uint64_t *>allocated(count * (sizeof(uint64_t) + sizeof(uint32_t)))
    cdef uint32_t *spare_rows = <uint32_t *>(spare + count)
    memcpy(spare, values, count * sizeof(uint64_t))
    memcpy(spare_rows, rows, count * sizeof(uint32_t))
    spread_bits(bits, width, &spread)
    sort_by_prefix(Rows(spare, spare_rows, count), &spread, offsets, values, rows)
    free(spare)
    return 0


def near_in_groups(
    uint64_t[::1] values,
    uint32_t[::1] rows,
    const uint32_t[::1] offsets,
    uint64_t used,
    forbidden,
    int max_distance,
):
    check_rows(values, rows)
    cdef Py_ssize_t i
    cdef Growing found = Growing(NULL, 0, 0)
    cdef Search search
    if not 0 <= max_distance < MOST_SETS or len(forbidden) > MOST_SETS:
        raise ValueError(
            f"max_distance is 0 to {MOST_SETS - 1}, not {max_distance}; {len(forbidden)} sets before"
        )
    search.max_distance, search.before, search.found = max_distance, len(forbidden), &found
    for i, mask in enumerate(forbidden):
        search.forbidden[i] = mask
    for i in range(offsets.shape[0] - 1):
        if not offsets[i] <= offsets[i + 1] <= values.shape[0]:
            raise ValueError(f"a group from {offsets[i]} to {offsets[i + 1]} of {values.shape[0]}")
    try:
        if offsets.shape[0] and values.shape[0]:
            with nogil:
                near_in_all(&values[0], &rows[0], &offsets[0], offsets.shape[0] - 1, used, &search)
        made = np.empty(found.count, dtype=np.uint32)
        copy_to(&found, made)
    finally:
        free(found.numbers)
    return made.reshape(-1, 3)


cdef int near_in_all(
    uint64_t *values,
    uint32_t *rows,
    const uint32_t *offsets,
    Py_ssize_t groups,
    uint64_t used,
    Search *search,
) except -1 nogil:
    cdef Py_ssize_t at, count
    for at in range(groups):
        count = offsets[at + 1] - offsets[at]
        if count > 1:
            near(values + offsets[at], rows + offsets[at], count, used, search)
    return 0


cdef int near(
    uint64_t *values, uint32_t *rows, Py_ssize_t count, uint64_t used, Search *search
) except -1 nogil:
    """Pairs within a group: those equal in none of the sets whose turn was before."""
    cdef Sets sets
    if count <= COMPARED or 64 - popcount(used) <= search.max_distance:
        return compare_all(values, rows, count, search)
    choose_sets_of(values, count, used, search.max_distance + 1, &sets)
    if sets.left > WORTH:
        return compare_all(values, rows, count, search)
    return near_in_sets(values, rows, count, used, &sets, search)


cdef int near_in_sets(
    uint64_t *values, uint32_t *rows, Py_ssize_t count, uint64_t used, const Sets *sets, Search *search
) except -1 nogil:
    """Divide a group by each set of bits in turn."""
    cdef int before = search.before
    cdef Py_ssize_t groups = <Py_ssize_t>1 << sets.width
    cdef uint32_t *offsets = <uint32_t *>allocated((groups + 1) * sizeof(uint32_t))
    cdef const int64_t *bits
    cdef uint64_t mask
    cdef int number, i
    try:
        for number in range(sets.number):
            bits = sets.bits + number * sets.width
            divide_group(values, rows, count, bits, sets.width, offsets)
            mask = 0
            for i in range(sets.width):
                mask |= <uint64_t>1 << (63 - bits[i])
            near_in_all(values, rows, offsets, groups, used | mask, search)
            search.forbidden[search.before] = mask
            search.before += 1
    finally:
        search.before = before
        free(offsets)
    return 0


cdef int compare_all(uint64_t *values, uint32_t *rows, Py_ssize_t count, Search *search) except -1 nogil:
    cdef uint64_t differing
    cdef uint32_t *to
    cdef Py_ssize_t i, j
    for i in range(count - 1):
        j = next_near64(values, i + 1, count, values[i], search.max_distance)
        while j < count:
            differing = values[i] ^ values[j]
            if not equal_before(differing, search):
                to = grown(search.found, 3)
                to[0], to[1], to[2] = min(rows[i], rows[j]), max(rows[i], rows[j]), popcount(differing)
            j = next_near64(values, j + 1, count, values[i], search.max_distance)
    return 0


cdef bint equal_before(uint64_t differing, const Search *search) noexcept nogil:
    cdef int i
    for i in range(search.before):
        if differing & search.forbidden[i] == 0:
            return True
    return False
