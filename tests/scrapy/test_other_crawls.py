"""Crawls that run at once on one database: what each reads of the others, and what becomes of near-copies
both called new.
"""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import sqlalchemy as sa

from neardup.address import Address
from neardup.cli.main import main
from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.known_pages import NONE, PAGES_PER_CRAWL
from neardup.detection.verdict import Kind
from neardup.errors import DatabaseUnavailable
from neardup.fingerprint import hamming, sketch
from neardup.fingerprint.scheme import Scheme
from neardup.scrapy.other_crawls import OtherCrawls
from neardup.store import change_feed, removal
from neardup.store.change_feed import ChangeFeed
from neardup.store.schema import crawls, duplicate_values, simhash_values
from neardup.store.store import Store
from neardup.store.writer import Writer
from tests.support.crawl_parts import TEXT, Process
from tests.support.crawling import crawl, recorder_of, serve
from tests.support.spiders import LinkSpider
from tests.support.stores import before_statement, kinds, relations, relations_of, write
from tests.support.verdicts import duplicate, page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from scrapy.http import Response

    from tests.support.crawling import Site

RULE = DetectorOptions().make_rule(DetectorOptions().make_reader().features)


def begin(store: Store, *, shared: bool = True) -> int:
    return store.begin_crawl(spider="s", settings={}, shared=shared)


def urls(read: ChangeFeed) -> list[str]:
    return [page.url for pages in read.read() for page in pages]


def text(name: str) -> str:
    return " ".join(f"{name}{i}" for i in range(60))


class Waits(LinkSpider):
    """Another crawl stores a page while this one runs; this one waits until it must know it."""

    async def parse(self, response: Response) -> Any:
        recorder = recorder_of(self.crawler)
        if not response.url.endswith("/copy"):
            other = recorder.store.begin_crawl(spider="other", settings={})
            detector = Detector(DetectorOptions(), first_id=other * PAGES_PER_CRAWL + 1)
            writer = Writer(recorder.store, other)
            writer.put(detector.examine_text("elsewhere", text("copy") + " ."))
            writer.close()
            for _ in range(100):
                await asyncio.sleep(0.02)
                if recorder.other_crawls.pages:
                    break
        for output in super().parse(response):
            yield output


