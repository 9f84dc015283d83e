"""Decisions of people on all databases: carried out, undone, and heeded by crawls to come."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from neardup.address import Address
from neardup.detection.decisions import Decision
from neardup.detection.rule import Evidence, Rule
from neardup.store import deciding
from neardup.store.deciding import Overtaken, Refused
from tests.support.crawl_parts import TEXT, Process
from tests.support.stores import kinds, relations, relations_of

if TYPE_CHECKING:
    from neardup.store.store import Store

RULE = Rule(8)
A, B, C, D = (f"http://a.example/{name}" for name in "abcd")
OTHER = " ".join(f"other{number}" for number in range(200))
TEXTS = {A: TEXT, B: f"{TEXT} b", C: f"{TEXT} c", D: OTHER}


def key(url: str) -> bytes:
    return Address.of(url).key


def decide(store: Store, decision: Decision, *urls: str, seen: str | None = None) -> int:
    one, *other = map(key, urls)
    return store.transact(
        lambda connection: deciding.decide(
            connection,
            decision,
            one,
            other[0] if other else None,
            note="why",
            person="ada",
            rule=RULE,
            seen=seen,
        )
    )


def undo(store: Store, number: int) -> None:
    store.transact(lambda connection: deciding.undo(connection, number, person="bob", rule=RULE))


def crawl(store: Store, **texts: str) -> None:
    """All pages once more."""
    process = Process(store)
    for url, text in {**TEXTS, **{f"http://a.example/{name}": text for name, text in texts.items()}}.items():
        process.judge(url, text)
    process.end()


@pytest.fixture
def crawled(store: Store) -> Store:
    """A page, two near-copies of it, and another page."""
    crawl(store)
    assert relations(store) == {B: A, C: A}
    return store


def test_different_pages_stay_apart_in_later_crawls(crawled: Store) -> None:
    number = decide(crawled, Decision.DIFFERENT, A, B)

    assert relations(crawled) == {C: A}
    assert kinds(crawled)[B] == "new"
    crawl(crawled)
    assert relations(crawled) == {C: A}
    crawl(crawled, b=f"{TEXT} bb")  # it has changed, and is judged afresh
    assert B not in relations(crawled)
    undo(crawled, number)
    crawl(crawled, b=f"{TEXT} bbb")
    assert relations(crawled)[B] == A


def test_the_same_pages_are_one_cluster_whatever_the_rule_says(crawled: Store) -> None:
    number = decide(crawled, Decision.SAME, A, D)

    assert relations(crawled) == {B: A, C: A, D: A}
    (row,) = [row for row in relations_of(crawled) if row["evidence"] == Evidence.DECISION.value]
    assert row["hamming_distance"] > RULE.max_distance
    crawl(crawled)
    crawl(crawled, d=f"{OTHER} changed")
    assert relations(crawled) == {B: A, C: A, D: A}
    undo(crawled, number)
    assert relations(crawled) == {B: A, C: A}
    crawl(crawled)
    assert relations(crawled) == {B: A, C: A}


def test_another_page_becomes_canonical_and_keeps_the_cluster(crawled: Store) -> None:
    number = decide(crawled, Decision.CANONICAL, B)

    assert relations(crawled) == {A: B, C: B}
    crawl(crawled)
    assert relations(crawled) == {A: B, C: B}
    undo(crawled, number)
    assert relations(crawled) == {B: A, C: A}


def test_pinned_pages_stay_as_they_are(crawled: Store) -> None:
    decide(crawled, Decision.PIN, B)
    decide(crawled, Decision.PIN, D)
    crawl(crawled, b=OTHER, d=f"{TEXT} d")

    assert relations(crawled) == {B: A, C: A}


def test_a_page_that_is_the_same_brings_its_duplicates(crawled: Store) -> None:
    process = Process(crawled)
    process.judge("http://a.example/e", f"{OTHER} e")
    process.end()
    assert relations(crawled)["http://a.example/e"] == D
    decide(crawled, Decision.SAME, D, B)

    # D is a duplicate of the canonical page of B; what hung on D is not like that page.
    assert relations(crawled) == {B: A, C: A, D: A}
    assert kinds(crawled)["http://a.example/e"] == "new"


def test_newer_decisions_take_the_place_of_older_ones(crawled: Store) -> None:
    first = decide(crawled, Decision.DIFFERENT, A, B)
    decide(crawled, Decision.SAME, A, B)
    with crawled.reading() as connection:
        rows = {row.decision_id: row for row in deciding.listed(connection, limit=10)}
        holding = [row.decision for row in deciding.about(connection, key(A), key(B))]

    assert relations(crawled)[B] == A
    assert rows[first].undone_by == "ada"
    assert holding == ["same"]
    with pytest.raises(Overtaken, match="undone already, by ada"):
        undo(crawled, first)


def test_decisions_outlive_removed_pages(crawled: Store) -> None:
    from neardup.store.removal import only_of, remove_pages

    decide(crawled, Decision.DIFFERENT, A, B)
    for _ in remove_pages(crawled, only_of(1), RULE):
        pass
    assert kinds(crawled) == {}
    crawl(crawled)

    assert relations(crawled) == {C: A}


def test_a_decision_that_makes_no_sense(crawled: Store) -> None:
    for arguments, message in (
        ((Decision.SAME, A), "about two pages"),
        ((Decision.CANONICAL, A, B), "about one page"),
        ((Decision.SAME, A, A), "not two pages but one"),
        ((Decision.PIN, "http://a.example/unknown"), "pages that are stored"),
    ):
        with pytest.raises(Refused, match=message):
            decide(crawled, *arguments)
    with pytest.raises(Refused, match="no decision 99"):
        undo(crawled, 99)


def test_two_people_who_decide_at_once(crawled: Store) -> None:
    with crawled.reading() as connection:
        seen = deciding.state_of(connection, key(A), key(B))
    outcomes: list[str] = []

    def person(decision: Decision) -> None:
        try:
            decide(crawled, decision, A, B, seen=seen)
            outcomes.append("done")
        except Overtaken:
            outcomes.append("overtaken")

    threads = [threading.Thread(target=person, args=(one,)) for one in (Decision.SAME, Decision.DIFFERENT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(outcomes) == ["done", "overtaken"]


def test_a_crawl_that_runs_follows_a_decision(crawled: Store) -> None:
    running = Process(crawled)
    running.judge("http://a.example/first", " ".join(f"first{number}" for number in range(50)))
    running.writer.flush()
    decide(crawled, Decision.DIFFERENT, A, B)
    running.follow()

    assert running.detector.canonical_of(B) is None
    running.end()
    assert B not in relations(crawled)
