"""Hamming distance between 64-bit fingerprints (Sood, eq. 3.2) and the percentage shown for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

FINGERPRINT_BITS = 64


def distance(a: int, b: int) -> int:
    """Number of bits in which two fingerprints differ, 0 to 64.

    >>> distance(0b0101, 0b0110)
    2
    """
    return (a ^ b).bit_count()


def distances(values: npt.NDArray[np.uint64], value: int) -> npt.NDArray[np.uint8]:
    """Distance of each of ``values`` (shape (n,)) from ``value``; shape (n,)."""
    return np.asarray(np.bitwise_count(values ^ np.uint64(value)), dtype=np.uint8)


def within(a: int, b: int, max_distance: int) -> bool:
    """Whether two fingerprints match: distance ≤ ``max_distance``, inclusive (Sood, eq. 3.1: *at most h*)."""
    return distance(a, b) <= max_distance


def differing_bits(a: int, b: int) -> list[int]:
    """Positions of the bits in which two fingerprints differ, counted from the most significant bit.

    >>> differing_bits(1 << 63, 1)
    [0, 63]
    """
    difference = a ^ b
    return [bit for bit in range(FINGERPRINT_BITS) if difference >> (FINGERPRINT_BITS - 1 - bit) & 1]


def percentage(bits: int) -> float:
    """Duplication percentage of two pages whose fingerprints differ in ``bits`` bits.

    The share of equal bits, in percent: 100 for equal fingerprints, 95.3125 at distance 3. The percentage is
    a similarity of fingerprints, as in Khan & Ali (section III.I), not a share of copied words. Two unrelated
    pages have about 50, and English ones 62 to 73, because a few stop words decide many bits.

    >>> percentage(0), percentage(3)
    (100.0, 95.3125)
    """
    return 100.0 * (FINGERPRINT_BITS - bits) / FINGERPRINT_BITS
