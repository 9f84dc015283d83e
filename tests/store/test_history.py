"""The history of pages on all databases: which visits make a version, and what is read back.

The crawls are those of a site that changes.
"""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.cli.main import main
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.rule import Rule
from neardup.detection.verdict import Kind, Verdict
from neardup.fingerprint import hamming
from neardup.fingerprint.scheme import Scheme
from neardup.store import engine as engines
from neardup.store import removal
from neardup.store.page_report import page_report
from neardup.store.schema import page_versions, simhash_values
from neardup.store.store import Store
from tests.support.crawling import Site, crawl
from tests.support.spiders import OTHER, THIRD, WORDS, LinkSpider
from tests.support.stores import before_statement, pages_of, relations_of, write
from tests.support.verdicts import duplicate, fingerprint, page

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.store.writer import Writer

A, B = fingerprint(0b1111), fingerprint(0b1000)
DISTANCE = 3


def visit(store: Store, *verdicts: Verdict, crawl_id: int | None = None, history: bool = True) -> Writer:
    """Store verdicts in one batch, in a crawl of their own."""
    writer = write(store, *verdicts, crawl=crawl_id, history=history)
    assert writer.rows_rejected == 0
    return writer


def gone(number: int, url: str) -> Verdict:
    return page(number, url, Kind.GONE, fingerprint=None, features=0)


def versions(store: Store, page_id: int = 1) -> list[tuple[Any, ...]]:
    """Crawl, kind, fingerprint and own distance of each version of a page, oldest first."""
    version = page_versions.c
    query = (
        sa.select(version.crawl_id, version.kind, version.hash_value, version.own_distance)
        .where(version.page_id == page_id)
        .order_by(version.seen_at)
    )
    with store.reading() as connection:
        return [tuple(row) for row in connection.execute(query)]


