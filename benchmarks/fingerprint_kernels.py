"""Compiled part of :mod:`benchmarks.fingerprints`: draws documents, edits them, takes their SimHash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.compiled import compiled

if TYPE_CHECKING:
    import numpy.typing as npt

MOST_EDITS = 64
PLANES = 9
"""Bits of a counter of ones: documents must be shorter than 2^9 words, edits included."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)


@compiled
def mix(state: np.uint64) -> np.uint64:
    """Output function of splitmix64."""
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


@compiled
def start(seed: np.uint64, row: np.int64) -> np.uint64:
    """State of the random numbers of one row."""
    return mix(mix(seed + np.uint64(1)) + np.uint64(row) * np.uint64(0xD1342543DE82EF95))


@compiled
def mix_all(rows: npt.NDArray[np.int64], seed: np.uint64, masks: npt.NDArray[np.uint64]) -> None:
    for i in range(rows.size):
        masks[i] = mix(start(seed, rows[i]))


@compiled
def below(drawn: np.uint64, limit: int) -> np.int64:
    """The upper 32 random bits scaled to 0…limit-1; the lower ones remain for another choice."""
    return np.int64(((drawn >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@compiled
def draw(
    document: npt.NDArray[np.uint64], begin: int, end: int, state: np.uint64, share: float,
    everywhere: npt.NDArray[np.uint64], topic: npt.NDArray[np.uint64],
) -> None:  # fmt: skip
    """Words ``begin`` to ``end`` of a document; one memory access each."""
    threshold = np.uint64(share * 2.0**32)
    for k in range(begin, end):
        state += _STEP
        drawn = mix(state)
        if (drawn & _LOW) < threshold:
            document[k] = everywhere[below(drawn, everywhere.size)]
        else:
            document[k] = topic[below(drawn, topic.size)]


@compiled
def edit(
    document: npt.NDArray[np.uint64], length: int, rate: float, state: np.uint64, share: float,
    everywhere: npt.NDArray[np.uint64], topic: npt.NDArray[np.uint64],
) -> int:  # fmt: skip
    """Delete, replace or insert words; their order does not matter. The new length."""
    for _ in range(min(max(1, int(rate * length + 0.5)), MOST_EDITS)):
        state += _STEP
        kind = below(mix(state), 3)
        # The word after the document's last is the new one, until it is put where it belongs.
        draw(document, length, length + 1, state, share, everywhere, topic)
        state += _STEP + _STEP
        at = below(mix(state), length)
        if kind == 0 and length > 1:
            length -= 1
            document[at] = document[length]
        elif kind == 1:
            document[at] = document[length]
        else:
            length += 1
    return length


@compiled
def add3(a: np.uint64, b: np.uint64, c: np.uint64) -> tuple[np.uint64, np.uint64]:
    """64 full adders: sums and carries."""
    differ = a ^ b
    return differ ^ c, (a & b) | (differ & c)


@compiled
def count(document: npt.NDArray[np.uint64], length: int, planes: npt.NDArray[np.uint64]) -> None:
    """Bit b of 64 counters of ones into ``planes[b]``; there must be room for 3 words beyond the length."""
    planes[:] = 0
    ones, twos = planes[0], planes[1]
    document[length : length + 3] = 0
    # Four words at a time: full adders for bits 0 and 1, then a carry.
    for k in range(0, length, 4):
        ones, first_twos = add3(ones, document[k], document[k + 1])
        ones, more_twos = add3(ones, document[k + 2], document[k + 3])
        twos, carry = add3(twos, first_twos, more_twos)
        for b in range(2, PLANES):
            both = planes[b] & carry
            planes[b] ^= carry
            carry = both
    planes[0], planes[1] = ones, twos


@compiled
def majority(planes: npt.NDArray[np.uint64], length: int) -> np.uint64:
    """1 where ones > length // 2 (so where W_j > 0), compared from the highest plane down."""
    half = np.uint64(length // 2)
    more, same = np.uint64(0), ~np.uint64(0)
    for b in range(PLANES - 1, -1, -1):
        if (half >> np.uint64(b)) & np.uint64(1):
            same &= planes[b]
        else:
            more |= same & planes[b]
            same &= ~planes[b]
    return more


@compiled
def make(
    rows: npt.NDArray[np.int64], to: int, seed: np.uint64, edit_seed: np.uint64, edits: tuple[float, float],
    share: float,
    everywhere: npt.NDArray[np.uint64], tokens: npt.NDArray[np.uint64], offsets: npt.NDArray[np.int64],
    lengths: npt.NDArray[np.int64], values: npt.NDArray[np.uint64], weights: npt.NDArray[np.float32],
) -> None:  # fmt: skip
    """Documents ``rows`` into ``values`` (and ``weights``, if there is room) from position ``to`` on."""
    fewest, most = edits
    document = np.empty(1 << PLANES, dtype=np.uint64)
    planes = np.empty(PLANES, dtype=np.uint64)
    for i in range(rows.size):
        state = start(seed, rows[i])
        page = below(mix(state), lengths.size)
        topic = tokens[offsets[page] : offsets[page + 1]]
        state += _STEP
        length = lengths[below(mix(state), lengths.size)]
        draw(document, 0, length, state, share, everywhere, topic)
        if most > 0.0:
            # The edits have their own random numbers, so the document itself is what it was.
            state = start(edit_seed ^ seed << np.uint64(32), rows[i])
            rate = fewest + (most - fewest) * np.float64(mix(state) >> np.uint64(11)) * 2.0**-53
            length = edit(document, length, rate, state, share, everywhere, topic)
        count(document, length, planes)
        values[to + i] = majority(planes, length)
        if weights.shape[0] > 0:
            for j in range(64):
                ones = np.uint64(0)
                for b in range(PLANES):
                    ones |= ((planes[b] >> np.uint64(63 - j)) & np.uint64(1)) << np.uint64(b)
                weights[to + i, j] = np.float32(2 * np.int64(ones) - length)
