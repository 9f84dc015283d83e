"""What a crawl reads from the database at its start and leaves there at its end, beside its pages."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from neardup.fingerprint.scheme import Scheme
from neardup.scrapy.options import Options
from neardup.scrapy.recording import Onlooker, Recorder
from neardup.store.store import Store
from neardup.store.url_rules import decide
from neardup.urls.rules import Rule, Slot, State
from tests.support.stores import rules_of

HOST = "a.example"
SID = Rule(HOST, Slot.PARAMETER, "sid")


@pytest.fixture
def options(database_url: str) -> Options:
    return Options.from_settings(Settings({"NEARDUP_DATABASE_URL": database_url}))


def begun(options: Options) -> Recorder:
    recorder = Recorder(options, options.detector.make_reader(), spider="s")
    recorder.load()
    return recorder


def learn_and_close(recorder: Recorder, pages: range) -> Recorder:
    """Have a crawl learn from so many pages of two addresses each, and end."""
    for number in pages:
        for sid in "ab":
            url = f"http://{HOST}/{'abcd'[number % 4]}/page?id={number}&sid={sid}"
            recorder.learner.observe(url, cluster=number)
    recorder.close("finished", dict)
    return recorder


def test_rules_of_urls_are_handed_from_crawl_to_crawl(options: Options) -> None:
    first = learn_and_close(begun(options), range(1, 20))
    second = learn_and_close(begun(options), range(20, 40))
    onlooker = Onlooker(options, options.detector.make_reader())
    onlooker.load()

    with Store.open(options.database_url, scheme=str(Scheme())) as store:
        stored = rules_of(store)
    assert stored[SID].learned.trials > 30  # of both crawls, with forgetting
    assert (stored[SID].crawl_id, second.crawl_id) == (second.crawl_id, first.crawl_id + 1)
    assert {rule.rule: rule for rule in onlooker.learner.rules()} == {
        rule: known.learned for rule, known in stored.items()
    }
    assert first.stats()["rows_rejected"] == second.stats()["rows_rejected"] == 0


def test_a_database_without_rules_gives_an_empty_learner(options: Options) -> None:
    recorder = learn_and_close(begun(options), range(0))

    assert list(recorder.learner.rules()) == []


def test_what_is_pinned_while_a_crawl_runs_stays_pinned(options: Options) -> None:
    learn_and_close(begun(options), range(1, 20))
    recorder = begun(options)
    with Store.open(options.database_url, scheme=str(Scheme())) as store:
        store.transact(lambda connection: decide(connection, [SID], State.PINNED))
        learn_and_close(recorder, range(20, 40))

        assert rules_of(store)[SID].learned.state is State.PINNED
