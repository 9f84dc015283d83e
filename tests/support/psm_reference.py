"""The thesis's own enumeration, written as it is printed: the reference for the compiled one."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def following(combination: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Function *next*, algorithm 2, on an index vector (1-based, ascending).

    The printed loop condition p[l-j] - p[l-j+1] <= 2 is taken as the distance of the two, as figure 3 shows
    it.
    """
    size = len(combination)
    successors = [(*combination[:-1], combination[-1] + 1)]
    j = 1
    while j < size:
        gap = combination[size - j] - combination[size - j - 1]
        if gap > 2:
            break
        if gap == 2:
            moved = list(combination)
            moved[size - j - 1] += 1
            successors.append(tuple(moved))
            break
        j += 1
    return successors


def by_heap(
    costs: Sequence[float], largest: int, offsets: Sequence[float]
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Combinations of up to ``largest`` of the given bits (costs ascending) with their cost, cheapest first.

    ``offsets[s]`` is added to the cost of every combination of size s.
    """

    def cost(combination: tuple[int, ...]) -> float:
        return sum(costs[i - 1] for i in combination) + offsets[len(combination)]

    heap = [
        (cost(first), first)
        for first in (tuple(range(1, size + 1)) for size in range(1, min(largest, len(costs)) + 1))
    ]
    heapq.heapify(heap)
    while heap:
        cheapest = heapq.heappop(heap)
        yield cheapest
        for successor in following(cheapest[1]):
            if successor[-1] <= len(costs):
                heapq.heappush(heap, (cost(successor), successor))


def by_sorting(
    costs: Sequence[float], largest: int, offsets: Sequence[float]
) -> list[tuple[float, tuple[int, ...]]]:
    """The same, by writing down all combinations and sorting them."""
    everything = [
        (sum(costs[i - 1] for i in chosen) + offsets[size], chosen)
        for size in range(1, min(largest, len(costs)) + 1)
        for chosen in itertools.combinations(range(1, len(costs) + 1), size)
    ]
    return sorted(everything)
