"""The form of Khan & Ali: a URL, HTML or a file against the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.places import PAGES
from tests.support.web import keys

if TYPE_CHECKING:
    import httpx

    from tests.support.web import Browser


def checked(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["outcome"]["checked"]
    return found


JSON = {"Accept": "application/json"}


def test_a_url_is_fetched_and_stored_nowhere(browser: Browser) -> None:
    duplicate, canonical = keys(browser, "clang-14/Tooling")
    url = browser.json(f"/page/{duplicate}")["page"]["page"]["url"]
    answer = browser.post("/check", url=url, headers=JSON)

    assert "duplicate of another page (stored itself, as duplicate)" in checked(answer)["verdict"]
    assert checked(answer)["resembles"][0]["url"] == browser.json(f"/page/{canonical}")["page"]["page"]["url"]
    assert [step["name"] for step in answer.json()["outcome"]["steps"]][:2] == ["fetch", "purify"]
    assert browser.post("/check", url=url).status_code == 200


def test_html_and_a_file(browser: Browser) -> None:
    html = (PAGES / "clang-15" / "Tooling.html").read_text("utf-8")
    pasted = checked(browser.post("/check", html=html, headers=JSON))
    token = browser.form_token()
    sent = checked(
        browser.ask("POST", "/check", data={"form_token": token}, files={"file": html.encode()}, headers=JSON)
    )

    assert pasted == sent
    assert pasted["verdict"] == "duplicate"
    assert pasted["resembles"][0]["percentage"] > 90.0
    fresh = checked(browser.post("/check", html="<p>nothing like it at all", headers=JSON))
    assert fresh["verdict"] == "too short to be matched"
    assert browser.json("/crawls")["crawls"]["rows"][0]["pages"] == 29


@pytest.mark.parametrize(
    "fields", [{}, {"url": " "}, {"url": "gopher://a.example/"}, {"html": "<p" * 600_000}]
)
def test_what_cannot_be_compared(browser: Browser, fields: dict[str, Any]) -> None:
    refused = browser.post("/check", **fields)

    assert refused.status_code == 400
    assert 'role="alert"' in refused.text
