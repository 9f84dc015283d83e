"""Versions of pages: what lies between two of them."""

from __future__ import annotations

from neardup.urls.learner import Learner
from neardup.urls.versions import MOST_ENDS, Versions, between

SITE = "http://docs.example.com"


def taught(pages: int = 40) -> Learner:
    """Versions 8 to 11 of a manual: every fourth page has changed in version 10."""
    learner = Learner()
    for version in (8, 11, 9, 10):
        for page in range(pages):
            changed = page % 4 == 0 and version >= 10
            learner.observe(f"{SITE}/1.{version}/d{page % 3}/page{page}.html", 2 * page + changed)
    return learner


def probability(learner: Learner, version: str) -> float:
    found = learner.predict(f"{SITE}/{version}/d0/new.html")
    return 0.0 if found is None else found.probability


def test_between_two_copies_there_is_hardly_ever_another_page() -> None:
    learner = taught()
    learner.observe(f"{SITE}/1.8/d0/new.html", 1_000)
    learner.observe(f"{SITE}/1.11/d0/new.html", 1_000)
    between_copies = probability(learner, "1.9")
    assert between_copies > 0.95

    learner = taught()
    learner.observe(f"{SITE}/1.8/d0/new.html", 1_000)
    learner.observe(f"{SITE}/1.11/d0/new.html", 1_001)
    assert probability(learner, "1.9") < between_copies


def test_of_unknown_versions_the_outermost_is_asked_for_first() -> None:
    learner = taught()
    learner.observe(f"{SITE}/1.8/d0/new.html", 1_000)
    outermost = probability(learner, "1.11")
    assert 0.5 < outermost < min(probability(learner, "1.9"), probability(learner, "1.10"))

    learner = taught()
    learner.observe(f"{SITE}/1.11/d0/new.html", 1_000)
    outermost = probability(learner, "1.8")
    assert 0.5 < outermost < min(probability(learner, "1.9"), probability(learner, "1.10"))


def test_pages_of_one_directory_or_kind_change_together() -> None:
    learner = Learner()
    for page in range(40):
        changes = page % 4 == 0
        kind = "Options" if changes else "Error"
        for version, changed in (("1.11", 0), ("1.8", changes)):
            learner.observe(f"{SITE}/{version}/d{page % 4}/page{page}.html", 2 * page + changed)
            learner.observe(f"{SITE}/{version}/all/Page{page}{kind}.html", 2 * page + changed + 1_000)
    unlike, like = ("d0/new.html", "all/NewOptions.html"), ("d1/new.html", "all/NewError.html")
    for cluster, path in enumerate((*unlike, *like), 2_000):
        learner.observe(f"{SITE}/1.11/{path}", cluster)
    found = {path: learner.predict(f"{SITE}/1.8/{path}") for path in (*unlike, *like)}
    probabilities = {path: one.probability for path, one in found.items() if one}
    assert all(probabilities[path] < 0.5 for path in unlike)
    assert all(probabilities[path] > 0.8 for path in like)


def test_versions_that_are_written_in_another_way_have_no_order() -> None:
    assert between("1.9", {"v1.8": 1, "v1.10": 1, "stable": 1}) == ""
    versions = Versions()
    for version in ("1.8", "v3", "stable"):
        versions.seen("/docs", version)
    assert not versions.is_inner("/docs", "1.9", ["1.8"])
    assert not versions.is_inner("/docs", "v2", ["stable", "1.8"])
    assert versions.is_inner("/docs", "v2", ["v1"])
    assert not versions.is_inner("/other", "v2", ["v1"])


def test_the_memory_of_versions_is_bounded() -> None:
    versions = Versions()
    for number in range(2 * MOST_ENDS):
        versions.seen(f"/{number}", "v3")
    assert not versions.is_inner("/0", "v2", ["v1"])
    assert versions.is_inner(f"/{2 * MOST_ENDS - 1}", "v2", ["v1"])
