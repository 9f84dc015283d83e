"""The sketches of canonical pages: what was put comes back, whatever was dropped, grown or loaded
meanwhile.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.detection import snapshot
from neardup.detection.known_bits import KnownBits
from neardup.detection.snapshot import SnapshotError
from neardup.errors import ConfigurationError

SIZE = 256


def drawn(seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 2**64, SIZE // 64, dtype=np.uint64)


def saved(known: KnownBits, pages: int, folder: Any) -> dict[str, Any]:
    snapshot.save(folder / "s", kind="test", meta={}, arrays=known.arrays(pages))
    return snapshot.load(folder / "s", kind="test").arrays


def loaded(arrays: dict[str, Any], pages: int) -> KnownBits:
    """The sketches of a snapshot; the pages that have none are duplicates of one that is not there."""
    canonical = np.full(pages, -1, dtype=np.int32)
    canonical[arrays["rows"]] = arrays["rows"]
    return KnownBits.from_arrays(SIZE, arrays, canonical)


def check(known: KnownBits, expected: dict[int, int], pages: int) -> None:
    rows = np.array(sorted(expected))
    assert known.arrays(pages)["rows"].tolist() == rows.tolist()
    assert known.of(rows).tolist() == [drawn(expected[row]).tolist() for row in rows.tolist()]


@pytest.mark.parametrize("seed", range(5))
def test_whatever_is_put_dropped_and_loaded(seed: int, tmp_path: Any) -> None:
    chance = random.Random(seed)
    known, expected = KnownBits(SIZE), dict[int, int]()
    for step in range(3000):
        row = chance.randrange(2500)
        if chance.random() < 0.3:
            known.drop(row)
            expected.pop(row, None)
        else:
            known.put(row, drawn(step))
            expected[row] = step
        if step % 1000 == 999:
            check(known, expected, 3000)
            known = loaded(saved(known, 3000, tmp_path), 3000)
            check(known, expected, 3000)


def test_many_pages_and_their_snapshot_take_no_time_of_what_is_only_reserved(tmp_path: Any) -> None:
    # From 131,072 slots on, address space for 2^32 of them is reserved: whoever looked at all of it took 20
    # seconds.
    known = KnownBits(SIZE)
    rows = (0, 5, 200_000, 262_149)
    for row in rows:
        known.put(row, drawn(row))

    arrays = saved(known, 262_150, tmp_path)

    assert arrays["rows"].tolist() == list(rows)
    check(loaded(arrays, 262_150), {row: row for row in rows}, 262_150)


def test_places_of_dropped_sketches_are_used_again() -> None:
    known = KnownBits(SIZE)
    for row in range(10_000):
        known.put(row, drawn(row))
        known.drop(row)

    assert known._used == 1


def test_what_is_mapped_already_is_not_copied(tmp_path: Any) -> None:
    known = KnownBits(SIZE)
    for row in range(100):
        known.put(row, drawn(row))
    known = loaded(saved(known, 100, tmp_path), 100)

    for row in range(100):
        known.put(row, drawn(row))
    assert known._used == 0
    known.put(7, drawn(1007))

    assert known._used == 1
    check(known, {row: row for row in range(100)} | {7: 1007}, 100)


@pytest.mark.parametrize(
    "broken",
    [
        {"rows": np.array([0, 3]), "words": np.zeros((2, 3), dtype=np.uint64)},
        {"rows": np.array([0, 3]), "words": np.zeros((1, 4), dtype=np.uint64)},
        {"rows": np.array([0, 10]), "words": np.zeros((2, 4), dtype=np.uint64)},
        {"rows": np.array([0]), "words": np.zeros((1, 4), dtype=np.uint64)},
        {"rows": np.array([0, 3, 4]), "words": np.zeros((3, 4), dtype=np.uint64)},
        {"rows": np.array([3, 0]), "words": np.zeros((2, 4), dtype=np.uint64)},
        {"rows": np.array([-1, 0]), "words": np.zeros((2, 4), dtype=np.uint64)},
        {"rows": np.array([0, 3]), "words": np.zeros((2, 4), dtype=np.int64)},
        {"rows": np.array([0.0, 3.0]), "words": np.zeros((2, 4), dtype=np.uint64)},
        {"rows": np.array([[0], [3]]), "words": np.zeros((2, 4), dtype=np.uint64)},
        {"rows": np.array([0, 2**63 - 1, -(2**63), -1, 5]), "words": np.zeros((5, 4), dtype=np.uint64)},
        {"rows": np.array([0, 3])},
        {},
    ],
)
def test_arrays_that_do_not_fit_are_refused(broken: dict[str, Any]) -> None:
    canonical = np.array([0, 0, -1, 3, 3, -1, -1, -1, -1, -1], dtype=np.int32)
    with pytest.raises(SnapshotError, match="sketches"):
        KnownBits.from_arrays(SIZE, broken, canonical)


def test_sizes() -> None:
    with pytest.raises(ConfigurationError, match="sketch_size must be a multiple of 64"):
        KnownBits(100)
    with pytest.raises(ValueError, match="a sketch of 64 places among those of 256"):
        KnownBits(SIZE).put(0, np.zeros(1, dtype=np.uint64))


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 3000), unique=True, max_size=40),  # put at once, or dropped
            st.booleans(),
        ),
        max_size=12,
    ),
    st.booleans(),
)
def test_many_at_once_are_as_one_by_one(steps: list[tuple[list[int], bool]], mapped: bool) -> None:
    known, plain, seed = KnownBits(SIZE), KnownBits(SIZE), 0
    if mapped:
        arrays: dict[str, Any] = {
            "rows": np.arange(0, 3000, 3),
            "words": np.array([drawn(row) for row in range(1000)]),
        }
        known, plain = loaded(arrays, 3000), loaded(arrays, 3000)
    for rows, dropped in steps:
        if dropped:
            for row in rows:
                known.drop(row)
                plain.drop(row)
            continue
        words = np.array([drawn(seed + row) for row in rows], dtype=np.uint64).reshape(-1, SIZE // 64)
        seed += len(rows) % 2  # what is put again may be what is there
        known.put_many(rows, words)
        for row, one in zip(rows, words, strict=True):
            plain.put(row, one)

    rows_left = plain.arrays(4000)["rows"]
    assert known.arrays(4000)["rows"].tolist() == rows_left.tolist()
    assert np.array_equal(known.of(rows_left), plain.of(rows_left))
    assert known._used == plain._used


def test_many_of_another_size_are_refused() -> None:
    known = KnownBits(SIZE)
    with pytest.raises(ValueError, match=r"2 sketches of 256 places, not an array \(2, 3\)"):
        known.put_many([0, 1], np.zeros((2, 3), dtype=np.uint64))

    assert not known.arrays(2)["rows"].size


@pytest.mark.parametrize("row", [1, 5000])
def test_pages_that_are_not_canonical_resemble_none(row: int) -> None:
    known = KnownBits(SIZE)
    known.put(0, drawn(0))

    assert known.of(np.array([0, row])).tolist() == [drawn(0).tolist(), [0] * (SIZE // 64)]
