"""The sub-tables of the exact indexes, and the search through them.

A sub-table holds all entries of a level, sorted by a **prefix**: bits that a :class:`Key` picks from the
fingerprint, not always its leading ones. The entries of one prefix are a **run**. Offsets, as many as there
are prefixes and one more, say where each run begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import native
from neardup.fingerprint.hamming import FINGERPRINT_BITS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    import numpy.typing as npt

    Words: TypeAlias = npt.NDArray[np.uint64]
    Rows: TypeAlias = npt.NDArray[np.uint32]

DEAD = 0xFFFF_FFFF
"""Row number of a removed entry; no row may have it."""

FETCHED = 128
"""Entries of a run that the native search fetches ahead; what a longer run has beyond them, the processor
foresees.
"""


class Key(NamedTuple):
    """Which bits of a fingerprint are the prefix, and which prefixes are probed for one fingerprint.

    - ``start`` and ``bits``: first bit, counted from the most significant, and number of bits of one block;
    - ``start_2`` and ``bits_2``: the same of a second block, whose bits follow; both blocks may have none;
    - ``radius``: how many bits of the prefix a match may differ in;
    - ``flips``, shape (p,), dtype uint32: XORed with the prefix of a fingerprint, the prefixes to probe.
    """

    start: int
    bits: int
    start_2: int
    bits_2: int
    radius: int
    flips: Rows

    def prefix(self, values: Words) -> Words:
        """The prefix of each fingerprint, shape (n,); of the XOR of two, the XOR of their prefixes."""
        first = _block(values, self.start, self.bits)
        return (first << np.uint64(self.bits_2)) | _block(values, self.start_2, self.bits_2)


def _block(values: Words, start: int, bits: int) -> Words:
    if bits == 0:
        return np.zeros_like(values)  # a shift by 64 is not defined
    return (values << np.uint64(start)) >> np.uint64(FINGERPRINT_BITS - bits)


@native.twin
class Table:
    """A sub-table: the entries of all sources, in the order of their prefixes, else in the order given.

    A source has fingerprints, dtype uint64, and their rows, dtype uint32, both of shape (n,). The native
    class raises ValueError for any other, and for a key of bits that a fingerprint does not have.
    """

    def __init__(self, key: Key, sources: Sequence[tuple[Words, Rows]]) -> None:
        values = np.concatenate([values for values, _ in sources])
        rows = np.concatenate([rows for _, rows in sources])
        prefixes = key.prefix(values)
        order = np.argsort(prefixes, kind="stable")
        self.key = key
        self.values, self.rows = values[order], rows[order]
        begins = np.arange((1 << (key.bits + key.bits_2)) + 1, dtype=np.uint64)
        self._offsets = np.searchsorted(prefixes[order], begins).astype(np.uint32)

    @property
    def nbytes(self) -> int:
        """Bytes of the entries and the offsets."""
        return self.values.nbytes + self.rows.nbytes + self._offsets.nbytes

    def run(self, prefix: np.uint64) -> slice:
        """Where the entries with a prefix are."""
        return slice(*self._offsets[int(prefix) : int(prefix) + 2].tolist())

    def __contains__(self, value: int) -> bool:
        return bool(self._alive(value).size)

    def bury(self, value: int, row: int) -> bool:
        """Mark an entry as removed; False if it is not there."""
        alive = self._alive(value)
        here = alive[self.rows[alive] == row]
        self.rows[here[:1]] = DEAD
        return bool(here.size)

    def _alive(self, value: int) -> npt.NDArray[np.int64]:
        """Where a fingerprint is stored and not removed."""
        wanted = np.array([value], dtype=np.uint64)
        run = self.run(self.key.prefix(wanted)[0])
        here: npt.NDArray[np.int64] = np.flatnonzero((self.values[run] == wanted) & (self.rows[run] != DEAD))
        return here + np.int64(run.start)


@native.twin
class Search:
    """One query: what it has found, and what it has cost so far.

    ``every``: all matches are looked for, each entry once; else the search is over with the first. The native
    class keeps the interpreter's lock. A search mostly takes microseconds, and to get the lock back from a
    thread that computes may take thousands of them.
    """

    def __init__(self, query: int, max_distance: int, *, every: bool) -> None:
        self.probes = self.empty_probes = self.candidates = 0
        self._query = np.array([query], dtype=np.uint64)
        self._max_distance = max_distance
        self._every = every
        self._found = np.empty((0, 3), dtype=np.uint64)

    @property
    def first(self) -> tuple[int, int, int] | None:
        """Row, value and distance of the first match."""
        return tuple(self._found[0].tolist()) if len(self._found) else None

    @property
    def matches(self) -> Words:
        """Row, value and distance of each match, shape (n, 3)."""
        return self._found

    def scan(self, entries: Words, size: int) -> None:
        """Compare the query with the first ``size`` columns of ``entries``: fingerprints and rows, shape
        (2, n).
        """
        self.candidates += size
        self._compare(entries[0, :size], entries[1, :size])

    def probe(self, tables: Sequence[Table]) -> None:
        """Compare the query with the runs that it reaches in the sub-tables of a level.

        An entry that several sub-tables find is a match of the first of them.
        """
        for number, table in enumerate(tables):
            for prefix in table.key.prefix(self._query) ^ table.key.flips:
                if len(self._found) and not self._every:
                    return
                run = table.run(prefix)
                self.probes += 1
                self.empty_probes += run.start == run.stop
                self.candidates += run.stop - run.start
                if run.start < run.stop:
                    self._compare(table.values[run], table.rows[run], tables[:number])

    def _compare(
        self, values: Words, rows: npt.NDArray[np.unsignedinteger], earlier: Sequence[Table] = ()
    ) -> None:
        differing = values ^ self._query
        distances = np.bitwise_count(differing)
        here = (distances <= self._max_distance) & (rows != DEAD)
        for table in earlier:
            here &= np.bitwise_count(table.key.prefix(differing)) > table.key.radius
        near = np.flatnonzero(here)[: None if self._every else 1]
        found = np.column_stack((rows[near], values[near], distances[near])).astype(np.uint64)
        self._found = np.concatenate((self._found, found))
