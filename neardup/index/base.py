"""What every index offers: one interface, one kind of match, one way to count what a search cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from neardup.fingerprint.simhash import Fingerprint

LARGEST_MAX_DISTANCE = 16
"""Beyond this, unrelated pages match: word-frequency fingerprints of unrelated English pages are 17 to 24
bits apart.
"""


ANY_NUMBER = (1 << 63) - 1
"""Of matches: as many as there are."""


class Match(NamedTuple):
    """A stored fingerprint within ``max_distance`` of the one searched for."""

    row: int
    value: int
    distance: int


@dataclass(slots=True)
class ProbeStats:
    """What searching has cost so far.

    ``probes`` are prefixes looked up; ``empty_probes`` are prefixes under which nothing is stored.
    ``candidates`` are the stored fingerprints met in probes, whose whole distance was computed.
    """

    queries: int = 0
    probes: int = 0
    empty_probes: int = 0
    candidates: int = 0


class Index(Protocol):
    """Fingerprints with row numbers, searchable as soon as ``add`` returns."""

    max_distance: int

    @property
    def stats(self) -> ProbeStats:
        """What searching has cost so far."""

    @property
    def nbytes(self) -> int:
        """Bytes that the stored fingerprints take up, with their row numbers and all that finds them."""

    def __len__(self) -> int: ...

    def __contains__(self, value: int) -> bool:
        """Whether exactly this fingerprint is stored."""

    def add(self, value: int, row: int) -> None:
        """Store a fingerprint under a row number, 0 ≤ row < 2^32; the same value may be stored under several
        rows.
        """

    def extend(self, values: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64]) -> None:
        """Store many fingerprints at once; both arrays have shape (n,)."""

    def remove(self, value: int, row: int) -> bool:
        """Take a stored fingerprint out again; False if it is not there."""

    def find_first(self, query: Fingerprint) -> Match | None:
        """Any one match, or None (PSM_F)."""

    def find_all(self, query: Fingerprint) -> list[Match]:
        """All matches found, in no particular order (PSM_A)."""

    def match_table(self, query: Fingerprint, most: int = ANY_NUMBER) -> npt.NDArray[np.uint64]:
        """:meth:`find_all` as columns row, value, distance, shape (n, 3), ended when ``most`` are found."""


MOST_ROWS = 1 << 32
"""Row numbers are stored in four bytes."""


def check_rows(smallest: int, largest: int) -> None:
    """ValueError if an index cannot store these row numbers."""
    if smallest < 0 or largest >= MOST_ROWS:
        raise ValueError(f"row numbers must be 0 to {MOST_ROWS - 1}, not {smallest} to {largest}")


def check_max_distance(max_distance: int) -> int:
    """The given distance, if an index can work with it; else ConfigurationError."""
    if not hasattr(max_distance, "__index__") or not 0 <= max_distance <= LARGEST_MAX_DISTANCE:
        raise ConfigurationError(
            f"max_distance must be between 0 and {LARGEST_MAX_DISTANCE} of 64 bits, not {max_distance}"
        )
    return int(max_distance)
