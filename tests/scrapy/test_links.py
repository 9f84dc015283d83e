"""Which requests of a duplicate wait, which never do, and what Scrapy's queues make of it."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from scrapy.http import FormRequest, HtmlResponse, Request
from scrapy.loader import ItemLoader
from scrapy.utils.test import get_crawler

from neardup.address import Address
from neardup.detection.endless import EndlessWatch, Led
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind, Verdict
from neardup.scrapy.carried import values_carried
from neardup.scrapy.extension import NearDuplicates
from neardup.scrapy.links import (
    AUDITED,
    BAND,
    CHAIN,
    CLUSTER,
    DEFERRED,
    FAR,
    LONGEST_CHAIN,
    REPEATED,
    Links,
    lowered_by,
    queued_again,
    request_key,
)
from neardup.scrapy.options import Action
from neardup.urls.audit import Audit
from tests.support.crawling import crawl, serve
from tests.support.page_links import page_links
from tests.support.sites import spiders
from tests.support.sites.endless import Calendar
from tests.support.sites.served import serve_site
from tests.support.spiders import OTHER, WORDS, LinkSpider, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from scrapy.http import Response

    from tests.support.crawling import Site

URL = "http://shop.example/page?id=1"


@dataclass
class Product:
    name: str


class Callbacks(scrapy.Spider):
    name = "callbacks"

    def parse_other(self, response: Any) -> None:
        """Another callback than that of the page."""

    def parser(self) -> Callable[[Any], str]:
        """A callback that holds the spider only."""
        return lambda response: self.name + response.url

    def parser_of(self, name: str) -> Callable[[Any], str]:
        """A callback that holds a value."""
        return lambda response: name + response.url


SPIDER = Callbacks()
NEW = Verdict(address=Address(URL), kind=Kind.NEW, follow=True, reason="", page_id=2)
DUPLICATE = Verdict(
    address=Address(URL),
    kind=Kind.DUPLICATE,
    follow=False,
    repeated=True,
    reason="",
    page_id=2,
    canonical_id=1,
)


LINKS = (
    "/alone",
    "/day/0",
    "/day/77",
    "/event/jazz-night",
    "/event/rock",
    "/known",
    "/month/3",
    "/news",
    "/next",
)
BODY = "".join(f"<a href={link}>x</a>" for link in LINKS).encode()


def response(meta: dict[str, Any] | None = None, url: str = URL) -> HtmlResponse:
    return HtmlResponse(url, body=BODY, encoding="utf-8", request=Request(url, meta=meta))


@pytest.fixture
def links() -> Links:
    crawler = get_crawler(Callbacks)
    return Links(crawler, Action.DEFER, EndlessWatch(3))


@pytest.mark.parametrize(
    "request_",
    [
        Request("http://shop.example/other"),
        Request("http://shop.example/other", callback=SPIDER.parse_other),
        Request(
            "http://shop.example/other", callback=SPIDER.parse_other, meta={"link_text": "more", "depth": 3}
        ),
        Request("http://shop.example/other", callback=SPIDER.parse_other, meta={"download_timeout": 9}),
        Request("http://shop.example/other", meta={"product": Product("chair")}),
        Request("http://SHOP.example./page?id=2"),
    ],
)
def test_links_wait(links: Links, request_: Request) -> None:
    links.giving.note(request_)

    assert page_links(links, response(), DUPLICATE, str).lets_pass(request_)

    assert request_.priority == -DEFERRED
    assert request_.meta[CLUSTER] == 1


def test_a_link_waits_once_its_callback_has_given_something(links: Links) -> None:
    """Until then the callback may keep what it reads, for items of later pages."""
    first, second = (
        Request(f"http://shop.example/{name}", callback=SPIDER.parse_other) for name in ("first", "second")
    )
    assert page_links(links, response(), DUPLICATE, str).lets_pass(first)
    links.giving.note(first)
    assert page_links(links, response(), DUPLICATE, str).lets_pass(second)

    assert (first.priority, second.priority) == (0, -DEFERRED)


@pytest.mark.parametrize(
    ("by_depth", "priority", "waits"),
    [
        (0, 0, True),
        (0, -1, True),
        (0, 1, False),
        (1, -2, True),
        (1, -1, False),
        (-1, 2, True),
        (-1, 3, False),
    ],
)
def test_a_link_that_the_spider_wants_first_does_not_wait(by_depth: int, priority: int, waits: bool) -> None:
    """Scrapy has changed the priority by the depth, which is 2."""
    links = Links(get_crawler(Callbacks, {"DEPTH_PRIORITY": by_depth}), Action.DEFER, EndlessWatch(3))
    request = Request("http://shop.example/other", priority=priority, meta={"depth": 2})

    assert page_links(links, response(), DUPLICATE, str).lets_pass(request)

    assert request.priority == priority - DEFERRED * waits


def by_default(response: Any, name: str = "chair") -> None:
    """A callback that holds a value, too."""


def by_keyword(response: Any, *, name: str = "chair") -> None:
    """One more."""


@pytest.mark.parametrize(
    "callback",
    [
        partial(SPIDER.parse_other, "chair"),
        SPIDER.parser_of("chair"),
        by_default,
        by_keyword,
        ItemLoader({"name": "chair"}).add_value,
    ],
)
def test_callbacks_that_hold_values_are_called_at_once(links: Links, callback: Any) -> None:
    request = Request("http://shop.example/api", callback=callback)

    page_links(links, response(), DUPLICATE, str).lets_pass(request)

    assert request.priority == 0
    assert values_carried(request)


def test_a_request_says_what_it_carries() -> None:
    meta = {"download_item": {"name": "chair"}, "rule": Product("chair"), "download_timeout": 9, "rule_": 1}
    request = Request("http://shop.example/1", cb_kwargs={"level": 2}, meta=meta, callback=by_default)

    assert values_carried(request) == [
        "cb_kwargs 'level'", "meta 'download_item'", "meta 'rule'", "meta 'rule_'", "the callback"
    ]  # fmt: skip
    settings = {
        "rule": 1, "splash": {"args": {}}, "handle_httpstatus_list": range(400, 600), "_scheme_proxy": True,
        "impersonate": "chrome", "impersonate_request_bytes": 80, "_rotating_proxy": True, "_ban": None,
    }  # fmt: skip
    assert not values_carried(Request("http://shop.example/1", meta=settings))
    items = {"dont_retry": [{"name": "chair"}]}
    assert values_carried(Request("http://shop.example/1", meta=items)) == ["meta 'dont_retry'"]


def test_a_callback_that_calls_another_one_holds_nothing(links: Links) -> None:
    request = Request("http://shop.example/other", callback=SPIDER.parser())
    links.giving.note(request)

    page_links(links, response(), DUPLICATE, str).lets_pass(request)

    assert request.priority == -DEFERRED


def test_pages_of_one_callback_with_other_values_are_links(links: Links) -> None:
    page = response()
    assert page.request is not None
    page.request.callback = partial(SPIDER.parse_other, "chairs")
    request = Request("http://shop.example/other", callback=partial(SPIDER.parse_other, "chairs, page 2"))

    page_links(links, page, DUPLICATE, str).lets_pass(request)

    assert request.priority == -DEFERRED


def test_what_a_start_request_has_fetched_is_not_made_once_more(links: Links) -> None:
    """Scrapy drops the link of a duplicate if a start request for the same page is in the queue."""
    doubtful = replace(DUPLICATE, evidence=Evidence.WHOLE)
    page_links(links, response(), doubtful, str).lets_pass(Request("http://shop.example/other"))
    assert not links.has_been_released(Request("http://shop.example/other"))  # the start request

    assert links.release(2, None) == []


def test_links_that_expire_are_made_in_their_turn(links: Links) -> None:
    request = Request(f"http://shop.example/other?until={int(time.time()) + 60}")
    links.marks = True

    page_links(links, response(), DUPLICATE, str).lets_pass(request)

    assert request.priority == 0
    assert request.meta[BAND] == 0
    assert request.meta[CLUSTER] == 1  # so it is withheld if the cluster turns out to be endless


@pytest.mark.parametrize(
    "request_",
    [
        Request(URL),
        Request(URL + "#part"),
        Request("http://shop.example/other", dont_filter=True),
        Request("http://shop.example/other", method="POST"),
        FormRequest("http://shop.example/login", formdata={"user": "x"}),
        Request("http://api.example/other"),
        Request(
            "http://shop.example/api", callback=SPIDER.parse_other, cb_kwargs={"item": {"name": "chair"}}
        ),
        Request(
            "http://shop.example/api", callback=SPIDER.parse_other, cb_kwargs={"product": Product("chair")}
        ),
        Request("http://shop.example/api", callback=SPIDER.parse_other, cb_kwargs={"name": "chair"}),
        Request("http://shop.example/api", callback=SPIDER.parse_other, meta={"name": "chair", "price": 9}),
        Request("http://shop.example/api", callback=SPIDER.parse_other, meta={7: "chair"}),  # type: ignore[dict-item]
        Request("http://shop.example/api", callback=SPIDER.parse_other, meta={"item": Product("chair")}),
        Request(
            "http://shop.example/api", callback=SPIDER.parse_other, meta={"loader": ItemLoader({"a": 1})}
        ),
    ],
)
@pytest.mark.parametrize("action", list(Action))
def test_what_is_no_link_to_another_page_is_not_touched(
    links: Links, request_: Request, action: Action
) -> None:
    links.action = action
    links.pass_on(request_key(links.crawler, request_))  # so that nofollow would withhold it
    for _ in range(3):
        links.endless.led(1, Led.NOTHING)
    before = request_.to_dict(spider=SPIDER)

    assert page_links(links, response(), DUPLICATE, str).lets_pass(request_)

    assert request_.to_dict(spider=SPIDER) == before


def test_links_of_other_pages_are_not_touched(links: Links) -> None:
    for verdict in (NEW, None):
        request = Request("http://shop.example/other")

        assert page_links(links, response(), verdict, str).lets_pass(request)

        assert (request.priority, request.meta) == (0, {})


def test_what_another_page_has_too_comes_last_of_all(links: Links) -> None:
    page_links(links, response(), NEW, str).lets_pass(Request("http://shop.example/known"))
    known, alone = (
        Request("http://shop.example/known", priority=-5),
        Request("http://shop.example/alone", priority=-5),
    )
    page = page_links(links, response(), DUPLICATE, str)

    assert page.lets_pass(known)
    assert page.lets_pass(alone)

    assert (known.priority, alone.priority) == (-5 - REPEATED, -5 - DEFERRED)


def test_a_priority_taken_over_from_the_response_is_not_lowered_again(links: Links) -> None:
    request = Request("http://shop.example/other", priority=-DEFERRED)

    page_links(links, response(), DUPLICATE, str).lets_pass(request)

    assert request.priority == -DEFERRED


def test_the_longer_a_chain_of_duplicates_the_later_is_its_end(links: Links) -> None:
    first = Request("http://shop.example/1")
    page_links(links, response(), DUPLICATE, str).lets_pass(first)
    second = Request("http://shop.example/2")
    page_links(links, response(first.meta), DUPLICATE, str).lets_pass(second)
    late = Request("http://shop.example/3")
    page_links(links, response({CLUSTER: 1, CHAIN: 1_000}), DUPLICATE, str).lets_pass(late)

    assert [request.priority for request in (first, second, late)] == [
        -DEFERRED,
        -DEFERRED - 1,
        -DEFERRED - LONGEST_CHAIN,
    ]


def test_a_cluster_that_a_spider_copies_does_not_spread(links: Links) -> None:
    copied = Request("http://shop.example/other", meta={CLUSTER: 7})
    retry = Request(URL, meta={CLUSTER: 7})
    page = page_links(links, response({CLUSTER: 7}), NEW, str)

    assert page.lets_pass(copied)
    assert page.lets_pass(retry)

    assert CLUSTER not in copied.meta
    assert retry.meta[CLUSTER] == 7


def test_nofollow_withholds_only_what_another_page_has_too(links: Links) -> None:
    links.action = Action.NOFOLLOW
    page_links(links, response(), NEW, str).lets_pass(Request("http://shop.example/known"))
    page = page_links(links, response(), DUPLICATE, str)

    assert not page.lets_pass(Request("http://shop.example/known"))
    assert page.lets_pass(Request("http://shop.example/alone"))

    assert page.withheld == 1
    assert links.lost_candidates == 0


class TestExhausted:
    @pytest.fixture
    def exhausted(self, links: Links) -> Links:
        self.waiting = [Request(f"http://shop.example/{name}") for name in ("known", "alone")]
        for request in self.waiting:
            page_links(links, response(), DUPLICATE, str).lets_pass(request)
        for _ in range(3):
            links.endless.led(1, Led.NOTHING)
        return links

    def test_links_are_withheld_and_counted(self, exhausted: Links) -> None:
        assert not page_links(exhausted, response(), DUPLICATE, str).lets_pass(
            Request("http://shop.example/next")
        )

        assert exhausted.lost_candidates == 1
        assert exhausted.examples == ["http://shop.example/next"]

    def test_what_waits_is_withheld_when_its_turn_comes(self, exhausted: Links) -> None:
        assert [exhausted.is_withheld_now(request) for request in self.waiting] == [True, True]
        assert exhausted.lost_candidates == 2

    def test_but_not_what_another_page_has_led_to_meanwhile(self, exhausted: Links) -> None:
        # Scrapy does not take the request of the other page, because the one that waits is the same.
        page_links(exhausted, response(), NEW, str).lets_pass(Request("http://shop.example/known"))

        assert [exhausted.is_withheld_now(request) for request in self.waiting] == [False, True]

    def test_what_the_spider_has_made_up_waits_and_is_made(self, links: Links) -> None:
        areas = [Request(f"http://shop.example/near?x={x}") for x in range(2)]
        first = page_links(links, response(), DUPLICATE, str)
        assert all(map(first.lets_pass, areas))
        for area in areas * 5:
            assert page_links(links, response(area.meta), DUPLICATE, str).finish() is None
        assert all(area.priority <= -DEFERRED for area in areas)

        for _ in range(3):
            links.endless.led(1, Led.NOTHING)

        assert not any(map(links.is_withheld_now, areas))
        assert page_links(links, response(), DUPLICATE, str).lets_pass(
            Request("http://shop.example/near?x=9")
        )
        assert links.lost_candidates == 0

    def test_a_link_that_turns_up_elsewhere_is_no_candidate_any_more(self, exhausted: Links) -> None:
        page_links(exhausted, response(), DUPLICATE, str).lets_pass(Request("http://shop.example/next"))
        assert page_links(exhausted, response(), NEW, str).lets_pass(Request("http://shop.example/next"))

        assert exhausted.lost_candidates == 0

    def test_something_new_opens_the_cluster_again(self, exhausted: Links) -> None:
        page = page_links(exhausted, response({CLUSTER: 1}), NEW, str)
        page.finish()

        assert page_links(exhausted, response(), DUPLICATE, str).lets_pass(
            Request("http://shop.example/next")
        )


class Downloads(spiders.FollowSpider):
    """Fetches a waiting page by itself as well, just when the space of it has ended."""

    name = "downloads"

    async def parse(self, response: Any) -> Any:
        for each in super().parse(response):
            yield each
            if isinstance(each, Request) and CLUSTER in each.meta and self.parse != super().parse:
                self.parse = super().parse  # type: ignore[method-assign]
                neardup = self.crawler.get_extension(NearDuplicates)
                assert neardup is not None
                for _ in range(9):
                    neardup.policy.links.endless.led(each.meta[CLUSTER], Led.NOTHING)
                answer = await self.crawler.engine.download_async(Request(each.url))
                yield {"title": f"fetched {answer.status}"}


def test_what_a_spider_downloads_by_itself_is_not_withheld(addon: dict[str, Any]) -> None:
    with serve_site(Calendar(5)) as served:
        done = crawl(Downloads, addon | {"NEARDUP_ENDLESS_AFTER": 3}, start=served.start)

    assert [each for each in done.items if each["title"].startswith("fetched")] == [{"title": "fetched 200"}]


@pytest.mark.parametrize(
    "queues",
    [
        {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.ScrapyPriorityQueue"},
        {"SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue"},
        {"DEPTH_PRIORITY": 1},
        {"DEPTH_PRIORITY": -1, "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.LifoMemoryQueue"},
        {"JOBDIR": "job", "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue"},
        {"JOBDIR": "job", "SCHEDULER_DISK_QUEUE": "scrapy.squeues.MarshalLifoDiskQueue"},
    ],
    ids=lambda queues: ",".join(str(value).rpartition(".")[2] for value in queues.values()),
)
def test_schedulers_and_queues_make_deferred_requests_last(tmp_path: Path, queues: dict[str, Any]) -> None:
    if "JOBDIR" in queues:
        queues = queues | {"JOBDIR": str(tmp_path / "job")}
    settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db"}
    with serve() as site:
        others = [f"/{number}" for number in range(20)]
        site.add("/", text("start"), "/article", *others)
        site.add("/article", text("article"), "/print")
        site.add("/print", text("article"), "/behind")
        site.add("/behind", text("behind"))
        for other in others:
            site.add(other, text(f"page{other[1:]}x"))

        done = crawl(LinkSpider, settings | queues, start=site.url)

        asked = [path for path in site.requested if path != "/robots.txt"]
    assert sorted(asked) == sorted(["/", "/article", "/print", "/behind", *others])
    assert asked[-1] == "/behind"
    assert done.neardup("links_deferred") == 1


def test_links_of_copies_that_a_sample_led_to_do_not_wait(links: Links) -> None:
    links.marks = True
    links.audit = Audit(0.05, 8, seed=1)
    waiting, of_sample = Request("http://shop.example/a"), Request("http://shop.example/b")

    assert page_links(links, response(), DUPLICATE, str).lets_pass(waiting)
    assert page_links(links, response({AUDITED: 1}), DUPLICATE, str).lets_pass(of_sample)

    assert (of_sample.priority, of_sample.meta[BAND]) == (0, 0)
    assert waiting.priority <= -lowered_by(0.5)
    assert waiting.meta[BAND] > 0


def test_with_an_audit_links_of_a_page_that_is_no_copy_after_all_do_not_wait(links: Links) -> None:
    """But as long as so few pages are known that the crawl makes all requests anyway."""
    links.marks = True
    links.is_own = lambda response, verdict: True
    early, late = Request("http://shop.example/a"), Request("http://shop.example/b")

    links.audit = Audit(0.05, 8, seed=1)
    assert page_links(links, response(), DUPLICATE, str).lets_pass(early)
    links.audit.unique = 1_000
    assert page_links(links, response(), DUPLICATE, str).lets_pass(late)

    assert early.meta[BAND] > 0
    assert (late.priority, late.meta[BAND]) == (0, 0)


def test_an_audit_knows_the_place_of_each_request_that_waits(links: Links) -> None:
    """The order of the bands is that of the queue, also for what another page has led to."""
    links.marks = True
    links.audit = Audit(0.05, 8, seed=1)
    first, repeated = Request("http://shop.example/a"), Request("http://shop.example/a")

    for request in (first, repeated):
        assert page_links(links, response(), DUPLICATE, str).lets_pass(request)

    assert repeated.meta[BAND] == first.meta[BAND] > 0
    assert repeated.priority == first.priority


class Numbered(Request):
    """A request as a spider has it, with a number that Scrapy's own do not know."""

    def __init__(self, number: int = 0, path: str = "", start: str = "") -> None:
        super().__init__(f"{start}{path}")
        self.number = number


