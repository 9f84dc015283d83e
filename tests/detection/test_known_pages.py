"""The committed pages and what is known about them, by means that neardup has no part in; and the pages a
detector knows.
"""

from __future__ import annotations

import hashlib
import itertools
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import bs4
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from neardup import native
from neardup.address import Address
from neardup.detection import key_table, known_pages, records, snapshot
from neardup.detection.key_table import SHARDS, KeyTable
from neardup.detection.known_pages import NONE, KnownPages
from neardup.detection.snapshot import SnapshotError
from tests.support.places import PAGES
from tests.support.real_pages import near_duplicates

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt


def shingles(page: Path) -> set[tuple[str, ...]]:
    soup = bs4.BeautifulSoup(page.read_bytes(), "lxml")
    for element in soup(["head", "script", "style"]):
        element.decompose()
    words = re.findall(r"\w+", soup.get_text(" ").casefold())
    return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}


def computed() -> dict[tuple[str, str], float]:
    sets = {str(page.relative_to(PAGES)): shingles(page) for page in sorted(PAGES.rglob("*.html"))}
    pairs = {}
    for (a, in_a), (b, in_b) in itertools.combinations(sets.items(), 2):
        resemblance = len(in_a & in_b) / len(in_a | in_b)
        if resemblance >= 0.5:
            pairs[a, b] = round(resemblance, 3)
    return pairs


def test_known_pairs_are_what_the_pages_say() -> None:
    known = near_duplicates()

    assert len(known) > 50
    assert computed() == pytest.approx(known)


def joined(known: KnownPages) -> dict[str, npt.NDArray[Any]]:
    return {name: np.concatenate(parts) for name, parts in known.arrays().items()}


def made(count: int) -> KnownPages:
    known = KnownPages()
    for row in range(count):
        known.add(
            Address(f"http://a.example/{row}"),
            page_id=row + 100,
            value=row << 60 & (1 << 64) - 1,
            canonical=row,
        )
    return known


