"""Tests for parameters that make copies without end."""

from __future__ import annotations

import pytest

from neardup.urls import endless_copies as module
from neardup.urls.endless_copies import OFTEN, TIMES, EndlessCopies

HOST, NAME = "site.example", "sid"
LIMIT = 20


def read_until_in_question(of: EndlessCopies, pages: int, most: int = 10_000) -> int | None:
    """After how many copies of so many pages, in turn, a parameter is in question; None: it is not."""
    for number in range(most):
        if of.read(HOST, NAME, number % pages):
            return number + 1
    return None


def test_the_first_copies_of_each_page_do_not_count() -> None:
    assert read_until_in_question(EndlessCopies(LIMIT), pages=10) == 10 * OFTEN + TIMES * LIMIT


def test_sites_of_many_pages_are_given_longer() -> None:
    assert read_until_in_question(EndlessCopies(LIMIT), pages=50) == 50 * (OFTEN + TIMES)


@pytest.mark.parametrize("makes_up_values", [True, False])
def test_the_count_is_no_end(makes_up_values: bool) -> None:
    of = EndlessCopies(LIMIT)
    assert read_until_in_question(of, pages=10) is not None
    assert not of.is_endless(HOST, NAME)

    of.settle(HOST, NAME, makes_up_values=makes_up_values)

    assert of.is_endless(HOST, NAME) is makes_up_values
    assert not of.is_endless(HOST, "oldid")
    assert not of.is_endless("other.example", NAME)
    assert read_until_in_question(of, pages=10) is None


def test_a_new_page_begins_the_count_anew() -> None:
    of = EndlessCopies(LIMIT)
    assert read_until_in_question(of, pages=10) is not None

    of.found_new(HOST)
    of.settle(HOST, NAME, makes_up_values=True)

    assert not of.is_endless(HOST, NAME)
    assert read_until_in_question(of, pages=10) == TIMES * LIMIT
    of.settle(HOST, NAME, makes_up_values=True)
    assert of.is_endless(HOST, NAME)
    of.found_new(HOST)
    assert not of.is_endless(HOST, NAME)


def test_a_limit_of_zero_is_none() -> None:
    assert read_until_in_question(EndlessCopies(0), pages=10) is None


def test_a_new_page_of_an_unknown_host() -> None:
    of = EndlessCopies(LIMIT)
    of.found_new(HOST)

    assert not of.is_endless(HOST, NAME)


def test_hosts_names_and_pages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_HOSTS", 2)
    monkeypatch.setattr(module, "_MOST_PAGES", 30)
    monkeypatch.setattr(module, "_MOST_NAMES", 1)
    of = EndlessCopies(LIMIT)
    assert read_until_in_question(of, pages=10) is not None
    of.settle(HOST, NAME, makes_up_values=True)
    assert not any(of.read(HOST, "other", 1) for _ in range(1_000))
    for host in ("a.example", "b.example"):
        of.read(host, NAME, 1)
    assert not of.is_endless(HOST, NAME)  # forgotten

    # All pages are forgotten each time that there are more: no page has enough copies.
    assert read_until_in_question(of, pages=100) is None