class NumberedSpider(scrapy.Spider):
    name = "numbered"

    def __init__(self, start: str) -> None:
        super().__init__()
        self.first = start

    async def start(self) -> AsyncIterator[Request]:
        yield Numbered(1, start=self.first)

    def parse(self, response: Response) -> Iterator[Any]:
        assert isinstance(response.request, Numbered)
        yield {"url": response.url, "number": response.request.number}
        for number, href in enumerate(response.css("a::attr(href)").getall(), start=2):
            yield Numbered(number, href, self.first.rstrip("/"))


@pytest.mark.slow
def test_requests_of_a_class_of_ones_own_wait_as_they_are(site: Site, addon: dict[str, Any]) -> None:
    copies = [f"/list?page=1&sid={number}" for number in range(40)]
    site.add("/", OTHER, *copies)
    for number, copy in enumerate(copies):
        site.add(copy, WORDS, f"/own/{number}")
        site.add(f"/own/{number}", " ".join(f"word{number}x{place}" for place in range(50)))

    done = crawl(NumberedSpider, addon, start=f"{site.url}/")

    assert len(done.items) == 81
    assert all(item["number"] for item in done.items)
    assert done.stats["neardup/predicted/deferred"] > 0
    assert "neardup/errors" not in done.stats


@pytest.mark.parametrize("name", ["CLOSESPIDER_PAGECOUNT_NO_ITEM", "CLOSESPIDER_TIMEOUT_NO_ITEM"])
def test_nothing_waits_in_a_crawl_that_ends_when_no_items_come(
    site: Site, addon: dict[str, Any], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.INFO)
    site.add("/", OTHER, "/a", "/b", "/last")
    site.add("/a", WORDS, "/item/1")
    site.add("/b", WORDS, "/item/2")
    site.add("/last", "words of its own and no more " * 9)
    site.add("/item/1", "an item")
    site.add("/item/2", "another item")

    done = crawl(LinkSpider, addon | {name: 60, "LOG_LEVEL": "INFO"}, start=f"{site.url}/")

    assert f"{name} is 60, so links of duplicates and predicted copies do not wait" in caplog.text
    assert len(done.items) == 6
    assert "neardup/links_deferred" not in done.stats


