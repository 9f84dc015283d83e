"""Rows that a real database refuses for their size.

Such a row costs itself and nothing else, and is told from an outage.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
from typing import Any

import pytest
import sqlalchemy as sa

from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.verdict import Kind
from neardup.fingerprint.scheme import Scheme
from neardup.store import store as stores
from neardup.store.store import Store
from neardup.store.writer import Writer
from tests.support.crawl_parts import TEXT, Process
from tests.support.databases import disconnect_all
from tests.support.proxy import through_proxy
from tests.support.stores import before_statement, kinds, pages_of, relations, relations_of, write
from tests.support.verdicts import duplicate, page


def longer_than_a_packet(store: Store) -> str:
    """A URL for which MariaDB drops the connection."""
    with store.reading() as connection:
        packet: int = connection.exec_driver_sql("SELECT @@max_allowed_packet").scalar_one()
    assert packet < 17_000_000
    return "http://a.example/" + 17_000_000 * "x"


def large_url(store: Store) -> str:
    """A URL that the database refuses, having been made to refuse long ones.

    A database as installed takes a URL of megabytes. Tests are to be fast.
    """
    match store.engine.dialect.name:
        case "sqlite":
            length = sqlite3.SQLITE_LIMIT_LENGTH
            sa.event.listen(store.engine, "connect", lambda driver, _: driver.setlimit(length, 100_000))
            store.engine.dispose()
        case "postgresql":  # whose index rows are at most 2,704 bytes, compressed
            with store.begin_write() as connection:
                connection.exec_driver_sql("CREATE INDEX by_url ON simhash_values (actual_url)")
        case _:
            with store.begin_write() as connection:
                connection.exec_driver_sql(
                    "ALTER TABLE simhash_values ADD CHECK (LENGTH(actual_url) < 100000)"
                )
    return "http://a.example/" + secrets.token_hex(100_000)


def test_one_row_among_500(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    is_mariadb = store.engine.dialect.name == "mysql"
    large = longer_than_a_packet(store) if is_mariadb else large_url(store)
    crawl = store.begin_crawl(spider="s", settings={})
    writer = Writer(store, crawl)
    for number in range(1, 501):
        writer.put(page(number, f"http://a.example/{number}"))
        if number == 200:
            writer.put(page(1000, large))
        if number % 10 == 0:
            writer.put(duplicate(2000 + number, f"http://b.example/{number}", number))
            writer.links_withheld(2000 + number, 3)
    writer.flag(500)

    writer.close()

    assert (writer.rows_rejected, writer.rows_written, writer.error) == (1, 600, None)
    stored = pages_of(store)
    assert [row["id"] for row in stored] == [*range(1, 501), *range(2010, 2501, 10)]
    assert sum(row["links_withheld"] for row in stored) == 150
    assert [row["id"] for row in stored if row["flagged_at"]] == [500]
    assert len(relations_of(store)) == 50
    (line,) = [text for text in caplog.messages if "is not stored" in text]
    assert (
        f"the row of {large[:200]}... ({len(large):,} characters) is not stored;"
        " the database takes others, but"
    ) in line
    assert len(line) < 1000


def test_the_batch_after_it(store: Store) -> None:
    large = large_url(store)
    crawl = store.begin_crawl(spider="s", settings={})
    writer = Writer(store, crawl)
    for number, url in enumerate((large, "u", large + "2", "v"), start=1):
        writer.put(page(number, url))
        writer.flush()
    writer.close()

    assert [row["id"] for row in pages_of(store)] == [2, 4]
    assert (writer.rows_rejected, writer.backlog) == (2, 0)


def test_visits_of_one_page_with_history(store: Store) -> None:
    large = large_url(store)

    writer = write(
        store, page(1, "u"), page(2, large), page(2, large, Kind.CHANGED), page(3, "v"), history=True
    )

    assert [row["id"] for row in pages_of(store)] == [1, 3]
    assert (writer.rows_rejected, writer.rows_written) == (1, 4)


def test_flags_and_links_of_a_refused_page(store: Store) -> None:
    large = large_url(store)

    writer = write(store, page(1, large), page(2, "u"), links={1: 7, 2: 8}, flags=[1, 2])

    (row,) = pages_of(store)
    assert (row["id"], row["links_withheld"], row["flagged_at"] is not None) == (2, 8, True)
    assert writer.rows_rejected == 1


class TestDuplicatesOfAPageThatIsNotThere:
    def test_are_stored_as_new(self, store: Store) -> None:
        large = large_url(store)
        crawl = store.begin_crawl(spider="s", settings={})
        write(store, page(9, "other"), duplicate(2, "a", 9), crawl=crawl)
        writer = Writer(store, crawl)
        writer.put(page(1, large))
        writer.put(duplicate(2, "a", 1, canonical_url=large))
        writer.flush()
        writer.put(duplicate(3, "b", 1, canonical_url=large))
        writer.put(duplicate(4, "c", 9))
        writer.close()

        assert {row["id"]: row["kind"] for row in pages_of(store)} == {
            2: "new",
            3: "new",
            4: "duplicate",
            9: "new",
        }
        assert [(row["duplicate_hash_id"], row["actual_hash_id"]) for row in relations_of(store)] == [(4, 9)]
        assert writer.rows_rejected == 1
        assert writer.missing() == {large}
        assert writer.dropped() == {2, 3}

    def test_until_it_is_stored(self, store: Store) -> None:
        writer = Writer(store, store.begin_crawl(spider="s", settings={}), history=True)
        for verdict in (
            duplicate(2, "a", 1, canonical_url="u"),
            page(1, "u"),
            duplicate(2, "a", 1, canonical_url="u"),
        ):
            writer.put(verdict)
            writer.flush()
        writer.close()

        assert [row["kind"] for row in pages_of(store)] == ["new", "duplicate"]
        assert len(relations_of(store)) == 1
        assert (writer.rows_rejected, writer.missing()) == (0, set())

    @pytest.mark.parametrize("interval", [60.0, 0.0])
    def test_become_duplicates_of_the_first_of_them(self, store: Store, interval: float) -> None:
        large = large_url(store)
        process = Process(store, interval=interval)
        process.judge(large, TEXT)
        for name in "abc":
            assert process.judge(name, TEXT).canonical_url == large
        process.end()

        assert kinds(store) == {"a": "new", "b": "duplicate", "c": "duplicate"}
        assert relations(store) == {"b": "a", "c": "a"}
        assert process.writer.rows_rejected == 1

    def test_while_the_crawl_goes_on(self, store: Store) -> None:
        large = large_url(store)
        process = Process(store)
        process.judge(large, TEXT)
        process.judge("a", TEXT)
        process.writer.flush()

        process.follow()

        assert process.judge("b", TEXT).kind is Kind.NEW
        assert process.judge("c", TEXT).canonical_url == "b"
        process.end()
        assert relations(store) == {"b": "a", "c": "a"}

    def test_of_a_crawl_that_died(self, store: Store) -> None:
        large = large_url(store)
        dead = Process(store)
        for url in (large, "a", "b"):
            dead.judge(url, TEXT)
        dead.writer.close()
        assert kinds(store) == {"a": "new", "b": "new"}

        Process(store).end()

        assert relations(store) == {"b": "a"}


@pytest.mark.slow
class TestWhatIsNoRefusal:
    """The database fails, and a row that stands alone, or is about to, is kept."""

    def test_an_outage_in_the_middle_of_halving(self, server_url: str) -> None:
        with (
            through_proxy(server_url) as (proxy, through),
            Store.open(through, scheme=str(Scheme())) as store,
        ):
            is_mariadb = store.engine.dialect.name == "mysql"
            large = longer_than_a_packet(store) if is_mariadb else large_url(store)
            crawl = store.begin_crawl(spider="s", settings={})

            def restart() -> None:
                proxy.go_away()
                threading.Timer(1.0, proxy.come_back).start()

            alone = before_statement(
                store,
                lambda _, values: isinstance(values, dict) and values.get("actual_url") == large,
                restart,
            )
            pages = [page(number, f"u{number}") for number in range(1, 9)]

            writer = write(store, *pages[:3], page(9, large), *pages[3:], duplicate(10, "v", 1), crawl=crawl)

            assert len(alone) == 1
            assert [row["id"] for row in pages_of(store)] == [*range(1, 9), 10]
            assert len(relations_of(store)) == 1
            assert (writer.rows_rejected, writer.rows_written) == (1, 10)

    def test_a_connection_that_breaks_each_time_it_is_its_turn(self, server_url: str) -> None:
        with Store.open(server_url, scheme=str(Scheme())) as store:
            crawl = store.begin_crawl(spider="s", settings={})
            breaks = [1, 2]

            def listener(connection: object, cursor: object, statement: str, values: Any, *_: object) -> None:
                if breaks and "'u'" in repr(values):
                    breaks.pop()
                    disconnect_all(server_url)

            sa.event.listen(store.engine, "before_cursor_execute", listener)

            writer = write(store, page(1, "u"), crawl=crawl)

            assert [row["id"] for row in pages_of(store)] == [1]
            assert (writer.retries, writer.rows_rejected, breaks) == (2, 0, [])

    def test_a_row_that_another_transaction_holds(
        self, server_url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stores, "ANSWER_SECONDS", 0.3)
        with Store.open(server_url, scheme=str(Scheme())) as store:
            crawl = store.begin_crawl(spider="s", settings={})
            write(store, page(1, "u"), crawl=crawl)
            writer = Writer(store, crawl)
            holder = sa.create_engine(server_url)
            with holder.begin() as connection:
                connection.execute(sa.text("UPDATE simhash_values SET features = 31 WHERE id = 1"))
                writer.put(page(1, "u", Kind.UNCHANGED))
                while writer.retries < 4:  # more often than a row is tried that is refused
                    time.sleep(0.01)
            holder.dispose()
            writer.close()

            assert [row["kind"] for row in pages_of(store)] == ["unchanged"]
            assert writer.rows_rejected == 0

    def test_a_table_that_is_away(self, server_url: str) -> None:
        with Store.open(server_url, scheme=str(Scheme())) as store:
            crawl = store.begin_crawl(spider="s", settings={})
            writer = Writer(store, crawl)
            with store.begin_write() as connection:
                connection.execute(sa.text("ALTER TABLE simhash_values RENAME TO away"))
            writer.put(page(crawl * PAGES_PER_CRAWL + 1, "u"))
            while writer.retries < 4:
                time.sleep(0.01)
            with store.begin_write() as connection:
                connection.execute(sa.text("ALTER TABLE away RENAME TO simhash_values"))
            writer.close()

            assert len(pages_of(store)) == 1
            assert writer.rows_rejected == 0
