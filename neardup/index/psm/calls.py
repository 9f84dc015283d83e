"""What Python calls for each page: a search of the PSM index with as little around it as can be, compiled by
numba.

numba looks up the type of each argument of each call, and takes every array apart. For the eleven arrays of a
search, that takes as long as some probes. So the addresses of the arrays stand in a table that is made once,
and the machine code itself is called.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from neardup.compiled import brief, inlined, machine_code
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.index.psm.instructions import array_at
from neardup.index.psm.search_queue import BUDGETS, FIELDS
from neardup.index.psm.tree import CHILDREN
from neardup.index.psm.walk import search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

Addresses: TypeAlias = "npt.NDArray[np.int64]"
Search: TypeAlias = "Callable[[Addresses, int, npt.NDArray[np.float64], int, float, int], int]"

_HEADS, _LOWS, _RESTS, _FREE, _STATE, _TABLES, _CHANCES, _BRANCHES, _QUEUE, _MATCHES, _ARRAYS = range(11)
_ADDRESS, _LENGTH = range(2)
_MATCH = 3


def addresses_of(arrays: Sequence[npt.NDArray[Any]]) -> Addresses:
    """Address and length of the arrays of an index, shape (10, 2), int64: heads, lows, rests, free, state,
    those of :func:`neardup.index.psm.walk.workspace`, matches; C-contiguous. Good for as long as the caller
    keeps them.
    """
    assert len(arrays) == _ARRAYS
    return np.array([(array.__array_interface__["data"][0], len(array)) for array in arrays], dtype=np.int64)


@cache
def searching() -> Search:
    """Machine code of :func:`neardup.index.psm.walk.search`, which takes :func:`addresses_of` the arrays
    instead of the arrays.

    The arguments are ``addresses``, ``value``, ``weights``, ``max_distance``, ``recall``, ``most``. A call
    keeps the GIL. Of ``weights`` not even the type is looked at: weights must be what a
    :class:`neardup.fingerprint.simhash.Fingerprint` has. Raises OverflowError if ``value`` is negative or has
    more than 64 bits.
    """
    return machine_code(_search, "int64(int64[:,::1], uint64, float64[::1], int64, float64, int64)")


@brief
def _search(
    addresses: Addresses,
    value: int,
    weights: npt.NDArray[np.float64],
    max_distance: int,
    recall: float,
    most: int,
) -> int:
    heads, lows, rests, _, state, tables, chances, branches, queue, matches = _arrays(addresses)
    return search(
        heads, lows, rests, state, np.uint64(value), weights, max_distance, recall, most,
        tables, chances, branches, queue, matches,
    )  # fmt: skip


@inlined
def _arrays(addresses: Addresses) -> tuple[Any, ...]:
    """The arrays again, with their lengths: compiled with bounds checks, what uses them checks."""
    at, n = addresses[:, _ADDRESS], addresses[:, _LENGTH]
    return (
        array_at(at[_HEADS], (n[_HEADS],), np.uint64),
        array_at(at[_LOWS], (n[_LOWS],), np.uint32),
        array_at(at[_RESTS], (n[_RESTS],), np.uint64),
        array_at(at[_FREE], (n[_FREE],), np.uint8),
        array_at(at[_STATE], (n[_STATE],), np.int64),
        array_at(at[_TABLES], (n[_TABLES], FINGERPRINT_BITS), np.float64),
        array_at(at[_CHANCES], (n[_CHANCES], BUDGETS, CHILDREN), np.float64),
        array_at(at[_BRANCHES], (n[_BRANCHES], FIELDS), np.int64),
        array_at(at[_QUEUE], (n[_QUEUE],), np.int64),
        array_at(at[_MATCHES], (n[_MATCHES], _MATCH), np.uint64),
    )
