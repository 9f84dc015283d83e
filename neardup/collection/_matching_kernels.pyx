"""The hot loops of batch mode; see matching_kernels.py."""

import numpy as np

cimport cython
from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from neardup.collection._growing cimport Growing, copy_to, grown
from neardup.fingerprint._bits cimport choose_instructions, next_near64, popcount, prefetch
from neardup.index.psm._flips cimport MOST_DISTANCE, Flips, Wanted, write_flips

from neardup.fingerprint import simhash


choose_instructions()

cdef double WEIGHT_STEP = simhash.WEIGHT_STEP
cdef int WEAK_BITS = simhash.WEAK_BITS_STORED

cdef enum:
    MOST_EARLIER = 16

cdef Py_ssize_t FETCHED = 32
"""Probes of a query whose fingerprints are fetched ahead; later ones are rarely reached when the first match
ends it."""


# The flips of queries.


def plan_queries(
    const uint8_t[:, ::1] weak_bits,
    const int64_t[::1] bits,
    int prefix_bits,
    int max_distance,
    double recall,
    Py_ssize_t most,
):
    check_weak_bits(weak_bits)
    check_bits(bits)
    if bits.shape[0] != 64 or not 1 <= prefix_bits <= MOST_BITS:
        raise ValueError(f"64 bits, 1 to {MOST_BITS} of them prefix, not {bits.shape[0]} and {prefix_bits}")
    if not 0 <= max_distance <= MOST_DISTANCE or most < 1:
        raise ValueError(f"max_distance 0 to {MOST_DISTANCE}, a flip or more, not {max_distance} and {most}")
    all_starts = np.zeros(weak_bits.shape[0] + 1, dtype=np.int64)
    cdef int64_t[::1] starts = all_starts
    cdef uint64_t[::1] masks = np.empty(most, dtype=np.uint64)
    cdef double[::1] chances = np.empty(most)
    cdef Flips flips = Flips(&masks[0], &chances[0], most, 0)
    cdef Wanted wanted = Wanted(prefix_bits, max_distance, recall)
    cdef Growing planned = Growing(NULL, 0, 0)
    try:
        with nogil:
            plan_all(weak_bits, bits, wanted, &flips, starts, &planned)
        made = np.empty(planned.count, dtype=np.uint32)
        copy_to(&planned, made)
    finally:
        free(planned.numbers)
    return all_starts, made


cdef check_weak_bits(const uint8_t[:, ::1] weak_bits):
    cdef Py_ssize_t i
    cdef int j
    cdef uint8_t largest = 0
    if weak_bits.shape[1] != 2 * WEAK_BITS:
        raise ValueError(f"weak bits have {2 * WEAK_BITS} bytes, not {weak_bits.shape[1]}")
    for i in range(weak_bits.shape[0]):
        for j in range(WEAK_BITS):
            largest = max(largest, weak_bits[i, j])
    if largest > 63:
        raise ValueError(f"weak bits name bit {largest} of a 64-bit fingerprint")


cdef check_bits(const int64_t[::1] bits):
    cdef Py_ssize_t i
    for i in range(bits.shape[0]):
        if not 0 <= bits[i] < 64:
            raise ValueError(f"bits are 0 to 63, not {bits[i]}")


cdef int plan_all(
    const uint8_t[:, ::1] weak_bits,
    const int64_t[::1] bits,
    Wanted wanted,
    Flips *flips,
    int64_t[::1] starts,
    Growing *planned,
) except -1 nogil:
    cdef double[64] weights
    cdef double[64] arranged
    cdef uint32_t *to
    cdef Py_ssize_t i, j
    for i in range(weak_bits.shape[0]):
        unpack_weights(&weak_bits[i, 0], weights)
        for j in range(64):
            arranged[j] = weights[bits[j]]
        write_flips(arranged, wanted, flips)
        to = grown(planned, flips.count)
        for j in range(flips.count):
            to[j] = <uint32_t>(flips.masks[j] >> (64 - wanted.prefix_bits))
        starts[i + 1] = planned.count
    return 0


