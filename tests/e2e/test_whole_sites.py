"""Whole crawls of made sites, with the add-on as it is by default: nothing may be lost that a crawl without
it finds.
"""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from neardup.address import host_of
from neardup.store.endless_spaces import endless_spaces
from neardup.store.store import Store
from tests.support.sites import brands, items, notices, spiders
from tests.support.sites.branches import Branches
from tests.support.sites.brands import Brands
from tests.support.sites.chains import (
    Album,
    Beside,
    Diary,
    Drawings,
    Draws,
    Guestbook,
    Readings,
    Revisions,
    Strips,
    Washers,
)
from tests.support.sites.drawn import BESIDE, Drawn
from tests.support.sites.endless import Agenda, BeyondTheLast, Calendar, Visited, clock
from tests.support.sites.impatient import ShortCut, Signed
from tests.support.sites.in_process import crawl_served
from tests.support.sites.notices import Notices
from tests.support.sites.processes import Outcome, crawl_process, make_project, scrapy
from tests.support.sites.served import MadeSite, Served, serve_site
from tests.support.sites.sessions import Pages, SessionIds
from tests.support.sites.shop import CARDS, PAGINGS, Shop
from tests.support.sites.spiders import BREADTH_FIRST
from tests.support.sites.stations import Archive, Stations
from tests.support.sites.walls import Captcha, Chained, ErrorPages, LoginWall
from tests.support.sites.wiki import Wiki

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import scrapy as scrapy_package

pytestmark = pytest.mark.slow

KEEPING: dict[str, dict[str, Any]] = {
    "default": {},
    "nofollow": {"NEARDUP_ACTION": "nofollow"},
    "record": {"NEARDUP_ACTION": "record"},
}
"""Settings with which a crawl gets all pages; ``nofollow`` withholds links only that the canonical page has,
too.
"""

ENDLESS_AFTER = 20
"""Instead of 200, so that the endless spaces end soon."""

_SPIDERS: dict[str, type[scrapy_package.Spider]] = {
    spider.name: spider
    for spider in (
        spiders.FollowSpider, spiders.TitleSpider, spiders.IdleSpider, spiders.LoginSpider,
        spiders.CaptchaSpider, spiders.HopsSpider, spiders.DepthSpider, spiders.EnoughSpider,
        spiders.ChainedSpider, spiders.ErrorsSpider, spiders.ItemsSpider, spiders.AreasSpider,
        spiders.UrlSpider, spiders.SourceSpider, notices.ClosingSpider, notices.SwitchedSpider,
        brands.BrandsSpider, brands.DictionarySpider,
    )
}  # fmt: skip


SHALLOW = BREADTH_FIRST | {"DOWNLOADER_MIDDLEWARES": {spiders.ShallowMiddleware: 543}}


def run(served: Served, settings: dict[str, Any], *, spider: str | None = None, **arguments: str) -> Outcome:
    """Crawl a site in this process."""
    # Breadth first would find the listings of a shop one after the other; depth first, as Scrapy does it, is
    # harder.
    lifo = "scrapy.squeues.LifoMemoryQueue"
    return crawl_served(
        served,
        {"LOG_LEVEL": "INFO", "SCHEDULER_MEMORY_QUEUE": lifo, **settings},
        _SPIDERS[spider or served.site.spider],
        **{**served.site.arguments, **arguments},
    )


def as_texts(done: Outcome) -> list[str]:
    return sorted(map(repr, done.items))


def assert_nothing_lost(with_addon: Outcome, without: Outcome, site: MadeSite) -> None:
    assert without.found == site.keys
    assert with_addon.found == site.keys
    assert as_texts(with_addon) == as_texts(without)
    assert with_addon.stats["finish_reason"] == "finished"
    assert errors(with_addon) == {}


def errors(done: Outcome) -> dict[str, Any]:
    return {name: count for name, count in done.stats.items() if name.startswith("spider_exceptions")}


def loses_nothing(site: MadeSite, addon: dict[str, Any], *, crawls: int = 1, **arguments: str) -> Outcome:
    """Crawl a site without the add-on and then, so many times on one database, with it; the last crawl is
    returned.
    """
    with serve_site(site) as served:
        without = run(served, {}, **arguments)
        for _ in range(crawls):
            with_addon = run(served, addon, **arguments)
            assert_nothing_lost(with_addon, without, site)
    return with_addon


