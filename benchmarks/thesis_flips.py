"""Combinations of bits to flip, most probable first, out of a heap as in section IV.B of the thesis. Compiled
by numba.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from benchmarks.compiled import compiled
from neardup.index.psm.flips import FLIP_SLOPE

if TYPE_CHECKING:
    import numpy.typing as npt

    Words: TypeAlias = npt.NDArray[np.uint64]
    Reals: TypeAlias = npt.NDArray[np.float64]
    Ints: TypeAlias = npt.NDArray[np.int64]
    Weights: TypeAlias = npt.NDArray[np.float32]

H = 3
MOST_PROBES = 4096
_HEAP = MOST_PROBES + 8
_ONE = np.uint64(1)


@compiled
def _push(costs: Reals, codes: Ints, size: int, cost: float, code: int) -> int:
    at = size
    while at > 0 and costs[(at - 1) >> 1] > cost:
        costs[at], codes[at] = costs[(at - 1) >> 1], codes[(at - 1) >> 1]
        at = (at - 1) >> 1
    costs[at], codes[at] = cost, code
    return size + 1


@compiled
def _pop(costs: Reals, codes: Ints, size: int) -> int:
    """Take out the top, which the caller has read; returns the new size."""
    size -= 1
    cost, code = costs[size], codes[size]
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and costs[child + 1] < costs[child]:
            child += 1
        if costs[child] >= cost:
            break
        costs[at], codes[at] = costs[child], codes[child]
        at = child
    costs[at], codes[at] = cost, code
    return size


@compiled
def _flip_odds(weights: Reals, max_distance: int, odds: Reals) -> None:
    """:func:`neardup.index.psm.flips.flip_odds` for what numba compiles."""
    squares = 0.0
    for j in range(64):
        squares += weights[j] * weights[j]
    scale = FLIP_SLOPE / ((max_distance + 1) * np.sqrt(squares)) if squares > 0.0 else 0.0
    for j in range(64):
        odds[j] = (1.0 + scale * abs(weights[j])) ** -8


@compiled
def _prepare(weights: Weights, p: int, calibrated: bool, work: Reals, masks: Words) -> None:
    """Costs of the p leading bits, ascending (work[0]), their masks, and a cost for each size (work[1]).

    The cost of a bit is -log of the probability to flip, eq. 4.5. With ``calibrated``, the cost is -log of
    the odds of this project under the condition that H bits differ in all.
    """
    costs, sizes, wide, odds = work[0], work[1], work[2], work[3]
    squares = 0.0
    for j in range(64):
        wide[j] = weights[j]
        squares += wide[j] * wide[j]
    norm = np.sqrt(squares) if squares > 0.0 else 1.0
    sizes[: H + 1] = 0.0
    if calibrated:
        _flip_odds(wide[:64], H, odds[:64])
        sums = work[4]
        sums[: H + 1] = 0.0
        sums[0] = 1.0
        for j in range(p, 64):
            for size in range(H, 0, -1):
                sums[size] += odds[j] * sums[size - 1]
        for size in range(H + 1):
            sizes[size] = -np.log(max(sums[H - size], 1e-300))
    for j in range(p):
        chance = odds[j] if calibrated else 1.0 - abs(wide[j]) / norm
        cost = -np.log(max(chance, 1e-300))
        at = j
        while at > 0 and costs[at - 1] > cost:
            costs[at], masks[at] = costs[at - 1], masks[at - 1]
            at -= 1
        costs[at], masks[at] = cost, _ONE << np.uint64(63 - j)


@compiled
def _offer(work: Reals, codes: Ints, size: int, p: int, length: int, i: int, j: int, k: int) -> int:
    """Push the combination of the ranks i < j < k (the last ``length`` of them), counted from 1."""
    if k > p:
        return size
    cost = work[1, length] + work[0, k - 1]
    if length > 1:
        cost += work[0, j - 1]
    if length > 2:
        cost += work[0, i - 1]
    return _push(work[5], codes, size, cost, (length << 24) | (i << 16) | (j << 8) | k)


@compiled
def start(weights: Weights, p: int, calibrated: bool, work: Reals, codes: Ints, masks: Words) -> int:
    """Prepare the heap with the most probable combination of each size; returns its size."""
    _prepare(weights, p, calibrated, work, masks)
    size = _offer(work, codes, 0, p, 1, 0, 0, 1)
    size = _offer(work, codes, size, p, 2, 0, 1, 2)
    return _offer(work, codes, size, p, 3, 1, 2, 3)


@compiled
def following(p: int, work: Reals, codes: Ints, masks: Words, size: int) -> tuple[np.uint64, int]:
    """The most probable combination left, as a mask of bits to flip, and the heap's new size
    (algorithm 2).
    """
    code = codes[0]
    length, i, j, k = code >> 24, (code >> 16) & 255, (code >> 8) & 255, code & 255
    size = _pop(work[5], codes, size)
    mask = masks[k - 1]
    if length > 1:
        mask |= masks[j - 1]
    if length > 2:
        mask |= masks[i - 1]
    size = _offer(work, codes, size, p, length, i, j, k + 1)
    if length > 1:
        if k - j == 2:
            size = _offer(work, codes, size, p, length, i, j + 1, k)
        elif k - j == 1 and length > 2 and j - i == 2:
            size = _offer(work, codes, size, p, length, i + 1, j, k)
    return mask, size


def scratch() -> tuple[Reals, Ints, Words]:
    """Memory of the heap: costs and sums, combinations, masks."""
    return np.zeros((6, _HEAP)), np.zeros(_HEAP, dtype=np.int64), np.zeros(64, dtype=np.uint64)
