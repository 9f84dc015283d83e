"""The counts of shingles against exact ones, on real pages, and what is kept and stored of them."""

from __future__ import annotations

import zlib
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest

from neardup.detection import document_frequencies
from neardup.detection.document_frequencies import (
    MOST_COUNTED,
    RARE_PAGES,
    RARE_SHARE,
    DocumentFrequencies,
    HostFrequencies,
)
from neardup.detection.frequency_kernels import whole_keys, word_keys
from neardup.text.headline import none, of_texts
from tests.support.readings import readings

if TYPE_CHECKING:
    from neardup.detection.frequency_kernels import Keys
    from neardup.fingerprint.reader import Reading

HOST = "a.example"


def keys_of(reading: Reading) -> Keys:
    return np.concatenate((reading.shingles, word_keys(reading.headline[reading.headline != 0])))


@cache
def counted() -> tuple[HostFrequencies, Keys, list[int]]:
    """Counts of the real pages; the keys that stand on them, and on how many."""
    host, exact = HostFrequencies(), Counter[int]()
    for reading in readings():
        host.count(keys_of(reading))
        exact.update(set(keys_of(reading).tolist()))
    return host, np.array(list(exact), dtype=np.uint64), list(exact.values())


def random_keys(number: int, seed: int = 0) -> Keys:
    return np.random.default_rng(seed).integers(0, 2**64, number, dtype=np.uint64)


class TestCounts:
    def test_rare_and_template_are_told_apart_on_real_pages(self) -> None:
        """Measured: 36 of 6,163 rare ones are taken for template, and none of the 127 of the template for
        rare.
        """
        host, keys, exact = counted()
        rare = np.array(exact) <= host.limit
        called_rare = host.counts(keys) <= host.limit
        assert rare.sum() > 1000
        assert (~rare).sum() > 100

        assert np.mean(~called_rare[rare]) < 0.01
        assert np.mean(called_rare[~rare]) < 0.02

    def test_counts_are_hardly_ever_too_low_and_seldom_too_high(self) -> None:
        """Measured: .001 are too low, by 3 at most; .17 too high, by .2 on average."""
        host, keys, exact = counted()
        errors = host.counts(keys).astype(np.int64) - exact

        assert np.mean(errors < 0) < 0.005
        assert np.mean(errors > 0) < 0.3
        assert abs(errors).max() <= 6
        assert 0.0 < errors.mean() < 0.5

    def test_a_shingle_counts_once_a_page(self) -> None:
        host = HostFrequencies()
        (key,) = random_keys(1)
        host.count(np.repeat(key, 100))
        host.count(np.array([key]))

        assert (host.pages, host.counts(np.array([key, key + np.uint64(1)])).tolist()) == (2, [2, 0])

    def test_nothing_is_counted_of_a_page_without_words(self) -> None:
        frequencies = DocumentFrequencies()
        for _ in range(3):
            host = frequencies.count(HOST, np.empty(0, dtype=np.uint64), none())

        assert host.pages == 3
        assert not host.counts(random_keys(1000)).any()

    def test_the_end_of_a_very_long_page_is_not_counted(self) -> None:
        keys, short, whole = random_keys(MOST_COUNTED + 1000), HostFrequencies(), HostFrequencies()
        host = DocumentFrequencies().count(HOST, keys, none())
        short.count(keys[:MOST_COUNTED])
        whole.count(keys)

        assert np.array_equal(host.counts(keys), short.counts(keys))
        assert not np.array_equal(host.counts(keys), whole.counts(keys))

    def test_counts_end_where_their_cells_do(self) -> None:
        host, keys = HostFrequencies(), random_keys(1)
        for _ in range(2**16 + 10):
            host.count(keys)

        assert host.counts(keys).tolist() == [2**16 - 1]
        assert host.counts(keys)[0] > host.limit

    @pytest.mark.parametrize(
        ("pages", "limit"), [(0, 6), (300, 6), (350, 7), (1_000, 20), (10_000_000, 2**16 - 2)]
    )
    def test_what_is_rare_grows_with_the_site(self, pages: int, limit: int) -> None:
        assert HostFrequencies(pages).limit == limit
        assert limit >= RARE_PAGES
        assert limit <= max(RARE_PAGES, RARE_SHARE * pages)