class TestKnownPages:
    """Pages that earlier crawls have stored, under other URLs."""

    @pytest.mark.parametrize("action", KEEPING)
    def test_new_session_ids_in_each_crawl(self, action: str, addon: dict[str, Any]) -> None:
        done = loses_nothing(SessionIds(40), addon | KEEPING[action], crawls=3)

        # All are copies of pages of the first crawl, the start without a session id too, which is known by
        # its URL.
        assert done.stats["neardup/duplicates"] >= 40
        assert done.stats.get("neardup/requests_saved", 0) == 0

    @pytest.mark.parametrize("action", KEEPING)
    def test_the_site_has_moved(self, action: str, addon: dict[str, Any]) -> None:
        site = Pages(40)
        settings = addon | KEEPING[action]
        for _ in range(2):
            with serve_site(site) as served:
                without = run(served, {})
                done = run(served, settings)
                assert_nothing_lost(done, without, site)

        assert done.stats["neardup/duplicates"] == len(done.requests)

    @pytest.mark.parametrize("action", KEEPING)
    def test_requests_that_are_no_start_requests(self, action: str, addon: dict[str, Any]) -> None:
        site = Pages(40)
        settings = addon | KEEPING[action]
        with serve_site(site) as served:
            run(served, settings, spider="idle")
        with serve_site(site) as served:
            without = run(served, {}, spider="idle")
            done = run(served, settings, spider="idle")

        assert_nothing_lost(done, without, site)

    def test_a_spider_of_items_alone_before_the_crawl(self, addon: dict[str, Any]) -> None:
        site = Pages(40)
        with serve_site(site) as served:
            without = run(served, {})
            for path in ("/?utm_source=mail", "/page/1?utm_source=mail", "/page/2?utm_source=mail"):
                run(served, addon, spider="title", start=served.url + path)
            done = run(served, addon)

        assert_nothing_lost(done, without, site)


class TestShops:
    @pytest.mark.parametrize("cards", CARDS)
    @pytest.mark.parametrize("paging", PAGINGS)
    def test_products_behind_listings(self, cards: Any, paging: Any, addon: dict[str, Any]) -> None:
        site = Shop(60, 5, cards=cards, paging=paging, boilerplate=1_000)

        loses_nothing(site, addon)

    @pytest.mark.parametrize("boilerplate", [300, 2_000])
    def test_boilerplate(self, boilerplate: int, addon: dict[str, Any]) -> None:
        loses_nothing(Shop(60, 5, boilerplate=boilerplate), addon)

    def test_nofollow_withholds_no_link_that_the_canonical_page_has_not(self, addon: dict[str, Any]) -> None:
        loses_nothing(Shop(60, 5), addon | {"NEARDUP_ACTION": "nofollow"})

    @pytest.mark.parametrize("alike", ["names", "numbers"])
    def test_products_that_differ_in_their_names(self, alike: Any, addon: dict[str, Any]) -> None:
        loses_nothing(Shop(50, 5, alike=alike), addon)

    def test_more_alike_products_than_an_endless_space_may_have(self, addon: dict[str, Any]) -> None:
        """500 products in a row are near-alike, and behind listings that are: not one leads to anything
        new.
        """
        loses_nothing(Shop(500, 50, alike="names"), addon)

    def test_listings_that_lead_to_products_are_not_endless(self, addon: dict[str, Any]) -> None:
        site = Shop(120, 5, boilerplate=2_000)

        loses_nothing(site, addon | {"NEARDUP_ENDLESS_AFTER": ENDLESS_AFTER})


