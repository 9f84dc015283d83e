"""Loops over all pairs of pages; see counting_kernels.py."""

import numpy as np

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from neardup.fingerprint._bits cimport choose_instructions, differing_bits, next_near64, popcount

choose_instructions()

cdef uint8_t RIGHT = 1
cdef int CLASSES = 8
cdef double NONE = 2.0


@cython.final
cdef class Pairs:
    """Prints and truth of all pages, and the classes of the pairs of one page with those before it."""

    cdef const uint64_t[::1] values
    cdef const uint64_t[:, ::1] sketches
    cdef const int64_t[::1] offsets
    cdef const int64_t[::1] partners
    cdef const uint8_t[::1] classes
    cdef uint8_t[::1] marks

    def __cinit__(self, prints, truth, Py_ssize_t begin, Py_ssize_t end):
        self.values, self.sketches = prints.values, prints.sketches
        self.offsets, self.partners, self.classes = truth.offsets, truth.partners, truth.classes
        cdef Py_ssize_t page, place, count = self.values.shape[0], pairs = self.partners.shape[0]
        if not 0 <= begin <= end <= count:
            raise ValueError(f"pages {begin} to {end} are not among {count}")
        if self.sketches.shape[0] != count or self.offsets.shape[0] != count + 1:
            raise ValueError(f"sketches or offsets are not those of {count} pages")
        if self.classes.shape[0] != pairs:
            raise ValueError(f"{pairs} pairs have {self.classes.shape[0]} classes")
        for page in range(begin, end):
            if not 0 <= self.offsets[page] <= self.offsets[page + 1] <= pairs:
                raise ValueError(f"the pairs of page {page} are not among {pairs}")
            for place in range(self.offsets[page], self.offsets[page + 1]):
                if not 0 <= self.partners[place] < page or self.classes[place] >= CLASSES:
                    raise ValueError(
                        f"page {page} has no pair of class {self.classes[place]} with {self.partners[place]}"
                    )
        self.marks = np.zeros(count, dtype=np.uint8)

    cdef void mark(self, Py_ssize_t page) noexcept nogil:
        cdef Py_ssize_t place
        for place in range(self.offsets[page], self.offsets[page + 1]):
            self.marks[self.partners[place]] = self.classes[place]

    cdef void unmark(self, Py_ssize_t page) noexcept nogil:
        cdef Py_ssize_t place
        for place in range(self.offsets[page], self.offsets[page + 1]):
            self.marks[self.partners[place]] = 0

    cdef inline Py_ssize_t differing(self, Py_ssize_t page, Py_ssize_t other) noexcept nogil:
        """Bits of the sketches."""
        cdef uint32_t bits
        differing_bits(&self.sketches[page, 0], &self.sketches[other, 0], self.sketches.shape[1], 1, &bits)
        return bits


def count_pairs(prints, truth, Py_ssize_t begin, Py_ssize_t end):
    cdef Pairs pairs = Pairs(prints, truth, begin, end)
    cdef Py_ssize_t page, words = pairs.sketches.shape[1]
    made = np.zeros((CLASSES, 65, 64 * words + 1), dtype=np.int64)
    cdef int64_t[:, :, ::1] counts = made
    cdef uint32_t[::1] differing = np.empty(end, dtype=np.uint32)
    with nogil:
        for page in range(begin, end):
            pairs.mark(page)
            differing_bits(&pairs.sketches[page, 0], &pairs.sketches[0, 0], words, page, &differing[0])
            count(pairs.values[: page + 1], pairs.marks, differing, counts)
            pairs.unmark(page)
    return made


cdef void count(
    const uint64_t[::1] values,
    const uint8_t[::1] marks,
    const uint32_t[::1] differing,
    int64_t[:, :, ::1] counts,
) noexcept nogil:
    """Count the pairs of the last page with each before it."""
    cdef Py_ssize_t page = values.shape[0] - 1
    cdef Py_ssize_t other
    for other in range(page):
        counts[marks[other], popcount(values[page] ^ values[other]), differing[other]] += 1


@cython.final
cdef class Sets:
    """Sorted sets, one after the other."""

    cdef const uint64_t[::1] elements
    cdef const int64_t[::1] starts

    def __cinit__(self, sets, Py_ssize_t count):
        self.elements, self.starts = sets.elements, sets.starts
        cdef Py_ssize_t i
        if self.starts.shape[0] != count + 1:
            raise ValueError(f"{self.starts.shape[0]} starts are not those of the sets of {count} pages")
        for i in range(count):
            if not 0 <= self.starts[i] <= self.starts[i + 1] <= self.elements.shape[0]:
                raise ValueError(f"the set of page {i} is not among {self.elements.shape[0]} elements")

    cdef double resemblance(self, Py_ssize_t one, Py_ssize_t other) noexcept nogil:
        cdef Py_ssize_t i = self.starts[one], i_end = self.starts[one + 1]
        cdef Py_ssize_t j = self.starts[other], j_end = self.starts[other + 1]
        cdef Py_ssize_t both = 0, sizes = i_end - i + j_end - j
        while i < i_end and j < j_end:
            if self.elements[i] == self.elements[j]:
                both += 1
                i += 1
                j += 1
            elif self.elements[i] < self.elements[j]:
                i += 1
            else:
                j += 1
        return <double>both / <double>(sizes - both) if sizes else 1.0


cdef struct Rule:
    int max_distance
    Py_ssize_t most_differing


cdef struct Wrong:
    double alike
    Py_ssize_t other


def least_alike(
    prints, truth, sets, Py_ssize_t begin, Py_ssize_t end, *, int max_distance, Py_ssize_t most_differing
):
    cdef Pairs pairs = Pairs(prints, truth, begin, end)
    cdef Sets its_sets = Sets(sets, pairs.values.shape[0])
    cdef Rule rule = Rule(max_distance=max_distance, most_differing=most_differing)
    alike, others = np.empty(end - begin), np.empty(end - begin, dtype=np.int64)
    cdef double[::1] resemblances = alike
    cdef int64_t[::1] numbers = others
    cdef Wrong found
    cdef Py_ssize_t page
    with nogil:
        for page in range(begin, end):
            pairs.mark(page)
            found = worst(pairs, its_sets, rule, page)
            pairs.unmark(page)
            resemblances[page - begin], numbers[page - begin] = found.alike, found.other
    return alike, others


cdef Wrong worst(Pairs pairs, Sets sets, Rule rule, Py_ssize_t page) noexcept nogil:
    """Of the pages before a page with which it is reported and not right, the least alike."""
    cdef Wrong found = Wrong(alike=NONE, other=-1)
    cdef const uint64_t* values = &pairs.values[0]
    cdef Py_ssize_t other = next_near64(values, 0, page, values[page], rule.max_distance)
    cdef double alike
    while other < page:
        if not pairs.marks[other] & RIGHT and pairs.differing(page, other) <= rule.most_differing:
            alike = sets.resemblance(page, other)
            if alike < found.alike:
                found = Wrong(alike=alike, other=other)
        other = next_near64(values, other + 1, page, values[page], rule.max_distance)
    return found
