"""The add-on in spiders that know nothing of it: real crawls of a site on loopback, in this process."""

from __future__ import annotations

import gc
import logging
import re
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import scrapy
from itemadapter import ItemAdapter
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from neardup import get_verdict, native
from neardup.address import Address, host_of
from neardup.detection.rule import KNOWN_PAGES
from neardup.detection.verdict import Kind
from neardup.errors import ConfigurationError, DatabaseUnavailable, SchemeMismatch
from neardup.scrapy.extension import NearDuplicates
from neardup.scrapy.options import SETTINGS, data_folder
from neardup.store.endless_spaces import EndlessSpace, endless_spaces
from neardup.store.store import Store
from tests.support.crawling import Page, Site, crawl
from tests.support.places import ROOT
from tests.support.spiders import OTHER, THIRD, WORDS, LinkSpider, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path


@pytest.fixture
def small_site(site: Site) -> Site:
    """A start page, an article, its print view with a link of its own, and what lies behind that link."""
    site.add("/", OTHER, "/article", "/article?print=1")
    site.add("/article", f"<h1>How geese fly</h1>{WORDS}", "/more")
    site.add("/article?print=1", f"<h1>How geese fly</h1>{WORDS}" + 3 * " printed", "/more", "/print-only")
    site.add("/more", THIRD)
    site.add("/print-only", "only linked from the print view " + " ".join(f"p{i}" for i in range(50)))
    return site


@pytest.fixture
def copied_site(small_site: Site) -> Site:
    """The print view has the very text of the article: of a site of five pages, nothing less is sure."""
    copy = f'<h1>How geese fly</h1>{WORDS}<a href="/print-only"></a>'
    small_site.add("/article?print=1", copy, "/more")
    return small_site


def paths(site: Site) -> list[str]:
    return [path for path in site.requested if path != "/robots.txt"]