class TestViews:
    def test_a_wiki_with_print_views_and_old_revisions(self, addon: dict[str, Any]) -> None:
        done = loses_nothing(Wiki(16), addon)

        assert done.stats["neardup/duplicates"] > 16

    def test_new_pages_come_before_the_views_of_known_ones(self, addon: dict[str, Any]) -> None:
        """That is what deferring is for: most of the site is found before the copies are gone through."""
        site = SessionIds(20, endless=True)
        site.most_requests = 300
        with serve_site(site) as served:
            without, done = run(served, {}), run(served, addon)

        assert len(without.found) < 20
        assert done.requests_until(18) <= 100

    def test_copies_at_the_limit_of_depth_come_last(self, addon: dict[str, Any]) -> None:
        by_depth = BREADTH_FIRST | {"DEPTH_LIMIT": 2}
        with serve_site(Wiki()) as served:
            without = run(served, by_depth)
            crawls = [run(served, addon | by_depth) for _ in range(2)]

        assert len(without.found) == 201
        assert without.requests_until(200) > 290
        assert [done.found for done in crawls] == [without.found] * 2
        assert [as_texts(done) for done in crawls] == [as_texts(without)] * 2
        assert crawls[0].requests_until(200) < 250
        assert crawls[1].requests_until(200) < 220

    def test_what_a_spider_allows_itself_goes_to_new_pages(self, addon: dict[str, Any]) -> None:
        site = SessionIds(20, endless=True)
        with serve_site(site) as served:
            without, done = run(served, {}, spider="enough"), run(served, addon, spider="enough")

        assert without.stats["finish_reason"] == done.stats["finish_reason"] == "enough pages"
        assert len(without.found) < 15
        assert len(done.found) >= 18


