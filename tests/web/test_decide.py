"""Decisions on the page: made, refused, undone, exported for ``neardup evaluate``."""

from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from threading import Barrier
from typing import TYPE_CHECKING, Any

import pytest

from neardup.cli.main import main
from tests.support.databases import MYSQL_SLOWLY
from tests.support.ready_databases import ready_database
from tests.support.stores import copy_store
from tests.support.web import HOSTILE, Browser, browsing, keys, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def own(own_url: str) -> Iterator[tuple[Browser, str]]:
    """A page of a store of one's own, and its URL."""
    with served(own_url) as page_site, browsing(page_site) as browser:
        yield browser, own_url


def seen(browser: Browser, path: str) -> str:
    found = re.search(r'name="seen" value="([^"]*)"', browser.get(path).text)
    assert found is not None
    return unescape(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("backend", MYSQL_SLOWLY)
def test_of_two_people_who_decide_at_once_one_is_told(backend: str, filled: str, tmp_path: Path) -> None:
    with ready_database(backend, tmp_path) as url:
        copy_store(filled, url, tmp_path)
        with (
            served(url, person="ada") as adas,
            served(url, person="bob") as bobs,
            browsing(adas) as ada,
            browsing(bobs) as bob,
        ):
            path = "/pair/{}/{}".format(*keys(ada, "clang-14/Tooling"))
            forms = [
                (one, {"form_token": one.form_token(), "seen": seen(one, path), "decision": decision})
                for one, decision in ((ada, "different"), (bob, "same"))
            ]
            together = Barrier(2)

            def decide(one: Browser, fields: dict[str, str]) -> int:
                together.wait()
                return one.ask("POST", f"{path}/decide", data=fields).status_code

            with ThreadPoolExecutor(2) as threads:
                answers = list(threads.map(lambda form: decide(*form), forms))
            rows = ada.json("/decisions")["decisions"]["rows"]
            late = (ada, bob)[answers.index(409)].post(f"{path}/decide", decision="same")

    assert sorted(answers) == [303, 409]
    assert [row["decided_by"] for row in rows] == [("ada", "bob")[answers.index(303)]]
    assert late.status_code == 303  # who has looked again decides


def test_made_and_undone(
    own: tuple[Browser, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    browser, url = own
    duplicate, canonical = keys(browser, "clang-14/Tooling")
    path = f"/pair/{duplicate}/{canonical}"
    as_shown = seen(browser, path)
    evidence = browser.json(path)["pair"]["relation"]["evidence"]
    made = browser.post(f"{path}/decide", decision="different", note=HOSTILE, seen=as_shown)

    assert made.headers["Location"] == path
    data = browser.json(path)
    assert data["pair"]["relation"] is None
    (decision,) = data["decisions"]
    assert (decision["decision"], decision["decided_by"], decision["note"]) == ("different", "ada", HOSTILE)
    shown = browser.get("/decisions").text
    assert HOSTILE not in shown
    assert "&lt;script&gt;" in shown
    late = browser.post(f"{path}/decide", decision="same", seen=as_shown)
    assert late.status_code == 409
    assert "somebody else has decided" in late.text

    file = tmp_path / "pairs.jsonl"
    assert main(["decisions", "export", "--database", url, str(file), "--private"]) == 0
    assert capsys.readouterr().out == f"{file}: 1 of 1 pairs\n"
    (pair,) = map(json.loads, file.read_text("utf-8").splitlines())
    assert (pair["label"], "Tooling" in pair["a_text"]) == (0, True)
    assert main(["evaluate", str(file)]) == 0
    capsys.readouterr()

    undone = browser.post(f"/decisions/{decision['decision_id']}/undo")
    assert undone.headers["Location"] == "/decisions"
    assert browser.json(path)["pair"]["relation"]["evidence"] == evidence
    assert "undone by" in browser.get("/decisions").text
    assert browser.post(f"/decisions/{decision['decision_id']}/undo").status_code == 409


def test_of_one_page(own: tuple[Browser, str], capsys: pytest.CaptureFixture[str]) -> None:
    browser, url = own
    duplicate, canonical = keys(browser, "clang-14/FAQ")
    browser.post(f"/page/{duplicate}/decide", decision="canonical", seen=seen(browser, f"/page/{duplicate}"))

    assert browser.json(f"/page/{canonical}")["page"]["canonical"]["key"] == duplicate
    assert main(["decisions", "--database", url, "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["decisions"]
    assert (row["decision"], row["page_key"]) == ("canonical", duplicate)
    assert (row["undone_by"], row["undone_at"]) == (None, None)
    assert row["page_url"].endswith("clang-14/FAQ.html")
    assert main(["decisions", "undo", "--database", url, str(row["decision_id"])]) == 0
    assert main(["decisions", "--database", url]) == 0
    assert "canonical" in capsys.readouterr().out
    assert browser.json(f"/page/{duplicate}")["page"]["canonical"]["key"] == canonical
    assert main(["db", "check", "--database", url]) == 0


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        ("/page/{}/decide", {"decision": "odd"}, 400),
        ("/page/{}/decide", {"decision": "same"}, 400),
        ("/page/{}/decide", {"decision": "pin", "note": "x" * 10_001}, 400),
        ("/page/xyz/decide", {"decision": "pin"}, 404),
        ("/decisions/99/undo", {}, 400),
        ("/decisions/x/undo", {}, 404),
    ],
)
def test_what_makes_no_sense(browser: Browser, path: str, fields: dict[str, Any], status: int) -> None:
    duplicate, _ = keys(browser, "clang-14/FAQ")

    assert browser.post(path.format(duplicate), **fields).status_code == status
    assert browser.json("/decisions")["decisions"]["rows"] == []
