"""What crawls have learned of URLs, in the tables of real servers."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from neardup.detection.rule import Rule as MatchRule
from neardup.store import removal, url_rules
from neardup.store.schema import url_rules as table
from neardup.store.url_rules import (
    UrlRules,
    decide,
    effects_by_crawl,
    key_of_rule,
    rules_of_key,
    stored_rules,
)
from neardup.store.writer import Writer
from neardup.urls.effects import Effect
from neardup.urls.evidence import MIN_TRIALS
from neardup.urls.learner import Learner
from neardup.urls.rules import Rule, Slot, State
from tests.support.stores import SHOPS, fail_twice, rules_of, taught, write
from tests.support.verdicts import page

if TYPE_CHECKING:
    from neardup.store.store import Store

HOST = "a.example"
SID = Rule(HOST, Slot.PARAMETER, "sid")
ID = Rule(HOST, Slot.PARAMETER, "id")
NEVER_SEEN = f"http://{HOST}/boots/list.html?id=77&sid="


def decided(store: Store, rule: Rule, state: State) -> None:
    store.transact(lambda connection: decide(connection, [rule], state))


def wrong(rules: UrlRules, pages: int = 60) -> UrlRules:
    """Have a crawl learn that the session ids matter."""
    for number in range(pages):
        for sid in "xy":
            rules.learner.observe(
                f"http://{HOST}/boots/list.html?id=n{number}&sid={sid}", 10_000 + number * 2 + (sid == "x")
            )
    return rules


class TestStored:
    def test_the_next_crawl_predicts_as_the_last_one(self, store: Store) -> None:
        first = taught(None, HOST, "b.example")
        write(store, rules=first)

        second = UrlRules()
        store.load_rules(second)

        learned = {one.rule: one for one in first.learner.rules() if one.trials >= MIN_TRIALS}
        assert {one.rule: one for one in second.learner.rules()} == learned
        assert learned[SID].state is State.ACTIVE
        assert second.to_store(all_changed=True) == {}  # nothing has changed since
        for rules in (first, second):
            rules.learner.observe(f"{NEVER_SEEN}1", cluster=500)
        predictions = [rules.learner.predict(f"{NEVER_SEEN}2") for rules in (first, second)]
        assert [prediction is not None and prediction.rule.slot for prediction in predictions] == [
            predictions[0] is not None and predictions[0].rule.slot
        ] * 2
        assert all(prediction is not None and prediction.probability > 0.9 for prediction in predictions)

    def test_evidence_and_crawl_stand_in_the_row(self, store: Store) -> None:
        crawl_id = store.begin_crawl(spider="s", settings={})
        write(store, crawl=crawl_id, rules=taught(None, HOST))

        stored = rules_of(store)[SID]

        assert (stored.crawl_id, stored.decisions, stored.learned.state) == (crawl_id, 0, State.ACTIVE)
        assert stored.learned.hits == stored.learned.trials > 30
        assert stored.learned.clusters > 1
        assert stored.learned.example.startswith(f"http://{HOST}/")
        assert stored.learned.partner != stored.learned.example
        assert stored.updated_at is not None
        (found,) = rules_of_key_of(store, SID)
        assert found == stored

    def test_what_came_of_a_rule_is_stored_by_crawl(self, store: Store) -> None:
        first = taught(None, HOST)
        first.effects.count(SID, "deferred", 5)
        first.effects.count(SID, "copies", 4)
        crawls = [store.begin_crawl(spider="s", settings={}) for _ in range(2)]
        write(store, crawl=crawls[0], rules=first)
        first.effects.count(SID, "others")
        write(store, crawl=crawls[0], rules=first)  # replaces what the crawl had stored
        second = taught(store, HOST)
        second.effects.count(SID, "saved", 7)
        write(store, crawl=crawls[1], rules=second)

        assert rules_of(store)[SID].effect == Effect(deferred=5, copies=4, others=1, saved=7)
        assert rules_of(store)[ID].effect == Effect()
        with store.reading() as connection:
            assert effects_by_crawl(connection, SID) == {
                crawls[0]: Effect(deferred=5, copies=4, others=1),
                crawls[1]: Effect(saved=7),
            }
        third = taught(store, HOST)
        assert SID not in {
            rule for rule, stored in third.to_store(all_changed=True).items() if stored.effect != Effect()
        }

    def test_a_rule_that_predicts_before_its_first_trial(self, store: Store) -> None:
        www = Rule(HOST, Slot.HOST, f"https://www.{HOST}")
        rules = UrlRules()
        rules.effects.count(www, "deferred")
        write(store, rules=rules)

        stored = rules_of(store)[www]
        assert (stored.learned.trials, stored.learned.state) == (0.0, State.LEARNING)
        assert stored.effect == Effect(deferred=1)

    def test_what_came_of_a_rule_goes_with_its_crawl_or_its_host(self, store: Store) -> None:
        rules = taught(None, HOST)
        rules.effects.count(SID, "deferred")
        crawl_id = store.begin_crawl(spider="s", settings={})
        write(store, page(1, f"http://{HOST}/"), crawl=crawl_id, rules=rules)
        other = store.begin_crawl(spider="s", settings={})
        again = taught(store, HOST)
        again.effects.count(SID, "copies")
        write(store, crawl=other, rules=again)

        list(removal.remove_crawl(store, other, MatchRule(3)))
        left = rules_of(store)[SID].effect
        list(removal.remove_crawl(store, crawl_id, MatchRule(3)))

        assert left == Effect(deferred=1)
        assert rules_of(store) == {}

    def test_rules_of_few_trials_are_left_out(self, store: Store) -> None:
        write(store, rules=taught(None, HOST, items=2))

        assert rules_of(store) == {}

    def test_long_names_and_names_that_no_database_takes(self, store: Store) -> None:
        rules = UrlRules()
        learner = rules.learner
        long = Rule("a.example", Slot.TRAP, "ü" * 6_000, "/x" * 1_000)
        for rule in (long, Rule("b\x00.example", Slot.QUERY, ""), Rule("c" * 300, Slot.QUERY, "")):
            learner.pin(rule)
        learner.ban(Rule("a.example", Slot.PARAMETER, "\ud800"))

        writer = write(store, rules=rules)

        assert set(rules_of(store)) == {long}
        assert (writer.rows_rejected, writer.retries) == (0, 0)

    def test_what_changes_is_stored_while_the_crawl_runs(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(url_rules, "_SECONDS", 0.0)
        rules = taught(None, HOST)
        writer = Writer(store, store.begin_crawl(spider="s", settings={}), rules=rules)
        writer.put(page(1, f"http://{HOST}/"))
        writer.flush()
        in_between = rules_of(store)[SID].learned
        monkeypatch.setattr(url_rules, "_SECONDS", 3_600.0)
        rules.to_store(all_changed=True)  # the next look is far away
        wrong(rules, pages=1)
        writer.put(page(2, f"http://{HOST}/2"))
        writer.flush()
        not_yet = rules_of(store)[SID].learned
        writer.put_learned()
        writer.close()

        assert in_between.state is State.ACTIVE
        assert not_yet == in_between
        assert rules_of(store)[SID].learned.trials > in_between.trials
        assert (writer.rows_rejected, writer.backlog) == (0, 0)

    def test_more_rules_than_a_batch_takes(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        from neardup.store import pending_batch

        monkeypatch.setattr(pending_batch, "MOST_ROWS", 7)
        rules = taught(None, HOST)

        writer = write(store, page(1, "u"), rules=rules)

        assert len(rules_of(store)) > 14
        assert writer.batches >= 3
        assert writer.backlog == 0

    def test_nothing_is_lost_while_the_database_is_locked(self, store: Store) -> None:
        failures = fail_twice(store, "INSERT INTO url_rules")
        writer = write(store, page(1, "u"), rules=taught(None, HOST))

        assert (len(failures), writer.retries, writer.rows_rejected) == (2, 2, 0)
        assert SID in rules_of(store)

    def test_a_rule_that_the_database_refuses_costs_itself_only(
        self, store: Store, caplog: pytest.LogCaptureFixture
    ) -> None:
        def refuse(connection: object, cursor: object, statement: str, values: object, *_: object) -> None:
            if statement.startswith("INSERT INTO url_rules") and "/coats" in repr(values):
                raise sa.exc.DataError(statement, {}, Exception("no coats"))

        sa.event.listen(store.engine, "before_cursor_execute", refuse)
        rules = taught(None, HOST)
        coats = [one for one in rules.learner.rules() if one.rule.context == "/coats" and one.trials >= 5]

        writer = write(store, page(1, "u"), rules=rules)

        assert len(coats) > 0
        assert writer.rows_rejected > 0
        assert SID in rules_of(store)
        assert not any("coats" in stored.learned.rule.context for stored in rules_of(store).values())
        assert "the row of the rule 'a.example: " in caplog.text


def rules_of_key_of(store: Store, rule: Rule) -> list[url_rules.StoredRule]:
    with store.reading() as connection:
        return rules_of_key(connection, key_of_rule(rule).hex()[:8])


class TestTwoCrawls:
    def test_the_one_with_more_trials_wins(self, store: Store) -> None:
        small, large = taught(None, HOST, items=12), taught(None, HOST, items=30)
        crawls = [store.begin_crawl(spider="s", settings={}) for _ in range(2)]

        for _ in range(2):  # whatever the order
            write(store, crawl=crawls[1], rules=large)
            write(store, crawl=crawls[0], rules=small)

        stored = rules_of(store)[SID]
        assert stored.crawl_id == crawls[1]
        assert stored.learned in list(large.learner.rules())

    @pytest.mark.slow
    def test_at_the_same_time(self, store: Store) -> None:
        hosts = [f"{number}.example" for number in range(20)]
        learned = [taught(None, *hosts, items=items) for items in (12, 30, 20)]
        writers = [
            Writer(store, store.begin_crawl(spider="s", settings={}), rules=rules, batch_seconds=0.0)
            for rules in learned
        ]
        for _ in range(2):
            for writer, rules in zip(writers, learned, strict=True):
                rules.learner.observe("http://x.example/", 1)
                writer.put_learned()
        for writer in writers:
            writer.close()

        assert [writer.rows_rejected for writer in writers] == [0, 0, 0]
        stored = rules_of(store)
        assert {rule.host for rule in stored} == set(hosts)
        known = {one for rules in learned for one in rules.learner.rules()}
        assert {one.learned for one in stored.values()} <= known

    def test_a_rule_that_was_revoked_is_stored_though_it_has_few_trials(self, store: Store) -> None:
        write(store, rules=taught(None, HOST))
        before = rules_of(store)[SID].learned

        write(store, rules=wrong(taught(store, items=0)))

        after = rules_of(store)[SID].learned
        assert before.state is State.ACTIVE
        assert after.state is State.REVOKED
        assert after.hits < before.hits

    def test_a_crawl_replaces_what_it_wrote_itself(self, store: Store) -> None:
        crawl_id = store.begin_crawl(spider="s", settings={})
        rules = taught(None, HOST)
        write(store, crawl=crawl_id, rules=rules)

        write(store, crawl=crawl_id, rules=wrong(rules))

        assert rules_of(store)[SID].learned.state is State.REVOKED

    @pytest.mark.parametrize("state", [State.PINNED, State.BANNED, State.REVOKED])
    def test_a_decision_by_hand_survives_the_next_write(self, store: Store, state: State) -> None:
        crawl_id = store.begin_crawl(spider="s", settings={})
        rules = taught(None, HOST, items=12)
        write(store, crawl=crawl_id, rules=rules)
        decided(store, SID, state)
        by_hand = rules_of(store)[SID]

        for item in range(12, 30):
            for sid in "abc":
                rules.learner.observe(f"http://{HOST}/boots/list.html?id={item}&sid={sid}", item + 1)
        write(store, crawl=crawl_id, rules=rules)

        assert rules_of(store)[SID] == by_hand
        assert by_hand.learned.state is state
        assert by_hand.decisions == 1
        other = rules_of(store)[ID].learned  # about which nobody decided
        assert other in list(rules.learner.rules())

    def test_a_crawl_that_knows_of_the_pin_keeps_it_and_goes_on_counting(self, store: Store) -> None:
        write(store, rules=taught(None, HOST, items=12))
        decided(store, SID, State.PINNED)
        before = rules_of(store)[SID]

        write(store, rules=wrong(taught(store, items=0)))

        after = rules_of(store)[SID]
        assert after.learned.state is State.PINNED
        assert after.learned.trials > before.learned.trials
        assert after.learned.hits < before.learned.hits
        assert (after.decisions, before.decisions) == (1, 1)

    def test_a_pin_that_is_taken_back_while_a_crawl_runs(self, store: Store) -> None:
        decided(store, SID, State.PINNED)
        rules = UrlRules()
        store.load_rules(rules)
        decided(store, SID, State.REVOKED)

        write(store, rules=wrong(rules))

        assert rules_of(store)[SID].learned.state is State.REVOKED


class TestDecide:
    def test_a_rule_that_nobody_has_learned(self, store: Store) -> None:
        decided(store, SID, State.BANNED)

        (stored,) = rules_of(store).values()
        assert (stored.learned.rule, stored.learned.state, stored.crawl_id) == (SID, State.BANNED, None)
        rules = taught(store, HOST)
        rules.learner.observe(f"{NEVER_SEEN}1", cluster=500)
        prediction = rules.learner.predict(f"{NEVER_SEEN}2")
        assert prediction is None or prediction.rule[:3] != SID[:3]

    def test_with_a_rule_its_special_contexts_are_revoked(self, store: Store) -> None:
        write(store, rules=taught(None, HOST))
        before = rules_of(store)

        decided(store, SID, State.REVOKED)

        after = rules_of(store)
        below = {rule for rule in before if rule[:3] == SID[:3] and rule.context}
        assert len(below) >= len(SHOPS)
        changed = {rule for rule in before if after[rule].learned != before[rule].learned}
        resting_on_it = {rule for rule in before if rule.slot is Slot.TOGETHER and "sid" in rule.value}
        assert changed == {SID, *below, *resting_on_it}
        assert {rule for rule, known in after.items() if known.decisions == 1} == changed
        assert all(after[rule].learned.trials <= 5 for rule in (SID, *below))

    def test_the_last_decision_counts(self, store: Store) -> None:
        for state in (State.PINNED, State.PINNED, State.BANNED, State.REVOKED):
            decided(store, SID, state)

        stored = rules_of(store)[SID]
        assert (stored.learned.state, stored.decisions) == (State.REVOKED, 4)


class TestLoaded:
    def test_hosts_that_were_learned_of_last(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        hosts = [f"{name}.example" for name in "cabd"]
        for host in hosts:
            write(store, rules=taught(None, host))
        monkeypatch.setattr(url_rules, "MOST_HOSTS", 2)

        rules = UrlRules()
        store.load_rules(rules)

        assert list(dict.fromkeys(one.rule.host for one in rules.learner.rules())) == hosts[2:]

    def test_no_more_rules_than_a_learner_remembers(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hosts = [f"{name}.example" for name in "cab"]
        for host in hosts:
            write(store, rules=taught(None, host))
        monkeypatch.setattr(url_rules, "MOST_RULES", 2 * len(rules_of(store)) // 3)

        rules = UrlRules()
        store.load_rules(rules)

        assert list(dict.fromkeys(one.rule.host for one in rules.learner.rules())) == hosts[1:]

    def test_of_many_rules_those_by_hand_and_those_with_most_trials(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        decided(store, Rule(HOST, Slot.PARAMETER, "never"), State.BANNED)
        rules = taught(None, HOST)
        write(store, rules=rules)
        monkeypatch.setattr(url_rules, "MOST_CONTEXTS", 4)

        loaded = UrlRules()
        store.load_rules(loaded)

        found = list(loaded.learner.rules())
        most = sorted((one.trials for one in rules.learner.rules()), reverse=True)
        assert found[0].rule.value == "never"
        assert [one.trials for one in found[1:]] == most[:3]

    def test_damaged_rows_are_one_warning(self, store: Store, caplog: pytest.LogCaptureFixture) -> None:
        write(store, rules=taught(None, HOST))
        others = len(rules_of(store))
        for rule, change in ((SID, {"slot": "of later"}), (ID, {"hits": -1.0})):
            row = table.c
            key = row.rule_key == key_of_rule(rule)
            with store.begin_write() as connection:
                connection.execute(sa.update(table).where(key).values(change))

        rules = UrlRules()
        with caplog.at_level(logging.WARNING):
            store.load_rules(rules)

        (record,) = caplog.records
        assert "2 rules of URLs cannot be read" in record.getMessage()
        assert len(list(rules.learner.rules())) == others - 2


class TestRemoval:
    def test_rules_go_with_the_pages_of_their_host(self, store: Store) -> None:
        first, second = (store.begin_crawl(spider="s", settings={}) for _ in range(2))
        hosts = ("a.example", "b.example")
        write(
            store,
            *(page(n, f"http://{host}/{n}") for n, host in enumerate(hosts, 1)),
            crawl=first,
            rules=taught(None, *hosts, "elsewhere.example"),
        )
        write(store, page(3, "http://b.example/3"), crawl=second)

        for _ in removal.remove_crawl(store, first, MatchRule(3)):
            pass

        left = rules_of(store)
        assert {rule.host for rule in left} == {"b.example", "elsewhere.example"}
        assert {stored.crawl_id for stored in left.values()} == {None}


def test_rules_are_found_by_host_state_and_key(store: Store) -> None:
    write(store, rules=taught(None, HOST, "b.example"))
    with store.reading() as connection:
        everything = list(stored_rules(connection))
        of_host = list(stored_rules(connection, host="b.example", states=[State.ACTIVE]))
        whole = [rules_of_key(connection, stored.key.hex()) for stored in everything]
        none = rules_of_key(connection, "0" * 31)
        all_keys = rules_of_key(connection, "")

    assert {stored.learned.rule.host for stored in everything} == {HOST, "b.example"}
    assert of_host == [
        stored
        for stored in everything
        if stored.learned.rule.host == "b.example" and stored.learned.state is State.ACTIVE
    ]
    assert len(of_host) > 2
    assert whole == [[stored] for stored in everything]
    assert none == []
    assert sorted(all_keys, key=lambda stored: stored.key) == all_keys
    assert len(all_keys) == len(everything)


def test_a_learner_of_nothing_is_stored_as_nothing(store: Store) -> None:
    rules = UrlRules()
    store.load_rules(rules)

    assert list(rules.learner.rules()) == list(Learner().rules()) == []
    write(store, rules=rules)
    assert rules_of(store) == {}
