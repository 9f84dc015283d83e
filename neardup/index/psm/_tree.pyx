"""The tree of prefixes of the PSM index, and the search in it; see tree.py and walk.py, which are its twins."""

import numpy as np

from neardup.index.base import ANY_NUMBER, Match as PythonMatch, ProbeStats, check_max_distance, check_rows

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer
from cpython.number cimport PyNumber_Index
from libc.math cimport exp
from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from neardup.fingerprint._bits cimport (
    choose_instructions, next_near32, popcount, prefetch, reaching, trailing_zeros
)
from neardup.index.psm._flips cimport flip_odds

choose_instructions()


cdef enum:
    STEP = 3  # bits a level
    CHILDREN = 8
    DEEPEST = 21
    LEVELS = 22
    COPIES_FROM = 8
    LOOKS = 16
    MOST_DISTANCE = 16
    PAD = 3
    BUCKETS = 64
    ROOM = 4096
    MOST_BRANCHES = ROOM + CHILDREN * LEVELS
    GATHERED = 6  # leaves that are asked for before the first of them is compared with
    UPPER_BITS = 32
    FEW = 64  # fewer at once are added one after the other
    AT_ONCE = 1 << 20
    LEAST_ROOM = 8  # fingerprints
    NODE = 128  # bytes, two cache lines
    NODES = 511  # of a block
    BYTES = 12  # of a fingerprint
    FETCHED = 16  # cache lines of a leaf that are asked for; the processor foresees those behind
    A_SLICE = 1 << 15

cdef uint64_t UPPER = 0xFFFFFFFF00000000
cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15
cdef uint32_t[8] LIMITS = [160, 208, 270, 350, 454, 588, 763, 988]
cdef int[8] FLIPPED = [0, 1, 1, 2, 1, 2, 2, 3]


cdef double LOWER = 1.0 / 64.0
cdef double FIRST_FLOOR = 0.005
cdef double LEARNING_STEP = 0.02
cdef double FARTHEST = -50.0
cdef double MARGIN = 0.05
cdef double MOST_SAVED = 1.0
cdef double NEGLIGIBLE = 1e-12
cdef double LEAST = 1e-290
cdef double INFINITY = float("inf")


cdef struct Below:
    # What stands below a prefix: a leaf, or a node, which has count 1 and room 0. With the count beside the
    # address, ``add`` does not wait for the leaf's memory.
    void *held  # eight children; of a leaf the lower halves of ``room`` fingerprints, then upper halves and rows
    uint32_t count
    uint32_t room

cdef struct Block:
    # Followed by nodes, at addresses that NODE divides. Among the leaves each node would be in a page of
    # memory of its own.
    Block *before

cdef struct Tree:
    Below root
    Block *block  # the newest one
    int left  # nodes that this block has room for
    Py_ssize_t size

cdef struct Found:
    uint64_t row
    uint64_t value
    uint64_t distance

cdef struct Branch:
    Below below
    double weight  # of a leaf its probability, of a node the product of the odds of the bits flipped so far
    int level
    int budget  # bits left to flip
    int next  # of the bucket, or the next one that is free

cdef struct Queue:
    # Branches that wait, in buckets by their probability: four to a factor of two, the last for all below.
    int[BUCKETS] first
    int free, used, waiting
    uint64_t filled  # which buckets are not empty, one bit each
    int top  # exponent of bucket 0
    Branch[MOST_BRANCHES] branches

cdef struct Costs:
    int64_t queries, probes, empty_probes, candidates

cdef struct Search:
    # A query, what is learned from the queries before, and room to work in: one for each thread.
    uint64_t value
    int max_distance
    double recall
    Py_ssize_t most
    double threshold, saved
    Costs costs
    Found *found
    Py_ssize_t start, count, room  # of the matches: the first of this query, all, and how many there is room for
    bint no_memory
    double[64] odds
    double[LEVELS + 1][PAD + MOST_DISTANCE + 1] behind
    double[LEVELS][CHILDREN] patterns
    double[LEVELS][MOST_DISTANCE + 1][CHILDREN] chances
    int ready  # levels whose chances are there
    Queue queue
    const Below *own  # the leaf of the query's own prefix