cdef void unpack_weights(const uint8_t *weak_bits, double *weights) noexcept nogil:
    """Magnitudes of 64 bit weights, of packed weak bits, as ``Fingerprint.unpack`` has them."""
    cdef double stored, strong, rest = 1.0
    cdef int i
    for i in range(WEAK_BITS):
        stored = weak_bits[WEAK_BITS + i] * WEIGHT_STEP
        rest -= stored * stored
    strong = sqrt(max(0.0, rest) / (64 - WEAK_BITS))
    for i in range(64):
        weights[i] = strong
    for i in range(WEAK_BITS):
        weights[weak_bits[i]] = weak_bits[WEAK_BITS + i] * WEIGHT_STEP


# Chosen bits.


def choose_bits(const uint64_t[::1] sample, uint64_t allowed, int number):
    if not 1 <= number <= popcount(allowed):
        raise ValueError(f"1 to {popcount(allowed)} bits can be chosen, not {number}")
    made = np.empty(number, dtype=np.int64)
    cdef int64_t[::1] chosen = made
    with nogil:
        choose(&sample[0] if sample.shape[0] else NULL, sample.shape[0], allowed, &chosen[0], number)
    return made


# A sample in groups, one behind the other. Groups that no bit divides any more are dropped.
cdef struct Sample:
    uint64_t *values
    Py_ssize_t *ends
    Py_ssize_t *new_ends
    Py_ssize_t groups


cdef int choose(
    const uint64_t *values, Py_ssize_t size, uint64_t allowed, int64_t *chosen, Py_ssize_t number
) except -1 nogil:
    cdef Py_ssize_t[64] imbalance
    cdef Sample sample
    cdef Py_ssize_t twice
    cdef int step
    sample.values = <uint64_t *>malloc((size + 1) * sizeof(uint64_t))
    sample.ends = <Py_ssize_t *>malloc((size + 1) * sizeof(Py_ssize_t))
    sample.new_ends = <Py_ssize_t *>malloc((size + 1) * sizeof(Py_ssize_t))
    try:
        if not (sample.values and sample.ends and sample.new_ends):
            with gil:
                raise MemoryError(f"no memory for a sample of {size}")
        if size:
            memcpy(sample.values, values, size * sizeof(uint64_t))
        sample.ends[0] = size
        sample.groups = 1
        for step in range(64):
            twice = 2 * ones(values, 0, size, step)
            imbalance[step] = max(twice - size, size - twice)
        for step in range(number):
            chosen[step] = best_bit(&sample, allowed, imbalance)
            allowed &= ~(<uint64_t>1 << (63 - chosen[step]))
            divide_sample(&sample, 63 - chosen[step], allowed)
    finally:
        free(sample.values)
        free(sample.ends)
        free(sample.new_ends)
    return 0


cdef Py_ssize_t ones(const uint64_t *values, Py_ssize_t first, Py_ssize_t end, int bit) noexcept nogil:
    """How many have a one at a position, counted from the most significant bit."""
    cdef uint64_t count = 0
    cdef Py_ssize_t i
    for i in range(first, end):
        count += values[i] >> (63 - bit) & 1
    return count


cdef int best_bit(const Sample *sample, uint64_t allowed, const Py_ssize_t *imbalance) noexcept nogil:
    """The allowed bit that leaves the fewest pairs together, of such bits the most balanced one."""
    cdef uint64_t together, fewest = 0
    cdef Py_ssize_t first, end, count, group
    cdef int bit, best = -1
    for bit in range(64):
        if not allowed >> (63 - bit) & 1:
            continue
        first = together = 0
        for group in range(sample.groups):
            end = sample.ends[group]
            count = ones(sample.values, first, end, bit)
            together += count * count + (end - first - count) * (end - first - count)
            first = end
        if best < 0 or together < fewest or (together == fewest and imbalance[bit] < imbalance[best]):
            best, fewest = bit, together
    return best


cdef void divide_sample(Sample *sample, int shift, uint64_t allowed) noexcept nogil:
    """Divide every group by a bit; keep what bits that are still allowed can divide."""
    cdef uint64_t *values = sample.values
    cdef Py_ssize_t first = 0, kept = 0, groups = 0
    cdef Py_ssize_t low, high, group
    for group in range(sample.groups):
        low, high = first, sample.ends[group]
        while low < high:
            if values[low] >> shift & 1:
                high -= 1
                values[low], values[high] = values[high], values[low]
            else:
                low += 1
        keep_group(sample, first, low, allowed, &kept, &groups)
        keep_group(sample, low, sample.ends[group], allowed, &kept, &groups)
        first = sample.ends[group]
    sample.ends, sample.new_ends = sample.new_ends, sample.ends
    sample.groups = groups