class TestGrowth:
    def test_a_small_site_takes_a_small_table_and_a_large_one_no_more_than_the_largest(self) -> None:
        host, sizes = HostFrequencies(), []
        for seed in range(100):
            host.count(random_keys(4_000, seed))
            sizes.append(host.nbytes)

        assert HostFrequencies().nbytes == 2 * 4 * 2**10
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1] == 4 * 2**17 + 4 * 2**10  # that of the headlines has not grown

    def test_what_was_counted_before_stays_counted(self) -> None:
        host, keys = HostFrequencies(), random_keys(500, 1)
        for _ in range(20):
            host.count(keys)
        small = host.nbytes
        for seed in range(2, 30):
            host.count(random_keys(2_000, seed))

        assert host.nbytes > small
        # Too low by one a growth at most: two of the keys may share a cell.
        assert np.mean(host.counts(keys) >= 20) > 0.95
        assert host.counts(keys).min() >= 15

    def test_a_table_grows_only_with_what_is_counted(self) -> None:
        """7,000 shingles fit in 16,384 cells a row, half of which are then in use."""
        host = HostFrequencies()
        for reading in readings():
            host.count(reading.shingles)
        distinct = np.unique(np.concatenate([reading.shingles for reading in readings()])).size

        assert host.nbytes <= 4 * 4 * distinct


