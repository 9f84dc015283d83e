"""Branches of the search of the PSM index that wait to be taken, most probable first, compiled by numba.

Branches wait in buckets by their probability. The thesis takes combinations of bits out of a heap (Sood,
section IV.B, algorithm 2). Buckets, four to a factor of two, order combinations nearly as well, and nothing
is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.compiled import inlined
from neardup.index.psm.child_probability import LEVELS
from neardup.index.psm.instructions import trailing_zeros
from neardup.index.psm.tree import CHILDREN, NODE, signed

if TYPE_CHECKING:
    import numpy.typing as npt

_ROOM = 1 << 12
BUDGET_BITS = 5
BUDGETS = 1 << BUDGET_BITS
BUDGET = BUDGETS - 1

_HEAD, _CODE, _WEIGHT, _NEXT, FIELDS = range(5)
"""The fields of a branch, in this order:

- the head that the branch leads to;
- the level of the head, and the number of bits left to flip;
- of a leaf its probability, of a node the product of the odds of the bits flipped so far (floats, by their
  bits);
- the next branch of the bucket, or the next free one.
"""

_BUCKETS = 64
"""As many as an integer has bits. All that is less probable than their 2^-16 is in the last one, in no order.
"""
_BUCKET_SHIFT = np.uint64(50)
"""A bucket by the exponent of the probability and two bits more: four to a factor of two."""
_FREE, _USED, _WAITING, FILLED, QUEUE = range(_BUCKETS, _BUCKETS + 5)
"""Parts of the queue behind the first branches of the buckets, in this order:

- the first free branch;
- branches ever used;
- branches that wait;
- which buckets are not empty, one bit each.

From ``QUEUE`` on the array is the caller's.
"""


def space() -> npt.NDArray[np.int64]:
    """Room for all branches that may wait."""
    return np.zeros((_ROOM + CHILDREN * LEVELS, FIELDS), dtype=np.int64)


@inlined
def clear(queue: npt.NDArray[np.int64]) -> None:
    """Let nothing wait."""
    queue[:_BUCKETS] = -1
    queue[_FREE], queue[_USED], queue[_WAITING], queue[FILLED] = -1, 0, 0, 0


@inlined
def push(
    head: np.uint64,
    level: int,
    budget: int,
    product: float,
    chance: float,
    branches: npt.NDArray[np.int64],
    queue: npt.NDArray[np.int64],
    bucket: int,
    top: int,
) -> None:
    """Put a branch into its bucket, which is ``bucket`` or a later one; ``top``: the exponent
    of bucket 0.
    """
    at = queue[_FREE]
    if at >= 0:
        queue[_FREE] = branches[at, _NEXT]
    else:
        at = queue[_USED]
        queue[_USED] += 1
    # When many wait, into the present bucket: what is taken next is then one of these, and going down like
    # that needs little room.
    to = bucket
    if queue[_WAITING] < _ROOM:
        to = max(bucket, min(top - exponent(chance), _BUCKETS - 1))
    branches[at, _HEAD] = np.int64(head)
    branches[at, _CODE] = (level << BUDGET_BITS) + budget
    branches[at, _WEIGHT] = np.float64(product if head & NODE else chance).view(np.int64)
    branches[at, _NEXT] = queue[to]
    queue[to] = at
    queue[FILLED] |= 1 << to
    queue[_WAITING] += 1


@inlined
def pop(branches: npt.NDArray[np.int64], queue: npt.NDArray[np.int64]) -> tuple[int, np.uint64, int, float]:
    """A branch out of the first bucket that has any (one has): that bucket, then head, code and weight."""
    filled = queue[FILLED]
    bucket = trailing_zeros(filled)
    at = queue[bucket]
    after = branches[at, _NEXT]
    queue[bucket] = after
    queue[FILLED] = filled & ~((1 << bucket) if after < 0 else 0)
    queue[_FREE], branches[at, _NEXT] = at, queue[_FREE]
    queue[_WAITING] -= 1
    head, weight = np.uint64(branches[at, _HEAD]), np.int64(branches[at, _WEIGHT]).view(np.float64)
    return bucket, head, int(branches[at, _CODE]), weight


@inlined
def exponent(chance: float) -> int:
    """Of a probability, in quarters."""
    return signed(np.float64(chance).view(np.uint64) >> _BUCKET_SHIFT)
