"""Tests for parameters that make copies without end."""

from __future__ import annotations

import pytest

from neardup.urls import endless_copies as module
from neardup.urls.endless_copies import TIMES, EndlessCopies

HOST, NAME = "site.example", "sid"
LIMIT = 24
ENDS_AFTER = TIMES * LIMIT


def read_until_in_question(of: EndlessCopies, *, is_made_up: bool, most: int = 10_000) -> int | None:
    """After how many copies it is to be asked whether values are made up; None: never."""
    for number in range(most):
        if of.read(HOST, NAME, is_made_up=is_made_up):
            return number + 1
    return None


def test_it_is_asked_early_and_again_after_twice_as_many_copies() -> None:
    of = EndlessCopies(LIMIT)
    asked_after = []
    for _ in range(4):
        asked_after.append(read_until_in_question(of, is_made_up=False))
        assert read_until_in_question(of, is_made_up=False) is None  # until it is settled
        of.settle(HOST, NAME, makes_up_values=False)

    assert asked_after == [3, 6, 12, 24]
    assert not of.is_endless(HOST, NAME)


def test_an_early_answer_is_no_end() -> None:
    of = EndlessCopies(LIMIT)
    assert read_until_in_question(of, is_made_up=False) is not None

    of.settle(HOST, NAME, makes_up_values=True)

    assert not of.is_endless(HOST, NAME)
    assert read_until_in_question(of, is_made_up=True) == ENDS_AFTER


@pytest.mark.parametrize("makes_up_values", [True, False])
def test_the_count_is_no_end(makes_up_values: bool) -> None:
    of = EndlessCopies(LIMIT)
    assert read_until_in_question(of, is_made_up=True) == ENDS_AFTER
    assert not of.is_endless(HOST, NAME)

    of.settle(HOST, NAME, makes_up_values=makes_up_values)

    assert of.is_endless(HOST, NAME) is makes_up_values
    assert not of.is_endless(HOST, "oldid")
    assert not of.is_endless("other.example", NAME)
    assert (read_until_in_question(of, is_made_up=True) is None) is makes_up_values


def test_a_new_page_begins_the_count_anew() -> None:
    of = EndlessCopies(LIMIT)
    assert read_until_in_question(of, is_made_up=True, most=ENDS_AFTER - 1) is None
    of.found_new(HOST)
    assert read_until_in_question(of, is_made_up=True) == ENDS_AFTER

    of.found_new(HOST)
    of.settle(HOST, NAME, makes_up_values=True)

    assert not of.is_endless(HOST, NAME)
    assert read_until_in_question(of, is_made_up=True) == ENDS_AFTER
    of.settle(HOST, NAME, makes_up_values=True)
    assert of.is_endless(HOST, NAME)
    of.found_new(HOST)
    assert not of.is_endless(HOST, NAME)
    assert read_until_in_question(of, is_made_up=True) == ENDS_AFTER


def test_a_limit_of_zero_is_none() -> None:
    for is_made_up in (True, False):
        assert read_until_in_question(EndlessCopies(0), is_made_up=is_made_up) is None


def test_a_new_page_of_an_unknown_host() -> None:
    of = EndlessCopies(LIMIT)
    of.found_new(HOST)
    of.settle(HOST, NAME, makes_up_values=True)

    assert not of.is_endless(HOST, NAME)


def test_hosts_and_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_HOSTS", 2)
    monkeypatch.setattr(module, "_MOST_NAMES", 1)
    of = EndlessCopies(LIMIT)
    assert read_until_in_question(of, is_made_up=True) is not None
    of.settle(HOST, NAME, makes_up_values=True)
    assert of.is_endless(HOST, NAME)

    assert not any(of.read(HOST, "other", is_made_up=True) for _ in range(1_000))
    for host in ("a.example", "b.example"):
        of.read(host, NAME, is_made_up=True)

    assert not of.is_endless(HOST, NAME)  # forgotten
