"""Endless spaces of near-alike pages end, and listings that lead to products do not count as such."""

from __future__ import annotations

import itertools
import random
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING

import pytest

from neardup.detection import endless, fruitful
from neardup.detection.endless import (
    IN_DOUBT,
    MOST_QUESTIONS,
    MOST_WITHOUT_NEW,
    OFTEN,
    WORTH,
    EndlessWatch,
    Led,
)
from neardup.urls.versions import places_in_version

if TYPE_CHECKING:
    from collections.abc import Callable

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def calendar(month: int) -> str:
    return f"Events in {MONTHS[month % 12]} {2026 + month // 12}: " + " ".join(
        str(day) for day in range(1, 29)
    )


def requests_until_exhausted(watch: EndlessWatch, pages: list[str], *, most: int = 100_000) -> int | None:
    """Requests of cluster 1 until it is exhausted, to duplicates of page 2 with these texts in turn and new
    links; None: never.
    """
    for number in range(most):
        if watch.led(1, watch.compare(1, 2, pages[number % len(pages)], new_links=True)):
            return number + 1
    return None


def days_until_exhausted(
    text: Callable[[date], str], url: Callable[[date], str], *, new_links: bool = True
) -> int:
    """Days that are asked for, one after the other, before the one that exhausts their cluster."""
    watch = EndlessWatch(20)
    for number in range(2000):
        day = date(2026, 1, 1) + timedelta(days=number)
        if watch.led(1, watch.compare(1, 2, text(day), new_links=new_links, url=url(day))):
            break
    return number


def test_a_calendar_ends_soon_after_all_its_months_are_known() -> None:
    pages = [calendar(month) for month in range(2000)]

    assert requests_until_exhausted(EndlessWatch(200), pages) in range(200, 230)


def test_days_without_links_count_too_if_they_have_no_numbers_of_their_own() -> None:
    watch, requests = EndlessWatch(200), 0
    for month in range(200):
        days = [
            f"{day} {MONTHS[month % 12]} {2026 + month // 12}: nothing on this day" for day in range(1, 29)
        ]
        led = [watch.compare(1, 2, calendar(month), new_links=True)]
        led += [watch.compare(1, 3, day, new_links=False) for day in days]
        requests += len(led)
        if True in [watch.led(1, one) for one in led]:
            break

    assert requests < 1000


def test_small_numbers_tell_pages_without_links_apart() -> None:
    drawn = random.Random(5)
    pages = [" ".join(["drawn", *(str(drawn.randrange(40)) for _ in range(6))]) for _ in range(2000)]
    watch = EndlessWatch(20)

    assert not any(watch.led(1, watch.compare(1, 2, page, new_links=False)) for page in pages)


@pytest.mark.parametrize(
    "written", ["{0.day} {1} {0.year}", "{0.day:02} {0.month:02} {0.year}", "day {0.day}"]
)
def test_dates_and_numbers_of_the_address_tell_nothing(written: str) -> None:
    number = days_until_exhausted(
        lambda day: f"On {written.format(day, MONTHS[day.month - 1])} there is nothing at all",
        lambda day: f"http://a.example/{day:%Y/%m/%d}",
        new_links=False,
    )

    assert number < 1000


def test_the_same_hours_tell_nothing_beside_another_address() -> None:
    hours = " ".join(f"{hour} 30" for hour in range(8, 20))
    number = days_until_exhausted(
        lambda _: f"Open at {hours} as ever",
        lambda day: f"http://a.example/day?month={day.month}&day={day.day}",
    )

    assert number < 40


def test_months_and_days_beside_a_number_are_no_words() -> None:
    number = days_until_exhausted(
        lambda day: f"On {day:%A}, {MONTHS[day.month - 1]} {day.day} there is nothing at all",
        lambda day: f"http://a.example/{day.toordinal()}",
    )

    assert number < 40


@pytest.mark.parametrize(("said", "is_one"), [("on 3 May", True), ("of 7 mm", False)])
def test_pages_that_differ_in_dates_alone_are_one_page(said: str, is_one: bool) -> None:
    watch = EndlessWatch(20)
    for day in range(10):
        text = f"nothing to tell {said.replace('3', str(day)).replace('7', str(day))} at all"
        alike = watch.is_like_others(f"http://a.example/{day}", 100 + day, None, partial(str, text))
        assert alike is (day >= 4)

    assert watch.says_a_date(109) is is_one
    assert (watch.cluster_of(109) == watch.cluster_of(104)) is is_one
    pages = [*range(103, 110)] * 2
    told = [watch.compare(1, page_id, "nothing to tell", new_links=True) for page_id in pages]
    assert told.count(Led.NOTHING) == (6 if is_one else 0)