def assert_made(known: KnownPages, count: int, *, step: int = 1) -> None:
    assert len(known) == len(known.ids) == len(known.urls) == count
    for row in range(0, count, step):
        url = f"http://a.example/{row}"
        assert known.row(Address(url)) == row
        assert known.row(Address(f"{url}/")) == NONE
        assert (known.ids[row], known.urls[row], known.canonical[row]) == (row + 100, url, row)
        assert known.values[row] == row << 60 & (1 << 64) - 1


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Chunks of 8 pages and groups of 4, so that a test meets many ends of them."""
    with monkeypatch.context() as patch:
        make_small(patch)
        yield


def make_small(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(records, "_CHUNK_BITS", 3)
    patch.setattr(records, "_CHUNK", 8)
    patch.setattr(known_pages, "_GROUP_BITS", 2)
    patch.setattr(known_pages, "_GROUP", 4)
    for module in (known_pages, key_table, native.load("neardup.detection._key_table")):
        if module is not None:
            patch.setattr(module, "SHARDS", 2)


urls = st.one_of(st.sampled_from("abcdefgh"), st.text(st.characters(), max_size=8))  # surrogates included
ids = st.integers(-(2**63), 2**63 - 1)
values = st.integers(0, 2**64 - 1)


class KnownPagesMachine(RuleBasedStateMachine):
    """Known pages against lists and a dict, through any number of snapshots. Only new URLs are added, as the
    detector does.
    """

    rows = Bundle("rows")

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.folder = tempfile.TemporaryDirectory()
        self.model: list[list[Any]] = []
        self.row_of: dict[str, int] = {}

    @initialize()
    def begin(self) -> None:
        make_small(self.patch)
        self.known = KnownPages()

    def teardown(self) -> None:
        self.patch.undo()
        self.folder.cleanup()

    @rule(target=rows, url=urls, page_id=ids, value=values, data=st.data())
    def add(self, url: str, page_id: int, value: int, data: st.DataObject) -> Any:
        if url in self.row_of:
            return multiple()
        canonical = data.draw(st.integers(NONE, len(self.model)))
        row = self.known.add(Address(url), page_id=page_id, value=value, canonical=canonical)
        assert row == len(self.model)
        self.row_of[url] = row
        self.model.append([url, page_id, value, canonical])
        return row

    @rule(
        target=rows, pages=st.lists(st.tuples(urls, ids, values), max_size=20, unique_by=lambda page: page[0])
    )
    def extend(self, pages: list[tuple[str, int, int]]) -> Any:
        new = [page for page in pages if page[0] not in self.row_of]
        first = len(self.model)
        self.known.extend(
            [url for url, _, _ in new],
            ids=[page_id for _, page_id, _ in new],
            values=[value for _, _, value in new],
            canonical=[NONE] * len(new),
        )
        for url, page_id, value in new:
            self.row_of[url] = len(self.model)
            self.model.append([url, page_id, value, NONE])
        return multiple(*range(first, len(self.model)))

    @rule(row=rows, other=rows, value=values)
    def change(self, row: int, other: int, value: int) -> None:
        self.known.values[row] = value
        self.known.canonical[row] = other
        self.model[row][2:] = [value, other]

    @rule(some=st.sets(rows, max_size=20), data=st.data())
    def change_many(self, some: set[int], data: st.DataObject) -> None:
        changed = sorted(some)
        standing = data.draw(st.lists(st.integers(NONE, 100), min_size=len(changed), max_size=len(changed)))
        canonical = [min(row, len(self.model) - 1) for row in standing]
        self.known.canonical.put_many(np.array(changed, dtype=np.int64), np.array(canonical))
        for row, its_canonical in zip(changed, canonical, strict=True):
            self.model[row][3] = its_canonical

    @rule(page_id=ids, value=values, wrong=st.sampled_from(["page_id", "value", "canonical"]))
    def refuse(self, page_id: int, value: int, wrong: str) -> None:
        numbers = {"page_id": page_id, "value": value, "canonical": NONE, wrong: 2**64}
        with pytest.raises(ValueError, match="whole numbers"):
            self.known.add(Address("a URL that is never added"), **numbers)

    @rule(url=urls)
    def look_up(self, url: str) -> None:
        assert self.known.row(Address(url)) == self.row_of.get(url, NONE)

    @rule()
    def save_and_load(self) -> None:
        path = Path(self.folder.name) / "s"
        snapshot.save(path, kind="pages", meta={}, arrays=self.known.arrays())
        self.known = KnownPages.from_arrays(snapshot.load(path, kind="pages").arrays)

    @rule()
    def take_over_read_only(self) -> None:
        arrays = joined(self.known)
        for array in arrays.values():
            array.flags.writeable = False
        self.known = KnownPages.from_arrays(arrays)

    @invariant()
    def everything_is_there(self) -> None:
        if not hasattr(self, "known"):
            return
        known = self.known
        assert len(known) == len(self.model)
        stored = [
            [known.urls[row], known.ids[row], known.values[row], known.canonical[row]]
            for row in range(len(known))
        ]
        assert stored == self.model
        assert all(known.row(Address(url)) == row for url, row in self.row_of.items())
        assert known.row(Address("a URL that is never added")) == NONE
        assert known.values.array().tolist() == [value for _, _, value, _ in self.model]
        page_ids = [page_id for _, page_id, _, _ in self.model]
        found = known.rows_of_ids([*page_ids, 12345678]).tolist()
        assert [page_ids[row] for row in found[:-1]] == page_ids
        assert found[-1] == (page_ids.index(12345678) if 12345678 in page_ids else NONE)


TestKnownPagesAnyHistory = pytest.mark.slow(KnownPagesMachine.TestCase)
TestKnownPagesAnyHistory.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


class TestKnownPages:
    def test_key_is_the_digest_that_the_database_holds(self) -> None:
        url = "http://a.example/ü\ud800"

        assert (
            Address(url).key == hashlib.blake2b(url.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        )

    @pytest.mark.parametrize("count", [0, 1, 4, 8, 9, 16, 100])
    def test_snapshots_that_end_anywhere_go_on(self, small: None, count: int) -> None:
        loaded = KnownPages.from_arrays(joined(made(count)))
        assert_made(loaded, count)

        for row in range(count, count + 20):
            loaded.add(
                Address(f"http://a.example/{row}"),
                page_id=row + 100,
                value=row << 60 & (1 << 64) - 1,
                canonical=row,
            )

        assert_made(loaded, count + 20)

    def test_tens_of_thousands(self) -> None:
        count = 70_000  # more than a chunk
        one_by_one = made(count)
        numbers = np.arange(count)
        at_once = KnownPages()
        for start in range(0, count, 7_000):
            rows = numbers[start : start + 7_000]
            at_once.extend(
                [f"http://a.example/{row}" for row in rows],
                ids=rows + 100,
                values=rows.astype(np.uint64) << np.uint64(60),
                canonical=rows,
            )

        for known in (one_by_one, at_once, KnownPages.from_arrays(joined(one_by_one))):
            assert_made(known, count, step=17)
            found, rows = known.fingerprints([3, 69_999, 3])
            assert rows.tolist() == [3, 69_999, 3]
            assert found.tolist() == [known.values[row] for row in (3, 69_999, 3)]

    def test_arrays_are_taken_over_not_copied(self) -> None:
        arrays = joined(made(70_000))
        loaded = KnownPages.from_arrays(arrays)
        parts = loaded.arrays()

        assert np.shares_memory(parts["records"][0], arrays["records"])
        assert np.shares_memory(parts["urls"][0], arrays["urls"])
        assert all(np.shares_memory(part, arrays["keys"]) for part in parts["keys"])
        assert all(np.shares_memory(part, arrays["key_rows"]) for part in parts["key_rows"])

    def test_writing_leaves_read_only_arrays_alone(self, small: None) -> None:
        arrays = joined(made(20))
        before = {name: array.copy() for name, array in arrays.items()}
        for array in arrays.values():
            array.flags.writeable = False
        loaded = KnownPages.from_arrays(arrays)

        loaded.values[3] = 5
        loaded.canonical[4] = NONE
        loaded.add(Address("another"), page_id=1, value=2, canonical=3)

        assert (loaded.values[3], loaded.canonical[4], loaded.row(Address("another"))) == (5, NONE, 20)
        assert all(np.array_equal(arrays[name], array) for name, array in before.items())

    def test_rows_that_are_not_there(self) -> None:
        known = made(3)
        for row in (3, NONE, 10**9):
            for column in (known.ids, known.values, known.canonical, known.urls):
                with pytest.raises(IndexError):
                    column[row]
            with pytest.raises(IndexError):
                known.canonical[row] = 0

    def test_a_url_added_again_is_found_at_its_last_row(self) -> None:
        known = made(3)

        known.add(Address("http://a.example/0"), page_id=9, value=9, canonical=9)
        assert known.row(Address("http://a.example/0")) == 3
        known.extend(["x", "x"], ids=[1, 2], values=[1, 2], canonical=[0, 0])
        assert known.row(Address("x")) == 5

    def test_running_out_of_memory_adds_nothing(self, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
        def fail(*_: object) -> None:
            raise MemoryError

        for count in (0, 3, 4, 8):
            known = made(count)
            with monkeypatch.context() as patch:
                patch.setattr(known, "_rows", mock.Mock(put=fail))
                with pytest.raises(MemoryError):
                    known.add(Address("too much"), page_id=1, value=1, canonical=1)
            assert known.row(Address("too much")) == NONE
            known.add(
                Address(f"http://a.example/{count}"),
                page_id=count + 100,
                value=count << 60 & (1 << 64) - 1,
                canonical=count,
            )
            assert_made(known, count + 1)

    def test_extend_checks_before_it_adds(self) -> None:
        known = made(3)
        with pytest.raises(ValueError, match="2 URLs need as many"):
            known.extend(["a", "b"], ids=[1], values=[1, 2], canonical=[0, 0])
        with pytest.raises(OverflowError):
            known.extend(["a"], ids=[1], values=[2**64], canonical=[0])

        assert_made(known, 3)

    def test_rows_of_ids_in_any_order(self) -> None:
        known = KnownPages()
        assert known.rows_of_ids([1, 2]).tolist() == [NONE, NONE]
        for row, page_id in enumerate([30, 10, 20]):
            known.add(Address(str(row)), page_id=page_id, value=0, canonical=NONE)

        assert known.rows_of_ids([10, 20, 30, 40, 0]).tolist() == [1, 2, 0, NONE, NONE]

    def test_keys_that_share_their_home(self) -> None:
        # Same shard and same home slot, the last but one: they go on at the table's beginning.
        table = KeyTable()
        keys = [bytes([7, 0, first]) + bytes(9) + b"\xff\xff\xff\xef" for first in range(200)]
        for row, key in enumerate(keys):
            table.put(key, row)
            assert [table.find(known) for known in keys[: row + 2]] == [*range(row + 1), NONE][: len(keys)]


class TestArraysThatAreNotKnownPages:
    @pytest.mark.parametrize(
        ("name", "array"),
        [
            ("records", np.zeros((5, 3), dtype=np.int64)),
            ("records", np.zeros((5, 4), dtype=np.uint64)),
            ("records", np.zeros((5000, 3), dtype=np.uint64)),
            ("url_ends", np.array([7], dtype=np.int64)),
            ("url_ends", np.array([5, 99], dtype=np.int64)),
            ("key_ends", np.zeros(SHARDS, dtype=np.int64)),
            ("key_ends", np.arange(SHARDS, dtype=np.int64)[::-1].copy()),
            ("key_rows", np.full(SHARDS * 16, 6, dtype=np.int32)),
            ("key_rows", np.full(SHARDS * 16, 5, dtype=np.int32)),
            ("key_rows", np.full(SHARDS * 16, -1, dtype=np.int32)),
            ("key_rows", np.zeros(3, dtype=np.int32)),
            ("other", np.zeros(3)),
        ],
    )
    def test_are_refused(self, name: str, array: npt.NDArray[Any]) -> None:
        arrays = joined(made(5))
        with pytest.raises(SnapshotError):
            KnownPages.from_arrays({**arrays, name: array})

    def test_canonical_rows_beyond_the_pages(self) -> None:
        known = made(5)
        known.canonical[2] = 5

        with pytest.raises(SnapshotError, match="a row number beyond the 5 pages"):
            KnownPages.from_arrays(joined(known))

    def test_text_that_is_no_url(self) -> None:
        arrays = joined(made(5))
        arrays["urls"] = arrays["urls"].copy()
        arrays["urls"][3] = 0xFF

        with pytest.raises(SnapshotError, match="a URL cannot be decoded"):
            KnownPages.from_arrays(arrays)

    def test_ends_whose_differences_overflow(self) -> None:
        arrays = joined(made(5))
        ends = arrays["key_ends"].copy()
        ends[:3] = 2**63 - 1, -(2**63), -1

        with pytest.raises(SnapshotError, match="does not end where"):
            KnownPages.from_arrays({**arrays, "key_ends": ends})

    def test_missing_array(self) -> None:
        arrays = joined(made(5))
        del arrays["keys"]

        with pytest.raises(SnapshotError, match="known pages are the arrays"):
            KnownPages.from_arrays(arrays)
