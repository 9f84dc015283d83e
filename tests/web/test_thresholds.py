"""The view of thresholds: shown, applied, refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.web import browsing, served

if TYPE_CHECKING:
    from tests.support.web import Browser

JSON = {"Accept": "application/json"}


def test_shown_and_applied(own_url: str) -> None:
    with served(own_url) as page_site, browsing(page_site) as browser:
        assert 'name="max_distance"' in browser.get("/thresholds").text
        token = browser.form_token()
        fields = {"form_token": token, "max_distance": "0", "verify": "0.99"}
        shown = browser.ask("POST", "/thresholds", data=fields)
        data = browser.ask("POST", "/thresholds", data=fields, headers=JSON).json()
        before = len(browser.json("/clusters")["clusters"]["rows"])
        browser.ask("POST", "/thresholds", data={**fields, "apply": "yes"})
        after = browser.json("/clusters")["clusters"]["rows"]

    assert "duplicates become canonical" in shown.text
    assert data["outcome"]["lost"] > 0
    assert data["outcome"]["clusters_before"] == before
    assert data["outcome"]["clusters_then"] == len(after)


@pytest.mark.parametrize("fields", [{"verify": "2"}, {"max_distance": "x"}, {"min_features": "0"}])
def test_out_of_range(browser: Browser, fields: dict[str, Any]) -> None:
    assert browser.post("/thresholds", **fields).status_code == 400


def test_large_stores_are_left_to_the_command(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.web.thresholds.MOST_PAGES", 10)

    assert "neardup rethreshold judges them" in browser.post("/thresholds", max_distance="3").text
