"""Verdicts that are corrected while the crawl runs: what becomes of stats, rows, links and items."""

from __future__ import annotations

import gc
import logging
import sqlite3
import weakref
from contextlib import closing
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from scrapy import signals
from scrapy.core.engine import ExecutionEngine
from scrapy.http import HtmlResponse, Request
from scrapy.utils.test import get_crawler

from neardup.address import Address
from neardup.detection.endless import EndlessWatch, Led
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind, Verdict
from neardup.scrapy import extension
from neardup.scrapy.held import MOST_REQUESTS
from neardup.scrapy.links import CHAIN, CLUSTER, FAR, OUT_OF, RELEASED, Links, request_key
from neardup.scrapy.options import Action
from neardup.store.figures import curve
from neardup.store.store import Store
from tests.support.crawling import crawl
from tests.support.page_links import page_links
from tests.support.sites.processes import crawl_process, make_project
from tests.support.sites.served import serve_site
from tests.support.sites.spiders import UrlSpider
from tests.support.sites.template import Template

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

URL = "http://shop.example/page?id=1"


def rows(database: Path) -> tuple[dict[str, int], int]:
    """How many pages are stored of each kind, and how many relations."""
    with closing(sqlite3.connect(database)) as connection:
        kinds = connection.execute("SELECT kind, COUNT(*) FROM simhash_values GROUP BY kind").fetchall()
        (relations,) = connection.execute("SELECT COUNT(*) FROM duplicate_values").fetchone()
    return dict(kinds), relations


@pytest.fixture
def settings(settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings, "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.LifoMemoryQueue"}


