"""Pictures of the page of ``neardup web``, as PNG: ``python -m docs.page_pictures`` writes them to
``docs/images``.

The store is made by a crawl of the pages of the tests. Debian's chromium and Playwright are needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
_WIDTH, _HEIGHT = 1100, 700


def crawl(url: str) -> None:
    environment = {**os.environ, "NEARDUP_DATABASE_URL": url}
    arguments = ["crawl", "site", "-a", "url=tests/pages", "-s", "NEARDUP_KEEP_TEXT=1", "-L", "ERROR"]
    subprocess.run([sys.executable, "-m", "scrapy", *arguments], cwd=ROOT, env=environment, check=True)  # noqa: S603  # ours


def take(page: Page, root: str) -> None:
    page.goto(root)
    page.wait_for_selector("text=Growth")
    page.screenshot(path=IMAGES / "web-overview.png")
    page.goto(f"{root}thresholds")
    page.fill("#max_distance", "2")
    page.click("text=Show")
    page.wait_for_selector("text=It would be so")
    page.screenshot(path=IMAGES / "web-thresholds.png", full_page=True)
    page.goto(f"{root}search?q=clang-14/Tooling")
    page.locator("main li a").first.click()
    page.click("text=Compare side by side")
    page.wait_for_selector("#texts")
    page.locator("#texts").scroll_into_view_if_needed()
    page.locator("section[aria-labelledby=texts]").screenshot(path=IMAGES / "web-texts.png")


def main() -> None:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # of the extra test

    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/neardup.db"
        crawl(url)
        arguments = ["web", "--database", url, "--port", "0", "--no-browser"]
        with subprocess.Popen(  # noqa: S603  # ours
            [sys.executable, "-m", "neardup", *arguments], stdout=subprocess.PIPE, text=True
        ) as server:
            output = server.stdout or sys.exit("the page says nothing")
            output.readline()
            address = output.readline().strip()
            try:
                with sync_playwright() as playwright:
                    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
                    browser = playwright.chromium.launch(
                        executable_path=shutil.which("chromium"), args=sandbox
                    )
                    page = browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT})
                    page.goto(address)
                    take(page, address.partition("?")[0])
                    browser.close()
            finally:
                server.terminate()


if __name__ == "__main__":
    main()
