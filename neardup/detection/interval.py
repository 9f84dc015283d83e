"""A share and its 95 % interval (Wilson 1927)."""

from __future__ import annotations

import math
from typing import NamedTuple

_Z = 1.959963984540054
"""Of a normal variable, 95 % lie within so many standard deviations."""


class Rate(NamedTuple):
    """A share, 0 to 1, and the bounds of its 95 % interval."""

    value: float
    low: float
    high: float


def wilson(count: float, total: int) -> Rate | None:
    """The share ``count`` / ``total`` with Wilson's interval; None if ``total`` is 0.

    >>> [round(x, 3) for x in wilson(9, 10)]
    [0.9, 0.596, 0.982]
    """
    if total == 0:
        return None
    share = count / total
    spread = _Z * math.sqrt(share * (1.0 - share) / total + _Z * _Z / (4.0 * total * total))
    centre = share + _Z * _Z / (2.0 * total)
    scale = 1.0 + _Z * _Z / total
    # Rounding must not put a share of 0 or 1 outside its own interval.
    return Rate(
        share,
        min(share, max(0.0, (centre - spread) / scale)),
        max(share, min(1.0, (centre + spread) / scale)),
    )