class OfConstructor(Request):
    """Cannot be copied without its constructor."""

    def __getattr__(self, name: str) -> Any:
        return self.meta[name]


def test_a_request_that_cannot_be_copied_is_made_anew() -> None:
    request = OfConstructor("http://shop.example/1", meta={"name": "chair"}, headers={"X-A": "1"})

    again = queued_again(request, -5, {"name": "table"})

    assert isinstance(again, OfConstructor)
    assert (again.priority, again.dont_filter, again.meta) == (-5, True, {"name": "table"})
    assert again.headers == request.headers


class PageObject:
    """Stands for a page object of scrapy-poet, which is no dependency of the tests."""

    __module__ = "web_poet.pages"

    def __init__(self, url: str) -> None:
        self.url = url


def test_a_page_object_of_the_page_itself_is_no_value_that_is_handed_on() -> None:
    own, other = PageObject("http://shop.example/1"), PageObject("http://shop.example/2")
    request = Request(own.url, cb_kwargs={"page": own, "listing": other})

    assert values_carried(request) == ["cb_kwargs 'listing'"]


class TestNearPages:
    """A few steps from a page that did not wait, it counts for nothing that a request has led to a copy."""

    @pytest.mark.parametrize(
        ("chain", "far", "new_links", "counts"),
        [
            (0, 1, 1, False),
            (2, 3, 1, False),
            (2, 3, 8, False),
            (3, 4, 1, True),
            (0, 1, 9, True),
            (0, 50, 0, False),
            (1, 3, 0, False),
            (1, 4, 0, True),
        ],
    )
    def test_by_the_steps_and_the_new_links(
        self, links: Links, chain: int, far: int, new_links: int, *, counts: bool
    ) -> None:
        exhausted: list[int | None] = []
        for visit in range(30):
            meta = {CLUSTER: 1, CHAIN: chain, FAR: far}
            read = response(meta, f"http://shop.example/page?id={visit}")
            page = page_links(links, read, DUPLICATE, lambda: "what all of these pages say")
            for link in range(new_links):
                assert page.lets_pass(Request(f"http://shop.example/{visit}/{link}")) or exhausted
            exhausted += [page.finish()]

        assert (1 in exhausted) == counts

    def test_a_step_is_the_place_among_the_new_links(self, links: Links) -> None:
        requests = [Request(f"http://shop.example/{name}") for name in "abc"]
        first = page_links(links, response(), DUPLICATE, str)
        assert all(first.lets_pass(request) for request in requests)
        further = page_links(links, response(requests[1].meta), DUPLICATE, str)
        below = Request("http://shop.example/below")
        assert further.lets_pass(below)

        assert [request.meta[FAR] for request in (*requests, below)] == [1, 2, 3, 3]


