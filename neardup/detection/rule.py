"""The rule: when two pages are near-duplicates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy.typing as npt

VERIFY = 0.83
"""Least resemblance of near-duplicates, unless said otherwise.

The resemblance is estimated from sketches of 1,024 places. With this value, next to none of the pages taken
resemble each other less than 0.8. That holds even among the template pages of the LLVM manual, thousands of
whose pairs have 0.75 to 0.8. Of those taken there, .996 have a resemblance of 0.8 or more (with 0.8 as the
least: .87, with 0.82: .98). None with 0.9 is refused (``neardup evaluate --pages``).
"""

MIN_FEATURES = 10
"""Distinct words that a page must have to be matched, unless said otherwise."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Two pages match if at most ``max_distance`` bits differ and their resemblance is at least ``verify``.

    With ``verify`` 0, the distance alone decides.
    """

    max_distance: int
    verify: float = VERIFY

    def __post_init__(self) -> None:
        if not 0.0 <= self.verify <= 1.0:
            raise ConfigurationError(f"verify must be a resemblance between 0 (off) and 1, not {self.verify}")

    def are_matches(
        self, distances: npt.NDArray[np.integer[Any]], estimates: npt.NDArray[np.float64]
    ) -> npt.NDArray[np.bool_]:
        """Whether pages at these distances, and of these estimated resemblances, match; all of shape (n,)."""
        near = np.asarray(distances <= self.max_distance)
        return near & (estimates >= self.verify) if self.verify else near
