"""Scores of clusters against a truth by name: pages of one name are the same page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.detection.interval import wilson
from neardup.evaluation.measure import Score
from neardup.evaluation.result import rate_record, score_record

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from neardup.detection.interval import Rate

CUTS = (0.9, 0.8, 0.7, 0.6, 0.5)
"""Resemblances to an earlier page of the same name from which recall is given by itself."""


class Judged(NamedTuple):
    """A judged page: its name, what stands for its text, and the row of its canonical page.

    The canonical page of a canonical page is that page itself.
    """

    name: int
    text: int
    canonical: int


class Recall(NamedTuple):
    """Of the ``wanted`` pages, ``found`` are in a cluster with an earlier page of their name."""

    among: str
    wanted: int
    found: int

    @property
    def rate(self) -> Rate | None:
        return wilson(self.found, self.wanted)


class Different(NamedTuple):
    """Of ``pages``, ``called`` are duplicates of a canonical page of another name and another text.

    ``same_text`` are duplicates of a canonical page of another name with the very same text.
    """

    among: str
    pages: int
    called: int
    same_text: int

    @property
    def rate(self) -> Rate | None:
        return wilson(self.called, self.pages)


@dataclass(frozen=True, slots=True)
class NameScores:
    """How well clusters agree with the names of their pages.

    - ``pairs``: reported are the pairs of a duplicate and its canonical page. Wanted are the pages with an
      earlier page of their name. Such a page is found if its cluster holds an earlier page of its name.
    - ``clusters``: reported are all pairs of pages of one cluster, wanted all pairs of pages of one name.
    - ``recalls``: the recall of ``pairs``, then the same among pages that are harder or easier to find.
    - ``different``: how many pages are called duplicates of a page of another name.

    Pairs of pages with different names and the very same text are not counted as reported: a person would
    call such pages the same. ``same_text`` counts those pairs in ``clusters``.
    """

    pairs: Score
    clusters: Score
    same_text: int
    recalls: list[Recall]
    different: list[Different]

    def record(self) -> dict[str, Any]:
        return {
            "pairs": score_record(self.pairs),
            "clusters": score_record(self.clusters) | {"same_text": self.same_text},
            "recalls": [one._asdict() | {"recall": rate_record(one.rate)} for one in self.recalls],
            "different": [one._asdict() | {"share": rate_record(one.rate)} for one in self.different],
        }


def score_names(pages: Sequence[Judged], likest: Mapping[int, float], *, early: int) -> NameScores:
    """Scores of pages in the order in which they were judged.

    ``likest`` has, for each page with an earlier page of its name, the resemblance to the likest of those.
    The second share of different pages leaves out the first ``early`` pages.
    """
    right, same_text, wrong = divided(pages)
    found = found_pages(pages)
    different = [
        Different(among, len(rows), len(wrong.intersection(rows)), len(same_text.intersection(rows)))
        for among, rows in (
            ("all pages", range(len(pages))),
            (f"after the first {early:,}", range(early, len(pages))),
        )
    ]
    return NameScores(
        Score(len(right) + len(wrong), len(right), len(likest), len(found)),
        *_clusters(pages),
        _recalls(pages, likest, found),
        different,
    )


def divided(pages: Sequence[Judged]) -> tuple[set[int], set[int], set[int]]:
    """The rows of the duplicates in three parts, by their canonical pages.

    The canonical page has the same name, or another name and the very same text, or another name and text.
    """
    parts: tuple[set[int], set[int], set[int]] = (set(), set(), set())
    for row, page in enumerate(pages):
        if page.canonical != row:
            other = pages[page.canonical]
            parts[0 if other.name == page.name else 1 if other.text == page.text else 2].add(row)
    return parts


def found_pages(pages: Sequence[Judged]) -> set[int]:
    """The rows of the pages whose cluster holds an earlier page of their name."""
    met: set[tuple[int, int]] = set()
    found: set[int] = set()
    for row, page in enumerate(pages):
        place = (page.canonical, page.name)
        if place in met:
            found.add(row)
        met.add(place)
    return found


def _recalls(pages: Sequence[Judged], likest: Mapping[int, float], found: set[int]) -> list[Recall]:
    met: set[tuple[int, int]] = set()
    copies: set[int] = set()
    for row, page in enumerate(pages):
        if (page.name, page.text) in met:
            copies.add(row)
        met.add((page.name, page.text))
    among = {
        "all pages": likest.keys(),
        "no earlier page of the name has the same text": likest.keys() - copies,
    }
    for cut in CUTS:
        among[f"resemblance ≥ {cut}"] = {row for row, alike in likest.items() if alike >= cut}
    return [Recall(name, len(rows), len(found.intersection(rows))) for name, rows in among.items()]


def _clusters(pages: Sequence[Judged]) -> tuple[Score, int]:
    """Score of all pairs of pages of one cluster, and how many more have other names and the same text."""
    reported = _pairs(page.canonical for page in pages)
    right = _pairs((page.canonical, page.name) for page in pages)
    same_text = _pairs((page.canonical, page.text) for page in pages) - _pairs(pages)
    return Score(reported - same_text, right, _pairs(page.name for page in pages), right), same_text


def _pairs(keys: Iterable[Hashable]) -> int:
    """How many pairs of equal keys there are."""
    return sum(count * (count - 1) // 2 for count in Counter(keys).values())
