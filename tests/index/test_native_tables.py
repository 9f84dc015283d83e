"""The native core sorts, finds and counts as the Python module that it serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import native
from neardup.fingerprint import simhash
from neardup.fingerprint.simhash import Fingerprint
from neardup.index import table_kernels, tables
from neardup.index.table_kernels import DEAD, Key
from neardup.text.features import Features
from neardup.text.visible_text import text_of_bytes
from tests.support.real_pages import real_pages
from tests.support.twins import python_twin

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from neardup.index.tables import MankuTables, MultiIndexHashing

    Tables = MultiIndexHashing | MankuTables

pytestmark = pytest.mark.skipif(not native.available, reason=f"without the native core ({native.reason})")

TWIN = python_twin(table_kernels)
PYTHON = python_twin(tables)
PYTHON.kernels = TWIN  # type: ignore[attr-defined]

KINDS: dict[str, Callable[[Any, int], Tables]] = {
    "planned": lambda of, distance: of.MultiIndexHashing(max_distance=distance, tail_entries=8),
    "two blocks": lambda of, distance: of.MultiIndexHashing(
        max_distance=distance, blocks=min(2, distance + 1), tail_entries=8
    ),
    "manku 1": lambda of, distance: of.MankuTables(max_distance=distance, choose=1, tail_entries=8),
    "manku 2": lambda of, distance: of.MankuTables(max_distance=distance, choose=2, tail_entries=8),
}


@pytest.fixture(scope="module")
def real() -> npt.NDArray[np.uint64]:
    """Fingerprints of the real pages, shape (n,)."""
    found = []
    for path in real_pages():
        _, hashes, weights, _ = Features().extract(text_of_bytes(path.read_bytes()))
        made = simhash.fingerprint(hashes, weights)
        assert made is not None
        found.append(made.value)
    return np.array(found, dtype=np.uint64)


def copies(values: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.uint64]:
    """So many, each up to three bits from one of the values."""
    rng = np.random.default_rng(4)
    made = np.resize(values, size)
    for _ in range(3):
        made = made ^ (np.uint64(1) << rng.integers(0, 64, size, dtype=np.uint64))
    return made


def assert_same(ours: Any, other: Any) -> None:
    assert ours.first == other.first
    assert np.array_equal(ours.matches, other.matches)
    for count in ("probes", "empty_probes", "candidates"):
        assert getattr(ours, count) == getattr(other, count)


@pytest.mark.parametrize("max_distance", [0, 3, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", list(KINDS))
def test_indexes_of_real_fingerprints(kind: str, max_distance: int, real: npt.NDArray[np.uint64]) -> None:
    stored = copies(real, 4000)
    indexes = [KINDS[kind](of, max_distance) for of in (tables, PYTHON)]

    for index in indexes:
        for start, end in ((0, 3000), (3000, 3900), (3900, 3995), (3995, 4000)):
            index.extend(stored[start:end], np.arange(start, end))
        assert all(index.remove(int(stored[row]), row) for row in range(0, 4000, 5))

    ours, other = indexes
    for value in [*real[:60], *stored[:60]]:
        query = Fingerprint(int(value), np.zeros(64))
        assert ours.find_first(query) == other.find_first(query)
        assert ours.find_all(query) == other.find_all(query)
        assert np.array_equal(ours.match_table(query, 5), other.match_table(query, 5))
        assert ours.stats == other.stats
    assert (len(ours), ours.nbytes) == (len(other), other.nbytes)
    assert ours.stats.candidates > 1000


def test_more_runs_than_are_fetched_at_once(real: npt.NDArray[np.uint64]) -> None:
    made_by = [Key(0, 12, 64, 0, 3, tables.flips(12, 3)), Key(20, 9, 40, 4, 2, tables.flips(13, 2))]
    sources = [(copies(real, 4000), np.arange(4000, dtype=np.uint32))]
    for value in real[:60]:
        searches = [of.Search(int(value), 5, every=True) for of in (table_kernels, TWIN)]
        for search, of in zip(searches, (table_kernels, TWIN), strict=True):
            search.probe([of.Table(key, sources) for key in made_by])
        assert_same(*searches)
        assert searches[0].probes == 299 + 92
        assert len(searches[0].matches) > 10


@st.composite
def keys(draw: st.DrawFn) -> Key:
    bits, bits_2, radius = draw(st.integers(0, 9)), draw(st.integers(0, 3)), draw(st.integers(0, 3))
    start, start_2 = draw(st.integers(0, 64 - bits)), draw(st.integers(0, 64 - bits_2))
    return Key(start, bits, start_2, bits_2, radius, tables.flips(bits + bits_2, radius))


ENTRIES = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, DEAD)), max_size=300)


@given(st.lists(keys(), max_size=4), st.lists(ENTRIES, min_size=1, max_size=3), st.data())
def test_any_tables(made_by: list[Key], entries: list[list[tuple[int, int]]], data: st.DataObject) -> None:
    # All near one number, and each a few times, so that runs are long and tables find the same.
    near = [[(value & 0x8000_4000_2000_1003, row % 9 or row) for value, row in source] for source in entries]
    sources = [
        (np.array([v for v, _ in each], dtype=np.uint64), np.array([r for _, r in each], dtype=np.uint32))
        for each in near
    ]
    ours = [table_kernels.Table(key, sources) for key in made_by]
    other = [TWIN.Table(key, sources) for key in made_by]
    for value, row in data.draw(st.lists(st.sampled_from([*near[0], *near[-1], (7, 1)]), max_size=9)):
        for one, two in zip(ours, other, strict=True):
            assert one.bury(value, row) == two.bury(value, row)
            assert not one.bury(value, DEAD)
            assert (value in one) == (value in two)
    for one, two in zip(ours, other, strict=True):
        assert np.array_equal(one.values, two.values)
        assert np.array_equal(one.rows, two.rows)
        assert one.nbytes == two.nbytes

    newest = np.array(near[0], dtype=np.uint64).reshape(-1, 2).T.copy()
    query, max_distance = (
        data.draw(st.sampled_from([0, 0x8000_4000_0000_0000, 2**64 - 1])),
        data.draw(st.integers(0, 64)),
    )
    for every in (True, False):
        searches = [of.Search(query, max_distance, every=every) for of in (table_kernels, TWIN)]
        for search, probed in zip(searches, (ours, other), strict=True):
            search.scan(newest, newest.shape[1])
            search.probe(probed)
            search.probe(probed)
        assert_same(*searches)


KEY: Any = Key(0, 2, 62, 1, 0, tables.flips(3, 1))
VALUES, ROWS = np.arange(5, dtype=np.uint64), np.arange(5, dtype=np.uint32)


@pytest.mark.parametrize(
    ("key", "sources", "error"),
    [
        (KEY._replace(start=-1), [(VALUES, ROWS)], "2 bits from bit -1 on"),
        (KEY._replace(start=63), [(VALUES, ROWS)], "2 bits from bit 63 on"),
        (KEY._replace(bits_2=-1), [(VALUES, ROWS)], "-1 after them"),
        (KEY._replace(bits=1), [(VALUES, ROWS)], r"1 \+ 1 bits has all"),
        (KEY._replace(bits=32), [(VALUES, ROWS)], "32 bits from bit 0 on, and 1 after them"),
        (KEY._replace(start=2**31 - 1), [(VALUES, ROWS)], "2 bits from bit 2147483647 on"),
        (KEY._replace(bits_2=2**31 - 1), [(VALUES, ROWS)], "2147483647 after them"),
        (KEY._replace(flips=VALUES), [(VALUES, ROWS)], "mismatch"),
        (KEY, [(VALUES, ROWS[:4])], "a row for each value, not 4 for 5"),
        (KEY, [(VALUES.astype(np.int64), ROWS)], "mismatch"),
        (KEY, [(VALUES, ROWS.astype(np.int64))], "mismatch"),
        (KEY, [(VALUES[::2], ROWS[:3])], "not C-contiguous"),
        (KEY, [(VALUES, ROWS.reshape(5, 1))], "wrong number of dimensions"),
        (KEY[:5], [(VALUES, ROWS)], "need more than 5 values"),
    ],
)
def test_what_cannot_be_sorted_is_refused(key: Any, sources: list[Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        table_kernels.Table(key, sources)


def test_what_cannot_be_searched_is_refused() -> None:
    search: Any = table_kernels.Search(1, 3, every=True)
    entries = np.zeros((2, 5), dtype=np.uint64)

    for wrong, size in ((entries, 6), (entries, -1), (entries[:1], 1), (entries.astype(np.int64), 1)):
        with pytest.raises(ValueError, match=r"shape \(2, n\)|mismatch"):
            search.scan(wrong, size)
    with pytest.raises(AttributeError):
        search.probe([None])
    with pytest.raises(TypeError):
        search.probe([VALUES])
    with pytest.raises(TypeError):
        search.probe(None)
    with pytest.raises(TypeError):
        table_kernels.Table.__new__(table_kernels.Table)
    with pytest.raises(OverflowError):
        table_kernels.Table(KEY, [(VALUES, ROWS)]).bury(1, -1)
    assert (search.first, search.matches.shape) == (None, (0, 3))
