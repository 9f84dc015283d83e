"""What goes wrong between the store and a real server: connections that break, crawls that cross, URLs that
are mistyped.
"""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.verdict import Kind
from neardup.errors import ConfigurationError, DatabaseUnavailable, StoreError
from neardup.fingerprint.scheme import Scheme
from neardup.store.engine import database_url as checked
from neardup.store.engine import make_engine
from neardup.store.store import Store
from neardup.store.writer import Writer
from tests.support.databases import disconnect_all
from tests.support.stores import before_statement, pages_of, relations_of, write
from tests.support.verdicts import duplicate, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class TestBrokenConnections:
    def test_in_the_middle_of_a_batch(self, server_url: str) -> None:
        with Store.open(server_url, scheme=str(Scheme())) as store:
            crawl = store.begin_crawl(spider="s", settings={})
            broken = before_statement(
                store,
                lambda statement, _: "INSERT INTO duplicate_values" in statement,
                lambda: disconnect_all(server_url),
            )

            writer = write(store, page(1, "u"), duplicate(2, "v", 1), crawl=crawl, links={2: 5})

            assert len(broken) == 1
            assert (writer.retries, writer.error) == (1, None)
            assert [(row["id"], row["links_withheld"]) for row in pages_of(store)] == [(1, 0), (2, 5)]
            assert len(relations_of(store)) == 1
            assert writer.rows_written == 3

    def test_between_two_batches(self, server_url: str) -> None:
        with Store.open(server_url, scheme=str(Scheme())) as store:
            crawl = store.begin_crawl(spider="s", settings={})
            write(store, page(1, "u"), crawl=crawl)
            disconnect_all(server_url)

            write(store, page(2, "v"), crawl=crawl)

            assert [row["id"] for row in pages_of(store)] == [1, 2]


class TestCrawlsAtOnce:
    def test_two_pages_are_not_duplicates_of_each_other(self, store: Store) -> None:
        crawl_a, crawl_b = (store.begin_crawl(spider=name, settings={}) for name in "ab")
        a, b = crawl_a * PAGES_PER_CRAWL, crawl_b * PAGES_PER_CRAWL

        # The same two near-copies, met in another order.
        write(store, page(a + 1, "u"), duplicate(a + 2, "v", a + 1), crawl=crawl_a)
        write(store, page(b + 1, "v"), duplicate(b + 2, "u", b + 1), crawl=crawl_b)

        (relation,) = relations_of(store)
        assert (relation["duplicate_hash_id"], relation["actual_hash_id"]) == (a + 1, a + 2)
        assert [row["kind"] for row in pages_of(store)] == ["duplicate", "new"]
        assert [stored.canonical_id for stored in store.known_pages()] == [a + 2, None]

    @pytest.mark.slow
    def test_batches_that_lock_the_same_rows_in_another_order(self, store: Store) -> None:
        crawls = [store.begin_crawl(spider=name, settings={}) for name in "ab"]
        writers = [Writer(store, crawl, batch_rows=100) for crawl in crawls]
        urls = [f"http://a.example/{n}" for n in range(500)]
        for _ in range(4):
            for writer, ordered in zip(writers, (urls, urls[::-1]), strict=True):
                for number, url in enumerate(ordered, start=1):
                    writer.put(page(writer.crawl_id * PAGES_PER_CRAWL + number, url, Kind.UNCHANGED))
        for writer in writers:
            writer.close()

        assert sorted(row["actual_url"] for row in pages_of(store)) == sorted(urls)
        assert [(writer.rows_rejected, writer.error) for writer in writers] == [(0, None)] * 2


class TestWrongUrls:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("postgresql://u:secret@h:port/d", "cannot be read; it must be like"),
            ("mysql://u:secret@[::1]:x/d", "cannot be read; it must be like"),
            ("postgresql//u:secret@h/d", "cannot be read; it must be like"),
            ("postgresql://u:first@secret@h/d", 'an "@" in the password must be written "%40"'),
            ("mysql://u:first@h/secret@h/d", 'an "@" in the password must be written "%40"'),
            ("oracle://u:first@secret@h/d", 'an "@" in the password must be written "%40"'),
        ],
    )
    def test_no_part_of_a_password_is_shown_not_even_in_a_traceback(self, text: str, message: str) -> None:
        with pytest.raises(ConfigurationError, match=message) as caught:
            checked(text)

        error = caught.value
        assert "secret" not in str(error)
        # Only the part a log would show: without the source lines of this test.
        assert error.__suppress_context__ or error.__context__ is None
        assert "secret" not in "".join(traceback.format_exception_only(error))

    def test_an_at_sign_is_allowed_where_it_is_not_part_of_a_password(self) -> None:
        assert checked("postgresql://u:p%40q@h/d").password == "p@q"
        assert checked("mysql://me@tenant:p@h/d").username == "me@tenant"
        assert checked("sqlite:////data/a@b/n.db").database == "/data/a@b/n.db"

    @pytest.mark.parametrize("option", ["no_such_option=1", "read_timeout=soon"])
    def test_option_that_the_driver_refuses(self, option: str) -> None:
        with pytest.raises(ConfigurationError, match="the driver refuses an option: ") as caught:
            Store.open(f"mysql://root:secret@127.0.0.1:1/d?{option}", scheme=str(Scheme()))

        assert "secret" not in str(caught.value)

    def test_wrong_password(self, server_url: str) -> None:
        # PostgreSQL trusts everybody on the test server; that role is refused for being unknown.
        url = sa.make_url(server_url).set(username="neardup_nobody", password="secret")

        with pytest.raises(DatabaseUnavailable) as caught:
            Store.open(url.render_as_string(hide_password=False), scheme=str(Scheme()))

        assert "neardup_nobody:***@" in str(caught.value)
        assert "secret" not in "".join(str(error) for error in _with_causes(caught.value))

    def test_missing_postgresql_driver_names_the_extra(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "psycopg", None)

        with pytest.raises(ConfigurationError, match=r'pip install "neardup\[postgres\]"') as caught:
            make_engine(checked("postgresql://u:secret@h/d"))

        assert "secret" not in str(caught.value)

    def test_folder_instead_of_a_file(self, tmp_path: Path) -> None:
        with pytest.raises(StoreError, match="check the path and its permissions"):
            Store.open(f"sqlite:///{tmp_path}", scheme=str(Scheme()))


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
