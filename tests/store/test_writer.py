"""The writer on real servers: batches, upserts, ids of other processes, and databases that fail."""

from __future__ import annotations

import logging
import re
import sqlite3
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
import sqlalchemy as sa

from neardup.address import Address
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.verdict import Kind, Verdict
from neardup.errors import DatabaseUnavailable
from neardup.fingerprint import sketch
from neardup.fingerprint.scheme import Scheme
from neardup.store import engine as engines
from neardup.store.schema import simhash_values
from neardup.store.store import Store
from neardup.store.writer import Writer
from tests.support.stores import pages_of, relations_of, write
from tests.support.verdicts import duplicate, fingerprint, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class TestRows:
    def test_sketch_and_resemblance(self, store: Store) -> None:
        drawn = np.arange(16, dtype=np.uint64) << np.uint64(60)

        write(
            store,
            page(1, "u", sketch=drawn),
            duplicate(2, "v", 1, resemblance=0.875, sketch=drawn),
        )

        first, _ = pages_of(store)
        assert bytes(first["sketch"]) == sketch.to_bytes(drawn)
        assert relations_of(store)[0]["resemblance"] == 0.875
        known = {known.page_id: known for known in store.known_pages()}
        assert sketch.from_bytes(known[1].sketch or b"").tolist() == drawn.tolist()
        assert known[2].sketch is None  # a duplicate is compared with nothing

    def test_pages_not_seen_for_long_are_not_fresh(self, store: Store) -> None:
        write(store, page(1, "u"), page(2, "v"))
        with store.begin_write() as connection:
            old = sa.update(simhash_values).where(simhash_values.c.id == 1)
            connection.execute(old.values(last_seen=datetime.now(UTC) - timedelta(days=31)))

        for days, fresh in ((30, [0, 1]), (32, [1, 1])):
            assert [known.fresh for known in store.known_pages(max_age=timedelta(days=days))] == fresh
        assert [known.fresh for known in store.known_pages()] == [1, 1]

    def test_a_page_is_flagged_once(self, store: Store) -> None:
        write(store, page(1, "u"), page(2, "v"), flags=[1])
        first = pages_of(store)[0]["flagged_at"]
        assert first is not None

        write(store, page(1, "u", Kind.UNCHANGED), flags=[1])

        assert [row["flagged_at"] for row in pages_of(store)] == [first, None]

    def test_what_is_stored_of_a_page(self, store: Store) -> None:
        crawl = store.begin_crawl(spider="s", settings={})
        url = "http://user@Host.Example.:8080/a?b=c"

        writer = write(store, page(1, url), crawl=crawl)

        (row,) = pages_of(store)
        assert row["id"] == 1
        assert row["hash_value"] == 2**64 - 1
        assert row["actual_url"] == url
        assert bytes(row["url_key"]) == Address(url).key
        assert row["host"] == "host.example"
        assert (row["scheme"], row["features"], row["kind"]) == (str(Scheme()), 30, "new")
        assert bytes(row["weak_bits"]) == fingerprint(2**64 - 1).pack_weak_bits()
        assert row["crawl_id"] == row["last_crawl_id"] == crawl
        assert row["first_seen"] == row["last_seen"]
        assert row["links_withheld"] == 0
        assert (writer.rows_written, writer.backlog) == (1, 0)
        assert writer.seconds > 0.0

    def test_what_is_stored_of_a_duplicate(self, store: Store) -> None:
        writer = write(store, page(1, "u"), duplicate(2, "v", 1, distance=3), links={2: 17})

        (relation,) = relations_of(store)
        assert (relation["actual_hash_id"], relation["duplicate_hash_id"]) == (1, 2)
        assert (relation["hamming_distance"], relation["percentage"]) == (3, 95.3125)
        assert relation["found_at"] is not None
        assert [row["links_withheld"] for row in pages_of(store)] == [0, 17]
        assert writer.rows_written == 3

    def test_pages_without_fingerprint_and_not_html(self, store: Store) -> None:
        not_html = Verdict(address=Address("w"), kind=Kind.NOT_HTML, follow=True, reason="")

        write(store, page(1, "u", Kind.TOO_SHORT, fingerprint=None, features=0), not_html)

        (row,) = pages_of(store)
        assert (row["hash_value"], row["weak_bits"], row["kind"]) == (None, None, "too_short")

    def test_urls_of_any_length_are_unique(self, store: Store) -> None:
        long = "http://a.example/" + "x" * 100_000

        write(store, page(1, long + "1"), page(2, long + "2"), page(1, long + "1", Kind.UNCHANGED))

        assert [row["actual_url"][-1] for row in pages_of(store)] == ["1", "2"]
        assert {len(row["actual_url"]) for row in pages_of(store)} == {100_018}

    @pytest.mark.parametrize(
        "url", ["http://a.example/\x00nul", "http://a.example/\udc80", "http://[bad", "", "a\U0001f600"]
    )
    def test_urls_are_data(self, store: Store, url: str) -> None:
        writer = write(store, page(1, url), page(2, "http://a.example/after"))

        assert len(pages_of(store)) == 2
        assert writer.rows_rejected == 0

    def test_urls_differ_by_case_and_accent(self, store: Store) -> None:
        write(
            store, page(1, "http://a.example/a"), page(2, "http://a.example/A"), page(3, "http://a.example/ä")
        )

        assert len(pages_of(store)) == 3