def draws(clock: random.Random | None = None) -> list[str]:
    """Pages that differ in six numbers, and tell the time if there is a clock."""
    drawn = random.Random(9)
    pages = [" ".join(str(drawn.randrange(15)) for _ in range(6)) for _ in range(2000)]
    return [f"drawn {page} again{'' if clock is None else told(clock)}" for page in pages]


def told(clock: random.Random) -> str:
    return f" it is {clock.randrange(24)}:{clock.randrange(60)}:{clock.randrange(60)} now"


@pytest.mark.parametrize("clocks", [(None, None), (random.Random(1), random.Random(2))])
def test_numbers_that_last_are_as_good_as_words(
    clocks: tuple[random.Random | None, random.Random | None],
) -> None:
    watch, asked_for, read = EndlessWatch(20), 0, 0
    for page, again in zip(*map(draws, clocks), strict=True):
        read += 1
        if watch.led(1, watch.compare(1, 2, page, new_links=True)):
            if not watch.in_doubt(1):
                break
            watch.trust(1, asked(watch, in_doubt=True))  # the words of the first page
        if (numbers := watch.numbers_to_ask(1)) is not None:
            asked_for += 1
            if watch.last(1, numbers, again, ""):
                watch.trust_numbers(1)

    most = MOST_WITHOUT_NEW * 20  # no page was new
    assert read in range(most, most + OFTEN)
    assert asked_for < 20


def test_numbers_that_do_not_last_say_nothing() -> None:
    watch, clock, read = EndlessWatch(20), random.Random(1), 0
    while not watch.led(1, watch.compare(1, 2, f"nothing today{told(clock)}", new_links=False)):
        read += 1
        if (numbers := watch.numbers_to_ask(1)) is not None:
            watch.last(1, numbers, f"nothing today{told(clock)}", "")

    assert read < 100


def test_where_nobody_answers_numbers_are_not_doubted() -> None:
    watch = EndlessWatch(20)

    for page in draws():
        assert not watch.led(1, watch.compare(1, 2, page, new_links=False))
        if (numbers := watch.numbers_to_ask(1)) is not None:
            assert not watch.last(1, numbers, "are you human", "")


class TestNewPages:
    """Pages that are no duplicates, but say nothing that their cluster has not said."""

    def test_they_count_and_join_the_cluster(self) -> None:
        watch = EndlessWatch(20)
        watch.compare(1, 2, calendar(0), new_links=True)
        for month in range(12):
            watch.compare(1, 2, calendar(month), new_links=True)

        assert watch.compare(1, 77, calendar(40), is_new=True, new_links=True) is Led.NOTHING
        assert watch.compare(1, 78, f"{calendar(41)} and a concert", is_new=True, new_links=True) is Led.NEW
        assert [watch.cluster_of(page) for page in (1, 77, 78)] == [1, 1, 78]
        assert watch.is_of(1, 77)

    def test_numbers_make_them_new(self) -> None:
        watch = EndlessWatch(20)
        first, second, *_ = draws()
        watch.compare(1, 2, first, new_links=True)

        assert watch.compare(1, 3, second, is_new=True, new_links=True) is Led.NEW_NUMBERS
        assert watch.compare(1, 4, second, is_new=True, new_links=True) is Led.NOTHING


class TestOtherClusters:
    """Pages that an exhausted cluster has led to tell other clusters of the same space."""

    def exhausted(self) -> EndlessWatch:
        watch = EndlessWatch(100)
        requests_until_exhausted(watch, [calendar(month) for month in range(2000)])
        assert watch.is_exhausted(1)
        return watch

    def test_these_end_sooner(self) -> None:
        watch, read = self.exhausted(), 0
        for month in range(2000):
            read += 1
            if watch.led(5, watch.compare(5, 2, calendar(month), new_links=True)):
                break

        assert watch.is_exhausted(5)
        assert read < 20

    @pytest.mark.parametrize("of", [2, 3])
    def test_not_if_they_lead_to_something_else(self, of: int) -> None:
        """To words that the first one has not led to, or to duplicates of another page."""
        watch = self.exhausted()
        told = " and a concert" if of == 2 else ""
        for month in range(12):
            led = watch.compare(5, of, f"{calendar(month)}{told} on the {MONTHS[month]}", new_links=True)
            watch.led(5, led)

        assert not watch.is_exhausted(5)

    def test_an_exhausted_cluster_is_no_evidence_about_itself(self) -> None:
        watch = self.exhausted()

        led = watch.compare(1, 9, f"{calendar(3)} and a concert of the band", is_new=True, new_links=True)
        watch.led(1, led)
        assert led is Led.NEW
        assert not watch.is_exhausted(1)


