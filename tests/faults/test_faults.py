"""Faults between a crawl and its database, by a proxy, a full disk, locks and other transactions: retried,
and nothing lost.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.detection.verdict import Kind
from neardup.errors import DatabaseUnavailable
from neardup.fingerprint.scheme import Scheme
from neardup.scrapy import extension
from neardup.scrapy.extension import DATABASE_UNAVAILABLE
from neardup.store import engine as engines
from neardup.store import store as stores
from neardup.store.store import Store
from neardup.store.writer import Writer
from tests.support.crawling import crawl, recorder_of
from tests.support.databases import SERVERS
from tests.support.faults import (
    Fault,
    ForeignLock,
    Outcome,
    faulty_crawl,
    make_serializable,
    small_disk,
    wait_for_lock,
)
from tests.support.proxy import Proxy, through_proxy
from tests.support.ready_databases import ready_database
from tests.support.stores import before_statement, pages_of, write
from tests.support.synthetic import SETTINGS, MadePages
from tests.support.verdicts import page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy.crawler import Crawler

pytestmark = pytest.mark.slow


@pytest.fixture(params=list(SERVERS))
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Proxy, str]]:
    """A database, a proxy before it, and the URL through that."""
    with ready_database(request.param, tmp_path) as url, through_proxy(url) as (proxy, through):
        yield url, proxy, through


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(engines, "_CONNECT_SECONDS", 1)
    monkeypatch.setattr(engines, "BUSY_SECONDS", 0.2)


def nothing_is_lost(outcome: Outcome) -> bool:
    return (outcome.pages_missing, outcome.relations_missing, outcome.rejected) == (0, 0, 0)


class TestProxy:
    def test_cut(self, server: tuple[str, Proxy, str]) -> None:
        url, proxy, through = server

        outcome = faulty_crawl(url, Fault(proxy.cut), through=through)

        assert nothing_is_lost(outcome), outcome
        assert (outcome.reason, outcome.judged) == ("finished", 300)

    def test_restart(self, server: tuple[str, Proxy, str]) -> None:
        url, proxy, through = server

        outcome = faulty_crawl(url, Fault(proxy.go_away, proxy.come_back, seconds=2.0), through=through)

        assert nothing_is_lost(outcome), outcome
        assert (outcome.reason, outcome.judged) == ("finished", 300)
        assert outcome.retries >= 1
        assert outcome.warnings == 1

    @pytest.mark.usefixtures("impatient")
    def test_half_open(self, server: tuple[str, Proxy, str]) -> None:
        url, proxy, through = server

        outcome = faulty_crawl(url, Fault(proxy.go_silent, proxy.come_back, seconds=3.0), through=through)

        assert nothing_is_lost(outcome), outcome
        assert (outcome.reason, outcome.judged) == ("finished", 300)
        assert outcome.retries >= 1

    @pytest.mark.usefixtures("impatient")
    def test_half_open_for_longer_than_the_crawl_waits(
        self, server: tuple[str, Proxy, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # The crawl has one try left when the server is back, and a busy machine answers late.
        monkeypatch.setattr(stores, "ANSWER_SECONDS", 2.0)
        url, proxy, through = server
        fault = Fault(proxy.go_silent, proxy.come_back, seconds=None, give_up_after=1.0)

        outcome = faulty_crawl(url, fault, pages=3000, through=through)

        assert outcome.reason == DATABASE_UNAVAILABLE
        assert 0 < outcome.judged < 3000
        assert nothing_is_lost(outcome), outcome

    def test_delay(self, server: tuple[str, Proxy, str]) -> None:
        url, proxy, through = server

        outcome = faulty_crawl(url, Fault(lambda: setattr(proxy, "delay", 0.05)), through=through)

        assert nothing_is_lost(outcome), outcome
        assert (outcome.reason, outcome.retries) == ("finished", 0)

    @pytest.mark.usefixtures("impatient")
    def test_half_open_at_start_is_an_error(self, server: tuple[str, Proxy, str]) -> None:
        _, proxy, through = server
        proxy.go_silent()

        with pytest.raises(DatabaseUnavailable, match="check that the server runs"):
            Store.open(through, scheme=str(Scheme()))

    def test_reading_is_patient(
        self, server: tuple[str, Proxy, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A server that thinks for a while is cut off from a writer, not from a report."""
        monkeypatch.setattr(stores, "ANSWER_SECONDS", 0.5)
        _, _, through = server
        function = "pg_sleep" if through.startswith("postgresql") else "sleep"
        thinking = sa.text(f"SELECT {function}(1.5)")

        with Store.open(through, scheme=str(Scheme())) as store:
            with store.reading() as connection:
                assert len(connection.execute(thinking).all()) == 1
            with (
                pytest.raises(DatabaseUnavailable),
                store.reading(patiently=False) as connection,
            ):
                connection.execute(thinking)


