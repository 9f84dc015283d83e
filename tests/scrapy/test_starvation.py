"""A crawl that ends much smaller than the last one of its spider says so."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.crawler import AsyncCrawlerRunner

from tests.support.crawling import QUIET, Crawl, Site, crawl, serve
from tests.support.spiders import LinkSpider, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


class OtherSpider(LinkSpider):
    name = "other"


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as served:
        served.add("/", text("start"), *(f"/{number}" for number in range(9)))
        for number in range(9):
            served.add(f"/{number}", text(f"page{number}x"))
        yield served


@pytest.fixture
def settings(database_url: str, caplog: pytest.LogCaptureFixture) -> dict[str, Any]:
    caplog.set_level(logging.INFO)
    return {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": database_url}


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        r.getMessage() for r in caplog.records if r.levelno == logging.WARNING and "had 10;" in r.getMessage()
    ]


def much_smaller(
    site: Site, settings: dict[str, Any], spider: type[LinkSpider] = LinkSpider, **more: Any
) -> Crawl:
    site.add("/", text("start"), "/0", "/1")
    return crawl(spider, settings | more, start=site.url)


def test_a_warning_names_pages_that_are_missing(
    site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    crawl(LinkSpider, settings, start=site.url)
    assert told(caplog) == []

    done = much_smaller(site, settings)

    assert done.neardup("last_crawl_pages") == 10
    (warning,) = told(caplog)
    assert "with 3 pages" in warning
    assert f"{site.url}/2, {site.url}/3" in warning
    assert any(
        "SMALLER     the last crawl of this spider had 10 pages" in r.getMessage() for r in caplog.records
    )


def test_the_same_number_of_pages_under_other_addresses_is_not_smaller(
    site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    crawl(LinkSpider, settings, start=site.url)
    site.add("/", text("start"), *(f"/{number}?sid=2" for number in range(9)))
    for number in range(9):
        site.add(f"/{number}?sid=2", text(f"page{number}x"))

    done = crawl(LinkSpider, settings, start=site.url)

    assert done.neardup("duplicates") == 9
    assert told(caplog) == []


@pytest.mark.parametrize(
    ("spider", "more"),
    [(OtherSpider, {}), (LinkSpider, {"CLOSESPIDER_ITEMCOUNT": 1})],
    ids=["another spider", "a limit of the user"],
)
def test_what_cannot_be_compared_is_not(
    site: Site,
    settings: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
    spider: type[LinkSpider],
    more: dict[str, Any],
) -> None:
    crawl(LinkSpider, settings, start=site.url)

    much_smaller(site, settings, spider, **more)

    assert told(caplog) == []


def test_another_site_is_not_compared(
    site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    crawl(LinkSpider, settings, start=site.url)

    crawl(LinkSpider, settings, start=site.url.replace("127.0.0.1", "localhost") + "/1")

    assert told(caplog) == []


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 1], ids=["the first one ends last", "the second one ends last"])
def test_workers_that_share_a_site_are_not_compared(
    site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture, late: int
) -> None:
    crawl(LinkSpider, settings, start=site.url)

    async def run() -> None:
        first_has_ended = asyncio.Event()

        class LateSpider(LinkSpider):
            async def start(self) -> AsyncIterator[Any]:
                await first_has_ended.wait()
                async for request in super().start():
                    yield request

        runner = AsyncCrawlerRunner({**QUIET, **settings})
        starts = [site.url, site.url]
        starts[late] += "/0"
        spiders = [LinkSpider, LinkSpider]
        spiders[late] = LateSpider
        tasks = [runner.crawl(spider, start=start) for spider, start in zip(spiders, starts, strict=True)]
        await tasks[1 - late]
        first_has_ended.set()
        await tasks[late]

    asyncio.run(run())

    assert told(caplog) == []
