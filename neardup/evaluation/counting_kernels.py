"""Loops over all pairs of pages. Nothing is kept of a pair but a count, so memory does not grow with their
number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup import native
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.evaluation.pages import Prints

    Hashes = npt.NDArray[np.uint64]
    Ints = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]
    Classes = npt.NDArray[np.uint8]

RIGHT, WANTED, SAME_TEXT = 1, 2, 4
"""Bits of the class of a pair: right if reported, must be found, the same words in the same order."""

_CLASSES = 8
"""All combinations of these bits."""

_NONE = 2.0
"""Above all resemblances."""


class Truth(NamedTuple):
    """Pairs that are right or wanted, by their later page.

    ``partners[offsets[i] : offsets[i + 1]]`` are the pages before page i that are paired with page i; shapes
    (n + 1,) and (m,). ``classes`` and ``resemblances`` are those of the pairs; shapes (m,).
    """

    offsets: Ints
    partners: Ints
    classes: Classes
    resemblances: Floats

    def of(self, page: int) -> Classes:
        """The classes of the pairs of a page with each page before it, shape (page,); 0 for other pairs."""
        its = slice(self.offsets[page], self.offsets[page + 1])
        made = np.zeros(page, dtype=np.uint8)
        made[self.partners[its]] = self.classes[its]
        return made


class Sets(NamedTuple):
    """Sets of hashes, one after the other: ``elements[starts[i] : starts[i + 1]]``, sorted and distinct."""

    elements: Hashes
    starts: Ints

    def of(self, page: int) -> Hashes:
        return self.elements[self.starts[page] : self.starts[page + 1]]


@native.twin
def count_pairs(prints: Prints, truth: Truth, begin: int, end: int) -> Ints:
    """How many pairs of the pages ``begin`` to ``end`` with a page before them there are of each kind.

    Shape (8, 65, sketch bits + 1): by class, Hamming distance and differing bits of the sketches. Raises
    ValueError or IndexError if prints and truth are not of the same pages.
    """
    counts = np.zeros((_CLASSES, 65, 64 * prints.sketches.shape[1] + 1), dtype=np.int64)
    for page in range(begin, end):
        distances, differing = _differences(prints, page)
        np.add.at(counts, (truth.of(page), distances, differing), 1)
    return counts


@native.twin
def least_alike(
    prints: Prints, truth: Truth, sets: Sets, begin: int, end: int, *, max_distance: int, most_differing: int
) -> tuple[Floats, Ints]:
    """For each page ``begin`` to ``end``, of the pages before it with which it is reported and not right, the
    least alike.

    Gives the exact resemblances to these pages, and their numbers; shapes (end − begin,). 2.0 and −1 stand
    where there is no such page. Of pages that are equally alike the first is taken. A pair is reported if no
    more than ``max_distance`` bits of the fingerprints and ``most_differing`` bits of the sketches differ.
    Raises ValueError or IndexError if prints, truth and sets are not of the same pages.
    """
    resemblances = np.full(end - begin, _NONE)
    others = np.full(end - begin, -1, dtype=np.int64)
    for page in range(begin, end):
        distances, differing = _differences(prints, page)
        reported = (distances <= max_distance) & (differing <= most_differing)
        for other in np.flatnonzero(reported & (truth.of(page) & RIGHT == 0)).tolist():
            alike = sketch.resemblance(sets.of(page), sets.of(other))
            if alike < resemblances[page - begin]:
                resemblances[page - begin], others[page - begin] = alike, other
    return resemblances, others


def _differences(prints: Prints, page: int) -> tuple[Ints, Ints]:
    """Differing bits of the fingerprints and of the sketches of a page and each before it, shapes (page,)."""
    distances = np.bitwise_count(prints.values[:page] ^ prints.values[page])
    differing = np.bitwise_count(prints.sketches[:page] ^ prints.sketches[page])
    return distances.astype(np.int64), differing.sum(axis=1, dtype=np.int64)
