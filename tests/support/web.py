"""The live page for tests: a store that real crawls have filled, and a browser without a screen."""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import httpx

from crawler.spiders.site import SiteSpider
from neardup.cli.fetch import fetch
from neardup.detection.detector import DetectorOptions
from neardup.store.store import Store
from neardup.web.app import application
from neardup.web.checking import KnownPages
from neardup.web.counting import Figures
from neardup.web.security import Secret
from neardup.web.site import Site as Served
from neardup.web.trials import Trials
from tests.support.crawling import Page, Site, crawl
from tests.support.places import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import ASGIApp

TOKEN = "a-token-for-tests"
HOSTILE = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">"
WORDS = " ".join(f"word{number}" for number in range(60))
ARABIC = " ".join(["مرحبا بالعالم هذا نص طويل بما يكفي للمقارنة بين صفحتين متشابهتين جدا في كل شيء"] * 3)
CHINESE = "近似重复的网页浪费爬虫的预算，因此我们在抓取时识别它们，并且把每一个关系保存在数据库里。" * 3


def fill(site: Site, url: str, **more: object) -> None:
    """Have a crawl store a site: two versions of a manual, hostile pages, and texts of other scripts."""
    for version in ("clang-13", "clang-14"):
        for file in sorted((PAGES / version).glob("*.html")):
            site.pages[f"/{version}/{file.name}"] = Page(file.read_bytes())
    bodies = {
        "/evil/one.html": f"<title>{HOSTILE}</title><p>{WORDS} {HOSTILE.replace('<', '&lt;')}</p>",
        "/evil/two.html": f"<title>{HOSTILE}</title><p>{WORDS} {HOSTILE.replace('<', '&lt;')} more</p>",
        "/ar/1.html": f"<p dir=rtl>{ARABIC}</p>",
        "/ar/%D8%B5%D9%81%D8%AD%D8%A9.html": f"<p dir=rtl>{ARABIC} أكثر</p>",
        "/zh/1.html": f"<p>{CHINESE}</p>",
        "/zh/2.html": f"<p>{CHINESE}更多</p>",
    }
    paths = ["/evil/%3Cb%3Eone.html?q=%22", *list(bodies)[1:]]
    for path, body in zip(paths, bodies.values(), strict=True):
        site.pages[path] = Page(f"<html><meta charset=utf-8><body>{body}</body></html>".encode())
    links = "".join(f'<p><a href="{path}">page {number}</a></p>' for number, path in enumerate(site.pages))
    site.pages["/"] = Page(f"<html><body>{links} {WORDS.upper()} the start</body></html>".encode())
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": url,
        "NEARDUP_HISTORY": True,
        "NEARDUP_PREDICT": "off",
        **more,
    }
    crawl(SiteSpider, settings, url=site.url)


@contextmanager
def served(url: str, *, private: bool = True, person: str = "ada") -> Iterator[Served]:
    """The live page of a database."""
    options = DetectorOptions()
    reader = options.make_reader()
    with Store.open(url, scheme=None, create=False) as store:
        rule = options.make_rule(reader.features)
        figures, trials = Figures(store, rule), Trials(store, rule)
        yield Served(
            store=store,
            rule=rule,
            figures=figures,
            trials=trials,
            known=KnownPages(store, options),
            secret=Secret(TOKEN),
            options=options,
            reader=reader,
            fetch=partial(fetch, private=private, trusted=False),
            person=person,
            settings={},
        )
        figures.stop()
        trials.stop()


class Browser:
    """Asks the application without a network, and keeps its cookie."""

    def __init__(self, app: ASGIApp, *, known: bool = True) -> None:
        self._runner = asyncio.Runner()
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, client=("127.0.0.1", 1)), base_url="http://127.0.0.1:8642"
        )
        if known:
            self.get("/", token=TOKEN)

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self._runner.run(self._client.request(method, path, **options))

    def get(self, path: str, *, headers: dict[str, str] | None = None, **query: Any) -> httpx.Response:
        return self.ask("GET", path, params=query or None, headers=headers)

    def json(self, path: str, **query: Any) -> Any:
        response = self.get(path, headers={"Accept": "application/json"}, **query)
        assert response.status_code == 200, response.text
        return response.json()

    def form_token(self) -> str:
        """As it stands in the forms of a page."""
        key = self.json("/clusters")["clusters"]["rows"][0]["key"]
        member = self.json(f"/cluster/{key}")["members"]["rows"][0]["key"]
        found = re.search(r'name="form_token" value="(\w+)"', self.get(f"/pair/{member}/{key}").text)
        assert found is not None
        return found[1]

    def post(self, path: str, *, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
        return self.ask("POST", path, data={"form_token": self.form_token(), **fields}, headers=headers)

    def close(self) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()


@contextmanager
def browsing(site: Served, *, known: bool = True) -> Iterator[Browser]:
    """A browser that looks at the page."""
    browser = Browser(application(site), known=known)
    try:
        yield browser
    finally:
        browser.close()


def keys(browser: Browser, part: str) -> tuple[str, str]:
    """Keys of a duplicate with this in its URL, and of its canonical page."""
    for found in browser.json("/search", q=part)["found"]["pages"]["rows"]:
        if found["kind"] == "duplicate":
            return found["key"], browser.json(f"/page/{found['key']}")["page"]["canonical"]["key"]
    raise AssertionError(part)


class Elements(HTMLParser):
    """All start tags of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.met: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.met.append((tag, dict(attrs)))
