"""Tests for the amounts in a text."""

from __future__ import annotations

import pytest

from neardup.text.amounts import amounts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("€850 or 850 €, and 850€", {"850 €"}),
        ("Rs. 3,500 and 1 234,50 zł", {"3500 Rs.", "123450 zł"}),
        ("PKR 3500; 12.5 EUR.", {"3500 PKR", "125 EUR"}),
        ("20 mg a day, 100ml, 5\u00a0kg", {"20 mg", "100 ml", "5 kg"}),
        ("15.6-inch, 128GB, 54 m²", {"156 inch", "128 GB", "54 m²"}),
        ("300 PS (221 kW), 5.2 l/100 km", {"300 PS", "221 kW", "52 l", "100 km"}),
        ("１２ 円 and 3 坪", {"１２ 円", "3 坪"}),
    ],
)
def test_prices_sizes_and_doses(text: str, found: set[str]) -> None:
    assert amounts(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "5 May 2026, 12:30, 2026-05-17, 17.05.2026",
        "98,123 visitors, page made in 0.03 s, 17 queries",
        "sid a8f3, version 2.10.1, chapter 3, 5 most read",
        "3 users online, 4 kgs of, 12 EURO",
        "",
    ],
)
def test_what_differs_at_each_request_is_none(text: str) -> None:
    assert amounts(text) == set()


@pytest.mark.parametrize("piece", ["1", "111 ", "1 ", "1.", "€ ", "Rs. ", "1,111,"])
def test_long_texts_of_numbers_take_no_time(piece: str) -> None:
    """With any square, this would take minutes."""
    assert isinstance(amounts(piece * 300_000), set)
