"""``neardup db check`` on real servers: stores of crawls pass. Each invariant broken by hand is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from crawler.spiders.site import SiteSpider
from neardup.cli.main import main
from neardup.cli.rules import distances_by_crawl
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.verdict import Kind
from neardup.fingerprint.scheme import Scheme
from neardup.store.check import INVARIANTS, check
from neardup.store.page_links import FOLLOWED, StoredLinks, encoded
from neardup.store.schema import TABLES, crawls, duplicate_values, page_links, simhash_values
from neardup.store.stats import settings_by_crawl
from neardup.store.store import Store
from neardup.urls.rules import Rule, Slot
from tests.support.crawling import crawl
from tests.support.databases import BACKENDS
from tests.support.killing import check_tables
from tests.support.places import PAGES
from tests.support.ready_databases import ready_database
from tests.support.stores import taught, write
from tests.support.verdicts import duplicate, fingerprint, page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


WITHIN_THE_RULE = "relations are within the rule"

CANONICAL, COPY, ALONE = (PAGES_PER_CRAWL + number for number in (1, 2, 3))
LATER = 2 * PAGES_PER_CRAWL + 1
VALUE = 0x123456789ABCDEF0


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Two crawls that have ended, one after the other, and whose pages are reconciled."""
    with Store.open(database_url, scheme=str(Scheme())) as opened:
        for verdicts in (
            [
                page(CANONICAL, "http://a.example/1", fingerprint=fingerprint(VALUE)),
                duplicate(
                    COPY,
                    "http://a.example/2",
                    CANONICAL,
                    fingerprint=fingerprint(VALUE ^ 3),
                    resemblance=0.9,
                ),
                page(ALONE, "http://a.example/3"),
            ],
            [
                page(LATER, "http://a.example/4"),
                page(CANONICAL, "http://a.example/1", Kind.UNCHANGED, fingerprint=fingerprint(VALUE)),
            ],
        ):
            crawl_id = opened.begin_crawl(spider="s", settings={})
            rules = taught(None, "a.example")
            rules.effects.count(Rule("a.example", Slot.PARAMETER, "sid"), "copies")
            links = {verdicts[0].page_id or 0: StoredLinks(encoded({1: 0}), encoded({1: FOLLOWED, 3: 0}))}
            write(
                opened,
                *verdicts,
                crawl=crawl_id,
                history=True,
                rules=rules,
                page_links=links,
            )
            opened.finish_crawl(crawl_id, reason="finished", counts={})
        execute(opened, f"INSERT INTO page_ranks (page_id, pagerank) VALUES ({LATER}, 0.25)")
        execute(opened, "UPDATE crawls SET reconciled_batches = batches")
        yield opened


def execute(store: Store, *statements: str) -> None:
    with store.begin_write() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))


def without_constraints(store: Store) -> None:
    """Make the tables anew without their keys, so that rows can be wrong."""
    with store.begin_write() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        elif connection.dialect.name == "mysql":
            connection.exec_driver_sql("SET FOREIGN_KEY_CHECKS = 0")
        cascade = " CASCADE" if connection.dialect.name == "postgresql" else ""
        for table in reversed(TABLES):
            connection.exec_driver_sql(f"CREATE TABLE bare AS SELECT * FROM {table.name}")
            connection.exec_driver_sql(f"DROP TABLE {table.name}{cascade}")
            connection.exec_driver_sql(f"ALTER TABLE bare RENAME TO {table.name}")
        if connection.dialect.name == "mysql":
            connection.exec_driver_sql("SET FOREIGN_KEY_CHECKS = 1")


def copy_row(connection: sa.Connection, table: sa.Table, row_id: int | None = None, **changes: Any) -> None:
    query = sa.select(table) if row_id is None else sa.select(table).where(table.c.id == row_id)
    row = dict(connection.execute(query).mappings().one())
    connection.execute(sa.insert(table), row | changes)


def names(connection: sa.Connection) -> tuple[list[str], list[str]]:
    """What is broken, and what is pending."""
    found = check(connection, distances_by_crawl(settings_by_crawl(connection)), limit=5)
    return [finding.name for finding in found.broken], [finding.name for finding in found.pending]