class TestUpserts:
    def test_the_same_batch_twice_is_harmless(self, store: Store) -> None:
        verdicts = [page(1, "u"), duplicate(2, "v", 1), page(3, "w", Kind.TOO_SHORT)]
        crawl = store.begin_crawl(spider="s", settings={})
        write(store, *verdicts, crawl=crawl, links={2: 5})
        before = pages_of(store), relations_of(store)

        write(store, *verdicts, crawl=crawl, links={2: 5})

        times = ("last_seen", "batch_id")
        assert [{k: v for k, v in row.items() if k not in times} for row in pages_of(store)] == [
            {k: v for k, v in row.items() if k not in times} for row in before[0]
        ]
        assert relations_of(store) == before[1]

    def test_a_later_crawl_updates_but_keeps_the_first_visit(self, store: Store) -> None:
        write(store, page(1, "u"))
        (before,) = pages_of(store)
        time.sleep(0.01)

        write(store, page(1, "u", Kind.CHANGED, fingerprint=fingerprint(77), features=31))

        (row,) = pages_of(store)
        assert (row["hash_value"], row["features"], row["kind"]) == (77, 31, "changed")
        assert (row["first_seen"], row["crawl_id"]) == (before["first_seen"], before["crawl_id"])
        assert row["last_seen"] > before["last_seen"]
        assert row["last_crawl_id"] != before["last_crawl_id"]

    def test_a_visit_before_the_first_one(self, store: Store) -> None:
        writers = [Writer(store, store.begin_crawl(spider=name, settings={})) for name in "ab"]
        writers[0].batch_seconds = 1000.0
        writers[0].put(page(1, "u", Kind.TOO_SHORT))
        writers[1].put(page(2, "u"))
        writers[1].close()

        writers[0].close()

        (row,) = pages_of(store)
        assert (row["kind"], row["id"]) == ("too_short", 2)
        assert row["last_seen"] == row["first_seen"]

    def test_the_last_verdict_of_a_batch_wins(self, store: Store) -> None:
        write(store, page(1, "u"), page(2, "v"), duplicate(2, "v", 1), page(1, "u", Kind.UNCHANGED))

        assert [row["kind"] for row in pages_of(store)] == ["unchanged", "duplicate"]
        assert len(relations_of(store)) == 1

    def test_relation_is_replaced_when_the_canonical_page_is_another(self, store: Store) -> None:
        write(store, page(1, "u"), page(2, "v"), duplicate(3, "w", 1, distance=1))
        (before,) = relations_of(store)

        write(store, duplicate(3, "w", 2, distance=3))

        (after,) = relations_of(store)
        assert (after["actual_hash_id"], after["hamming_distance"]) == (2, 3)
        assert after["percentage"] < before["percentage"]
        assert after["crawl_id"] != before["crawl_id"]

    def test_the_same_relation_found_again_keeps_since_when(self, store: Store) -> None:
        write(store, page(1, "u"), duplicate(3, "w", 1))
        before = relations_of(store)

        write(store, duplicate(3, "w", 1))

        assert relations_of(store) == before

    @pytest.mark.parametrize("kind", [Kind.CHANGED, Kind.UNCHANGED, Kind.TOO_SHORT])
    def test_relation_goes_when_the_page_is_no_duplicate_any_more(self, store: Store, kind: Kind) -> None:
        write(store, page(1, "u"), duplicate(2, "v", 1), links={2: 9})

        write(store, page(2, "v", kind))

        assert relations_of(store) == []
        assert pages_of(store)[1]["links_withheld"] == 0


