"""The native table of keys against its Python twin: the same answers and the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.address import Address
from neardup.detection import key_table
from neardup.detection.snapshot import SnapshotError
from tests.support.places import PAGES
from tests.support.twins import python_twin

if TYPE_CHECKING:
    import numpy.typing as npt

    from neardup.detection.key_table import KeyTable

TWINS = [key_table.KeyTable, python_twin(key_table).KeyTable]
LAST_ROW = 2**31 - 2

keys = st.builds(
    # Two shards, and homes from the first to the last slot: keys meet.
    lambda shard, name, low, home: bytes([shard, 0, name, 128, 0, 0, 0, 128, low, 0, 0, 0, 0, 0, 0, home]),
    st.integers(0, 1), st.integers(0, 5), st.integers(0, 1), st.sampled_from([0, 7, 127, 128, 254, 255]),
)  # fmt: skip
rows = st.integers(0, LAST_ROW)
steps = st.one_of(
    st.tuples(st.just("put"), keys, rows),
    st.tuples(st.just("remove"), keys),
    st.tuples(st.just("put_many"), st.lists(st.tuples(keys, rows), max_size=40)),
    st.tuples(st.just("reserve"), st.integers(0, 30_000)),
    st.tuples(st.just("take_over"), st.booleans()),
)


def joined(table: KeyTable) -> dict[str, npt.NDArray[Any]]:
    return {name: np.concatenate(pieces) for name, pieces in table.parts().items()}


def taken_over(table: KeyTable, by: type[KeyTable], *, writeable: bool) -> KeyTable:
    parts = joined(table)
    for part in parts.values():
        part.flags.writeable = writeable
    return by(parts["key_ends"], parts["keys"], parts["key_rows"])


def assert_same(tables: list[KeyTable]) -> None:
    one, other = map(joined, tables)
    for name, part in one.items():
        assert part.dtype == other[name].dtype
        assert np.array_equal(part, other[name]), name


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(steps, max_size=40))
def test_native_and_twin_agree(history: list[tuple[Any, ...]]) -> None:
    tables = [twin() for twin in TWINS]
    model = dict[bytes, int]()
    for name, *given_ in history:
        if name == "take_over":
            # Each takes over what the other has made.
            tables = [
                taken_over(table, by, writeable=given_[0])
                for table, by in zip(reversed(tables), TWINS, strict=True)
            ]
        elif name == "put_many":
            model.update(given_[0])
            many = np.frombuffer(b"".join(key for key, _ in given_[0]), dtype=np.int64).reshape(-1, 2)
            for table in tables:
                table.put_many(many, np.array([row for _, row in given_[0]], dtype=np.int64))
        else:
            if name == "put":
                model[given_[0]] = given_[1]
            elif name == "remove":
                model.pop(given_[0], None)
            for table in tables:
                getattr(table, name)(*given_)
        assert_same(tables)
    for table in tables:
        assert len(table) == len(model)
        assert {key: table.find(key) for key in model} == model
        assert table.find(bytes([0, 0, 9]) + bytes(13)) == -1


def test_native_and_twin_agree_on_thousands_of_urls() -> None:
    names = [str(path.relative_to(PAGES)) for path in sorted(PAGES.rglob("*.html"))]
    known = [Address(f"http://a.example/{number}/{name}").key for number in range(200) for name in names]
    tables = [twin() for twin in TWINS]
    for table in tables:
        for row, key in enumerate(known):
            table.put(key, row)
        for key in known[::3]:
            table.remove(key)
        table.put_many(np.frombuffer(b"".join(known[:2000]), dtype=np.int64).reshape(-1, 2), np.arange(2000))

    assert_same(tables)
    expected = [row if row < 2000 or row % 3 else -1 for row in range(len(known))]
    assert [[table.find(key) for key in known] for table in tables] == [expected, expected]


@pytest.mark.parametrize("twin", TWINS)
class TestWhatIsRefused:
    @pytest.mark.parametrize("key", [b"", bytes(15), bytes(17)])
    def test_keys_of_another_length(self, twin: type[KeyTable], key: bytes) -> None:
        table = twin()
        for call in (table.find, table.remove, lambda key: table.put(key, 1)):
            with pytest.raises(ValueError, match=f"a key has 16 bytes, not {len(key)}"):
                call(key)

    @pytest.mark.parametrize("row", [-1, LAST_ROW + 1, 2**64])
    def test_rows_out_of_range(self, twin: type[KeyTable], row: int) -> None:
        table = twin()
        with pytest.raises(OverflowError):
            table.put(bytes(16), row)

        assert (len(table), table.find(bytes(16))) == (0, -1)

    @pytest.mark.parametrize("row", [-1, LAST_ROW + 1])
    def test_many_with_one_row_out_of_range(self, twin: type[KeyTable], row: int) -> None:
        table = twin()
        with pytest.raises(OverflowError):
            table.put_many(np.ones((3, 2), dtype=np.int64), np.array([5, 6, row]))

        assert len(table) == 0

    @pytest.mark.parametrize(
        ("many", "their_rows"),
        [
            (np.zeros((3, 2), dtype=np.int64), np.zeros(2, dtype=np.int64)),
            (np.zeros((2, 3), dtype=np.int64), np.zeros(2, dtype=np.int64)),
            (np.zeros(4, dtype=np.int64), np.zeros(2, dtype=np.int64)),
            (np.zeros((2, 2), dtype=np.int32), np.zeros(2, dtype=np.int64)),
            (np.zeros((2, 2), dtype=np.int64), np.zeros(2, dtype=np.float64)),
        ],
    )
    def test_many_of_another_shape_or_type(
        self, twin: type[KeyTable], many: npt.NDArray[Any], their_rows: npt.NDArray[Any]
    ) -> None:
        with pytest.raises(ValueError):  # noqa: PT011  # the two say it in different words
            twin().put_many(many, their_rows)

    @pytest.mark.parametrize(
        "changed",
        [
            {"key_ends": np.arange(1, 1025, dtype=np.int32) * 16},
            {"key_ends": np.arange(1, 1024, dtype=np.int64) * 16},
            {"key_ends": np.arange(1, 1025, dtype=np.int64) * 17},
            {"key_ends": np.append([32, 16], np.arange(3, 1025) * 16)},
            {"key_ends": np.append([-16], np.arange(2, 1025) * 16)},
            {"key_ends": np.append(np.full(1023, 2**40), 1024 * 16)},
            {"keys": np.zeros((1024 * 16, 2), dtype=np.float64)},
            {"keys": np.zeros((1024 * 16, 1), dtype=np.int64)},
            {"keys": np.zeros((1024 * 15, 2), dtype=np.int64)},
            {"key_rows": np.zeros(1024 * 16, dtype=np.int64)},
        ],
    )
    def test_arrays_that_are_no_table(
        self, twin: type[KeyTable], changed: dict[str, npt.NDArray[Any]]
    ) -> None:
        parts = {**joined(twin()), **changed}
        with pytest.raises(ValueError):  # noqa: PT011  # the two say it in different words
            twin(parts["key_ends"], parts["keys"], parts["key_rows"])

    @pytest.mark.parametrize("ends", [np.arange(1, 1025), np.append(np.zeros(1023, dtype=int), 1024)])
    def test_shards_without_an_empty_slot(self, twin: type[KeyTable], ends: npt.NDArray[np.int64]) -> None:
        with pytest.raises(SnapshotError, match="no empty slot"):
            twin(ends, np.zeros((1024, 2), dtype=np.int64), np.ones(1024, dtype=np.int32))


@pytest.mark.parametrize("twin", TWINS)
def test_what_was_given_out_outlives_the_table(twin: type[KeyTable]) -> None:
    table = twin()
    known = [  # all in one shard, which outgrows malloc's memory, too
        bytes([1, 0]) + bytes(12) + (number * 21 & 0xFFFF).to_bytes(2, "little") for number in range(3000)
    ]
    for row, key in enumerate(known[:2000]):
        table.put(key, row)
    parts = table.parts()
    for row, key in enumerate(known[2000:], 2000):
        table.put(key, row)
    del table

    again = twin(*(np.concatenate(parts[name]) for name in ("key_ends", "keys", "key_rows")))
    assert [again.find(key) for key in known[:2000]] == list(range(2000))
