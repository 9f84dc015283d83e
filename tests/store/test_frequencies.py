"""What crawls have learned of hosts, in the tables of real servers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from neardup.detection import document_frequencies as counting
from neardup.detection.document_frequencies import (
    MOST_BYTES,
    Counts,
    DocumentFrequencies,
    HostFrequencies,
)
from neardup.detection.rule import Rule
from neardup.store import frequencies as stored
from neardup.store import removal
from neardup.store.schema import document_frequencies
from neardup.text.headline import none
from tests.support.stores import fail_twice, frequencies_of, learned, write
from tests.support.verdicts import page

if TYPE_CHECKING:
    import pytest

    from neardup.store.store import Store


def loaded(store: Store) -> DocumentFrequencies:
    found = DocumentFrequencies()
    store.load_frequencies(found)
    return found


def counts(of: HostFrequencies | None) -> tuple[int, bytes]:
    assert of is not None
    return of.pages, of.to_bytes()


class TestStored:
    def test_the_next_crawl_has_what_the_last_one_learned(self, store: Store) -> None:
        counted = learned({"a.example": 40, "b.example": 3, "": 7})

        write(store, page(1, "http://a.example/"), frequencies=counted)

        found = loaded(store)
        assert len(found) == 3
        for host in ("a.example", "b.example", ""):
            assert counts(found.of(host)) == counts(counted.of(host))
        assert list(found.to_store(all_changed=True)) == []  # nothing has changed since

    def test_a_host_of_a_million_shingles(self, store: Store) -> None:
        # Random counts, which cannot be packed, in the largest table: more than MySQL's BLOB takes.
        chance = np.random.default_rng(5)
        most = Counts(chance.integers(0, 2**16, (2, 1 << 17), dtype=np.uint16), 1_000_000)
        known = HostFrequencies(65_000, most)
        counted = DocumentFrequencies()
        counted.put("a.example", known)
        counted.count("a.example", np.arange(20, dtype=np.uint64), none())

        write(store, frequencies=counted)

        assert len(frequencies_of(store)["a.example"]["counts"]) > 500_000
        assert counts(loaded(store).of("a.example")) == counts(counted.of("a.example"))

    def test_of_two_crawls_the_one_that_counted_more_pages_wins(self, store: Store) -> None:
        small, large = (
            learned({"a.example": 20, "b.example": 30}),
            learned({"a.example": 30, "b.example": 20}),
        )

        write(store, frequencies=small)
        write(store, frequencies=large)

        found = loaded(store)
        assert counts(found.of("a.example")) == counts(large.of("a.example"))
        assert counts(found.of("b.example")) == counts(small.of("b.example"))

    def test_names_that_no_database_takes(self, store: Store) -> None:
        write(store, frequencies=learned({"a\x00b\ud800": 3, "x" * 300: 4}))

        assert {host: row["pages"] for host, row in frequencies_of(store).items()} == {
            "a%00b?": 3,
            "x" * 255: 4,
        }

    def test_what_grows_is_stored_while_the_crawl_runs(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from neardup.store.writer import Writer

        monkeypatch.setattr(counting, "BYTES_AT_ONCE", 0)
        counted = learned({"a.example": 12, "b.example": 2})
        writer = Writer(store, store.begin_crawl(spider="s", settings={}), frequencies=counted)
        writer.put(page(1, "http://a.example/"))
        writer.flush()
        in_between = frequencies_of(store)
        writer.put_learned()
        writer.close()

        assert set(in_between) == {"a.example"}
        assert in_between["a.example"]["pages"] == 12
        assert set(frequencies_of(store)) == {"a.example", "b.example"}
        assert (writer.rows_rejected, writer.backlog) == (0, 0)

    def test_nothing_is_lost_while_the_database_is_locked(self, store: Store) -> None:
        failures = fail_twice(store, "INSERT INTO document_frequencies")
        writer = write(store, page(1, "u"), frequencies=learned({"a.example": 9}))

        assert (len(failures), writer.retries, writer.rows_rejected) == (2, 2, 0)
        assert frequencies_of(store)["a.example"]["pages"] == 9


class TestLoaded:
    def test_hosts_with_most_pages_while_there_is_room(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hosts = {f"{pages}.example": pages for pages in (8, 30, 12, 20)}
        counted = learned(hosts)
        write(store, frequencies=counted)
        largest = [counted.of(host) for host in ("30.example", "20.example")]
        room = sum(known.nbytes for known in largest if known is not None)
        monkeypatch.setattr(stored, "MOST_BYTES", room)

        found = loaded(store)

        assert [host for host in hosts if found.of(host)] == ["30.example", "20.example"]

    def test_hosts_with_fewest_pages_are_forgotten_first(self, store: Store) -> None:
        write(store, frequencies=learned({"few.example": 7, "many.example": 50}))
        found = loaded(store)
        # Each takes a quarter of the room, but for some hosts to come.
        known = [found.of(host) for host in ("few.example", "many.example")]
        room = MOST_BYTES - sum(of.nbytes for of in known if of is not None) - 200_000
        for host in ("third.example", "fourth.example", "fifth.example", "sixth.example"):
            large = Counts(np.zeros((2, room // 16), dtype=np.uint16))
            assert found.put(host, HostFrequencies(1, large))
        number = 0
        while found.of("few.example") is not None:
            found.count(f"{number}.example", np.arange(20, dtype=np.uint64), none())
            number += 1

        assert found.of("many.example") is not None

    def test_a_damaged_row_is_one_warning(self, store: Store, caplog: pytest.LogCaptureFixture) -> None:
        write(store, frequencies=learned({"a.example": 9, "b.example": 9}))
        row = document_frequencies.c
        with store.begin_write() as connection:
            connection.execute(
                sa.update(document_frequencies).where(row.host == "a.example").values(counts=b"no counts")
            )

        found = DocumentFrequencies()
        with caplog.at_level(logging.WARNING):
            damaged = store.load_frequencies(found)

        assert damaged == ["a.example"]
        (record,) = caplog.records
        assert "the host 'a.example' cannot be read" in record.getMessage()
        assert (found.of("a.example"), counts(found.of("b.example"))[0]) == (None, 9)


class TestRemoval:
    def test_hosts_without_pages_left_are_forgotten(self, store: Store) -> None:
        first, second = (store.begin_crawl(spider="s", settings={}) for _ in range(2))
        write(
            store,
            *(page(n, f"http://{host}/{n}") for n, host in enumerate(("a.example", "b.example"), 1)),
            crawl=first,
            frequencies=learned({"a.example": 9, "b.example": 9, "elsewhere.example": 9}),
        )
        write(store, page(3, "http://b.example/3"), crawl=second)

        for _ in removal.remove_crawl(store, first, Rule(3)):
            pass

        assert set(frequencies_of(store)) == {"b.example", "elsewhere.example"}