def test_random_ids_with_digits_say_nothing() -> None:
    pages = [f"Session {number:032x} of the same text as ever" for number in range(2000)]

    assert requests_until_exhausted(EndlessWatch(200), pages) == 200 + OFTEN


@pytest.mark.parametrize("kind", ["name", "number"])
def test_products_with_names_or_numbers_never_exhaust_their_listings(kind: str) -> None:
    names = [f"{colour} {thing}" for colour in MONTHS for thing in ("chair", "table", "lamp", "shelf", "bed")]
    watch = EndlessWatch(20)

    for number, name in enumerate(names):
        told = name if kind == "name" else str(number)
        text = f"the product {told} is on sale today"
        if watch.led(1, watch.compare(1, 2, text, new_links=False)):
            (doubted,) = watch.in_doubt(1)  # does the page say so again?
            assert watch.has_phrases(text, doubted)
            watch.trust(1, asked(watch, in_doubt=True))

    assert not watch.is_exhausted(1)


def test_words_are_doubted_in_the_end() -> None:
    names = itertools.permutations(MONTHS, 3)
    pages = [f"users online: {' '.join(name)}, and the same text as ever" for name in names]
    watch = EndlessWatch(20)
    read = pages[: requests_until_exhausted(watch, pages)]

    assert len(read) == IN_DOUBT * 20
    (doubted,) = watch.in_doubt(1)
    assert watch.has_phrases(read[-1], doubted)
    assert not watch.has_phrases(pages[-1], doubted)
    watch.distrust(1, asked(watch, in_doubt=True))
    assert requests_until_exhausted(watch, pages[len(read) :]) == 20 / 2
    assert not watch.in_doubt(1)


def test_only_words_of_the_kinds_that_were_doubted_are_random() -> None:
    names = ["".join(letters) for letters in itertools.permutations("abcdefgh", 4)]
    watch = EndlessWatch(20)
    shapes = "ad", "product"

    for number, name in enumerate(names):
        told, shape = f"look at {name} here", shapes[number % 2]
        if watch.led(1, watch.compare(1, 2, told, new_links=True, shape=shape), shape=shape):
            assert [own.shape for own in watch.in_doubt(1)] == [shape, shapes[1 - number % 2]]
            break
    watch.distrust(1, asked(watch, in_doubt=True))
    assert watch.compare(1, 2, "look at something else", new_links=True, shape="ad") is Led.NOTHING
    assert watch.compare(1, 2, "look at an article", new_links=True, shape="article") is Led.OWN_WORDS


def test_versions_that_repeat_each_other_are_not_endless() -> None:
    watch = EndlessWatch(20)

    for _version in range(OFTEN):
        for page in range(300):
            watch.led(1, watch.compare(1, page, f"text of page {page}", new_links=True))

    assert not watch.is_exhausted(1)


def test_removed_pages_count_once_for_all_versions() -> None:
    watch = EndlessWatch(50)

    for number, version in itertools.product(range(30), ("", "v2/", "v3/", "v4/")):
        places = places_in_version(f"http://a.example/{version}entry/{number}")
        led = watch.compare(1, 2, "Removed", new_links=True, places=places)
        assert not watch.led(1, led)


def test_a_circle_of_links_is_endless() -> None:
    """Each page stands where the one before does, but for the first directory."""
    watch = EndlessWatch(50)

    def ends(depth: int) -> bool:
        circle = "/".join(("ab" * depth)[-depth:])
        places = places_in_version(f"http://a.example/{circle}/page")
        return watch.led(1, watch.compare(1, 2, "A page", new_links=True, places=places))

    pages = next(depth for depth in range(1, 1_000) if ends(depth))
    assert 50 < pages <= OFTEN * 50 + OFTEN


@pytest.mark.parametrize("in_what", ["text", "image", "number that is not shown"])
def test_versions_of_pages_that_are_alike_are_not_endless(in_what: str) -> None:
    """All are duplicates of one page. Each has a number, or an image, that no other one has."""
    watch, text = EndlessWatch(20), "the same text on each page of this site, with no name at all"

    def led_to(page: int) -> Led:
        said = f"{text}; value {page}" if in_what == "text" else text
        shown = [f"image{page}"] if in_what == "image" else []
        numbers = [f"{page}"] if in_what == "number that is not shown" else []
        return watch.compare(1, 2, said, new_links=True, shown=shown, numbers=numbers)

    for version in range(OFTEN):
        for page in range(300):
            led = led_to(page)
            watch.led(1, led if version else Led.LITTLE)

    assert not watch.is_exhausted(1)
    assert led_to(page) is Led.NOTHING


