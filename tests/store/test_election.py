"""Who becomes canonical is judged as crawls judge: by texts, headlines and whole resemblance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from neardup.detection.document_frequencies import DocumentFrequencies
from neardup.detection.rule import Rule
from neardup.store import removal
from neardup.text.headline import none, of_texts
from tests.support.stores import kinds, relations_of, write
from tests.support.verdicts import duplicate, fingerprint, page

if TYPE_CHECKING:
    from neardup.store.store import Store
    from neardup.text.headline import Headline

HOST = "http://a.example/"
SAME_WORDS = fingerprint(0x123456789ABCDEF0)


def remaining(store: Store, titles: dict[int, Headline], *, with_text_of: dict[int, int]) -> dict[int, str]:
    """Remove the canonical page of these; the evidence of the relations that are left, all to page 2."""
    first, second = (store.begin_crawl(spider="s", settings={}) for _ in range(2))
    write(store, page(1, f"{HOST}1", fingerprint=SAME_WORDS), crawl=first)
    write(
        store,
        *(
            duplicate(
                number,
                f"{HOST}{number}",
                1,
                0,
                fingerprint=SAME_WORDS,
                headline=title,
                text_digest=with_text_of.get(number, number),
            )
            for number, title in titles.items()
        ),
        crawl=second,
    )
    for _ in removal.remove_crawl(store, first, Rule(8)):
        pass
    assert {row["actual_hash_id"] for row in relations_of(store)} <= {2}
    return {row["duplicate_hash_id"]: row["evidence"] for row in relations_of(store)}


def test_headlines_decide_unless_the_texts_are_the_same(store: Store) -> None:
    alpha, beta = of_texts("The function alpha"), of_texts("The function beta")

    evidence = remaining(store, {2: alpha, 3: alpha, 4: beta, 5: beta, 6: none()}, with_text_of={5: 2})

    assert evidence == {3: "whole", 5: "text", 6: "whole"}
    assert kinds(store)[f"{HOST}4"] == "new"


@pytest.mark.parametrize(("common", "evidence"), [(False, {}), (True, {3: "whole"})])
def test_a_headline_that_a_site_has_on_every_page_says_nothing(
    store: Store, common: bool, evidence: dict[int, str]
) -> None:
    alpha, beta = of_texts("Welcome alpha"), of_texts("Welcome beta")
    if common:
        counted = DocumentFrequencies()
        for title in (alpha, beta) * 10:
            counted.count("a.example", np.arange(20, dtype=np.uint64), title)
        write(store, frequencies=counted)

    assert remaining(store, {2: alpha, 3: beta}, with_text_of={}) == evidence
