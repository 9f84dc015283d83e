"""Two ways of writing one URL, learned from pairs of copies."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.urls.host_rules import MOST_SUBSTITUTIONS, MOST_VOTED
from neardup.urls.learner import Learner
from neardup.urls.rules import Slot, State
from neardup.urls.substitutions import around, proposals

HOST = "http://a.example"

WAYS = [
    ("/news/story_{}", "/news/story?id={}", "story?id={} = story_{}"),
    ("/archives/{}", "/?p={}", "?p={} = archives/{}"),
    ("/node/{}", "/index.php?q=node/{}", "index.php?q=node/{} = node/{}"),
    ("/shop/item-{}.html", "/shop/item.php?id={}", "item-{}.html = item.php?id={}"),
    (
        "/old-a/doc/old-a/x_{}.html",
        "/old-b/doc/old-b/x_{}.html",
        "old-a/doc/old-a/x_{}.html = old-b/doc/old-b/x_{}.html",
    ),
]


def learned(learner: Learner) -> dict[str, State]:
    """Substitutions for the whole host, by value."""
    return {
        found.rule.value: found.state
        for found in learner.rules()
        if found.rule.slot is Slot.SUBSTITUTION and not found.rule.context
    }


@pytest.mark.parametrize(("one", "other", "value"), WAYS)
def test_is_learned_and_predicts_both_ways(one: str, other: str, value: str) -> None:
    learner = Learner()
    for number in range(30):
        for way in (one, other):
            learner.observe(HOST + way.format(number), cluster=number)
    assert learned(learner) == {value: State.ACTIVE}

    for number, (known, asked) in enumerate([(one, other), (other, one)], 100):
        assert learner.predict(HOST + asked.format(number)) is None
        learner.observe(HOST + known.format(number), cluster=number)
        prediction = learner.predict(HOST + asked.format(number))
        assert prediction is not None
        assert (prediction.rule.slot, prediction.partner) == (Slot.SUBSTITUTION, HOST + known.format(number))
        assert prediction.probability > 0.9


def test_the_next_crawl_begins_with_it() -> None:
    first = Learner()
    for number in range(30):
        first.observe(f"{HOST}/story_{number}", cluster=number)
        first.observe(f"{HOST}/story?id={number}", cluster=number)

    second = Learner.from_rules(first.rules())
    second.observe(f"{HOST}/story_77", cluster=77)

    prediction = second.predict(f"{HOST}/story?id=77")
    assert prediction is not None
    assert prediction.probability > 0.9


def test_is_revoked_when_it_goes_wrong() -> None:
    learner = Learner()
    for number in range(60):
        right = number < 20
        learner.observe(f"{HOST}/story_{number}", cluster=number)
        learner.observe(f"{HOST}/story?id={number}", cluster=number if right else 1_000 + number)

    assert learned(learner) == {"story?id={} = story_{}": State.REVOKED}


def test_a_wrong_one_makes_room_and_their_number_is_bounded() -> None:
    learner = Learner()
    for way in range(MOST_SUBSTITUTIONS + 4):
        for number in range(30):
            cluster = 1_000 * way + number
            wrong = way < 4 and number >= 5
            learner.observe(f"{HOST}/{way}/a{way}_{number}", cluster=cluster)
            learner.observe(f"{HOST}/{way}/b{way}?id={number}", cluster=-cluster if wrong else cluster)
    host = learner._hosts["a.example"]

    assert len(host.substitutions) == MOST_SUBSTITUTIONS
    assert f"a{MOST_SUBSTITUTIONS + 3}_{{}} = b{MOST_SUBSTITUTIONS + 3}?id={{}}" in host.substitutions


def test_proposals_are_bounded() -> None:
    learner = Learner()
    for number in range(3 * MOST_VOTED):
        learner.observe(f"{HOST}/x{number}/story_{number}", cluster=number)
        learner.observe(f"{HOST}/y{number}?w{number}={number}", cluster=number)

    assert len(learner._hosts["a.example"]._proposed) <= MOST_VOTED


def test_ways_that_fit_one_text_both_are_not_proposed() -> None:
    assert not list(proposals("/1", "/1-"))


@given(st.text("ab1_-/?=&{}%", max_size=12), st.text("ab1_-/?=&{}%", max_size=12))
@example("1", "1-")
def test_what_is_proposed_holds_of_the_pair(one: str, other: str) -> None:
    one, other = f"/{one}", f"/{other}"
    for proposal in proposals(one, other):
        assert around(proposal.value, one) == around(proposal.value, other) == proposal.around != 0
