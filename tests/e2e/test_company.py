"""The add-on with its defaults beside other parts of Scrapy: the same pages and items as without it.

``python -m benchmarks.bench_company`` does the same with processes of their own, the whole site, and plugins.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner

from tests.support.crawling import QUIET
from tests.support.databases import new_database
from tests.support.sites.company import Company
from tests.support.sites.company_runs import Ground, Outcome
from tests.support.sites.company_spiders import (
    CompanySpider,
    FeedSpider,
    MapSpider,
    MembersSpider,
    RulesSpider,
    SecondSpider,
)
from tests.support.sites.company_workers import REDIS_URL, crawl_with_two_workers, is_deferred, redis_cli
from tests.support.sites.served import serve_site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from tests.support.sites.served import Served

pytestmark = pytest.mark.slow

FOLDERS = ("clang-13", "clang-14")


@pytest.fixture
def served() -> Iterator[Served]:
    """A part of the site: 24 real pages in two versions."""
    site = Company(FOLDERS, products=8, members=6)
    site.keys = site.public | site.inside
    with serve_site(site) as served:
        yield served


@pytest.fixture(autouse=True)
def _no_complaints(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The add-on warns of nothing in any of these crawls."""
    yield
    complaints = [
        record.getMessage()
        for record in caplog.get_records("call")
        if record.name.startswith("neardup")
        and record.levelno >= logging.WARNING
        and not record.getMessage().startswith("neardup: native core: no")
    ]
    assert not complaints


class Site:
    """Crawls of the site in this process, into one outcome each, over databases of their own."""

    def __init__(self, served: Served, folder: Path) -> None:
        self._served = served
        self._folder = folder

    def crawl(
        self,
        *spiders: type[CompanySpider],
        addon: bool,
        settings: dict[str, Any] | None = None,
        stop_at: int = 0,
        outcome: Outcome | None = None,
    ) -> Outcome:
        """Run spiders together to their end; ``stop_at``: as SIGINT does, after so many pages."""
        outcome = outcome or Outcome()
        mine = {"NEARDUP_DATABASE_URL": f"sqlite:///{self._folder / 'neardup.db'}"} if addon else {}
        runner = AsyncCrawlerRunner(
            {**QUIET, **mine, "ADDONS": {"neardup.Addon": 500} if addon else {}, **(settings or {})}
        )

        async def run() -> None:
            crawlers = [runner.create_crawler(spider) for spider in spiders]
            for crawler in crawlers:
                self._watch(crawler, outcome, stop_at)
            await asyncio.gather(*(runner.crawl(crawler, start=self._served.start) for crawler in crawlers))
            outcome.stats += [crawler.stats.get_stats() for crawler in crawlers]

        asyncio.run(run())
        return outcome

    def _watch(self, crawler: Crawler, outcome: Outcome, stop_at: int) -> None:
        stopping: list[Any] = []

        def page(response: Response, request: Request) -> None:
            if response.status == 200:
                outcome.pages.append(request.url.removeprefix(self._served.url))
            if len(outcome.pages) == stop_at:
                stopping.append(asyncio.ensure_future(crawler.stop_async()))

        def item(item: Any) -> None:
            outcome.items[json.dumps(item, sort_keys=True)] += 1

        crawler.signals.connect(page, signal=signals.response_received, weak=False)
        crawler.signals.connect(item, signal=signals.item_scraped, weak=False)


@pytest.fixture
def site(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = tests.support.sites.settings\n")
    return Site(served, tmp_path)


def assert_equal(without: Outcome, with_addon: Outcome) -> None:
    assert Counter(with_addon.pages) == Counter(without.pages)
    assert with_addon.items == without.items
    assert with_addon.stat("neardup/links_deferred") > 0
    assert with_addon.errors == without.errors == 0


@pytest.mark.parametrize("spider", [CompanySpider, RulesSpider, MapSpider, FeedSpider])
def test_kinds_of_spiders(site: Site, served: Served, spider: type[CompanySpider]) -> None:
    without = site.crawl(spider, addon=False)
    assert isinstance(served.site, Company)
    assert served.site.public <= without.unique
    assert_equal(without, site.crawl(spider, addon=True))


def test_login(site: Site, served: Served) -> None:
    without = site.crawl(MembersSpider, addon=False)
    assert isinstance(served.site, Company)
    assert served.site.keys - {"/members/"} <= without.unique | {"/members/?welcome=yes"}
    assert_equal(without, site.crawl(MembersSpider, addon=True))


def test_http_cache(site: Site, served: Served) -> None:
    outcomes = []
    for addon in (False, True):
        settings = {"HTTPCACHE_ENABLED": True, "HTTPCACHE_DIR": f"cache-{addon}"}
        outcome = site.crawl(CompanySpider, addon=addon, settings=settings)
        served.begin()
        site.crawl(CompanySpider, addon=addon, settings=settings, outcome=outcome)
        assert not served.log
        outcomes.append(outcome)
    assert_equal(*outcomes)


def test_two_spiders_in_one_process_on_one_database(site: Site) -> None:
    without = site.crawl(CompanySpider, SecondSpider, addon=False)
    assert_equal(without, site.crawl(CompanySpider, SecondSpider, addon=True))


def test_job_paused_and_resumed(site: Site) -> None:
    outcomes = []
    for addon in (False, True):
        settings = {"JOBDIR": f"job-{addon}"}
        outcome = site.crawl(CompanySpider, addon=addon, settings=settings, stop_at=50)
        assert len(outcome.pages) < 100
        site.crawl(CompanySpider, addon=addon, settings=settings, outcome=outcome)
        outcomes.append(outcome)
    assert_equal(*outcomes)


def test_two_workers_of_scrapy_redis_on_postgresql(served: Served, tmp_path: Path) -> None:
    pytest.importorskip("scrapy_redis")
    try:
        redis_cli("ping")
    except (subprocess.CalledProcessError, FileNotFoundError) as exc:
        reason = f"no redis at {REDIS_URL}: {exc}"
        if os.environ.get("NEARDUP_TEST_SERVERS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    ground = Ground(tmp_path / "project", addon=True)
    with new_database("postgresql", tmp_path) as database:
        popped = crawl_with_two_workers(ground, served, database)
    outcome = ground.gather()
    assert isinstance(served.site, Company)
    assert not outcome.neardup_lines
    assert served.site.public <= outcome.unique, outcome.shown + outcome.log
    deferred = [one for one in popped if is_deferred(one)]
    assert deferred
    assert all(one["cluster"] is not None or one["predicted"] for one in deferred)
    assert not [one for one in deferred if one["ordinary"]]
    assert all(one["priority"] == -one["score"] for one in popped)
