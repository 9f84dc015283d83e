"""Exact indexes: recall 1 without a linear scan (Sood, section VI.A, after Manku et al.; multi-index
hashing).
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.errors import ConfigurationError
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.index import table_kernels as kernels
from neardup.index.base import ANY_NUMBER, Match, ProbeStats, check_max_distance

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from neardup.fingerprint.simhash import Fingerprint

    Words = npt.NDArray[np.uint64]
    Rows = npt.NDArray[np.uint32]

TAIL_ENTRIES = 1024
"""Newest entries, which are scanned, not probed; about 0.2 µs a query when all are there."""

_NO_VALUES = np.empty(0, dtype=np.uint64)
_NO_ROWS = np.empty(0, dtype=np.uint32)

_SLOTS = 4
"""Static levels, of which the last takes any number of entries."""

_GROWTH = 32
"""How many times more entries each level may hold than the one before."""

_CALL_NS = 1000.0
_PROBE_NS = 30.0
_CANDIDATE_NS = 1.5
"""What a call, a probe and a candidate cost, for :func:`plan_blocks`; fitted to measurements at 1 and 4
million.
"""

_SKEW = 8.0
"""Candidates a probe, against uniform fingerprints: those of pages, 17 to 24 bits apart, share prefixes far
more often.
"""

_WORTH_A_TABLE = 0.8
"""A further sub-table costs 12 to 16 bytes a fingerprint; it must bring a query's estimated time down to this
share.
"""


class Block(NamedTuple):
    """Neighbouring bits of a fingerprint; ``start`` is counted from the most significant bit."""

    start: int
    width: int


class SubTable(NamedTuple):
    """The blocks (one or two) that a sub-table's key is made of, and how many bits of the key a match may
    differ in.
    """

    blocks: tuple[Block, ...]
    radius: int

    @property
    def width(self) -> int:
        return sum(block.width for block in self.blocks)


def cut(blocks: int) -> tuple[Block, ...]:
    """The 64 bits in blocks of about equal size (eq. 6.1).

    >>> [block.width for block in cut(3)]
    [21, 22, 21]
    """
    ends = [round(FINGERPRINT_BITS * i / blocks) for i in range(blocks + 1)]
    return tuple(Block(start, end - start) for start, end in itertools.pairwise(ends))


def radii(max_distance: int, blocks: int) -> tuple[int, ...]:
    """Radii r_i as even as possible with Σ r_i = max_distance - blocks + 1, the larger ones first.

    The generalised pigeonhole rule: a pair that differs by more than r_i in every block differs in at least Σ
    (r_i + 1) bits. This sum is max_distance + 1, so a pair within ``max_distance`` is within r_i in some
    block. ``blocks`` must be from 1 to max_distance + 1. With max_distance + 1 all radii are 0: the minimum
    number of tables of eq. 6.5.

    >>> radii(3, 3)
    (1, 0, 0)
    """
    each, more = divmod(max_distance - blocks + 1, blocks)
    return tuple(each + (i < more) for i in range(blocks))


def in_blocks(max_distance: int, blocks: int) -> tuple[SubTable, ...]:
    """A sub-table for each of so many blocks, with the radii of :func:`radii`."""
    sized = zip(cut(blocks), radii(max_distance, blocks), strict=True)
    return tuple(SubTable((block,), radius) for block, radius in sized)


def estimate(entries: int, radius: int, bits: int) -> float:
    """Nanoseconds to probe a sub-table of n entries with all prefixes of ``bits`` bits within the radius."""
    probes = sum(math.comb(bits, size) for size in range(min(radius, bits) + 1))
    return probes * (_PROBE_NS + _CANDIDATE_NS * entries * min(1.0, _SKEW / (1 << bits)))


def prefix_bits(entries: int, sub_table: SubTable) -> int:
    """How many leading bits of the key choose the run: those with the least estimated time.

    Fewer than the key has, because n entries cannot fill more than log2(n) bits, and each bit may be flipped.
    At most n prefixes, that is 4 bytes of offsets a fingerprint. A run takes in what differs only in the
    key's other bits.
    """
    most = min(sub_table.width, max(0, entries.bit_length() - 1))
    return min(range(most + 1), key=lambda bits: estimate(entries, sub_table.radius, bits))


@functools.lru_cache(maxsize=1024)
def plan_blocks(max_distance: int, magnitude: int) -> tuple[SubTable, ...]:
    """The number of blocks and their radii for 2^magnitude entries.

    Few blocks need large radii, so many probes; many blocks have few bits each, so many candidates a probe,
    and each takes its memory. The choice starts with one block of radius ``max_distance``; without prefix
    bits this is the linear scan. A greater number of blocks is taken if the estimated time of a query falls
    to four fifths for each block more.
    """
    entries = 1 << magnitude
    best, best_ns = in_blocks(max_distance, 1), math.inf
    for blocks in range(1, max_distance + 2):
        chosen = in_blocks(max_distance, blocks)
        ns = _CALL_NS + sum(estimate(entries, each.radius, prefix_bits(entries, each)) for each in chosen)
        if ns < best_ns * _WORTH_A_TABLE ** (blocks - len(best)):
            best, best_ns = chosen, ns
    return best


@functools.cache
def flips(bits: int, radius: int) -> Rows:
    """All sets of at most ``radius`` of so many bits, as numbers in ascending order, smaller sets first."""
    of_size = [np.zeros(1, dtype=np.uint32)]
    for _ in range(min(radius, bits)):
        # The greatest bit of each set, and all sets of one bit less that lie below it.
        tops = 1 << np.arange(bits, dtype=np.uint32)
        of_size.append(np.concatenate([of_size[-1][of_size[-1] < top] | top for top in tops]))
    made = np.concatenate(of_size)
    made.setflags(write=False)
    return made


def key_of(sub_table: SubTable, entries: int) -> kernels.Key:
    """What a sub-table of so many entries is sorted by."""
    first, last = sub_table.blocks[0], sub_table.blocks[-1]
    bits = prefix_bits(entries, sub_table)
    leading = min(bits, first.width)
    return kernels.Key(
        first.start, leading, last.start, bits - leading, sub_table.radius, flips(bits, sub_table.radius)
    )


class _Level:
    """The live entries of other levels and some new ones, once for each key."""

    def __init__(
        self,
        keys: Sequence[kernels.Key] = (),
        levels: Sequence[_Level] = (),
        values: Words = _NO_VALUES,
        rows: Rows = _NO_ROWS,
    ) -> None:
        self.tables = [
            kernels.Table(key, [*(level.entries(i) for level in levels), (values, rows)])
            for i, key in enumerate(keys)
        ]
        self.alive = len(self.tables[0].values) if self.tables else 0
        self.buried = 0

    def entries(self, number: int) -> tuple[Words, Rows]:
        """Fingerprints and rows that are not removed, in the order of a sub-table, or of the last if there
        are fewer.
        """
        table = self.tables[min(number, len(self.tables) - 1)]
        values, rows = table.values, table.rows
        if not self.buried:
            return values, rows
        live = rows != kernels.DEAD
        return values[live], rows[live]

    def __contains__(self, value: int) -> bool:
        return bool(self.tables) and value in self.tables[0]

    def bury(self, value: int, row: int) -> bool:
        """Mark an entry as removed in every sub-table; False if it is not there."""
        if not self.tables or not all(table.bury(value, row) for table in self.tables):
            return False
        self.alive -= 1
        self.buried += 1
        return True


class _Tables:
    """What both exact indexes are: sub-tables that are probed with every key within their radius of the
    query's.

    The index grows by the logarithmic method (Bentley and Saxe). The newest entries are in an unsorted tail,
    which every query scans. A full tail is merged into up to four static levels, each of at most 32 times the
    size of the one before. A removed entry is marked, and a level is rebuilt when more than half of it is
    marked.

    Growing is not steady: the caller waits while a level is merged, and old and new level take their room at
    once. At distance 3 a merge of a million entries took 20 to 140 ms, of 4 million 80 to 500 ms. A merge of
    ten tables took three times that. These times are of two busy cores; the longest are those where memory is
    fresh.

    With the default tail the levels end at 32 thousand, 1 million and 34 million entries. A merge reaches the
    second level every 32 thousand entries, the third every million.
    """

    def __init__(self, *, max_distance: int, tail_entries: int) -> None:
        if tail_entries < 1:
            raise ConfigurationError(f"tail_entries must be at least 1, not {tail_entries}")
        self.max_distance = check_max_distance(max_distance)
        self.stats = ProbeStats()
        self._tail_entries = tail_entries
        self._tail = np.empty((2, tail_entries), dtype=np.uint64)
        self._tail_size = 0
        self._levels = [_Level() for _ in range(_SLOTS)]

    def sub_tables(self, entries: int) -> tuple[SubTable, ...]:
        """The sub-tables of a level with so many entries."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self._tail_size + sum(level.alive for level in self._levels)

    def __contains__(self, value: int) -> bool:
        wanted = np.uint64(value)
        in_tail = bool(np.any(self._tail[0, : self._tail_size] == wanted))
        return in_tail or any(value in level for level in self._levels)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that hold the entries."""
        return self._tail.nbytes + sum(table.nbytes for level in self._levels for table in level.tables)

    def add(self, value: int, row: int) -> None:
        """Store a fingerprint under a row from 0 to 2^32 - 2; ConfigurationError for any other row."""
        _check_row(row)
        self._tail[0, self._tail_size] = np.uint64(value)
        self._tail[1, self._tail_size] = row
        self._tail_size += 1
        if self._tail_size == self._tail_entries:
            self._merge(self._tail[0], self._tail[1])

    def extend(self, values: Words, rows: npt.NDArray[np.int64]) -> None:
        """Store many at once, both of shape (n,), in one merge; ConfigurationError for a row that ``add``
        refuses.
        """
        if len(values) != len(rows):
            raise ConfigurationError(f"extend takes a row for each value, not {len(rows)} for {len(values)}")
        if len(values) == 0:
            return
        for row in (rows.min(), rows.max()):
            _check_row(int(row))
        start, end = self._tail_size, self._tail_size + len(values)
        if end < self._tail_entries:
            self._tail[0, start:end] = values
            self._tail[1, start:end] = rows
            self._tail_size = end
        else:
            self._merge(
                np.concatenate([self._tail[0, :start], values]),
                np.concatenate([self._tail[1, :start], rows.astype(np.uint64)]),
            )

    def remove(self, value: int, row: int) -> bool:
        if not 0 <= row < kernels.DEAD:
            return False
        wanted, size = np.uint64(value), self._tail_size
        here = (self._tail[0, :size] == wanted) & (self._tail[1, :size] == np.uint64(row))
        if here.any():
            self._tail[:, int(here.argmax())] = self._tail[:, size - 1]
            self._tail_size = size - 1
            return True
        for slot, level in enumerate(self._levels):
            if level.bury(value, row):
                if level.alive < level.buried:
                    self._levels[slot] = self._made_of([level], _NO_VALUES, _NO_ROWS)
                return True
        return False

    def find_first(self, query: Fingerprint) -> Match | None:
        """Any one match, or None: the newest entries are looked at first, then one sub-table after another
        (eq. 6.9).
        """
        found = self._search(query.value, every=False).first
        return None if found is None else Match(*found)

    def find_all(self, query: Fingerprint) -> list[Match]:
        """All matches, each stored entry once, in no particular order (eq. 6.8)."""
        return [Match(*match) for match in self.match_table(query).tolist()]

    def match_table(self, query: Fingerprint, most: int = ANY_NUMBER) -> npt.NDArray[np.uint64]:
        """See :class:`neardup.index.base.Index`; all are looked for, whatever ``most`` is."""
        return self._search(query.value, every=True).matches[:most]

    def _search(self, value: int, *, every: bool) -> kernels.Search:
        search = kernels.Search(value, self.max_distance, every=every)
        search.scan(self._tail, self._tail_size)
        for level in self._levels:
            search.probe(level.tables)
        stats = self.stats
        stats.queries += 1
        stats.probes += search.probes
        stats.empty_probes += search.empty_probes
        stats.candidates += search.candidates
        return search

    def _merge(self, values: Words, rows: Words) -> None:
        """Empty the tail: these entries, all levels that are too small and the first that can hold them
        become that one.
        """
        entries, slot = len(values) + self._levels[0].alive, 0
        while slot < _SLOTS - 1 and entries > self._tail_entries * _GROWTH ** (slot + 1):
            slot += 1
            entries += self._levels[slot].alive
        # The largest first: it is in order, and the runs it leaves room in are then filled from the smaller
        # ones.
        merged = self._made_of(self._levels[slot::-1], values, rows.astype(np.uint32))
        self._levels = [*(_Level() for _ in range(slot)), merged, *self._levels[slot + 1 :]]
        self._tail_size = 0

    def _made_of(self, levels: Sequence[_Level], values: Words, rows: Rows) -> _Level:
        entries = len(values) + sum(level.alive for level in levels)
        keys = [key_of(each, entries) for each in self.sub_tables(entries)] if entries else []
        return _Level(keys, [level for level in levels if level.alive], values, rows)


class MultiIndexHashing(_Tables):
    """Exact index with few sub-tables: the 64 bits in z blocks, block i probed with all keys within radius
    r_i.

    Distance 3 in three blocks of 21, 22 and 21 bits has the radii 1, 0 and 0, where Manku's tables take four.
    ``blocks`` fixes the number of blocks (1 to max_distance + 1, else ConfigurationError). Without
    ``blocks``, each level has what :func:`plan_blocks` chooses for its size. At distance 3 these are four
    blocks up to 700,000 entries, three up to 6 million, then two.

    A fingerprint takes 12 to 16 bytes a block: 42 bytes in three, 49 in four blocks, at a million.
    """

    def __init__(
        self, *, max_distance: int = 3, blocks: int | None = None, tail_entries: int = TAIL_ENTRIES
    ) -> None:
        super().__init__(max_distance=max_distance, tail_entries=tail_entries)
        if blocks is not None and not 1 <= blocks <= max_distance + 1:
            raise ConfigurationError(
                f"blocks must be from 1 to {max_distance + 1} (distance + 1), not {blocks}"
            )
        self.blocks = blocks

    def sub_tables(self, entries: int) -> tuple[SubTable, ...]:
        """The blocks and radii of a level with so many entries."""
        if self.blocks is None:
            return plan_blocks(self.max_distance, round(math.log2(entries)))
        return in_blocks(self.max_distance, self.blocks)


class MankuTables(_Tables):
    """The tables of Manku et al. as the thesis models them (section VI.A): exact keys, one probe a table.

    The 64 bits are cut into z = max_distance + x blocks (the fewest that eq. 6.4 allows). Each of the C(z, x)
    choices of x blocks (eq. 6.7) leads one table. Since max_distance bits differ in at most max_distance
    blocks, x blocks are equal in some table. ``choose`` is x: 1 for the fewest tables (eq. 6.5; 4 for
    distance 3), 2 for longer keys (10 tables). ConfigurationError is raised for any other.

    These tables leave the thesis in two points. Fingerprints are not permuted; the key's bits are picked. The
    run of equal keys is not found by binary search (the second term of eq. 6.10). Direct offsets over the
    key's leading bits, as many as the entries can fill, lead to the run.

    A fingerprint takes 12 to 16 bytes a table where eq. 6.12 counts 8: 49 in four, 141 in ten tables, at a
    million.
    """

    def __init__(self, *, max_distance: int = 3, choose: int = 1, tail_entries: int = TAIL_ENTRIES) -> None:
        super().__init__(max_distance=max_distance, tail_entries=tail_entries)
        if choose not in {1, 2}:
            raise ConfigurationError(f"choose must be 1 or 2, not {choose}")
        self.choose = choose
        chosen = itertools.combinations(cut(max_distance + choose), choose)
        self._sub_tables = tuple(SubTable(blocks, 0) for blocks in chosen)

    def sub_tables(self, entries: int) -> tuple[SubTable, ...]:
        """The C(z, x) tables; the same for every size."""
        return self._sub_tables


def _check_row(row: int) -> None:
    if not 0 <= row < kernels.DEAD:
        raise ConfigurationError(f"row must be between 0 and {kernels.DEAD - 1}, not {row}")