class TestActions:
    def test_defer_is_the_default_and_makes_every_request(
        self, small_site: Site, settings: dict[str, Any]
    ) -> None:
        others = [f"/{number}" for number in range(4)]
        small_site.add("/", OTHER, "/article", "/article?print=1", *others)
        for other in others:
            small_site.add(other, text(f"page{other[1:]}x"))

        done = crawl(LinkSpider, settings, start=small_site.url)

        # What only the print view links to comes after all else.
        assert paths(small_site) == ["/", "/article", "/article?print=1", *others, "/more", "/print-only"]
        assert len(done.items) == 9
        assert done.neardup("pages") == 9
        assert done.neardup("new") == 8
        assert done.neardup("duplicates") == 1
        assert done.neardup("exact_duplicates") == 0
        assert done.neardup("links_deferred") == 2
        assert done.neardup("links_withheld") == 0
        assert done.neardup("requests_saved_at_least") == 0
        assert done.neardup("lost_candidates") == 0
        assert done.neardup("items_dropped") == 0

    def test_nofollow_withholds_what_another_page_has_too(
        self, small_site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO):
            done = crawl(LinkSpider, settings | {"NEARDUP_ACTION": "nofollow"}, start=small_site.url)

        assert paths(small_site) == ["/", "/article", "/article?print=1", "/more", "/print-only"]
        assert len(done.items) == 5
        assert done.neardup("links_deferred") == 1
        assert done.neardup("links_withheld") == 1
        assert done.neardup("lost_candidates") == 0
        assert "1 deferred, 1 not followed (other pages have them all)\n" in caplog.text

    def test_what_is_left_when_a_limit_ends_the_crawl_is_saved(
        self, small_site: Site, settings: dict[str, Any]
    ) -> None:
        others = [f"/{number}" for number in range(8)]
        small_site.add("/", OTHER, "/article", "/article?print=1", *others)
        for other in others:
            small_site.add(other, text(f"page{other[1:]}x"))

        done = crawl(LinkSpider, settings | {"CLOSESPIDER_ITEMCOUNT": 5}, start=small_site.url)

        assert "/print-only" not in paths(small_site)
        assert done.neardup("requests_saved_at_least") == 1

    def test_record_changes_nothing_of_the_crawl(self, small_site: Site, settings: dict[str, Any]) -> None:
        done = crawl(LinkSpider, settings | {"NEARDUP_ACTION": "record"}, start=small_site.url)

        assert "/print-only" in paths(small_site)
        assert len(done.items) == 5
        assert done.neardup("duplicates") == 1
        assert done.neardup("links_withheld") == 0

    def test_drop_also_drops_items_and_scrapy_counts_them(
        self, copied_site: Site, settings: dict[str, Any]
    ) -> None:
        done = crawl(LinkSpider, settings | {"NEARDUP_ACTION": "drop"}, start=copied_site.url)

        assert "/print-only" in paths(copied_site)
        assert len(done.items) == 4
        assert done.neardup("items_dropped") == 1
        assert done.stats["item_dropped_reasons_count/NearDuplicate"] == 1
        extension = done.crawler.get_extension(NearDuplicates)
        assert extension is not None
        assert extension.policy._items == {}

    def test_skip_does_not_call_the_callback(self, copied_site: Site, settings: dict[str, Any]) -> None:
        called: list[str] = []

        class Listening(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                called.append(response.url)
                yield from super().parse(response)

        copied_site.add("/article?print=1", f"<h1>How geese fly</h1>{WORDS}", "/more")
        done = crawl(Listening, settings | {"NEARDUP_ACTION": "skip"}, start=copied_site.url)

        assert len(called) == 3
        assert not any("print" in url for url in called)
        assert done.neardup("pages_skipped") == 1
        assert "spider_exceptions/count" not in done.stats
        assert "log_count/ERROR" not in done.stats

    def test_skip_tells_an_errback(self, copied_site: Site, settings: dict[str, Any]) -> None:
        failures: list[str] = []

        class WithErrback(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                for href in response.css("a::attr(href)").getall():
                    yield response.follow(href, errback=self.failed)

            def failed(self, failure: Any) -> None:
                failures.append(f"{failure.type.__name__}: {failure.value}")

        copied_site.add("/article?print=1", f"<h1>How geese fly</h1>{WORDS}", "/more")
        crawl(WithErrback, settings | {"NEARDUP_ACTION": "skip"}, start=copied_site.url)

        assert len(failures) == 1
        assert failures[0].startswith(f"NearDuplicatePage: near-duplicate of {copied_site.url}/article: ")

    @pytest.mark.parametrize("action", ["nofollow", "drop", "skip"])
    def test_links_of_start_urls_are_always_followed(
        self, site: Site, settings: dict[str, Any], action: str
    ) -> None:
        class TwoStarts(LinkSpider):
            def __init__(self, start: str) -> None:
                super().__init__(start)
                self.start_urls = [f"{start}/1", f"{start}/2"]

        site.add("/1", WORDS, "/a")
        site.add("/2", WORDS, "/b")
        site.add("/a", OTHER)
        site.add("/b", THIRD)

        done = crawl(TwoStarts, settings | {"NEARDUP_ACTION": action}, start=site.url)

        assert {"/a", "/b"} <= set(paths(site))
        assert done.neardup("duplicates") == 1

    def test_a_start_page_that_redirects_is_still_a_start_page(
        self, site: Site, settings: dict[str, Any]
    ) -> None:
        site.add("/1", WORDS, "/2")
        site.pages["/2"] = Page(b"", status=302, headers={"Location": "/3"})
        site.add("/3", WORDS, "/behind")
        site.add("/behind", OTHER)

        class Both(LinkSpider):
            def __init__(self, start: str) -> None:
                super().__init__(start)
                self.start_urls = [f"{start}/1", f"{start}/2"]

        crawl(Both, settings, start=site.url)

        assert "/behind" in paths(site)

    def test_copied_meta_does_not_make_a_start_page(self, site: Site, settings: dict[str, Any]) -> None:
        class Copying(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                for href in response.css("a::attr(href)").getall():
                    meta = {key: value for key, value in response.meta.items() if key != "depth"}
                    yield response.follow(href, meta=meta)

        site.add("/", OTHER, "/1", "/2")
        site.add("/1", WORDS, "/3")
        site.add("/2", WORDS, "/behind")
        site.add("/3", OTHER + " and more")

        crawl(Copying, settings, start=site.url)

        assert paths(site) == ["/", "/1", "/2", "/3", "/behind"]

    def test_errors_and_their_errbacks_have_no_verdict(self, site: Site, settings: dict[str, Any]) -> None:
        seen: list[Any] = []

        class Errors(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                yield response.follow("/missing", errback=self.failed, meta=dict(response.meta))

            def failed(self, failure: Any) -> Iterator[Any]:
                seen.append(get_verdict(failure.value.response))
                yield {"url": "from errback"}
                yield scrapy.Request(f"{site.url}/after")

        site.add("/", WORDS)
        site.add("/after", OTHER)

        done = crawl(Errors, settings | {"NEARDUP_ACTION": "drop"}, start=site.url)

        assert seen == [None]
        assert {"url": "from errback"} in done.items
        assert "/after" in paths(site)
        assert done.neardup("pages") == 2


class TestSettings:
    def test_disabled(self, small_site: Site, settings: dict[str, Any]) -> None:
        done = crawl(LinkSpider, settings | {"NEARDUP_ENABLED": False}, start=small_site.url)

        assert "/print-only" in paths(small_site)
        assert not any(name.startswith("neardup") for name in done.stats)

    def test_disabled_in_custom_settings(self, small_site: Site, settings: dict[str, Any]) -> None:
        class Off(LinkSpider):
            custom_settings = {"NEARDUP_ENABLED": False}  # noqa: RUF012

        done = crawl(Off, settings, start=small_site.url)

        assert "/print-only" in paths(small_site)
        assert not any(name.startswith("neardup") for name in done.stats)

    def test_max_distance(self, small_site: Site, settings: dict[str, Any]) -> None:
        done = crawl(LinkSpider, settings | {"NEARDUP_MAX_DISTANCE": 0}, start=small_site.url)

        assert done.neardup("duplicates") == 0

    def test_verify(self, small_site: Site, settings: dict[str, Any]) -> None:
        small_site.add("/", OTHER, "/reordered")
        small_site.add("/reordered", " ".join(sorted(OTHER.split())))
        verified = crawl(LinkSpider, settings, start=small_site.url)
        settings["NEARDUP_DATABASE_URL"] += ".other"
        unverified = crawl(LinkSpider, settings | {"NEARDUP_VERIFY": "0"}, start=small_site.url)

        assert verified.neardup("duplicates") == 0
        assert unverified.neardup("exact_duplicates") == 1

    @pytest.mark.parametrize(
        ("name", "value", "part"),
        [
            ("NEARDUP_FEATURES", "shingle-3", "shingle-3/body"),
            ("NEARDUP_CONTENT", "main", "word-tf/main"),
            ("NEARDUP_SELECTORS", '{"*": {"exclude": "nav"}}', "word-tf/body+alt+selectors-"),
            ("NEARDUP_SKETCH_SIZE", "256", "minwise-3x256"),
        ],
    )
    def test_schemes_never_mix(
        self, small_site: Site, settings: dict[str, Any], name: str, value: str, part: str
    ) -> None:
        done = crawl(LinkSpider, settings | {name: value}, start=small_site.url)
        again = crawl(LinkSpider, settings | {name: value}, start=small_site.url)

        assert (done.neardup("duplicates"), again.neardup("duplicates")) == (1, 1)
        assert again.neardup("unchanged") == done.neardup("new")
        with pytest.raises(
            SchemeMismatch, match=rf"scheme '.*{re.escape(part)}.*', the settings make 'word-tf/body\+alt/"
        ):
            crawl(LinkSpider, settings, start=small_site.url)

    def test_max_age(self, small_site: Site, settings: dict[str, Any]) -> None:
        crawl(LinkSpider, settings, start=small_site.url)
        with (
            Store.open(settings["NEARDUP_DATABASE_URL"], scheme=None) as store,
            store.begin_write() as connection,
        ):
            connection.exec_driver_sql("UPDATE simhash_values SET last_seen = '2020-01-01 00:00:00.000000'")
        small_site.pages = {"/": small_site.pages["/article"], "/robots.txt": Page(b"", status=404)}
        small_site.add("/", WORDS, "/copy")
        small_site.add("/copy", WORDS)

        old = crawl(LinkSpider, settings | {"NEARDUP_MAX_AGE": "1000w"}, start=small_site.url)
        with (
            Store.open(settings["NEARDUP_DATABASE_URL"], scheme=None) as store,
            store.begin_write() as connection,
        ):
            connection.exec_driver_sql("UPDATE simhash_values SET last_seen = '2020-01-01 00:00:00.000000'")
        fresh = crawl(LinkSpider, settings | {"NEARDUP_MAX_AGE": "8w"}, start=small_site.url)

        assert (old.neardup("duplicates"), old.neardup("changed")) == (
            2,
            0,
        )  # both of the article of the first crawl
        assert (fresh.neardup("duplicates"), fresh.neardup("unchanged")) == (
            1,
            1,
        )  # the copy, of the start page

    def test_history(self, small_site: Site, settings: dict[str, Any], tmp_path: Path) -> None:
        rows = []
        for value in ("0", "1", True):
            done = crawl(LinkSpider, settings | {"NEARDUP_HISTORY": value}, start=small_site.url)
            with sqlite3.connect(tmp_path / "neardup.db") as connection:
                (versions,) = connection.execute("SELECT COUNT(*) FROM page_versions").fetchone()
            connection.close()
            rows.append((versions, done.neardup("rows_written")))

        assert rows == [(0, 6), (5, 11), (5, 6)]

    def test_selectors(self, small_site: Site, settings: dict[str, Any]) -> None:
        for number in (1, 2):
            small_site.add(f"/{number}", f"<nav>{text(f'nav{number}x')}</nav><main>{text('main')}</main>")
        small_site.add("/", OTHER, "/1", "/2")
        whole = crawl(LinkSpider, settings, start=small_site.url)
        settings["NEARDUP_DATABASE_URL"] += ".other"
        selectors = {"127.0.0.1": {"exclude": "nav"}}
        part = crawl(LinkSpider, settings | {"NEARDUP_SELECTORS": selectors}, start=small_site.url)

        assert (whole.neardup("duplicates"), part.neardup("duplicates")) == (0, 1)

    @pytest.mark.slow
    def test_recall(self, small_site: Site, settings: dict[str, Any]) -> None:
        # More pages than one leaf of the index holds: only then is there a choice of leaves to probe.
        pages = [f"/{number}" for number in range(220)]
        for page in pages:
            small_site.add(page, " ".join(f"{page[1:]}w{i}" for i in range(20)))
        small_site.add("/", OTHER, *pages)
        low = crawl(LinkSpider, settings | {"NEARDUP_RECALL": 0.5}, start=small_site.url)
        settings["NEARDUP_DATABASE_URL"] += ".other"
        high = crawl(LinkSpider, settings | {"NEARDUP_RECALL": "0.999"}, start=small_site.url)

        assert low.neardup("queries") == high.neardup("queries")
        assert low.neardup("probes") < high.neardup("probes")

    @pytest.mark.parametrize("index", ["multi-index", "manku", "scan"])
    def test_index(self, small_site: Site, settings: dict[str, Any], index: str) -> None:
        default = crawl(LinkSpider, settings, start=small_site.url)
        settings["NEARDUP_DATABASE_URL"] += ".other"
        exact = crawl(LinkSpider, settings | {"NEARDUP_INDEX": index}, start=small_site.url)
        again = crawl(LinkSpider, settings | {"NEARDUP_INDEX": index}, start=small_site.url)

        assert exact.neardup("duplicates") == default.neardup("duplicates") == again.neardup("duplicates")
        assert again.neardup("unchanged") == exact.neardup("new")
        assert exact.neardup("probes") != default.neardup("probes")
        assert "neardup/recall_checked" not in exact.stats  # there is nothing to estimate

    def test_recall_sample(
        self, small_site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        every = crawl(LinkSpider, settings | {"NEARDUP_RECALL_SAMPLE": 1}, start=small_site.url)
        settings["NEARDUP_DATABASE_URL"] += ".other"
        none = crawl(LinkSpider, settings | {"NEARDUP_RECALL_SAMPLE": "0"}, start=small_site.url)

        near = every.neardup("duplicates") - every.neardup("exact_duplicates")
        assert every.neardup("recall_checked") == every.neardup("recall_found") == near == 1
        assert every.stats["neardup/recall"] == 1.0
        assert every.stats["neardup/recall_low"] < every.stats["neardup/recall_high"] == 1.0
        assert "1 of 1 sampled near-duplicates found" in caplog.text
        assert "neardup/recall_checked" not in none.stats

    def test_snapshot(self, small_site: Site, settings: dict[str, Any], tmp_path: Path) -> None:
        crawl(LinkSpider, settings | {"NEARDUP_SNAPSHOT": "0"}, start=small_site.url)
        assert not (tmp_path / "neardup.db.snapshot").exists()

        crawl(LinkSpider, settings, start=small_site.url)
        assert (tmp_path / "neardup.db.snapshot").exists()

    def test_min_features(self, small_site: Site, settings: dict[str, Any]) -> None:
        done = crawl(LinkSpider, settings | {"NEARDUP_MIN_FEATURES": "84"}, start=small_site.url)

        # Only the print view has 84 distinct words; the page that only it links to is reached and is short as
        # well.
        assert done.neardup("too_short") == 4
        assert done.neardup("new") == 1

    def test_follow_per_cluster(self, small_site: Site, settings: dict[str, Any]) -> None:
        done = crawl(LinkSpider, settings | {"NEARDUP_FOLLOW_PER_CLUSTER": 2}, start=small_site.url)

        assert done.neardup("duplicates") == 1
        assert done.neardup("links_deferred") == 0

    def test_endless_after(self, site: Site, settings: dict[str, Any]) -> None:
        for month in range(40):
            site.add(f"/{month}m", f"{WORDS} month {month}", f"/{month + 1}m")

        short = crawl(LinkSpider, settings | {"NEARDUP_ENDLESS_AFTER": "10"}, start=f"{site.url}/0m")
        url = settings["NEARDUP_DATABASE_URL"]
        settings["NEARDUP_DATABASE_URL"] += ".other"
        never = crawl(LinkSpider, settings | {"NEARDUP_ENDLESS_AFTER": 0}, start=f"{site.url}/0m")

        assert short.neardup("pages") < 25
        assert (short.neardup("exhausted"), short.neardup("lost_candidates")) == (1, 1)
        with Store.open(url, scheme=None) as store, store.reading() as connection:
            (left,) = endless_spaces(connection)
        last_url = f"{site.url}/{short.neardup('pages') - 1}m"
        assert left.space == EndlessSpace(
            host=host_of(site.url),
            canonical_url=f"{site.url}/0m",
            parameter=None,
            links=1,
            last_url=last_url,
        )
        assert never.neardup("pages") == 40

    @pytest.mark.slow
    def test_the_first_endless_spaces_are_warned_of(
        self, site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        rooms = ["north", "east", "south", "west", "upper", "lower", "middle"]
        site.add("/", f"{WORDS} all rooms", *(f"/{room}/0m" for room in rooms))
        for room in rooms:
            words = " ".join(f"{room}{word}" for word in WORDS.split())
            for month in range(30):
                site.add(f"/{room}/{month}m", f"{words} month {month}", f"/{room}/{month + 1}m")
        with caplog.at_level(logging.WARNING):
            done = crawl(LinkSpider, settings | {"NEARDUP_ENDLESS_AFTER": "10"}, start=f"{site.url}/")

        told = [record.getMessage() for record in caplog.records if "led to nothing new" in record.message]
        assert done.neardup("exhausted") == len(rooms)
        assert len(told) == 5
        assert ["listed by neardup report" in message for message in told] == [False] * 4 + [True]
        with (
            Store.open(settings["NEARDUP_DATABASE_URL"], scheme=None) as store,
            store.reading() as connection,
        ):
            left = {left.space.canonical_url for left in endless_spaces(connection)}
        assert left == {f"{site.url}/{room}/0m" for room in rooms}

    def test_environment_names_the_database(
        self, small_site: Site, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        del settings["NEARDUP_DATABASE_URL"]
        monkeypatch.setenv("NEARDUP_DATABASE_URL", f"sqlite:///{tmp_path}/from_environment.db")

        crawl(LinkSpider, settings, start=small_site.url)

        assert (tmp_path / "from_environment.db").exists()

    def test_without_any_setting_the_database_is_in_the_data_folder(
        self, small_site: Site, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        del settings["NEARDUP_DATABASE_URL"]
        monkeypatch.delenv("NEARDUP_DATABASE_URL", raising=False)
        monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)
        monkeypatch.chdir(tmp_path)

        crawl(LinkSpider, settings, start=small_site.url)

        assert (tmp_path / ".scrapy" / "neardup" / "neardup.db").exists()

    def test_crawls_that_make_the_data_folder_in_the_same_moment(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = settings\n")
        monkeypatch.chdir(tmp_path)
        with ThreadPoolExecutor(8) as pool:
            for _ in range(100):  # one in ten is lost to the race, where it is not heeded
                ready = Barrier(8)
                found = list(pool.map(lambda ready: (ready.wait(), data_folder())[1], [ready] * 8))
                assert found == [tmp_path / ".scrapy" / "neardup"] * 8
                shutil.rmtree(tmp_path / ".scrapy")

    def test_verdict_field(self, small_site: Site, settings: dict[str, Any]) -> None:
        done = crawl(LinkSpider, settings | {"NEARDUP_VERDICT_FIELD": "near"}, start=small_site.url)

        by_url = {item["url"]: item["near"] for item in done.items}
        assert by_url[f"{small_site.url}/article"]["verdict"] == "new"
        duplicate = by_url[f"{small_site.url}/article?print=1"]
        assert duplicate["verdict"] == "duplicate"
        assert duplicate["canonical_url"] == f"{small_site.url}/article"
        assert duplicate["percentage"] == 100 * (64 - duplicate["distance"]) / 64

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("NEARDUP_ACTION", "ignore", "must be one of record, defer, nofollow, drop, skip, not 'ignore'"),
            ("NEARDUP_ENDLESS_AFTER", -1, "NEARDUP_ENDLESS_AFTER must be a whole number, 0 or more, not -1"),
            (
                "NEARDUP_ENDLESS_AFTER",
                "x",
                "NEARDUP_ENDLESS_AFTER must be a whole number, 0 or more, not 'x'",
            ),
            ("NEARDUP_ENABLED", "maybe", "must be True or False, not 'maybe'"),
            ("NEARDUP_ENABLED", [], "NEARDUP_ENABLED must be True or False, not []"),
            (
                "NEARDUP_WHEN_UNAVAILABLE",
                "wait",
                "NEARDUP_WHEN_UNAVAILABLE must be one of close, continue, not 'wait'",
            ),
            ("NEARDUP_SHARE", "never", "NEARDUP_SHARE must be one of live, finished, not 'never'"),
            (
                "NEARDUP_SHARE_INTERVAL",
                "-1",
                "NEARDUP_SHARE_INTERVAL must be a number of seconds, 0 or more, not '-1'",
            ),
            ("NEARDUP_SHARE_INTERVAL", "inf", "NEARDUP_SHARE_INTERVAL must be a number of seconds"),
            ("NEARDUP_MAX_AGE", "1y", "NEARDUP_MAX_AGE: '1y' is no age like 12h, 90d or 8w"),
            ("NEARDUP_FEATURES", "nope", "NEARDUP_FEATURES: there are no features 'nope', but word-tf, "),
            ("NEARDUP_FEATURES", "word-tfidf:/no.npz", "NEARDUP_FEATURES: /no.npz: no table of frequencies"),
            ("NEARDUP_FEATURES", "word-tf+stem-x", "NEARDUP_FEATURES 'word-tf+stem-x': stem-LANGUAGE can be"),
            ("NEARDUP_CONTENT", "all", "NEARDUP_CONTENT must be one of body, main, not 'all'"),
            (
                "NEARDUP_SELECTORS",
                {"a b": {}},
                "NEARDUP_SELECTORS: content selectors: 'a b' is no host such as",
            ),
            (
                "NEARDUP_SELECTORS",
                '{"a": "nav"}',
                "NEARDUP_SELECTORS: content selectors of 'a' must be a mapping",
            ),
            (
                "NEARDUP_SELECTORS",
                {"a": {"include": "<"}},
                "NEARDUP_SELECTORS: content selectors of 'a': include",
            ),
            ("NEARDUP_SELECTORS", "nav", "NEARDUP_SELECTORS must be a dict (or JSON) of hosts and"),
            (
                "NEARDUP_SKETCH_SIZE",
                100,
                "NEARDUP_SKETCH_SIZE must be a multiple of 64 from 64 to 65536, not 100",
            ),
            ("NEARDUP_VERIFY", 80, "NEARDUP_VERIFY must be a resemblance between 0 (off) and 1, not 80.0"),
            pytest.param(
                "NEARDUP_SELECTORS", "[" * 100_000, "NEARDUP_SELECTORS must be a dict (or JSON)", id="deep"
            ),
            pytest.param("NEARDUP_VERIFY", 10**400, "NEARDUP_VERIFY must be a number, not 1000", id="huge"),
            ("NEARDUP_MAX_DISTANCE", "three", "must be a whole number, not 'three'"),
            ("NEARDUP_MAX_DISTANCE", 3.5, "must be a whole number, not 3.5"),
            ("NEARDUP_MAX_DISTANCE", 40, "NEARDUP_MAX_DISTANCE must be between 0 and 16 of 64 bits, not 40"),
            ("NEARDUP_SCOPE", "site", "NEARDUP_SCOPE must be one of any, domain, host, not 'site'"),
            ("NEARDUP_RECALL", "high", "must be a number, not 'high'"),
            ("NEARDUP_RECALL", 1.5, "NEARDUP_RECALL must be above 0 and at most 1, not 1.5"),
            ("NEARDUP_RECALL", "nan", "NEARDUP_RECALL must be above 0 and at most 1, not nan"),
            ("NEARDUP_MIN_FEATURES", 0, "NEARDUP_MIN_FEATURES must be at least 1, not 0"),
            ("NEARDUP_FOLLOW_PER_CLUSTER", 0, "NEARDUP_FOLLOW_PER_CLUSTER must be at least 1"),
            (
                "NEARDUP_INDEX",
                "faiss",
                "NEARDUP_INDEX must be one of psm, multi-index, manku, scan, not 'faiss'",
            ),
            ("NEARDUP_RECALL_SAMPLE", 2, "NEARDUP_RECALL_SAMPLE must be between 0 and 1, not 2.0"),
            ("NEARDUP_RECALL_SAMPLE", "some", "NEARDUP_RECALL_SAMPLE must be a number, not 'some'"),
            ("NEARDUP_SNAPSHOT", "maybe", "NEARDUP_SNAPSHOT must be True or False, not 'maybe'"),
            ("NEARDUP_HISTORY", "maybe", "NEARDUP_HISTORY must be True or False, not 'maybe'"),
            ("NEARDUP_MAXDISTANCE", 3, "not a setting of neardup; did you mean NEARDUP_MAX_DISTANCE?"),
            ("NEARDUP_DATABASE_URL", "oracle://u:secret@h/d", "oracle"),
        ],
    )
    def test_wrong_settings_name_setting_value_and_what_is_allowed(
        self, settings: dict[str, Any], name: str, value: object, message: str
    ) -> None:
        with pytest.raises(ConfigurationError) as caught:
            crawl(LinkSpider, settings | {name: value}, start="data:,")

        assert message in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_every_setting_is_tested(self) -> None:
        tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))

        assert [name for name in SETTINGS if f'"{name}"' not in tests] == []

    def test_database_away_stops_the_crawl_before_the_first_request(
        self, small_site: Site, settings: dict[str, Any], tmp_path: Path
    ) -> None:
        (tmp_path / "neardup.db").write_bytes(b"this is not a database, but a text of some length" * 100)

        with pytest.raises(DatabaseUnavailable, match=r"neardup\.db"):
            crawl(LinkSpider, settings, start=small_site.url)

        assert small_site.requested == []


class TestVerdicts:
    @pytest.mark.parametrize("kind", ["sync", "async", "async generator"])
    def test_callback_reads_the_verdict(self, small_site: Site, settings: dict[str, Any], kind: str) -> None:
        class Sync(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                verdict = get_verdict(response)
                assert verdict is not None
                yield {"url": response.url, "kind": verdict.kind}
                for href in response.css("a::attr(href)").getall():
                    yield response.follow(href)

        class Async(Sync):
            async def parse(self, response: Response) -> Any:  # type: ignore[override]
                return list(super().parse(response))

        class AsyncGenerator(Sync):
            async def parse(self, response: Response) -> AsyncIterator[Any]:  # type: ignore[override]
                for output in super().parse(response):
                    yield output

        spider = {"sync": Sync, "async": Async, "async generator": AsyncGenerator}[kind]

        done = crawl(spider, settings, start=small_site.url)

        assert [item["kind"] for item in done.items].count(Kind.DUPLICATE) == 1
        assert paths(small_site)[-1] == "/print-only"

    def test_verdicts_go_with_their_responses(self) -> None:
        from neardup.detection.verdict import Verdict
        from neardup.scrapy.verdicts import _verdicts, set_verdict

        gc.collect()
        before = len(_verdicts)
        response = Response("http://a.example")
        set_verdict(response, Verdict(address=Address("u"), kind=Kind.NEW, follow=True, reason=""))
        assert len(_verdicts) == before + 1

        del response
        gc.collect()

        assert len(_verdicts) == before

    def test_meta_false_leaves_a_page_alone(self, small_site: Site, settings: dict[str, Any]) -> None:
        verdicts: dict[str, Any] = {}

        class Chooses(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                verdicts[response.url] = get_verdict(response)
                for href in response.css("a::attr(href)").getall():
                    yield response.follow(href, meta={"neardup": False} if "print" in href else {})

        done = crawl(Chooses, settings | {"NEARDUP_ACTION": "skip"}, start=small_site.url)

        assert "/print-only" in paths(small_site)
        assert verdicts[f"{small_site.url}/article?print=1"] is None
        assert done.neardup("duplicates") == 0

    def test_not_html_is_not_touched(self, site: Site, settings: dict[str, Any]) -> None:
        class Json(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                yield {"url": response.url}
                if response.url.endswith("json"):
                    yield scrapy.Request(f"{site.url}/after-{response.url[-6]}")
                for href in (
                    response.css("a::attr(href)").getall() if not response.url.endswith("json") else ()
                ):
                    yield response.follow(href)

        site.add("/", WORDS, "/1.json", "/2.json")
        for path in ("/1.json", "/2.json"):
            site.pages[path] = Page(
                b'{"a": "' + OTHER.encode() + b'"}', headers={"Content-Type": "application/json"}
            )
        site.add("/after-1", THIRD)
        site.add("/after-2", OTHER)

        done = crawl(
            Json, settings | {"NEARDUP_ACTION": "drop", "NEARDUP_VERDICT_FIELD": "near"}, start=site.url
        )

        assert [item for item in done.items if "near" not in item] == [
            {"url": f"{site.url}/1.json"},
            {"url": f"{site.url}/2.json"},
        ]
        assert done.neardup("not_html") == 2
        assert done.neardup("pages") == 3
        assert {"/after-1", "/after-2"} <= set(paths(site))
        assert len(done.items) == 5

    def test_copies_that_arrive_together_are_one_new_page_and_duplicates(
        self, site: Site, settings: dict[str, Any]
    ) -> None:
        site.add("/", OTHER, *(f"/copy{i}" for i in range(12)))
        for i in range(12):
            site.add(f"/copy{i}", WORDS)

        done = crawl(
            LinkSpider,
            settings | {"CONCURRENT_REQUESTS": 12, "CONCURRENT_REQUESTS_PER_DOMAIN": 12},
            start=site.url,
        )

        assert (done.neardup("new"), done.neardup("duplicates")) == (2, 11)


@dataclass
class DataclassItem:
    url: str
    near: Any = None


@attrs.define
class AttrsItem:
    url: str
    near: Any = None


class ScrapyItem(scrapy.Item):
    url = scrapy.Field()
    near = scrapy.Field()


@dataclass
class WithoutField:
    url: str


class TestItems:
    @pytest.mark.parametrize("make", [dict, DataclassItem, AttrsItem, ScrapyItem])
    def test_any_item_type_is_told_and_dropped(
        self, copied_site: Site, settings: dict[str, Any], make: Callable[..., Any]
    ) -> None:
        class Items(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                yield make(url=response.url)
                for href in response.css("a::attr(href)").getall():
                    yield response.follow(href)

        done = crawl(
            Items,
            settings | {"NEARDUP_VERDICT_FIELD": "near", "NEARDUP_ACTION": "drop"},
            start=copied_site.url,
        )

        assert done.neardup("items_dropped") == 1
        assert [ItemAdapter(item)["near"]["verdict"] for item in done.items] == ["new"] * 4

    def test_items_without_the_field_are_left_as_they_are_with_one_warning(
        self, small_site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        class Items(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                for href in [*response.css("a::attr(href)").getall()]:
                    yield response.follow(href)
                yield WithoutField(response.url)

        done = crawl(Items, settings | {"NEARDUP_VERDICT_FIELD": "near"}, start=small_site.url)

        assert len(done.items) == 5
        warnings = [r for r in caplog.records if "do not take it" in r.getMessage()]
        assert len(warnings) == 1


ARTICLE = " ".join(f"same{place}" for place in range(200))


class TestPipelineAlone:
    @pytest.fixture
    def done(self, copied_site: Site, settings: dict[str, Any]) -> Any:
        class Carries(LinkSpider):
            def parse(self, response: Response) -> Iterator[Any]:
                yield {"address": response.url, "html": response.text}
                yield {"address": response.url, "price": 3}
                for href in response.css("a::attr(href)").getall():
                    yield response.follow(href)

        return crawl(
            Carries,
            settings
            | {"NEARDUP_CONTENT_FIELD": "html", "NEARDUP_URL_FIELD": "address", "NEARDUP_ACTION": "drop"},
            start=copied_site.url,
        )

    def test_items_are_judged_by_the_page_they_carry(self, done: Any) -> None:
        assert done.neardup("pages") == 5
        assert done.neardup("duplicates") == 1
        assert done.neardup("items_dropped") == 1
        assert done.stats["item_dropped_reasons_count/NearDuplicate"] == 1

    def test_links_and_other_items_pass(self, done: Any, copied_site: Site) -> None:
        assert "/print-only" in paths(copied_site)
        assert len([item for item in done.items if "price" in item]) == 5
        assert len([item for item in done.items if "html" in item]) == 4

    @pytest.mark.parametrize(
        ("shown", "drops"),
        [
            (ARTICLE, True),
            (" ".join(ARTICLE.split()[100:] + ARTICLE.split()[:100]), True),
            (f"{ARTICLE} 17", False),
            (f"{ARTICLE} blue", False),
            (f"{ARTICLE} same0", False),
            (f'{ARTICLE} <img src="/other.jpg">', False),
            (f'{ARTICLE} <input value="Smith">', False),
        ],
        ids=["the same", "another order", "number", "word", "a word again", "image", "field"],
    )
    def test_an_item_is_dropped_if_its_page_says_nothing_new(
        self, settings: dict[str, Any], shown: str, drops: bool
    ) -> None:
        class Carries(scrapy.Spider):
            name = "carries"

            async def start(self) -> Any:
                for number in range(KNOWN_PAGES):
                    text = " ".join(f"say{number}x{place}" for place in range(40))
                    yield {"url": f"http://a.example/other/{number}", "html": text}
                yield {"url": "http://a.example/1", "html": f"<h1>The news</h1>{ARTICLE}"}
                yield {"url": "http://a.example/2", "html": f"<h1>The news</h1>{shown}"}

        done = crawl(Carries, settings | {"NEARDUP_CONTENT_FIELD": "html", "NEARDUP_ACTION": "drop"})

        assert done.neardup("duplicates") == 1
        assert done.stats.get("neardup/items_dropped", 0) == drops
        assert len(done.items) == KNOWN_PAGES + 2 - drops

    def test_an_item_is_kept_for_what_stands_beside_its_page(self, settings: dict[str, Any]) -> None:
        class Carries(scrapy.Spider):
            name = "carries"

            async def start(self) -> Any:
                for number, name in enumerate(["Smith", "Smith", "Miller"]):
                    yield {"url": f"http://a.example/{number}", "html": WORDS, "name": name}

        done = crawl(Carries, settings | {"NEARDUP_CONTENT_FIELD": "html", "NEARDUP_ACTION": "drop"})

        assert [item["name"] for item in done.items] == ["Smith", "Miller"]

    def test_an_item_that_cannot_be_judged_passes(
        self, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        class Carries(scrapy.Spider):
            name = "carries"

            async def start(self) -> Any:
                yield {"url": "http://[broken", "html": f'{WORDS} <a href="http://[x">x</a>'}
                yield {"url": "http://a.example/", "html": f"{WORDS} \ud800"}

        done = crawl(Carries, settings | {"NEARDUP_CONTENT_FIELD": "html", "NEARDUP_ACTION": "drop"})

        assert len(done.items) == 2
        assert "item_error" not in caplog.text


class TestSecondCrawl:
    def test_starts_with_what_the_first_stored(
        self, small_site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        first = crawl(LinkSpider, settings, start=small_site.url)
        small_site.add("/more", THIRD, "/new-copy", "/new")
        small_site.add("/new-copy", WORDS)
        small_site.add("/new", " ".join(f"n{i}" for i in range(50)))

        second = crawl(LinkSpider, settings, start=small_site.url)

        assert first.neardup("new") == 4
        assert second.neardup("unchanged") == 4
        assert second.neardup("duplicates") == 2
        assert second.neardup("new") == 1
        assert "5 known pages, 4 of them canonical, loaded from the snapshot in" in caplog.text

    def test_changed_page(self, small_site: Site, settings: dict[str, Any]) -> None:
        crawl(LinkSpider, settings, start=small_site.url)
        small_site.add("/more", " ".join(f"news{i}" for i in range(50)))

        second = crawl(LinkSpider, settings, start=small_site.url)

        assert second.neardup("changed") == 1
        assert second.neardup("unchanged") == 3

    @pytest.mark.parametrize("status", [404, 410])
    def test_page_that_is_gone(
        self, small_site: Site, settings: dict[str, Any], tmp_path: Path, status: int
    ) -> None:
        crawl(LinkSpider, settings, start=small_site.url)
        small_site.add("/article", WORDS, status=status)
        small_site.add("/unknown", WORDS, status=status)
        # Not seen again, so that nobody judges afresh what hung on the page that is gone.
        small_site.add("/", OTHER, "/article", "/unknown")

        second = crawl(LinkSpider, settings, start=small_site.url)

        assert second.neardup("gone") == 1
        assert second.neardup("pages") == 1
        with sqlite3.connect(tmp_path / "neardup.db") as connection:
            query = (
                "SELECT actual_url, kind, hash_value IS NULL FROM simhash_values"
                " WHERE actual_url LIKE '%article%' ORDER BY id"
            )
            assert connection.execute(query).fetchall() == [
                (f"{small_site.url}/article", "gone", 1),
                (f"{small_site.url}/article?print=1", "new", 0),
            ]
            assert connection.execute("SELECT COUNT(*) FROM duplicate_values").fetchone() == (0,)

        small_site.add("/", OTHER, "/article")
        small_site.add("/article", WORDS)
        third = crawl(LinkSpider, settings, start=small_site.url)
        assert third.neardup("duplicates") == 1

    def test_what_says_no_is_not_gone(self, small_site: Site, settings: dict[str, Any]) -> None:
        crawl(LinkSpider, settings, start=small_site.url)
        small_site.add("/article", WORDS, status=403)

        second = crawl(LinkSpider, settings, start=small_site.url)

        assert second.neardup("gone") == 0


class TestLog:
    def test_one_debug_line_a_duplicate_and_a_summary(
        self, small_site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)

        crawl(LinkSpider, settings, start=small_site.url)

        lines = [r for r in caplog.records if r.getMessage().startswith("Near-duplicate: ")]
        assert len(lines) == 1
        assert lines[0].levelno == logging.DEBUG
        assert f"{small_site.url}/article?print=1 of {small_site.url}/article (" in lines[0].getMessage()
        summary = next(r.getMessage() for r in caplog.records if "neardup: summary" in r.getMessage())
        assert "pages       5" in summary
        assert "duplicates  1 (20.0 %), 0 of them exact" in summary
        assert "links       2 deferred, 0 not followed\n" in summary
        assert "saved       at least 0 requests\n" in summary
        assert "text" in summary
        assert "neardup.db" in summary

    @pytest.mark.skipif(not native.available, reason=native.reason)
    def test_the_native_core_is_told_once(
        self, small_site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)

        crawl(LinkSpider, settings, start=small_site.url)

        lines = [(r.levelno, r.getMessage()) for r in caplog.records if "native core" in r.getMessage()]
        assert lines == [(logging.INFO, "neardup: native core: yes")]

    def test_progress_while_it_runs(
        self, small_site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)

        crawl(LinkSpider, settings | {"LOGSTATS_INTERVAL": 0.05, "DOWNLOAD_DELAY": 0.1}, start=small_site.url)

        assert any("links deferred" in r.getMessage() and "waiting" in r.getMessage() for r in caplog.records)


def test_components_have_their_places(tmp_path: Path) -> None:
    crawler = get_crawler(
        settings_dict={
            "ADDONS": {"neardup.Addon": 500},
            "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
            "NEARDUP_ENABLED": False,
        }
    )

    middlewares = {cls.__name__: order for cls, order in crawler.settings["SPIDER_MIDDLEWARES"].items()}
    assert middlewares == {"NearDuplicateMiddleware": 100}
    middlewares = {cls.__name__: order for cls, order in crawler.settings["DOWNLOADER_MIDDLEWARES"].items()}
    assert middlewares == {"DeferredRequestMiddleware": -1000}
    assert {cls.__name__ for cls in crawler.settings["ITEM_PIPELINES"]} == {"NearDuplicatePipeline"}
    assert {cls.__name__ for cls in crawler.settings["EXTENSIONS"]} == {"NearDuplicates"}
