"""Transactions in each other's way, on real servers.

Deadlocks, lock timeouts and serialisation failures are tried again.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from neardup.cli.main import main
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.fingerprint.scheme import Scheme
from neardup.store import store as stores
from neardup.store.schema import simhash_values
from neardup.store.store import Store
from neardup.store.writer import Writer
from tests.support.databases import SERVERS
from tests.support.faults import make_serializable, wait_for_lock
from tests.support.ready_databases import ready_database
from tests.support.stores import pages_of, write
from tests.support.verdicts import duplicate, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOUCH = sa.text("UPDATE simhash_values SET features = features + 1 WHERE id = :id")
LOCK_TIMEOUT = {
    "postgresql": {"options": "-c lock_timeout=200"},
    "mysql": {"init_command": "SET innodb_lock_wait_timeout = 1"},
}
OLD, ALL = 5, 45
"""Pages of the first crawl, which have not been seen for long, and of both."""


@pytest.fixture(params=list(SERVERS))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ready_database(request.param, tmp_path) as made:
        with Store.open(made, scheme=str(Scheme())) as store:
            for crawl, numbers in ((1, range(1, OLD + 1)), (2, range(OLD + 1, ALL + 1))):
                store.begin_crawl(spider="s", settings={})
                store.finish_crawl(crawl, reason="finished", counts={})
                write(store, *(page(n, f"u{n}") for n in numbers), crawl=crawl)
            with store.begin_write() as connection:
                old = sa.update(simhash_values).where(simhash_values.c.id <= OLD)
                connection.execute(old.values(last_seen=datetime(2020, 1, 1, tzinfo=UTC)))
        yield made


@contextmanager
def holding(url: str, *ids: int) -> Iterator[sa.Connection]:
    """Another program, in the middle of a transaction that has changed some pages."""
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for number in ids:
            connection.execute(TOUCH, {"id": number})
        yield connection
    engine.dispose()


def left(url: str) -> list[int]:
    with Store.open(url, scheme=None) as store:
        return [row["id"] for row in pages_of(store)]


def impatient(url: str) -> str:
    """A URL by which locks are not waited for as long as usual."""
    parsed = sa.make_url(url)
    limited = parsed.update_query_dict(LOCK_TIMEOUT[parsed.get_backend_name()])
    return limited.render_as_string(hide_password=False)


REMOVE = ["crawls", "remove", "1", "--yes"]
PRUNE = ["db", "prune", "--older-than", "90d"]


class TestRemoval:
    @pytest.mark.slow
    @pytest.mark.parametrize("command", [REMOVE, PRUNE], ids=["remove", "prune"])
    def test_deadlock(self, url: str, command: list[str], caplog: pytest.LogCaptureFixture) -> None:
        codes: list[int] = []
        # The server stops the removal: it has changed least (MariaDB), or waited first (PostgreSQL).
        with holding(url, *range(OLD, ALL + 1)) as other:
            removal = threading.Thread(target=lambda: codes.append(main([*command, "--database", url])))
            removal.start()
            wait_for_lock(url)
            other.execute(TOUCH, {"id": 1})
        removal.join()

        assert codes == [0]
        assert left(url) == list(range(OLD + 1, ALL + 1))
        assert caplog.text.lower().count("deadlock") == 1
        assert caplog.text.count("(another transaction was in the way); trying again") == 1

    @pytest.mark.slow
    def test_lock_timeout(
        self,
        url: str,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        waits: list[float] = []
        with holding(url, OLD) as other:

            def wait(seconds: float) -> None:
                waits.append(seconds)
                other.commit()

            monkeypatch.setattr(stores, "sleep", wait)

            assert main([*PRUNE, "--database", impatient(url)]) == 0

        assert len(waits) == 1
        assert left(url) == list(range(OLD + 1, ALL + 1))
        assert caplog.text.count("trying again") == 1

    @pytest.mark.slow
    def test_a_lock_that_nobody_lets_go(
        self,
        url: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setattr(stores, "_WAITS", (0.01,))
        with holding(url, OLD):
            assert main([*PRUNE, "--database", impatient(url)]) == 1

        assert "another transaction was in the way" in capsys.readouterr().err
        assert left(url) == list(range(1, ALL + 1))


@pytest.mark.slow
def test_the_end_of_a_crawl(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    engine = sa.create_engine(url)
    with engine.begin() as other, Store.open(impatient(url), scheme=None) as store:
        other.execute(sa.text("UPDATE crawls SET batches = batches + 1 WHERE id = 2"))

        def wait(seconds: float) -> None:
            waits.append(seconds)
            other.commit()

        monkeypatch.setattr(stores, "sleep", wait)

        store.finish_crawl(2, reason="shutdown", counts={})

        with store.reading() as connection:
            reason = connection.execute(sa.text("SELECT finish_reason FROM crawls WHERE id = 2")).scalar()
        assert (reason, len(waits)) == ("shutdown", 1)
    engine.dispose()


class TestSerializable:
    @pytest.fixture
    def serializable(self, tmp_path: Path) -> Iterator[Store]:
        with ready_database("postgresql", tmp_path) as url:
            make_serializable(url)
            with Store.open(url, scheme=str(Scheme())) as store:
                yield store

    @pytest.mark.slow
    def test_two_writers(self, serializable: Store) -> None:
        crawls = [serializable.begin_crawl(spider=name, settings={}) for name in "ab"]
        writers = [Writer(serializable, crawl, batch_rows=20) for crawl in crawls]
        urls = [f"u{number}" for number in range(200)]
        for writer, ordered in zip(writers, (urls, urls[::-1]), strict=True):
            first = writer.crawl_id * PAGES_PER_CRAWL
            for number, url in enumerate(ordered, start=first):
                # Every second page is a copy of the one before it.
                copy = number % 2
                writer.put(duplicate(number, url, number - 1) if copy else page(number, url))
        for writer in writers:
            writer.close()

        assert [(writer.rows_rejected, writer.error) for writer in writers] == [(0, None)] * 2
        assert sorted(row["actual_url"] for row in pages_of(serializable)) == sorted(urls)
