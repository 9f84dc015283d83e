"""Removing crawls and old pages on all databases: what goes, what stays, and who is canonical then."""

from __future__ import annotations

import logging
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sqlalchemy as sa

from crawler.spiders.site import SiteSpider
from neardup.cli.main import main
from neardup.cli.prune import moment
from neardup.cli.rules import stored_rule
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.rule import VERIFY, Rule
from neardup.detection.verdict import Kind
from neardup.fingerprint import hamming, sketch
from neardup.fingerprint.scheme import Scheme
from neardup.store import election, removal
from neardup.store.page_links import StoredLinks, encoded
from neardup.store.schema import TABLES, crawls, page_ranks, simhash_values
from neardup.store.store import Store
from tests.support.crawling import crawl
from tests.support.places import PAGES
from tests.support.ready_databases import ready_database
from tests.support.stores import pages_of, relations_of, write
from tests.support.verdicts import duplicate, page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

RULE = Rule(8, 0.83)
BASE = np.arange(16, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def drawn(*flipped: int) -> Any:
    """A sketch that differs from the first in some of its 1,024 places."""
    bits = np.unpackbits(BASE.view(np.uint8))
    bits[list(flipped)] ^= 1
    return np.packbits(bits).view(np.uint64)


def remove_all(removing: Iterable[removal.Removed]) -> removal.Removed:
    sums = list(removing)
    return sums[-1] if sums else removal.Removed()


def stars_of(store: Store) -> dict[int, int]:
    """Canonical pages by duplicate; no page that has a canonical page is one."""
    relations = {row["duplicate_hash_id"]: row["actual_hash_id"] for row in relations_of(store)}
    assert not relations.keys() & set(relations.values())
    return relations


def tables_of(store: Store) -> dict[str, list[dict[str, Any]]]:
    """All rows; how often the oldest crawl has written is what a removal changes on purpose."""
    with store.reading() as connection:
        tables = {
            table.name: [
                dict(row)
                for row in connection.execute(
                    sa.select(table).order_by(*table.primary_key.columns)
                ).mappings()
            ]
            for table in TABLES
        }
    for row in tables["crawls"]:
        del row["batches"]
    return tables


class RandomStore:
    """Stars with members that are more or less alike, and what must be left when some of their pages go."""

    def __init__(self, store: Store, seed: int) -> None:
        chance = random.Random(seed)
        self.pages: dict[int, tuple[int, Any]] = {}
        self.canonical: dict[int, int] = {}
        while len(self.pages) < 120:
            first = len(self.pages) + 1
            value = chance.getrandbits(64)
            for number in range(first, first + chance.choice([1, 2, 3, 12])):
                flipped = sum(1 << bit for bit in chance.sample(range(64), chance.randrange(7)))
                own = drawn(*chance.sample(range(1024), chance.randrange(80)))
                self.pages[number] = (value ^ (flipped if number > first else 0), own)
                if number > first:
                    self.canonical[number] = first
        self.removed = {number for number in self.pages if chance.random() < 0.4}
        crawl_id = store.begin_crawl(spider="s", settings={})
        write(store, *map(self._verdict, self.pages), crawl=crawl_id)

    def _verdict(self, number: int) -> Any:
        from tests.support.verdicts import fingerprint

        value, own = self.pages[number]
        more = {"fingerprint": fingerprint(value), "sketch": own}
        url = f"http://a.example/{number}"
        if number in self.canonical:
            return duplicate(number, url, self.canonical[number], **more)
        return page(number, url, **more)

    def matches(self, one: int, other: int) -> bool:
        (a, drawn_a), (b, drawn_b) = self.pages[one], self.pages[other]
        distance = hamming.distance(a, b)
        (estimate,) = sketch.compact_estimates(drawn_a[None], drawn_b)
        return bool(distance <= RULE.max_distance and estimate >= RULE.verify)

    def expected(self) -> dict[int, int]:
        left = {d: c for d, c in self.canonical.items() if d not in self.removed}
        elected: dict[int, list[int]] = {}
        for number in sorted(left):
            was = left[number]
            if was in self.removed:
                heads = elected.setdefault(was, [])
                head = next((head for head in heads if self.matches(head, number)), None)
                if head is None:
                    heads.append(number)
                    del left[number]
                else:
                    left[number] = head
        return left


class TestElection:
    @pytest.mark.parametrize("seed", range(3))
    def test_random_stars_stay_stars_whatever_the_batches(
        self, store: Store, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = RandomStore(store, seed)
        monkeypatch.setattr(removal, "_PAGES_AT_ONCE", 7)
        monkeypatch.setattr(election, "_IDS_AT_ONCE", 5)
        with store.reading() as connection:
            told = removal.to_remove(connection, simhash_values.c.id.in_(made.removed))

        removed = remove_all(removal.remove_pages(store, simhash_values.c.id.in_(made.removed), RULE))

        left = stars_of(store)
        assert left == made.expected()
        assert {row["id"] for row in pages_of(store)} == made.pages.keys() - made.removed
        kinds = {row["id"]: row["kind"] for row in pages_of(store)}
        assert all((kinds[number] == "duplicate") == (number in left) for number in kinds)
        assert (removed.pages, removed.duplicates) == (told.pages, told.duplicates)
        assert told.pages == len(made.removed)
        assert removed.elected.canonical + removed.elected.duplicates == told.left_behind > 0
        assert removed.elected.duplicates > 0
        for row in relations_of(store):
            (a, drawn_a), (b, drawn_b) = (
                made.pages[row[name]] for name in ("duplicate_hash_id", "actual_hash_id")
            )
            if made.canonical[row["duplicate_hash_id"]] in made.removed:
                assert row["hamming_distance"] == hamming.distance(a, b)
                assert row["percentage"] == hamming.percentage(row["hamming_distance"])
                (estimate,) = sketch.compact_estimates(drawn_a[None], drawn_b)
                assert row["resemblance"] == pytest.approx(estimate)

    def test_a_page_that_only_lost_its_standing_is_left_alone(self, store: Store) -> None:
        write(store, page(1, "u"), duplicate(2, "v", 1), page(3, "w"))

        with store.begin_write() as connection:
            elected = election.reelect(connection, [1, 3], RULE, 0)

        assert (elected.canonical, elected.duplicates) == (1, 0)
        assert [(row["id"], row["kind"]) for row in pages_of(store)] == [(1, "new"), (2, "new"), (3, "new")]
        assert relations_of(store) == []

    def test_without_verification_the_distance_decides(self, store: Store) -> None:
        near = {"fingerprint": page(1, "u").fingerprint, "sketch": drawn()}
        far = near | {"sketch": drawn(*range(500))}
        write(store, page(1, "u", **near), duplicate(2, "v", 1, **near), duplicate(3, "w", 1, **far))

        remove_all(removal.remove_pages(store, simhash_values.c.id == 1, Rule(3, 0.0)))

        (relation,) = relations_of(store)
        assert (relation["duplicate_hash_id"], relation["actual_hash_id"]) == (3, 2)
        assert relation["resemblance"] == pytest.approx(1 - 1000 / 1024)

    @pytest.mark.parametrize("zone", ["UTC", "Asia/Kathmandu"])
    def test_the_time_of_an_election_is_that_of_utc(self, zone: str, tmp_path: Path) -> None:
        with ready_database("postgresql", tmp_path) as url:
            name = sa.make_url(url).database
            with Store.open(url, scheme=str(Scheme())) as store, store.begin_write() as connection:
                connection.execute(sa.text(f"ALTER DATABASE {name} SET timezone = '{zone}'"))
            with Store.open(url, scheme=str(Scheme())) as store:
                same = page(1, "u").fingerprint
                copies = [duplicate(number, str(number), 1, fingerprint=same) for number in (2, 3)]
                write(store, page(1, "u"), *copies)
                began = datetime.now(UTC)
                remove_all(removal.remove_pages(store, simhash_values.c.id == 1, RULE))

                (relation,) = relations_of(store)
                assert began <= relation["found_at"] <= datetime.now(UTC)

    def test_a_chain_ends_as_stars(self, store: Store) -> None:
        # Two crawls at once: one found 2 to be a duplicate of 1, the other 3 to be one of 2.
        same = {"fingerprint": page(1, "u").fingerprint, "sketch": drawn()}
        write(store, page(1, "u", **same), page(2, "v", **same), duplicate(3, "w", 2, **same))
        write(store, duplicate(2, "v", 1, **same))

        remove_all(removal.remove_pages(store, simhash_values.c.id == 1, RULE))

        assert stars_of(store) == {3: 2}


class TestCrawls:
    @pytest.mark.slow
    def test_what_it_brought_is_gone_and_all_else_is_as_before(self, database_url: str) -> None:
        settings = {
            "ADDONS": {"neardup.Addon": 500},
            "NEARDUP_DATABASE_URL": database_url,
            "NEARDUP_HISTORY": True,
        }
        crawl(SiteSpider, settings, url=f"{PAGES / 'clang-13'},{PAGES / 'apache'}")
        with Store.open(database_url, scheme=str(Scheme())) as store:
            before = tables_of(store)
        assert len(before["page_versions"]) == len(before["simhash_values"])
        done = crawl(SiteSpider, settings, url=str(PAGES / "clang-16"))
        assert done.neardup("pages") == 12
        assert done.neardup("duplicates") >= 8

        assert main(["crawls", "--database", database_url, "remove", "2", "--yes"]) == 0

        with Store.open(database_url, scheme=str(Scheme())) as store:
            after = tables_of(store)
        # What was learned of a host stays: the crawl has counted some more of its pages.
        ((known_before,), (known,)) = (tables.pop("document_frequencies") for tables in (before, after))
        assert (known_before["host"], known["host"]) == ("", "")
        assert 0 < known_before["pages"] < known["pages"]
        assert after == before

    @pytest.mark.slow
    def test_duplicates_of_a_removed_crawl_are_stars_as_a_crawl_would_find(self, database_url: str) -> None:
        settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": database_url}
        for folder in ("clang-13", "clang-14", "clang-15"):
            crawl(SiteSpider, settings, url=str(PAGES / folder))

        assert main(["crawls", "remove", "1", "--yes", "--database", database_url]) == 0

        with Store.open(database_url, scheme=str(Scheme())) as store:
            stars = stars_of(store)
            rows = {row["id"]: row for row in pages_of(store)}
            assert len(rows) == 24
            assert {number // PAGES_PER_CRAWL for number in rows} == {2, 3}
            assert len(stars) >= 8
            for one, other in stars.items():
                drawn_one, drawn_other = (
                    sketch.from_bytes(rows[number]["sketch"]) for number in (one, other)
                )
                assert sketch.compact_estimates(drawn_one[None], drawn_other)[0] >= VERIFY
                assert hamming.distance(rows[one]["hash_value"], rows[other]["hash_value"]) <= 8
        again = crawl(SiteSpider, settings, url=f"{PAGES / 'clang-14'},{PAGES / 'clang-15'}")
        assert (again.neardup("new"), again.neardup("duplicates")) == (0, len(stars))

    def test_pages_that_others_saw_too_are_handed_on(self, store: Store) -> None:
        first, second, third = (store.begin_crawl(spider=name, settings={}) for name in "abc")
        write(store, page(1, "u"), page(2, "v"), crawl=first)
        write(store, page(1, "u", Kind.UNCHANGED), page(3, "w"), duplicate(4, "x", 2), crawl=second)
        write(store, page(3, "w", Kind.UNCHANGED), duplicate(4, "x", 2), crawl=third)

        remove_all(removal.remove_crawl(store, second, RULE))

        assert [(row["id"], row["crawl_id"], row["last_crawl_id"]) for row in pages_of(store)] == [
            (1, first, first), (2, first, first), (3, third, third), (4, third, third)
        ]  # fmt: skip
        assert [row["crawl_id"] for row in relations_of(store)] == [third]
        with store.reading() as connection:
            assert list(removal.crawl_ids(connection)) == [first, third]

    def test_links_and_ranks_go_with_their_pages_and_crawls(self, store: Store) -> None:
        links = {number: StoredLinks(encoded({number: 0}), encoded({1: 0, 2: 0})) for number in (1, 2, 3)}
        for pages in ((1, 2), (2, 3)):
            crawl_id = store.begin_crawl(spider="s", settings={})
            verdicts = [page(number, f"http://a.example/{number}") for number in pages]
            write(store, *verdicts, crawl=crawl_id, page_links={number: links[number] for number in pages})
        with store.begin_write() as connection:
            connection.execute(sa.insert(page_ranks), [{"page_id": n, "pagerank": n / 6} for n in (1, 2, 3)])

        remove_all(removal.remove_crawl(store, 2, RULE))

        tables = tables_of(store)
        assert [(row["crawl_id"], row["page_id"]) for row in tables["page_links"]] == [(1, 1), (1, 2)]
        assert [row["page_id"] for row in tables["page_ranks"]] == [1, 2]

    def test_a_new_crawl_never_gets_the_ids_of_pages_that_stayed(self, store: Store) -> None:
        first, second = (store.begin_crawl(spider=name, settings={}) for name in "ab")
        of_second = second * PAGES_PER_CRAWL + 1
        write(store, page(of_second, "u"), crawl=second)
        write(store, page(of_second, "u", Kind.UNCHANGED), crawl=first)  # both run at the same time

        remove_all(removal.remove_crawl(store, second, RULE))

        assert [(row["id"], row["crawl_id"]) for row in pages_of(store)] == [(of_second, first)]
        assert store.begin_crawl(spider="c", settings={}) > second

    def test_interrupted_and_started_again(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        crawl_id = store.begin_crawl(spider="a", settings={})
        monkeypatch.setattr(removal, "_PAGES_AT_ONCE", 2)
        write(store, *(page(n, f"u{n}") for n in range(1, 8)), crawl=crawl_id)
        for _ in removal.remove_crawl(store, crawl_id, RULE):
            break  # the process ends here
        assert len(pages_of(store)) == 5

        removed = remove_all(removal.remove_crawl(store, crawl_id, RULE))

        assert removed.pages == 5
        assert tables_of(store) == {table.name: [] for table in TABLES}


class TestSnapshots:
    @pytest.fixture
    def run(self, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
            caplog: pytest.LogCaptureFixture) -> Callable[..., str]:  # fmt: skip
        monkeypatch.chdir(tmp_path)
        settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": database_url}

        def run(folder: str, **more: Any) -> str:
            caplog.clear()
            caplog.set_level(logging.INFO)
            crawl(SiteSpider, settings | more, url=str(PAGES / folder))
            return "\n".join(record.getMessage() for record in caplog.records)

        return run

    @pytest.mark.slow
    def test_a_crawl_after_a_removal_reads_the_tables(
        self, run: Callable[..., str], database_url: str
    ) -> None:
        run("clang-13")
        run("apache")

        assert main(["crawls", "remove", "1", "--yes", "--database", database_url]) == 0

        log = run("clang-13")
        assert "is out of date" in log
        assert "loaded from the tables" in log
        assert "loaded from the snapshot" in run("clang-13")

    @pytest.mark.slow
    def test_nor_is_a_snapshot_from_before_the_removed_crawl_used(
        self, run: Callable[..., str], database_url: str, tmp_path: Path
    ) -> None:
        # What the removed crawl has changed in the pages of others stays changed.
        run("clang-13")
        run("clang-14", NEARDUP_SNAPSHOT=False)

        assert main(["crawls", "remove", "2", "--yes", "--database", database_url]) == 0

        assert "is out of date" in run("clang-13")

    def test_a_crawl_after_pruning_reads_the_tables(
        self, run: Callable[..., str], database_url: str, tmp_path: Path
    ) -> None:
        run("clang-13")
        with Store.open(database_url, scheme=None) as store, store.begin_write() as connection:
            old = sa.update(simhash_values).where(simhash_values.c.actual_url.like("%FAQ.html"))
            connection.execute(old.values(last_seen=datetime(2020, 1, 1, tzinfo=UTC)))

        assert main(["db", "prune", "--older-than", "90d", "--database", database_url]) == 0

        log = run("apache")
        assert "is out of date" in log
        assert "11 known pages" in log


class TestCommands:
    @pytest.fixture
    def known(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
        """Three crawls: one that ended, one that was killed long ago, one that runs."""
        url = store.engine.url.render_as_string(hide_password=False)
        monkeypatch.setenv("NEARDUP_DATABASE_URL", url)
        for number in range(1, 4):
            crawl_id = store.begin_crawl(spider=f"s{number}", settings={"NEARDUP_MAX_DISTANCE": 5})
            write(
                store,
                page(2 * number, f"u{number}"),
                duplicate(2 * number + 1, f"v{number}", 2),
                crawl=crawl_id,
                history=number > 1,
            )
        long_ago = datetime(2020, 1, 1, tzinfo=UTC)
        with store.begin_write() as connection:
            connection.execute(sa.update(crawls).where(crawls.c.id < 3).values(started_at=long_ago))
            connection.execute(sa.update(crawls).where(crawls.c.id == 1).values(finished_at=long_ago))
            connection.execute(
                sa.update(simhash_values)
                .where(simhash_values.c.id < 6)
                .values(first_seen=long_ago, last_seen=long_ago)
            )
        return store

    def end_running(self, store: Store) -> None:
        store.finish_crawl(3, reason="finished", counts={})

    def said(self, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    def test_list(self, known: Store, capsys: pytest.CaptureFixture[str]) -> None:
        known.finish_crawl(3, reason="finished", counts={"duplicates": 7})
        lines = self.said(capsys, "crawls", "--format", "csv").splitlines()

        assert lines[0] == (
            "section,crawl,spider,started,finished,reason,shared,pages_first,pages_last,duplicates,scheme"
        )
        assert lines[1].startswith(
            "crawls,1,s1,2020-01-01 00:00:00,2020-01-01 00:00:00,not finished,yes,2,2,,word-tf/"
        )
        assert lines[3].startswith("crawls,3,s3,")
        assert ",finished,yes,2,2,7,word-tf/" in lines[3]

    def test_unknown(self, known: Store, capsys: pytest.CaptureFixture[str]) -> None:
        assert "there is no crawl 9" in (error := self.said(capsys, "crawls", "remove", "9", "--yes", code=1))
        assert "but 1, 2, 3" in error

    def test_one_that_has_not_ended(self, known: Store, capsys: pytest.CaptureFixture[str]) -> None:
        assert "crawl 2 has not ended" in self.said(capsys, "crawls", "remove", "2", code=1)
        assert "removed 2 pages, 1 of them duplicates" in self.said(capsys, "crawls", "remove", "2", "--yes")

    def test_while_another_runs(self, known: Store, capsys: pytest.CaptureFixture[str]) -> None:
        assert "crawl 3 seems to be running" in self.said(capsys, "crawls", "remove", "1", code=1)
        assert "crawl 3 seems to be running" in self.said(capsys, "db", "prune", "--older-than", "1d", code=1)
        assert len(pages_of(known)) == 6
        with known.begin_write() as connection:
            connection.execute(sa.update(crawls).values(started_at=datetime(2020, 1, 1, tzinfo=UTC)))
            assert removal.running(connection) == [3]  # it has stored something since
            connection.execute(sa.update(simhash_values).values(last_seen=datetime(2020, 1, 1, tzinfo=UTC)))
            assert removal.running(connection) == []

    @pytest.mark.parametrize(("answer", "pages"), [("y", 4), ("", 6)])
    def test_asks(
        self,
        known: Store,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        answer: str,
        pages: int,
    ) -> None:
        self.end_running(known)
        assert "Give --yes to do it" in self.said(capsys, "crawls", "remove", "1", code=1)
        asked: list[str] = []
        monkeypatch.setattr("sys.stdin.isatty", lambda: True)

        def ask(question: str) -> str:
            asked.append(question)
            return answer

        monkeypatch.setattr("builtins.input", ask)

        main(["crawls", "remove", "1"])

        assert (
            "remove crawl 1 with 2 pages, 1 of them duplicates; 1 canonical page among them has 2 duplicates"
            in asked[0]
        )
        assert len(pages_of(known)) == pages

    def test_prune(self, known: Store, capsys: pytest.CaptureFixture[str]) -> None:
        told = self.said(capsys, "db", "prune", "--older-than", "12h", "--dry-run")
        assert "would remove 4 pages, 2 of them duplicates" in told
        assert "has 1 duplicate that stay" in told
        assert len(pages_of(known)) == 6
        self.end_running(known)

        told = self.said(capsys, "db", "prune", "--older-than", "2021-01-01")

        assert (
            "removed 4 pages, 2 of them duplicates; elected 1 new canonical page, with 0 duplicates" in told
        )
        assert [row["id"] for row in pages_of(known)] == [6, 7]
        assert relations_of(known) == []
        with known.reading() as connection:
            assert list(removal.crawl_ids(connection)) == [1, 2, 3]
        assert "removed 0 pages" in self.said(capsys, "db", "prune", "--older-than", "2021-01-01")

    def test_stats(self, known: Store, capsys: pytest.CaptureFixture[str]) -> None:
        import json

        told = json.loads(self.said(capsys, "db", "stats", "--format", "json"))

        rows = {row["table"]: row["rows"] for row in told["tables"]}
        assert rows == {
            "crawls": 3,
            "simhash_values": 6,
            "duplicate_values": 3,
            "page_versions": 4,
            "page_links": 0,
            "page_ranks": 0,
            "document_frequencies": 0,
            "url_rules": 0,
            "rule_effects": 0,
            "decisions": 0,
            "page_texts": 0,
            "host_ips": 0,
        }
        assert told["disk"][0]["bytes"] > 10_000
        assert told["kinds"] == [{"kind": "duplicate", "pages": 3}, {"kind": "new", "pages": 3}]
        (scheme,) = told["schemes"]
        assert (scheme["pages"], scheme["canonical"], scheme["duplicates"], scheme["flagged"]) == (6, 3, 3, 0)
        assert scheme["newest"] > scheme["oldest"]
        assert scheme["scheme"] == str(Scheme())
        assert "Pages by last verdict" in self.said(capsys, "db", "stats")


class TestRule:
    @pytest.mark.parametrize(
        ("settings", "rule"),
        [
            ({}, Rule(8, VERIFY)),
            ({"NEARDUP_MAX_DISTANCE": 5, "NEARDUP_VERIFY": 0.0}, Rule(5, 0.0)),
            ({"NEARDUP_MAX_DISTANCE": None, "NEARDUP_VERIFY": 0.0}, Rule(3, 0.0)),
            ({"NEARDUP_MAX_DISTANCE": None, "NEARDUP_FEATURES": "shingle-3"}, Rule(11, VERIFY)),
        ],
    )
    def test_is_that_of_the_newest_crawl(self, tmp_path: Path, settings: dict[str, Any], rule: Rule) -> None:
        with Store.open(f"sqlite:///{tmp_path}/n.db", scheme=str(Scheme())) as store:
            store.begin_crawl(spider="old", settings={"NEARDUP_MAX_DISTANCE": 1})
            store.begin_crawl(spider="new", settings=settings)
            assert stored_rule(store) == rule


class TestAges:
    def test_ages_and_dates(self) -> None:
        for text, hours in (("12h", 12), ("90d", 90 * 24), ("2w", 14 * 24)):
            before, made, after = datetime.now(UTC), moment(text), datetime.now(UTC)
            assert before <= made + timedelta(hours=hours) <= after
        assert moment("2026-01-02") == datetime(2026, 1, 2, tzinfo=UTC)
        assert moment("2026-01-02T05:00+05:00") == datetime(2026, 1, 2, tzinfo=UTC)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("3m", "'3m' is neither an age like 12h"),
            ("1.5d", "'1.5d' is neither"),
            ("9999-01-01", "does not lie in the past; every page is older than that"),
            ("0d", "does not lie in the past; every page is older than that"),
            ("9999-12-31T23:59:59-14:00", "is neither an age like"),
        ],
    )
    def test_others(self, text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main(["db", "prune", "--older-than", text])

        assert message in capsys.readouterr().err