BREAKS = {
    "duplicates have a relation": "DELETE FROM duplicate_values",
    "relations are of duplicates": f"UPDATE simhash_values SET kind = 'changed' WHERE id = {COPY}",
    "one relation a page": "",
    "pages of relations are there": f"DELETE FROM simhash_values WHERE id = {CANONICAL}",
    "clusters are stars": f"UPDATE simhash_values SET kind = 'gone' WHERE id = {CANONICAL}",
    "distances are true": f"UPDATE simhash_values SET hash_value = -5 WHERE id = {COPY}",
    "percentages are true": "UPDATE duplicate_values SET percentage = 95",
    "evidence is known": "UPDATE duplicate_values SET evidence = 'hearsay'",
    "fingerprints are there": f"UPDATE simhash_values SET hash_value = NULL WHERE id = {ALONE}",
    "kinds are known": f"UPDATE simhash_values SET kind = 'not_html' WHERE id = {ALONE}",
    "one page an address": "",
    "keys are those of the addresses": f"UPDATE simhash_values SET actual_url = 'x' WHERE id = {ALONE}",
    "one scheme": "UPDATE crawls SET scheme = 'another' WHERE id = 2",
    "crawls of pages are there": f"UPDATE simhash_values SET last_crawl_id = 9 WHERE id = {ALONE}",
    "crawls of relations are there": "UPDATE duplicate_values SET crawl_id = 9",
    "versions belong to pages and crawls": "UPDATE page_versions SET page_id = 9",
    "links belong to pages and crawls": f"UPDATE page_links SET page_id = 9 WHERE page_id = {LATER}",
    "links can be read": "",
    "ranks belong to pages": "UPDATE page_ranks SET pagerank = 0",
    "visits are in order": (
        f"UPDATE simhash_values SET last_seen = '2001-01-01 00:00:00.000000' WHERE id = {ALONE}"
    ),
    "crawls are in order": "UPDATE crawls SET finished_at = '2001-01-01 00:00:00.000000' WHERE id = 2",
    "crawls of pages are in order": f"UPDATE simhash_values SET last_crawl_id = 1 WHERE id = {LATER}",
    "ids are those of the first crawl": f"UPDATE simhash_values SET crawl_id = 2 WHERE id = {ALONE}",
    "batches are counted": f"UPDATE simhash_values SET batch_id = batch_id + 9 WHERE id = {ALONE}",
    "reconciled batches are written": "UPDATE crawls SET reconciled_batches = 9 WHERE id = 2",
    "crawls that have ended are shared": "UPDATE crawls SET shared = 0 WHERE id = 2",
    "rules are known": "UPDATE url_rules SET state = 'right'",
    "keys of rules are those of what they say": "UPDATE url_rules SET context = '/elsewhere'",
    "hits of rules are trials": "UPDATE url_rules SET hits = trials + 1",
    "crawls of rules are there": "UPDATE url_rules SET crawl_id = 9",
    "effects belong to rules and crawls": "UPDATE rule_effects SET copies = -1",
    WITHIN_THE_RULE: "UPDATE duplicate_values SET hamming_distance = 9",
}
"""What breaks each invariant and, but for what cannot be told from it, no other."""

IMPLIED = {
    "pages of relations are there": [
        "links belong to pages and crawls",
        "versions belong to pages and crawls",
    ],
    "ids are those of the first crawl": ["crawls of pages are in order"],
    WITHIN_THE_RULE: ["distances are true", "percentages are true"],
}


def test_each_invariant_has_its_test() -> None:
    assert BREAKS.keys() == {*(invariant.name for invariant in INVARIANTS), WITHIN_THE_RULE}


def test_a_store_that_is_whole(store: Store) -> None:
    with store.reading() as connection:
        assert names(connection) == ([], [])


def test_each_is_found(store: Store) -> None:
    without_constraints(store)
    for name, statement in BREAKS.items():
        with store.engine.connect() as connection:  # nothing is committed
            if name == "one relation a page":
                copy_row(connection, duplicate_values, id=99)
            elif name == "links can be read":
                connection.execute(sa.update(page_links).values(links=b"\x80"))
            elif name == "one page an address":
                copy_row(connection, simhash_values, ALONE, id=PAGES_PER_CRAWL + 9)
            else:
                connection.execute(sa.text(statement))

            broken, _ = names(connection)

        assert sorted(broken) == sorted([name, *IMPLIED.get(name, [])]), name


LIMITS = [("0.83", 8, False), ("0.4", 8, False), ("0.9", 9, True)]

RULES: list[tuple[dict[str, Any], dict[str, Any], bool]] = [
    ({"NEARDUP_MAX_DISTANCE": 1}, {"NEARDUP_MAX_DISTANCE": 1}, True),
    ({"NEARDUP_MAX_DISTANCE": 1}, {"NEARDUP_MAX_DISTANCE": 2}, False),  # the later one may have measured it
    ({"NEARDUP_MAX_DISTANCE": 2}, {"NEARDUP_MAX_DISTANCE": 1}, False),
    ({"NEARDUP_FEATURES": "word-tfidf:/nowhere"}, {}, False),  # whose distance nobody knows
]


