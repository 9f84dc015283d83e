"""The hot loops of the exact indexes, compiled by numba. No Python object is touched; the caller owns every
array.

A **level** is one array of dtype uint64 that holds n entries once for each of its sub-tables, so that a
search takes few arguments. A level begins with a header: n, the number of sub-tables, and for each of these
``FIELDS`` words (the columns ``START`` to ``BASE`` below). A sub-table's section begins at word ``BASE``:

* 2^b + 2 offsets, 4 bytes each, where b is the number of prefix bits. The entries with prefix x, a **run**,
  are those from offset x up to, not including, offset x + 1;
* n fingerprints, 8 bytes each, in order of their prefixes;
* n row numbers, 4 bytes each, in the same order; ``DEAD`` for an entry that was removed.

The prefix is taken from one or two blocks of the fingerprint, so it need not be its leading bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled
from neardup.index.psm.tree import popcount

if TYPE_CHECKING:
    import numpy.typing as npt

DEAD = 0xFFFF_FFFF
"""Row number of a removed entry; no row may have it."""

HEADER = 2
FIELDS = 6
START, BITS, START_2, BITS_2, RADIUS, BASE = range(FIELDS)
"""Columns of a sub-table's header, in this order:

- the first bit (from the most significant) and the number of bits that the prefix takes from its first block;
- the same of its second block;
- the radius;
- the first word of the sub-table's section.
"""

PROBES, EMPTY, CANDIDATES, ROW, VALUE, DISTANCE = range(6)
"""What a search returns after the number of matches: its counts, then the first match."""

_BATCH = 32
"""Runs that are fetched before any is compared; see :func:`_search_level`."""

FETCHED = 128
"""Entries of a run that are fetched so; what a longer run has beyond them, the processor foresees."""

_ONE = np.uint64(1)


@compiled
def prefix(value: np.uint64, start: int, bits: int, start_2: int, bits_2: int) -> np.uint64:
    """The prefix of a fingerprint; of the XOR of two, the XOR of their prefixes."""
    if bits == 0:
        return np.uint64(0)  # a shift by 64 is not defined
    leading = (value << np.uint64(start)) >> np.uint64(64 - bits)
    if bits_2 == 0:
        return leading
    return (leading << np.uint64(bits_2)) | ((value << np.uint64(start_2)) >> np.uint64(64 - bits_2))


@compiled
def _prefix_in(level: npt.NDArray[np.uint64], table: int, value: np.uint64) -> np.uint64:
    at = HEADER + table * FIELDS
    return prefix(
        value,
        int(level[at + START]),
        int(level[at + BITS]),
        int(level[at + START_2]),
        int(level[at + BITS_2]),
    )


@compiled
def _places(level: npt.NDArray[np.uint64], table: int) -> tuple[int, int, int]:
    """Where a sub-table's parts begin: offsets (in words of 4 bytes), fingerprints (of 8), row numbers (of
    4).
    """
    at = HEADER + table * FIELDS
    base = int(level[at + BASE])
    values = base + ((1 << int(level[at + BITS] + level[at + BITS_2])) + 3) // 2
    return 2 * base, values, 2 * (values + int(level[0]))


@compiled
def tally(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    key: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.uint32],
) -> None:
    """Count the live entries of each prefix x in ``offsets[x + 2]``; ``key``: shape (FIELDS,)."""
    start, bits, start_2, bits_2 = int(key[START]), int(key[BITS]), int(key[START_2]), int(key[BITS_2])
    for i in range(values.size):
        if rows[i] != DEAD:
            offsets[int(prefix(values[i], start, bits, start_2, bits_2)) + 2] += 1


@compiled
def sum_up(offsets: npt.NDArray[np.uint32]) -> None:
    """From counts to the start of prefix x in ``offsets[x + 1]``, which :func:`place` moves on to the run's
    end.
    """
    for i in range(1, offsets.size):
        offsets[i] += offsets[i - 1]


@compiled
def place(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.uint32],
    key: npt.NDArray[np.uint64],
    offsets: npt.NDArray[np.uint32],
    to_values: npt.NDArray[np.uint64],
    to_rows: npt.NDArray[np.uint32],
) -> None:
    """Write the live entries into their runs. Entries that come in order of a similar prefix are written
    nearly in order.
    """
    start, bits, start_2, bits_2 = int(key[START]), int(key[BITS]), int(key[START_2]), int(key[BITS_2])
    for i in range(values.size):
        if rows[i] != DEAD:
            run = int(prefix(values[i], start, bits, start_2, bits_2)) + 1
            to_values[offsets[run]] = values[i]
            to_rows[offsets[run]] = rows[i]
            offsets[run] += 1


@compiled
def _next_within(
    values: npt.NDArray[np.uint64], first: int, last: int, query: np.uint64, max_distance: int
) -> int:
    """The first position from ``first`` on that holds a fingerprint within the distance; ``last`` if none
    does.
    """
    while last - first >= 32:
        hits = 0
        for i in range(first, first + 32):  # without a branch, so that it becomes vector code
            hits += popcount(values[i] ^ query) <= max_distance
        if hits:
            break
        first += 32
    while first < last and popcount(values[first] ^ query) > max_distance:
        first += 1
    return first


@compiled
def _found_before(level: npt.NDArray[np.uint64], table: int, difference: np.uint64) -> bool:
    """Whether a sub-table before this one finds the fingerprint that differs from the query in these bits."""
    for earlier in range(table):
        radius = int(level[HEADER + earlier * FIELDS + RADIUS])
        if popcount(_prefix_in(level, earlier, difference)) <= radius:
            return True
    return False


@compiled
def _report(
    report: npt.NDArray[np.uint64],
    matches: npt.NDArray[np.uint64],
    found: int,
    row: np.uint64,
    value: np.uint64,
    distance: int,
) -> int:
    if found == 0:
        report[ROW], report[VALUE], report[DISTANCE] = row, value, np.uint64(distance)
    if found < matches.shape[0]:
        matches[found, 0], matches[found, 1], matches[found, 2] = row, value, np.uint64(distance)
    return found + 1


@compiled
def _following(flips: np.uint64, limit: np.uint64) -> np.uint64:
    """The next greater set with as many bits (Gosper); with one bit more and at its smallest at ``limit``."""
    if flips == 0:
        return _ONE
    low = flips & (~flips + _ONE)
    carried = flips + low
    following = carried | (((flips ^ carried) >> np.uint64(2)) >> np.uint64(popcount(low - _ONE)))
    if following < limit:
        return following
    return (_ONE << np.uint64(popcount(flips) + 1)) - _ONE


@compiled
def _compare(
    level: npt.NDArray[np.uint64],
    runs: npt.NDArray[np.int64],
    query: np.uint64,
    max_distance: int,
    matches: npt.NDArray[np.uint64],
    report: npt.NDArray[np.uint64],
    found: int,
) -> int:
    """Compare the query with all entries of some runs (rows of ``runs``); returns the matches
    found so far.
    """
    words = level.view(np.uint32)
    for probe in range(runs.shape[0]):
        table, position, last = int(runs[probe, 0]), int(runs[probe, 1]), int(runs[probe, 2])
        report[PROBES] += _ONE
        report[EMPTY] += np.uint64(position == last)
        report[CANDIDATES] += np.uint64(last - position)
        position = _next_within(level, position, last, query, max_distance)
        while position < last:
            _, values, rows = _places(level, table)
            row, stored = words[rows + position - values], level[position]
            if row != DEAD and not _found_before(level, table, stored ^ query):
                distance = popcount(stored ^ query)
                found = _report(report, matches, found, np.uint64(row), stored, distance)
                if matches.shape[0] == 0:
                    return found
            position = _next_within(level, position + 1, last, query, max_distance)
    return found


@compiled
def _search_level(
    level: npt.NDArray[np.uint64],
    query: np.uint64,
    max_distance: int,
    matches: npt.NDArray[np.uint64],
    report: npt.NDArray[np.uint64],
    runs: npt.NDArray[np.int64],
    found: int,
) -> int:
    """Probe every sub-table with all prefixes within its radius of the query's; returns the matches found so
    far.

    ``runs``: scratch of shape (batch, 4): sub-table, first and last position and, so that it is loaded, the
    first entry. Runs are fetched by batches, across sub-tables, before any is compared: memory then answers
    them side by side.
    """
    words = level.view(np.uint32)
    tables, table = int(level[1]), 0
    flips, size = np.uint64(0), 0
    while table < tables:
        pending = 0
        while pending < runs.shape[0] and table < tables:
            at = HEADER + table * FIELDS
            radius = int(level[at + RADIUS])
            limit = _ONE << (level[at + BITS] + level[at + BITS_2])
            offsets, values, _ = _places(level, table)
            own = _prefix_in(level, table, query)
            while pending < runs.shape[0] and size <= radius and flips < limit:
                run = offsets + int(own ^ flips)
                runs[pending, 0] = table
                runs[pending, 1] = values + int(words[run])
                runs[pending, 2] = values + int(words[run + 1])
                pending += 1
                flips = _following(flips, limit)
                size = popcount(flips)
            if size > radius or flips >= limit:
                table, flips, size = table + 1, np.uint64(0), 0
        for probe in range(pending):
            seen = np.uint64(0)
            for line in range(runs[probe, 1], min(runs[probe, 2], runs[probe, 1] + FETCHED), 8):
                seen = seen ^ level[line]
            runs[probe, 3] = np.int64(seen)
        found = _compare(level, runs[:pending], query, max_distance, matches, report, found)
        if found and matches.shape[0] == 0:
            break
    return found


@compiled
def search(
    level_0: npt.NDArray[np.uint64],
    level_1: npt.NDArray[np.uint64],
    level_2: npt.NDArray[np.uint64],
    level_3: npt.NDArray[np.uint64],
    tail: npt.NDArray[np.uint64],
    tail_size: int,
    query: np.uint64,
    max_distance: int,
    matches: npt.NDArray[np.uint64],
) -> tuple[int, int, int, int, int, int, int]:
    """Compare the query with the tail, then with the runs that it reaches in every sub-table of every level.

    The levels are single arguments because numba takes an array faster from Python than a tuple of them.
    ``tail``: shape (2, capacity), fingerprints and rows. ``matches``: shape (m, 3), receives row, value and
    distance of the first m matches, each entry once: the first sub-table that finds it reports it. With m = 0
    the search ends at the first match. Returns the number of matches, then what ``PROBES`` to ``DISTANCE``
    number.
    """
    report = np.zeros(6, dtype=np.uint64)
    runs = np.empty((_BATCH, 4), dtype=np.int64)
    found = 0
    report[CANDIDATES] = np.uint64(tail_size)
    newest = tail[0]
    position = _next_within(newest, 0, tail_size, query, max_distance)
    while position < tail_size:
        distance = popcount(newest[position] ^ query)
        found = _report(report, matches, found, tail[1, position], newest[position], distance)
        position = _next_within(newest, position + 1, tail_size, query, max_distance)
    levels = (level_0, level_1, level_2, level_3)
    for number in range(4):
        if found == 0 or matches.shape[0] > 0:
            found = _search_level(levels[number], query, max_distance, matches, report, runs, found)
    probes, empty, candidates = int(report[PROBES]), int(report[EMPTY]), int(report[CANDIDATES])
    return found, probes, empty, candidates, int(report[ROW]), int(report[VALUE]), int(report[DISTANCE])


@compiled
def _find(level: npt.NDArray[np.uint64], table: int, value: np.uint64, row: int) -> int:
    """Position of the 4-byte word with the row number of a live entry, of any row if ``row`` is negative; -1
    if none.
    """
    words = level.view(np.uint32)
    offsets, values, rows = _places(level, table)
    run = offsets + int(_prefix_in(level, table, value))
    for i in range(int(words[run]), int(words[run + 1])):
        stored = int(words[rows + i])
        if level[values + i] == value and stored != DEAD and (row < 0 or stored == row):
            return rows + i
    return -1


@compiled
def contains(level: npt.NDArray[np.uint64], value: np.uint64) -> bool:
    return int(level[1]) > 0 and _find(level, 0, value, -1) >= 0


@compiled
def bury(level: npt.NDArray[np.uint64], value: np.uint64, row: int) -> bool:
    """Mark an entry as removed in every sub-table; False if it is not there."""
    words = level.view(np.uint32)
    for table in range(int(level[1])):
        position = _find(level, table, value, row)
        if position < 0:
            return False
        words[position] = DEAD
    return int(level[1]) > 0