class TestFruitfulShapes:
    """An exhausted cluster still leads to pages like those that led to something new."""

    def test_months_are_followed_when_days_have_exhausted_the_cluster(self, links: Links) -> None:
        site = "http://shop.example"
        first = page_links(links, response(url=f"{site}/month/1"), DUPLICATE, str)
        event, waiting = Request(f"{site}/event/jazz-night"), Request(f"{site}/day/0")
        assert first.lets_pass(event)
        assert first.lets_pass(waiting)
        for page_id, said in ((3, "a night of jazz"), (4, "sea bass and potatoes")):
            new = replace(NEW, page_id=page_id)
            page_links(links, response(event.meta, event.url), new, partial(str, said)).finish()
        far = {**waiting.meta, CHAIN: 3, FAR: 9}
        told: list[int | None] = []
        for day in range(1, 30):
            page = page_links(links, response(far, f"{site}/day/{day}"), DUPLICATE, lambda: "nothing")
            told.append(page.finish())
        assert waiting.meta[CLUSTER] in told

        passed = [
            page_links(links, response(url=f"{site}/month/2"), DUPLICATE, str).lets_pass(Request(site + path))
            for path in ("/month/3", "/event/rock", "/day/77", "/news")
        ]

        assert passed == [True, True, False, False]
        assert links.is_withheld_now(waiting)


