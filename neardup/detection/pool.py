"""Arrays that grow without being copied."""

from __future__ import annotations

import mmap
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_COPIED_SLOTS = 1 << 17
"""Up to here growing means copying: well below a millisecond."""
_RESERVED_SLOTS = 1 << 32
"""Address space that is then reserved: 32 GiB for 64-bit numbers, of which only what is written to becomes
memory.
"""
_NO_RESERVE = {"linux": 0x4000, "darwin": 0x40}
"""MAP_NORESERVE, which Python's mmap names from 3.13 on only."""


def grown(array: npt.NDArray[Any], slots: int) -> npt.NDArray[Any]:
    """An array of at least ``slots`` zeros, or twice as many as before, that begins with what ``array`` (1-d)
    holds.

    A large array that doubles is copied, and a crawl would wait for it. So beyond a hundred thousand slots,
    address space is reserved once, far more than is needed. The system provides memory when the memory is
    first touched. Some systems refuse to reserve address space, or limit it. Arrays then go on doubling by
    copies, with a pause of about a millisecond a megabyte.
    """
    slots = max(slots, 2 * len(array))
    larger: npt.NDArray[Any] | None = None
    if slots > _COPIED_SLOTS:
        larger = _reserved(max(slots, _RESERVED_SLOTS), array.dtype)
    if larger is None:
        larger = np.zeros(slots, dtype=array.dtype)
    larger[: len(array)] = array
    return larger


def _reserved(slots: int, dtype: np.dtype[Any]) -> npt.NDArray[Any] | None:
    """Zeros that take up address space only, until they are written to; None if the system does
    not do that.
    """
    try:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE[sys.platform]
        space = mmap.mmap(-1, slots * dtype.itemsize, flags=flags)
    except (AttributeError, KeyError, OSError, OverflowError, ValueError):
        return None
    return np.frombuffer(space, dtype=dtype)
