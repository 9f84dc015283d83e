"""Texts that crawls have kept, on all databases, and the texts of pages as they are now."""

from __future__ import annotations

import json
import re
import zlib
from datetime import UTC, datetime
from html import unescape
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from crawler.spiders.site import SiteSpider
from neardup.cli.main import main
from neardup.store import texts
from neardup.store.removal import only_of, remove_pages
from neardup.store.schema import page_texts, simhash_values
from neardup.store.store import Store
from tests.support.crawling import crawl, serve
from tests.support.web import WORDS, browsing, fill, keys, served

if TYPE_CHECKING:
    from pathlib import Path

    from neardup.web.site import Site as Served


@pytest.mark.slow
def test_of_texts_of_50_megabytes_the_beginnings_are_compared(own_url: str) -> None:
    with served(own_url) as page_site, browsing(page_site) as browser:
        duplicate, canonical = keys(browser, "clang-14/Tooling")
        with page_site.store.begin_write() as connection:
            for key, part in ((duplicate, b"one word after "), (canonical, b"x" * 10_000)):
                page = sa.select(simhash_values.c.id).where(simhash_values.c.url_key == bytes.fromhex(key))
                row = {
                    "page_id": connection.execute(page).scalar_one(),
                    "text": zlib.compress(part * (50_000_000 // len(part)), 1),
                    "seen_at": datetime.now(UTC),
                }
                connection.execute(sa.insert(page_texts).values(row))
        shown = browser.get(f"/pair/{duplicate}/{canonical}")
        found = browser.json(f"/pair/{duplicate}/{canonical}")["texts"]["differences"]

    assert "Only the beginnings of these long texts are compared" in shown.text
    assert (found["words_a"], found["words_b"], found["is_cut"]) == (60_000, 1, True)
    assert 1_000_000 < len(shown.content) < 3_000_000


@pytest.mark.slow
def test_of_a_page_of_50_megabytes_the_view_says_that_it_is_too_large(own_url: str) -> None:
    with serve() as site, served(own_url) as page_site, browsing(page_site) as browser:
        keys_of = []
        for number in range(2):
            site.add(f"/{number}", "long text " * 5_000_000)
            fields = {"url": f"{site.url}/{number}", "html": f"<p>{WORDS} {number}", "store": "yes"}
            answer = browser.post("/check", **fields, headers={"Accept": "application/json"})
            keys_of.append(answer.json()["outcome"]["stored"]["key"])
        shown = browser.post("/pair/{}/{}".format(*keys_of))

    assert shown.status_code == 200
    assert "too large to be judged" in shown.text
    assert len(shown.content) < 100_000


def test_a_stored_url_is_fetched_as_it_is_stored(own_url: str) -> None:
    """Scrapy writes %27 in a query. Archives have the apostrophe, and a server may know only that."""
    paths = ["/it's?of='a'", "/it's?of=%27b%27"]
    with serve() as site, served(own_url) as page_site, browsing(page_site) as browser:
        stored = []
        for number, path in enumerate(paths):
            site.add(path, f"{WORDS} page {number}")
            fields = {"url": site.url + path, "html": f"<p>{WORDS} page {number}", "store": "yes"}
            answer = browser.post("/check", **fields, headers={"Accept": "application/json"})
            stored.append(answer.json()["outcome"]["stored"]["key"])
        shown = browser.post("/pair/{}/{}".format(*stored), layout="inline")

    assert site.requested == paths
    assert "<del>0</del>" in shown.text


def test_template_of_a_host_is_marked_in_a_page_of_it(own_url: str) -> None:
    menu = " ".join(f"menu{number}" for number in range(30))
    with serve() as site:
        for number in range(12):
            own = " ".join(f"page{number}word{word}" for word in range(60))
            site.add(f"/{number}", f"<p>{menu}</p><p>{own}</p>")
        links = "".join(f'<a href="/{number}">to {number}</a> ' for number in range(12))
        site.add("/", f"<p>{links}</p><p>{WORDS} the start</p>")
        crawl(SiteSpider, {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": own_url}, url=site.url)
        with served(own_url) as page_site, browsing(page_site) as browser:
            path = "/host?name=127.0.0.1"
            at_first = browser.get(path)
            as_json = {"Accept": "application/json"}
            token = re.findall(r'name="form_token" value="(\w+)"', at_first.text)[0]
            template_of = browser.json(path)["template_of"]
            found = browser.ask("POST", path, data={"form_token": token}, headers=as_json).json()["marked"]
            shown = browser.ask("POST", path, data={"form_token": token})
            forged = browser.ask("POST", path, data={"form_token": "0"})
            site.pages.clear()
            gone = browser.ask("POST", path, data={"form_token": token})

    assert _words(found, template=True) == menu
    assert _words(found, template=False).startswith("page")
    assert (found["kept"], found["pages"]) == (False, template_of)
    assert 'class="template"' not in at_first.text
    assert f'<span class="template">{menu} </span>' in shown.text
    assert forged.status_code == 400
    assert "HTTP status 404" in gone.text


def _words(marked: dict[str, Any], *, template: bool) -> str:
    return "".join(piece["text"] for piece in marked["pieces"] if piece["template"] is template).strip()


@pytest.mark.slow
def test_kept_texts_are_those_that_were_compared(database_url: str) -> None:
    with serve() as site:
        fill(site, database_url, NEARDUP_KEEP_TEXT=True)
        changed = "/clang-14/Tooling.html"
        site.pages[changed].body = site.pages[changed].body.replace(b"Clang", b"Changed")
        with served(database_url) as page_site, browsing(page_site) as browser:
            path = "/pair/{}/{}".format(*keys(browser, "clang-14/Tooling"))
            kept = browser.get(path)
            today = browser.post(path, layout="inline")
            inline = browser.get(path, layout="inline")
            as_json = browser.json(path)
            while_counting = browser.get("/host", name="127.0.0.1")
            page_site.figures.wait()
            counted = browser.get("/host", name="127.0.0.1")
            host = browser.json("/host", name="127.0.0.1")["marked"]
            removed = list(remove_pages(page_site.store, only_of(1), page_site.rule))[-1].pages
            left = _count(page_site)

    assert "As crawls kept them" in kept.text
    assert "<del>Changed</del>" not in kept.text
    assert "Today's texts" in today.text
    assert "<del>Changed" in today.text
    assert "text sheet inline" in inline.text
    assert as_json["texts"]["kept"] is host["kept"] is True
    assert "Refresh" in while_counting.headers or "counting" not in while_counting.text.lower()
    assert "Refresh" not in counted.headers
    assert (removed, left) == (29, 0)


def _count(site: Served) -> int:
    with site.store.reading() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(page_texts)).scalar_one())


@pytest.mark.slow
def test_a_damaged_text_is_none(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/n.db"
    with serve() as site:
        fill(site, url, NEARDUP_KEEP_TEXT=True)
    with Store.open(url, scheme=None) as store:
        with store.begin_write() as connection:
            connection.execute(sa.update(page_texts).values(text=b"no zlib"))
            page_id = connection.execute(sa.select(sa.func.min(simhash_values.c.id))).scalar_one()
        with store.reading() as connection:
            assert texts.text_of(connection, page_id, most=100) is None
            assert texts.text_of(connection, 0, most=100) is None


@pytest.mark.slow
def test_pairs_are_exported_with_kept_texts(tmp_path: Path) -> None:
    """The site is not served any more, so that the texts can come from nowhere else."""
    url = f"sqlite:///{tmp_path}/n.db"
    with serve() as site:
        fill(site, url, NEARDUP_KEEP_TEXT=True)
    with served(url) as page_site, browsing(page_site) as browser:
        duplicate, canonical = keys(browser, "clang-14/Tooling")
        path = f"/pair/{duplicate}/{canonical}"
        as_shown = re.search(r'name="seen" value="([^"]*)"', browser.get(path).text)
        assert as_shown is not None
        browser.post(f"{path}/decide", decision="different", note="", seen=unescape(as_shown[1]))
    file = tmp_path / "pairs.jsonl"

    assert main(["decisions", "export", "--database", url, str(file)]) == 0

    (pair,) = map(json.loads, file.read_text("utf-8").splitlines())
    assert pair["label"] == 0
    assert "Tooling" in pair["a_text"]
    assert pair["a_text"] != pair["b_text"]
