"""The target ``index``: the native tree against its Python twin, and the exact indexes against the scan.

The first byte chooses the index, the second its distance, the third its recall or the size of its tail. The
rest is operations, of ``OPERATION`` bytes each.
"""

from __future__ import annotations

import contextlib
import functools
import pickle
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.errors import ConfigurationError
from neardup.fingerprint.simhash import Fingerprint
from neardup.index.base import ANY_NUMBER
from neardup.index.psm import flips, tree
from neardup.index.scan import LinearScan
from neardup.index.tables import MankuTables, MultiIndexHashing
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    import numpy.typing as npt

    Tables = MultiIndexHashing | MankuTables

OPERATION = struct.Struct("<BBHQ")
"""What is done, how many times or to which one, with which row, and which fingerprint."""

_MOST_STORED = 3000
_MOST_OPERATIONS = 100
_RECALLS = (0.98, 0.3, 1.0, 0.9999)
_NO_ROW = (1 << 32) - 1
_BITS = (1 << 64) - 1
_SCALES = (1.0, 0.01, 1e6, 1e-160, 1e160, 0.0)

_KINDS: tuple[Callable[[int, int], Tables], ...] = (
    lambda distance, tail: MultiIndexHashing(max_distance=distance, tail_entries=tail),
    lambda distance, tail: MultiIndexHashing(
        max_distance=distance, blocks=min(3, distance + 1), tail_entries=tail
    ),
    lambda distance, tail: MankuTables(max_distance=distance, choose=1, tail_entries=tail),
    lambda distance, tail: MankuTables(max_distance=distance, choose=2, tail_entries=tail),
)


class Operation(NamedTuple):
    what: int
    times: int
    row: int
    value: int