class TestVersions:
    def test_first_version(self, store: Store) -> None:
        writer = visit(store, page(1, "u", fingerprint=A))

        (stored,) = pages_of(store)
        with store.reading() as connection:
            (row,) = connection.execute(sa.select(page_versions)).mappings()
        assert {name: value for name, value in row.items() if name != "id"} == {
            "page_id": 1,
            "crawl_id": 1,
            "seen_at": stored["first_seen"],
            "kind": "new",
            "hash_value": A.value,
            "features": 30,
            "own_distance": None,
        }
        assert writer.rows_written == 2

    def test_a_visit_that_shows_nothing_new_is_no_version(self, store: Store) -> None:
        visit(store, page(1, "u", fingerprint=A), duplicate(2, "v", 1, fingerprint=A))
        visit(store, page(1, "u", Kind.UNCHANGED, fingerprint=A, own_distance=0))
        writer = visit(store, duplicate(2, "v", 1, fingerprint=A, own_distance=0))

        assert versions(store) == [(1, "new", A.value, None)]
        assert versions(store, 2) == [(1, "duplicate", A.value, None)]
        assert writer.rows_written == 2  # the page and its relation

    def test_every_change_is_one(self, store: Store) -> None:
        original = page(9, "original", fingerprint=B)
        visit(store, page(1, "u", fingerprint=A), original)
        visit(store, page(1, "u", Kind.CHANGED, fingerprint=B, own_distance=DISTANCE))
        visit(store, duplicate(1, "u", 9, fingerprint=B, own_distance=0))
        visit(store, page(1, "u", Kind.TOO_SHORT, fingerprint=B, features=3))
        visit(store, page(1, "u", Kind.TOO_SHORT, fingerprint=None, features=0))
        visit(store, gone(1, "u"))
        visit(store, gone(1, "u"))
        visit(store, page(1, "u", Kind.CHANGED, fingerprint=A))

        assert versions(store) == [
            (1, "new", A.value, None),
            (2, "changed", B.value, DISTANCE),
            (3, "duplicate", B.value, 0),
            (4, "too_short", B.value, 0),
            (5, "too_short", None, None),
            (6, "gone", None, None),
            (8, "changed", A.value, None),
        ]

    def test_a_duplicate_that_became_canonical_unseen(self, store: Store) -> None:
        # Its canonical page changed: the end of that crawl made it canonical, and its next visit finds it so.
        visit(store, page(1, "u", fingerprint=A), duplicate(2, "v", 1, fingerprint=B, distance=DISTANCE))
        visit(store, page(2, "v", Kind.UNCHANGED, fingerprint=B, own_distance=0))

        assert versions(store, 2) == [(1, "duplicate", B.value, None), (2, "unchanged", B.value, 0)]

    @pytest.mark.parametrize("batches", [1, 2])
    def test_a_verdict_that_is_corrected_is_no_version(self, store: Store, batches: int) -> None:
        visit(store, page(1, "u", fingerprint=A))
        crawl = store.begin_crawl(spider="s", settings={})
        seen = duplicate(2, "v", 1, fingerprint=B, distance=DISTANCE)
        corrected = page(2, "v", Kind.NEW, fingerprint=B, again=True)
        for verdicts in ([seen, corrected],) if batches == 1 else ([seen], [corrected]):
            visit(store, *verdicts, crawl_id=crawl)

        assert versions(store, 2) == [(2, "new", B.value, None)]
        assert pages_of(store)[1]["kind"] == "new"
        assert relations_of(store) == []

        visit(store, page(2, "v", Kind.UNCHANGED, fingerprint=B, own_distance=0))
        assert versions(store, 2) == [(2, "new", B.value, None)]

    def test_crawls_without_history(self, store: Store) -> None:
        visit(store, page(1, "u", fingerprint=fingerprint(7)), history=False)
        assert versions(store) == []
        visit(store, page(1, "u", Kind.CHANGED, fingerprint=A, own_distance=1))
        visit(store, page(1, "u", Kind.CHANGED, fingerprint=B, own_distance=DISTANCE), history=False)
        visit(store, page(1, "u", Kind.UNCHANGED, fingerprint=B, own_distance=0))

        # The first that is stored has none before it; the third tells what the crawl between did not.
        assert versions(store) == [(2, "changed", A.value, None), (4, "unchanged", B.value, DISTANCE)]

    def test_all_visits_of_a_batch_count(self, store: Store) -> None:
        back = page(1, "u", Kind.CHANGED, fingerprint=A, own_distance=DISTANCE)
        visit(
            store,
            page(1, "u", fingerprint=A),
            page(1, "u", Kind.UNCHANGED, fingerprint=A, own_distance=0),
            page(1, "u", Kind.CHANGED, fingerprint=B, own_distance=DISTANCE),
            back,
        )

        assert versions(store) == [
            (1, "new", A.value, None),
            (1, "changed", B.value, DISTANCE),
            (1, "changed", A.value, DISTANCE),
        ]
        assert [row["kind"] for row in pages_of(store)] == ["changed"]

    def test_a_long_history_among_many_pages(self, store: Store) -> None:
        crawl_id = store.begin_crawl(spider="s", settings={})
        others = [page(number, f"u{number}") for number in range(2, 1200)]
        for value in range(1, 60):
            visit(store, page(1, "u", Kind.CHANGED, fingerprint=fingerprint(value)), crawl_id=crawl_id)
        visit(store, *others, page(1, "u", Kind.UNCHANGED, fingerprint=fingerprint(59)), crawl_id=crawl_id)

        found = versions(store)
        assert [value for _, _, value, _ in found] == list(range(1, 60))
        assert [d for _, _, _, d in found[1:]] == [hamming.distance(n, n + 1) for n in range(1, 59)]
        with store.reading() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(page_versions)).scalar() == 1257

    def test_two_crawls_that_meet_the_same_change_at_once_store_one_version(self, database_url: str) -> None:
        with (
            Store.open(database_url, scheme=str(Scheme())) as one,
            Store.open(database_url, scheme=str(Scheme())) as other,
        ):
            crawl_ids = [one.begin_crawl(spider="s", settings={}) for _ in range(2)]
            visit(one, page(1, "u", fingerprint=A), crawl_id=crawl_ids[0])
            changed = page(1, "u", Kind.CHANGED, fingerprint=B)
            waits = threading.Event()
            second = threading.Thread(target=visit, args=(other, changed), kwargs={"crawl_id": crawl_ids[1]})
            before_statement(
                other,
                lambda statement, _: statement.startswith(("BEGIN IMMEDIATE", "INSERT INTO simhash_values")),
                waits.set,
            )

            def meet() -> None:
                second.start()
                assert waits.wait(30)

            before_statement(one, lambda statement, _: "INSERT INTO page_versions" in statement, meet)
            visit(one, changed, crawl_id=crawl_ids[0])
            second.join()

            assert [kind for _, kind, _, _ in versions(one)] == ["new", "changed"]


