"""Ranked results without near-duplicates; see distinct.py."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from neardup.fingerprint._bits cimport choose_instructions, differing_bits


choose_instructions()


def shown(list ids, list known, const uint64_t[:, ::1] sketches, Py_ssize_t keep, Py_ssize_t most):
    cdef Py_ssize_t number = sketches.shape[0], row = 0, below, place
    if len(ids) != len(known) or number != known.count(True):
        raise ValueError(f"{number} sketches of {known.count(True)} of {len(ids)} results")
    cdef list kept = []
    # Of each sketch the number of the kept result that hides it, from 1 on; 0: none does.
    cdef uint32_t *hidden_by = <uint32_t *>calloc(2 * number + 1, sizeof(uint32_t))
    cdef uint32_t *differing = hidden_by + number
    if hidden_by == NULL:
        raise MemoryError(f"no memory for {number} results")
    try:
        for place in range(len(ids)):
            if known[place] and hidden_by[row]:
                (<list>(<tuple>kept[hidden_by[row] - 1])[1]).append(ids[place])
            elif len(kept) < keep:
                kept.append((ids[place], []))
                if known[place] and row + 1 < number:
                    differing_bits(
                        &sketches[row, 0], &sketches[row + 1, 0], sketches.shape[1], number - row - 1, differing
                    )
                    for below in range(row + 1, number):
                        if not hidden_by[below] and differing[below - row - 1] <= most:
                            hidden_by[below] = len(kept)
            row += <bint>known[place]
    finally:
        free(hidden_by)
    return kept
