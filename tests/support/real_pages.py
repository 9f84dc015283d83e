"""The real pages of the tests, and which of them are near-duplicates by means that neardup has no part in."""

from __future__ import annotations

import csv
import os
from pathlib import Path

from tests.support.places import PAGES


def near_duplicates() -> dict[tuple[str, str], float]:
    """The known pairs, each in the order of their paths, with their exact resemblance."""
    with (PAGES / "near_duplicates.csv").open(newline="") as file:
        return {(row["a"], row["b"]): float(row["resemblance"]) for row in csv.DictReader(file)}


PAGES = Path(os.environ.get("NEARDUP_TEST_PAGES") or PAGES)
"""Real pages, ``*.html`` at any depth. Set NEARDUP_TEST_PAGES to run the same tests over another folder of
pages.
"""


def real_pages() -> list[Path]:
    files = sorted(path for path in PAGES.rglob("*.html") if path.is_file())
    assert len(files) >= 10, f"{PAGES} has {len(files)} pages, not 10 or more"
    return files


def page_id(path: Path) -> str:
    return str(path.relative_to(PAGES))
