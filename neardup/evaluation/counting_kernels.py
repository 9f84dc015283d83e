"""Loops over all pairs of pages (numba). Nothing is kept of a pair but a count, so memory does not grow with
their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import compiled
from neardup.index.psm.tree import popcount

if TYPE_CHECKING:
    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]
    Ints = npt.NDArray[np.int64]
    Classes = npt.NDArray[np.uint8]

RIGHT, WANTED, SAME_TEXT = 1, 2, 4
"""Bits of the class of a pair: right if reported, must be found, the same words in the same order."""


@compiled
def differing_bits(a: Hashes, b: Hashes) -> int:
    differing = 0
    for i in range(a.size):
        differing += popcount(a[i] ^ b[i])
    return differing


@compiled
def count_pairs(
    values: Hashes,
    sketches: Hashes,
    offsets: Ints,
    partners: Ints,
    classes: Classes,
    begin: int,
    end: int,
    histogram: Ints,
) -> None:
    """Count the pairs of the pages ``begin`` to ``end`` with every page before them.

    ``partners[offsets[i] : offsets[i + 1]]`` are those before i whose class is not 0, ``classes`` theirs.
    ``histogram``, shape (8, 65, sketch bits + 1), counts pairs by class, Hamming distance and differing bits
    of the sketches.
    """
    marks = np.zeros(values.size, dtype=np.uint8)
    for i in range(begin, end):
        for place in range(offsets[i], offsets[i + 1]):
            marks[partners[place]] = classes[place]
        for j in range(i):
            differing = differing_bits(sketches[i], sketches[j])
            histogram[marks[j], popcount(values[i] ^ values[j]), differing] += 1
        for place in range(offsets[i], offsets[i + 1]):
            marks[partners[place]] = 0


@compiled
def least_alike(
    values: Hashes, sketches: Hashes, offsets: Ints, partners: Ints, classes: Classes, max_distance: int,
    most_differing: int,
    elements: Hashes, starts: Ints, begin: int, end: int, resemblances: npt.NDArray[np.float64], others: Ints,
) -> None:  # fmt: skip
    """For each page ``begin`` to ``end``, of the pages before it with which it is reported and not right, the
    least alike.

    Writes the exact resemblance of that page to ``resemblances[i]``, and the number of that page to
    ``others[i]``. The sets are ``elements[starts[i] : starts[i + 1]]`` (sorted). Both values stay as they are
    where no page has a smaller resemblance.
    """
    marks = np.zeros(values.size, dtype=np.uint8)
    for i in range(begin, end):
        for place in range(offsets[i], offsets[i + 1]):
            marks[partners[place]] = classes[place]
        for j in range(i):
            if marks[j] & RIGHT or popcount(values[i] ^ values[j]) > max_distance:
                continue
            if differing_bits(sketches[i], sketches[j]) > most_differing:
                continue
            alike = _resemblance(elements[starts[i] : starts[i + 1]], elements[starts[j] : starts[j + 1]])
            if alike < resemblances[i]:
                resemblances[i], others[i] = alike, j
        for place in range(offsets[i], offsets[i + 1]):
            marks[partners[place]] = 0


@compiled
def _resemblance(a: Hashes, b: Hashes) -> float:
    both = 0
    i = 0
    j = 0
    while i < a.size and j < b.size:
        if a[i] == b[j]:
            both += 1
            i += 1
            j += 1
        elif a[i] < b[j]:
            i += 1
        else:
            j += 1
    return both / (a.size + b.size - both)
