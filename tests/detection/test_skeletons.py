"""Pages that say the same but for dates."""

from __future__ import annotations

from functools import partial

from neardup.detection.skeletons import ENOUGH, Skeletons
from neardup.text.headline import of_texts

WEEK = "Town hall, week {}, {}: no events, Monday {}, Tuesday {}"


def week(number: int) -> str:
    return WEEK.format(number, ["January", "March"][number % 2], number + 1, number + 2)


def url(number: int, host: str = "a.example") -> str:
    return f"http://{host}/week?from=2031-{number}"


def add(skeletons: Skeletons, numbers: range, host: str = "a.example") -> list[bool]:
    return [skeletons.add(url(number, host), number, None, partial(week, number)) for number in numbers]


def test_pages_are_alike_when_enough_have_been_seen() -> None:
    skeletons = Skeletons()

    alike = add(skeletons, range(10))

    assert alike == [False] * 2 * ENOUGH + [True] * (10 - 2 * ENOUGH)
    assert skeletons.first_like(9) == skeletons.first_like(ENOUGH) == ENOUGH


def test_other_words_and_other_hosts_make_other_pages() -> None:
    skeletons = Skeletons()
    add(skeletons, range(10))

    assert not skeletons.add(url(10), 10, None, lambda: f"{week(10)} Concert of the brass band")
    assert not any(add(skeletons, range(11, 14), "b.example"))
    assert skeletons.first_like(10) == 10


def test_texts_are_read_only_where_addresses_differ_in_numbers() -> None:
    def unread() -> str:
        raise AssertionError

    skeletons = Skeletons()
    for number, name in enumerate("abcdefgh"):
        assert not skeletons.add(f"http://a.example/{name}/{number}", number, None, unread)


def test_texts_are_read_only_where_headlines_differ_in_numbers() -> None:
    skeletons, read = Skeletons(), list[str]()

    def reads(text: str) -> str:
        read.append(text)
        return text

    for number in range(10):
        product = of_texts(f"Product {'abcdefghij'[number]}")
        skeletons.add(url(number), number, product, partial(reads, "a product"))
        week_of = of_texts(f"Week {number} of {['March', 'May'][number % 2]} 2031")
        skeletons.add(url(number), number, week_of, partial(reads, "a week"))

    assert read == ["a week"] * (10 - ENOUGH)


def test_a_text_that_is_no_page_yet_is_known_by_its_skeleton() -> None:
    skeletons = Skeletons()
    assert skeletons.first_saying(url(50), week(50)) is None

    add(skeletons, range(10))

    assert skeletons.first_saying(url(50), week(50)) == ENOUGH
    assert skeletons.first_saying(url(50), f"{week(50)} Concert of the brass band") is None


def test_numbers_that_are_no_dates_make_other_pages_of_one_skeleton() -> None:
    skeletons = Skeletons()
    alike = [
        skeletons.add(url(number), number, None, partial(str, f"{week(number)}, and {number} mm of rain"))
        for number in range(10)
    ]

    assert alike[2 * ENOUGH :] == [True] * (10 - 2 * ENOUGH)
    assert [skeletons.first_like(number) for number in range(10)] == list(range(10))


def test_numbers_that_are_made_up_make_none() -> None:
    skeletons = Skeletons()
    for number in range(10):
        text = partial(str, f"{week(number)}, made in {number} ms")
        skeletons.add(url(number), number, None, text, {("in", 0)})

    assert skeletons.first_like(9) == ENOUGH
