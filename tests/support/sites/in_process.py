"""Crawls of made sites in this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.crawling import crawl
from tests.support.sites.processes import Outcome
from tests.support.sites.served import serve_site
from tests.support.sites.spiders import FollowSpider

if TYPE_CHECKING:
    import scrapy

    from tests.support.sites.served import MadeSite, Served


def crawl_served(
    served: Served, settings: dict[str, Any], spider: type[scrapy.Spider] = FollowSpider, **arguments: str
) -> Outcome:
    """What comes of a crawl of a site; its requests are those of this crawl only."""
    served.begin()
    limits = {"CLOSESPIDER_PAGECOUNT": served.site.most_requests} if served.site.most_requests else {}
    done = crawl(spider, {**limits, **settings}, **{"start": served.start, **arguments})
    return Outcome(list(served.log), done.items, done.stats)


def crawl_site(site: MadeSite, settings: dict[str, Any]) -> Outcome:
    """What comes of a crawl that follows all links of a site, which is served for this crawl alone."""
    with serve_site(site) as served:
        return crawl_served(served, settings)
