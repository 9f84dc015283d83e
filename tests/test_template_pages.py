"""One error page must not swallow a crawl: a site of real pages whose missing pages answer 200 with a page of the same template."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import pytest
import scrapy

from neardup.scheme import Scheme
from neardup.store import reports
from neardup.store.store import Store
from neardup.verdict import Kind
from neardup.watch import FEWEST_ADDRESSES
from tests.crawling import Page, Site, crawl, serve
from tests.test_pages import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy.http import Response

MISSING = [f"/gone/{word}-{number}.html" for number, word in enumerate(("tools", "guide", "api") * 10)]
assert len(MISSING) > FEWEST_ADDRESSES

_CONTENT = re.compile(
    r'(?<=<div class="content" role="main">).*?(?=</div>\s*<div class="bottomnav")', re.DOTALL
)
_MESSAGE = """<h1>Not found</h1><p>There is no page {path} on this server. It may have been moved, or it has never been here. Please
check the address for mistakes, try the search at the top of every page, or go back to the table of contents and look for it from there.
If you think that this is an error of ours, write to the list of the users.</p>"""


class FolderSpider(scrapy.Spider):
    name = "folder"

    def __init__(self, start: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [start]

    def parse(self, response: Response) -> Iterator[Any]:
        for href in response.css("a.listed::attr(href)").getall():
            yield response.follow(href)


@pytest.fixture
def site() -> Iterator[Site]:
    """The pages of one version of the Clang manual, and links to pages that are gone, between them."""
    with serve() as served:
        served.add_folder(PAGES / "clang-13")
        real = list(served.pages)
        frame = served.pages["/ClangCheck.html"].body.decode()
        for path in MISSING:
            page = _CONTENT.sub(_MESSAGE.format(path=path), frame, count=1)
            assert path in page
            served.pages[path] = Page(page.encode(), headers={"Content-Type": "text/html"})
        links = [link for pair in zip(MISSING, real * 3, strict=False) for link in pair]
        anchors = "".join(f'<a class="listed" href="{link}">entry {i}</a> ' for i, link in enumerate(links))
        served.pages["/"] = Page(
            f"<body><p>{anchors}</p></body>".encode(), headers={"Content-Type": "text/html"}
        )
        yield served


def test_the_error_page_is_flagged_once_and_real_pages_are_not_swallowed(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = f"sqlite:///{tmp_path}/n.db"
    settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url}

    done = crawl(FolderSpider, settings, start=f"{site.url}/")

    assert done.neardup("duplicates") == len(MISSING) - 1
    assert done.neardup("flagged") == 1
    warnings = [record.message for record in caplog.records if "addresses" in record.message]
    assert len(warnings) == 1
    assert f"{site.url}{MISSING[0]} has near-duplicates at {FEWEST_ADDRESSES} addresses" in warnings[0]
    with Store.open(url, scheme=str(Scheme())) as store, store.reading() as connection:
        (flagged,) = reports.largest_clusters(connection, reports.Filters(), limit=10, flagged=True)
    assert (flagged.canonical_url, flagged.duplicates) == (f"{site.url}{MISSING[0]}", len(MISSING) - 1)


@pytest.mark.parametrize("content", ["body", "main", "learned"])
def test_every_real_page_is_new(site: Site, tmp_path: Path, content: str) -> None:
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
        "NEARDUP_CONTENT": content,
    }

    done = crawl(FolderSpider, settings, start=f"{site.url}/")

    real = [path for path in site.pages if path not in MISSING]
    assert done.neardup(Kind.NEW.value) >= len(real)
    assert done.neardup("pages") == len(site.pages)
