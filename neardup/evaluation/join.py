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

from neardup import native

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


class Indexed(NamedTuple):
    """n sets, the smallest first, and which of them have an element among their first.

    Elements are ranks, from the rarest up: ``elements[starts[i] : starts[i + 1]]``, ascending, is set i.
    ``prefixes[i]`` of them are indexed. ``postings[places[e] : places[e + 1]]``, ascending, are the sets that
    element e is indexed for. ``starts`` has shape (n + 1,), ``prefixes`` (n,).
    """

    elements: Ints
    starts: Ints
    prefixes: Ints
    postings: Ints
    places: Ints

    def of(self, number: int) -> Ints:
        return self.elements[self.starts[number] : self.starts[number + 1]]


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
    indexed = Indexed(elements, starts, prefixes, *_inverted(elements, starts, prefixes))
    first, second, shared = compare(indexed, cut).T
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
    """``postings`` and ``places`` of :class:`Indexed`."""
    owner = np.repeat(np.arange(prefixes.size), prefixes)
    within = np.arange(owner.size) - np.repeat(np.cumsum(prefixes) - prefixes, prefixes)
    indexed = elements[starts[owner] + within]
    by_element = np.argsort(indexed, kind="stable")
    places = np.searchsorted(indexed[by_element], np.arange(int(elements.max()) + 2))
    return owner[by_element], places


@native.twin
def compare(sets: Indexed, cut: float) -> Ints:
    """The pairs (earlier, later) that may reach the cut, and how many elements they share, shape (m, 3).

    In the order of the later set, and of the elements by which the earlier one is met. The bound is a little
    below the cut, lest rounding lose a pair right at the cut; the caller compares exactly. Raises ValueError
    or IndexError if the arrays are not what :class:`Indexed` says.
    """
    sizes = np.diff(sets.starts).tolist()
    has = np.zeros(sets.places.size, dtype=np.bool_)
    found = []
    for later, size in enumerate(sizes):
        mine = sets.of(later)
        has[mine] = True
        indexed = [
            sets.postings[sets.places[element] : sets.places[element + 1]]
            for element in mine[: sets.prefixes[later]]
        ]
        for earlier in dict.fromkeys(np.concatenate(indexed).tolist()):
            if earlier >= later or sizes[earlier] < cut * size - _ROUNDING:
                continue
            shared = int(np.count_nonzero(has[sets.of(earlier)]))
            if shared >= cut * (size + sizes[earlier] - shared) - _ROUNDING:
                found.append((earlier, later, shared))
        has[mine] = False
    return np.array(found, dtype=np.int64).reshape(-1, 3)
