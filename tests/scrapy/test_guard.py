"""Where web pages and redirects may lead a crawl: real crawls on loopback, where only start URLs may lead to
private addresses.
"""

from __future__ import annotations

import base64
import json
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import scrapy

from neardup.errors import ConfigurationError
from tests.support.crawling import Page, Site, crawl, serve
from tests.support.places import ROOT
from tests.support.resolver import Names
from tests.support.spiders import Careless

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from tests.support.crawling import Crawl

PUBLIC = "93.184.216.34"
ALONE = {"DOWNLOADER_MIDDLEWARES": {"neardup.scrapy.guard.PrivateNetworkMiddleware": 90}}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["add-on", "alone"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Of both ways to have the guard."""
    if request.param == "alone":
        return ALONE
    return {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_GUARD": True,
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
    }


@pytest.fixture
def inner() -> Iterator[Site]:
    """Another port of the private address, to which no start URL leads."""
    with serve() as served:
        served.add("/", "within")
        yield served


class CopiesMeta(Careless):
    copies_meta = True


def urls(done: Crawl) -> list[str]:
    return [item["url"] for item in done.items]


def redirect(to: str) -> Page:
    return Page(b"", status=302, headers={"Location": to})


@pytest.mark.parametrize("spider", [Careless, CopiesMeta])
class TestPrivateNetworks:
    def test_a_start_url_may_be_private_and_all_of_its_place(
        self, settings: dict[str, Any], site: Site, spider: type[Careless]
    ) -> None:
        site.add("/", "start", "/next")
        site.add("/next", "next", "/last")
        site.pages["/last"] = redirect("/end")
        site.add("/end", "end")

        done = crawl(spider, settings, start=[f"{site.url}/"])

        assert urls(done) == [f"{site.url}{path}" for path in ("/", "/next", "/end")]
        assert done.neardup("guard_refused") == 0

    def test_links_to_other_places_are_refused_however_they_are_written(
        self, settings: dict[str, Any], site: Site, inner: Site, spider: type[Careless]
    ) -> None:
        hosts = [
            "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.0.0.1.", "localhost",
            "LOCALHOST",
            "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::1]", "0.0.0.0", "169.254.169.254",
            "10.1.2.3",
            "user:secret@127.0.0.1", "１２７。0。0。1",
        ]  # fmt: skip
        links = [f"{inner.url.replace('127.0.0.1', host)}/{number}" for number, host in enumerate(hosts)]
        site.add("/", "start", *links, "/next")
        site.add("/next", "next")

        done = crawl(spider, settings, start=[f"{site.url}/"])

        assert urls(done) == [f"{site.url}/", f"{site.url}/next"]
        assert inner.requested == []
        assert done.neardup("guard_refused") == len(hosts)
        refused = done.crawler.spider.refused  # type: ignore[union-attr]
        assert {url.rpartition("/")[2] for url in refused} == {str(number) for number in range(len(hosts))}
        for reason in refused.values():
            assert reason.startswith("IgnoreRequest: refused by neardup's guard: ")
            assert "private address" in reason
            assert "secret" not in reason

    def test_redirects_lead_there_neither(
        self, settings: dict[str, Any], site: Site, inner: Site, spider: type[Careless]
    ) -> None:
        site.pages["/"] = redirect(f"{inner.url}/1")
        site.add("/refreshed", "start", "/link")
        site.pages[
            "/refreshed"
        ].body += f'<meta http-equiv="refresh" content="0; url={inner.url}/2">'.encode()
        site.add("/page", "page", "/away")
        site.pages["/away"] = redirect(f"//{inner.url.partition('//')[2]}/3")

        done = crawl(spider, settings, start=[f"{site.url}{path}" for path in ("/", "/refreshed", "/page")])

        assert urls(done) == [f"{site.url}/page"]
        assert inner.requested == []
        assert done.neardup("guard_refused") == 3

    def test_both_may_be_start_urls(
        self, settings: dict[str, Any], site: Site, inner: Site, spider: type[Careless]
    ) -> None:
        site.add("/", "start", f"{inner.url}/other")
        inner.add("/other", "other")

        done = crawl(spider, settings, start=[f"{site.url}/", f"{inner.url}/"])

        assert sorted(urls(done)) == sorted([f"{site.url}/", f"{inner.url}/", f"{inner.url}/other"])

    def test_start_urls_under_one_private_name_are_looked_up_at_once(
        self, settings: dict[str, Any], site: Site, spider: type[Careless]
    ) -> None:
        starts = [f"{site.url.replace('127.0.0.1', 'localhost')}/{number}" for number in range(5)]
        for number in range(5):
            site.add(f"/{number}", f"start {number}")

        done = crawl(spider, settings | {"CONCURRENT_REQUESTS": 8}, start=starts)

        assert sorted(urls(done)) == starts
        assert done.neardup("guard_refused") == 0


class MoreStarts:
    """Adds start requests that the middleware near the spider does not see."""

    def __init__(self, url: str) -> None:
        self._url = url

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> MoreStarts:
        return cls(crawler.settings["MORE_STARTS"])

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in start:
            yield request
        yield scrapy.Request(self._url)


def test_start_requests_of_a_middleware_lead_anywhere(
    settings: dict[str, Any], site: Site, inner: Site
) -> None:
    site.add("/", "start")
    inner.add("/start", "within", "/next")
    inner.add("/next", "within, too")
    more = {"SPIDER_MIDDLEWARES": {MoreStarts: 500}, "MORE_STARTS": f"{inner.url}/start"}

    done = crawl(Careless, settings | more, start=[f"{site.url}/"])

    assert set(urls(done)) == {f"{site.url}/", f"{inner.url}/start", f"{inner.url}/next"}


@pytest.mark.parametrize("is_guarded", [False, True])
def test_the_setting_alone_decides(tmp_path: Path, site: Site, inner: Site, *, is_guarded: bool) -> None:
    site.add("/", "start", f"{inner.url}/")
    settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_ENABLED": False, "NEARDUP_GUARD": is_guarded}

    crawl(Careless, settings, start=[f"{site.url}/"])

    assert inner.requested == ([] if is_guarded else ["/"])


class TestOtherSchemes:
    @pytest.fixture
    def secret(self, tmp_path: Path) -> Path:
        file = tmp_path / "secret.html"
        file.write_text("<title>secret</title><p>secret")
        return file

    def test_nothing_but_http_is_followed_from_a_web_page(
        self, settings: dict[str, Any], site: Site, secret: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        links = [
            secret.as_uri(), f"file://localhost{secret}", "FILE:///etc/hostname", "data:text/html,<p>a",
            "ftp://127.0.0.1/a", "s3://a/b",
        ]  # fmt: skip
        site.add("/", "start", *links)
        site.pages["/"].body = site.pages["/"].body.replace(b"<body>", b'<base href="file:///etc/"><body>')

        done = crawl(CopiesMeta, settings, start=[f"{site.url}/", secret.as_uri()])

        assert sorted(urls(done)) == sorted([f"{site.url}/", secret.as_uri()])
        # One of them is the start URL that is known already.
        assert done.neardup("guard_refused") == len(links) - 1
        ours = [record for record in caplog.records if "was refused" in record.getMessage()]
        assert [(record.name, record.levelno) for record in ours] == [
            ("neardup.scrapy.guard", logging.WARNING)
        ]

    def test_redirects_of_any_component_lead_there_neither(
        self, settings: dict[str, Any], site: Site, secret: Path
    ) -> None:
        site.add("/", "start")
        more = {"DOWNLOADER_MIDDLEWARES": settings.get("DOWNLOADER_MIDDLEWARES", {}) | {ToFile: 800}}

        done = crawl(Careless, settings | more, start=[f"{site.url}/?{secret.as_uri()}"])

        assert urls(done) == []
        assert done.neardup("guard_refused") == 1

    def test_files_lead_to_files_if_their_origin_is_noted(
        self, settings: dict[str, Any], inner: Site, secret: Path, tmp_path: Path
    ) -> None:
        start = tmp_path / "start.html"
        start.write_text(f'<a href="secret.html">.</a><a href="{inner.url}/">.</a>')

        done = crawl(Careless, settings, start=[start.as_uri()])

        is_noted = "ADDONS" in settings
        assert urls(done) == ([start.as_uri(), secret.as_uri()] if is_noted else [start.as_uri()])
        assert done.neardup("guard_refused") == (1 if is_noted else 2)
        assert inner.requested == []

    def test_a_web_page_reached_from_a_file_leads_to_none(
        self, settings: dict[str, Any], site: Site, secret: Path, tmp_path: Path
    ) -> None:
        start = tmp_path / "start.html"
        start.write_text(f'<a href="{site.url}/web">.</a>')
        site.add("/web", "page", secret.as_uri())
        site.add("/", "start")

        done = crawl(CopiesMeta, settings, start=[f"{site.url}/", start.as_uri()])

        assert sorted(urls(done)) == sorted([f"{site.url}/", start.as_uri(), f"{site.url}/web"])
        assert done.neardup("guard_refused") == 1


class ToFile:
    """A middleware that follows what a server says, as some do."""

    def process_response(self, request: scrapy.Request, response: Response) -> Response | scrapy.Request:
        return request.replace(url=request.url.partition("?")[2])


class TestNames:
    @pytest.fixture
    def names(self, monkeypatch: pytest.MonkeyPatch) -> Names:
        return Names(monkeypatch)

    def test_a_name_that_is_private(
        self, settings: dict[str, Any], site: Site, inner: Site, names: Names
    ) -> None:
        names.answers["inner.example"] = ["127.0.0.1"]
        site.add("/", "start", inner.url.replace("127.0.0.1", "inner.example"))

        done = crawl(Careless, settings, start=[f"{site.url}/"])

        assert inner.requested == []
        assert done.neardup("guard_refused") == 1

    def test_a_name_that_is_private_when_it_is_connected_to(
        self, settings: dict[str, Any], site: Site, inner: Site, names: Names
    ) -> None:
        names.answers["rebound.example"] = [PUBLIC, "127.0.0.1"]
        site.add("/", "start", inner.url.replace("127.0.0.1", "rebound.example"))

        done = crawl(Careless, settings, start=[f"{site.url}/"])

        assert names.asked == ["rebound.example"] * 2  # by the guard, by aiohttp
        assert urls(done) == [f"{site.url}/"]
        assert done.neardup("guard_refused") == 1

    def test_a_public_start_url_stays_public(
        self, settings: dict[str, Any], site: Site, names: Names
    ) -> None:
        names.answers["rebound.example"] = [PUBLIC, "127.0.0.1"]
        site.add("/", "start")

        done = crawl(Careless, settings, start=[site.url.replace("127.0.0.1", "rebound.example")])

        assert urls(done) == []
        assert done.neardup("guard_refused") == 1

    def test_a_private_start_url_may_be_a_name(
        self, settings: dict[str, Any], site: Site, names: Names
    ) -> None:
        names.answers["intranet.example"] = ["127.0.0.1"]
        site.add("/", "start", "/next")
        site.add("/next", "next")

        done = crawl(Careless, settings, start=[site.url.replace("127.0.0.1", "intranet.example")])

        assert len(urls(done)) == 2
        assert done.neardup("guard_refused") == 0

    def test_what_cannot_be_resolved_is_retried_and_never_connected_to(
        self, settings: dict[str, Any], site: Site, inner: Site, names: Names
    ) -> None:
        names.answers["flaky.example"] = ["", "", "", "127.0.0.1"]
        site.add("/", "start", inner.url.replace("127.0.0.1", "flaky.example"))

        done = crawl(Careless, settings, start=[f"{site.url}/"])

        assert done.stats["retry/count"] == 2
        assert inner.requested == []
        assert names.asked == ["flaky.example"] * 3
        (reason,) = done.crawler.spider.refused.values()  # type: ignore[union-attr]
        assert reason.startswith("CannotResolveHostError: ")

    def test_a_public_name_is_not_looked_up_for_every_page(
        self, settings: dict[str, Any], site: Site, names: Names
    ) -> None:
        # The pages come from a proxy, which looks names up by itself.
        names.answers["public.example"] = [PUBLIC]
        site.add("/", "start", *(f"http://public.example/{number}" for number in range(20)))
        for number in range(20):
            site.add(f"http://public.example/{number}", "page")

        middlewares = settings.get("DOWNLOADER_MIDDLEWARES", {}) | {Proxied: 95}
        settings = {**settings, "DOWNLOADER_MIDDLEWARES": middlewares}

        done = crawl(Careless, settings, start=[f"{site.url}/"])

        assert len(urls(done)) == 21
        assert names.asked == ["public.example"]


class Proxied:
    """Sends what is for the public name to the server at the first page's address, as a proxy."""

    def process_request(self, request: scrapy.Request) -> None:
        if "public.example" in request.url:
            referer = request.headers["Referer"].decode()  # type: ignore[union-attr]
            request.meta["proxy"] = referer.rstrip("/")


class TestPauses:
    def test_links_to_a_start_place_are_followed_after_a_pause(
        self, settings: dict[str, Any], site: Site, inner: Site, tmp_path: Path
    ) -> None:
        site.add("/", "start", *(f"/{number}" for number in range(9)), f"{inner.url}/")
        for number in range(9):
            site.add(f"/{number}", "page")
        job = settings | {"JOBDIR": str(tmp_path / "job")}

        first = crawl(Careless, job | {"CLOSESPIDER_PAGECOUNT": 3}, start=[f"{site.url}/"])
        second = crawl(Careless, job, start=[f"{site.url}/"])

        assert len(urls(first)) < 10
        assert len(urls(first) + urls(second)) == 10
        assert inner.requested == []


PROCESS = """
import base64, json, sys
from scrapy.crawler import AsyncCrawlerProcess, CrawlerProcess
from tests.support.crawling import QUIET
from tests.support.resolver import Names
from tests.support.spiders import Careless
import pytest

arguments = json.loads(base64.b64decode(sys.argv[1]))
names = Names(pytest.MonkeyPatch())
names.answers = arguments["names"]
settings = {**QUIET, "TWISTED_REACTOR_ENABLED": True, **arguments["settings"]}
is_asyncio = "asyncio" in arguments["settings"]["TWISTED_REACTOR"]
process = (AsyncCrawlerProcess if is_asyncio else CrawlerProcess)(settings)
crawler = process.create_crawler(Careless)
process.crawl(crawler, start=arguments["start"])
process.start()
stats = crawler.stats.get_stats()
print(json.dumps({"asked": names.asked, "refused": crawler.spider.refused, "stats": stats}, default=str))
"""


@pytest.mark.slow
@pytest.mark.parametrize("reactor", ["asyncioreactor.AsyncioSelectorReactor", "selectreactor.SelectReactor"])
def test_with_a_reactor_the_connection_takes_the_answer_that_was_checked(
    site: Site, inner: Site, reactor: str
) -> None:
    names = {
        "intranet.example": ["127.0.0.1"],
        "inner.example": ["127.0.0.1"],
        "rebound.example": [PUBLIC, "127.0.0.1"],
        "nowhere.example": [""],
    }
    more = {"TWISTED_REACTOR": f"twisted.internet.{reactor}", "DOWNLOAD_TIMEOUT": 1, "RETRY_TIMES": 1}
    start = site.url.replace("127.0.0.1", "intranet.example")
    hosts = ("inner.example", "Rebound.example", "nowhere.example", "localhost", "127.1", "[::1]")
    site.add("/", "start", "/next", *(inner.url.replace("127.0.0.1", host) for host in hosts))
    site.add("/next", "next")
    arguments = {"settings": ALONE | more, "names": names, "start": [start]}

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROCESS, base64.b64encode(json.dumps(arguments).encode())],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    told = json.loads(done.stdout.splitlines()[-1])
    assert site.requested == ["/", "/next"]
    assert inner.requested == []
    assert told["stats"]["neardup/guard_refused"] == 4
    # By the guard alone: the connection, which fails, is made to the public address.
    assert told["asked"].count("rebound.example") == 1
    assert "nowhere.example" in told["asked"]


def test_a_wrong_value_stops_the_crawl() -> None:
    settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_GUARD": "perhaps"}

    with pytest.raises(ConfigurationError, match="NEARDUP_GUARD must be True or False, not 'perhaps'"):
        crawl(Careless, settings, start=["data:,"])
