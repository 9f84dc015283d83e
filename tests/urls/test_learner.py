"""What a learner makes of the verdicts on planted sites."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.urls import host_rules
from neardup.urls import learner as learner_module
from neardup.urls.evidence import ENOUGH_TRIALS, MIN_TRIALS
from neardup.urls.last_pages import LastPages
from neardup.urls.learner import TRAP_PAGES, Learner
from neardup.urls.memory import MOST_CLUSTERS, Page
from neardup.urls.rules import LearnedRule, Rule, Slot, State
from tests.support.held import held_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "a.example.com"
SITE = f"http://{HOST}"


def session(item: int, variant: int) -> str:
    return f"{random.Random(f'{item} {variant}').getrandbits(80):020x}"


PLANTED: dict[Slot, Callable[[int, int], str]] = {
    Slot.PARAMETER: lambda item, variant: f"{SITE}/d{item % 3}/{item}?sid={variant}",
    Slot.OTHERS: lambda item, variant: f"{SITE}/d{item % 3}/x?id={item}&v={variant}&w={7 * variant}",
    Slot.QUERY: lambda item, variant: f"{SITE}/d{item % 3}/{item}?v={variant}&w={7 * variant}",
    Slot.SEGMENT: lambda item, variant: f"{SITE}/v{variant}/d{item % 3}/page{item}",
    Slot.EXTRA: lambda item, variant: (
        f"{SITE}{'/print' * (variant % 2)}/d{item % 3}/page{item}/{variant // 2}"
    ),
    Slot.HOST: lambda item, variant: (
        f"http{'s' * (variant % 2)}://{HOST}/d{item % 3}/page{item}/{variant // 2}"
    ),
    Slot.SPELLING: lambda item, variant: f"{SITE}/d{item % 3}/{'Pp'[variant % 2]}age{item}/{variant // 2}",
}
"""A URL for each item and variant; of two variants that only differ by one there is a copy."""

PLANTED_BY_NAME: dict[str, tuple[Slot, Callable[[int, int], str]]] = {
    **{slot.value: (slot, url) for slot, url in PLANTED.items()},
    "opaque": (Slot.SEGMENT, lambda item, variant: f"{SITE}/{session(item, variant)}/d{item % 3}/page{item}"),
    "number twice": (
        Slot.SEGMENT,
        lambda item, variant: f"{SITE}/v{variant}/d{item % 3}/lib-{variant}/page{item}",
    ),
    "number three times": (
        Slot.SEGMENT,
        lambda item, variant: (
            f"{SITE}/v{variant + 5}/d{item % 3}/lib-{variant + 5}/for-{variant + 5}/page{item}"
        ),
    ),
    "matrix": (Slot.PARAMETER, lambda item, variant: f"{SITE}/d{item % 3}/{item};jsessionid={variant}"),
}


def cluster_of(slot: Slot, item: int, variant: int) -> int:
    """Where a variant counts in pairs, so does the cluster."""
    pairs = slot in {Slot.EXTRA, Slot.HOST, Slot.SPELLING}
    return 1_000 * (variant // 2) + item if pairs else item


def taught(name: str, items: int = 30, variants: int = 2) -> Learner:
    slot, url = PLANTED_BY_NAME[name]
    learner = Learner()
    for item in range(items):
        for variant in range(variants):
            learner.observe(url(item, variant), cluster_of(slot, item, variant))
    return learner


@pytest.mark.parametrize("name", PLANTED_BY_NAME)
def test_a_planted_slot_is_learned_and_names_the_known_page(name: str) -> None:
    slot, url = PLANTED_BY_NAME[name]
    learner = taught(name)
    learner.observe(url(500, 0), 500)

    prediction = learner.predict(url(500, 1))

    assert prediction is not None
    assert prediction.probability > 0.9
    assert 0.7 < prediction.lower < prediction.probability
    assert prediction.partner == url(500, 0)
    assert (prediction.rule.host, prediction.rule.slot) == (HOST, slot)
    assert any(
        learned.rule == prediction.rule and learned.state is State.ACTIVE for learned in learner.rules()
    )


@pytest.mark.parametrize("name", PLANTED_BY_NAME)
def test_next_to_nothing_is_known_against_a_page_without_a_known_copy(name: str) -> None:
    _, url = PLANTED_BY_NAME[name]

    prediction = taught(name).predict(url(500, 1))

    assert prediction is None or prediction.probability < 0.15


@pytest.mark.parametrize("name", PLANTED_BY_NAME)
def test_what_matters_is_never_held_against_a_url(name: str) -> None:
    _, url = PLANTED_BY_NAME[name]
    learner = Learner()
    urls = [url(item, variant) for item in range(40) for variant in range(2)]
    for number, one in enumerate(urls):
        learner.observe(one, number)

    asked = [learner.predict(url(item, 2)) for item in range(40)]

    assert all(prediction is None or prediction.probability < 0.2 for prediction in asked)


def test_a_parameter_is_learned_beside_the_others() -> None:
    """The list of media is one at every page, and each page has revisions of its own."""
    learner = Learner()
    for page in range(60):
        learner.observe(f"{SITE}/wiki.php?id=page:{page}&do=media", 1 + page % 3)
        learner.observe(f"{SITE}/wiki.php?id=page:{page}&do=revisions", 1_000 + page)

    of_id = {learned.rule.context: learned for learned in learner.rules() if learned.rule.value == "id"}
    assert of_id["/wiki.php?&do=media"].state is State.ACTIVE
    assert of_id["/wiki.php?&do=media"].lower > of_id["/wiki.php"].lower
    assert of_id["/wiki.php?&do=revisions"].hits == 0.0


def test_a_page_known_without_the_parameter_is_a_partner_and_the_other_way_round() -> None:
    learner = Learner()
    for item in range(40):
        urls = [f"{SITE}/d{item % 3}/{item}", f"{SITE}/d{item % 3}/{item}?utm=mail"]
        for url in urls if item % 2 else reversed(urls):
            learner.observe(url, item)
    learner.observe(f"{SITE}/d1/bare", 100)
    learner.observe(f"{SITE}/d1/marked?utm=mail", 101)

    for unknown, known in ((f"{SITE}/d1/bare?utm=x", "bare"), (f"{SITE}/d1/marked", "marked?utm=mail")):
        prediction = learner.predict(unknown)
        assert prediction is not None
        assert prediction.probability > 0.8
        assert prediction.partner == f"{SITE}/d1/{known}"


def test_several_slots_that_only_ever_change_at_once_are_learned_together() -> None:
    learner = Learner()
    for item in range(40):
        learner.observe(f"http://www.example.com/d{item % 3}/{item}?sid={item}", item)
        learner.observe(f"http://mirror.example.com/print/d{item % 3}/{item}", item)
    learner.observe("http://www.example.com/d1/new?sid=77", 500)

    prediction = learner.predict("http://mirror.example.com/print/d1/new")

    assert prediction is not None
    assert prediction.probability > 0.8
    assert prediction.rule.slot is Slot.TOGETHER


def test_a_parameter_matters_in_one_directory_and_not_in_another() -> None:
    learner = Learner()
    clusters = iter(range(100_000, 200_000))
    for number in range(60):
        for order in "ab":
            learner.observe(f"{SITE}/item/{number}?sort={order}", number)
            learner.observe(f"{SITE}/list/{number}?sort={order}", next(clusters))
    learner.observe(f"{SITE}/item/new?sort=a", 500)
    learner.observe(f"{SITE}/list/new?sort=a", 501)

    of_item, of_list = (learner.predict(f"{SITE}/{kind}/new?sort=b") for kind in ("item", "list"))

    assert of_item is not None
    assert of_item.probability > 0.85
    assert of_item.rule.context.startswith("/item")
    assert of_list is None or of_list.probability < 0.15


def test_the_history_of_a_page_has_the_last_word() -> None:
    learner = taught(Slot.SEGMENT.value)
    for variant in range(4):
        learner.observe(f"{SITE}/v{variant}/d1/notes", 1_000 + variant)  # anew in each version
        learner.observe(f"{SITE}/v{variant}/d1/licence", 2_000)
    changing, stable = (learner.predict(f"{SITE}/v9/d1/{page}") for page in ("notes", "licence"))

    assert changing is not None
    assert stable is not None
    assert changing.probability < 0.5
    assert stable.probability > 0.9


@pytest.mark.parametrize(
    "name", [name for name, (slot, _) in PLANTED_BY_NAME.items() if slot is not Slot.SEGMENT]
)
def test_a_page_that_is_only_asked_for_is_a_partner_of_what_may_wait(name: str) -> None:
    slot, url = PLANTED_BY_NAME[name]
    learner = taught(name)
    learner.asked(url(501, 0))

    found = learner.predict(url(501, 1), may_wait=True)

    assert found is not None
    assert found.rule.slot in {slot, Slot.TOGETHER}
    assert (found.partner, found.is_known) == (url(501, 0), False)
    for other in (learner.predict(url(501, 1)), learner.predict(url(501, 0), may_wait=True)):
        assert other is None or other.is_known
    learner.observe(url(501, 0), 501)
    now = learner.predict(url(501, 1), may_wait=True)
    assert now is not None
    assert now.is_known


def test_another_version_of_a_page_that_is_asked_for_does_not_wait() -> None:
    _, url = PLANTED_BY_NAME["segment"]
    learner = taught("segment")
    learner.asked(url(501, 0))

    assert learner.predict(url(501, 1), may_wait=True) is None


def test_a_number_that_is_twice_in_a_path_by_chance_hides_no_version() -> None:
    learner = Learner()
    for chapter in range(1, 20):
        for page in range(4):
            for version in (2, 3, 12):
                learner.observe(f"{SITE}/v{version}/part{chapter}/p{page}", 100 * chapter + page)
    for version in (2, 3):
        learner.observe(f"{SITE}/v{version}/part12/new", 9_999)

    prediction = learner.predict(f"{SITE}/v12/part12/new")

    assert prediction is not None
    assert prediction.rule.value == "0"
    assert prediction.probability > 0.9


def test_a_page_that_is_answered_is_no_partner_until_it_is_observed() -> None:
    _, url = PLANTED_BY_NAME["parameter"]
    learner = taught("parameter")
    learner.asked(url(501, 0))

    learner.answered(url(501, 0))

    assert learner.predict(url(501, 1), may_wait=True) is None


def test_a_page_that_is_asked_for_holds_nothing_back_where_the_part_matters() -> None:
    learner = Learner()
    for item in range(60):
        for variant in range(2):
            learner.observe(f"{SITE}/d{item % 3}/{item}?page={variant}", 1_000 * variant + item)
    learner.asked(f"{SITE}/d1/500?page=0")

    found = learner.predict(f"{SITE}/d1/500?page=1", may_wait=True)

    assert found is None or found.probability < 0.2


def test_pages_that_are_asked_for_are_forgotten_when_there_are_more() -> None:
    under_way, page = LastPages(most=3), Page("http://a.example/0", "a.example", 0, 0)
    under_way.put(page, [7])
    assert under_way.of(7) is page
    later = Page("http://a.example/1", "a.example", 0, 0)
    under_way.put(later, [7, 8])

    under_way.drop(page.url)

    assert under_way.of(7) is later
    for number in range(2, 5):
        under_way.put(Page(f"http://a.example/{number}", "a.example", 0, 0), [10 + number])
    assert under_way.of(7) is None
    assert under_way.of(8) is None
    assert under_way.of(14) is not None


def test_a_page_that_is_too_short_is_known_by_made_up_values_alone() -> None:
    learner = taught(Slot.PARAMETER.value, items=100)
    learner.too_short(f"{SITE}/list?page=1&sid=0")
    again, other = f"{SITE}/list?page=1&sid=7", f"{SITE}/list?page=2&sid=7"
    assert learner.predict(again) is None

    learner.makes_up(HOST, "sid", made_up=True)

    found = learner.predict(again)
    assert found is not None
    assert (found.probability, found.partner) == (1.0, f"{SITE}/list?page=1&sid=0")
    assert found.is_known
    assert learner.predict(other) is None


def test_few_trials_one_cluster_or_one_directory_are_no_rule() -> None:
    few = Learner()
    for item in range(MIN_TRIALS - 1):
        for sid in "ab":
            few.observe(f"{SITE}/d{item}/x?sid={sid}", item)
    one_cluster = Learner()
    for item in range(ENOUGH_TRIALS - 1):
        for sid in "ab":
            one_cluster.observe(f"{SITE}/d{item}/x?sid={sid}&id={item}", 7)

    for learner in (few, one_cluster):
        assert {learned.state for learned in learner.rules()} == {State.LEARNING}
        assert learner.predict(f"{SITE}/d0/x?sid=c") is None


def test_a_rule_that_turns_false_is_revoked_within_sixty_pages() -> None:
    learner = taught(Slot.PARAMETER.value, items=300)
    rule = Rule(HOST, Slot.PARAMETER, "sid")
    generation = learner.generation
    assert _learned(learner, rule).state is State.ACTIVE

    explored = 0
    for item in range(1_000, 1_060):
        learner.observe(f"{SITE}/d{item % 3}/{item}?sid=0", 10 * item)
        learner.observe(f"{SITE}/d{item % 3}/{item}?sid=1", 10 * item + 1)
        explored += 1
        if _learned(learner, rule).state is State.REVOKED:
            break

    assert explored < 60
    assert learner.generation > generation
    learner.observe(f"{SITE}/d1/after?sid=0", 90_000)
    prediction = learner.predict(f"{SITE}/d1/after?sid=1")
    assert prediction is None or prediction.probability < 0.5


def test_a_revoked_rule_is_learned_again() -> None:
    learner = taught(Slot.PARAMETER.value)
    rule = Rule(HOST, Slot.PARAMETER, "sid")
    learner.observe(f"{SITE}/d1/new?sid=0", 500)
    learner.revoke(rule)
    learner.observe(f"{SITE}/d1/new?sid=1", 500)

    assert _learned(learner, rule).state is State.REVOKED
    assert learner.predict(f"{SITE}/d1/new?sid=2") is None

    for item in range(1_000, 1_040):
        for sid in "ab":
            learner.observe(f"{SITE}/d{item % 3}/{item}?sid={sid}", item)

    assert _learned(learner, rule).state is State.ACTIVE


def test_a_page_that_is_no_copy_names_the_pages_it_was_taken_for() -> None:
    learner = taught(Slot.SEGMENT.value)
    learner.observe(f"{SITE}/v0/d1/new", 500)

    assert learner.observe(f"{SITE}/v1/d1/new", 501) == [f"{SITE}/v0/d1/new"]
    assert learner.observe(f"{SITE}/v2/d1/new", 500) == []


def test_a_trap_is_held_against_urls_of_its_shape_only() -> None:
    learner = Learner()
    for item in range(40):
        learner.observe(f"{SITE}/article/{item}/text", item)
    for day in range(60):
        learner.observe(f"{SITE}/calendar/{random.Random(day).randrange(10**6)}/{day}x{day}", 1_000)

    trapped = learner.predict(f"{SITE}/calendar/77777/61x61")

    assert trapped is not None
    assert trapped.probability > 0.6
    assert trapped.rule.slot is Slot.TRAP
    assert learner.predict(f"{SITE}/article/500/text") is None


def test_a_cluster_of_few_pages_is_no_trap() -> None:
    learner = Learner()
    for cluster in range(40):
        for page in range(TRAP_PAGES - 1):
            learner.observe(f"{SITE}/d{cluster}x{page}/c{page}x{cluster}/", cluster)

    assert all(learned.hits == 0 for learned in learner.rules() if learned.rule.slot is Slot.TRAP)


def test_a_stranger_teaches_nothing_about_a_victim() -> None:
    learner = Learner()
    for item in range(200):
        learner.observe(f"http://stranger.org/d{item % 3}/{item}", item)
        learner.observe(f"http://victim.com/d{item % 3}/{item}", item)
    learner.observe("http://stranger.org/d1/news", 1_000)
    for item in range(200):  # whatever the stranger says of its own parameters
        for sid in "ab":
            learner.observe(f"http://stranger.org/d{item % 3}/{item}?id={sid}", item)
    learner.observe("http://victim.com/d1/page?id=a", 1_001)

    assert learner.predict("http://victim.com/d1/news") is None
    assert learner.predict("http://victim.com/d1/page?id=b") is None


def test_a_page_may_mirror_one_below_the_same_registered_domain() -> None:
    learner = Learner()
    for item in range(60):
        learner.observe(f"http://www.example.co.uk/d{item % 3}/{item}", item)
        learner.observe(f"http://mirror.example.co.uk/d{item % 3}/{item}", item)
    learner.observe("http://www.example.co.uk/d1/new", 500)

    prediction = learner.predict("http://mirror.example.co.uk/d1/new")

    assert prediction is not None
    assert prediction.partner == "http://www.example.co.uk/d1/new"


def test_a_part_with_too_many_clusters_matters_and_its_bucket_is_closed() -> None:
    learner = Learner()
    for number in range(3 * MOST_CLUSTERS):
        learner.observe(f"{SITE}/x?id={number}", number)
    trials = _learned(learner, Rule(HOST, Slot.PARAMETER, "id")).trials

    learner.observe(f"{SITE}/x?id=more", 500)

    assert _learned(learner, Rule(HOST, Slot.PARAMETER, "id")).trials == trials
    assert learner.predict(f"{SITE}/x?id=other") is None


def test_a_page_that_is_judged_again_counts_once_unless_its_cluster_changes() -> None:
    learner = taught(Slot.PARAMETER.value)
    before = list(learner.rules())
    for item in range(30):
        learner.observe(f"{SITE}/d{item % 3}/{item}?sid=1", item)

    assert list(learner.rules()) == before

    learner.observe(f"{SITE}/d0/0?sid=1", 777)

    assert (
        _learned(learner, Rule(HOST, Slot.PARAMETER, "sid")).hits
        < _learned(learner, Rule(HOST, Slot.PARAMETER, "sid")).trials
    )


def test_a_rule_that_is_pinned_for_one_directory_needs_nothing_general() -> None:
    learner = Learner()
    learner.observe(f"{SITE}/a/x?sid=1", 1)
    learner.observe(f"{SITE}/b/x?sid=1", 2)
    fresh = Learner.from_rules(
        [LearnedRule(Rule(HOST, Slot.PARAMETER, "sid", "/a"), 0, 0, 0, 0, State.PINNED)]
    )
    for url, cluster in ((f"{SITE}/a/x", 1), (f"{SITE}/b/x", 2)):
        fresh.observe(f"{url}?sid=1", cluster)

    assert learner.predict(f"{SITE}/a/x?sid=2") is None
    below = fresh.predict(f"{SITE}/a/x?sid=2")
    assert below is not None
    assert below.probability == 1.0
    assert fresh.predict(f"{SITE}/b/x?sid=2") is None


def test_pinned_and_banned_rules_obey_people() -> None:
    rule = Rule(HOST, Slot.PARAMETER, "sid")
    learner = Learner()
    learner.pin(rule)
    learner.observe(f"{SITE}/x?sid=1", 1)
    pinned = learner.predict(f"{SITE}/x?sid=2")

    assert pinned is not None
    assert (pinned.probability, pinned.rule) == (1.0, rule)

    generation = learner.generation
    learner.ban(rule)

    assert learner.generation > generation
    assert learner.predict(f"{SITE}/x?sid=2") is None

    for item in range(60):
        for sid in "ab":
            learner.observe(f"{SITE}/d{item % 3}/{item}?sid={sid}", item)

    assert learner.predict(f"{SITE}/x?sid=2") is None
    assert _learned(learner, rule).state is State.BANNED


@pytest.mark.parametrize("name", PLANTED_BY_NAME)
def test_rules_survive_their_rows(name: str) -> None:
    slot, url = PLANTED_BY_NAME[name]
    learner = taught(name)
    again = Learner.from_rules(learner.rules())

    assert list(again.rules()) == list(learner.rules())
    assert again.predict(url(1, 1)) is None  # the pages of another crawl are no partners in this one

    for one in (learner, again):
        one.observe(url(500, 0), 500)
    told, told_again = learner.predict(url(500, 1)), again.predict(url(500, 1))

    assert told is not None
    assert told_again is not None
    assert told_again.rule.slot is told.rule.slot is slot
    assert told_again.probability == pytest.approx(told.probability, abs=0.05)


def test_rows_are_plain_data() -> None:
    for learned in taught(Slot.PARAMETER.value).rules():
        kinds = [type(value) for value in (*learned.rule, *learned[1:])]
        assert kinds == [str, Slot, str, str, float, float, int, int, State, str, str]


def test_hostile_urls_teach_nothing_and_cost_nothing() -> None:
    learner = taught(Slot.PARAMETER.value)
    before = list(learner.rules())
    hostile = [
        f"{SITE}/" + "x" * 1_000_000,
        f"{SITE}/?" + "&".join(f"p{number}={number}" for number in range(1_000)),
        f"{SITE}/" + "/" * 1_000,
        "http://[::1/",
        "javascript:alert(1)",
    ]
    for number, url in enumerate(hostile):
        assert learner.observe(url, number) == []
        assert learner.predict(url) is None

    assert list(learner.rules()) == before


@pytest.mark.slow
def test_the_memory_of_pages_is_bounded() -> None:
    learner = Learner(most_pages=100)
    sizes = []
    for number in range(7_200):
        learner.observe(f"{SITE}/d{number % 7}/{number}?sid={number % 2}", number // 2)
        # What is remembered of URLs is full. Of the pages, the older half is forgotten now and then.
        if number >= 800 and number % 400 == 399:
            sizes.append(held_bytes(learner))

    assert max(sizes[-6:]) < 1.1 * max(sizes[:6])


def test_the_memory_of_rules_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_rules, "MOST_CONTEXTS", 200)
    learner = Learner(most_hosts=3)
    seen: set[Rule] = set()
    for number in range(200):
        for variant in range(2):
            name = f"{SITE}/x{number:x}y/{'abc'[number % 3]}"
            learner.observe(f"{name}/z?p{number}={variant}&q{number}=0", number)
        learner.observe(f"http://h{number % 20}.example.com/x", number)
        if number % 5 == 4:
            seen.update(learned.rule for learned in learner.rules())

    kept = [learned.rule for learned in learner.rules()]
    assert sum(rule.host == HOST for rule in seen) > 200 >= sum(rule.host == HOST for rule in kept)
    assert len({rule.host for rule in kept}) <= 3


def test_rules_of_people_are_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_rules, "MOST_CONTEXTS", 100)
    learner = Learner()
    pinned = Rule(HOST, Slot.PARAMETER, "sid")
    learner.pin(pinned)
    for number in range(300):
        learner.observe(f"{SITE}/x{'abcdefgh'[number % 8]}{number:x}y/?p=1", number)

    assert _learned(learner, pinned).state is State.PINNED


def test_hosts_with_many_rules_make_others_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner_module, "MOST_RULES", 100)
    learner = Learner()
    for number in range(300):
        learner.observe(f"http://h{number // 30}.example.com/x{number:x}y/z?p=1", number)
    kept = list(learner.rules())

    assert len(kept) <= 100 + 30
    assert kept[-1].rule.host == "h9.example.com"


def test_the_host_that_was_quiet_the_longest_is_forgotten_first() -> None:
    learner = Learner(most_hosts=2)
    for host in ("one", "two", "one", "three"):
        for number in range(3):
            learner.observe(f"http://{host}.example.com/x?id={number}", number)

    assert {learned.rule.host for learned in learner.rules()} == {"one.example.com", "three.example.com"}


URLS = st.builds(
    "http://{}.example.com/{}{}?{}".format,
    st.sampled_from(["www", "mirror"]),
    st.lists(st.sampled_from(["a", "B", "print", "v1", "v2", "0123456789abc4d5e6f7"]), max_size=4).map(
        "/".join
    ),
    st.sampled_from(["", "/", "/index.html", "/x.html", ";j=1"]),
    st.lists(st.sampled_from(["id=1", "id=2", "sid=3", "sid=4", "%", "=", "b"]), max_size=4).map("&".join),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(URLS, st.integers(0, 5)), max_size=120), URLS)
def test_whatever_is_observed_rules_and_predictions_are_sound(
    observed: list[tuple[str, int]], asked: str
) -> None:
    learner = Learner(most_pages=60)
    for url, cluster in observed:
        known = {other for other, _ in observed}
        assert set(learner.observe(url, cluster)) <= known
    prediction = learner.predict(asked)

    if prediction is not None:
        assert 0.0 <= prediction.lower <= 1.0
        assert 0.0 <= prediction.probability <= 1.0
        assert prediction.partner is None or prediction.partner in {url for url, _ in observed} - {asked}
    for learned in learner.rules():
        assert 0.0 <= learned.hits <= learned.trials + 1e-9
    assert list(Learner.from_rules(learner.rules()).rules()) == list(learner.rules())


def _learned(learner: Learner, rule: Rule) -> LearnedRule:
    return next(learned for learned in learner.rules() if learned.rule == rule)


class TestAliases:
    """http and https, with ``www.`` and without."""

    @pytest.mark.parametrize(
        ("known", "url"),
        [
            ("http://a.example.com/x?y=1", "https://a.example.com/x?y=1"),
            ("http://a.example.com/x", "http://www.a.example.com/x"),
            ("https://www.a.example.com/x", "http://a.example.com/x"),
        ],
    )
    def test_are_likely_copies_before_anything_is_learned(self, known: str, url: str) -> None:
        learner = Learner()
        learner.observe(known, cluster=1)

        found = learner.predict(url)

        assert found is not None
        assert found.probability >= 0.8
        assert found.lower == 0.0  # nothing is dropped
        assert found.partner == known
        assert found.rule.slot is Slot.HOST

    @pytest.mark.parametrize(
        "url",
        [
            "https://a.example.com:8443/x",
            "https://b.example/x",
            "https://www.a.example.com/y",
            "http://mirror.a.example.com/x",
        ],
    )
    def test_others_are_not(self, url: str) -> None:
        learner = Learner()
        learner.observe("http://a.example.com/x", cluster=1)

        assert learner.predict(url) is None

    def test_are_none_where_they_are_found_to_be_others(self) -> None:
        learner = Learner()
        for item in range(20):
            learner.observe(f"http://a.example.com/{item}", cluster=item)
            learner.observe(f"https://a.example.com/{item}", cluster=100 + item)
        learner.observe("http://a.example.com/new", cluster=99)

        found = learner.predict("https://a.example.com/new")

        assert found is None or found.probability < 0.2


def forms(learner: Learner, table: str, number: int, *, are_copies: bool) -> None:
    """Observe the forms of a table, whose pages are all at one path."""
    for row in range(number):
        cluster = hash(table) if are_copies else hash((table, row))
        learner.observe(f"{SITE}/?edit={table}&id={row}", cluster)


def test_what_was_learned_beside_one_parameter_says_nothing_of_another_one() -> None:
    learner = Learner()
    forms(learner, "categories", 40, are_copies=True)
    learner.observe(f"{SITE}/?edit=terms&id=1", 7)

    of_categories = learner.predict(f"{SITE}/?edit=categories&id=new")
    assert of_categories is not None
    assert of_categories.probability > 0.8
    assert learner.predict(f"{SITE}/?edit=terms&id=2") is None

    forms(learner, "terms", 10, are_copies=False)

    of_terms = learner.predict(f"{SITE}/?edit=terms&id=new")
    assert of_terms is None or of_terms.probability < 0.3


def test_what_was_learned_beside_several_parameters_holds_beside_others() -> None:
    learner = Learner()
    for table in ("a", "b", "c"):
        forms(learner, table, 20, are_copies=True)
    learner.observe(f"{SITE}/?edit=new&id=1", 7)

    prediction = learner.predict(f"{SITE}/?edit=new&id=2")
    assert prediction is not None
    assert prediction.probability > 0.8
