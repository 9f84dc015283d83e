"""Tests for the amounts in a text."""

from __future__ import annotations

import pytest

from neardup.text.amounts import amounts


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("€850 or 850 €, and 850€", {"€850", "850€"}),
        ("Rs. 3,500 and 1 234,50 zł", {"Rs.3,500", "1234,50zł"}),
        ("PKR 3500; 12.5 EUR. 850 Euro", {"PKR3500", "12.5EUR", "850Euro"}),
        ("1.850,- € and 850,-- EUR", {"1.850,-€", "850,--EUR"}),
        ("20 mg a day, 100ml, 5\u00a0kg", {"20mg", "100ml", "5kg"}),
        ("15.6-inch, 128GB, 54 m²", {"15.6-inch", "128GB", "54m²"}),
        ("300 PS (221 kW), 5.2 l/100 km", {"300PS", "221kW", "5.2l", "100km"}),
        ("１２ 円 and 3 坪", {"１２円", "3坪"}),
        ("8.5万円です, 1200元每月, 5000원입니다", {"8.5万円", "1200元", "5000원"}),
        ("100 рублей, 1.500 TL, Rp 500.000", {"100рублей", "1.500TL", "Rp500.000"}),
        ("1980日元です, 65平方メートル, 300บาทต่อคืน", {"1980日元", "65平方メートル", "300บาท"}),
        ("120 ريال, 250 ש״ח, 500 रुपये में", {"120ريال", "250ש״ח", "500रुपये"}),
        ("54,5 м², 2 кг, 99 лв., RM 12", {"54,5м²", "2кг", "99лв", "RM12"}),
    ],
)
def test_prices_sizes_and_doses(text: str, found: set[str]) -> None:
    assert amounts(text) == found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2.5 mg", "25 mg"),
        ("$18.50", "$1850"),
        ("$1.5M", "$15M"),
        ("-5 °C", "5 °C"),
        ("₹12,34,567", "₹12,34,568"),
        ("€ 500 – 900", "€ 500 – 800"),
        ("30x20 cm", "40x20 cm"),
    ],
)
def test_other_amounts_are_others(one: str, other: str) -> None:
    assert len(amounts(one)) == len(amounts(other)) == 1
    assert amounts(one) != amounts(other)


@pytest.mark.parametrize(
    "text",
    [
        "5 May 2026, 12:30, 2026-05-17, 17.05.2026",
        "98,123 visitors, page made in 0.03 s, 17 queries, Fr 13. Mai",
        "sid a8f3, version 2.10.1, chapter 3, 5 most read",
        "3 users online, 4 kgs of, 12 EURO",
        "5 ноября 2026 г., 3 мин назад, 12 月 5 日, 5 ตุลาคม 2569",
        "",
    ],
)
def test_what_differs_at_each_request_is_none(text: str) -> None:
    assert amounts(text) == set()


@pytest.mark.parametrize("piece", ["1", "111 ", "1 ", "1.", "€ ", "Rs. ", "1,111,", "1-", "1x1 ", "- "])
def test_long_texts_of_numbers_take_no_time(piece: str) -> None:
    """With any square, this would take minutes."""
    assert isinstance(amounts(piece * 100_000), set)
