"""Who may ask the live page what, and what a hostile page in the same browser cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from neardup.web.app import application
from neardup.web.security import MOST_BODY_BYTES, Secret
from tests.support.web import TOKEN, Browser, browsing, keys, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from neardup.web.site import Site as Served


def test_token_of_the_url_becomes_a_cookie(page_site: Served) -> None:
    with browsing(page_site, known=False) as stranger:
        assert stranger.get("/clusters").headers["Location"] == "/login"
        assert stranger.get("/clusters", token="wrong").headers["Location"] == "/login"
        login = stranger.get("/login")
        assert login.status_code == 200
        assert page_site.store.location not in login.text
        let_in = stranger.get("/clusters", token=TOKEN, least="1")
        assert let_in.headers["Location"] == "/clusters?least=1"
        assert {"HttpOnly", "SameSite=Strict"} <= set(let_in.headers["Set-Cookie"].split("; "))
        assert stranger.get("/clusters").status_code == 200


def test_token_in_a_form_or_a_header(page_site: Served) -> None:
    with browsing(page_site, known=False) as stranger:
        assert stranger.ask("POST", "/login", data={"secret": "wrong"}).status_code == 403
        assert stranger.get("/clusters", headers={"Accept": "application/json"}).status_code == 401
        bearer = {"Accept": "application/json", "Authorization": f"Bearer {TOKEN}"}
        assert stranger.get("/clusters", headers=bearer).json()["clusters"]["rows"]
        assert stranger.ask("POST", "/login", data={"secret": TOKEN}).headers["Location"] == "/"
        assert stranger.get("/clusters").status_code == 200


def test_redirect_leads_to_no_other_host(page_site: Served) -> None:
    with browsing(page_site, known=False) as stranger:
        moved = stranger.ask("GET", "http://127.0.0.1:8642//evil.example/", params={"token": TOKEN})

        assert moved.headers["Location"] == "/evil.example/"


def test_password_is_no_token_and_cannot_be_guessed_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = Secret("a password of some length", is_password=True)

    assert not secret.shown("a guess")
    assert not secret.shown("a password of some length")
    monkeypatch.setattr("neardup.web.security.monotonic", lambda: 1e12)
    assert secret.shown("a password of some length")


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "evil.example:8642", "", "[::1", "a@b"]
)
def test_wrong_host_is_refused(browser: Browser, host: str) -> None:
    refused = browser.get("/clusters", headers={"Host": host})

    assert refused.status_code == 421
    assert "clang" not in refused.text


@pytest.mark.parametrize("host", ["localhost:8642", "127.0.0.1", "[::1]:9"])
def test_own_hosts(browser: Browser, host: str) -> None:
    assert browser.get("/static/style.css", headers={"Host": host}).status_code == 200


def test_names_that_are_given(page_site: Served) -> None:
    browser = Browser(application(page_site, names=frozenset({"dup.example"})))

    assert browser.get("/clusters", headers={"Host": "dup.example"}).status_code == 200
    browser.close()


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_forms_of_other_sites_are_refused(browser: Browser, headers: dict[str, str]) -> None:
    duplicate, canonical = keys(browser, "clang-14/Tooling")

    assert browser.post(f"/pair/{duplicate}/{canonical}", headers=headers).status_code == 403


def test_forged_form(browser: Browser) -> None:
    duplicate, canonical = keys(browser, "clang-14/Tooling")
    for fields in ({}, {"form_token": "0" * 64}, {"form_token": "é"}):
        refused = browser.ask("POST", f"/pair/{duplicate}/{canonical}", data=fields)
        assert refused.status_code == 400
        assert "none of this page" in refused.text
    own = {"Origin": "http://127.0.0.1:8642", "Sec-Fetch-Site": "same-origin"}
    assert browser.post(f"/pair/{duplicate}/{canonical}", headers=own).status_code == 200


def test_bodies_are_bounded(browser: Browser) -> None:
    async def endless() -> AsyncIterator[bytes]:
        yield b"a="
        for _ in range(MOST_BODY_BYTES // 1_000_000 + 1):
            yield b"x" * 1_000_000

    duplicate, canonical = keys(browser, "clang-14/Tooling")
    path = f"/pair/{duplicate}/{canonical}"
    declared = browser.ask("POST", path, headers={"Content-Length": str(MOST_BODY_BYTES + 1)})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}

    assert declared.status_code == 413
    assert browser.ask("POST", path, content=endless(), headers=kind).status_code == 413


def test_headers_of_every_answer(browser: Browser) -> None:
    for path in ("/", "/clusters", "/no", "/static/style.css", "/login"):
        headers = browser.get(path).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'; script-src 'none'")
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


def test_nothing_is_fetched_from_a_private_network_unless_allowed(filled: str) -> None:
    with served(filled, private=False) as site, browsing(site) as browser:
        duplicate, canonical = keys(browser, "clang-14/Tooling")
        shown = browser.post(f"/pair/{duplicate}/{canonical}")

    assert "at the private address 127.0.0.1; --private follows it" in shown.text


def test_methods_that_views_do_not_know(browser: Browser) -> None:
    assert browser.ask("POST", "/clusters", data={}).status_code == 405
    assert browser.ask("DELETE", "/clusters").status_code == 405
