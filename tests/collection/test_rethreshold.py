"""Other thresholds without a new crawl, held to what a crawl with these thresholds finds."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from crawler.spiders.site import SiteSpider
from neardup.cli.main import main
from neardup.store.store import Store
from tests.support.crawling import crawl
from tests.support.places import PAGES
from tests.support.stores import kinds, relations

if TYPE_CHECKING:
    from pathlib import Path


def crawled(url: str, **settings: Any) -> None:
    named = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url, "NEARDUP_SNAPSHOT": False}
    crawl(SiteSpider, named | settings, url=str(PAGES))


def stored(url: str) -> tuple[dict[str, str], dict[str, str]]:
    with Store.open(url, scheme=None) as store:
        return relations(store), kinds(store)


@pytest.fixture(scope="module")
def crawled_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rethreshold") / "n.db"
    crawled(f"sqlite:///{path}")
    return path


@pytest.fixture
def url(crawled_once: Path, tmp_path: Path) -> str:
    """A store of one's own."""
    return f"sqlite:///{shutil.copy(crawled_once, tmp_path / 'n.db')}"


def outcome(capsys: pytest.CaptureFixture[str], url: str, *arguments: str) -> dict[str, Any]:
    assert main(["rethreshold", "--database", url, "--format", "json", *arguments]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
def test_the_same_thresholds_change_nothing(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = stored(url)
    same = outcome(capsys, url)

    assert same["duplicates_before"] == same["duplicates_then"] == len(before[0])
    assert (same["gained"], same["lost"], same["moved"]) == (0, 0, 0)
    outcome(capsys, url, "--apply")
    assert stored(url) == before


def clusters(relations_of: dict[str, str]) -> dict[str, str]:
    """Pages of clusters by their canonical pages, these included."""
    return relations_of | {canonical: canonical for canonical in relations_of.values()}


def meeting(one: dict[str, str], other: dict[str, str]) -> dict[str, set[str]]:
    """The clusters of another state in which pages of a cluster are."""
    found: dict[str, set[str]] = {head: set() for head in one.values()}
    for page, head in one.items():
        found[head] |= {other[page]} if page in other else set()
    return found


@pytest.mark.parametrize(
    "thresholds",
    [
        ("--max-distance", "1"),
        ("--max-distance", "4"),
        ("--verify", "0.97"),
        ("--max-distance", "12", "--verify", "0.3"),
    ],
)
def test_clusters_that_come_go_and_fall_apart(
    url: str, capsys: pytest.CaptureFixture[str], thresholds: tuple[str, ...]
) -> None:
    before = clusters(stored(url)[0])
    found = outcome(capsys, url, *thresholds, "--apply")
    then = clusters(stored(url)[0])
    parts, sources = meeting(before, then), meeting(then, before)
    split = {head: heads for head, heads in parts.items() if len(heads) > 1}

    assert (found["clusters_before"], found["clusters_then"]) == (len(parts), len(sources))
    assert found["clusters_lost"] == sum(not heads for heads in parts.values())
    assert found["clusters_gained"] == sum(not heads for heads in sources.values())
    assert found["clusters_split"] == len(split)
    assert found["clusters_merged"] == sum(len(heads) > 1 for heads in sources.values())
    for told in found["splits"]:
        assert told["clusters"] == len(split[told["canonical_url"]])
        assert {part["canonical_url"] for part in told["parts"]} <= split[told["canonical_url"]]
        assert told["pages"] == sum(head == told["canonical_url"] for head in before.values())
        assert sum(part["pages"] for part in told["parts"]) <= told["pages"]
    assert bool(found["splits"]) == bool(split)


@pytest.mark.parametrize(("option", "value"), [("--max-distance", "1"), ("--verify", "0.97")])
def test_stricter_thresholds_keep_what_is_within_them(
    url: str, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    before = stored(url)
    found = outcome(capsys, url, option, value)

    assert found["lost"] > 0
    assert found["duplicates_then"] < found["duplicates_before"]
    assert stored(url) == before
    assert found["examples"][0]["before"] is not None
    applied = outcome(capsys, url, option, value, "--apply")
    assert applied["applied"] is True
    after, _ = stored(url)
    assert len(after) == found["duplicates_then"]
    assert main(["db", "check", "--database", url]) == 0
    capsys.readouterr()
    again = outcome(capsys, url, option, value)
    assert (again["gained"], again["lost"], again["moved"]) == (0, 0, 0)


def test_a_minimum_of_words(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome(capsys, url, "--min-features", "100000", "--apply")
    assert set(stored(url)[1].values()) == {"too_short"}
    back = outcome(capsys, url, "--apply")

    assert back["duplicates_then"] > 0
    assert "too_short" not in stored(url)[1].values()
    assert main(["rethreshold", "--database", url]) == 0
    assert "nothing is changed; --apply makes it so" in capsys.readouterr().out


def test_thresholds_out_of_range(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rethreshold", "--database", url, "--verify", "2"]) == 1
    assert "between 0" in capsys.readouterr().err
