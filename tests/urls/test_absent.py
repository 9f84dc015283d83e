"""Where pages are missing, and where they are not."""

from __future__ import annotations

import pytest

from neardup.urls import absent as module
from neardup.urls.absent import AbsentPages

SITE = "http://a.example"


def taught(missing: str, there: str = "", times: int = 20) -> AbsentPages:
    """After so many answers below each of two addresses, which end with a number."""
    pages = AbsentPages()
    for number in range(times):
        pages.answered(f"{SITE}{missing}{number}", is_missing=True)
        if there:
            pages.answered(f"{SITE}{there}{number}", is_missing=False)
    return pages


def test_nothing_is_known_at_first() -> None:
    assert AbsentPages().share(f"{SITE}/fr/x") == 0.0
    assert taught("/fr/", times=3).share(f"{SITE}/fr/x") == 0.0
    assert taught("/fr/", times=4).share(f"{SITE}/fr/x") > 0.8


def test_a_folder_that_is_not_there() -> None:
    pages = taught("/fr/", there="/en/")

    assert pages.share(f"{SITE}/fr/x") > 0.95
    assert pages.share(f"{SITE}/fr/v5/x") > 0.95
    assert pages.share(f"{SITE}/en/x") < 0.05
    assert pages.share(f"{SITE}/x") == pages.share("http://a.example:81/fr/x") == 0.0


def test_the_innermost_folder_counts() -> None:
    pages = taught("/fr/v5/", there="/fr/v6/")

    assert pages.share(f"{SITE}/fr/v5/x") > 0.95
    assert pages.share(f"{SITE}/fr/v6/x") < 0.05
    assert 0.4 < pages.share(f"{SITE}/fr/x") < 0.6


def test_a_value_of_a_parameter() -> None:
    pages = AbsentPages()
    for number in range(20):
        for version in range(3):
            pages.answered(f"{SITE}/wiki/Page{number}?version={version}", is_missing=version == 0)

    assert pages.share(f"{SITE}/wiki/New?version=0") > 0.95
    assert pages.share(f"{SITE}/wiki/New?version=1") < 0.5


@pytest.mark.parametrize("url", ["", "mailto:a@b.example", "http://[::1", f"{SITE}/" + "x/" * 100])
def test_other_addresses_say_nothing(url: str) -> None:
    pages = AbsentPages()
    pages.answered(url, is_missing=True)
    assert pages.share(url) == 0.0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PLACES", 10)
    pages = taught("/fr/")
    for number in range(9):
        pages.answered(f"{SITE}/{number}/", is_missing=True)
    assert pages.share(f"{SITE}/fr/x") > 0.95

    pages.answered(f"{SITE}/other/", is_missing=True)
    pages.answered(f"{SITE}/another/", is_missing=True)
    assert pages.share(f"{SITE}/fr/x") == 0.0