class TestRules:
    def test_limits(self, store: Store) -> None:
        for resemblance, distance, broken in LIMITS:
            with store.engine.connect() as connection:
                relation = f"resemblance = {resemblance}, hamming_distance = {distance}"
                connection.execute(sa.text(f"UPDATE duplicate_values SET {relation}"))

                assert (WITHIN_THE_RULE in names(connection)[0]) == broken, relation

    def test_of_the_crawls(self, store: Store) -> None:
        for first, second, broken in RULES:
            with store.engine.connect() as connection:
                for crawl_id, settings in enumerate((first, second), start=1):
                    connection.execute(
                        sa.update(crawls).where(crawls.c.id == crawl_id).values(settings=json.dumps(settings))
                    )

                assert (WITHIN_THE_RULE in names(connection)[0]) == broken, (first, second)

    def test_of_a_later_crawl(self, store: Store) -> None:
        for first, second, broken in ((8, 1, True), (1, 8, False)):
            with store.engine.connect() as connection:
                connection.execute(sa.text("UPDATE duplicate_values SET crawl_id = 2"))

                found = check(connection, {1: first, 2: second}, limit=1)

                assert [finding.name for finding in found.broken] == [WITHIN_THE_RULE] * broken


class TestPending:
    @pytest.mark.parametrize("crawl_id", [1, 2])
    def test_what_the_next_crawl_reconciles(self, store: Store, crawl_id: int) -> None:
        # The copy was written last by the first crawl, its canonical page by the second.
        for name, change in (
            ("clusters are stars", "kind = 'gone'"),
            ("distances are true", "hash_value = -5"),
        ):
            with store.engine.connect() as connection:
                connection.execute(sa.text(f"UPDATE simhash_values SET {change} WHERE id = {CANONICAL}"))
                connection.execute(sa.text(f"UPDATE crawls SET reconciled_batches = 0 WHERE id = {crawl_id}"))

                assert names(connection) == ([], [name, "pages are reconciled"])

    def test_what_a_crawl_that_runs_reconciles(self, store: Store) -> None:
        with store.engine.connect() as connection:
            connection.execute(sa.text(f"UPDATE simhash_values SET kind = 'gone' WHERE id = {CANONICAL}"))
            connection.execute(sa.text("UPDATE crawls SET finished_at = NULL WHERE id = 2"))

            assert names(connection) == ([], ["clusters are stars", "crawls have ended"])

    def test_a_crawl_that_has_not_ended(self, store: Store) -> None:
        store.begin_crawl(spider="s", settings={})

        with store.reading() as connection:
            assert names(connection) == ([], ["crawls have ended"])


class TestCommand:
    def test_whole(self, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["db", "check", "--database", address(store)]) == 0

        assert capsys.readouterr() == (f"{store.location}: {len(BREAKS)} invariants hold\n", "")

    def test_broken(self, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        execute(store, "UPDATE simhash_values SET features = 10, actual_url = 'http://b.example/\x1b'")

        assert main(["db", "check", "--database", address(store), "--limit", "2"]) == 1

        printed = capsys.readouterr()
        assert "Broken: keys are those of the addresses (4)\n" in printed.out
        assert printed.out.count("http://b.example/\\x1b") == 2
        assert "invariants hold" not in printed.out
        assert printed.err.endswith(f"1 of {len(BREAKS)} invariants are broken\n")

    def test_json(self, store: Store, capsys: pytest.CaptureFixture[str]) -> None:
        execute(store, "UPDATE duplicate_values SET percentage = 50")
        store.begin_crawl(spider="s", settings={})

        assert main(["db", "check", "--database", address(store), "--format", "json"]) == 1

        found = json.loads(capsys.readouterr().out)
        assert found["invariants"] == len(BREAKS)
        (broken,), (pending,) = found["broken"], found["pending"]
        assert (broken["name"], broken["rows"]) == ("percentages are true", 1)
        assert broken["examples"] == [{"duplicate_hash_id": COPY, "hamming_distance": 2, "percentage": 50.0}]
        assert (pending["name"], pending["examples"][0]["id"]) == ("crawls have ended", 3)


def address(store: Store) -> str:
    return store.engine.url.render_as_string(hide_password=False)


@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_store_of_a_crawl(backend: str, tmp_path: Path) -> None:
    with ready_database(backend, tmp_path) as url:
        settings = {
            "ADDONS": {"neardup.Addon": 500},
            "NEARDUP_DATABASE_URL": url,
            "NEARDUP_HISTORY": True,
        }
        for folder in (PAGES / "clang-15", PAGES):
            assert crawl(SiteSpider, settings, url=str(folder)).neardup("pages") > 0

            check_tables(url, at_rest=True)
