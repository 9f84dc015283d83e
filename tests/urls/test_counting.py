"""URLs that count, and what comes further on."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from neardup.urls.counting import FEWEST, further_on

SITE = "http://site7.example:8080"


def urls(pattern: str, numbers: list[int] | list[str] | range) -> list[str]:
    return [SITE + pattern.format(number) for number in numbers]


@pytest.mark.parametrize(
    ("pattern", "numbers", "expected"),
    [
        ("/photo/{}", range(101, 110), "/photo/209"),
        ("/album/7/photo/{}.html", range(101, 110), "/album/7/photo/209.html"),
        ("/entry?book=3&id={}", range(300, 250, -1), "/entry?book=3&id=151"),
        ("/list?start={}", range(0, 200, 10), "/list?start=1190"),
        ("/photo/{:05d}", range(101, 110), "/photo/00209"),
        ("/both/{}", [500, 501, 499, 502, 498, 503], "/both/603"),
        ("/both/{}", [500, 501, 499, 502, 498], "/both/398"),
        ("/news/2026/{}", range(500, 509), "/news/2026/608"),
        ("/photo/{}", range(201109, 201120), "/photo/201219"),
        ("/list/p{}/", range(101, 110), "/list/p209/"),
        ("/gaps/{}", [60, 63, 64, 67, 70, 73], "/gaps/373"),
        ("/strip/2026-11-{:02d}", range(28, 20, -1), "/strip/2026-08-13"),
        ("/strip/2026/11/{:02d}/", range(2, 29, 7), "/strip/2028/10/23/"),
        ("/calendar?day={}", range(20261101, 20261130), "/calendar?day=20270309"),
        ("/calendar?month=2026-{:02d}", range(1, 13), "/calendar?month=2035-04"),
        ("/calendar?month={}", [202610, 202611, 202612, 202701, 202702], "/calendar?month=203506"),
        ("/calendar?year=2026&month={:02d}", range(1, 13), "/calendar?year=2035&month=04"),
        ("/draw/2026/11/{}", range(8, 20), "/draw/2027/2/27"),
        ("/draw/{}.11.2026", range(8, 20), "/draw/27.2.2027"),
        ("/draw/{:02d}.11.2026", range(8, 20), "/draw/27.02.2027"),
        ("/draw/{:02d}-2-2026.html", range(9, 20), "/draw/30-5-2026.html"),
        ("/draw?date=11/{:02d}/2026", range(8, 20), "/draw?date=02/27/2027"),
        ("/draw?date=11%20{}%202026", range(19, 8, -1), "/draw?date=8%201%202026"),
        ("/draw?d={}&m=1&y=2026", range(28, 20, -1), "/draw?d=13&m=10&y=2025"),
        ("/{:02d}-Nov-2026", range(8, 20), "/27-Feb-2027"),
        ("/2026/{}/", ["JAN", "FEB", "MAR", "APR", "MAY"], "/2034/SEP/"),
        ("/{}_2026", ["may", "june", "july", "august"], "/december_2034"),
    ],
)
def test_what_counts(pattern: str, numbers: list[int], expected: str) -> None:
    assert further_on(urls(pattern, numbers), [100])[0].url == SITE + expected


@pytest.mark.parametrize(
    ("pattern", "numbers"),
    [
        ("/session/{}", [739, 214, 902, 388, 651, 127, 503]),
        ("/photo/{}", range(101, 100 + FEWEST)),
        ("/calendar/{}", [datetime.now(UTC).year + number for number in range(20)]),
        ("/calendar?month=2026-11-{:02d}", [9, 17, 3, 21, 8, 11, 2]),
        ("/calendar?month=2026-11-{}", range(31, 40)),
        ("/draw/{}.02.2026", [27, 28, 29, 30, 31]),
        ("/2026/{}", ["march", "market", "marble", "mango", "may"]),
        ("/calendar?year=2026&week={}", range(1, 53)),
        ("/calendar?from={}", range(1_793_000_000, 1_793_000_000 + 86_400 * 9, 86_400)),
        ("/{}x", range(101, 110)),
        ("/{}", ["3fa17", "9c202", "7be18", "410d9", "ac119", "5f230"]),
    ],
)
def test_what_does_not(pattern: str, numbers: list[int]) -> None:
    assert further_on(urls(pattern, numbers), [100]) == []


def test_other_pages_do_not_disturb() -> None:
    mixed = [
        url
        for pair in zip(urls("/a/{}", range(70, 79)), urls("/b/{}", range(9)), strict=True)
        for url in pair
    ]

    assert further_on([*mixed, f"{SITE}/a/79"], [10])[0].url == f"{SITE}/a/89"


def test_a_number_below_zero_is_no_url() -> None:
    found = further_on(urls("/entry/{}", range(300, 250, -1)), [10, 100, 1_000, 10_000])

    assert [there.steps for there in found] == [10, 100, 1_000]
    assert found[-1].url is None


def test_days_before_the_year_1_are_no_end() -> None:
    """The days of a calendar may be met in large steps."""
    days = [date(2026, 11, 29) - timedelta(days=200 * at) for at in range(8)]
    found = further_on([f"http://a.example/day?date={day}" for day in days], [1, 100, 6400])

    assert [there.steps for there in found] == [1, 100]
