"""Whether copies have links of their own."""

from __future__ import annotations

from neardup.urls import leads as module
from neardup.urls.leads import ROUNDS, Leads, round_of
from neardup.urls.rules import Rule, Slot

PRINT = Rule("a.example", Slot.PARAMETER, "print", "")


def taught(own: int, of: int) -> Leads:
    """After so many copies, so many of which, evenly, had links of their own."""
    leads = Leads()
    for number in range(of):
        leads.fetched(PRINT, leads_on=(number + 1) * own // of > number * own // of, is_sure=True)
    return leads


def test_nothing_is_known_at_first() -> None:
    assert not Leads().leads_nowhere(PRINT)


def test_enough_copies_without_links_of_their_own() -> None:
    assert not taught(0, 71).leads_nowhere(PRINT)
    assert taught(0, 72).leads_nowhere(PRINT)


def test_a_few_links_are_too_many() -> None:
    assert not taught(2, 100).leads_nowhere(PRINT)
    assert taught(1, 200).leads_nowhere(PRINT)


def told_of(leads: Leads, times: int, *, leads_on: bool, is_sure: bool) -> int:
    """Count so many copies; after how many of them their part no longer leads nowhere, which is told once."""
    before = leads.generation
    told = []
    for _ in range(times):
        leads.fetched(PRINT, leads_on=leads_on, is_sure=is_sure)
        told.append((leads.generation - before, leads.leads_nowhere(PRINT)))

    changed = next(place for place, (_, nowhere) in enumerate(told) if not nowhere)
    assert told == [(0, True)] * changed + [(1, False)] * (times - changed)
    return changed


def test_a_change_of_mind_is_told_once() -> None:
    told_of(taught(0, 100), 10, leads_on=True, is_sure=True)


def test_rounds_are_random_parts() -> None:
    rounds = [round_of(f"http://a.example/{number}?print=1") for number in range(8_000)]

    for number, share in enumerate(ROUNDS):
        assert abs(sum(place <= number for place in rounds) / len(rounds) - share) < 0.02


def test_each_part_of_a_url_counts_for_itself_in_all_its_contexts() -> None:
    leads = taught(0, 100)

    assert leads.leads_nowhere(PRINT._replace(context="/articles"))
    assert not leads.leads_nowhere(PRINT._replace(value="sort"))
    assert not leads.leads_nowhere(PRINT._replace(host="b.example"))


def test_rules_about_the_same_part_count_together() -> None:
    together = PRINT._replace(slot=Slot.TOGETHER, value="parameter:print")
    leads = taught(0, 100)

    assert leads.leads_nowhere(together)
    leads.fetched(together, leads_on=True, is_sure=True)
    assert not leads.leads_nowhere(PRINT)


def test_a_part_with_links_of_its_own_speaks_against_several_parts_together() -> None:
    leads = Leads()
    together = PRINT._replace(slot=Slot.TOGETHER, value="parameter:print parameter:sid")
    for _ in range(100):
        leads.fetched(together, leads_on=False, is_sure=True)
    assert leads.leads_nowhere(together)
    before = leads.generation

    for _ in range(3):
        leads.fetched(PRINT, leads_on=True, is_sure=True)

    assert not leads.leads_nowhere(together)
    assert leads.generation == before + 1


def test_copies_that_are_not_sure_speak_against_a_part() -> None:
    assert told_of(taught(0, 100), 20, leads_on=False, is_sure=False) > 5  # a few are allowed


def test_memory_is_bounded() -> None:
    leads = taught(0, 100)
    for number in range(module.MOST_RULES):
        leads.fetched(PRINT._replace(host=f"{number}.example"), leads_on=False, is_sure=True)

    assert not leads.leads_nowhere(PRINT)
