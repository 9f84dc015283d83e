"""Tests for when copies lead to nothing but further copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.urls import endless_copies as module
from neardup.urls.endless_copies import OFTEN, TIMES, EndlessCopies

if TYPE_CHECKING:
    import pytest

HOST = "site.example"
LIMIT = 20


def read_until_the_end(of: EndlessCopies, pages: int, most: int = 10_000) -> int | None:
    """After how many copies of so many pages, in turn, a host is endless; None: it is not."""
    for number in range(most):
        if of.read(HOST, number % pages, leads_to_copies=True):
            return number + 1
    return None


def test_the_first_copies_of_each_page_do_not_count() -> None:
    assert read_until_the_end(EndlessCopies(LIMIT), pages=10) == 10 * OFTEN + TIMES * LIMIT


def test_sites_of_many_pages_are_given_longer() -> None:
    assert read_until_the_end(EndlessCopies(LIMIT), pages=50) == 50 * (OFTEN + TIMES)


def test_the_end_is_told_once_and_lasts_until_a_page_is_new() -> None:
    of = EndlessCopies(LIMIT)
    assert read_until_the_end(of, pages=10) is not None
    assert read_until_the_end(of, pages=10, most=200) is None
    assert of.is_endless(HOST)
    assert not of.is_endless("other.example")

    of.found_new(HOST)

    assert not of.is_endless(HOST)
    assert read_until_the_end(of, pages=10) == TIMES * LIMIT


def test_copies_that_lead_nowhere_or_elsewhere_do_not_count() -> None:
    of = EndlessCopies(LIMIT)

    assert not any(of.read(HOST, number % 10, leads_to_copies=False) for number in range(1_000))
    assert not of.is_endless(HOST)


def test_a_limit_of_zero_is_none() -> None:
    assert read_until_the_end(EndlessCopies(0), pages=10) is None


def test_a_new_page_of_an_unknown_host() -> None:
    of = EndlessCopies(LIMIT)
    of.found_new(HOST)

    assert not of.is_endless(HOST)


def test_hosts_and_pages_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_HOSTS", 2)
    monkeypatch.setattr(module, "_MOST_PAGES", 30)
    of = EndlessCopies(LIMIT)
    assert read_until_the_end(of, pages=10) is not None
    for host in ("a.example", "b.example"):
        of.read(host, 1, leads_to_copies=True)
    assert not of.is_endless(HOST)  # forgotten

    # All pages are forgotten each time that there are more: no page has enough copies.
    assert read_until_the_end(of, pages=100) is None
