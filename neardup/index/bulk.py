"""Storing many fingerprints in the tree of the PSM index, compiled by numba."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled, lean
from neardup.index.instructions import prefetch
from neardup.index.kernels import ADDED, COUNT, LINE, SHIFT, add, place_of, signed

if TYPE_CHECKING:
    import numpy.typing as npt

_AHEAD = 16


def workspace() -> npt.NDArray[np.int64]:
    """Scratch memory of :func:`add_many`: places and levels of leaves."""
    return np.zeros((_AHEAD, 2), dtype=np.int64)


@lean
def add_many(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    free: npt.NDArray[np.uint8],
    state: npt.NDArray[np.int64],
    new_values: npt.NDArray[np.uint64],
    new_rows: npt.NDArray[np.int64],
    start: int,
    places: npt.NDArray[np.int64],
) -> int:
    """:func:`neardup.index.kernels.add` one after the other from ``start`` on, until there is no room; returns how many are done with.

    ``places``: of :func:`workspace`.
    """
    for i in range(start, new_values.size):
        if (i - start) % _AHEAD == 0:
            # Most of the time of an insertion is waiting for memory: ask for that of the next few at once.
            for ahead in range(i, min(i + _AHEAD, new_values.size)):
                place, level = place_of(heads, new_values[ahead])
                places[ahead - i, 0], places[ahead - i, 1] = place, level
                head = heads[place]
                slot = signed(head >> SHIFT) * LINE + signed(head & COUNT)
                prefetch(lows, slot)
                prefetch(rests, slot)
        at = (i - start) % _AHEAD
        value, row = new_values[i], int(new_rows[i])
        if add(heads, lows, rests, free, state, value, row, places[at, 0], places[at, 1]) != ADDED:
            return i
    return new_values.size


@compiled
def gather_neighbours(
    values: npt.NDArray[np.uint64],
    rows: npt.NDArray[np.int64],
    near_values: npt.NDArray[np.uint64],
    near_rows: npt.NDArray[np.int64],
) -> None:
    """Copy fingerprints and rows, ordered by their 12 leading bits: neighbours in the tree are then added one after the other."""
    shift = np.uint64(52)
    places = np.zeros(4097, dtype=np.int64)
    for i in range(values.size):
        places[signed(values[i] >> shift) + 1] += 1
    for bucket in range(4096):
        places[bucket + 1] += places[bucket]
    for i in range(values.size):
        bucket = signed(values[i] >> shift)
        near_values[places[bucket]] = values[i]
        near_rows[places[bucket]] = rows[i]
        places[bucket] += 1
