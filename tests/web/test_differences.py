"""What differs between two texts, held to what a reader would say."""

from __future__ import annotations

import random
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.web.differences import MOST_WORDS, Differences, differences, words_of


def side(found: Differences, name: str, *, same: bool | None = None) -> str:
    pieces = [piece for block in found.blocks for piece in getattr(block, name)]
    return "".join(piece.text for piece in pieces if same is None or piece.same is same)


def test_one_word_changed() -> None:
    found = differences(words_of("The quick brown fox, jumps."), words_of("The quick red fox, jumps."))

    assert side(found, "a", same=False).strip() == "brown"
    assert side(found, "b", same=False).strip() == "red"
    assert (found.changed_a, found.changed_b) == (1, 1)


def test_what_is_added_at_the_end_does_not_run_into_the_last_word() -> None:
    found = differences(words_of("The quick fox"), words_of("The quick fox jumps"))

    assert [piece.text for block in found.blocks for piece in block.a] == ["The quick fox "]
    assert side(found, "b", same=False).strip() == "jumps"


def test_case_is_no_difference() -> None:
    assert differences(words_of("A b"), words_of("a B")).changed_a == 0


@given(st.lists(st.sampled_from("abcdefg"), max_size=40), st.lists(st.sampled_from("abcdefg"), max_size=40))
def test_nothing_is_lost_and_what_is_the_same_is_the_same(a: list[str], b: list[str]) -> None:
    found = differences([f"{word} " for word in a], [f"{word} " for word in b])
    skipped = [
        sum(piece.skipped for block in found.blocks for piece in getattr(block, name)) for name in "ab"
    ]

    assert len(side(found, "a").split()) + skipped[0] == len(a)
    assert len(side(found, "b").split()) + skipped[1] == len(b)
    assert side(found, "a", same=True) == side(found, "b", same=True)
    assert len(a) - found.changed_a == len(b) - found.changed_b
    rows = "".join(piece.text for row in found.rows for piece in row.a)
    assert rows == side(found, "a")


def test_finds_as_much_in_common_as_difflib() -> None:
    chance = random.Random(1)
    a = [f"w{chance.randrange(300)} " for _ in range(700)]
    b = [word for word in a if chance.random() > 0.1]
    found = differences(a, b)
    best = sum(block.size for block in SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks())

    assert len(a) - found.changed_a >= 0.98 * best


def test_long_texts_are_cut() -> None:
    words = [f"w{number % 7} " for number in range(2 * MOST_WORDS)]
    found = differences(words, words[::-1])

    assert found.is_cut
    assert found.words_a == MOST_WORDS


def test_template_is_told_apart() -> None:
    words = words_of("Home About the only text")
    found = differences(words, words, ([True, True, False, False, False], [True, True, False, False, False]))

    assert [(piece.text, piece.template) for piece in found.blocks[0].a] == [
        ("Home About ", True),
        ("the only text ", False),
    ]


@pytest.mark.parametrize(("a", "b"), [("", ""), ("a", ""), ("", "b c")])
def test_empty_texts(a: str, b: str) -> None:
    found = differences(words_of(a), words_of(b))

    assert (found.changed_a, found.changed_b) == (len(a.split()), len(b.split()))
