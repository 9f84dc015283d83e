"""Shingles, resemblance and sketches of texts (Broder, Glassman, Manasse & Zweig 1997).

A text is the set of its w-shingles, S(D, w): runs of w words. The resemblance of two texts is r(A, B) = |S(A)
∩ S(B)| / |S(A) ∪ S(B)|. Resemblance is computed exactly from the sets, or estimated from sketches of a fixed
size.

Broder's sketch keeps the least element of the set under each of m random permutations. Two sketches agree at
a place with the probability r(A, B).

Here all m places are drawn together ("fast similarity sketching", Dahlgaard, Knudsen & Thorup 2017). In each
turn every element is hashed to one place. Places that are still empty go on to the next turn. The estimate is
as unbiased, at least as sharp, and takes time O(n + m log m) instead of O(n·m).

One bit is stored of a place (b-bit min-wise hashing with b = 1, Li & König 2010). For pages that are much
alike, many places of one bit say more than few of 64. The estimate from m bits has the standard deviation
√((1 − r²) / m).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup import native
from neardup.errors import ConfigurationError
from neardup.text import feature_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]
    Compact = npt.NDArray[np.uint64]
    Holders = npt.NDArray[np.int64]

WIDTH = 3
"""Words of a shingle by which pages are verified and evaluated."""

SIZE = 1024
"""Places of a sketch, unless said otherwise; 128 bytes."""

LARGEST_SIZE = 1 << 16
_WORD_BITS = 64


def shingle_set(words: Hashes, width: int = WIDTH) -> Hashes:
    """S(D, w) of a text given by the hashes of its words in order: sorted, distinct, shape (m,).

    A text of fewer words than ``width`` has one shingle, of all its words; one without words has none.
    """
    return np.unique(feature_kernels.shingles(words, width))


def resemblance(a: Hashes, b: Hashes) -> float:
    """r(A, B) of two sorted sets; of two empty ones 1."""
    both = np.intersect1d(a, b, assume_unique=True).size
    either = a.size + b.size - both
    return both / either if either else 1.0


def minwise(elements: Hashes, size: int = SIZE) -> Hashes:
    """The sketch ψ(D) of a non-empty set of hashes: its least element at each of ``size`` places; shape
    (size,).

    Raises ValueError if there are no elements or no places.
    """
    return draw(elements, size)[0]


def draw(elements: Hashes, size: int) -> tuple[Hashes, Holders]:
    """The sketch of :func:`minwise`, and the row of the element that holds each place, of equal ones the
    last; both of shape (size,).
    """
    if elements.size == 0 or size < 1:
        raise ValueError("a sketch needs at least one shingle and one place")
    return feature_kernels.draw(elements, size)


def estimate(a: Hashes, b: Hashes) -> float:
    """Resemblance estimated from two sketches: the share of places at which they agree, |ψ(A) ∩ ψ(B)| / m.

    Raises ValueError if they have not the same number of places.
    """
    if a.size != b.size:
        raise ValueError(f"sketches of {a.size} and {b.size} places cannot be compared")
    return float(np.count_nonzero(a == b)) / a.size


def check_size(size: int) -> int:
    """The given size, if compact sketches can have it; else ConfigurationError."""
    if not _WORD_BITS <= size <= LARGEST_SIZE or size % _WORD_BITS:
        raise ConfigurationError(
            f"sketch_size must be a multiple of {_WORD_BITS} from {_WORD_BITS} to {LARGEST_SIZE}, not {size}"
        )
    return size


@native.twin
def compact(sketch: Hashes) -> Compact:
    """The lowest bit of each place, shape (size // 64,), dtype uint64; ValueError if 64 does not divide the
    size.
    """
    if sketch.size % _WORD_BITS:
        raise ValueError(f"the number of places must be a multiple of {_WORD_BITS}, not {sketch.size}")
    return np.packbits((sketch & np.uint64(1)).astype(np.uint8)).view("<u8").astype(np.uint64)


@native.twin
def differing(
    stored: npt.NDArray[np.uint64], sketch: Compact, places: Compact | None = None
) -> npt.NDArray[np.int64]:
    """At how many places compact sketches, shape (n, size // 64), differ from one; shape (n,).

    ``places``: a bit for each place that counts; None: all do. Raises ValueError if the sizes differ.
    """
    if stored.shape[1] != sketch.size or (places is not None and places.size != sketch.size):
        raise ValueError("compact sketches of different sizes cannot be compared")
    bits = stored ^ sketch if places is None else (stored ^ sketch) & places
    return np.asarray(np.bitwise_count(bits).sum(axis=1, dtype=np.int64))


@native.twin
def compact_estimates(stored: npt.NDArray[np.uint64], sketch: Compact) -> npt.NDArray[np.float64]:
    """Resemblances to one compact sketch, estimated from others, shape (n, size // 64); shape (n,), each 0 to
    1.

    Bits of different elements agree half of the time, so a share p of equal bits stands for r = 2p − 1.
    """
    return np.asarray(np.maximum(0.0, 1.0 - 2.0 * differing(stored, sketch) / (sketch.size * _WORD_BITS)))


def paired_estimates(one: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Resemblances of pairs of compact sketches, both of shape (n, size // 64), estimated as by
    :func:`compact_estimates`; shape (n,).

    >>> sketches = np.array([[0], [0b1111]], dtype=np.uint64)
    >>> paired_estimates(sketches, sketches[::-1]).tolist()
    [0.875, 0.875]
    """
    differing_places = np.bitwise_count(one ^ other).sum(axis=1, dtype=np.int64)
    return np.asarray(np.maximum(0.0, 1.0 - 2.0 * differing_places / (one.shape[1] * _WORD_BITS)))


def most_differing(size: int, least: float) -> int:
    """At how many of ``size`` places two compact sketches may differ whose estimate is ``least`` or more, in
    (0, 1].

    >>> most_differing(1024, 0.83), most_differing(1024, 1.0)
    (87, 0)
    """
    most = int((1.0 - least) * size / 2.0) + 1
    while 1.0 - 2.0 * most / size < least:  # as the estimates are rounded, whatever the product is
        most -= 1
    return most


def to_bytes(sketch: Compact) -> bytes:
    """A compact sketch as it is stored, eight places a byte, the same on every machine."""
    return sketch.astype("<u8").tobytes()


def from_bytes(data: bytes) -> Compact:
    """The compact sketch that :func:`to_bytes` wrote."""
    return np.frombuffer(data, dtype="<u8").astype(np.uint64)


def many_from_bytes(data: Sequence[bytes], size: int) -> npt.NDArray[np.uint64]:
    """Compact sketches of ``size`` places, shape (n, size // 64). ValueError if one is of another size."""
    if other := {len(one) for one in data} - {size // 8}:
        raise ValueError(f"sketches of {sorted(other)} bytes among those of {size // 8}")
    return np.frombuffer(b"".join(data), dtype="<u8").astype(np.uint64).reshape(-1, size // _WORD_BITS)