cdef inline void keep_group(
    Sample *sample, Py_ssize_t first, Py_ssize_t end, uint64_t allowed, Py_ssize_t *kept, Py_ssize_t *groups
) noexcept nogil:
    cdef uint64_t differing = 0
    cdef Py_ssize_t i
    for i in range(first + 1, end):
        differing |= sample.values[i] ^ sample.values[first]
    if differing & allowed == 0:
        return
    for i in range(first, end):
        sample.values[kept[0]] = sample.values[i]
        kept[0] += 1
    sample.new_ends[groups[0]] = kept[0]
    groups[0] += 1


# Prefixes.


def prefixes_of(const uint64_t[::1] values, const int64_t[::1] bits):
    cdef Spread spread
    cdef Py_ssize_t i
    check_prefix(bits)
    made = np.empty(values.shape[0], dtype=np.uint32)
    cdef uint32_t[::1] prefixes = made
    with nogil:
        spread_bits(&bits[0] if bits.shape[0] else NULL, bits.shape[0], &spread)
        for i in range(values.shape[0]):
            prefixes[i] = prefix_of(&spread, values[i])
    return made


cdef check_prefix(const int64_t[::1] bits):
    check_bits(bits)
    if bits.shape[0] > MOST_BITS:
        raise ValueError(f"a prefix has at most {MOST_BITS} bits, not {bits.shape[0]}")


cdef void spread_bits(const int64_t *bits, Py_ssize_t count, Spread *spread) noexcept nogil:
    cdef Py_ssize_t i
    cdef int byte, bit
    memset(spread, 0, sizeof(Spread))
    spread.bits = <int>count
    for i in range(count):
        bit = 63 - <int>bits[i]
        for byte in range(256):
            if byte >> (bit & 7) & 1:
                spread.parts[bit >> 3][byte] |= <uint32_t>1 << (count - 1 - i)


cdef void sort_by_prefix(
    Rows given, const Spread *spread, uint32_t *offsets, uint64_t *values, uint32_t *rows
) noexcept nogil:
    cdef Py_ssize_t prefixes = <Py_ssize_t>1 << spread.bits
    cdef Py_ssize_t i
    cdef uint32_t total = 0
    cdef uint32_t *offset
    memset(offsets, 0, (prefixes + 1) * sizeof(uint32_t))
    for i in range(given.count):
        offsets[prefix_of(spread, given.values[i])] += 1
    for i in range(prefixes):
        total += offsets[i]
        offsets[i] = total
    offsets[prefixes] = total
    # From the back: what was the end of a prefix becomes its beginning, and the order stays.
    for i in range(given.count - 1, -1, -1):
        offset = &offsets[prefix_of(spread, given.values[i])]
        offset[0] -= 1
        values[offset[0]] = given.values[i]
        rows[offset[0]] = given.rows[i] if given.rows else <uint32_t>i


# Tables.


cdef struct Probing:
    int max_distance
    bint only_first
    Growing *found