cdef struct Run:
    # Fingerprints to be added, with their rows.
    uint64_t *values
    uint32_t *rows


cdef inline bint is_node(Below below) noexcept nogil:
    return below.count > below.room


cdef inline Below *children_of(Below node) noexcept nogil:
    return <Below *>node.held


cdef inline uint32_t *lows_of(Below leaf) noexcept nogil:
    return <uint32_t *>leaf.held


cdef inline uint64_t *rests_of(Below leaf) noexcept nogil:
    return <uint64_t *>(lows_of(leaf) + leaf.room)


cdef inline uint64_t value_at(Below leaf, Py_ssize_t place) noexcept nogil:
    return (rests_of(leaf)[place] & UPPER) | lows_of(leaf)[place]


cdef inline uint32_t row_at(Below leaf, Py_ssize_t place) noexcept nogil:
    return <uint32_t>rests_of(leaf)[place]


cdef inline void put(Below leaf, Py_ssize_t place, uint64_t value, uint32_t row) noexcept nogil:
    lows_of(leaf)[place] = <uint32_t>value
    rests_of(leaf)[place] = (value & UPPER) | row


cdef inline int child_of(uint64_t value, int level) noexcept nogil:
    """The bits of a fingerprint that choose a child at a level; of the deepest one is left."""
    return <int>((value >> (64 - STEP - STEP * level)) & (CHILDREN - 1))


cdef inline uint32_t limit_of(uint64_t value, int level) noexcept nogil:
    cdef uint64_t prefix = value >> (64 - STEP * level) if level else 0
    return LIMITS[(prefix * GOLDEN) >> 61]


cdef inline uint32_t room_for(uint32_t count) noexcept nogil:
    """Fingerprints that a leaf of so many gets memory for: at most an eighth, or seven, more."""
    cdef uint32_t step = LEAST_ROOM
    while step * 16 < count:
        step *= 2
    return (count + step - 1) // step * step


cdef int resize(Below *leaf, uint32_t room) noexcept nogil:
    """Give a leaf room for so many; -1, and nothing has changed, if there is no memory."""
    cdef Below larger = Below(NULL, leaf.count, room)
    if room:
        larger.held = malloc(<size_t>room * BYTES)
        if larger.held == NULL:
            return -1
        if leaf.count:
            memcpy(lows_of(larger), lows_of(leaf[0]), leaf.count * sizeof(uint32_t))
            memcpy(rests_of(larger), rests_of(leaf[0]), leaf.count * sizeof(uint64_t))
    free(leaf.held)
    leaf[0] = larger
    return 0


cdef void release(Below below) noexcept nogil:
    cdef int child
    if is_node(below):
        for child in range(CHILDREN):
            release(children_of(below)[child])
    else:
        free(below.held)


cdef Below *new_node(Tree *tree) noexcept nogil:
    """Room for eight children; NULL: there is no memory."""
    cdef Block *block
    cdef uintptr_t end
    if tree.left == 0:
        block = <Block *>malloc(sizeof(Block) + <size_t>NODE * (NODES + 1))
        if block == NULL:
            return NULL
        block.before, tree.block, tree.left = tree.block, block, NODES
    end = (<uintptr_t>(tree.block + 1) + NODE * (NODES + 1)) // NODE * NODE
    tree.left -= 1
    return <Below *>(end - <uintptr_t>NODE * (tree.left + 1))


