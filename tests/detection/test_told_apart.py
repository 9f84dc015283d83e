"""Duplicates that each say something of their own are no copies."""

from __future__ import annotations

import pytest

from neardup.detection import told_apart
from neardup.detection.page_numbers import Said
from neardup.detection.told_apart import FEWEST, FEWEST_BY_NUMBERS, FEWEST_UNSURE, ToldApart

FRAME = "all articles have this long frame in common"


def said(text: str) -> Said:
    return Said(f"{FRAME} {text}".split())


def until_told_apart(texts: list[str]) -> int | None:
    """How many duplicates it takes; None: they are copies."""
    watch = ToldApart()
    for number, text in enumerate(texts, 1):
        if watch.add(7, said(text)):
            assert 7 in watch
            return number
    assert 7 not in watch
    return None


def test_words_of_each_tell_them_apart() -> None:
    assert until_told_apart(["of wood", "of wool", "of steel", "of clay", "of glass"]) == FEWEST + 1


def test_of_doubtful_duplicates_it_takes_more() -> None:
    """Versions of a page differ in words, too."""
    watch = ToldApart()
    stuff = [f"of {name}wood" for name in "abcdefghijklmn"]

    told = [watch.add(7, said(text), is_sure=number == 5) for number, text in enumerate(stuff)]

    assert told.index(True) == FEWEST_UNSURE


def test_copies_that_each_have_something_beside_their_texts_are_told_apart() -> None:
    watch = ToldApart()
    for number in range(1, FEWEST_UNSURE + 1):
        assert 7 not in watch
        watch.add_beside(8 if number == 1 else 9)
        watch.add_beside(7)

    assert 7 in watch
    assert 8 not in watch
    assert 9 not in watch


def test_what_is_told_apart_stays_so_in_the_next_run() -> None:
    apart: set[int] = set()
    first, second = ToldApart(), ToldApart()
    first.go_on(apart)
    first.tell_apart(7)

    second.go_on(apart)

    assert 7 in second
    assert 8 not in second


@pytest.mark.parametrize(
    "texts",
    [
        [f"at 10 {minute} {second}" for minute in range(9) for second in range(9)],
        [f"session a{number}f" for number in range(99)],
        ["on monday 3 may", "on friday 5 june", "on sunday 7 july", "on tuesday 1 march", "on 3 april"],
        ["blue red green", "green blue red", "red green blue", "red blue green", "blue green red"],
        ["sold", "sold", "new", "sold", "new", "old", "sold", "new"],
    ],
    ids=["clock", "session", "dates", "order", "few words"],
)
def test_copies_say_the_same(texts: list[str]) -> None:
    assert until_told_apart(texts) is None


def test_different_numbers_are_asked_for_time_and_again() -> None:
    watch = ToldApart()

    due = [number for number in range(1, 35) if watch.add_numbers(7, [str(number), "4"])]
    assert due == [FEWEST_BY_NUMBERS, 2 * FEWEST_BY_NUMBERS, 3 * FEWEST_BY_NUMBERS]
    assert not any(watch.add_numbers(8, numbers) for numbers in (["1", "2"], ["2", "1"], []) * 20)

    watch.tell_apart(7)
    assert not any(watch.add_numbers(7, [str(number)]) for number in range(99))


@pytest.mark.parametrize("bound", ["_MOST_WORDS", "_MOST_CANONICAL"])
def test_what_was_quiet_the_longest_is_forgotten(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_apart, bound, 40)
    watch = ToldApart()
    for stuff in ("wood", "wool", "steel"):
        watch.add(1, said(stuff))
    for canonical_id in range(2, 60):
        watch.add(canonical_id, said(str(canonical_id)))

    assert not watch.add(1, said("clay"))  # the first that is known of it
    assert [watch.add(59, said(stuff)) for stuff in ("wood", "wool", "steel")] == [False, False, True]


def test_so_is_what_has_something_beside_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told_apart, "_MOST_CANONICAL", 40)
    watch = ToldApart()
    for canonical_id in (*[1] * (FEWEST_UNSURE - 1), *range(2, 60), 1):
        watch.add_beside(canonical_id)

    assert 1 not in watch