def compare(data: bytes) -> None:
    """Do the operations on two indexes, which must answer alike."""
    if len(data) < 3:
        return
    kind, distance, choice = data[0] % (2 * len(_KINDS)), data[1] % 17, data[2]
    pair = _Trees(distance, choice) if kind < len(_KINDS) else _Exact(kind - len(_KINDS), distance, choice)
    count = min((len(data) - 3) // OPERATION.size, _MOST_OPERATIONS)
    with np.errstate(all="ignore"):  # any weights: what overflows does so in both
        for fields in OPERATION.iter_unpack(data[3 : 3 + count * OPERATION.size]):
            pair.do(Operation(*fields))
    pair.check()


class _Pair:
    """Two indexes with the same fingerprints, which ``stored`` lists with their rows."""

    operations: tuple[Callable[[Any, Operation], None], ...]
    both: tuple[Any, Any]

    def __init__(self) -> None:
        self.stored: list[tuple[int, int]] = []

    def do(self, operation: Operation) -> None:
        self.operations[operation.what % len(self.operations)](self, operation)

    def check(self) -> None:
        raise NotImplementedError

    def add(self, operation: Operation) -> None:
        if len(self.stored) < _MOST_STORED:
            value, _ = self.fingerprint(operation)
            row = operation.row << (operation.times % 17)
            for each in self.both:
                each.add(value, row)
            self.stored.append((value, row))

    def remove(self, operation: Operation) -> None:
        """Take out one or, from a place on, many."""
        some = [self.fingerprint(operation)]
        if operation.row % 2:
            here = operation.value % (len(self.stored) + 1)
            some = self.stored[here : here + operation.times]
        for value, row in some:
            is_stored = (value, row) in self.stored
            answers = [each.remove(value, row) for each in self.both]
            assert answers == [is_stored] * 2, "another answer to a removal"
            if is_stored:
                self.stored.remove((value, row))

    def many(self, operation: Operation) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
        """Up to 1,275 fingerprints that differ in the bits of a mask of neighbouring ones; copies without
        a mask.
        """
        count = min(5 * operation.times, _MOST_STORED - len(self.stored))
        width, start = operation.row % 65, operation.row // 65 % 64
        mask = ((1 << width) - 1) << start & _BITS
        mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
        values = np.uint64(operation.value) ^ (mixed & np.uint64(mask))
        return values, np.arange(count, dtype=np.uint32) + np.uint32(operation.row)

    def fingerprint(self, operation: Operation) -> tuple[int, int]:
        """One that is stored, or else the operation's own."""
        if operation.times % 4 and self.stored:
            return self.stored[operation.value % len(self.stored)]
        return operation.value, operation.row

    def query(self, operation: Operation) -> Fingerprint:
        """Up to two bits from a fingerprint, and with any weights."""
        value, _ = self.fingerprint(operation)
        for bit in (operation.times, operation.row)[: operation.times // 64]:
            value ^= 1 << bit % 64
        return Fingerprint(value, _weights(operation))


class _Trees(_Pair):
    """The native tree and its twin."""

    def __init__(self, max_distance: int, choice: int) -> None:
        super().__init__()
        recall = _RECALLS[choice % len(_RECALLS)]
        self.ours = tree.PrefixTree(max_distance=max_distance, recall=recall)
        self.twin = _twin_of(tree).PrefixTree(max_distance=max_distance, recall=recall)
        self.both = self.ours, self.twin

    def add_many(self, operation: Operation) -> None:
        values, rows = self.many(operation)
        for each in self.both:
            each.add_many(values, rows)
        self.stored += zip(values.tolist(), rows.tolist(), strict=True)

    def find_first(self, operation: Operation) -> None:
        query = self.query(operation)
        first, other = (each.find_first(query) for each in self.both)
        assert first == other, "another first match"
        assert (query.value in self.ours) == (query.value in self.twin), "stored or not"

    def match_table(self, operation: Operation) -> None:
        query, most = self.query(operation), operation.row % 9 or ANY_NUMBER
        ours, twins = (each.match_table(query, most) for each in self.both)
        assert np.array_equal(ours, twins), "other matches"

    def match_block(self, operation: Operation) -> None:
        values, _ = self.many(operation._replace(times=operation.times % 4))
        weights = np.resize(_weights(operation), (len(values), 64))
        most, threshold = operation.row % 5 or ANY_NUMBER, (operation.times >> 2) / 512
        ours, twins = (each.match_block(values, weights, most, threshold) for each in self.both)
        assert np.array_equal(ours[0], twins[0]), "other matches of a block"
        assert np.array_equal(ours[1], twins[1]), "other costs of a block"
        assert np.array_equal(ours[2], twins[2], equal_nan=True), "another threshold of a block"
        for each, (_, costs, _) in zip(self.both, (ours, twins), strict=True):
            each.count_costs(costs)

    def nearest(self, operation: Operation) -> None:
        value, but = self.fingerprint(operation)
        answers = []
        for each in self.both:
            smallest, cursor = each.nearest_from(operation.value, value, operation.row + 1, but)
            while cursor is not None:
                nearer, cursor = each.nearest_from(cursor, value, operation.row + 1, but)
                smallest = min(smallest, nearer)
            answers.append(smallest)
        assert answers[0] == answers[1], "another distance of the nearest"

    def plan_flips(self, operation: Operation) -> None:
        weights = _weights(operation)
        arguments = operation.times % 65, self.ours.max_distance, _RECALLS[operation.row % len(_RECALLS)]
        most = operation.row // 4 % 300 + 1
        masks, chances = flips.plan_flips(weights, *arguments, most)
        assert len(masks) == len(chances) <= most, "too many combinations"
        if np.isfinite(weights).all():
            other_masks, other_chances = _twin_of(flips).plan_flips(weights, *arguments, most)
            assert np.array_equal(masks, other_masks), "other combinations"
            assert np.array_equal(chances, other_chances), "other chances"

    def refuse(self, operation: Operation) -> None:
        """Arguments of other kinds are errors, and nothing is stored."""
        values, rows = np.arange(5, dtype=np.uint64), np.arange(5, dtype=np.uint32)
        wrong: tuple[Callable[[], object], ...] = (
            lambda: self.ours.add_many(values, rows[1:]),
            lambda: self.ours.add_many(values.astype(np.int64), rows),
            lambda: self.ours.add_many(values[::2], rows[::2]),
            lambda: self.ours.add(operation.value + (1 << 64), 0),
            lambda: self.ours.add(operation.value, -1 - operation.row),
            lambda: self.ours.add(operation.value, _NO_ROW + 1 + operation.row),
            lambda: self.ours.add_many(values.reshape(-1, 1), rows),
            lambda: self.ours.match_table(Fingerprint(operation.value, np.zeros(operation.times % 64))),
            lambda: self.ours.match_table(Fingerprint(operation.value, np.zeros(64, dtype=np.float32))),
            lambda: self.ours.match_block(values, np.zeros((len(values) + 1, 64)), 1, 0.5),
            lambda: self.ours.match_block(values, np.zeros((len(values), 63)), 1, 0.5),
        )
        try:
            wrong[operation.row % len(wrong)]()
        except (ValueError, OverflowError, BufferError):
            return
        raise AssertionError("a wrong argument is taken")

    operations = (
        _Pair.add, add_many, add_many, _Pair.remove, find_first, match_table, match_block, nearest,
        plan_flips, refuse,
    )  # fmt: skip

    def check(self) -> None:
        (values, rows), (other_values, other_rows) = (each.contents() for each in self.both)
        assert np.array_equal(values, other_values), "other fingerprints"
        assert np.array_equal(rows, other_rows), "other rows"
        assert sorted(zip(values.tolist(), rows.tolist(), strict=True)) == sorted(self.stored), (
            "not what is stored"
        )
        assert len(self.ours) == len(self.twin) == len(self.stored), "another number of fingerprints"
        assert self.ours.stats == self.twin.stats, "other costs"
        assert np.array_equal(self.ours.learned, self.twin.learned, equal_nan=True), "another lesson"


class _Exact(_Pair):
    """An exact index and the linear scan."""

    def __init__(self, kind: int, max_distance: int, choice: int) -> None:
        super().__init__()
        self.index = _KINDS[kind](max_distance, choice % 64 + 1)
        self.scan = LinearScan(max_distance=max_distance)
        self.both = self.index, self.scan

    def extend(self, operation: Operation) -> None:
        values, rows = self.many(operation)
        for each in self.both:
            each.extend(values, rows.astype(np.int64))
        self.stored += zip(values.tolist(), rows.tolist(), strict=True)

    def find_first(self, operation: Operation) -> None:
        query = self.query(operation)
        first = self.index.find_first(query)
        exact = self.scan.find_all(query)
        assert first in exact if exact else first is None, "no first match"
        assert (query.value in self.index) == (query.value in self.scan), "stored or not"

    def find_all(self, operation: Operation) -> None:
        query = self.query(operation)
        assert sorted(self.index.find_all(query)) == sorted(self.scan.find_all(query)), "other matches"

    def copy(self, operation: Operation) -> None:
        # A run under atheris once had KeyError '__import__' from pickle; its input did not have it again.
        # CPython raises that error where the builtins of the current frame lack __import__, as those of the
        # __new__ of a named tuple do. No copy calls pickle from such a frame. What did is not known.
        self.index = pickle.loads(pickle.dumps(self.index))
        self.both = self.index, self.scan

    def refuse(self, operation: Operation) -> None:
        for row in (_NO_ROW + operation.row, -1 - operation.row):
            with contextlib.suppress(ConfigurationError):
                self.index.add(operation.value, row)
                raise AssertionError("a wrong row is taken")

    operations = (_Pair.add, extend, extend, _Pair.remove, find_first, find_all, copy, refuse)

    def check(self) -> None:
        assert len(self.index) == len(self.scan) == len(self.stored), "another number of fingerprints"
        for value, row in self.stored[:: len(self.stored) // 20 + 1]:
            found = self.index.find_all(Fingerprint(value, np.zeros(64)))
            assert (row, value, 0) in found, "a fingerprint is lost"


def _weights(operation: Operation) -> npt.NDArray[np.float64]:
    """Of some size, and some of them any numbers that eight bytes can be."""
    scale = _SCALES[operation.row % len(_SCALES)]
    weights = np.random.default_rng(operation.row).normal(size=64) * scale
    if operation.times % 3 == 0:
        weights[operation.times // 3 % 64 :: operation.row % 13 + 1] = struct.unpack(
            "<d", operation.value.to_bytes(8, "little")
        )[0]
    return weights


@functools.cache
def _twin_of(module: ModuleType) -> ModuleType:
    return python_twin(module)


def _made(head: bytes, *operations: tuple[int, int, int, int]) -> bytes:
    return head + b"".join(OPERATION.pack(*operation) for operation in operations)


def seeds() -> Iterator[bytes]:
    """Each index growing, searched and shrinking; fingerprints that are near, dense, the same and at ends."""
    varied = ((2, 8), (130, 3), (241, 12))
    for kind in range(2 * len(_KINDS)):
        for distance, choice in ((0, 1), (3, 0), (8, 4), (16, 2)):
            yield _made(bytes([kind, distance, choice]))
            yield _made(
                bytes([kind, distance, choice]),
                (1, 250, 64, 0), (1, 200, 20, 1 << 63), (1, 100, 0, 5), (1, 20, 30 + 65 * 34, _BITS),
                *((what, count, row, 7**20) for what in range(10) for count, row in varied),
                (3, 255, 1, 9), (3, 255, 1, 300), (4, 1, 6, 3), (5, 1, 7, 400), (6, 0, 0, 2), (8, 3, 2, 1),
            )  # fmt: skip
        yield _made(bytes([kind, 3, 0]), *((0, 0, row, row * 7**19 % (1 << 64)) for row in range(90)))
        yield _made(
            bytes([kind, 3, 0]),
            (1, 255, 4, 0), (1, 255, 0, 0), *((4 + n % 3, 3 * n, 1, 0x7FF8 << 48) for n in range(12)),
        )  # fmt: skip
