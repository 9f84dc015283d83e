"""The form of Khan & Ali: a URL, HTML or a file against the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.places import PAGES
from tests.support.web import WORDS, browsing, keys, served

if TYPE_CHECKING:
    import httpx

    from tests.support.web import Browser


def checked(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["outcome"]["checked"]
    return found


JSON = {"Accept": "application/json"}


@pytest.mark.slow
def test_a_url_is_fetched_and_stored_nowhere(browser: Browser) -> None:
    duplicate, canonical = keys(browser, "clang-14/Tooling")
    url = browser.json(f"/page/{duplicate}")["page"]["page"]["url"]
    answer = browser.post("/check", url=url, headers=JSON)

    assert "duplicate of another page (stored itself, as duplicate)" in checked(answer)["verdict"]
    assert checked(answer)["resembles"][0]["url"] == browser.json(f"/page/{canonical}")["page"]["page"]["url"]
    assert [step["name"] for step in answer.json()["outcome"]["steps"]][:2] == ["fetch", "purify"]
    assert browser.post("/check", url=url).status_code == 200


def test_a_page_is_stored_when_asked(own_url: str) -> None:
    html = (PAGES / "clang-15" / "Tooling.html").read_text("utf-8")
    url = "http://other.example/Tooling.html"
    with served(own_url) as page_site, browsing(page_site) as browser:
        answer = browser.post("/check", url=url, html=html, store="yes", headers=JSON)
        stored = answer.json()["outcome"]["stored"]
        page = browser.json(f"/page/{stored['key']}")["page"]
        again = browser.post("/check", url=url, html=html, store="yes", headers=JSON).json()["outcome"]
        changed = browser.post("/check", url=url, html=f"<p>{WORDS} now", store="yes", headers=JSON)
        crawls = browser.json("/crawls")["crawls"]["rows"]
        now = browser.json(f"/page/{stored['key']}")["page"]

    assert (stored["kind"], stored["crawl_id"]) == ("duplicate", 2)
    assert page["page"]["url"] == url
    assert page["canonical"]["url"] == checked(answer)["resembles"][0]["url"]
    assert "stored itself, as duplicate" in again["checked"]["verdict"]
    assert again["stored"] == {**stored, "crawl_id": 3}
    assert changed.json()["outcome"]["stored"]["kind"] == "changed"
    assert now["canonical"] is None
    assert [(row["spider"], row["finish_reason"], row["pages"]) for row in crawls[:3]] == [
        ("check", "finished", 1)
    ] * 3


def test_a_page_just_stored_is_compared_with(own_url: str) -> None:
    fresh = "".join(f"<p>{word} is here</p>" for word in WORDS.split())
    with served(own_url) as page_site, browsing(page_site) as browser:
        before = checked(browser.post("/check", html=fresh, headers=JSON))
        browser.post("/check", html=fresh, url="http://other.example/fresh", store="yes")
        after = checked(browser.post("/check", html=fresh, headers=JSON))

    assert before["verdict"] == "not a duplicate"
    assert after["verdict"] == "duplicate"
    assert after["resembles"][0]["url"] == "http://other.example/fresh"


def test_what_a_decision_says_holds_for_a_page_that_is_stored(own_url: str) -> None:
    with served(own_url) as page_site, browsing(page_site) as browser:
        duplicate, canonical = keys(browser, "clang-14/Tooling")
        url = browser.json(f"/page/{duplicate}")["page"]["page"]["url"]
        assert browser.post(f"/pair/{duplicate}/{canonical}/decide", decision="different").status_code == 303
        stored = browser.post("/check", url=url, store="yes", headers=JSON).json()["outcome"]["stored"]

    assert stored["kind"] == "unchanged"


def test_a_page_without_a_url_is_not_stored(own_url: str) -> None:
    with served(own_url) as page_site, browsing(page_site) as browser:
        refused = browser.post("/check", html=f"<p>{WORDS}", store="yes")
        crawls = browser.json("/crawls")["crawls"]["rows"]

    assert refused.status_code == 400
    assert "give one with the HTML" in refused.text
    assert len(crawls) == 1


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