class TestEndlessSpaces:
    """They end, long before what their sites call endless, and all that is to be found beside them is
    found.
    """

    @pytest.mark.parametrize(
        ("make", "after", "most"),
        [
            (lambda: Calendar(5), ENDLESS_AFTER, 1_500),
            # From one event to the next there are some two hundred pages of days and months.
            (lambda: Calendar(5, days=True), 200, 3_000),
            (lambda: Calendar(5, days=True, foot=clock), 60, 10_000),
            (lambda: Agenda(5), 50, 2_000),
            (lambda: SessionIds(5, endless=True), ENDLESS_AFTER, 1_500),
            (lambda: BeyondTheLast(25), ENDLESS_AFTER, 1_500),
            (lambda: BeyondTheLast(25, counted=True), ENDLESS_AFTER, 8 * ENDLESS_AFTER),
            (lambda: Visited(5), ENDLESS_AFTER, 3 * ENDLESS_AFTER + 20),
        ],
        ids=[
            "months",
            "days",
            "days with a clock",
            "agenda",
            "sessions",
            "beyond the last page",
            "counted",
            "visits",
        ],
    )
    def test_ends(
        self,
        make: Callable[[], MadeSite],
        after: int,
        most: int,
        addon: dict[str, Any],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        site = make()
        site.most_requests = most
        with caplog.at_level(logging.WARNING), serve_site(site) as served:
            done = run(served, addon | {"NEARDUP_ENDLESS_AFTER": after})

        assert done.stats["finish_reason"] == "finished", f"{len(done.requests)} requests, and no end"
        assert done.found == site.keys
        assert "endless" in caplog.text

    def test_ends_after_two_hundred_by_default(self, addon: dict[str, Any]) -> None:
        site = BeyondTheLast(25)
        site.most_requests = 600
        with serve_site(site) as served:
            done = run(served, addon)

        assert done.stats["finish_reason"] == "finished"
        assert done.found == site.keys
        assert len(done.requests) > 200  # an end that came sooner would be another rule's

    def test_new_session_ids_end_for_all_pages_at_once(self, addon: dict[str, Any]) -> None:
        site = SessionIds(60, endless=True)
        site.most_requests = 2_000
        with serve_site(site) as served:
            done = run(served, addon)

        assert done.stats["finish_reason"] == "finished"
        assert done.found == site.keys
        with Store.open(addon["NEARDUP_DATABASE_URL"], scheme=None) as store, store.reading() as connection:
            spaces = [left.space for left in endless_spaces(connection)]
        (left,) = [space for space in spaces if space.parameter]
        assert (left.host, left.parameter, left.canonical_url) == (host_of(served.url), "sid", None)
        assert "?sid=" in left.last_url
        assert 0 < left.links <= done.stats["neardup/lost_candidates"]
        assert done.stats["neardup/exhausted"] == len(spaces)

    def test_never_if_the_setting_is_zero(self, addon: dict[str, Any]) -> None:
        site = BeyondTheLast(25)
        site.most_requests = 250
        with serve_site(site) as served:
            done = run(served, addon | {"NEARDUP_ENDLESS_AFTER": 0})

        assert done.stats["finish_reason"] == "closespider_pagecount"


class TestShortWays:
    @pytest.mark.parametrize("action", KEEPING)
    def test_many_below_a_list(self, action: str, addon: dict[str, Any]) -> None:
        """Each way is a few pages long, so that no page is far from the list."""
        settings = addon | KEEPING[action] | {"NEARDUP_ENDLESS_AFTER": ENDLESS_AFTER}

        loses_nothing(Stations(3 * ENDLESS_AFTER), settings)

    @pytest.mark.parametrize(
        ("below", "siblings"), [((3, 4, 40), True), ((3, 5, 6, 5), True), ((3, 5, 6, 5), False)]
    )
    def test_an_archive_of_numbers(
        self, below: tuple[int, ...], siblings: bool, addon: dict[str, Any]
    ) -> None:
        """Its pages are far from the list. More of them lead on than an endless space has."""
        site = Archive(*below, siblings=siblings)
        loses_nothing(site, addon | {"NEARDUP_ENDLESS_AFTER": ENDLESS_AFTER})


SPELLINGS = ["%Y-%m-%d", "%d.%m.%Y", "%m-%d-%Y", "%d-%b-%Y"]
"""Of days in addresses."""


@pytest.mark.parametrize("order", [{}, BREADTH_FIRST])
def test_a_map_that_is_asked_for_ever_smaller_areas(order: dict[str, Any], addon: dict[str, Any]) -> None:
    """None of its pages has a link, so there is no endless space of links."""
    site = Branches(2_000)
    with serve_site(site) as served:
        without, done = run(served, order), run(served, addon | order | {"NEARDUP_ENDLESS_AFTER": 50})

    assert_nothing_lost(done, without, site)
    assert done.stats["neardup/links_deferred"] > 500


def test_versions_that_are_entered_amid_removed_pages(addon: dict[str, Any]) -> None:
    """A hundred removed pages in a row stand in each of three versions."""
    site = Drawn(601, versions=3)
    with serve_site(site) as served:
        done = run(served, addon)

    assert done.found == site.keys
    assert "neardup/exhausted" not in done.stats


@pytest.mark.parametrize("seed", [9012, 9103], ids=["numbers", "names"])
def test_items_that_carry_pages_are_dropped_only_as_copies(addon: dict[str, Any], seed: int) -> None:
    """What tells the pages of each site apart is one word or number."""
    site = Drawn(seed)
    with serve_site(site) as served:
        done = run(
            served,
            addon | {"NEARDUP_CONTENT_FIELD": "html", "NEARDUP_ACTION": "drop"},
            spider="source",
        )

    assert {key for item in done.items for key in site.keys_of(item)} >= site.keys
    assert done.stats["neardup/items_dropped"] > 0
    assert "neardup/failures" not in done.stats


@pytest.mark.parametrize("spider", ["closing", "switched"])
@pytest.mark.parametrize("action", ["defer", "drop", "skip"])
def test_a_spider_that_ends_its_crawl_finds_what_is_new(
    addon: dict[str, Any], caplog: pytest.LogCaptureFixture, spider: str, action: str
) -> None:
    """The second crawl stops at the first notice that the first one has had."""
    settings = addon | {"NEARDUP_ACTION": action}
    with serve_site(Notices(100, spider=spider)) as served:
        run(served, settings)
    second = Notices(140, known=100, spider=spider)
    with caplog.at_level(logging.INFO), serve_site(second) as served:
        done = run(served, settings)

    assert {item["number"] for item in done.items} >= second.keys
    assert "neardup: the spider may end the crawl (" in caplog.text


@pytest.mark.parametrize(
    "site",
    [
        Brands("brands", priority="10", gives="yes"),
        Brands("brands"),
        Brands("brands in a dictionary"),
        Brands("brands in a dictionary", brands=8, products="-10"),
    ],
    ids=["by priority", "without items", "in a dictionary", "on several lists"],
)
@pytest.mark.parametrize("settings", [{}, {"NEARDUP_ACTION": "drop"}, {"NEARDUP_PREDICT": "drop"}], ids=str)
def test_pages_that_complete_later_items_do_not_wait(
    addon: dict[str, Any], settings: dict[str, Any], site: Brands
) -> None:
    """The pages of brands are copies next to surely, as the first crawl has learned."""
    with serve_site(site) as served:
        for _ in range(2):
            done = run(served, addon | settings)

            assert done.found == site.keys
            assert {item["number"]: item["brand"] for item in done.items if "number" in item} == {
                str(number): site.name(number) for number in range(len(site.keys))
            }


class TestChains:
    """Pages that are reached by "Next" only, and of which each is like the one before, are not endless."""

    @pytest.mark.parametrize(
        ("make", "action"),
        [
            (Album, "default"),
            (Diary, "default"),
            (Diary, "nofollow"),
            (Drawings, "default"),
            *(pytest.param(partial(Draws, spelling), "default", id=spelling) for spelling in SPELLINGS),
            *(pytest.param(partial(Beside, shows), "default", id=shows) for shows in BESIDE),
            (Guestbook, "default"),
            (Guestbook, "nofollow"),
            (Readings, "default"),
            (Strips, "default"),
            (Strips, "nofollow"),
            (Washers, "default"),
        ],
    )
    def test_an_end(
        self,
        make: Callable[[], MadeSite],
        action: str,
        addon: dict[str, Any],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        settings = addon | KEEPING[action] | {"NEARDUP_ENDLESS_AFTER": ENDLESS_AFTER}
        with caplog.at_level(logging.WARNING):
            done = loses_nothing(make(), settings)

        # A page whose numbers last is asked for again as time passes: on a slow machine, more often.
        assert 1 <= done.stats["neardup/looked_ahead"] <= 20
        assert "neardup/exhausted" not in done.stats
        assert "endless" not in caplog.text

    def test_revisions_of_many_articles(self, addon: dict[str, Any]) -> None:
        done = loses_nothing(Revisions(), addon | {"NEARDUP_ENDLESS_AFTER": ENDLESS_AFTER})

        assert done.stats["neardup/looked_ahead"] > 0
        assert done.stats.get("neardup/links_withheld", 0) == 0


class TestStandIns:
    """Pages that come in the place of others, and requests that must not be taken for links."""

    def test_captcha(self, addon: dict[str, Any]) -> None:
        done = loses_nothing(Captcha(), addon, crawls=2)

        assert {item["title"] for item in done.items} == {"Home", *(f"Page {n}" for n in range(20))}

    @pytest.mark.parametrize("pages", [12, 40])
    def test_captcha_whose_callback_asks_again(self, pages: int, addon: dict[str, Any]) -> None:
        """Nobody would ask again for the page behind it, if the captcha of many pages passed for a copy."""
        done = loses_nothing(Captcha(pages), addon | {"NEARDUP_ACTION": "skip"}, crawls=2)

        assert "neardup/pages_skipped" not in done.stats

    @pytest.mark.parametrize("opens", [True, False])
    def test_login_wall(self, opens: bool, addon: dict[str, Any]) -> None:
        loses_nothing(LoginWall(opens=opens), addon, crawls=2)

    @pytest.mark.parametrize(
        ("action", "carry"), [("default", "cb_kwargs"), ("default", "meta"), ("nofollow", "cb_kwargs")]
    )
    def test_items_that_an_api_completes(self, carry: Any, action: str, addon: dict[str, Any]) -> None:
        done = loses_nothing(Chained(carry=carry), addon | KEEPING[action], crawls=2)

        assert len(done.items) == 50

    @pytest.mark.parametrize("carry", ["cb_kwargs", "meta"])
    def test_the_api_is_asked_at_once(self, carry: Any, addon: dict[str, Any]) -> None:
        """A chained request waits for no other page: the first comes long before the last product."""
        with serve_site(Chained(carry=carry)) as served:
            without, done = run(served, {}), run(served, addon)

        assert requested(done, "/api/") == requested(without, "/api/")

    def test_error_pages_are_not_judged(self, addon: dict[str, Any]) -> None:
        done = loses_nothing(ErrorPages(), addon, crawls=2)

        titles = [item["title"] for item in done.items]
        assert titles.count("Not found") == 6
        assert done.stats.get("neardup/duplicates", 0) == 0
        assert done.stats.get("neardup/gone", 0) == 0
        assert done.stats["neardup/pages"] == len(titles) - 6

    def test_a_page_that_becomes_an_error_page_is_gone(self, addon: dict[str, Any]) -> None:
        site = ErrorPages(pages=6, missing=0)
        with serve_site(site) as served:
            run(served, addon)
            site.gone = {"/page/3", "/page/4", "/page/5"}
            without = run(served, {})
            crawls = [run(served, addon) for _ in range(2)]

        assert crawls[0].stats["neardup/gone"] == 3
        assert [done.stats.get("neardup/duplicates", 0) for done in crawls] == [0, 0]
        assert [as_texts(done) for done in crawls] == [as_texts(without)] * 2


class TestNothingWaits:
    """Requests that would come too late at the end of the queue."""

    def test_a_shorter_way_with_a_limit_of_depth(
        self, addon: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        by_depth = BREADTH_FIRST | {"DEPTH_LIMIT": ShortCut.depth}
        site = ShortCut()
        with caplog.at_level(logging.INFO), serve_site(site) as served:
            without, done = run(served, by_depth), run(served, addon | by_depth)

        assert_nothing_lost(done, without, site)
        assert done.stats["neardup/duplicates"] == 1
        assert "DEPTH_LIMIT is 5, so" in caplog.text
        assert done.stats["request_depth_max"] == ShortCut.depth

    @pytest.mark.parametrize(
        ("spider", "own", "said"),
        [
            ("hops", {}, "count steps in meta 'hops', so"),
            ("depth", {}, "DepthSpider.links compares the depth of pages, so"),
            ("follow", SHALLOW, "ShallowMiddleware.process_request compares the depth of pages, so"),
        ],
    )
    def test_a_shorter_way_with_a_limit_of_the_project(
        self, spider: str, own: dict[str, Any], said: str, addon: dict[str, Any],
        caplog: pytest.LogCaptureFixture,
    ) -> None:  # fmt: skip
        site = ShortCut()
        with caplog.at_level(logging.INFO), serve_site(site) as served:
            without, done = run(served, own, spider=spider), run(served, addon | own, spider=spider)

        assert_nothing_lost(done, without, site)
        assert done.stats["neardup/duplicates"] == 1
        assert caplog.text.count(said) == 1

    def test_links_that_expire(self, addon: dict[str, Any]) -> None:
        site = Signed()
        done = loses_nothing(site, addon)

        assert done.stats["neardup/duplicates"] == 30
        assert {request.status for request in done.requests} == {200}


def requested(done: Outcome, prefix: str) -> list[int]:
    """When paths that begin so were requested."""
    return [number for number, request in enumerate(done.requests) if request.target.startswith(prefix)]


@pytest.mark.parametrize("kind", items.TYPES)
def test_items_that_refuse_the_verdict(
    kind: str, addon: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    settings = addon | {"NEARDUP_VERDICT_FIELD": "verdict"}
    with serve_site(Pages(7)) as served:
        without = run(served, {}, spider="items", kind=kind)
        done = run(served, settings, spider="items", kind=kind)

    assert done.found == served.site.keys
    assert [item.title for item in done.items] == [item.title for item in without.items]
    assert errors(done) == {}
    told = [item for item in done.items if getattr(item, "verdict", None)]
    warnings = [line for line in caplog.messages if "NEARDUP_VERDICT_FIELD" in line]
    assert (
        len(told) == len(done.items) or len(warnings) == 1
    )  # each item has its verdict, or one warning says why none has


class TestCommands:
    """Scrapy's commands look at pages; they are no crawls, and what they see is not remembered."""

    def test_looking_at_pages_before_the_crawl(self, tmp_path: Path) -> None:
        site = Pages(30)
        make_project(tmp_path, addon=True)
        with serve_site(site) as served:
            without = run(served, {})
            urls = [f"{served.url}/page/{number}?utm_source=mail" for number in (1, 5, 6)]
            scrapy(tmp_path, "fetch", urls[0], "--spider", "follow")
            scrapy(tmp_path, "shell", urls[1], "-c", "response.status")
            scrapy(tmp_path, "parse", urls[2], "--spider", "follow", "--depth", "2")
            checked = scrapy(tmp_path, "check", "follow")
            done = crawl_process(served, tmp_path)

        assert "Ran 1 contract" in checked.stderr
        assert_nothing_lost(done, without, site)
        assert done.stats["neardup/new"] == 30  # none was known
        with closing(sqlite3.connect(tmp_path / ".scrapy" / "neardup" / "neardup.db")) as database:
            assert database.execute("SELECT COUNT(*) FROM simhash_values").fetchone() == (30,)
            assert database.execute("SELECT COUNT(*) FROM crawls").fetchone() == (1,)


def test_a_shop_by_scrapy_crawl(tmp_path: Path) -> None:
    """With Scrapy's defaults: many requests at a time, depth first."""
    site = Shop(200, 10)
    make_project(tmp_path, addon=True)
    with serve_site(site) as served:
        without, done = run(served, {}), crawl_process(served, tmp_path)

    assert_nothing_lost(done, without, site)
