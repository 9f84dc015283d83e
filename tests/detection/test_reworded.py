"""Pages that hold nothing but numbered links, filed under the numbers of their headlines, on a whole site."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from neardup.detection.detector import Detector, DetectorOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

MONTHS, DAYS = range(1, 13), range(1, 29)


def prose(seed: object, length: int) -> str:
    chosen = random.Random(repr(seed))
    return " ".join("".join(chosen.choices("aeioulmnrst", k=4)) for _ in range(length))


def archive() -> Iterator[tuple[str, str, str]]:
    """Paths, titles and contents: months with links to their days, and days with links to their articles."""
    for month in MONTHS:
        links = " ".join(f"<a href='{day:02}/'>{day:02}</a>" for day in DAYS)
        yield f"/2025/{month:02}/", f"Archive 2025/{month:02}", links
        for day in DAYS:
            links = " ".join(f"<a href='{each}'>{prose((month, day, each), 7)}</a>" for each in "abcd")
            yield f"/2025/{month:02}/{day:02}/", f"Archive 2025/{month:02}/{day:02}", links


def html(title: str, content: str, visitor: int) -> str:
    return (
        f"<html><head><title>{title}</title></head><body><nav>{prose('menu', 150)}</nav><h1>{title}</h1>"
        f"{content}<footer>{prose('footer', 80)} session {visitor}</footer></body></html>"
    )


def test_months_of_an_archive_are_no_sure_copies_of_each_other() -> None:
    detector = Detector(DetectorOptions())
    visitors = random.Random(1)
    of_others = 0
    for _ in range(2):
        for path, title, content in archive():
            visitor = visitors.randrange(10**8)
            url = f"http://a.example{path}?sid={visitor}"
            verdict = detector.examine_html(url, html(title, content, visitor))
            if verdict.canonical_url is not None and path not in verdict.canonical_url:
                of_others += 1
                assert not verdict.is_sure, verdict.reason

    # They are like each other, or this test would show nothing.
    assert of_others >= 10
