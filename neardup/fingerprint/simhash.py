"""SimHash: a 64-bit fingerprint of a page and the weight of each of its bits (Charikar; Sood,
algorithm 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from neardup import native
from neardup.fingerprint.hamming import FINGERPRINT_BITS

if TYPE_CHECKING:
    import numpy.typing as npt

WEAK_BITS_STORED = 24
"""Bits whose weights are stored with a page; see :meth:`Fingerprint.pack_weak_bits`."""

_WEIGHT_STEPS = 255
_WEIGHT_RANGE = 0.25
"""Largest relative weight |W_j|/‖W‖ that the stored byte can hold; the mean over 64 bits is about 0.1."""
WEIGHT_STEP = _WEIGHT_RANGE / _WEIGHT_STEPS
"""Relative weight that one step of the stored byte stands for."""

_BLOCK = 4096
"""Features that NumPy adds at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Fingerprint:
    """A SimHash value with the bit weights it came from.

    ``value`` is unsigned, 64 bits. ``weights`` has shape (64,), dtype float64. ``weights[j]`` is W_j of eq.
    2.4 for the bit at position j, **counted from the most significant bit** as in the thesis. Bit j is 1
    where W_j > 0.
    """

    value: int
    weights: npt.NDArray[np.float64]

    def __post_init__(self) -> None:
        weights = self.weights
        # Compiled code reads as many, without a look at what they are.
        if (
            weights.shape != (FINGERPRINT_BITS,)
            or weights.dtype != np.float64
            or not weights.flags.c_contiguous
        ):
            raise ValueError(
                f"weights must be {FINGERPRINT_BITS} float64, not {weights.dtype}, shape {weights.shape},"
                f" strides {weights.strides}"
            )

    def relative_weights(self) -> npt.NDArray[np.float64]:
        """|W_j| / ‖W‖ (the fraction in eq. 4.5), shape (64,): near 0 for a bit that a small edit may flip."""
        norm = float(np.sqrt(self.weights @ self.weights))
        return np.abs(self.weights) / norm if norm > 0.0 else np.zeros(FINGERPRINT_BITS)

    def pack_weak_bits(self) -> bytes:
        """Positions and relative weights of the weakest bits, as stored with the page (48 bytes).

        First ``WEAK_BITS_STORED`` positions, weakest first, a byte each; then as many relative weights, a
        byte each, in steps of 1/1020 (0.25/255). Enough to search for the page's near-duplicates again
        without fetching it.
        """
        return pack_weakest(self.relative_weights())

    @classmethod
    def unpack(cls, value: int, weak_bits: bytes) -> Fingerprint:
        """The fingerprint of a stored page, its weights scaled to unit norm.

        The weights of the weak bits are as stored; all other bits have one and the same weight.

        Raises ValueError if ``weak_bits`` is not of the form that :meth:`pack_weak_bits` writes.
        """
        if len(weak_bits) != 2 * WEAK_BITS_STORED:
            raise ValueError(f"weak bits must be {2 * WEAK_BITS_STORED} bytes, not {len(weak_bits)}")
        data = np.frombuffer(weak_bits, dtype=np.uint8)
        positions, steps = data[:WEAK_BITS_STORED], data[WEAK_BITS_STORED:]
        if int(positions.max()) >= FINGERPRINT_BITS:
            raise ValueError(
                f"weak bits name bit {int(positions.max())} of a {FINGERPRINT_BITS}-bit fingerprint"
            )
        stored = steps * WEIGHT_STEP
        # The strong bits share what the weak ones leave of the unit norm, so that relative weights stay what
        # they were.
        rest = max(0.0, 1.0 - float(stored @ stored)) / (FINGERPRINT_BITS - WEAK_BITS_STORED)
        magnitudes = np.full(FINGERPRINT_BITS, math.sqrt(rest))
        magnitudes[positions] = stored
        bits = np.array([value >> (FINGERPRINT_BITS - 1 - j) & 1 for j in range(FINGERPRINT_BITS)])
        return cls(value, np.where(bits == 1, magnitudes, -magnitudes))


@native.twin
def pack_weakest(relative: npt.NDArray[np.float64]) -> bytes:
    """:meth:`Fingerprint.pack_weak_bits` of relative weights, shape (64,)."""
    weakest = np.argsort(relative, kind="stable")[:WEAK_BITS_STORED]
    steps = np.minimum(np.rint(relative[weakest] * (_WEIGHT_STEPS / _WEIGHT_RANGE)), _WEIGHT_STEPS)
    return weakest.astype(np.uint8).tobytes() + steps.astype(np.uint8).tobytes()


def fingerprint(hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.float64]) -> Fingerprint | None:
    """SimHash of hashed features and their weights (Sood, algorithm 1), both of shape (n,); None if there are
    none.
    """
    if hashes.size == 0:
        return None
    bit_weights = np.zeros(FINGERPRINT_BITS, dtype=np.float64)
    return Fingerprint(accumulate(hashes, weights, bit_weights), bit_weights)


@native.twin
def accumulate(
    hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.float64], bit_weights: npt.NDArray[np.float64]
) -> int:
    """Add each feature's weight to W_j where bit j of its hash is 1, else subtract it; then
    take the signs.

    Raises ValueError if there are not as many weights as hashes, or not 64 bit weights.
    """
    if weights.shape != hashes.shape or bit_weights.shape != (FINGERPRINT_BITS,):
        raise ValueError("each hash needs a weight, and there are 64 bit weights")
    for first in range(0, hashes.size, _BLOCK):
        some = hashes[first : first + _BLOCK].astype(">u8")
        bits = np.unpackbits(some.view(np.uint8)).reshape(-1, FINGERPRINT_BITS)
        signed = weights[first : first + _BLOCK, None] * (2.0 * bits - 1.0)
        # A sum down the columns adds row after row, so that it is rounded as in a loop.
        bit_weights[:] = np.concatenate((bit_weights[None, :], signed)).sum(axis=0)
    return int.from_bytes(np.packbits(bit_weights > 0.0).tobytes())