cdef bint is_full(Below leaf, uint64_t value, int level) noexcept nogil:
    cdef uint64_t candidate = 0, other
    cdef int look, votes = 0, equal = 0
    if leaf.count < limit_of(value, level) or level == DEEPEST:
        return False
    if level < COPIES_FROM:
        return True
    for look in range(LOOKS):
        other = value_at(leaf, <Py_ssize_t>look * leaf.count // LOOKS)
        if votes == 0:
            candidate = other
        votes += 1 if other == candidate else -1
    for look in range(LOOKS):
        equal += value_at(leaf, <Py_ssize_t>look * leaf.count // LOOKS) == candidate
    return equal * 2 < LOOKS


cdef int divide(Tree *tree, Below *below, int level) noexcept nogil:
    """Turn a leaf into a node; -1, and nothing has changed, if there is no memory."""
    cdef Below leaf = below[0]
    cdef Below[CHILDREN] parts
    cdef Below *part
    cdef Below *children
    cdef Py_ssize_t place, child
    for child in range(CHILDREN):
        parts[child] = Below(NULL, 0, 0)
    for place in range(leaf.count):
        parts[child_of(value_at(leaf, place), level)].room += 1
    children = NULL
    for child in range(CHILDREN):
        if resize(&parts[child], room_for(parts[child].room)) < 0:
            break
    else:
        children = new_node(tree)
    if children == NULL:
        for child in range(CHILDREN):
            free(parts[child].held)
        return -1
    for place in range(leaf.count):
        part = &parts[child_of(value_at(leaf, place), level)]
        lows_of(part[0])[part.count] = lows_of(leaf)[place]
        rests_of(part[0])[part.count] = rests_of(leaf)[place]
        part.count += 1
    memcpy(children, parts, sizeof(parts))
    free(leaf.held)
    below[0] = Below(children, 1, 0)
    return 0


cdef class PrefixTree:
    cdef Tree tree
    cdef Search *search

    def __cinit__(self):
        self.search = <Search *>calloc(1, sizeof(Search))
        if self.search == NULL:
            raise MemoryError

    def __init__(self, *, max_distance, recall):
        self.search.max_distance = check_max_distance(max_distance)
        self.search.recall = recall

    def __dealloc__(self):
        cdef Block *block = self.tree.block
        cdef Block *before
        release(self.tree.root)
        while block != NULL:
            before = block.before
            free(block)
            block = before
        if self.search != NULL:
            free(self.search.found)
            free(self.search)

    @property
    def max_distance(self):
        return self.search.max_distance

    @property
    def recall(self):
        return self.search.recall

    @property
    def learned(self):
        return self.search.threshold, self.search.saved

    @learned.setter
    def learned(self, learned):
        self.search.threshold, self.search.saved = learned

    @property
    def stats(self):
        cdef Costs costs = self.search.costs
        return ProbeStats(costs.queries, costs.probes, costs.empty_probes, costs.candidates)

    @property
    def nbytes(self):
        return memory_of(self.tree.root)

    def __len__(self):
        return self.tree.size

    def __contains__(self, value):
        cdef uint64_t wanted = PyNumber_Index(value)
        return locate(leaf_of(&self.tree.root, wanted, NULL)[0], wanted, -1) >= 0

    def add(self, value, row):
        # PyNumber_Index: Cython by itself would cut a float off.
        cdef uint64_t fingerprint = PyNumber_Index(value)
        cdef int64_t number = PyNumber_Index(row)
        if not 0 <= number <= 0xFFFFFFFF:
            check_rows(row, row)
        if add_below(&self.tree, &self.tree.root, 0, fingerprint, <uint32_t>number) < 0:
            raise MemoryError

    def add_many(self, const uint64_t[::1] values, const uint32_t[::1] rows):
        cdef Py_ssize_t start = 0, size, most = min(values.shape[0], <Py_ssize_t>AT_ONCE)
        cdef Run run, other
        cdef int failed = 0
        if rows.shape[0] != values.shape[0]:
            raise ValueError(f"{values.shape[0]} values take as many rows, not {rows.shape[0]}")
        cdef char *memory = <char *>malloc(max(1, most * 24))
        if memory == NULL:
            raise MemoryError
        run = Run(<uint64_t *>memory, <uint32_t *>(memory + 16 * most))
        other = Run(<uint64_t *>(memory + 8 * most), <uint32_t *>(memory + 20 * most))
        # Not without the interpreter's lock: nearest_from may be called by another thread.
        while start < values.shape[0] and not failed:
            size = min(values.shape[0] - start, <Py_ssize_t>AT_ONCE)
            memcpy(run.values, &values[start], size * sizeof(uint64_t))
            memcpy(run.rows, &rows[start], size * sizeof(uint32_t))
            failed = add_run(&self.tree, &self.tree.root, 0, run, other, size)
            start += size
        free(memory)
        if failed:
            raise MemoryError

    def remove(self, value, row):
        cdef uint64_t fingerprint = PyNumber_Index(value)
        cdef int64_t number = PyNumber_Index(row)
        cdef Below *leaf = leaf_of(&self.tree.root, fingerprint, NULL)
        cdef Py_ssize_t place = locate(leaf[0], fingerprint, number) if number >= 0 else -1
        cdef uint32_t room
        if place < 0:
            return False
        leaf.count -= 1
        put(leaf[0], place, value_at(leaf[0], leaf.count), row_at(leaf[0], leaf.count))
        room = room_for(leaf.count + LEAST_ROOM) if leaf.count else 0
        if room < leaf.room:
            resize(leaf, room)  # without memory it stays as large as it is
        self.tree.size -= 1
        return True

    def find_first(self, query):
        cdef Search *search = self.search
        self.look_for(query, 1)
        if search.count == 0:
            return None
        return tuple.__new__(
            PythonMatch, (search.found[0].row, search.found[0].value, search.found[0].distance)
        )

    def match_table(self, query, most=ANY_NUMBER):
        cdef Search *search = self.search
        self.look_for(query, most)
        table = np.empty((search.count, 3), dtype=np.uint64)
        cdef uint64_t[:, ::1] matches = table
        if search.count:
            memcpy(&matches[0, 0], search.found, search.count * sizeof(Found))
        return table

    cdef look_for(self, query, Py_ssize_t most):
        cdef Py_buffer weights
        cdef Search *search = self.search
        search.value = PyNumber_Index(query.value)
        search.most = most
        search.count, search.no_memory = 0, False
        PyObject_GetBuffer(query.weights, &weights, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)
        try:
            if weights.len != 64 * sizeof(double) or weights.format[0] != b"d":
                raise ValueError("the weights of a query must be 64 float64")
            run_search(&self.tree.root, search, <const double *>weights.buf)
        finally:
            PyBuffer_Release(&weights)
        if search.no_memory:
            raise MemoryError

    def match_block(
        self, const uint64_t[::1] values, const double[:, ::1] weights, Py_ssize_t most, double threshold
    ):
        cdef Py_ssize_t query, queries = values.shape[0]
        cdef Search *search
        cdef uint64_t[:, ::1] matches
        if weights.shape[0] != queries or weights.shape[1] != 64:
            raise ValueError(f"{queries} queries have weights of shape ({queries}, 64)")
        ends = np.zeros(queries, dtype=np.int64)
        cdef int64_t[::1] end_of = ends
        search = <Search *>calloc(1, sizeof(Search))
        if search == NULL:
            raise MemoryError
        try:
            search.max_distance, search.recall = self.search.max_distance, self.search.recall
            search.most, search.threshold = most, threshold
            with nogil:
                for query in range(queries):
                    search.value = values[query]
                    search.start = search.count
                    run_search(&self.tree.root, search, &weights[query, 0])
                    end_of[query] = search.count
            if search.no_memory:
                raise MemoryError
            table = np.empty((search.count, 4), dtype=np.uint64)
            table[:, 0] = np.repeat(np.arange(queries), np.diff(ends, prepend=0))
            if search.count:
                matches = <uint64_t[:search.count, :3]><uint64_t *>search.found
                table[:, 1:] = matches
            costs = search.costs
            return (
                table,
                np.array([costs.queries, costs.probes, costs.empty_probes, costs.candidates]),
                search.threshold,
            )
        finally:
            free(search.found)
            free(search)

    def count_costs(self, costs):
        cdef Costs *sums = &self.search.costs
        queries, probes, empty_probes, candidates = costs
        sums.queries += queries
        sums.probes += probes
        sums.empty_probes += empty_probes
        sums.candidates += candidates

    def nearest_from(self, uint64_t cursor, uint64_t value, int64_t rows, int64_t but):
        cdef Below leaf
        cdef int level, smallest = 65, distance
        cdef Py_ssize_t place, met = 0
        cdef int64_t row
        while met < A_SLICE:
            leaf = leaf_of(&self.tree.root, cursor, &level)[0]
            for place in range(leaf.count):
                distance = popcount(value_at(leaf, place) ^ value)
                if distance < smallest:
                    row = row_at(leaf, place)
                    if row < rows and row != but:
                        smallest = distance
            met += leaf.count + 1
            cursor = behind_leaf(cursor, level)
            if cursor == 0:
                return smallest, None
        return smallest, cursor

    def contents(self):
        values, rows = np.empty(self.tree.size, dtype=np.uint64), np.empty(self.tree.size, dtype=np.uint32)
        cdef Run run
        cdef uint64_t[::1] all_values = values
        cdef uint32_t[::1] all_rows = rows
        if self.tree.size:
            run = Run(&all_values[0], &all_rows[0])
            copy_out(self.tree.root, &run)
        return values, rows


cdef uint64_t behind_leaf(uint64_t cursor, int level) noexcept nogil:
    """The first fingerprint behind those of a leaf; 0 behind the last."""
    cdef int shift = 64 - STEP * level
    return ((cursor >> shift) + 1) << shift if level else 0


cdef size_t memory_of(Below below) noexcept nogil:
    cdef size_t nbytes = sizeof(Below)
    cdef int child
    if not is_node(below):
        return nbytes + <size_t>below.room * BYTES
    for child in range(CHILDREN):
        nbytes += memory_of(children_of(below)[child])
    return nbytes


cdef void copy_out(Below below, Run *to) noexcept nogil:
    """Write down what is below a prefix, and move on."""
    cdef Py_ssize_t place
    if is_node(below):
        for place in range(CHILDREN):
            copy_out(children_of(below)[place], to)
        return
    for place in range(below.count):
        to.values[place] = value_at(below, place)
        to.rows[place] = row_at(below, place)
    to.values += below.count
    to.rows += below.count


cdef Below *leaf_of(Below *below, uint64_t value, int *level) noexcept nogil:
    """The leaf of a fingerprint and, if asked for, its level."""
    cdef int at = 0
    while is_node(below[0]):
        below = children_of(below[0]) + child_of(value, at)
        at += 1
    if level != NULL:
        level[0] = at
    return below


cdef Py_ssize_t locate(Below leaf, uint64_t value, int64_t row) noexcept nogil:
    """Place of a fingerprint in its leaf, or -1; row -1: under any."""
    cdef Py_ssize_t place = next_near32(lows_of(leaf), 0, leaf.count, <uint32_t>value, 0)
    while place < leaf.count:
        if value_at(leaf, place) == value and (row < 0 or row_at(leaf, place) == row):
            return place
        place = next_near32(lows_of(leaf), place + 1, leaf.count, <uint32_t>value, 0)
    return -1


cdef int add_below(Tree *tree, Below *below, int level, uint64_t value, uint32_t row) noexcept nogil:
    """Add to the leaf of a fingerprint below a prefix of it; -1, and nothing is added, without memory."""
    while is_node(below[0]) or is_full(below[0], value, level):
        if not is_node(below[0]) and divide(tree, below, level) < 0:
            return -1
        below = children_of(below[0]) + child_of(value, level)
        level += 1
    if below.count == below.room and resize(below, room_for(below.count + 1)) < 0:
        return -1
    put(below[0], below.count, value, row)
    below.count += 1
    tree.size += 1
    return 0


cdef int add_run(Tree *tree, Below *below, int level, Run run, Run other, Py_ssize_t count) noexcept nogil:
    """Add many that belong below a prefix, part by part as the tree divides them; ``other`` is room for as
    many.

    What is added, and where, is as if they were added one after the other. -1: there was no memory for some.
    """
    cdef Py_ssize_t place, together
    cdef uint64_t value = run.values[0]
    if not is_node(below[0]):
        together = below.count + count
        if level == DEEPEST or together <= limit_of(value, level):
            if together > below.room and resize(below, room_for(<uint32_t>together)) < 0:
                return -1
            for place in range(count):
                put(below[0], below.count + place, run.values[place], run.rows[place])
            below.count = <uint32_t>together
            tree.size += count
            return 0
        if level < COPIES_FROM and divide(tree, below, level) < 0:
            return -1
    if is_node(below[0]) and count > FEW:
        return add_to_children(tree, children_of(below[0]), level, run, other, count)
    for place in range(count):
        if add_below(tree, below, level, run.values[place], run.rows[place]) < 0:
            return -1
    return 0


cdef int add_to_children(
    Tree *tree, Below *children, int level, Run run, Run other, Py_ssize_t count
) noexcept nogil:
    cdef Py_ssize_t[CHILDREN + 1] starts
    cdef Py_ssize_t[CHILDREN] ends
    cdef Py_ssize_t place, to
    cdef int child
    for child in range(CHILDREN + 1):
        starts[child] = 0
    for place in range(count):
        starts[child_of(run.values[place], level) + 1] += 1
    for child in range(CHILDREN):
        starts[child + 1] += starts[child]
        ends[child] = starts[child]
    for place in range(count):
        child = child_of(run.values[place], level)
        to = ends[child]
        ends[child] = to + 1
        other.values[to] = run.values[place]
        other.rows[to] = run.rows[place]
    for child in range(CHILDREN):
        to = starts[child]
        if ends[child] > to and add_run(
            tree, children + child, level + 1,
            Run(other.values + to, other.rows + to), Run(run.values + to, run.rows + to), ends[child] - to,
        ) < 0:
            return -1
    return 0


cdef void run_search(Below *root, Search *search, const double *weights) noexcept nogil:
    """Find matches of ``search.value``; twin: :func:`neardup.index.psm.walk.search`."""
    cdef int level
    search.own = leaf_of(root, search.value, &level)
    search.costs.queries += 1
    if search.max_distance and level:
        fetch_leaf(search.own[0])
        flip_odds(weights, search.max_distance, search.odds)
    if compare(search, search.own[0], search.max_distance) or search.max_distance == 0 or level == 0:
        return
    sums_behind(search)
    probe_others(root[0], search, search.behind[level][PAD + search.max_distance])


cdef void sums_behind(Search *search) noexcept nogil:
    cdef int level, bit, s
    cdef double high, middle, low, ones, twos, threes
    cdef double *row
    cdef double *sums
    cdef double *behind
    search.behind[LEVELS][PAD] = 1.0
    for level in range(LEVELS - 1, -1, -1):
        bit = STEP * level
        high, middle, low = search.odds[bit], 0.0, 0.0
        if bit + 2 < 64:
            middle, low = search.odds[bit + 1], search.odds[bit + 2]
        row = search.patterns[level]
        row[0], row[1], row[2], row[3] = 1.0, low, middle, middle * low
        row[4], row[5], row[6], row[7] = high, high * low, high * middle, high * (middle * low)
        ones, twos, threes = (high + middle) + low, row[3] + (row[5] + row[6]), row[7]
        behind, sums = search.behind[level + 1], search.behind[level]
        for s in range(PAD, PAD + search.max_distance + 1):
            sums[s] = (behind[s] + ones * behind[s - 1]) + (twos * behind[s - 2] + threes * behind[s - 3])


cdef void divide_among_children(Search *search, int level) noexcept nogil:
    cdef int budget
    cdef double one, two, three
    cdef const double *sums
    cdef const double *row = search.patterns[level]
    cdef double *share
    for budget in range(search.max_distance + 1):
        sums = search.behind[level + 1] + budget + PAD
        one, two, three = (sums - 1)[0], (sums - 2)[0], (sums - 3)[0]
        share = search.chances[level][budget]
        share[0], share[1], share[2], share[3] = sums[0], row[1] * one, row[2] * one, row[3] * two
        share[4], share[5], share[6], share[7] = row[4] * one, row[5] * two, row[6] * two, row[7] * three


cdef void probe_others(Below root, Search *search, double covered) noexcept nogil:
    cdef double whole = search.behind[0][PAD + search.max_distance]
    cdef double recall = search.recall
    cdef double threshold = search.threshold if search.threshold < 1.0 else 1.0
    cdef double wanted = INFINITY, floor = 0.0, least = INFINITY
    cdef double above = -1.0, last = INFINITY, done = INFINITY
    if recall < 1.0:
        floor = (threshold if threshold > 0.0 else FIRST_FLOOR) * whole
        floor = LEAST if LEAST > floor else floor
        least = recall * whole if search.saved <= 0.0 else 0.0
        wanted = INFINITY if threshold > 0.0 else least - covered
    search.ready = 0
    while True:
        if descend(root, search, wanted, floor, done, &covered, &last):
            return
        if above < 0.0:
            above = covered
        wanted = least - covered
        if not (wanted > 0.0 and floor > whole * NEGLIGIBLE):  # so that it ends if they are no numbers
            break
        done = floor
        floor *= LOWER
    if recall < 1.0 and whole > 0.0:
        learn(search, above / whole, covered / whole, last / whole)


cdef void learn(Search *search, double above, double covered, double last) noexcept nogil:
    cdef double more, threshold
    if search.threshold > 0.0:
        more = (above - search.recall) / (1.0 - search.recall) - MARGIN
        if FARTHEST > more:
            more = FARTHEST
        threshold = search.threshold * exp(LEARNING_STEP * more)
        search.threshold = 1.0 if 1.0 < threshold else threshold
    elif last < INFINITY:
        search.threshold = 1.0 if 1.0 < last else last
    search.saved = search.saved + covered - search.recall
    if MOST_SAVED < search.saved:
        search.saved = MOST_SAVED


cdef bint descend(
    Below root, Search *search, double wanted, double floor, double done, double *covered, double *last
) noexcept nogil:
    """Returns whether the search has found enough."""
    cdef Queue *queue = &search.queue
    cdef double whole = search.behind[0][PAD + search.max_distance], mass = 0.0
    cdef Below[GATHERED] leaves
    cdef int[GATHERED] within
    cdef unsigned int first = 0, end = 0
    cdef int bucket
    cdef Branch branch
    clear(queue, exponent(whole))
    if whole >= floor:
        push(queue, Branch(root, 1.0, 0, search.max_distance, 0), whole, 0)
    last[0] = INFINITY
    while queue.filled and mass < wanted:
        bucket = pop(queue, &branch)
        if is_node(branch.below):
            follow(search, branch, bucket, floor)
            continue
        last[0] = branch.weight
        if branch.weight < done:
            mass += branch.weight
            fetch_leaf(branch.below)
            if end - first == GATHERED:
                if compare(search, leaves[first % GATHERED], within[first % GATHERED]):
                    return True
                first += 1
            leaves[end % GATHERED] = branch.below
            # What is flipped in the upper half leaves less for the lower one.
            within[end % GATHERED] = search.max_distance
            if branch.level * STEP <= UPPER_BITS:
                within[end % GATHERED] = branch.budget
            end += 1
    while first < end:
        if compare(search, leaves[first % GATHERED], within[first % GATHERED]):
            return True
        first += 1
    covered[0] += mass
    return False


cdef void follow(Search *search, Branch branch, int bucket, double floor) noexcept nogil:
    """Go down from a node to its leaf in which no more is flipped; what turns off on the way waits."""
    cdef Below below = branch.below, child
    cdef const Below *children = NULL
    cdef const double *share
    cdef double product = branch.weight, chance = 0.0, farther
    cdef int level = branch.level, own = 0, pattern, rest
    cdef unsigned int turned_to
    while is_node(below):
        if level == search.ready:
            divide_among_children(search, level)
            search.ready += 1
        children, own = children_of(below), child_of(search.value, level)
        share = search.chances[level][branch.budget]
        level += 1
        turned_to = reaching(share, product, floor) & ~1
        while turned_to:
            pattern = trailing_zeros(turned_to)
            turned_to &= turned_to - 1
            rest = branch.budget - FLIPPED[pattern]
            if rest < 0:
                continue  # without a floor all are turned to
            child = children[own ^ pattern]
            prefetch(child.held)
            chance = product * share[pattern]
            farther = product * search.patterns[level - 1][pattern]
            push(
                &search.queue,
                Branch(child, farther if is_node(child) else chance, level, rest, 0), chance, bucket,
            )
        chance = product * share[0]
        if not chance >= floor:
            return
        below = children[own]
    if children + own != search.own:
        push(&search.queue, Branch(below, chance, level, branch.budget, 0), chance, bucket)


cdef inline int exponent(double chance) noexcept nogil:
    """Of a probability, in quarters."""
    cdef uint64_t bits
    memcpy(&bits, &chance, sizeof(bits))
    return <int>(bits >> 50)


cdef inline void clear(Queue *queue, int top) noexcept nogil:
    cdef int bucket
    for bucket in range(BUCKETS):
        queue.first[bucket] = -1
    queue.free, queue.used, queue.waiting, queue.filled, queue.top = -1, 0, 0, 0, top


cdef inline void push(Queue *queue, Branch branch, double chance, int bucket) noexcept nogil:
    """Let a branch wait in its bucket, which is the present one or a later one."""
    cdef int at = queue.free, to = bucket, own
    if at >= 0:
        queue.free = queue.branches[at].next
    else:
        at = queue.used
        queue.used += 1
    if queue.waiting < ROOM:
        own = queue.top - exponent(chance)
        if own > BUCKETS - 1:
            own = BUCKETS - 1
        if own > bucket:
            to = own
    branch.next = queue.first[to]
    queue.branches[at] = branch
    queue.first[to] = at
    queue.filled |= <uint64_t>1 << to
    queue.waiting += 1


cdef inline int pop(Queue *queue, Branch *branch) noexcept nogil:
    """Take a branch out of the first bucket that has any; returns that bucket."""
    cdef int bucket = trailing_zeros(queue.filled), at = queue.first[bucket]
    branch[0] = queue.branches[at]
    queue.first[bucket] = branch.next
    if branch.next < 0:
        queue.filled &= ~(<uint64_t>1 << bucket)
    queue.branches[at].next = queue.free
    queue.free = at
    queue.waiting -= 1
    return bucket


cdef inline void fetch_leaf(Below leaf) noexcept nogil:
    """Ask for the lower halves of a leaf; the processor foresees those of a large one by itself."""
    cdef int line
    for line in range(FETCHED):
        prefetch(<const char *>leaf.held + 64 * line)


cdef bint compare(Search *search, Below leaf, int within) noexcept nogil:
    """Compare with a leaf; returns whether the search has found enough.

    ``within``: in how many of their lower 32 bits matches can differ.
    """
    cdef const uint32_t *lows = lows_of(leaf)
    cdef Py_ssize_t place = next_near32(lows, 0, leaf.count, <uint32_t>search.value, within)
    cdef uint64_t value
    cdef int distance
    search.costs.probes += 1
    search.costs.empty_probes += leaf.count == 0
    search.costs.candidates += leaf.count
    while place < leaf.count:
        value = value_at(leaf, place)
        distance = popcount(value ^ search.value)
        if distance <= search.max_distance:
            keep(search, Found(row_at(leaf, place), value, distance))
            if search.count - search.start >= search.most or search.no_memory:
                return True
        place = next_near32(lows, place + 1, leaf.count, <uint32_t>search.value, within)
    return False


cdef void keep(Search *search, Found found) noexcept nogil:
    cdef Py_ssize_t room = 2 * search.room + 64
    cdef Found *larger
    if search.count == search.room:
        larger = <Found *>realloc(search.found, room * sizeof(Found))
        if larger == NULL:
            search.no_memory = True
            return
        search.found, search.room = larger, room
    search.found[search.count] = found
    search.count += 1