class TestTemplateSite:
    """Forty pages of one title, one heading and nine tenths of one text."""

    @pytest.mark.parametrize("action", ["record", "defer", "nofollow", "drop", "skip"])
    def test_by_scrapy_crawl(self, action: str, tmp_path: Path) -> None:
        make_project(tmp_path, addon=True)
        with serve_site(Template()) as served:
            done = crawl_process(served, tmp_path, {"NEARDUP_ACTION": action})

        assert done.found == served.site.keys
        assert sorted(item["url"] for item in done.items) == sorted(
            {item["url"] for item in done.items}
        )  # none twice
        assert len(done.items) == 40
        assert done.stats["finish_reason"] == "finished"
        assert done.stats["neardup/judged_again"] > 0
        kinds, relations = rows(tmp_path / ".scrapy" / "neardup" / "neardup.db")
        assert kinds.get("duplicate", 0) == relations <= 2
        assert sum(kinds.values()) == 40

    def test_links_are_deferred_no_longer(
        self, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        with serve_site(Template()) as served:
            done = crawl(UrlSpider, settings, start=served.start)

        assert {request.key for request in served.log} >= served.site.keys
        assert len([request for request in served.log if request.key]) == 40  # none was made twice
        assert done.neardup("links_undeferred") > 0
        ignored = done.stats["scheduler/dequeued"] - done.stats["downloader/request_count"]
        assert ignored == done.neardup("links_undeferred")
        assert done.neardup("lost_candidates") == done.neardup("links_withheld") == 0
        assert done.neardup("requests_saved_at_least") == 0
        assert done.neardup("new") + done.neardup("duplicates") == done.neardup("pages") == 40
        by_evidence = sum(done.neardup(f"evidence/{evidence.value}") for evidence in Evidence)
        assert by_evidence == done.neardup("duplicates") <= 2
        lines = [line for line in caplog.messages if line.startswith("Judged again: ")]
        assert len(lines) == done.neardup("judged_again") > 0

    @pytest.mark.timeout(40)
    def test_the_end_waits_for_no_heartbeat(
        self, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Judging the rest takes several slices, in which the engine is idle."""
        clock = count()
        monkeypatch.setattr(extension, "perf_counter", lambda: 0.6 * extension._SLICE_SECONDS * next(clock))
        monkeypatch.setattr(extension, "AGAIN", 1)
        monkeypatch.setattr(ExecutionEngine, "_SLOT_HEARTBEAT_INTERVAL", 3600.0)

        with serve_site(Template(own=8)) as served:
            done = crawl(UrlSpider, settings, start=served.start)

        assert done.stats["finish_reason"] == "finished"
        assert done.neardup("duplicates") > 2
        assert {item["url"] for item in done.items} == {f"{served.start}"} | {
            f"{served.start.rstrip('/')}/page/{number}" for number in range(1, 40)
        }

    def test_nothing_is_lost_by_a_crawl_that_is_resumed(
        self, settings: dict[str, Any], tmp_path: Path
    ) -> None:
        settings |= {
            "JOBDIR": str(tmp_path / "job"),
            "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleLifoDiskQueue",
        }
        with serve_site(Template()) as served:
            crawls = [
                crawl(UrlSpider, settings | limit, start=served.start)
                for limit in ({"CLOSESPIDER_PAGECOUNT": 12}, {"CLOSESPIDER_PAGECOUNT": 12}, {})
            ]

        assert [done.stats["finish_reason"] for done in crawls][-1] == "finished"
        assert {request.key for request in served.log} >= served.site.keys
        assert len({item["url"] for done in crawls for item in done.items}) == 40

    @pytest.mark.parametrize("pages", [10, 38])
    def test_what_a_limit_left_is_judged_again_at_the_end(self, settings: dict[str, Any], pages: int) -> None:
        with serve_site(Template()) as served:
            done = crawl(UrlSpider, settings | {"CLOSESPIDER_PAGECOUNT": pages}, start=served.start)

        assert done.stats["finish_reason"] == "closespider_pagecount"
        assert done.neardup("judged_again") > 0
        assert done.neardup("duplicates") <= 2
        database = settings["NEARDUP_DATABASE_URL"]
        with Store.open(database, scheme=None) as store, store.reading() as connection:
            found = curve(connection)
        assert found is not None
        assert found.points[-1] == (done.neardup("requests"), done.neardup("unique"))


class Callbacks(scrapy.Spider):
    name = "callbacks"


def duplicate(evidence: Evidence = Evidence.WHOLE, page_id: int = 2) -> Verdict:
    return Verdict(
        address=Address(URL), kind=Kind.DUPLICATE, follow=False, repeated=True, reason="", page_id=page_id,
        canonical_id=1, distance=3, resemblance=0.9, evidence=evidence,
    )  # fmt: skip


def response() -> HtmlResponse:
    return HtmlResponse(URL, body=b"<a href=/next>x</a>", encoding="utf-8", request=Request(URL))


class TestReleasedLinks:
    @pytest.fixture(params=["of this run", "of earlier runs, too"])
    def links(self, request: pytest.FixtureRequest, tmp_path: Path) -> Links:
        """With a queue that holds requests of this run only, or of earlier ones as well."""
        settings = {"JOBDIR": str(tmp_path)} if request.param == "of earlier runs, too" else {}
        return Links(get_crawler(Callbacks, settings), Action.DEFER, EndlessWatch(3))

    def defer(self, links: Links, verdict: Verdict, name: str = "next", *, seen: bool = False) -> Request:
        """A link of a duplicate, on its way into the queue; with ``seen``, Scrapy does not take it again."""
        request = Request(f"http://shop.example/{name}", priority=-7, meta={"kept": 1})
        # Pages that differ in numbers alone wait on.
        said = str(verdict.page_id).translate(str.maketrans("0123456789", "abcdefghij"))
        assert page_links(links, response(), verdict, lambda: said).lets_pass(request)
        links.crawler.signals.send_catch_log(signals.request_scheduled, request=request)
        if seen:
            links.crawler.signals.send_catch_log(signals.request_dropped, request=request)
        return request

    def test_in_its_turn_with_what_it_came_with(self, links: Links) -> None:
        waiting = self.defer(links, duplicate())

        (released,) = links.release(2, 1)

        assert (released.url, released.priority, released.dont_filter) == (waiting.url, -7, True)
        assert released.meta == {"kept": 1, RELEASED: True}
        assert links.still_deferred == 0
        assert not links.has_been_released(released)
        assert (released.dont_filter, released.meta) == (False, {"kept": 1})
        assert links.has_been_released(waiting)
        assert not links.has_been_released(waiting)  # such as a retry
        assert waiting.meta.keys() == {"kept", CLUSTER, CHAIN, FAR, OUT_OF}

    def test_those_of_all_duplicates_of_a_page(self, links: Links) -> None:
        self.defer(links, duplicate(page_id=2), "a")
        self.defer(links, duplicate(page_id=3), "b")
        self.defer(links, replace(duplicate(page_id=4), canonical_id=9), "c")

        released = links.release_cluster(1)

        assert [request.url for request in released] == ["http://shop.example/a", "http://shop.example/b"]
        assert links.still_deferred == 1

    def test_not_if_its_turn_has_come(self, links: Links) -> None:
        waiting = self.defer(links, duplicate())
        assert not links.has_been_released(waiting)

        assert links.release(2, 1) == []

    def test_not_if_scrapy_has_made_it_before(self, links: Links) -> None:
        links.has_been_released(Request("http://shop.example/next"))  # such as the target of a redirect
        self.defer(links, duplicate(), seen=True)

        assert links.release(2, 1) == []
        assert links.still_deferred == 0

    def test_what_was_put_back(self, links: Links) -> None:
        waiting = self.defer(links, duplicate())
        assert not links.has_been_released(waiting)
        links.crawler.signals.send_catch_log(signals.request_scheduled, request=waiting)
        links.put_back(waiting)

        (released,) = links.release(2, 1)

        assert released.url == waiting.url

    def test_what_another_duplicate_has_led_to_before(self, links: Links) -> None:
        first = self.defer(links, duplicate(page_id=3))
        self.defer(links, duplicate(), seen=True)

        (released,) = links.release(2, 1)

        assert links.has_been_released(first)
        assert links.release(3, 1) == []
        assert released.url == first.url

    def test_a_request_that_scrapy_filters_is_not_kept(self) -> None:
        links = Links(get_crawler(Callbacks), Action.DEFER, EndlessWatch(3))
        links.has_been_released(Request("http://shop.example/made"))
        waiting = self.defer(links, duplicate(page_id=3))

        filtered = [weakref.ref(self.defer(links, duplicate(), name, seen=True)) for name in ("made", "next")]

        gc.collect()
        assert [request() for request in filtered] == [None, None]
        assert [request.url for request in links.release(2, 1)] == [waiting.url]

    def test_not_of_a_page_with_the_very_text(self, links: Links) -> None:
        self.defer(links, duplicate(Evidence.TEXT))

        assert not links.holds_requests
        assert links.release(2, 1) == []

    def test_links_of_a_cluster_that_was_taken_for_endless(self, links: Links) -> None:
        for _ in range(3):
            links.endless.led(1, Led.NOTHING)
        withheld = Request("http://shop.example/next")
        assert not page_links(links, response(), duplicate(), str).lets_pass(withheld)
        assert links.lost_candidates == 1

        (released,) = links.release(2, 1)

        assert released.url == withheld.url
        assert links.lost_candidates == 0
        assert links.examples == []
        assert links.crawler.stats.get_value("neardup/links_withheld") == 0
        assert links.crawler.stats.get_value("neardup/links_undeferred") == 1
        assert not links.endless.is_exhausted(1)

    def test_nofollow_makes_no_request_that_has_been_made(self, links: Links) -> None:
        links.action = Action.NOFOLLOW
        links.pass_on(request_key(links.crawler, Request("http://shop.example/next")))
        assert not page_links(links, response(), duplicate(), str).lets_pass(
            Request("http://shop.example/next")
        )

        assert links.release(2, 1) == []

    def test_the_last_ones_are_kept(self, links: Links) -> None:
        for number in range(MOST_REQUESTS // 100 + 1):
            for link in range(100):
                self.defer(links, duplicate(page_id=number + 2), f"{number}/{link}")

        assert len(links.release(MOST_REQUESTS // 100 + 2, 1)) == 100
        assert links.release(2, 1) == []
        assert len(links.release(3, 1)) == 100