class TestTwice:
    def test_a_batch_whose_commit_was_not_heard_of(self, store: Store) -> None:
        """The connection breaks after the commit, before it is known: the whole batch is tried again."""
        visit(store, page(1, "u", fingerprint=A))
        lost: list[int] = []

        def lose(connection: sa.Connection) -> None:
            if not lost:
                connection.connection.dbapi_connection.commit()  # type: ignore[union-attr]
                lost.append(1)
                raise sa.exc.OperationalError("COMMIT", None, ConnectionError("gone"))

        sa.event.listen(store.engine, "commit", lose)
        writer = visit(
            store,
            page(1, "u", Kind.CHANGED, fingerprint=B, own_distance=DISTANCE),
            page(1, "u", Kind.CHANGED, fingerprint=A, own_distance=DISTANCE),
            page(2, "v", fingerprint=A),
            crawl_id=1,
        )

        assert (lost, writer.retries) == ([1], 1)
        assert [kind for _, kind, _, _ in versions(store)] == ["new", "changed", "changed"]
        assert len(versions(store, 2)) == 1

    def test_a_failure_leaves_neither_page_nor_version(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail() -> None:
            with store.reading() as connection:
                found.append(
                    connection.execute(sa.select(sa.func.count()).select_from(simhash_values)).scalar()
                )
            raise sa.exc.OperationalError("INSERT", None, ConnectionError("gone"))

        monkeypatch.setattr(engines, "BUSY_SECONDS", 0.05)
        found: list[Any] = []
        met = before_statement(store, lambda text, _: "INSERT INTO page_versions" in text, fail)

        writer = visit(store, page(1, "u", fingerprint=A))

        assert (len(met), writer.retries) == (1, 1)
        assert found == [0]  # others see nothing of a batch until all of it is stored
        assert len(pages_of(store)) == len(versions(store)) == 1

    def test_a_duplicate_whose_canonical_page_is_not_stored_is_new_in_its_history_too(
        self, store: Store
    ) -> None:
        # There is no page 999.
        writer = visit(store, page(1, "u"), duplicate(2, "v", 999), page(3, "w"))

        assert writer.rows_rejected == 0
        assert [[kind for _, kind, _, _ in versions(store, number)] for number in (1, 2, 3)] == [["new"]] * 3

    def test_a_page_that_another_crawl_stored_under_its_own_id(self, store: Store) -> None:
        ids = [store.begin_crawl(spider=name, settings={}) for name in "ab"]
        a, b = (crawl_id * PAGES_PER_CRAWL + 1 for crawl_id in ids)
        visit(store, page(a, "u", fingerprint=A), crawl_id=ids[0])

        visit(store, page(b, "u", fingerprint=A), page(b, "u", Kind.CHANGED, fingerprint=B), crawl_id=ids[1])

        assert versions(store, a) == [(1, "new", A.value, None), (2, "changed", B.value, DISTANCE)]
        assert versions(store, b) == []

    def test_a_visit_before_the_last_version_that_is_stored(self, store: Store) -> None:
        visit(store, page(1, "u", fingerprint=A))
        with store.begin_write() as connection:
            connection.execute(sa.update(page_versions).values(seen_at=datetime(2100, 1, 1, tzinfo=UTC)))

        visit(store, page(1, "u", Kind.CHANGED, fingerprint=B))

        assert versions(store) == [(1, "new", A.value, None)]


class TestRemoval:
    @pytest.fixture
    def stored(self, store: Store) -> Store:
        """Three crawls of a page that changes twice.

        Crawl 1 brings two pages and a duplicate. Crawl 2 changes the first page and brings another one.
        Crawl 3 changes the first page again.
        """
        visit(store, page(1, "u", fingerprint=A), page(2, "v"), duplicate(3, "w", 2))
        time.sleep(0.01)
        visit(store, page(1, "u", Kind.CHANGED, fingerprint=B, own_distance=DISTANCE), page(4, "x"))
        visit(store, page(1, "u", Kind.CHANGED, fingerprint=A, own_distance=DISTANCE))
        return store

    def all_versions(self, store: Store) -> dict[int, list[int]]:
        """The crawls that brought versions, by page."""
        return {
            number: [crawl_id for crawl_id, *_ in found]
            for number in range(1, 5)
            if (found := versions(store, number))
        }

    def test_old_pages(self, stored: Store) -> None:
        with stored.reading() as connection:
            second = connection.execute(
                sa.select(simhash_values.c.first_seen).where(simhash_values.c.id == 4)
            ).scalar_one()

        list(removal.remove_pages(stored, removal.older_than(second), Rule(8)))

        assert self.all_versions(stored) == {1: [1, 2, 3], 4: [2]}
        assert relations_of(stored) == []

    @pytest.mark.parametrize(
        ("crawl_id", "left"),
        [
            (1, {1: [2, 3], 4: [2]}),
            (2, {1: [1, 3], 2: [1], 3: [1]}),
            (3, {1: [1, 2], 2: [1], 3: [1], 4: [2]}),
        ],
    )
    def test_a_crawl(self, stored: Store, crawl_id: int, left: dict[int, list[int]]) -> None:
        list(removal.remove_crawl(stored, crawl_id, Rule(8)))

        assert self.all_versions(stored) == left

    def test_the_next_visit_is_compared_with_what_is_left(self, stored: Store) -> None:
        list(removal.remove_crawl(stored, 3, Rule(8)))

        visit(stored, page(1, "u", Kind.UNCHANGED, fingerprint=A, own_distance=0))

        assert [(kind, distance) for _, kind, _, distance in versions(stored)] == [
            ("new", None),
            ("changed", DISTANCE),
            ("unchanged", DISTANCE),
        ]


class TestCrawls:
    """Three crawls of a site that changes between them."""

    PATHS = ("/", "/steady", "/news", "/becomes-copy", "/leaves", "/shrinks")

    def change(self, site: Site, number: int) -> None:
        texts = {
            "/": OTHER,
            "/steady": WORDS,
            "/news": THIRD if number == 0 else THIRD + 60 * " breaking",
            "/becomes-copy": " ".join(f"own{i}" for i in range(60)) if number == 0 else WORDS,
            "/shrinks": " ".join(f"shrinking{i}" for i in range(60)) if number < 2 else "no more",
            "/leaves": " ".join(f"leaving{i}" for i in range(60)),
        }
        for path, text in texts.items():
            links = self.PATHS[1:] if path == "/" else ()
            site.add(path, text, *links, status=404 if (path, number) == ("/leaves", 1) else 200)

    def history(self, url: str, site: Site) -> dict[str, list[tuple[int, str]]]:
        with Store.open(url, scheme=str(Scheme())) as store, store.reading() as connection:
            found = {}
            for path in self.PATHS:
                report = page_report(connection, f"{site.url}{path}")
                assert report is not None
                assert report.version_count == len(report.versions)
                found[path] = [(v.crawl_id, v.kind) for v in reversed(report.versions)]
                self.check(report.versions[::-1], report.fingerprint)
            return found

    def check(self, found: list[Any], fingerprint: int | None) -> None:
        """Distances are those of the fingerprints, and the last one is that of the page."""
        if not found:
            return
        assert found[-1].fingerprint == fingerprint
        assert [version.seen_at for version in found] == sorted({version.seen_at for version in found})
        assert found[0].own_distance is None
        for before, now in pairwise(found):
            expected = None
            if before.fingerprint is not None and now.fingerprint is not None:
                expected = hamming.distance(before.fingerprint, now.fingerprint)
            assert now.own_distance == expected

    @pytest.mark.slow
    def test_what_happened_is_what_is_read_back(
        self, site: Site, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        settings = {
            "ADDONS": {"neardup.Addon": 500},
            "NEARDUP_DATABASE_URL": database_url,
            "NEARDUP_HISTORY": True,
        }
        for number in range(3):
            self.change(site, number)
            done = crawl(LinkSpider, settings, start=f"{site.url}/")
            assert done.neardup("rows_rejected") == 0

        assert self.history(database_url, site) == {
            "/": [(1, "new")],
            "/steady": [(1, "new")],
            "/news": [(1, "new"), (2, "changed")],
            "/becomes-copy": [(1, "new"), (2, "duplicate")],
            "/leaves": [(1, "new"), (2, "gone"), (3, "changed")],
            "/shrinks": [(1, "new"), (3, "too_short")],
        }

    @pytest.mark.slow
    def test_off_nothing_is_written(
        self, site: Site, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": database_url}
        for number in range(2):
            self.change(site, number)
            crawl(LinkSpider, settings, start=f"{site.url}/")

        assert self.history(database_url, site) == {path: [] for path in self.PATHS}


class TestShow:
    URL = "http://a.example/page"

    @pytest.fixture
    def stored(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
        monkeypatch.setenv("NEARDUP_DATABASE_URL", store.engine.url.render_as_string(hide_password=False))
        visit(store, page(1, self.URL, fingerprint=A), page(2, "http://a.example/other"))
        visit(store, page(1, self.URL, Kind.CHANGED, fingerprint=B, own_distance=DISTANCE, features=31))
        visit(store, gone(1, self.URL))
        visit(store, page(3, "http://a.example/unkept"), history=False)
        return store

    def said(self, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
        assert main(["show", *arguments]) == 0
        return capsys.readouterr().out

    def test_table(self, stored: Store, capsys: pytest.CaptureFixture[str]) -> None:
        lines = self.said(capsys, self.URL).splitlines()
        head, *rows = lines[lines.index("History: 3 versions") + 1 :]

        assert head.split("  ")[1:][-1].strip() == "fingerprint"
        assert [row.split()[3:] for row in rows] == [
            ["3", "gone", "0", "none"],
            ["2", "changed", "3", "31", "0x0000000000000008"],
            ["1", "new", "30", "0x000000000000000f"],
        ]
        assert rows[0].split()[2] == "UTC"

    def test_json(self, stored: Store, capsys: pytest.CaptureFixture[str]) -> None:
        shown = json.loads(self.said(capsys, self.URL, "--format", "json"))

        assert shown["version_count"] == 3
        assert [
            (v["kind"], v["own_distance"], v["features"], v["fingerprint"]) for v in shown["versions"]
        ] == [
            ("gone", None, 0, None), ("changed", DISTANCE, 31, B.value), ("new", None, 30, A.value),
        ]  # fmt: skip
        assert shown["versions"][0]["seen_at"] == shown["last_seen"]

    def test_limit(self, stored: Store, capsys: pytest.CaptureFixture[str]) -> None:
        text = self.said(capsys, self.URL, "--limit", "2")

        assert "History: 3 versions (the 2 newest)" in text
        assert "gone" in text
        assert "0x000000000000000f" not in text

    def test_none(self, stored: Store, capsys: pytest.CaptureFixture[str]) -> None:
        assert "History" not in self.said(capsys, "http://a.example/unkept")
        shown = json.loads(self.said(capsys, "http://a.example/unkept", "--format", "json"))
        assert (shown["version_count"], shown["versions"]) == (0, [])
