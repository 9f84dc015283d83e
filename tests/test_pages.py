"""The committed pages and what is known about them, by means that neardup has no part in."""

from __future__ import annotations

import csv
import itertools
import re
from pathlib import Path

import bs4
import pytest

PAGES = Path(__file__).parent / "pages"


def shingles(page: Path) -> set[tuple[str, ...]]:
    soup = bs4.BeautifulSoup(page.read_bytes(), "lxml")
    for element in soup(["head", "script", "style"]):
        element.decompose()
    words = re.findall(r"\w+", soup.get_text(" ").casefold())
    return {tuple(words[i : i + 3]) for i in range(len(words) - 2)}


def near_duplicates() -> dict[tuple[str, str], float]:
    """The known pairs, each in the order of their paths, with their exact resemblance."""
    with (PAGES / "near_duplicates.csv").open(newline="") as file:
        return {(row["a"], row["b"]): float(row["resemblance"]) for row in csv.DictReader(file)}


def computed() -> dict[tuple[str, str], float]:
    sets = {str(page.relative_to(PAGES)): shingles(page) for page in sorted(PAGES.rglob("*.html"))}
    pairs = {}
    for (a, in_a), (b, in_b) in itertools.combinations(sets.items(), 2):
        resemblance = len(in_a & in_b) / len(in_a | in_b)
        if resemblance >= 0.5:
            pairs[a, b] = round(resemblance, 3)
    return pairs


def test_known_pairs_are_what_the_pages_say() -> None:
    known = near_duplicates()

    assert len(known) > 50
    assert computed() == pytest.approx(known)