@cython.final
cdef class Table:
    cdef const uint64_t[::1] chunk
    cdef uint32_t[::1] rows
    cdef uint32_t[::1] offsets
    cdef Spread spread
    cdef uint64_t[MOST_EARLIER] masks
    cdef int[MOST_EARLIER] radii
    cdef int earlier

    def __cinit__(self, const uint64_t[::1] values, const int64_t[::1] bits, earlier=()):
        check_prefix(bits)
        if values.shape[0] >= 1 << 32:
            raise ValueError(f"a table has at most 2^32 - 1 rows, not {values.shape[0]}")
        if len(earlier) > MOST_EARLIER:
            raise ValueError(f"at most {MOST_EARLIER} tables come before, not {len(earlier)}")
        for mask, radius in earlier:
            self.masks[self.earlier], self.radii[self.earlier] = mask, radius
            self.earlier += 1
        spread_bits(&bits[0] if bits.shape[0] else NULL, bits.shape[0], &self.spread)
        self.offsets = np.empty((1 << bits.shape[0]) + 1, dtype=np.uint32)
        if bits.shape[0] == 0:
            self.chunk, self.rows = values, np.empty(0, dtype=np.uint32)
            self.offsets[0], self.offsets[1] = 0, <uint32_t>values.shape[0]
        else:
            self.group(values)

    cdef group(self, const uint64_t[::1] values):
        cdef uint64_t[::1] chunk = np.empty(values.shape[0], dtype=np.uint64)
        self.rows = np.empty(values.shape[0], dtype=np.uint32)
        self.chunk = chunk
        if values.shape[0] == 0:
            self.offsets[:] = 0
            return
        cdef Rows given = Rows(&values[0], NULL, values.shape[0])
        with nogil:
            sort_by_prefix(given, &self.spread, &self.offsets[0], &chunk[0], &self.rows[0])

    def __len__(self):
        return self.chunk.shape[0]

    def probe(
        self, const uint64_t[::1] queries, const int64_t[::1] which, flips, int max_distance, bint only_first
    ):
        cdef const int64_t[::1] starts = flips[0]
        cdef const uint32_t[::1] masks = flips[1]
        self.check(queries, which, starts, masks)
        cdef Growing found = Growing(NULL, 0, 0)
        cdef Probing probing = Probing(max_distance, only_first, &found)
        try:
            with nogil:
                self.probe_all(queries, which, starts, masks, probing)
            made = np.empty(found.count, dtype=np.uint32)
            copy_to(&found, made)
        finally:
            free(found.numbers)
        return made.reshape(-1, 3)

    cdef check(
        self,
        const uint64_t[::1] queries,
        const int64_t[::1] which,
        const int64_t[::1] starts,
        const uint32_t[::1] masks,
    ):
        cdef uint32_t together = 0
        cdef bint good = True
        cdef Py_ssize_t i
        for i in range(which.shape[0]):
            good &= 0 <= which[i] < queries.shape[0]
        if not good:
            raise ValueError(f"which must be numbers of {queries.shape[0]} queries")
        for i in range(starts.shape[0] - 1):
            good &= 0 <= starts[i] <= starts[i + 1] <= masks.shape[0]
        if not good or starts.shape[0] not in {2, queries.shape[0] + 1}:
            raise ValueError(
                f"{starts.shape[0]} starts of {masks.shape[0]} flips, {queries.shape[0]} queries"
            )
        for i in range(masks.shape[0]):
            together |= masks[i]
        if together >= self.offsets.shape[0] - 1:
            raise ValueError("a bit to flip is not in the prefix")

    cdef int probe_all(
        self,
        const uint64_t[::1] queries,
        const int64_t[::1] which,
        const int64_t[::1] starts,
        const uint32_t[::1] masks,
        Probing probing,
    ) except -1 nogil:
        cdef bint shared = starts.shape[0] == 2
        cdef Py_ssize_t place, j, run, first, last
        cdef uint32_t prefix, query
        if self.chunk.shape[0] == 0:
            return 0
        for place in range(which.shape[0]):
            query = <uint32_t>which[place]
            prefix = prefix_of(&self.spread, queries[query])
            run = 0 if shared else query
            first, last = starts[run], starts[run + 1]
            for j in range(first, min(last, first + FETCHED)):
                prefetch(&self.chunk[0] + self.offsets[prefix ^ masks[j]])
            for j in range(first, last):
                if self.compare(prefix ^ masks[j], query, queries[query], probing) and probing.only_first:
                    break
        return 0

    cdef int compare(
        self, uint32_t prefix, uint32_t query, uint64_t value, Probing probing
    ) except -1 nogil:
        """Write down the matches under a prefix; returns whether there are any."""
        cdef const uint64_t *chunk = &self.chunk[0]
        cdef Py_ssize_t at = self.offsets[prefix]
        cdef Py_ssize_t end = self.offsets[prefix + 1]
        cdef uint64_t differing
        cdef uint32_t *to
        cdef bint any_found = False
        while True:
            at = next_near64(chunk, at, end, value, probing.max_distance)
            if at == end:
                return any_found
            differing = chunk[at] ^ value
            if not self.met(differing):
                to = grown(probing.found, 3)
                to[0], to[2] = query, popcount(differing)
                to[1] = self.rows[at] if self.rows.shape[0] else <uint32_t>at
                any_found = True
                if probing.only_first:
                    return any_found
            at += 1

    cdef bint met(self, uint64_t differing) noexcept nogil:
        """Whether an earlier table has found one that differs so."""
        cdef int i
        for i in range(self.earlier):
            if popcount(differing & self.masks[i]) <= self.radii[i]:
                return True
        return False
