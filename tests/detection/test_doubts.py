"""Which duplicates are judged again, and when."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from neardup.address import Address
from neardup.detection import doubts
from neardup.detection.doubts import FIRST_PAGES, GROWTH, Doubt, Doubts
from neardup.detection.rule import Evidence
from neardup.fingerprint.reader import Reading
from neardup.text.headline import none

if TYPE_CHECKING:
    import pytest

HOST, OTHER = "a.example", "b.example"


def doubt(host: str = HOST, *, shingles: int = 10) -> Doubt:
    reading = Reading(
        fingerprint=None,
        sketch=None,
        shingles=np.zeros(shingles, dtype=np.uint64),
        holders=np.zeros(64, dtype=np.int64),
        distinct_words=shingles,
        text_digest=1,
        headline=none(),
    )
    return Doubt(Address(f"http://{host}/"), reading, Evidence.WHOLE)


def due(kept: Doubts) -> list[int]:
    """The rows that are due, all of them."""
    rows = []
    while (found := kept.next_due()) is not None:
        rows.append(found[0])
    return rows


def test_pages_are_due_when_their_host_has_grown() -> None:
    kept = Doubts()
    kept.keep(1, doubt())
    kept.keep(2, doubt(OTHER))
    turns = []
    for pages in range(1, 100):
        kept.host_grew(HOST, pages)
        if rows := due(kept):
            assert rows == [1]
            turns.append(pages)

    assert turns == [12, 18, 27, 41, 62, 93]
    assert turns[0] == FIRST_PAGES
    assert all(later >= GROWTH * before for before, later in pairwise(turns))


def test_a_page_stays_until_it_is_dropped() -> None:
    kept, page = Doubts(), doubt()
    kept.keep(1, page)
    for _ in range(3):
        kept.all_are_due()
        assert kept.next_due() == (1, page)
        assert kept.next_due() is None
    kept.all_are_due()
    kept.drop(1)

    assert kept.next_due() is None
    assert len(kept) == 0
    kept.drop(1)


def test_a_page_judged_anew_takes_the_place_of_what_was_kept_of_it() -> None:
    kept, moved = Doubts(), doubt(OTHER)
    kept.keep(1, doubt())
    kept.keep(1, moved)
    kept.host_grew(HOST, FIRST_PAGES)
    assert kept.next_due() is None
    kept.host_grew(OTHER, FIRST_PAGES)

    assert kept.next_due() == (1, moved)
    assert len(kept) == 1


def test_a_host_that_is_known_from_an_earlier_crawl_is_due_at_once() -> None:
    kept = Doubts()
    kept.keep(1, doubt())
    kept.host_grew(HOST, 1000)
    assert due(kept) == [1]
    kept.host_grew(HOST, 1001)

    assert due(kept) == []


def test_the_memory_is_bounded_and_the_oldest_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubts, "MOST_BYTES", 1 << 20)
    kept = Doubts()
    for row in range(1000):
        kept.keep(row, doubt(f"{row % 7}.example", shingles=1000))
    kept.all_are_due()
    rows = due(kept)

    assert 50 < len(rows) * 8000 <= 1 << 20
    assert rows == list(range(1000 - len(rows), 1000))
    for row in range(1000):
        kept.drop(row)
    assert len(kept) == 0
    kept.keep(1, doubt(shingles=1000))  # what was dropped is paid for no longer
    assert len(kept) == 1


def test_a_page_larger_than_all_the_memory_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubts, "MOST_BYTES", 1 << 20)
    kept = Doubts()
    kept.keep(1, doubt(shingles=1 << 20))

    assert len(kept) == 0
