"""Many queries to the PSM index in one call, compiled by numba: nothing of Python between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import lean
from neardup.index.psm.leaf_allocator import STATE_SIZE
from neardup.index.psm.tree import CANDIDATES, COSTS, EMPTY_PROBES, PROBES, QUERIES
from neardup.index.psm.walk import SAVED, THRESHOLD, search, workspace

if TYPE_CHECKING:
    import numpy.typing as npt

BLOCK = 1 << 10
"""Queries that a thread takes on at once."""


@lean
def search_many(
    heads: npt.NDArray[np.uint64],
    lows: npt.NDArray[np.uint32],
    rests: npt.NDArray[np.uint64],
    state: npt.NDArray[np.int64],
    asked: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.float64],
    start: int,
    max_distance: int,
    recall: float,
    most: int,
    tables: npt.NDArray[np.float64],
    chances: npt.NDArray[np.float64],
    branches: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    matches: npt.NDArray[np.uint64],
    whose: npt.NDArray[np.int64],
) -> tuple[int, int]:
    """:func:`neardup.index.psm.walk.search` for one query after the other from ``start`` on, until there is
    no room for the matches of one.

    - ``asked``: shape (m,).
    - ``weights``: shape (m, 64).
    - ``whose``: shape (k,), receives the query of each of the k ``matches``.

    Returns how many queries are done with, and the number of matches.
    """
    count = 0
    for i in range(start, asked.size):
        before = (state[QUERIES], state[PROBES], state[EMPTY_PROBES], state[CANDIDATES])
        learned = (chances[THRESHOLD], chances[SAVED])
        found = search(
            heads, lows, rests, state, asked[i], weights[i], max_distance, recall, most,
            tables, chances, branches, queue, matches[count:],
        )  # fmt: skip
        if found > matches.shape[0] - count:
            state[QUERIES], state[PROBES], state[EMPTY_PROBES], state[CANDIDATES] = before
            chances[THRESHOLD], chances[SAVED] = learned
            return i, count
        whose[count : count + found] = i
        count += found
    return asked.size, count


def match_block(
    arrays: tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.uint64]],
    asked: npt.NDArray[np.uint64],
    weights: npt.NDArray[np.float64],
    max_distance: int,
    recall: float,
    most: int,
    threshold: float,
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], float]:
    """Matches of a block of queries in a tree (heads, lows, rests) that nobody changes meanwhile.

    Returns three things:

    - the matches, in columns query, row, value, distance, shape (n, 4);
    - the costs, as of ``state[COSTS]``;
    - the threshold at the end (:data:`neardup.index.psm.walk.THRESHOLD`).

    A block starts with the threshold given, but with nothing saved. So each block meets the recall by itself.
    """
    tables, chances, branches, queue = workspace()
    chances[THRESHOLD] = threshold
    state = np.zeros(STATE_SIZE, dtype=np.int64)
    parts = [np.empty((0, 4), dtype=np.uint64)]
    room, done = max(64, len(asked)), 0
    while done < len(asked):
        matches, whose = np.empty((room, 3), dtype=np.uint64), np.empty(room, dtype=np.int64)
        done, count = search_many(
            *arrays,
            state,
            asked,
            weights,
            done,
            max_distance,
            recall,
            most,
            tables,
            chances,
            branches,
            queue,
            matches,
            whose,
        )
        parts.append(np.column_stack([whose[:count].astype(np.uint64), matches[:count]]))
        room *= 2  # of one query there may be more than there was room for
    return np.concatenate(parts), state[COSTS], float(chances[THRESHOLD])
