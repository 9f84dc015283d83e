"""Bands: the parts of sketches and fingerprints that bring candidates together, and the recall of that.

A band is a run of w places of the one-bit sketch. Two pages are candidates if a band of theirs is equal. At
a place, two pages of resemblance r have the same element with the probability r. Other elements have the
same bit half of the time. So the bits are equal with the probability (1 + r) / 2. Of b disjoint bands, at
least one is equal with the probability

    1 − (1 − ((1 + r) / 2)^w)^b.

Wide bands bring few pages together by chance: a page meets n / 2^w others of n pages. So a band is so wide
that a page meets an eighth of a page at most, but no wider than the recall allows.

The fingerprint has bands of the same width beside those of the sketch. What these find comes on top.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neardup.errors import ConfigurationError
from neardup.fingerprint.hamming import FINGERPRINT_BITS

if TYPE_CHECKING:
    from collections.abc import Iterator

RECALL = 0.99
"""Share of the pairs at the least resemblance of the rule that bands find, unless said otherwise."""

DIGIT = 4
"""Places of a hexadecimal digit, which is what SQL takes bands from."""

_NARROWEST = 16
_SPARSE = 8
"""How many bands of a width there are to each page, at least, if the recall allows it."""


@dataclass(frozen=True, slots=True)
class Bands:
    """So many disjoint bands of ``width`` places each, of sketches of ``places`` places."""

    width: int
    number: int
    places: int

    def found(self, resemblance: float) -> float:
        """The probability that a band of two pages of this resemblance is equal (the module's docstring)."""
        return 1.0 - (1.0 - equal(resemblance, self.width)) ** self.number

    def starts(self) -> Iterator[int]:
        """Where each band begins in the hexadecimal digits of the sketch and, after them, of the
        fingerprint; from 0.
        """
        digits, of_sketch = self.width // DIGIT, self.places // DIGIT
        yield from range(0, self.number * digits, digits)
        yield from range(of_sketch, of_sketch + FINGERPRINT_BITS // DIGIT - digits + 1, digits)


def equal(resemblance: float, width: int) -> float:
    """The probability that a band of so many places is equal."""
    return float(((1.0 + resemblance) / 2.0) ** width)


def choose(pages: int, resemblance: float, recall: float, places: int) -> Bands:
    """The fewest bands that find the recall at this resemblance, of sketches of so many places.

    ConfigurationError if no bands do, or the recall is none.
    """
    if not 0.0 < recall < 1.0:
        raise ConfigurationError(f"recall must be a share above 0 and below 1, not {recall}")
    wanted = max(_NARROWEST, math.ceil(math.log2(_SPARSE * max(pages, 1))))
    for width in range(wanted + -wanted % DIGIT, _NARROWEST - 1, -DIGIT):
        missed = math.log1p(-equal(resemblance, width))
        number = math.ceil(math.log1p(-recall) / missed) if missed else places
        if number * width <= places:
            return Bands(width, number, places)
    most = Bands(_NARROWEST, places // _NARROWEST, places).found(resemblance)
    raise ConfigurationError(
        f"sketches of {places} places find at most {most:.6f} of the pairs of resemblance {resemblance}, not"
        f" {recall}; ask for a lower recall, or a greater resemblance"
    )