def test_what_is_new_begins_anew_and_what_leads_no_further_does_not_count() -> None:
    watch = EndlessWatch(3)

    told = [
        watch.led(7, led)
        for led in (Led.NOTHING, Led.NOTHING, Led.NEW, *[Led.LITTLE] * 9, Led.NOTHING, Led.NOTHING)
    ]

    assert not any(told)
    assert watch.led(7, Led.NOTHING)
    assert watch.is_exhausted(7)
    assert not watch.is_exhausted(8)
    assert not watch.led(7, Led.NOTHING)  # told once
    watch.led(7, Led.NEW)
    assert not watch.is_exhausted(7)


class TestFruitfulShapes:
    """Days exhaust a cluster whose months lead to events."""

    @staticmethod
    def exhausted_by_days(limit: int = 10) -> EndlessWatch:
        watch = EndlessWatch(limit)
        for _ in range(2):
            watch.led(1, Led.NEW, shape="/event/0", out_of="/month/0")
        while not watch.led(1, Led.NOTHING, shape="/day/0", out_of="/month/0"):
            pass
        assert watch.is_exhausted(1)
        return watch

    def test_pages_that_were_new_and_what_led_to_them(self) -> None:
        watch = self.exhausted_by_days()

        assert watch.is_fruitful(1, "/month/0")
        assert watch.is_fruitful(1, "/event/0")
        assert not watch.is_fruitful(1, "/day/0")
        assert not watch.is_fruitful(1, "/other")
        assert not watch.is_fruitful(1, "")
        assert watch.is_fruitful(2, "/month/0")  # which cluster a month is of may be a matter of one word

    def test_until_they_alone_count_a_quarter_of_the_limit(self) -> None:
        watch = self.exhausted_by_days(limit=20)

        followed = 0
        while watch.is_fruitful(1, "/month/0"):
            watch.led(1, Led.NOTHING, shape="/month/0", out_of="/month/0")
            followed += 1

        assert followed == 5
        assert watch.is_fruitful(1, "/event/0")

    def test_they_end_with_the_cluster_where_there_are_no_others(self) -> None:
        watch = EndlessWatch(10)
        for _ in range(2):
            watch.led(1, Led.NEW, shape="/event/0", out_of="/month/0")

        while not watch.led(1, Led.NOTHING, shape="/month/0", out_of="/month/0"):
            pass

        assert not watch.is_fruitful(1, "/month/0")

    def test_a_new_page_begins_anew(self) -> None:
        watch = self.exhausted_by_days()
        for _ in range(watch.limit):
            watch.led(1, Led.NOTHING, shape="/month/0", out_of="/month/0")

        watch.led(1, Led.NEW, shape="/event/0", out_of="/month/0")

        assert not watch.is_exhausted(1)
        assert watch.is_fruitful(1, "/month/0")

    def test_not_for_ever(self) -> None:
        watch = self.exhausted_by_days(limit=2)

        for _ in range(MOST_WITHOUT_NEW * watch.limit):
            watch.led(1, Led.OWN_WORDS, shape="/month/0", out_of="/month/0")

        assert not watch.is_fruitful(1, "/month/0")

    def test_numbers_that_may_be_made_up_are_no_fruit(self) -> None:
        watch = EndlessWatch(10)

        for _ in range(2):
            watch.led(1, Led.NEW_NUMBERS, shape="/week/0", out_of="/year/0")

        assert watch.news(1) == 2
        assert not watch.is_fruitful(1, "/week/0")
        assert not watch.is_fruitful(1, "/year/0")

    def test_the_first_page_of_a_kind_is_none_either(self) -> None:
        watch = EndlessWatch(10)

        watch.led(1, Led.NEW, shape="/week/0", out_of="/year/0")
        watch.led(1, Led.NEW, shape="/day/0", out_of="/week/0")

        assert not any(watch.is_fruitful(1, shape) for shape in ("/year/0", "/week/0", "/day/0"))

    def test_not_all_are_remembered(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fruitful, "_MOST_SHAPES", 40)
        watch = EndlessWatch(10)

        for number in range(100):
            for _ in range(2):
                watch.led(number, Led.NEW, shape=f"/{number}", out_of=f"/of/{number}")

        remembered = [number for number in range(100) if watch.is_fruitful(1, f"/{number}")]
        assert remembered == list(range(80, 100))


