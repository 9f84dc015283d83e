"""All pairs of sets with a resemblance of at least a cut, exactly: the truth that detection is measured by.

The method is prefix filtering over an inverted index (Chaudhuri, Ganti & Kaushik 2006; Bayardo, Ma & Srikant
2007). The elements of every set are put in one order, rarest first. Two sets with r(A, B) ≥ t then have one
of the first |A| − ⌈t·|A|⌉ + 1 elements of each in common. So only these first elements are indexed. Sets that
share one of these elements are compared in full.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_ROUNDING = 1e-6
"""Elements; products with the cut are off by less, for sets of up to a thousand million."""


class Pairs(NamedTuple):
    """Pairs of positions, ``first < second``, and their resemblance; shapes (m,)."""

    first: Ints
    second: Ints
    resemblance: npt.NDArray[np.float64]


def similar_pairs(sets: Sequence[npt.NDArray[np.uint64]], cut: float) -> Pairs:
    """All pairs of ``sets`` (each sorted, distinct) with a resemblance ≥ ``cut``; empty sets are in no pair.

    Raises ValueError unless 0 < ``cut`` ≤ 1.
    """
    if not 0.0 < cut <= 1.0:
        raise ValueError(f"cut must be above 0 and at most 1, not {cut}")
    sizes = np.array([len(one) for one in sets], dtype=np.int64)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    if order.size < 2:
        return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    sizes = sizes[order]
    starts = np.concatenate(([0], np.cumsum(sizes)))
    elements = _rarest_first([sets[i] for i in order], starts)
    prefixes = np.array(
        [size - max(1, math.ceil(cut * size - _ROUNDING)) + 1 for size in sizes.tolist()], dtype=np.int64
    )
    postings, places = _inverted(elements, starts, prefixes)
    first, second, shared = _join(elements, starts, prefixes, postings, places, cut)
    found = shared / (sizes[first] + sizes[second] - shared)
    kept = found >= cut
    a, b = order[first[kept]], order[second[kept]]
    return Pairs(np.minimum(a, b), np.maximum(a, b), found[kept])


def _rarest_first(sets: list[npt.NDArray[np.uint64]], starts: Ints) -> Ints:
    """The elements of all sets one after the other, as ranks from the rarest up, ascending within a set."""
    _, inverse, counts = np.unique(np.concatenate(sets), return_inverse=True, return_counts=True)
    rank = np.empty(counts.size, dtype=np.int64)
    rank[np.argsort(counts, kind="stable")] = np.arange(counts.size)
    elements = rank[inverse]
    for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        elements[start:end].sort()
    return elements


def _inverted(elements: Ints, starts: Ints, prefixes: Ints) -> tuple[Ints, Ints]:
    """Sets by the elements of their prefixes: those of element e are ``postings[places[e] : places[e + 1]]``,
    ascending.
    """
    owner = np.repeat(np.arange(prefixes.size), prefixes)
    within = np.arange(owner.size) - np.repeat(np.cumsum(prefixes) - prefixes, prefixes)
    indexed = elements[starts[owner] + within]
    by_element = np.argsort(indexed, kind="stable")
    places = np.searchsorted(indexed[by_element], np.arange(int(elements.max()) + 2))
    return owner[by_element], places


@compiled
def _join(
    elements: Ints, starts: Ints, prefixes: Ints, postings: Ints, places: Ints, cut: float
) -> tuple[Ints, Ints, Ints]:
    """Pairs (earlier, later) that share an element of both prefixes, and how many elements they
    share at all.
    """
    found = 0
    first = np.empty(1024, dtype=np.int64)
    second = np.empty(1024, dtype=np.int64)
    shared = np.empty(1024, dtype=np.int64)
    met = np.full(prefixes.size, -1, dtype=np.int64)
    for later in range(prefixes.size):
        size = starts[later + 1] - starts[later]
        for i in range(prefixes[later]):
            element = elements[starts[later] + i]
            for place in range(places[element], places[element + 1]):
                earlier = postings[place]
                if earlier >= later:
                    break
                smaller = starts[earlier + 1] - starts[earlier]
                # A little less than the cut, lest rounding lose a pair right at it; the caller compares
                # exactly.
                if met[earlier] == later or smaller < cut * size - _ROUNDING:
                    continue
                met[earlier] = later
                both = _shared(
                    elements, starts[earlier], starts[earlier + 1], starts[later], starts[later + 1]
                )
                if both < cut * (size + smaller - both) - _ROUNDING:
                    continue
                if found == first.size:
                    first = np.concatenate((first, first))
                    second = np.concatenate((second, second))
                    shared = np.concatenate((shared, shared))
                first[found], second[found], shared[found] = earlier, later, both
                found += 1
    return first[:found].copy(), second[:found].copy(), shared[:found].copy()


@compiled
def _shared(elements: Ints, a: int, a_end: int, b: int, b_end: int) -> int:
    both = 0
    while a < a_end and b < b_end:
        if elements[a] == elements[b]:
            both += 1
            a += 1
            b += 1
        elif elements[a] < elements[b]:
            a += 1
        else:
            b += 1
    return both
