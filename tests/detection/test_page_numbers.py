"""Numbers of a page that are others when the page is asked for once more."""

from __future__ import annotations

from neardup.detection.page_numbers import Said, changed, numbers_beside
from neardup.text.words import words


def said(text: str, again: str, other: str) -> list[str]:
    """The numbers that another page says, as far as they are neither dates nor made up."""
    made_up = changed(Said(words(text)).by_place(), Said(words(again)).by_place())
    assert made_up is not None
    found = Said(words(other))
    return [found.words[index] for index in found.numbers_but(found.dated(made_up))]


def test_a_clock_says_nothing_wherever_it_stands() -> None:
    before, after = "It is 10:05:33. Drawn 3 5 12 today", "It is 10:05:34. Drawn 3 5 12 today"

    assert said(before, after, "It is 23:59:01. Drawn 7 8 9 today") == ["7", "8", "9"]
    assert said(before, after, "Now and here it is 23:59:01 7 8 9 today") == ["7", "8", "9"]


def test_hours_and_minutes_belong_to_the_seconds_but_not_what_stands_before() -> None:
    before, after = "drawn 3 5 12 10 05 33 now", "drawn 3 5 12 10 05 34 now"

    assert said(before, after, "drawn 7 8 9 23 59 01 now") == ["7", "8", "9"]


def test_the_end_of_a_page_is_no_place() -> None:
    assert said("made in 5", "made in 6", "drawn 7 8 9") == ["7", "8", "9"]


def test_dates_say_nothing() -> None:
    assert said("drawn 1", "drawn 1", "on 5 March 2026 drawn 7") == ["7"]


def test_a_short_month_is_one_beside_a_year() -> None:
    assert said("drawn 1", "drawn 1", "Week 45, Nov 2026: drawn 7 on Mar 5, 2026 and 6. févr. 2027") == ["7"]
    # Most short names are other words as well: "mar" is the Spanish sea.
    assert said("drawn 1", "drawn 1", "nov 45 drawn 7 mar 8") == ["45", "7", "8"]


def test_the_days_of_a_month_say_nothing_with_or_without_weeks() -> None:
    days = " ".join(f"{45 + day // 7} {day}" if day % 7 == 1 else str(day) for day in range(1, 31))

    assert said("drawn 1", "drawn 1", f"days {days} drawn 7") == ["7"]
    assert said("drawn 1", "drawn 1", "draws 3 4 12 30 31 2 9") == ["3", "4", "12", "30", "31", "2", "9"]


def test_without_numbers_in_the_same_places_nothing_is_known() -> None:
    assert changed(Said(["drawn", "7"]).by_place(), Said(["are", "you", "human"]).by_place()) is None


def test_numbers_of_an_address_are_those_of_short_parts() -> None:
    numbers = ["5", "2026", "3", "7"]

    assert numbers_beside(numbers, "http://a.example/draws/2026/05mar") == ("3", "7")
    assert numbers_beside(numbers, "http://a.example/of/5a3f7c2026e3b7") == ("5", "2026", "3", "7")