def test_a_page_of_its_own_words_makes_up_for_some() -> None:
    watch = EndlessWatch(10)
    for _ in range(9):
        watch.led(1, Led.NOTHING)
    watch.led(1, Led.OWN_WORDS)

    more = 0
    while not watch.led(1, Led.NOTHING):
        more += 1

    assert more == WORTH


def test_a_random_word_a_page_ends_in_the_end() -> None:
    watch = EndlessWatch(5)

    told = [watch.led(1, Led.OWN_WORDS) for _ in range(MOST_WITHOUT_NEW * 5)]

    assert told == [False] * (MOST_WITHOUT_NEW * 5 - 1) + [True]


def exhausted_after(watch: EndlessWatch, led: Led = Led.NOTHING) -> int:
    """Further requests of cluster 1 until it is exhausted."""
    requests = 1
    while not watch.led(1, led):
        requests += 1
    return requests


def asked(watch: EndlessWatch, *, in_doubt: bool = False) -> int:
    """The number of the question into which the end of the cluster is put."""
    question = watch.question(1, in_doubt=in_doubt)
    assert question is not None
    return question


class TestQuestions:
    """An end may be put into question, while something else is asked."""

    def test_links_are_followed_while_the_answer_is_awaited(self) -> None:
        watch = EndlessWatch(3)
        exhausted_after(watch)

        question = asked(watch)
        assert not watch.is_exhausted(1)
        assert not any(watch.led(1, Led.NOTHING) for _ in range(100))
        assert watch.end(1, question)
        assert watch.is_exhausted(1)

    @pytest.mark.parametrize("led", [Led.NOTHING, Led.OWN_WORDS])
    def test_so_much_further(self, led: Led) -> None:
        watch = EndlessWatch(3)
        exhausted_after(watch, led)
        watch.go_on(1, asked(watch), 40)

        assert exhausted_after(watch, led) == 40
        assert watch.is_exhausted(1)

    def test_not_for_ever(self) -> None:
        watch = EndlessWatch(20)
        requests = exhausted_after(watch)
        questions = 0
        while (question := watch.question(1)) is not None:
            questions += 1
            watch.go_on(1, question, 10)
            requests += exhausted_after(watch)

        assert questions == MOST_QUESTIONS
        assert requests <= 3 * 20

    def test_counted_anew_but_not_for_ever(self) -> None:
        watch, requests = EndlessWatch(3), 0
        while True:
            requests += exhausted_after(watch)
            if not watch.count_anew(1):
                break
            assert not watch.is_exhausted(1)

        assert requests == MOST_WITHOUT_NEW * 3
        assert watch.is_exhausted(1)

    def test_a_new_page_answers_by_itself(self) -> None:
        watch = EndlessWatch(3)
        exhausted_after(watch)
        question = asked(watch)
        watch.led(1, Led.NEW)

        assert not watch.end(1, question)
        watch.go_on(1, question, 100)
        assert exhausted_after(watch) == 3
        assert all(watch.question(1) for _ in range(MOST_QUESTIONS))

    def test_a_late_answer_ends_no_later_question(self) -> None:
        watch = EndlessWatch(3)
        exhausted_after(watch)
        first = asked(watch)
        watch.led(1, Led.NEW)
        exhausted_after(watch)
        second = asked(watch)

        assert not watch.end(1, first)
        assert not watch.is_exhausted(1)
        assert watch.end(1, second)

    def test_what_more_of_the_same_is(self) -> None:
        watch = EndlessWatch(20)
        for month in range(24):
            watch.compare(1, 2, calendar(month), new_links=True)

        assert watch.is_of(1, 2)
        assert watch.is_of(1, 1)
        assert not watch.is_of(1, 3)
        assert watch.says_nothing(1, calendar(500))
        assert not watch.says_nothing(1, f"{calendar(500)} and a concert")


def test_no_limit() -> None:
    assert requests_until_exhausted(EndlessWatch(0), ["the same"], most=20_000) is None


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endless, "_MOST_REMEMBERED", 100)
    monkeypatch.setattr(endless, "_MOST_CLUSTERS", 10)
    watch = EndlessWatch(3)

    for number in range(50):
        watch.compare(
            number,
            number,
            f"some words of page {'abcdefghij'[number % 10]} and {number} more",
            new_links=True,
        )

    assert len(watch._clusters) == 10
    assert sum(cluster.size for cluster in watch._clusters.values()) == watch._remembered <= 100
