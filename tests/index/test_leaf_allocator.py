"""Lines given out to leaves and taken back: no line twice, none lost, and neighbours that are free are one
run.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from neardup.index.psm import leaf_allocator
from neardup.index.psm.leaf_allocator import BINS, FREE, LINE, STATE_SIZE, TOP

LINES = 1 << 14


class Ground:
    """Extents that are in use, and what the compiled code says of the lines between them."""

    def __init__(self) -> None:
        self.free = np.zeros(LINES, dtype=np.uint8)
        self.rests = np.zeros(LINES * LINE, dtype=np.uint64)
        self.state = np.zeros(STATE_SIZE, dtype=np.int64)
        self.used: dict[int, int] = {}

    def allocate(self, lines: int) -> None:
        line = leaf_allocator.allocate(self.free, self.rests, self.state, lines)
        self.used[line] = lines
        self.rests[line * LINE : (line + lines) * LINE] = ~np.uint64(0)  # what a leaf writes is its own

    def extend(self, line: int, lines: int) -> bool:
        end = line + self.used[line]
        fits = end == int(self.state[TOP]) or (min(self.used_from(end), int(self.state[TOP])) - end >= lines)
        assert leaf_allocator.extend(self.free, self.rests, self.state, end, lines) == fits
        if fits:
            self.rests[end * LINE : (end + lines) * LINE] = ~np.uint64(0)
            self.used[line] += lines
        return fits

    def used_from(self, line: int) -> int:
        return min((first for first in self.used if first >= line), default=LINES)

    def release(self, line: int, kept: int = 0) -> None:
        lines = self.used.pop(line)
        leaf_allocator.release(self.free, self.rests, self.state, line + kept, lines - kept)
        if kept:
            self.used[line] = kept

    def runs(self) -> list[tuple[int, int]]:
        """First line and length of each run, as they stand in the bins."""
        found = []
        for place in range(BINS, STATE_SIZE):
            line, before = int(self.state[place]) - 1, 0
            while line >= 0:
                length, after, previous = self.rests[line * LINE : line * LINE + 3].tolist()
                assert previous == before
                assert int(self.rests[(line + length) * LINE - 1]) == length
                assert leaf_allocator._bin_of(length) == place
                found.append((line, length))
                line, before = after - 1, line + 1
        return sorted(found)

    def check(self) -> None:
        top = int(self.state[TOP])
        taken = np.zeros(top, dtype=np.int64)
        for line, lines in self.used.items():
            taken[line : line + lines] += 1
        assert taken.max(initial=1) == 1, "no line is of two extents"
        assert (self.free[:top] == 1 - taken).all()
        assert not self.free[top:].any()
        assert self.state[FREE] == top - taken.sum()
        edges = np.flatnonzero(np.diff(np.concatenate([[0], self.free[:top], [0]])))
        assert self.runs() == [(int(a), int(b - a)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_extents_come_and_go(seed: int) -> None:
    chosen = random.Random(seed)
    ground = Ground()
    largest = chosen.choice([3, 30, 90, 400])
    for _ in range(400):
        step = chosen.random()
        if step < 0.45 or not ground.used:
            if ground.state[TOP] + largest < LINES:
                ground.allocate(chosen.randint(1, largest))
        elif step < 0.6:
            if ground.state[TOP] + largest < LINES:
                ground.extend(chosen.choice(list(ground.used)), chosen.randint(1, largest))
        elif step < 0.7:
            line = chosen.choice(list(ground.used))
            ground.release(line, kept=chosen.randrange(ground.used[line]))
        else:
            ground.release(chosen.choice(list(ground.used)))
        ground.check()
    for line in list(ground.used):
        ground.release(line)
    ground.check()
    assert ground.state[TOP] == ground.state[FREE] == 0


def test_the_shortest_run_that_is_long_enough_is_taken() -> None:
    ground = Ground()
    sizes = [9, 1, 5, 1, 7, 1, 200, 1, 90, 1]
    for lines in sizes:
        ground.allocate(lines)
    for line in [line for line, lines in ground.used.items() if lines > 1]:
        ground.release(line)
    before = int(ground.state[TOP])
    for wanted, at in ((6, 16), (5, 10), (8, 0), (80, 225), (150, 24)):
        ground.allocate(wanted)
        assert ground.used[at] == wanted
        ground.check()

    assert ground.state[TOP] == before
    ground.allocate(400)
    assert ground.state[TOP] == before + 400


@pytest.mark.parametrize("lines", [1, 2, 63, 64, 65, 79, 80, 127, 128, 1000, (1 << 31) - 1])
def test_longer_runs_never_have_an_earlier_bin(lines: int) -> None:
    assert BINS <= leaf_allocator._bin_of(lines) <= leaf_allocator._bin_of(lines + 1) < STATE_SIZE
    if lines <= 64:
        assert leaf_allocator._bin_of(lines) < leaf_allocator._bin_of(lines + 1)


def test_bins_are_made_again_from_what_is_free() -> None:
    ground = Ground()
    for lines in range(1, 40):
        ground.allocate(lines)
    for line in list(ground.used)[::2]:
        ground.release(line)
    runs = ground.runs()
    ground.state[BINS:] = 12345
    ground.rests[np.repeat(ground.free, LINE).astype(bool)] = 12345

    leaf_allocator.link_all(ground.free, ground.rests, ground.state)

    assert ground.runs() == runs
    ground.check()
