"""The hot loops of batch mode.

A chunk of the file of fingerprints is grouped by p chosen bits. These bits are called the prefix, as in the
index, though they need not lead. Positions of bits count from the most significant one. The first of the
chosen bits becomes the highest of the prefix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup import native
from neardup.fingerprint.simhash import WEAK_BITS_STORED, WEIGHT_STEP
from neardup.index.psm import flips as flip_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Values = npt.NDArray[np.uint64]
    Positions = npt.NDArray[np.int64]
    Flips = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32]]
    """What to flip in the prefixes of queries: (starts, masks).

    Query i has ``masks[starts[i] : starts[i + 1]]``. If ``starts`` has two entries, all queries have the
    same.
    """

_ONE = np.uint64(1)


@native.twin
def plan_queries(
    weak_bits: npt.NDArray[np.uint8],
    bits: Positions,
    prefix_bits: int,
    max_distance: int,
    recall: float,
    most: int,
) -> Flips:
    """Plan the probes of queries (Sood, section V.B: before the search, not for every chunk).

    - ``weak_bits``: (b, 48), of :meth:`neardup.fingerprint.simhash.Fingerprint.pack_weak_bits`.
    - ``bits``: (64,), those of the prefix first.
    - ``prefix_bits``: 1 to 30.
    - ``max_distance``, ``recall``, ``most``: see :func:`neardup.index.psm.flips.plan_flips`.

    Each query flips nothing first, and has at most ``most`` flips. The native twin raises ValueError for
    arguments that are not of this form.
    """
    masks, starts = [], [0]
    for weights in _unpack_weights(weak_bits)[:, bits]:
        planned, _ = flip_kernels.plan_flips(
            np.ascontiguousarray(weights), prefix_bits, max_distance, recall, most
        )
        masks.append((planned >> np.uint64(64 - prefix_bits)).astype(np.uint32))
        starts.append(starts[-1] + len(planned))
    return np.array(starts), np.concatenate([np.empty(0, dtype=np.uint32), *masks])


def _unpack_weights(weak_bits: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Magnitudes of the bit weights, (b, 64), as ``Fingerprint.unpack`` has them."""
    stored = weak_bits[:, WEAK_BITS_STORED:] * WEIGHT_STEP
    # Accumulated, so that a rest is rounded after each subtraction as in a loop.
    rests = np.subtract.accumulate(np.column_stack([np.ones(len(stored)), stored * stored]), axis=1)
    strong = np.sqrt(np.maximum(0.0, rests[:, -1]) / (64 - WEAK_BITS_STORED))
    weights = np.repeat(strong[:, None], 64, axis=1)
    np.put_along_axis(weights, weak_bits[:, :WEAK_BITS_STORED].astype(np.int64), stored, axis=1)
    return weights


@native.twin
def choose_bits(sample: Values, allowed: int, number: int) -> Positions:
    """Choose the bits that tell ``sample`` (n,) apart best, one after the other: that which leaves the fewest
    pairs together.

    Single bits of real fingerprints are one-sided and go together, so that the leading p bits group them far
    less evenly than chosen ones. ``allowed`` is the mask of the bits to choose from; ``number`` is 1 or more.
    Returns positions. The native twin raises ValueError where fewer bits are allowed than wanted.

    The choice takes n × 64 × ``number`` steps at most.
    """
    left = [j for j in range(64) if allowed >> (63 - j) & 1]
    bits = {j: (sample >> np.uint64(63 - j) & _ONE).astype(np.int64) for j in left}
    imbalance = {j: abs(2 * int(bits[j].sum()) - len(sample)) for j in left}
    groups = np.zeros(len(sample), dtype=np.int64)

    def left_together(j: int) -> tuple[int, int]:
        sizes = np.bincount(2 * groups + bits[j])
        return int(sizes @ sizes), imbalance[j]

    chosen = []
    for _ in range(number):
        chosen.append(min(left, key=left_together))
        left.remove(chosen[-1])
        groups = np.unique(2 * groups + bits[chosen[-1]], return_inverse=True)[1]
    return np.array(chosen)


@native.twin
def prefixes_of(values: Values, bits: Positions) -> npt.NDArray[np.uint32]:
    """The chosen bits of each fingerprint, side by side; ``values`` (n,), ``bits`` (p,), p up to 30."""
    prefixes = np.zeros(len(values), dtype=np.uint64)
    for bit in bits:
        prefixes = prefixes << _ONE | (values >> np.uint64(63 - bit) & _ONE)
    return prefixes.astype(np.uint32)


@native.twin
class Table:
    """A chunk of the file of fingerprints, grouped by chosen bits.

    Grouping is all that a probe needs. Within a prefix the order is the file's.

    - ``values``: (n,), n below 2^32, in the file's order. Where there are no bits, they are kept, not copied.
    - ``bits``: (p,), p up to 30.
    - ``earlier``: mask and radius of each table, up to 16, that is probed before this one. Whoever differs
      within the mask in at most so many bits has been found by that table.

    The native twin raises ValueError for arguments that are not of this form.
    """

    def __init__(self, values: Values, bits: Positions, earlier: Sequence[tuple[int, int]] = ()) -> None:
        prefixes = prefixes_of(values, bits)
        self._rows = np.argsort(prefixes, kind="stable")
        self._chunk = values[self._rows]
        self._offsets = np.cumsum(np.bincount(prefixes + 1, minlength=(1 << len(bits)) + 1))
        self._bits, self._earlier = bits, earlier

    def __len__(self) -> int:
        return len(self._chunk)

    def probe(
        self, queries: Values, which: Positions, flips: Flips, max_distance: int, only_first: bool
    ) -> npt.NDArray[np.uint32]:
        """Look for near-duplicates of ``queries[which]`` under the prefixes that flips lead to.

        ``only_first``: the first match of a query in the order of its flips, then of the file (PSM_F), else
        all (PSM_A). Returns query (a number in ``queries``), row in the chunk and distance of each match,
        (m, 3).
        """
        starts, masks = flips
        prefixes = prefixes_of(queries, self._bits)
        found = [np.empty((0, 3), dtype=np.uint32)]
        for query in which:
            run = query if len(starts) > 2 else 0
            probed = prefixes[query] ^ masks[starts[run] : starts[run + 1]]
            runs = [np.arange(*self._offsets[at : at + 2]) for at in probed.tolist()]
            slots = np.concatenate([self._rows[:0], *runs])
            differing = self._chunk[slots] ^ queries[query]
            distances = np.bitwise_count(differing)
            matching = distances <= max_distance
            for mask, radius in self._earlier:
                matching &= np.bitwise_count(differing & np.uint64(mask)) > radius
            near = np.flatnonzero(matching)[: 1 if only_first else None]
            rows = self._rows[slots[near]]
            found.append(
                np.column_stack([np.full(len(near), query), rows, distances[near]]).astype(np.uint32)
            )
        return np.concatenate(found)