class TestStored:
    def test_counts_come_back(self) -> None:
        host, keys, _ = counted()
        again = HostFrequencies.from_bytes(host.pages, host.to_bytes())

        assert np.array_equal(again.counts(keys), host.counts(keys))
        assert (again.pages, again.limit, again.nbytes) == (host.pages, host.limit, host.nbytes)

    def test_and_go_on(self) -> None:
        host = HostFrequencies()
        halves = readings()[::2], readings()[1::2]
        for reading in halves[0]:
            host.count(reading.shingles)
        again = HostFrequencies.from_bytes(host.pages, host.to_bytes())
        for reading in halves[1]:
            host.count(reading.shingles)
            again.count(reading.shingles)

        assert np.array_equal(again.counts(counted()[1]), host.counts(counted()[1]))

    @pytest.mark.parametrize(
        "data",
        [
            b"",
            b"not compressed",
            zlib.compress(b""),
            zlib.compress(bytes(7)),
            zlib.compress(bytes(4 * 2**11)),
            zlib.compress(bytes(4 * 2**12 + 1)),
            zlib.compress(bytes(4 * 3 * 2**12)),
            zlib.compress(bytes(4 * 2**18)),
            HostFrequencies().to_bytes()[:-10],
            b"\0" + HostFrequencies().to_bytes(),
        ],
        ids=["none", "plain", "empty", "odd", "small", "one-over", "three", "large", "cut", "shifted"],
    )
    def test_what_is_damaged_is_refused(self, data: bytes) -> None:
        with pytest.raises(ValueError, match="document frequencies"):
            HostFrequencies.from_bytes(1, data)

    @pytest.mark.slow
    @pytest.mark.timeout(20)
    def test_a_bomb_is_not_unpacked(self) -> None:
        with pytest.raises(ValueError, match="document frequencies of 0 and 0 cells"):
            HostFrequencies.from_bytes(1, zlib.compress(bytes(2**28)))

    def test_large_hosts_are_stored_when_they_have_grown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(document_frequencies, "BYTES_AT_ONCE", 0)
        frequencies = DocumentFrequencies()
        stored = []
        for number in range(1, 43):
            frequencies.count(HOST, random_keys(10, number), none())
            stored += [pages for _, pages, _ in frequencies.to_store()]

        assert stored == [6, 12, 18, 27, 40]
        ((host, pages, data),) = frequencies.to_store(all_changed=True)
        assert (host, pages) == (HOST, 42)
        assert HostFrequencies.from_bytes(pages, data).counts(random_keys(10, 42)).tolist() == [1] * 10
        assert list(frequencies.to_store(all_changed=True)) == []

    def test_of_hosts_that_grow_slowly_the_last_ones_are_stored(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(document_frequencies, "BYTES_AT_ONCE", 2 * HostFrequencies().nbytes)
        frequencies = DocumentFrequencies()
        for number, host in enumerate("abcba"):
            frequencies.count(host, random_keys(10, number), none())

        assert [(host, pages) for host, pages, _ in frequencies.to_store()] == [("a", 2), ("b", 2)]
        assert [(host, pages) for host, pages, _ in frequencies.to_store()] == [("c", 1)]
        assert list(frequencies.to_store()) == []

    def test_what_the_store_had_is_not_stored_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(document_frequencies, "BYTES_AT_ONCE", 0)
        known, frequencies = HostFrequencies(pages=100), DocumentFrequencies()
        assert frequencies.put(HOST, known)
        assert frequencies.of(HOST) is known

        assert list(frequencies.to_store(all_changed=True)) == []
        frequencies.count(HOST, random_keys(10), none())
        assert list(frequencies.to_store()) == []
        assert [pages for _, pages, _ in frequencies.to_store(all_changed=True)] == [101]


class TestManyHosts:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(document_frequencies, "MOST_BYTES", 1 << 20)

    def test_the_memory_is_bounded(self) -> None:
        frequencies = DocumentFrequencies()
        for number in range(1000):
            frequencies.count(f"{number}.example", random_keys(100, number), none())

        assert len(frequencies) == 2**20 // HostFrequencies().nbytes
        assert frequencies.of("999.example") is not None
        assert frequencies.of("0.example") is None

    def test_a_host_that_is_met_again_stays(self) -> None:
        frequencies = DocumentFrequencies()
        for number in range(1000):
            frequencies.count(HOST, random_keys(10, number), none())
            frequencies.count(f"{number}.example", random_keys(10, number), none())

        known = frequencies.of(HOST)
        assert known is not None
        assert known.pages == 1000

    def test_tables_that_grow_push_others_out(self) -> None:
        frequencies = DocumentFrequencies()
        for number in range(64):
            frequencies.count(f"{number}.example", random_keys(10, number), none())
        assert len(frequencies) == 64
        for number in range(20):
            frequencies.count("0.example", random_keys(10_000, number), none())

        kept = [frequencies.of(f"{number}.example") for number in range(64)]
        assert sum(host.nbytes for host in kept if host is not None) <= 2**20
        assert kept[0] is not None
        assert kept[0].pages == 21

    def test_a_full_memory_takes_nothing_from_the_store(self) -> None:
        frequencies = DocumentFrequencies()
        for number in range(128):
            frequencies.count(f"{number}.example", random_keys(10, number), none())

        assert not frequencies.put(HOST, HostFrequencies(pages=10))
        assert frequencies.of(HOST) is None
        assert len(frequencies) == 128

    def test_a_host_taken_over_again_costs_its_memory_once(self) -> None:
        frequencies = DocumentFrequencies()

        assert all(frequencies.put(HOST, HostFrequencies(pages=10)) for _ in range(1000))


class TestHeadlines:
    def test_words_and_whole_headlines_are_counted(self) -> None:
        frequencies = DocumentFrequencies()
        for title in ("The same", "Same the", "Another one"):
            host = frequencies.count(HOST, np.empty(0, dtype=np.uint64), of_texts(title, "Here"))

        assert host.headlines.of(word_keys(of_texts("same another here lost")[:4])).tolist() == [
            2,
            1,
            3,
            0,
        ]
        assert host.headlines.of(whole_keys(of_texts("the same", "here"))).tolist() == [2, 3]
        assert host.headlines.of(whole_keys(of_texts("another one", "there"))).tolist() == [1, 0]

    def test_a_title_is_no_heading(self) -> None:
        titles = whole_keys(np.stack([of_texts("name", ""), of_texts("", "name")]))

        assert titles[0, 0] == titles[1, 1]
        assert titles[0, 1] == titles[1, 0] != titles[0, 0]

    def test_a_number_is_another_word_than_a_word(self) -> None:
        words = np.arange(2, 100_000, dtype=np.uint32)

        assert np.unique(word_keys(words)).size == words.size
