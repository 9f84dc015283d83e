"""The page in a real browser, served by the command: by hand, by keyboard, narrow, large, dark, for a screen
reader, and with pages that mean harm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from neardup.web import html_report
from tests.support.crawling import serve
from tests.support.places import PAGES, ROOT
from tests.support.ready_databases import ready_database
from tests.support.web import fill, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Locator, Page

    from tests.support.crawling import Site

pytestmark = pytest.mark.slow

VIEWS = (
    "",
    "clusters",
    "crawls",
    "decisions",
    "check",
    "thresholds",
    "search?q=clang",
    "host?name=127.0.0.1",
    "clusters?host=none",
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=sandbox)
        yield browser
        browser.close()


def filled(site: Site, url: str) -> None:
    """Fill a store in another thread: Playwright keeps an event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(fill, site, url).result()


@contextmanager
def running(url: str) -> Iterator[str]:
    """The address that the command prints, with its token."""
    arguments = ["web", "--database", url, "--port", "0", "--no-browser", "--private"]
    with subprocess.Popen(
        [sys.executable, "-m", "neardup", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        try:
            server.stdout.readline()
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The page of a SQLite store; the crawled site is still served."""
    url = f"sqlite:///{tmp_path_factory.mktemp('browser')}/n.db"
    with serve() as site:
        filled(site, url)
        with running(url) as found:
            yield found


def open_page(chromium: Browser, address: str, **options: object) -> tuple[Page, str, list[str]]:
    """A page that knows the token, the address without it, and what the browser complains of."""
    context: BrowserContext = chromium.new_context(**options)  # type: ignore[arg-type]
    context.set_default_timeout(30_000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    page.wait_for_selector("text=Growth")  # the figures come by themselves
    return page, page.url, complaints


@pytest.mark.parametrize("backend", ["sqlite", "mysql"])
def test_from_the_overview_to_a_decision(backend: str, chromium: Browser, tmp_path: Path) -> None:
    with ready_database(backend, tmp_path) as url, serve() as site:
        filled(site, url)
        with running(url) as address:
            page, root, complaints = open_page(chromium, address, java_script_enabled=False)
            assert "token" not in root
            page.click("nav >> text=Clusters")
            page.fill("#least", "1")
            page.select_option("#order", "newest")
            page.click("text=Show")
            assert "order=newest" in page.url
            page.fill("#q", "clang-14/Tooling")
            page.press("#q", "Enter")
            page.click("main li a >> text=clang-14/Tooling")
            page.click("text=Compare side by side")
            page.click("text=Fetch and compare in two columns")
            page.wait_for_selector("del >> text=14")
            page.fill("#note", "another version")
            page.click("button >> text=Different")
            page.wait_for_selector("main >> text=another version")
            page.wait_for_selector("text=Neither is stored as a duplicate")
            page.click("nav >> text=Decisions")
            page.click("main button >> text=Undo")
            page.wait_for_selector("text=undone by")
            assert complaints == []
            page.context.close()


def test_sliders_and_the_form_that_stores_a_page(chromium: Browser, tmp_path: Path) -> None:
    with ready_database("postgresql", tmp_path) as url, serve() as site:
        filled(site, url)
        with running(url) as address:
            page, root, complaints = open_page(chromium, address, java_script_enabled=False)
            page.goto(f"{root}thresholds")
            slider = page.get_by_label(re.compile("^Bits that may differ, from"))
            before = int(page.input_value("#max_distance"))
            slider.press("Home")
            assert slider.input_value() == "0"
            assert page.input_value("#max_distance") == str(before)
            page.click("text=Show")
            page.wait_for_selector("text=It would be so")
            assert page.input_value("#max_distance") == "0"
            lost = page.locator("dl.figures > div", has_text="duplicates become canonical").locator("dd")
            assert int(lost.first.text_content() or "0") > 0
            page.click("button >> text=Apply")
            page.wait_for_selector("h2 >> text=Applied")

            site.add_folder(PAGES / "clang-15")  # which the crawl has not seen
            page.click("nav >> text=Compare")
            page.fill("#url", f"{site.url}/Tooling.html")
            page.click("main button >> text=Compare")
            page.wait_for_selector("text=What it took")
            assert page.locator("text=is stored as").count() == 0
            page.check("#store")
            page.click("main button >> text=Compare")
            page.click("main a >> text=The page")
            page.wait_for_selector("h1 >> text=Tooling.html")
            page.click("nav >> text=Crawls")
            page.wait_for_selector("main tbody tr:first-child >> text=check")
            assert complaints == []
            page.context.close()


def test_hostile_pages_stay_text(chromium: Browser, address: str) -> None:
    page, root, complaints = open_page(chromium, address)
    page.goto(f"{root}search?q=evil")
    page.click("main li a >> text=two.html")
    page.click("text=Compare side by side")
    page.click("button >> text=inline")

    page.wait_for_selector("text=onerror=")
    assert page.title() == "Pair · neardup"
    assert page.evaluate("document.scripts.length + document.images.length") == 0
    assert complaints == []
    page.context.close()


def test_a_foreign_page_can_do_nothing(chromium: Browser, address: str) -> None:
    page, root, _ = open_page(chromium, address)
    key = page.locator("a[href^='/cluster/']").first.get_attribute("href")
    assert key is not None
    with serve() as evil:
        forged = f"{root}page/{key.rpartition('/')[2]}/decide"
        evil.add("/", f'<form id=f method=post action="{forged}"><input name=decision value=pin></form>')
        page.goto(f"{evil.url}/")
        page.evaluate("document.getElementById('f').submit()")
        page.wait_for_url(f"{root}**")
        assert "refused" in page.content()
        page.goto(f"{evil.url}/")
        read = "url => fetch(url, {credentials: 'include'}).then(r => r.text()).catch(() => 'refused')"
        assert page.evaluate(read, f"{root}clusters") == "refused"
        page.goto(f"{root}decisions")
        page.wait_for_selector("text=Nobody has decided anything")
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_for_those_who_cannot_see_well(chromium: Browser, address: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, root, _ = open_page(chromium, address, color_scheme=scheme, bypass_csp=True)
    paths = list(VIEWS)
    page.goto(f"{root}clusters")
    follow(page, page.locator("tbody th a").first)
    paths.append(page.url.removeprefix(root))
    follow(page, page.locator("main a", has_text=re.compile("^compare$")).first)
    follow(page, page.locator("text=Fetch and compare in two columns"))
    found = {"pair": Axe().run(page).response["violations"]}
    for path in paths:
        page.goto(root + path)
        found[path] = Axe().run(page).response["violations"]
    page.context.close()

    serious = {
        (path, violation["id"], violation["nodes"][0]["html"][:80])
        for path, violations in found.items()
        for violation in violations
        if violation["impact"] in {"serious", "critical"}
    }
    assert serious == set()


def test_by_keyboard_alone(chromium: Browser, address: str) -> None:
    page, root, _ = open_page(chromium, address)
    page.goto(f"{root}clusters")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the content"
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    for _ in range(30):
        page.keyboard.press("Tab")
        focused = page.evaluate("document.activeElement.getAttribute('href')") or ""
        if focused.startswith("/cluster/"):
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid"
            page.keyboard.press("Enter")
            break
    page.wait_for_url(re.compile("/cluster/"))
    page.context.close()


def follow(page: Page, link: Locator) -> None:
    """Click, and wait until the next page is there as a whole: a click waits for its first bytes only."""
    with page.expect_navigation():
        link.click()


def of_a_pair(page: Page, root: str, part: str) -> list[str]:
    """The paths of a duplicate with this in its URL, of its cluster, and of the pair, which is open then."""
    page.goto(f"{root}search?q={part}")
    follow(page, page.locator("main li", has_text=" duplicate").locator("a").first)
    duplicate = page.url.removeprefix(root)
    follow(page, page.locator("text=Compare side by side"))
    pair = page.url.removeprefix(root)
    return [duplicate, f"cluster/{pair.split('/')[-1]}", pair]


@pytest.mark.parametrize("width", [320, 1100])
def test_narrow_windows_and_large_letters_need_no_sideways_scrolling(
    chromium: Browser, address: str, width: int
) -> None:
    # 320 pixels are 1280 at 400 %; tables scroll by themselves.
    page, root, _ = open_page(chromium, address, viewport={"width": width, "height": 700})
    wide, cut = [], []
    for path in (*VIEWS, *of_a_pair(page, root, "Tooling")):
        page.goto(root + path)
        if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
            wide.append(path)
        tables = "[...document.querySelectorAll('.table')]"
        if page.evaluate(f"{tables}.some(one => one.scrollWidth > one.clientWidth)"):
            cut.append(path)
    page.context.close()

    assert wide == []
    assert width == 320 or cut == []


def test_texts_from_right_to_left(chromium: Browser, address: str) -> None:
    page, root, _ = open_page(chromium, address)
    of_a_pair(page, root, "ar/")
    follow(page, page.locator("main button >> text=inline"))
    inline = page.evaluate("getComputedStyle(document.querySelector('.text.inline')).direction")
    follow(page, page.locator("text=Fetch and compare in two columns"))
    second = "getComputedStyle([...document.querySelectorAll('.row')].at(-1).lastElementChild)"
    column = page.evaluate(f"[{second}.direction, {second}.borderLeftWidth, {second}.borderRightWidth]")
    page.context.close()

    assert inline == "rtl"
    assert column == ["rtl", "1px", "0px"]


def test_the_file_asks_for_nothing(chromium: Browser, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/n.db"
    with serve() as site:
        filled(site, url)
    with served(url) as page_site:
        html_report.write(page_site.store, page_site.rule, tmp_path / "report.html")
    page = chromium.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.goto((tmp_path / "report.html").as_uri())

    assert asked == [(tmp_path / "report.html").as_uri()]
    assert complaints == []
    assert page.locator("svg.chart").count() == 5
    page.close()
