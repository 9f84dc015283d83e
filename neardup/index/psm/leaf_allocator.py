"""Lines of slots for the leaves of the PSM index, given out and taken back, compiled by numba. No Python
object is touched.

The fingerprints of a leaf stand together in an extent of neighbouring lines. Extents grow, and the lines that
extents leave behind are used again. Neighbouring free lines are one run, and runs wait in bins by their
length. So the run taken is the shortest that is long enough, or nearly so. The method is segregated fits with
boundary tags (Wilson, Johnstone, Neely & Boles 1995, "Dynamic storage allocation", 3.2 and 3.6).

- ``free`` (uint8): 1 for a line that is in a run.
- ``rests`` (uint64): three slots of a run's first line are used. The slots hold how many lines the run has,
  and the next and the previous run of its bin. A run is given by its line plus 1; 0 means none. The last slot
  of a run's last line holds how many lines the run has, too.
- ``state`` (int64): :data:`TOP`, :data:`FREE`, and from :data:`BINS` on the first run of each bin (its line
  plus 1; 0: none).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import lean

if TYPE_CHECKING:
    import numpy.typing as npt

LINE = 8
"""Slots of a cache line of 64 bytes, of those arrays that hold 8 bytes a slot."""

LOWS_A_LINE = 2 * LINE
"""Slots of a cache line of the array that holds 4 bytes a slot."""

TOP, FREE = 1, 2
"""Places in ``state``: lines ever used; how many of them are free."""
BINS = 16
"""Where in ``state`` the bins begin."""
_EXACT = 64
"""Runs of up to so many lines have bins of their own; above, there are four to a factor of two."""
_BINS = _EXACT + 4 * 26
STATE_SIZE = BINS + _BINS

_SMALL_CLASSES = 8
_LOOKED_AT = 8
"""Runs of a bin that are looked at for one that is long enough, where not all of the bin are."""
_LENGTH, _NEXT, _PREVIOUS = range(3)


def _capacities() -> npt.NDArray[np.int64]:
    """Lines of an extent of each class: 1 to 8, then a quarter more from one to the next."""
    lines = list(range(_SMALL_CLASSES + 1))
    while lines[-1] < 1 << 31:
        lines.append(lines[-1] * 5 // 4)
    return np.array(lines, dtype=np.int64)


CAPACITIES = _capacities()


@lean
def lines_for(count: int) -> int:
    """Lines of the extent that holds ``count`` fingerprints."""
    lines = (count + LINE - 1) // LINE
    if lines <= _SMALL_CLASSES:
        return lines
    size = _SMALL_CLASSES
    while CAPACITIES[size] < lines:
        size += 1
    return int(CAPACITIES[size])


@lean
def allocate(
    free: npt.NDArray[np.uint8], rests: npt.NDArray[np.uint64], state: npt.NDArray[np.int64], lines: int
) -> int:
    """First of so many neighbouring lines, free ones if there are, else new ones; there must be room."""
    line = allocate_free(free, rests, state, lines)
    if line < 0:
        line = state[TOP]
        state[TOP] += lines
    return line


@lean
def allocate_free(
    free: npt.NDArray[np.uint8], rests: npt.NDArray[np.uint64], state: npt.NDArray[np.int64], lines: int
) -> int:
    """First of so many neighbouring free lines, or -1; of no lines, 0."""
    if lines == 0:
        return 0
    line = _find(rests, state, lines)
    if line >= 0:
        _take(free, rests, state, line, lines)
    return line


@lean
def extend(
    free: npt.NDArray[np.uint8],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    end: int,
    lines: int,
) -> bool:
    """Give out so many lines from ``end`` on, if they are free or new."""
    if end == state[TOP]:
        state[TOP] += lines
        return True
    if not free[end] or _told(rests, end * LINE + _LENGTH) < lines:
        return False
    _take(free, rests, state, end, lines)
    return True


@lean
def release(
    free: npt.NDArray[np.uint8],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    line: int,
    lines: int,
) -> None:
    """Take back so many lines; with those beside them that are free, they become one run, or new again."""
    if lines == 0:
        return
    start, end = line, line + lines
    if start > 0 and free[start - 1]:
        start -= _told(rests, start * LINE - 1)
        _unlink(rests, state, start)
    if end < state[TOP] and free[end]:
        length = _told(rests, end * LINE + _LENGTH)
        _unlink(rests, state, end)
        end += length
    state[FREE] += lines
    free[line : line + lines] = 1
    if end == state[TOP]:
        free[start:end] = 0
        state[FREE] -= end - start
        state[TOP] = start
    else:
        _link(rests, state, start, end - start)


@lean
def link_all(
    free: npt.NDArray[np.uint8], rests: npt.NDArray[np.uint64], state: npt.NDArray[np.int64]
) -> None:
    """Put all runs into their bins, as ``free`` and ``state[TOP]`` say."""
    state[BINS:STATE_SIZE] = 0
    start = 0
    for line in range(state[TOP] + 1):
        if line < state[TOP] and free[line]:
            continue
        if line > start:
            _link(rests, state, start, line - start)
        start = line + 1


@lean
def _told(rests: npt.NDArray[np.uint64], slot: int) -> int:
    """What a slot of a free line holds, as a signed integer: numba turns an unsigned one with a signed one
    into a float.
    """
    return np.int64(rests[slot])  # type: ignore[return-value]


@lean
def _bin_of(lines: int) -> int:
    if lines <= _EXACT:
        return BINS + lines - 1
    octave = 0
    while lines >= 2 * _EXACT:
        lines >>= 1
        octave += 1
    return BINS + _EXACT + 4 * octave + (lines >> 4) - 4  # 64 to 127, in four quarters


@lean
def _find(rests: npt.NDArray[np.uint64], state: npt.NDArray[np.int64], lines: int) -> int:
    """The line of a run of at least so many lines, or -1."""
    if state[FREE] < lines:
        return -1
    first = _bin_of(lines)
    for place in range(first, STATE_SIZE):
        line = state[place] - 1
        looks = 0
        while line >= 0 and looks < _LOOKED_AT:
            if _told(rests, line * LINE + _LENGTH) >= lines:
                return int(line)
            line = _told(rests, line * LINE + _NEXT) - 1
            looks += 1
    return -1


@lean
def _take(
    free: npt.NDArray[np.uint8],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    line: int,
    lines: int,
) -> None:
    """Give out the first lines of a run; the others stay one."""
    length = _told(rests, line * LINE + _LENGTH)
    _unlink(rests, state, line)
    if length > lines:
        _link(rests, state, line + lines, length - lines)
    free[line : line + lines] = 0
    state[FREE] -= lines


@lean
def _link(rests: npt.NDArray[np.uint64], state: npt.NDArray[np.int64], line: int, lines: int) -> None:
    place = _bin_of(lines)
    after = state[place]
    state[place] = line + 1
    slot = line * LINE
    rests[slot + _LENGTH], rests[slot + _NEXT], rests[slot + _PREVIOUS] = lines, after, 0
    rests[(line + lines) * LINE - 1] = lines
    if after > 0:
        rests[(after - 1) * LINE + _PREVIOUS] = line + 1


@lean
def _unlink(rests: npt.NDArray[np.uint64], state: npt.NDArray[np.int64], line: int) -> None:
    slot = line * LINE
    after, before = _told(rests, slot + _NEXT), _told(rests, slot + _PREVIOUS)
    if before > 0:
        rests[(before - 1) * LINE + _NEXT] = after
    else:
        state[_bin_of(_told(rests, slot + _LENGTH))] = after
    if after > 0:
        rests[(after - 1) * LINE + _PREVIOUS] = before
