from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.detection.key_table import KeyTable
from neardup.detection.known_digests import KnownDigests

BIG = 1 << 63


def assert_knows(known: KnownDigests, expected: dict[int, int]) -> None:
    """``expected``: digests by row."""
    for row in range(40):
        assert known.of(row) == expected.get(row, 0)
    for digest in {*expected.values(), 1, BIG}:
        rows = known.rows(digest)
        assert sorted(rows) == sorted(row for row, its in expected.items() if its == digest)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), max_size=60), st.integers(0, 60))
def test_puts_and_drops_in_any_order(steps: list[tuple[int, int]], restart: int) -> None:
    known, expected = KnownDigests(), dict[int, int]()
    for number, (row, digest) in enumerate(steps):
        if number == restart:
            known = KnownDigests.from_array(known.array(40).copy())
        if digest:
            known.put(row, BIG + digest)
            expected[row] = BIG + digest
        else:
            known.drop(row)
            expected.pop(row, None)
    assert_knows(known, expected)


def test_many_at_once_and_rows_far_apart() -> None:
    digests = np.random.default_rng(1).integers(1, 1 << 62, size=5000, dtype=np.uint64)
    digests[::7] = 0
    digests[::11] = 9

    known = KnownDigests.from_array(digests)
    known.put(1_000_000, 5)

    assert known.of(1_000_000) == 5
    assert known.rows(5) == [1_000_000]
    assert len(known.rows(9)) == 64  # all, but for so many
    for row in range(1, 5000, 3):
        if digests[row] not in (0, 9):
            assert known.rows(int(digests[row])) == [row]
    assert np.array_equal(known.array(5000), digests)


class TestRemoval:
    """From the table itself."""

    def test_keys_that_share_their_home_are_found_behind_a_removed_one(self) -> None:
        # Same shard and same home slot, the last but one: they go on at the table's beginning.
        keys = [bytes([7, 0, first]) + bytes(9) + b"\xff\xff\xff\xef" for first in range(60)]
        table = KeyTable()
        for row, key in enumerate(keys):
            table.put(key, row)
        left = dict(zip(keys, range(60), strict=True))
        for place in np.random.default_rng(2).permutation(60).tolist():
            table.remove(keys[place])
            del left[keys[place]]
            assert [table.find(key) for key in keys] == [left.get(key, -1) for key in keys]
        assert len(table) == 0

    def test_what_is_not_there(self) -> None:
        table = KeyTable()
        table.put(bytes(16), 3)
        table.remove(b"\x01" + bytes(15))
        table.remove(b"\x00\x01" + bytes(14))

        assert table.find(bytes(16)) == 3
        assert len(table) == 1

    def test_a_table_in_read_only_memory_is_copied(self) -> None:
        table = KeyTable()
        keys = [bytes([1, 0, number]) + bytes(13) for number in range(10)]
        for row, key in enumerate(keys):
            table.put(key, row)
        parts = {name: np.concatenate(pieces) for name, pieces in table.parts().items()}
        for part in parts.values():
            part.flags.writeable = False
        again = KeyTable(parts["key_ends"], parts["keys"], parts["key_rows"])

        again.remove(keys[4])

        assert [again.find(key) for key in keys] == [0, 1, 2, 3, -1, 5, 6, 7, 8, 9]
        assert table.find(keys[4]) == 4