class TestTail:
    def test_what_others_write_is_read_once(self, store: Store) -> None:
        own, other = begin(store), begin(store)
        write(store, page(1, "before"), crawl=other)
        read = ChangeFeed(store, own)
        assert urls(read) == []

        write(store, page(2, "mine"), crawl=own)
        write(store, page(3, "theirs"), duplicate(4, "copy", 3, distance=2), crawl=other)
        third = begin(store)
        write(store, page(5, "third's"), crawl=third)

        (first, second), (last,) = read.read()
        assert (first.page_id, first.url, first.canonical_id, first.canonical_url) == (
            3,
            "theirs",
            None,
            None,
        )
        assert (second.url, second.canonical_id, second.canonical_url) == ("copy", 3, "theirs")
        assert first.value == 2**64 - 3
        assert last.url == "third's"
        assert urls(read) == []

    def test_a_page_that_is_seen_again_is_read_as_it_is_now(self, store: Store) -> None:
        own, other = begin(store), begin(store)
        write(store, page(1, "a"), page(2, "b"), crawl=other)
        read = ChangeFeed(store, own)

        write(store, page(9, "a", Kind.CHANGED, fingerprint=None, features=0), crawl=other)

        ((only,),) = read.read()
        assert (only.page_id, only.value) == (1, None)

    @pytest.mark.parametrize("at_once", [1, 2, 3, 100])
    def test_in_parts_that_may_be_interrupted(
        self, store: Store, monkeypatch: pytest.MonkeyPatch, at_once: int
    ) -> None:
        monkeypatch.setattr(change_feed, "_PAGES_AT_ONCE", at_once)
        own, other = begin(store), begin(store)
        read = ChangeFeed(store, own)
        for batch in ([1], [2, 3], [4, 5, 6, 7], [8]):
            write(store, *(page(n, f"u{n}") for n in batch), crawl=other)
        parts = read.read()
        seen = [page.url for page in next(parts)]
        del parts  # before the part was done with

        again = urls(read)

        assert again[: len(seen)] == seen
        assert again == [f"u{n}" for n in range(1, 9)]
        assert urls(read) == []

    def test_an_unshared_crawl_is_read_when_it_has_been_finished(self, store: Store) -> None:
        own, other = begin(store), begin(store, shared=False)
        read = ChangeFeed(store, own)
        write(store, page(1, "hidden"), crawl=other)
        assert urls(read) == []

        store.finish_crawl(other, reason="finished", counts={})

        assert urls(read) == ["hidden"]

    def test_elected_pages_are_read(self, store: Store) -> None:
        first, own, other = begin(store), begin(store), begin(store)
        write(store, page(1, "gone"), crawl=other)
        write(store, duplicate(2, "left", 1, fingerprint=page(1, "").fingerprint), crawl=first)
        read = ChangeFeed(store, own)

        rule = DetectorOptions(verify=0.0).make_rule(DetectorOptions().make_reader().features)
        done = list(removal.remove_crawl(store, other, rule))

        assert done[-1].elected.canonical == 1
        ((only,),) = read.read()
        assert (only.url, only.canonical_id) == ("left", None)

    def test_a_database_that_is_away(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        own, other = begin(store), begin(store)
        read = ChangeFeed(store, own)
        write(store, page(1, "a"), crawl=other)
        with store.begin_write() as connection:
            connection.execute(sa.text("ALTER TABLE duplicate_values RENAME TO away"))

        with pytest.raises(DatabaseUnavailable):
            list(read.read())

        with store.begin_write() as connection:
            connection.execute(sa.text("ALTER TABLE away RENAME TO duplicate_values"))
        assert urls(read) == ["a"]


class TestTwoCrawls:
    def test_what_one_has_seen_is_a_duplicate_for_the_other(self, store: Store) -> None:
        a, b = Process(store), Process(store)
        a.judge("a", TEXT)
        a.writer.flush()

        b.follow()
        verdict = b.judge("b", TEXT)

        assert (verdict.kind, verdict.canonical_url) == (Kind.DUPLICATE, "a")
        a.end()
        b.end()
        assert relations(store) == {"b": "a"}

    @pytest.mark.parametrize("first", ["a", "b"])
    def test_near_copies_that_both_call_new(self, store: Store, first: str) -> None:
        a, b = Process(store), Process(store)
        a.judge("a", TEXT)
        b.judge("b", TEXT + " more")
        b.judge("b2", TEXT + " more")
        a.writer.flush()
        b.writer.flush()
        assert kinds(store) == {"a": "new", "b": "new", "b2": "duplicate"}

        for process in (a, b) if first == "a" else (b, a):
            process.follow()

        assert a.judge("a3", TEXT).canonical_url == "a"
        assert b.judge("b3", TEXT).canonical_url == "a"
        for process in (a, b) if first == "a" else (b, a):
            process.end()
        assert relations(store) == dict.fromkeys(["b", "b2", "a3", "b3"], "a")
        assert kinds(store)["b"] == "duplicate"

    def test_one_url_stored_by_both_is_one_row(self, store: Store) -> None:
        a, b = Process(store), Process(store)
        a.judge("same", TEXT)
        b.judge("same", TEXT)
        a.end()
        b.end()
        assert kinds(store) == {"same": "new"}
        assert relations(store) == {}

    def test_what_this_crawl_judged_meanwhile_is_not_overwritten(self, store: Store) -> None:
        a, b = Process(store), Process(store)
        b.judge("same", "other " * 3 + " ".join(f"old{i}" for i in range(100)))
        b.writer.flush()
        a.judge("same", TEXT)

        a.follow()

        assert a.judge("copy", TEXT).canonical_url == "same"
        a.end()
        b.end()
        assert relations(store) == {"copy": "same"}

    def test_a_canonical_page_that_another_crawl_finds_changed_or_gone(self, store: Store) -> None:
        old = Process(store)
        old.judge("changes", TEXT)
        old.judge("goes", TEXT.replace("word", "name"))
        old.end()
        a, b = Process(store), Process(store)
        b.judge("changes", TEXT.replace("word", "news"))
        b.gone("goes")
        b.writer.flush()

        a.follow()

        assert a.judge("1", TEXT).kind is Kind.NEW
        assert a.judge("2", TEXT.replace("word", "name")).kind is Kind.NEW
        assert a.judge("3", TEXT.replace("word", "news")).canonical_url == "changes"
        a.end()
        b.end()
        assert relations(store) == {"3": "changes"}
        assert kinds(store)["goes"] == "gone"

    def test_a_page_kept_for_its_site_only(self, store: Store) -> None:
        a, b = Process(store, scope="host"), Process(store, scope="host")
        a.judge("http://a.example/", TEXT)
        b.judge("http://b.example/", TEXT)
        a.end()
        b.end()
        assert relations(store) == {}

    @pytest.mark.parametrize(
        ("titles", "more", "evidence"),
        [
            (("Function alpha", "Function alpha"), " more", ["whole"]),
            (("Function alpha", "Function beta"), " more", []),
            (("Function alpha", "Function beta"), "", ["text"]),  # the very text
            (("", ""), " more", ["whole"]),
        ],
    )
    def test_headlines_tell_pages_of_one_template_apart(
        self, store: Store, titles: tuple[str, str], more: str, evidence: list[str]
    ) -> None:
        a, b = Process(store), Process(store)
        a.judge("a", TEXT, title=titles[0])
        b.judge("b", TEXT + more, title=titles[1])
        a.end()
        b.end()
        assert [row["evidence"] for row in relations_of(store)] == evidence

    def test_what_a_dead_crawl_left_to_resolve(self, store: Store) -> None:
        a, b = Process(store), Process(store)
        a.judge("a", TEXT)
        b.judge("b", TEXT)
        b.judge("b2", TEXT)
        a.writer.flush()
        b.writer.flush()
        a.follow()
        b.follow()
        for died in (a, b):
            died.writer.close()
        assert relations(store) == {"b": "a", "b2": "b"}

        later = Process(store)
        later.end()

        assert relations(store) == {"b": "a", "b2": "a"}


class TestUnshared:
    def test_is_not_seen_before_its_end(self, store: Store) -> None:
        hidden, other = Process(store, shared=False), Process(store)
        hidden.judge("hidden", TEXT)
        hidden.writer.flush()

        other.follow()
        late = Process(store)
        assert other.judge("1", TEXT).kind is Kind.NEW
        assert late.detector.pages.row(Address("hidden")) == NONE

        hidden.end()
        other.follow()
        assert other.judge("2", TEXT).canonical_url == "hidden"
        late.end()
        other.end()
        assert relations(store) == dict.fromkeys(["1", "2"], "hidden")

    def test_two_that_end_at_once(self, store: Store) -> None:
        a, b = Process(store, shared=False), Process(store, shared=False)
        a.judge("a", TEXT)
        b.judge("b", TEXT)
        for process in (a, b):
            process.writer.flush()
            process.other_crawls.finish(process.writer)
        for process in (a, b):
            process.writer.close()
            store.finish_crawl(process.crawl_id, reason="finished", counts={})

        assert relations(store) == {"b": "a"}

    def test_makes_nothing_of_others_its_duplicate_before_its_end(self, store: Store) -> None:
        hidden, other = Process(store, shared=False), Process(store)
        hidden.judge("hidden", TEXT)
        other.judge("seen", TEXT)
        other.writer.flush()
        hidden.writer.flush()
        hidden.follow()
        hidden.writer.flush()
        assert kinds(store) == {"hidden": "new", "seen": "new"}

        other.end()
        hidden.end()

        assert relations(store) == {"seen": "hidden"}

    def test_a_page_that_a_shared_crawl_has_seen_too(self, store: Store) -> None:
        hidden, other = Process(store, shared=False), Process(store)
        hidden.judge("both", TEXT)
        hidden.writer.flush()
        other.judge("both", TEXT)
        other.end()

        assert Process(store).detector.pages.row(Address("both")) != NONE


class TestRaces:
    """What others write at an awkward moment."""

    def test_a_duplicate_that_comes_while_its_canonical_page_is_resolved(self, database_url: str) -> None:
        if database_url.startswith("sqlite"):
            pytest.skip("SQLite has one writer at a time")
        with (
            Store.open(database_url, scheme=str(Scheme())) as store,
            Store.open(database_url, scheme=str(Scheme())) as others,
        ):
            a = Process(store)
            a.judge("x", TEXT)
            a.judge("y", TEXT)
            a.judge("x", TEXT.replace("word", "news"))
            a.writer.flush()
            b = Process(others)
            b.detector.no_longer_canonical.clear()  # it began when x was another page already
            met = before_statement(
                store,
                lambda statement, _: "FOR UPDATE" in statement and "actual_hash_id IN" in statement,
                lambda: write(others, duplicate(9, "late", 1_000_000_001), crawl=b.crawl_id).close(),
            )

            a.end()
            b.end()

            assert met
            assert relations(store).keys() <= {"late"}
            assert {url: kind for url, kind in kinds(store).items() if url != "late"} == {
                "x": "changed",
                "y": "new",
            }

    def test_a_rival_that_has_changed_since_it_was_read(self, store: Store) -> None:
        first, second, third = Process(store), Process(store), Process(store)
        second.judge("p", TEXT)
        second.writer.flush()
        third.follow()
        first.judge("q", TEXT)
        second.judge("p", TEXT.replace("word", "news"))

        for process in (first, second, third):
            process.end()

        assert relations(store) == {}
        assert kinds(store) == {"p": "changed", "q": "new"}

    def test_a_pair_that_does_not_hold_any_more_when_it_is_stored(self, store: Store) -> None:
        a, b = Process(store), Process(store)
        a.judge("q", TEXT)
        a.writer.flush()
        b.judge("p", TEXT)
        b.writer.flush()
        read = [page for pages in b.other_crawls._feed.read() for page in pages]
        a.judge("q", TEXT.replace("word", "news"))
        a.writer.flush()
        for written in read:
            b.other_crawls._apply(written, b.writer)
        b.follow()
        assert b.judge("p2", TEXT).kind is Kind.NEW  # for all that b knows, p is a duplicate of q

        b.end()

        assert relations(store) == {"p2": "p"}
        a.end()
        assert relations(store) == {"p2": "p"}

    def test_a_page_that_another_crawl_stored_first_changes(self, store: Store) -> None:
        a, b = Process(store), Process(store)
        a.judge("x", TEXT)
        a.writer.flush()
        b.judge("x", TEXT)
        b.judge("y", TEXT)
        b.writer.flush()
        b.judge("x", TEXT.replace("word", "news"))

        b.end()

        assert relations(store) == {}
        a.end()
        assert relations(store) == {}

    def test_a_duplicate_of_a_page_that_is_gone_by_now(self, store: Store) -> None:
        old = Process(store)
        old.judge("x", TEXT)
        old.end()
        a, b = Process(store), Process(store)
        b.judge("y", TEXT)
        a.gone("x")
        a.writer.flush()
        b.writer.flush()
        a.follow()

        a.end()

        assert relations(store) == {}
        b.end()
        assert (relations(store), kinds(store)) == ({}, {"x": "gone", "y": "new"})

    def test_a_page_too_old_to_be_canonical_that_becomes_a_duplicate(self, store: Store) -> None:
        old = Process(store)
        old.judge("s", TEXT)
        old.judge("d", TEXT)
        old.end()
        late = Process(store)
        late.detector = Detector(DetectorOptions(), first_id=late.crawl_id * PAGES_PER_CRAWL + 1)
        late.other_crawls = OtherCrawls(late.detector, store, late.crawl_id, interval=60.0, reconcile=True)
        late.detector.restore(store.known_pages(max_age=timedelta(0)))
        late.judge("n", TEXT)
        late.judge("s", TEXT)

        late.end()

        assert relations(store) == {"s": "n", "d": "n"}


class TestUnreconciled:
    """What a crawl leaves that does not come to its end, and the next one finds."""

    def test_near_copies_of_crawls_that_died_within_one_interval(self, store: Store) -> None:
        a, b = Process(store), Process(store)
        a.judge("a", TEXT)
        a.judge("a2", TEXT)
        b.judge("b", TEXT + " more")
        b.judge("b2", TEXT + " more")
        for died in (a, b):
            died.writer.close()
        assert relations(store) == {"a2": "a", "b2": "b"}

        Process(store).end()

        assert relations(store) == dict.fromkeys(["a2", "b", "b2"], "a")

    def test_crawls_that_did_not_follow_others(self, store: Store) -> None:
        a, b = Process(store, interval=0.0), Process(store, interval=0.0)
        a.judge("a", TEXT)
        b.judge("b", TEXT)
        a.end()
        b.end()
        assert relations(store) == {}

        Process(store).end()

        assert relations(store) == {"b": "a"}

    def test_a_crawl_that_died_apart_and_is_shown(self, store: Store) -> None:
        hidden, other = Process(store, shared=False), Process(store)
        hidden.judge("hidden", TEXT)
        hidden.writer.close()
        other.judge("other", TEXT)
        other.end()
        store.share_crawl(hidden.crawl_id)

        Process(store).end()

        assert relations(store) == {"other": "hidden"}

    def test_a_page_elected_by_a_removal_that_is_like_another(self, store: Store) -> None:
        # Seven of 300 words lie between the first and the second, and between the second and the third: 14
        # are too many.
        def changed(places: Iterable[int]) -> str:
            return " ".join(f"other{i}" if i in places else f"word{i}" for i in range(300))

        some, more = range(10, 80, 10), range(110, 180, 10)
        first, second, third = Process(store), Process(store), Process(store)
        first.judge("first", changed([*some, *more]))
        first.writer.flush()
        second.follow()
        assert second.judge("near", changed(some)).canonical_url == "first"
        second.writer.flush()
        assert third.judge("far", changed([])).kind is Kind.NEW
        third.writer.flush()
        for process in (first, second, third):
            process.end()
        assert relations(store) == {"near": "first"}
        list(removal.remove_crawl(store, first.crawl_id, RULE))
        assert relations(store) == {}

        Process(store).end()

        assert relations(store) == {"far": "near"}

    def test_duplicates_of_a_page_that_changed_before_its_crawl_died(self, store: Store) -> None:
        first = Process(store)
        first.judge("x", TEXT)
        first.judge("y", TEXT)
        first.end()
        second = Process(store)
        changed = second.judge("x", " ".join(reversed(TEXT.split())) + " more")
        second.writer.close()
        assert changed.own_distance is not None
        assert 0 < changed.own_distance <= RULE.max_distance  # within the distance, but not alike
        assert relations(store) == {"y": "x"}

        Process(store).end()

        assert relations(store) == {}

    def test_pages_that_the_next_crawl_sees_again(self, store: Store) -> None:
        a, b = Process(store), Process(store)
        a.judge("a", TEXT)
        b.judge("b", TEXT + " more")
        for died in (a, b):
            died.writer.close()

        again = Process(store)
        assert again.judge("a", TEXT).kind is Kind.UNCHANGED
        assert again.judge("b", TEXT + " more").kind is Kind.UNCHANGED
        again.end()

        assert relations(store) == {"b": "a"}

    @pytest.mark.parametrize("seen_again", [False, True])
    def test_a_page_that_another_crawl_calls_new_with_another_text(
        self, store: Store, seen_again: bool
    ) -> None:
        other_text = " ".join(reversed(TEXT.split())) + " more"
        a, b = Process(store), Process(store)
        a.judge("x", TEXT)
        a.judge("y", TEXT)
        a.writer.close()
        assert b.judge("x", other_text).kind is Kind.NEW
        b.writer.close()
        assert relations(store) == {"y": "x"}

        last = Process(store)
        if seen_again:
            last.judge("x", other_text)
        last.end()

        assert relations(store) == {}

    def test_pages_stored_while_a_crawl_loads_the_tables(self, store: Store) -> None:
        a, b = Process(store), Process(store)
        loads = Process(store)
        a.judge("a", TEXT)
        b.judge("b", TEXT)
        for died in (a, b):
            died.writer.close()
        loads.detector.restore(store.known_pages())

        loads.end()

        assert relations(store) == {"b": "a"}

    def test_what_a_crawl_that_died_and_is_removed_had_changed(self, store: Store) -> None:
        first = Process(store)
        first.judge("x", TEXT)
        first.judge("y", TEXT.replace("word", "news"))
        first.end()
        for url, died in [("x", Process(store)), ("y", Process(store))]:
            died.judge(url, TEXT.replace("word", "both") + f" {url}")
            died.writer.close()
        for crawl_id in (2, 3):
            list(removal.remove_crawl(store, crawl_id, RULE))
        assert relations(store) == {}

        Process(store).end()

        assert relations(store) == {"y": "x"}

    def test_is_compared_once(self, store: Store) -> None:
        a = Process(store)
        a.judge("a", TEXT)
        a.writer.close()
        before = Process(store)
        assert [page.url for pages in before.other_crawls._feed.unreconciled() for page, _ in pages] == ["a"]
        Process(store).end()

        assert list(Process(store).other_crawls._feed.unreconciled()) == []
        query = sa.select(crawls.c.batches, crawls.c.reconciled_batches).where(crawls.c.batches > 0)
        with store.reading() as connection:
            assert {row.batches - row.reconciled_batches for row in connection.execute(query)} == {0}

    def test_a_crawl_that_runs_is_left_alone(self, store: Store) -> None:
        runs = Process(store)
        runs.judge("a", TEXT)
        runs.writer.flush()
        short = Process(store)
        runs.judge("b", TEXT.replace("word", "news"))
        runs.writer.flush()

        assert list(short.other_crawls._feed.unreconciled()) == []
        short.end()

        query = sa.select(crawls.c.batches - crawls.c.reconciled_batches).where(crawls.c.id == runs.crawl_id)
        with store.reading() as connection:
            assert connection.execute(query).scalar() == 2
        runs.end()
        with store.reading() as connection:
            assert connection.execute(query).scalar() == 0

    def test_a_removal_during_the_crawl_that_it_counts_for(self, store: Store) -> None:
        old = Process(store)
        old.judge("x", TEXT)
        old.judge("y", TEXT)
        old.end()
        oldest_left = Process(store)
        oldest_left.judge("z", TEXT.replace("word", "news"))
        oldest_left.writer.flush()
        list(removal.remove_crawl(store, old.crawl_id, RULE))  # counts for the one that runs
        oldest_left.end()

        (left,) = Process(store).other_crawls._feed.unreconciled()
        assert {page.url for page, _ in left} >= {"z"}


class TestState:
    """What a snapshot is held against."""

    def test_an_unshared_crawl_changes_it(self, store: Store) -> None:
        hidden = begin(store, shared=False)
        before = store.state(but=0)
        write(store, page(1, "u"), crawl=hidden)
        hid = store.state(but=0)
        store.share_crawl(hidden)
        assert before != hid != store.state(but=0)

    def test_pruning_changes_it_even_if_the_oldest_crawl_is_not_shared(self, store: Store) -> None:
        begin(store, shared=False)
        write(store, page(1, "u"), crawl=begin(store))
        before = store.state(but=1)
        list(removal.remove_pages(store, removal.older_than(datetime(2100, 1, 1, tzinfo=UTC)), RULE))
        assert kinds(store) == {}
        assert store.state(but=1) != before

    def test_no_crawl_gets_the_id_of_one_that_was_removed(self, store: Store) -> None:
        begin(store)
        removed = begin(store)
        list(removal.remove_crawl(store, removed, RULE))
        assert begin(store) > removed


def check_stars(store: Store) -> None:
    """Every cluster is a star within the rule, kinds and relations agree, and equal texts have one canonical
    page.
    """
    with store.reading() as connection:
        stored = {row.id: row for row in connection.execute(sa.select(simhash_values))}
        found = list(connection.execute(sa.select(duplicate_values)))
    duplicates = {row.duplicate_hash_id for row in found}
    assert not duplicates & {row.actual_hash_id for row in found}, "a chain"
    assert {row.id for row in stored.values() if row.kind == "duplicate"} == duplicates
    for row in found:
        one, other = stored[row.actual_hash_id], stored[row.duplicate_hash_id]
        distance = hamming.distance(one.hash_value, other.hash_value)
        assert distance == row.hamming_distance
        estimate = sketch.compact_estimates(
            sketch.from_bytes(one.sketch).reshape(1, -1), sketch.from_bytes(other.sketch)
        )
        assert RULE.are_matches(np.array([distance]), estimate).all()
    # Equal texts are near-copies whoever saw them.
    canonical = [row.hash_value for row in stored.values() if row.id not in duplicates and row.kind != "gone"]
    assert len(canonical) == len(set(canonical))


def near_copies(rng: random.Random, texts: int) -> list[str]:
    """Texts of 120 words, and after each three that differ from it by a few words at the end."""
    copies = []
    for _ in range(texts):
        text = " ".join(rng.choices([f"w{i}" for i in range(3000)], k=120))
        copies.append(text)
        copies += [
            text + " " + " ".join(f"x{rng.randrange(9)}" for _ in range(rng.randrange(1, 4)))
            for _ in range(3)
        ]
    return copies


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_any_order_ends_in_stars_within_the_rule(tmp_path: Path, seed: int) -> None:
    """Four crawls see near-copies in any order, follow each other at any time, die or end; the last one
    leaves order behind.
    """
    rng = random.Random(seed)
    texts = near_copies(rng, 12)
    pages = [(f"u{n}", rng.choice(texts)) for n in range(90)]
    pages += [(f"u{n}", rng.choice(texts)) for n in range(0, 90, 9)]
    rng.shuffle(pages)
    with Store.open(f"sqlite:///{tmp_path}/n.db", scheme=str(Scheme())) as store:
        processes = [Process(store) for _ in range(4)]
        for url, text in pages:
            process = rng.choice(processes)
            process.judge(url, text)
            if rng.random() < 0.2:
                process.writer.flush()
            if rng.random() < 0.2:
                rng.choice(processes).follow()
            if len(processes) > 1 and rng.random() < 0.03:
                dead = processes.pop()
                dead.writer.close() if rng.random() < 0.5 else dead.end()
        for process in processes:
            process.end()
        Process(store).end()

        check_stars(store)
        assert kinds(store).keys() == {url for url, _ in pages}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_pages_that_change_and_go_while_crawls_end_in_stars(tmp_path: Path, seed: int) -> None:
    """Three crawls see the same few URLs with texts that change all the time, or gone; each ends well, and no
    other comes after them.
    """
    rng = random.Random(seed)
    texts = near_copies(rng, 4)
    with Store.open(f"sqlite:///{tmp_path}/n.db", scheme=str(Scheme())) as store:
        processes = [Process(store) for _ in range(3)]
        for _ in range(120):
            process, url = rng.choice(processes), f"u{rng.randrange(25)}"
            if rng.random() < 0.1 and process.detector.pages.row(Address(url)) != NONE:
                process.gone(url)
            else:
                process.judge(url, rng.choice(texts))
            if rng.random() < 0.2:
                process.writer.flush()
            if rng.random() < 0.2:
                rng.choice(processes).follow()
        for process in processes:
            process.end()

        check_stars(store)


class TestCrawls:
    """The same with Scrapy."""

    @pytest.fixture
    def settings(self, database_url: str) -> dict[str, Any]:
        return {
            "ADDONS": {"neardup.Addon": 500},
            "NEARDUP_DATABASE_URL": database_url,
            "NEARDUP_SHARE_INTERVAL": 0.05,
        }

    @pytest.fixture
    def site(self) -> Iterator[Site]:
        with serve() as served:
            served.add("/", text("first"), "/copy")
            served.add("/copy", text("copy"))
            yield served

    def test_pages_of_another_crawl_are_known_while_this_one_runs(
        self, settings: dict[str, Any], site: Site
    ) -> None:
        done = crawl(Waits, settings, start=site.url)

        assert done.neardup("duplicates") == 1
        assert done.neardup("pages_of_other_crawls") == 1
        with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=None) as store:
            assert relations(store) == {f"{site.url}/copy": "elsewhere"}

    @pytest.mark.slow
    def test_interval_of_zero(self, settings: dict[str, Any], site: Site) -> None:
        done = crawl(Waits, settings | {"NEARDUP_SHARE_INTERVAL": 0}, start=site.url)

        assert (done.neardup("duplicates"), done.neardup("pages_of_other_crawls")) == (0, 0)

    @pytest.mark.slow
    def test_kept_apart_until_shared(
        self, settings: dict[str, Any], site: Site, capsys: pytest.CaptureFixture[str]
    ) -> None:
        url = settings["NEARDUP_DATABASE_URL"]
        crawl(LinkSpider, settings | {"NEARDUP_SHARE": "finished"}, start=site.url)
        with Store.open(url, scheme=None) as store, store.begin_write() as connection:
            assert connection.execute(sa.select(crawls.c.shared)).scalar() == 1
            connection.execute(
                sa.update(crawls).values(shared=0, finished_at=None)
            )  # as if it had been killed

        unseen = crawl(LinkSpider, settings, start=site.url)
        with Store.open(url, scheme=None) as store:
            list(removal.remove_crawl(store, 2, RULE))
        assert main(["crawls", "share", "1", "--database", url]) == 0
        assert "see the pages of crawl 1" in capsys.readouterr().out
        seen = crawl(LinkSpider, settings, start=site.url)

        assert (unseen.neardup("new"), unseen.neardup("unchanged")) == (2, 0)
        assert (seen.neardup("new"), seen.neardup("unchanged")) == (0, 2)
        assert main(["crawls", "share", "7", "--database", url]) == 1
        assert "there is no crawl 7" in capsys.readouterr().err

    def test_a_crawl_ends_though_resolving_fails(
        self, settings: dict[str, Any], site: Site, caplog: pytest.LogCaptureFixture
    ) -> None:
        url = settings["NEARDUP_DATABASE_URL"]
        if not url.startswith("sqlite"):
            pytest.skip("the trigger is SQLite's")
        site.add("/", text("copy"), "/copy")
        crawl(LinkSpider, settings, start=site.url)
        with Store.open(url, scheme=None) as store, store.begin_write() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(duplicate_values)).scalar() == 1
            connection.exec_driver_sql(
                "CREATE TRIGGER broken BEFORE DELETE ON duplicate_values"
                " BEGIN SELECT RAISE(ABORT, 'broken'); END"
            )
        site.add("/", text("other"))

        done = crawl(LinkSpider, settings | {"NEARDUP_SHARE": "finished"}, start=site.url)

        assert done.neardup("changed") == 1
        assert "the next crawl is to resolve" in caplog.text
        with Store.open(url, scheme=None) as store, store.reading() as connection:
            last = connection.execute(sa.select(crawls).order_by(crawls.c.id.desc())).first()
            assert last is not None
            assert (last.finish_reason, last.shared, last.pages) == ("finished", 1, 1)