class TestBatches:
    def test_by_age(self, store: Store) -> None:
        writer = Writer(store, store.begin_crawl(spider="s", settings={}), batch_seconds=0.05)
        writer.put(page(1, "u"))

        deadline = time.monotonic() + 10
        while writer.backlog and time.monotonic() < deadline:
            time.sleep(0.01)

        assert len(pages_of(store)) == 1
        writer.close()

    def test_by_size(self, store: Store) -> None:
        writer = Writer(
            store, store.begin_crawl(spider="s", settings={}), batch_rows=10, batch_seconds=1000.0
        )
        for number in range(1, 11):
            writer.put(page(number, f"u{number}"))

        deadline = time.monotonic() + 10
        while writer.backlog and time.monotonic() < deadline:
            time.sleep(0.01)

        assert len(pages_of(store)) == 10
        writer.close()

    @pytest.mark.slow
    def test_many_rows_arrive_whole(self, store: Store) -> None:
        verdicts = [page(n, f"http://a.example/{n}") for n in range(1, 6001)]
        verdicts += [duplicate(n, f"http://b.example/{n}", n - 6000) for n in range(6001, 7001)]

        writer = write(store, *verdicts, links=dict.fromkeys(range(6001, 7001), 3))

        assert len(pages_of(store)) == 7000
        assert len(relations_of(store)) == 1000
        assert sum(row["links_withheld"] for row in pages_of(store)) == 3000
        assert writer.rows_written == 8000
        assert [p.canonical_id for p in store.known_pages()].count(None) == 6000


class TestOtherProcesses:
    def test_a_url_that_another_crawl_stored_first_keeps_that_id(self, store: Store) -> None:
        crawl_a, crawl_b = (store.begin_crawl(spider=name, settings={}) for name in "ab")
        a, b = (crawl * PAGES_PER_CRAWL + 1 for crawl in (crawl_a, crawl_b))
        write(store, page(a, "u"), crawl=crawl_a)
        writer = Writer(store, crawl_b, batch_seconds=0.0)
        writer.put(page(b, "u"))
        writer.put(duplicate(b + 1, "v", b))
        while writer.backlog:
            time.sleep(0.01)

        # A later batch refers to the id that was never stored.
        writer.put(duplicate(b + 2, "w", b))
        writer.links_withheld(b, 4)
        writer.close()

        assert [row["id"] for row in pages_of(store)] == [a, b + 1, b + 2]
        assert {row["actual_hash_id"] for row in relations_of(store)} == {a}
        assert pages_of(store)[0]["links_withheld"] == 4
        assert writer.rows_rejected == 0

    @pytest.mark.slow
    def test_two_writers_at_once(self, store: Store) -> None:
        ids = [store.begin_crawl(spider=str(n), settings={}) for n in range(2)]
        writers = [Writer(store, crawl, batch_rows=50) for crawl in ids]
        for n in range(1, 1001):
            for crawl, writer in zip(ids, writers, strict=True):
                writer.put(page(crawl * PAGES_PER_CRAWL + n, f"u{n}"))
        for writer in writers:
            writer.close()

        assert len(pages_of(store)) == 1000
        assert [writer.rows_rejected for writer in writers] == [0, 0]


class Conflict(Exception):
    """What a driver says of a serialisation failure."""

    sqlstate = "40001"