class TestPagesThatDifferInNumbers:
    """The weeks of a calendar, say, of which each passes for new."""

    @staticmethod
    def read(links: Links, verdict: Verdict, number: int, said: str = "nothing", **meta: Any) -> Request:
        """A link of the page of a day, after the page has been read."""
        request = Request(f"http://shop.example/week/{number}/more")
        of = replace(verdict, page_id=number)
        assert page_links(links, response(meta), of, lambda: f"{number} May: {said}").lets_pass(request)
        return request

    def test_their_links_wait(self, links: Links) -> None:
        made = [self.read(links, NEW, number) for number in range(2, 10)]

        assert [request.priority for request in made] == [0] * 4 + [-DEFERRED] * 4
        assert {request.meta[CLUSTER] for request in made[4:]} == {4}

    def test_an_end_holds_for_pages_that_differ_in_dates_alone(self, links: Links) -> None:
        made = [self.read(links, NEW, number, f"rain of {number} mm") for number in range(2, 10)]

        assert [request.meta[CLUSTER] for request in made[4:]] == [6, 7, 8, 9]

    def test_links_of_start_pages_do_not_wait(self, links: Links) -> None:
        made = [self.read(links, NEW, number, is_start_request=True) for number in range(2, 10)]

        assert {request.priority for request in made} == {0}

    @pytest.mark.parametrize(("alike", "released"), [(8, 0), (1, 1)])
    def test_links_wait_on_if_such_a_page_is_no_duplicate_after_all(
        self, links: Links, alike: int, released: int
    ) -> None:
        for number in range(10, 10 + alike):
            self.read(links, NEW, number)
        self.read(links, replace(DUPLICATE, evidence=Evidence.WHOLE), 9)

        assert len(links.release(9, None)) == released
