"""Whether one page of a cluster has said all that another one says."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from neardup.detection import wordings
from neardup.detection.wordings import Wordings, wording

if TYPE_CHECKING:
    import pytest

TEXTS = st.lists(st.sampled_from("abcde"), max_size=8)


@given(st.lists(TEXTS, max_size=5), TEXTS)
def test_one_page_must_have_said_each_word_as_often(pages: list[list[str]], text: list[str]) -> None:
    said = Wordings()
    for page in pages:
        said.add(1, wording(page))

    assert said.have(1, wording(text)) == any(Counter(text) <= Counter(page) for page in pages)
    assert not said.have(2, wording(text))


def test_the_last_pages_of_a_cluster_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordings, "_MOST_OF_CLUSTER", 2)
    said = Wordings()
    for word in ("one", "two", "three"):
        said.add(1, wording([word]))

    assert [said.have(1, wording([word])) for word in ("one", "two", "three")] == [False, True, True]


def test_with_too_many_words_all_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordings, "_MOST_BYTES", 5 * 4)
    said = Wordings()
    said.add(1, wording(["one", "two", "three"]))
    assert said.have(1, wording(["two"]))
    said.add(2, wording(["four", "five", "six"]))

    assert not said.have(1, wording(["two"]))
    assert said.have(2, wording(["five"]))
