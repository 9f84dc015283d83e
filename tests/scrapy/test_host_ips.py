"""The IP addresses that real crawls store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import scrapy
import sqlalchemy as sa

from crawler.spiders.site import SiteSpider
from neardup.store.schema import host_ips
from neardup.store.store import Store
from tests.support.crawling import crawl, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from scrapy.http import Response

WORDS = " ".join(f"word{number}" for number in range(60))


def rows_of(url: str) -> list[Any]:
    with Store.open(url, scheme=None, create=False) as store, store.reading() as connection:
        return list(connection.execute(sa.select(host_ips).order_by(*host_ips.primary_key)))


def test_each_crawl_notes_the_ip_addresses_of_its_hosts_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/n.db"
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": url,
        "NEARDUP_SCOPE": "host",
        "ROBOTSTXT_OBEY": False,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
    }
    with serve() as site:
        for path in ("/", "/b"):
            site.add(path, f"{path} {WORDS}", "/b")
        named = site.url.replace("127.0.0.1", "localhost")
        crawl(SiteSpider, settings, url=f"{site.url}/")
        (first,) = rows_of(url)
        crawl(SiteSpider, settings, url=f"{site.url}/")  # by a snapshot, and out of Scrapy's cache
        assert rows_of(url) == [first]
        crawl(SiteSpider, {**settings, "HTTPCACHE_ENABLED": False}, url=f"{site.url}/")
        crawl(SiteSpider, settings, url=f"{named}/")

    again, other = rows_of(url)
    assert (first.host, first.ip, first.first_seen) == ("127.0.0.1", "127.0.0.1", first.last_seen)
    assert (again.host, again.ip, again.first_seen) == ("127.0.0.1", "127.0.0.1", first.first_seen)
    assert again.last_seen > first.last_seen
    assert (other.host, other.ip) == ("localhost", "127.0.0.1")


def test_a_proxy_says_nothing_of_a_host(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/n.db"
    settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url, "ROBOTSTXT_OBEY": False}
    with serve() as site:
        site.add("http://a.example/", WORDS)

        class Proxied(scrapy.Spider):
            name = "proxied"

            async def start(self) -> AsyncIterator[scrapy.Request]:
                yield scrapy.Request("http://a.example/", meta={"proxy": site.url})

            def parse(self, response: Response, **kwargs: Any) -> None:
                assert str(response.ip_address) == "127.0.0.1"

        stats = crawl(Proxied, settings).stats

    assert stats["neardup/pages"] == 1
    assert "log_count/ERROR" not in stats
    assert rows_of(url) == []
