"""Which duplicates are so near that one of them is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.urls.copies import MOST_VERSIONS, Copies
from tests.support.detectors import detector, edited
from tests.support.sites.text import prose

if TYPE_CHECKING:
    from neardup.detection.detector import Detector

TEXT = prose("versions", 500)


def lenient() -> Detector:
    """A detector that takes pages for duplicates that are versions of each other."""
    return detector(verify=0.4, max_distance=16)


def test_near_copies_have_the_cluster_of_their_canonical_page() -> None:
    judge, copies = detector(), Copies()
    first = judge.examine_text("http://a.example/1", TEXT)
    second = judge.examine_text("http://a.example/2", edited(TEXT, 3))

    assert second.is_duplicate
    assert copies.cluster_of(first) == copies.cluster_of(second) == first.page_id


def test_versions_of_a_page_are_clusters_of_their_own() -> None:
    judge, copies = lenient(), Copies()
    first = judge.examine_text("http://a.example/0", TEXT)
    other, same, third = (
        judge.examine_text(f"http://a.example/{number}", text)
        for number, text in enumerate([edited(TEXT, 60), edited(TEXT, 61), edited(TEXT, 110)], 1)
    )

    assert {other.canonical_id, same.canonical_id, third.canonical_id} == {first.page_id}
    assert copies.cluster_of(first) == first.page_id
    assert copies.cluster_of(other) == other.page_id
    assert copies.cluster_of(same) == other.page_id
    assert copies.cluster_of(third) == third.page_id


def test_pages_that_are_not_compared_have_no_cluster() -> None:
    judge, copies = detector(), Copies()

    assert copies.cluster_of(judge.examine_text("http://a.example/short", "too short")) is None

    judge.examine_text("http://a.example/1", TEXT)
    gone = judge.gone("http://a.example/1")
    assert gone is not None
    assert copies.cluster_of(gone) is None


def test_of_many_versions_the_first_ones_are_told_apart() -> None:
    judge, copies = lenient(), Copies()
    judge.examine_text("http://a.example/0", TEXT)
    words = TEXT.split()
    told_apart = []
    for number in range(MOST_VERSIONS + 4):
        start = 20 * number  # another passage of each version is its own
        changed = " ".join([*words[:start], *prose(f"part {number}", 80).split(), *words[start + 80 :]])
        of = [judge.examine_text(f"http://a.example/{number}/{copy}", changed) for copy in range(2)]
        assert of[0].canonical_id == 1
        told_apart.append(copies.cluster_of(of[0]) == copies.cluster_of(of[1]) == of[0].page_id)

    assert told_apart == [True] * MOST_VERSIONS + [False] * 4