class TestSQLite:
    @pytest.mark.usefixtures("impatient")
    def test_foreign_lock(self, tmp_path: Path) -> None:
        lock = ForeignLock(tmp_path / "n.db")

        outcome = faulty_crawl(f"sqlite:///{tmp_path}/n.db", Fault(lock.take, lock.release, seconds=2.0))

        assert nothing_is_lost(outcome), outcome
        assert (outcome.reason, outcome.judged) == ("finished", 300)
        assert outcome.retries >= 1

    @pytest.mark.usefixtures("impatient")
    def test_lock_that_outlasts_the_crawl(self, tmp_path: Path) -> None:
        lock = ForeignLock(tmp_path / "n.db")
        fault = Fault(lock.take, lock.release, seconds=None, give_up_after=1.0)

        outcome = faulty_crawl(f"sqlite:///{tmp_path}/n.db", fault, pages=3000)

        assert outcome.reason == DATABASE_UNAVAILABLE
        assert nothing_is_lost(outcome), outcome

    @pytest.mark.usefixtures("impatient")
    def test_a_crawl_that_goes_on_without_its_database(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        lock = ForeignLock(tmp_path / "n.db")
        fault = Fault(lock.take, lock.release, seconds=None, give_up_after=1.0)

        outcome = faulty_crawl(
            f"sqlite:///{tmp_path}/n.db", fault, pages=1000, NEARDUP_WHEN_UNAVAILABLE="continue"
        )

        assert nothing_is_lost(outcome), outcome
        assert (outcome.reason, outcome.judged) == ("finished", 1000)
        assert caplog.text.count("the crawl goes on all the same") == 1

    def test_full_disk(self, tmp_path: Path) -> None:
        with small_disk(tmp_path) as disk:
            outcome = faulty_crawl(f"sqlite:///{tmp_path}/n.db", Fault(disk.fill, disk.empty, seconds=2.0))

        assert nothing_is_lost(outcome), outcome
        assert (outcome.reason, outcome.judged) == ("finished", 300)
        assert outcome.retries >= 1


class TestOtherTransactions:
    def test_deadlock(self, server: tuple[str, Proxy, str], caplog: pytest.LogCaptureFixture) -> None:
        url, _, _ = server
        with Store.open(url, scheme=str(Scheme())) as store:
            urls = [f"http://a.example/{n}" for n in range(1, 41)]
            write(store, *(page(n, text) for n, text in enumerate(urls, start=1)))
            touch = sa.text("UPDATE simhash_values SET features = features + 1 WHERE id = :id")
            # The server stops the transaction that has changed least (MariaDB), or looks for a deadlock first
            # (PostgreSQL): the batch.
            of_postgresql = {"options": "-c deadlock_timeout=1min"} if url.startswith("postgresql") else {}
            engine = sa.create_engine(url, connect_args=of_postgresql)
            crawl_id = store.begin_crawl(spider="s", settings={})
            writer = Writer(store, crawl_id, batch_rows=2)
            with engine.begin() as other:
                for number in range(2, 41):
                    other.execute(touch, {"id": number})
                writer.put(page(1, urls[0], Kind.UNCHANGED, features=77))
                writer.put(page(2, urls[1], Kind.UNCHANGED, features=77))
                wait_for_lock(url)
                other.execute(touch, {"id": 1})
            writer.close()
            engine.dispose()

            assert writer.retries == 1
            assert "trying again" not in caplog.text  # it was over with the first try
            assert writer.rows_rejected == 0
            assert [row["features"] for row in pages_of(store)[:3]] == [77, 77, 31]

    def test_serialisation_failure(self, tmp_path: Path) -> None:
        with ready_database("postgresql", tmp_path) as url:
            make_serializable(url)
            engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
            with Store.open(url, scheme=str(Scheme())) as store, engine.connect() as other:
                write(store, page(1, "u"))

                def cross() -> None:
                    other.execute(sa.text("UPDATE simhash_values SET features = 0"))

                # The transaction has begun, with the count of the batch.
                met = before_statement(
                    store, lambda statement, _: statement.startswith("INSERT INTO simhash_values"), cross
                )

                writer = write(store, page(1, "u", Kind.UNCHANGED, features=77))

                assert len(met) == 1
                assert (writer.retries, writer.rows_rejected) == (1, 0)
                assert [row["features"] for row in pages_of(store)] == [77]
            engine.dispose()


class TestBackPressure:
    @pytest.mark.parametrize(
        "more",
        [
            {"NEARDUP_ACTION": "nofollow"},
            {"NEARDUP_ACTION": "skip"},
            {"NEARDUP_CONTENT_FIELD": "html"},
        ],
        ids=["nofollow", "skip", "content field"],
    )
    def test_pages_are_held_back_while_rows_wait(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
    ) -> None:
        monkeypatch.setattr(extension, "_MOST_WAITING", 50)
        lock = ForeignLock(tmp_path / "n.db")
        locked = threading.Event()
        waiting: list[int] = []

        def watch(crawler: Crawler) -> None:
            recorder = recorder_of(crawler)
            lock.take()
            locked.set()
            # Until it has stopped growing, or has grown by far too much.
            while len(waiting) < 10 or (waiting[-1] != waiting[-10] and waiting[-1] < 400):
                waiting.append(recorder.writer.backlog)
                time.sleep(0.1)
            lock.release()

        settings = (
            SETTINGS
            | more
            | {
                "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
                # Tiny pages: Scrapy itself lets thousands of them be under way.
                "SCRAPER_SLOT_MAX_ACTIVE_SIZE": 1000,
            }
        )

        done = crawl(MadePages, settings, pages=500, host="copies", meanwhile=watch)

        assert locked.is_set()
        again = done.stats.get("neardup/pages_fetched_again", 0)  # with skip: one text at so many addresses
        assert done.neardup("pages") == done.neardup("new") + done.neardup("duplicates") == 500 + again
        assert 0 < max(waiting) <= 50 + 2 * 16