class TestFailures:
    """A locked SQLite file stands for a database that is away: another process holds an exclusive lock."""

    @pytest.fixture
    def path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(engines, "BUSY_SECONDS", 0.05)
        return tmp_path / "n.db"

    @pytest.fixture
    def locked(self, path: Path) -> Iterator[tuple[Store, sqlite3.Connection]]:
        with Store.open(f"sqlite:///{path}", scheme=str(Scheme())) as store:
            store.begin_crawl(spider="s", settings={})
            holder = sqlite3.connect(path, isolation_level=None)
            holder.execute("BEGIN EXCLUSIVE")
            yield store, holder
            holder.close()

    def test_put_does_not_wait_for_the_database(self, locked: tuple[Store, sqlite3.Connection]) -> None:
        store, holder = locked
        writer = Writer(store, 1, batch_rows=1)

        for number in range(1, 1001):
            writer.put(page(number, f"u{number}"))

        # All puts returned while the lock was held; nothing could be stored.
        assert writer.backlog == 1000
        assert writer.rows_written == 0
        holder.execute("ROLLBACK")
        writer.close()
        assert writer.rows_written == 1000

    def test_every_outage_is_announced_and_so_is_its_end(
        self, locked: tuple[Store, sqlite3.Connection], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        store, holder = locked
        writer = Writer(store, 1, batch_seconds=0.0)
        for number in (1, 2):
            seen = writer.retries
            writer.put(page(number, f"u{number}"))
            while writer.retries < seen + 2:
                time.sleep(0.01)
            assert writer.error is None

            holder.execute("ROLLBACK")
            writer.flush()
            holder.execute("BEGIN EXCLUSIVE")
        holder.execute("ROLLBACK")
        writer.close()

        assert [row["id"] for row in pages_of(store)] == [1, 2]
        levels, lines = zip(*((r.levelno, r.getMessage()) for r in caplog.records), strict=True)
        assert levels == (logging.WARNING, logging.INFO) * 2
        assert all("locked" in line for line in lines[::2])
        assert all(
            re.fullmatch(r"neardup: the database takes rows again, after \d+\.\d s", line)
            for line in lines[1::2]
        )

    @pytest.mark.parametrize(("conflicts", "warnings"), [(1, 0), (3, 1)])
    def test_a_conflict_that_the_first_retry_resolves_is_counted_only(
        self, store: Store, conflicts: int, warnings: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        crawl = store.begin_crawl(spider="s", settings={})
        left = [Conflict()] * conflicts

        def listener(connection: object, cursor: object, statement: str, *_: object) -> None:
            if left and "INSERT INTO simhash_values" in statement:
                raise sa.exc.OperationalError(statement, None, left.pop())

        sa.event.listen(store.engine, "before_cursor_execute", listener)
        writer = write(store, page(1, "u"), crawl=crawl)

        assert [row["id"] for row in pages_of(store)] == [1]
        assert (writer.retries, writer.rows_rejected) == (conflicts, 0)
        lines = [r.getMessage() for r in caplog.records]
        assert sum("another transaction was in the way" in line for line in lines) == warnings
        assert sum("takes rows again" in line for line in lines) == warnings

    def test_lock_that_stays_sets_error_and_what_waits_is_stored_once_it_is_gone(
        self, locked: tuple[Store, sqlite3.Connection]
    ) -> None:
        store, holder = locked
        writer = Writer(store, 1, batch_seconds=0.0, give_up_after=0.1)
        writer.put(page(1, "u"))
        while writer.error is None:
            time.sleep(0.01)
        assert isinstance(writer.error, DatabaseUnavailable)
        writer.put(page(2, "v"))

        holder.execute("ROLLBACK")
        writer.close()

        assert [row["id"] for row in pages_of(store)] == [1, 2]

    def test_close_says_how_many_rows_are_lost(self, locked: tuple[Store, sqlite3.Connection]) -> None:
        store, _ = locked
        writer = Writer(store, 1, batch_seconds=0.0, give_up_after=0.1)
        writer.put(page(1, "u"))
        writer.put(page(2, "v"))

        with pytest.raises(DatabaseUnavailable, match=r"2 rows could not be stored: .*locked"):
            writer.close()

    def test_full_disk_is_a_failure_that_may_pass(self, path: Path) -> None:
        with Store.open(f"sqlite:///{path}", scheme=str(Scheme())) as store:
            store.begin_crawl(spider="s", settings={})
            sa.event.listen(store.engine, "connect", lambda c, _: c.execute("PRAGMA max_page_count = 40"))
            store.engine.dispose()
            writer = Writer(store, 1, give_up_after=0.1)
            for number in range(1, 2000):
                writer.put(page(number, f"http://a.example/{number}"))

            with pytest.raises(DatabaseUnavailable, match=r"rows could not be stored: .*full"):
                writer.close()
