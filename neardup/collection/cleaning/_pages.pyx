"""Near-duplicates among the results of a query; see pages.py."""

import numpy as np

from libc.stdint cimport int64_t, uint64_t

from neardup.fingerprint._bits cimport choose_instructions, next_near64


choose_instructions()


def stars(const uint64_t[::1] values, const unsigned char[::1] kept, int max_distance):
    cdef Py_ssize_t count = values.shape[0], place, other
    if kept.shape[0] != count:
        raise ValueError(f"{count} values are not those of {kept.shape[0]} pages")
    made = np.arange(count)
    cdef int64_t[::1] heads = made
    for place in range(count):
        if heads[place] != place:
            continue
        other = next_near64(&values[0], place + 1, count, values[place], max_distance)
        while other < count:
            if heads[other] == other and not kept[other]:
                heads[other] = place
            other = next_near64(&values[0], other + 1, count, values[place], max_distance)
    return made
