"""The view of thresholds: tried in the background, shown, applied, refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from crawler.spiders.site import SiteSpider
from neardup.web.thresholds import DIALS
from tests.support.crawling import crawl
from tests.support.places import PAGES
from tests.support.web import Elements, browsing, keys, served

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.web.site import Site as Served
from tests.support.web import Browser

JSON = {"Accept": "application/json"}


def tried(browser: Browser, page_site: Served, **fields: Any) -> Any:
    """What the view says when all pages are judged."""
    sent = browser.post("/thresholds", **fields)
    assert sent.status_code == 303, sent.text
    page_site.trials.wait()
    return browser.get(sent.headers["location"], headers=JSON).json()


def test_shown_and_applied(own_url: str) -> None:
    with served(own_url) as page_site, browsing(page_site) as browser:
        before = len(browser.json("/clusters")["clusters"]["rows"])
        shown = tried(browser, page_site, max_distance="0", verify="0.99")
        page = browser.get("/thresholds", max_distance="0", verify="0.99")
        untouched = len(browser.json("/clusters")["clusters"]["rows"])
        applied = tried(browser, page_site, max_distance="0", verify="0.99", apply="yes")
        after = browser.json("/clusters")["clusters"]["rows"]
        again = tried(browser, page_site, max_distance="0", verify="0.99")

    assert "duplicates become canonical" in page.text
    assert shown["outcome"]["lost"] > 0
    assert shown["outcome"]["clusters_before"] == before == untouched
    assert (shown["applied"], applied["applied"], shown["judging"]) == (False, True, None)
    assert shown["outcome"]["clusters_then"] == len(after) < before
    assert again["outcome"]["lost"] == 0


@pytest.mark.slow
def test_clusters_that_fall_apart_are_shown(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/n.db"
    settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url}
    crawl(SiteSpider, settings, url=str(PAGES))  # four versions of a manual
    with served(url) as page_site, browsing(page_site) as browser:
        found = tried(browser, page_site, max_distance="1")["outcome"]
        page = browser.get("/thresholds", max_distance="1").text

    assert found["clusters_split"] >= len(found["splits"]) > 0
    assert ("h3", {"id": "split"}) in Elements(page).met
    for split in found["splits"]:
        assert split["pages"] >= 4
        assert len(split["parts"]) == split["clusters"] == 2
        assert all(part["canonical_url"] in page for part in split["parts"])


def test_what_is_judged_can_be_stopped(page_site: Served, browser: Browser) -> None:
    assert browser.post("/thresholds", max_distance="5").status_code == 303
    assert browser.post("/thresholds", max_distance="5", cancel="yes").status_code == 303
    stopped = browser.json("/thresholds", max_distance="5")
    again = tried(browser, page_site, max_distance="5")

    assert (stopped["judging"], stopped["outcome"]) == (None, None)
    assert again["outcome"]["pages"] == 29


@pytest.mark.slow
def test_what_has_changed_meanwhile_is_judged_anew_before_it_is_applied(own_url: str) -> None:
    with served(own_url) as page_site, browsing(page_site) as browser:
        first = tried(browser, page_site, max_distance="0", verify="0.99")["outcome"]
        duplicate, canonical = keys(browser, "clang-14/Tooling")
        assert browser.post(f"/pair/{duplicate}/{canonical}/decide", decision="same").status_code == 303
        applied = tried(browser, page_site, max_distance="0", verify="0.99", apply="yes")["outcome"]
        kept = browser.json(f"/page/{duplicate}")["page"]["canonical"]

    assert applied["lost"] == first["lost"] - 1
    assert kept["evidence"] == "decision"


@pytest.mark.slow
def test_a_new_trial_ends_the_one_before(browser: Browser, page_site: Served) -> None:
    for bits in "4567":
        assert browser.post("/thresholds", max_distance=bits).status_code == 303
    page_site.trials.wait()

    assert browser.json("/thresholds", max_distance="7")["outcome"]["pages"] == 29
    assert browser.json("/thresholds", max_distance="4")["outcome"] is None


@pytest.mark.slow
def test_a_slider_counts_where_only_it_was_moved(browser: Browser) -> None:
    def asked(**fields: Any) -> str:
        return str(browser.post("/thresholds", **fields).headers["location"])

    for name in ("max_distance", "min_features"):
        was, slider = {f"{name}_was": "6"}, f"{name}_slider"
        assert f"{name}=4" in asked(**{name: "6", slider: "4"}, **was)
        assert f"{name}=5" in asked(**{name: "5", slider: "6"}, **was)
        assert f"{name}=5" in asked(**{name: "5", slider: "4"}, **was)
    # The slider ends at 200; a field that says more leaves it there.
    fields = {"min_features": "400", "min_features_slider": "200", "min_features_was": "400"}
    assert "min_features=400" in asked(**fields)


def test_each_threshold_has_a_slider_and_a_field_with_names(browser: Browser) -> None:
    elements = Elements(browser.get("/thresholds").text).met
    sliders = [
        attributes for tag, attributes in elements if (tag, attributes.get("type")) == ("input", "range")
    ]
    labels = [attributes["for"] for tag, attributes in elements if tag == "label"]

    assert [slider["name"] for slider in sliders] == [f"{dial.name}_slider" for dial in DIALS]
    assert all(slider["aria-label"] for slider in sliders)
    assert {dial.name for dial in DIALS} <= set(labels)


@pytest.mark.parametrize(
    "fields", [{"verify": "2"}, {"max_distance": "x"}, {"min_features": "0"}, {"verify": "nan"}]
)
def test_out_of_range(browser: Browser, fields: dict[str, Any]) -> None:
    assert browser.post("/thresholds", **fields).status_code == 400
