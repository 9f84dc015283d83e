"""How many duplicates each canonical page has, by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.detection.known_pages import NONE
from neardup.detection.pool import grown

if TYPE_CHECKING:
    import numpy.typing as npt


class ClusterSizes:
    """Duplicates of canonical pages; four bytes a page."""

    def __init__(self, canonical: npt.NDArray[np.int32] | None = None) -> None:
        """``canonical``: the canonical row of each known page, shape (n,)."""
        self._sizes = np.zeros(1024, dtype=np.int32)
        if canonical is not None and canonical.size:
            of = canonical[(canonical != NONE) & (canonical != np.arange(canonical.size))]
            self._sizes = np.bincount(of, minlength=canonical.size).astype(np.int32)

    def of(self, row: int) -> int:
        return int(self._sizes[row]) if row < self._sizes.size else 0

    def add(self, row: int, number: int) -> None:
        """Count so many duplicates more, or fewer, of a canonical page."""
        if row >= self._sizes.size:
            self._sizes = grown(self._sizes, row + 1)
        self._sizes[row] += number
