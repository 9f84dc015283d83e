"""Requests whose URLs say that their pages are copies: made last, dropped or only counted; what never is.

The whole sites are made ones on loopback. Nothing may be missing that a crawl without neardup finds.
"""

from __future__ import annotations

import logging
import pickle
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from scrapy.core.scheduler import BaseScheduler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import FormRequest, HtmlResponse, Request
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from neardup.address import Address, host_of
from neardup.detection.endless import EndlessWatch
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind, Verdict
from neardup.errors import ConfigurationError
from neardup.scrapy import made_before
from neardup.scrapy import predictions as module
from neardup.scrapy.extension import NearDuplicates
from neardup.scrapy.links import (
    AUDITED,
    BAND,
    CLUSTER,
    DEFERRED,
    OF_DUPLICATES,
    PREDICTED,
    RELEASED,
    Links,
    lowered_by,
)
from neardup.scrapy.options import Action, Options, Predict
from neardup.scrapy.predictions import BANDS, Predictions
from neardup.scrapy.schedulers import has_own_requests_only, has_priorities
from neardup.store.figures import curve
from neardup.store.store import Store
from neardup.urls import dropping
from neardup.urls.effects import Effect, Effects
from neardup.urls.learner import Learner
from neardup.urls.rules import Rule, Slot
from tests.support.crawling import crawl
from tests.support.page_links import page_links
from tests.support.sites import spiders
from tests.support.sites.chains import PrintedGuestbook
from tests.support.sites.cms import Forum
from tests.support.sites.drawn import Drawn
from tests.support.sites.endless import Calendar
from tests.support.sites.in_process import crawl_served
from tests.support.sites.served import Served, serve_site
from tests.support.sites.sessions import AlikeSessions, SessionIds, Teasers
from tests.support.sites.shop import Shop
from tests.support.sites.wiki import Wiki
from tests.support.stores import rules_of
from tests.support.verdicts import duplicate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

    from tests.support.sites.processes import Outcome
    from tests.support.sites.served import MadeSite


SITE = "http://shop.example"
KNOWN = f"{SITE}/item3?sid=new"
"""The URL of a page that is known without its session id."""

SID = Rule("shop.example", Slot.PARAMETER, "sid", "/item0")
"""The rule about that URL: the most special one."""


class Callbacks(scrapy.Spider):
    name = "callbacks"

    def parse_other(self, response: Any) -> None:
        """Another callback than that of the page."""


SPIDER = Callbacks()


def taught() -> Learner:
    """A learner that knows a shop whose session ids do not matter."""
    learner = Learner()
    for item in range(40):
        for sid in "abcde":
            learner.observe(f"{SITE}/item{item}?sid={sid}", cluster=item)
    return learner


def predictions(
    predict: Predict = Predict.DEFER, learner: Learner | None = None, *, endless_after: int = 0
) -> Predictions:
    """Those of a crawl that has read enough copies without links of their own."""
    of = Predictions(
        get_crawler(Callbacks), predict, learner or taught(), Effects(), endless_after=endless_after
    )
    for place in range(72):
        url = f"{SITE}/item{place % 40}"
        read_copy(of, f"{url}?sid=read{place}", [f"{url}?sid=next"], copy_of=-1)
    return of


def read_copy(
    of: Predictions, url: str, links: list[str], *, copy_of: int = 0, evidence: Evidence = Evidence.TEXT
) -> None:
    """Read a copy of a page, with these links that no page had before."""
    name = of.copy_read(duplicate(9_999, url, copy_of, evidence=evidence), url, links).in_question
    if name is not None:
        of.settle(url, name, makes_up_values=True)
        assert name in of.learner.made_up(host_of(SITE))


def link(url: str = KNOWN, band: int = 0, **kwargs: Any) -> Request:
    """A link that leaves the queue."""
    meta = kwargs.pop("meta", {})
    return Request(url, meta={**meta, BAND: band}, priority=-lowered_by(band), **kwargs)


def put_back(decided: Request | None) -> Request:
    assert decided is not None
    return decided


def test_links_of_duplicates_wait_longest_where_pages_are_missing() -> None:
    of = predictions()
    for number in range(60):
        of.answered(Request(f"{SITE}/fr/{number}"), 404)
        of.answered(Request(f"{SITE}/en/{number}"), 200)
        of.answered(Request(f"{SITE}/de/{number}"), 500)

    bands = {
        folder: put_back(of.look_at(link(f"{SITE}/{folder}/new", meta={CLUSTER: 1}))).meta[BAND]
        for folder in ("fr", "en", "de")
    }
    assert bands["en"] == bands["de"] < bands["fr"]

    assert of.look_at(link(f"{SITE}/fr/other")) is None  # no duplicate has it


def stat(of: Predictions, name: str) -> int:
    return int(of.crawler.stats.get_value(f"neardup/predicted{name}", 0))


@pytest.mark.slow
class TestEndlessCopies:
    """Copies, as predicted, that have led to nothing but further copies."""

    def read(self, of: Predictions, number: int, links: int = 1) -> None:
        """Read so many copies of 40 pages, each with new links to other copies."""
        for place in range(number):
            url = f"{SITE}/item{place % 40}?sid=again{place}"
            read_copy(of, url, [f"{url}{link}" for link in range(links)], copy_of=place % 40)

    def test_are_left(self) -> None:
        of = predictions(endless_after=50)
        left: list[tuple[str, Any]] = []
        of.withheld = lambda request, space: left.append((request.url, space))
        of.observe(verdict(f"{SITE}/first", page_id=1_000))
        self.read(of, 149)
        put_back(of.look_at(link()))

        self.read(of, 1)

        with pytest.raises(IgnoreRequest, match="without end"):
            of.look_at(link())
        assert left == [(KNOWN, (host_of(SITE), "sid"))]
        assert of.look_at(link(f"{SITE}/other")) is None  # no copy, as far as is known

    def test_are_requested_again_when_a_page_is_new(self) -> None:
        of = predictions(endless_after=50)
        self.read(of, 1_000)

        of.observe(verdict(f"{SITE}/other", page_id=1_000))

        put_back(of.look_at(link()))

    def test_are_no_end_without_new_links(self) -> None:
        of = predictions(endless_after=50)
        self.read(of, 1_000, links=0)

        put_back(of.look_at(link()))

    def test_are_no_end_while_alike_pages_are_found_at_other_addresses(self) -> None:
        of = predictions(endless_after=50)
        for place in range(10):
            self.read(of, 100)
            of.observe(duplicate(1_000 + place, f"{SITE}/other{place}", 0))

        self.read(of, 149)

        put_back(of.look_at(link()))
        self.read(of, 1)
        with pytest.raises(IgnoreRequest, match="without end"):
            of.look_at(link())

    def test_are_no_end_if_the_values_are_not_made_up(self) -> None:
        """Old revisions have links to the same other ones whenever they are asked for."""
        of = Predictions(get_crawler(Callbacks), Predict.DEFER, taught(), Effects(), endless_after=50)
        asked = 0
        for place in range(1_000):
            url = f"{SITE}/item{place % 40}?sid=again{place}"
            read = of.copy_read(duplicate(9_999, url, place % 40), url, [f"{url}1"])
            assert not read.is_made_up
            if read.in_question is not None:
                asked += 1
                assert not of.settle(url, read.in_question, makes_up_values=False)

        assert asked == 7  # after 7 copies, 13 more, 25 more, and so on
        put_back(of.look_at(link()))

    def test_never_end_if_the_setting_is_zero(self) -> None:
        of = predictions(endless_after=0)
        self.read(of, 1_000)

        put_back(of.look_at(link()))


class TestDeferred:
    def test_is_put_back_with_a_lower_priority_and_made_in_its_turn(self) -> None:
        of = predictions()

        waiting = put_back(of.look_at(link(callback=SPIDER.parse_other)))

        assert waiting.priority <= -DEFERRED
        assert waiting.callback == SPIDER.parse_other
        assert waiting.dont_filter  # Scrapy has seen it
        assert of.look_at(waiting) is None
        assert not waiting.dont_filter
        assert waiting.meta == {PREDICTED: tuple(map(str, SID))}
        assert (stat(of, ""), stat(of, "/deferred")) == (1, 1)

    def test_more_likely_copies_come_later(self) -> None:
        doubtful = Learner()
        for item in range(40):
            for sid in "abcde":
                doubtful.observe(f"{SITE}/item{item}?sid={sid}", item if sid < "e" else 1_000 + item)

        sure, unsure = (
            put_back(predictions(learner=learner).look_at(link())) for learner in (None, doubtful)
        )

        assert sure.priority < unsure.priority < -DEFERRED

    def test_another_address_of_a_page_comes_after_pages_that_are_alike(self) -> None:
        """Where session ids are new on each page, these have alike pages, too, until nothing else waits."""
        learner = taught()
        for item in range(60):
            for version in "1234":
                learner.observe(f"{SITE}/v{version}/page{item}", cluster=1_000 + item)
        learner.observe(f"{SITE}/v1/last", cluster=2_000)
        alike = learner.predict(f"{SITE}/v2/last")
        assert alike is not None
        assert alike.rule.slot is Slot.SEGMENT
        assert alike.probability >= BANDS[-1]

        of = predictions(learner=learner)
        another_address = put_back(of.look_at(link()))

        assert another_address.priority < put_back(of.look_at(link(f"{SITE}/v2/last"))).priority < -DEFERRED

    def test_links_of_duplicates_stand_in_the_same_order(self) -> None:
        waiting = put_back(predictions().look_at(link()))
        of_duplicate = put_back(predictions().look_at(link(band=OF_DUPLICATES, meta={CLUSTER: 1})))

        assert of_duplicate.priority == waiting.priority
        assert of_duplicate.meta[CLUSTER] == 1
        assert predictions().look_at(link(f"{SITE}/other?sid=a", OF_DUPLICATES)) is None

    def test_links_of_duplicates_wait_by_what_such_links_led_to(self) -> None:
        of, unknown = predictions(), f"{SITE}/other?sid=a"
        before = put_back(of.look_at(link(unknown, OF_DUPLICATES, meta={CLUSTER: 1})))
        for place in range(40):
            request = link(f"{SITE}/copy{place}", meta={CLUSTER: 1})
            of.judged(request, duplicate(900 + place, request.url, canonical=1, repeated=True))
        after = put_back(of.look_at(link(unknown, OF_DUPLICATES, meta={CLUSTER: 1})))

        assert after.priority < before.priority < -DEFERRED
        assert PREDICTED not in after.meta

    def test_other_addresses_of_known_pages_do_not_count_among_such_links(self) -> None:
        of, unknown = predictions(), f"{SITE}/other?sid=a"
        before = put_back(of.look_at(link(unknown, OF_DUPLICATES, meta={CLUSTER: 1})))
        for place in range(40):
            request = put_back(of.look_at(link(f"{SITE}/item{place}?sid=new", meta={CLUSTER: 1})))
            of.judged(request, duplicate(900 + place, request.url, canonical=1, repeated=True))

        after = put_back(of.look_at(link(unknown, OF_DUPLICATES, meta={CLUSTER: 1})))

        assert after.priority == before.priority

    def test_links_that_a_sample_led_to_do_not_wait(self) -> None:
        """Else the sample would be judged before it is known what stands behind its copies."""
        of, unknown = predictions(), f"{SITE}/behind-a-copy"

        assert of.look_at(link(unknown, meta={CLUSTER: 1, AUDITED: 1})) is None
        assert put_back(of.look_at(link(unknown, meta={CLUSTER: 1}))).meta[BAND] >= OF_DUPLICATES
        assert put_back(of.look_at(link(meta={CLUSTER: 1, AUDITED: 1}))).meta[BAND] > OF_DUPLICATES

    def test_what_is_not_known_is_made(self) -> None:
        request = link(f"{SITE}/other?sid=a")

        assert predictions().look_at(request) is None
        assert request.meta == {}

    @pytest.mark.parametrize("predict", [Predict.DEFER, Predict.DROP])
    def test_waits_for_the_page_that_it_may_be_a_copy_of(self, predict: Predict) -> None:
        """That page is under way: nothing is dropped before it is judged."""
        of, copy = predictions(predict), f"{SITE}/item77?sid=new"
        assert of.look_at(link(f"{SITE}/item77?sid=a")) is None

        waiting = put_back(of.look_at(link(copy)))

        assert waiting.priority <= -DEFERRED
        of.learner.observe(f"{SITE}/item77?sid=a", cluster=77)
        if predict is Predict.DEFER:
            assert of.look_at(waiting) is None
        else:
            with pytest.raises(IgnoreRequest, match=r"a copy of http://shop\.example/item77"):
                of.look_at(waiting)

    def test_waits_for_no_page_where_nothing_is_deferred(self) -> None:
        of = predictions(Predict.RECORD)
        assert of.look_at(link(f"{SITE}/item77?sid=a")) is None

        assert of.look_at(link(f"{SITE}/item77?sid=b")) is None

        assert stat(of, "") == 0

    def test_at_most_so_many_times(self) -> None:
        of, request = predictions(), link()
        for band in range(len(BANDS) + 1):
            decided = of.look_at(request)
            if decided is None:
                break
            assert decided.meta[BAND] > band
            request = decided
        else:
            pytest.fail("the request was never made")

    def test_recorded_only(self) -> None:
        of = predictions(Predict.RECORD)

        assert of.look_at(link()) is None
        assert (stat(of, ""), stat(of, "/deferred")) == (1, 0)

    def test_comes_earlier_when_its_page_is_found_to_be_another(self) -> None:
        of = predictions()
        waiting = put_back(of.look_at(link()))

        again = self.unlike(of, 5_000)

        assert again[0].url == KNOWN
        assert again[0].priority > waiting.priority
        assert of.look_at(again[0]) is None
        with pytest.raises(IgnoreRequest):  # the copy that has waited
            of.look_at(waiting)
        assert stat(of, "/undeferred") == 1

    def test_two_copies_in_one_band_are_one_request(self) -> None:
        """One that came forward, and was put back again to where the first one waits."""
        of = predictions()
        waiting, second = self.put_back_twice(of)

        with pytest.raises(IgnoreRequest):
            of.look_at(second)
        assert self.unlike(of, 6_000, most=50) == []
        assert of.look_at(waiting) is None

    def test_what_comes_forward_a_second_time_is_made_once(self) -> None:
        """Both copies that waited in one band are outdated then."""
        of = predictions()
        waiting, second = self.put_back_twice(of)
        (again, *_) = self.unlike(of, 6_000)

        assert of.look_at(again) is None
        for outdated in (waiting, second):
            with pytest.raises(IgnoreRequest, match="has come earlier"):
                of.look_at(outdated)

    def put_back_twice(self, of: Predictions) -> tuple[Request, Request]:
        """A link that waits, came forward, and was put back again: both copies of it that are queued."""
        waiting = put_back(of.look_at(link()))
        (again, *_) = self.unlike(of, 5_000)
        for number in range(500):  # half of them are of the page itself, whose history has the last word
            item = 3 if number % 2 else number % 40
            of.learner.observe(f"{SITE}/item{item}?sid=y{number}", cluster=item)
        second = put_back(of.look_at(again))
        assert second.meta[BAND] == waiting.meta[BAND]
        return waiting, second

    @staticmethod
    def unlike(of: Predictions, first: int, *, most: int = 10_000) -> list[Request]:
        """Judge pages that are unlike the known one; the requests that come forward by one of them."""
        for number in range(most):
            found = of.observe(verdict(f"{SITE}/item3?sid=x{first + number}", page_id=first + number))
            if found:
                return found
        return []


def verdict(url: str, *, page_id: int, kind: Kind = Kind.NEW, **kwargs: Any) -> Verdict:
    return Verdict(address=Address.of(url), kind=kind, follow=True, reason="", page_id=page_id, **kwargs)


class TestNeverTouched:
    @pytest.fixture
    def links(self) -> Links:
        links = Links(get_crawler(Callbacks), Action.DEFER, EndlessWatch(3))
        links.marks = True
        return links

    @pytest.mark.parametrize(
        "request_",
        [
            Request(KNOWN, dont_filter=True),
            Request(KNOWN, method="POST"),
            Request(KNOWN, method="HEAD"),
            FormRequest(KNOWN, formdata={"user": "x"}),
            Request(KNOWN, meta={"neardup": False}),
            Request(KNOWN, callback=SPIDER.parse_other, cb_kwargs={"item": {"name": "chair"}}),
            Request(f"{SITE}/page?id=1"),
        ],
    )
    def test_what_is_no_link(self, links: Links, request_: Request) -> None:
        before = request_.to_dict(spider=SPIDER)

        assert page_links(links, self.response(), None, str).lets_pass(request_)
        assert predictions().look_at(request_) is None

        assert request_.to_dict(spider=SPIDER) == before

    @pytest.mark.parametrize("url", [KNOWN, "http://www.shop.example/item3"])
    def test_links_are_looked_at_also_those_to_other_hosts(self, links: Links, url: str) -> None:
        request = Request(url)

        assert page_links(links, self.response(), None, str).lets_pass(request)

        assert request.meta == {BAND: 0}

    def test_marks_that_a_spider_copies_are_taken_out(self, links: Links) -> None:
        request = Request(KNOWN, meta={PREDICTED: True, BAND: 3})

        page_links(links, self.response(), None, str).lets_pass(request)

        assert request.meta == {BAND: 0}

    def test_a_link_of_a_duplicate_is_in_the_first_band(self, links: Links) -> None:
        of_page = verdict(f"{SITE}/page?id=1", page_id=2, kind=Kind.DUPLICATE, canonical_id=1)
        object.__setattr__(of_page, "follow", False)
        request = Request(KNOWN)

        assert page_links(links, self.response(), of_page, str).lets_pass(request)

        assert (request.priority, request.meta[BAND]) == (-DEFERRED, OF_DUPLICATES)

    def test_what_neardup_has_released(self, links: Links) -> None:
        doubtful = verdict(
            f"{SITE}/page?id=1",
            page_id=2,
            kind=Kind.DUPLICATE,
            canonical_id=1,
            resemblance=0.9,
            evidence=Evidence.WHOLE,
        )
        object.__setattr__(doubtful, "follow", False)
        page_links(links, self.response(), doubtful, str).lets_pass(Request(KNOWN))

        (released,) = links.release(2, cluster=None)

        assert released.meta == {RELEASED: True}

    @staticmethod
    def response() -> HtmlResponse:
        url = f"{SITE}/page?id=1"
        return HtmlResponse(url, body=b"<p>x</p>", encoding="utf-8", request=Request(url))


class TestDropped:
    def urls(self, number: int) -> Iterable[str]:
        return (f"{SITE}/item{place % 40}?sid=s{place}" for place in range(number))

    def drop_all(self, of: Predictions, number: int) -> int:
        """Drop so many; how many were not dropped."""
        made = 0
        for url in self.urls(number):
            request = link(url, errback=SPIDER.parse_other)
            try:
                of.look_at(request)
                made += 1
            except IgnoreRequest:
                assert request.errback is None
        return made

    def test_is_nearly_sure_and_a_share_is_fetched_all_the_same(self) -> None:
        of, again = predictions(Predict.DROP), predictions(Predict.DROP)

        made = self.drop_all(of, 400)

        assert 0 < made < 60
        assert self.drop_all(again, 400) == made  # the same ones in each crawl
        assert (stat(of, "/explored"), stat(of, "/dropped")) == (made, 400 - made)

    def test_not_if_such_copies_are_not_sure(self) -> None:
        of = predictions(Predict.DROP)
        for place in range(20):
            read_copy(of, f"{SITE}/item{place}?sid=read", [], evidence=Evidence.WHOLE)

        assert self.drop_all(of, 100) == 100

    def test_not_if_such_copies_have_links_of_their_own(self) -> None:
        of = predictions(Predict.DROP)
        for place in range(10):
            read_copy(of, f"{SITE}/item{place}?sid=read", [f"{SITE}/item1?sid=next", f"{SITE}/only-here"])

        assert self.drop_all(of, 100) == 100

    @pytest.mark.parametrize("slot", [Slot.SEGMENT, Slot.SUBSTITUTION, Slot.TRAP])
    def test_never_by_rules_that_may_lose_versions(self, slot: Slot) -> None:
        prediction = taught().predict(KNOWN)
        assert prediction is not None

        sure = prediction._replace(probability=1.0, lower=1.0)

        assert dropping.is_sure(sure)
        assert not dropping.is_sure(sure._replace(rule=Rule("shop.example", slot, "1")))

    def test_is_deferred_if_it_is_not_sure_enough(self) -> None:
        learner = Learner()
        for item in range(12):
            for sid in "abc":
                learner.observe(f"{SITE}/item{item}?sid={sid}", cluster=item)
        of = predictions(Predict.DROP, learner)

        assert put_back(of.look_at(link())).priority < -DEFERRED

    def test_is_queued_again_when_the_rule_is_revoked(self) -> None:
        learner = taught()
        of = predictions(Predict.DROP, learner)
        self.drop_all(of, 40)
        dropped = stat(of, "/dropped")
        effect = of.effects.of(SID)
        assert (effect.dropped, effect.saved, effect.explored) == (dropped, dropped, len(self.explored()))
        said = learner.predict(KNOWN)
        assert said is not None

        again: list[Request] = []
        for page in range(200):
            url = f"{SITE}/item{page % 40}?sid=other{page}"
            again += of.observe(verdict(url, page_id=1_000 + page))
        again += of.dropped_in_error()

        assert sorted(request.url for request in again) == sorted(set(self.urls(40)) - self.explored())
        assert stat(of, "/requeued") == dropped == len(again)
        assert (of.effects.of(SID).dropped, of.effects.of(SID).saved) == (dropped, 0)
        assert all(request.dont_filter and request.priority == 0 for request in again)
        assert [of.look_at(request) for request in again].count(None) > 0

    def test_is_queued_again_when_such_copies_are_found_to_have_links_of_their_own(self) -> None:
        of = predictions(Predict.DROP)
        self.drop_all(of, 40)
        assert of.dropped_in_error() == []

        for place in range(10):
            read_copy(of, f"{SITE}/item{place}?sid=read", [f"{SITE}/only-here{place}"])

        again = of.dropped_in_error()
        assert sorted(request.url for request in again) == sorted(set(self.urls(40)) - self.explored())
        assert stat(of, "/dropped") == stat(of, "/requeued") == len(again)

    def explored(self) -> set[str]:
        return {url for url in self.urls(40) if dropping.is_explored(url)}

    def test_so_many_are_kept(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_DROPPED", 10)
        of = predictions(Predict.DROP)
        self.drop_all(of, 400)
        of.learner.revoke(Rule("shop.example", Slot.PARAMETER, "sid"))
        of.learner.ban(Rule("shop.example", Slot.PARAMETER, "sid"))
        of.learner.ban(Rule("shop.example", Slot.TOGETHER, ""))

        assert len(of.dropped_in_error()) <= 10


class TestRightOrWrong:
    def test_by_the_verdict(self) -> None:
        of = predictions()
        request = put_back(of.look_at(link()))
        of.judged(request, verdict(KNOWN, page_id=9, repeated=True, kind=Kind.UNCHANGED))
        of.judged(request, verdict(KNOWN, page_id=9))
        of.judged(request, verdict(KNOWN, page_id=9, kind=Kind.TOO_SHORT))
        of.judged(link(), verdict(KNOWN, page_id=9))  # nothing spoke against it

        assert (stat(of, "/right"), stat(of, "/wrong")) == (1, 1)
        assert of.effects.of(SID) == Effect(deferred=1, copies=1, others=1)

    def test_by_the_verdict_that_corrects_it(self) -> None:
        of = predictions()
        doubtful = verdict(
            KNOWN,
            page_id=9,
            kind=Kind.DUPLICATE,
            canonical_id=3,
            repeated=True,
            resemblance=0.95,
            evidence=Evidence.WHOLE,
        )
        of.judged(put_back(of.look_at(link())), doubtful)
        of.corrected(verdict(KNOWN, page_id=9, again=True))
        of.corrected(verdict(KNOWN, page_id=9, again=True))

        assert (stat(of, "/right"), stat(of, "/wrong")) == (0, 1)
        assert of.effects.of(SID) == Effect(deferred=1, others=1)


class NoPriorities(BaseScheduler):
    """First come, first served."""

    @classmethod
    def from_crawler(cls, crawler: Any) -> NoPriorities:
        return cls()

    def __init__(self) -> None:
        self._requests: list[Request] = []

    def has_pending_requests(self) -> bool:
        return bool(self._requests)

    def enqueue_request(self, request: Request) -> bool:
        self._requests.append(request)
        return True

    def next_request(self) -> Request | None:
        return self._requests.pop(0) if self._requests else None


class TestSchedulers:
    @pytest.mark.parametrize(
        ("settings", "ordered"),
        [
            ({}, True),
            ({"SCHEDULER": NoPriorities}, False),
            ({"SCHEDULER": "scrapy_redis.scheduler.Scheduler"}, True),
            (
                {
                    "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
                    "SCHEDULER_QUEUE_CLASS": "scrapy_redis.queue.FifoQueue",
                },
                False,
            ),
        ],
        ids=["scrapy", "own", "scrapy-redis", "scrapy-redis, first in first out"],
    )
    def test_priorities(self, settings: dict[str, Any], ordered: bool) -> None:
        if "scrapy_redis" in str(settings):
            pytest.importorskip("scrapy_redis")

        assert has_priorities(Settings(settings)) == ordered

    @pytest.mark.parametrize(
        ("settings", "own"),
        [
            ({}, True),
            ({"JOBDIR": "job"}, False),
            ({"SCHEDULER": NoPriorities}, False),
            ({"DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter"}, False),
        ],
    )
    def test_requests_of_other_runs(self, settings: dict[str, Any], own: bool) -> None:
        assert has_own_requests_only(Settings(settings)) == own

    def test_without_priorities_predictions_are_recorded(self, caplog: pytest.LogCaptureFixture) -> None:
        crawler = get_crawler(Callbacks, {"SCHEDULER": NoPriorities})

        of = Predictions.of_crawl(crawler, Predict.DROP, taught(), Effects(), None)

        assert of.predict is Predict.RECORD
        assert "not known to make requests in the order of their priorities" in caplog.text


@pytest.mark.parametrize("value", ["yes", "", "DEFER", 1])
def test_setting_is_checked(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"NEARDUP_PREDICT must be one of off, record, defer, drop"):
        Options.from_settings(Settings({"NEARDUP_PREDICT": value}))


@pytest.mark.parametrize("value", ["much", 0, 1, -0.1, float("nan"), ""])
def test_loss_budget_is_checked(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=rf"NEARDUP_LOSS_BUDGET must be a share.*not {value!r}"):
        Options.from_settings(Settings({"NEARDUP_LOSS_BUDGET": value}))


@pytest.mark.parametrize(
    ("settings", "predict", "reason"),
    [
        ({}, Predict.RECORD, "no request waits with NEARDUP_ACTION or NEARDUP_PREDICT = 'record'"),
        (
            {"SCHEDULER": "scrapy_redis.scheduler.Scheduler"},
            Predict.DEFER,
            "what waits in the queue of scrapy_redis.scheduler.Scheduler is not known",
        ),
    ],
    ids=["record", "scrapy-redis"],
)
def test_where_nothing_can_be_audited_a_warning_says_so(
    settings: dict[str, Any], predict: Predict, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    if settings:
        pytest.importorskip("scrapy_redis")

    of = Predictions.of_crawl(get_crawler(Callbacks, settings), predict, taught(), Effects(), 0.01)

    assert of.audit is None
    assert f"NEARDUP_LOSS_BUDGET is not heeded, and the crawl makes all requests: {reason}" in caplog.text


def test_an_audit_goes_on_with_its_sample_and_another_budget() -> None:
    """As Scrapy keeps the state of a spider between the runs of a job."""
    state: dict[str, Any] = {}
    first, second = (
        Predictions.of_crawl(get_crawler(Callbacks), Predict.DEFER, taught(), Effects(), budget)
        for budget in (0.05, 0.02)
    )
    assert first.audit is not None
    first.go_on(state)
    first.audit.unique = 1_000
    root = next(filter(None, (first.audit.sample(str(number), 0.5) for number in range(100))))

    second.go_on(pickle.loads(pickle.dumps(state)))

    assert second.audit is not None
    assert second.audit.is_of_sample(root, 0)
    assert (second.audit.unique, second.audit.budget) == (1_000, 0.02)


def run(served: Served, settings: dict[str, Any]) -> Outcome:
    # Depth first, as Scrapy does it; and several at a time.
    order = {"SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.LifoMemoryQueue", "CONCURRENT_REQUESTS": 8}
    return crawl_served(served, {**order, **settings})


def predicted(done: Outcome, name: str = "") -> int:
    return int(done.stats.get(f"neardup/predicted{name}", 0))


class Gate:
    """Counts the requests that are on their way."""

    def __init__(self, stats: StatsCollector) -> None:
        self._stats = stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Gate:
        return cls(crawler.stats)

    def process_request(self, request: scrapy.Request) -> None:
        self._stats.inc_value("gate/passed")


SITES: dict[str, Callable[[], MadeSite]] = {
    "sessions": lambda: SessionIds(30),
    "shop": lambda: Shop(50, 5, boilerplate=1_000),
    "wiki": lambda: Wiki(12),
    "forum": lambda: Forum(40),
}


@pytest.mark.slow
class TestWholeSites:
    @pytest.mark.parametrize("name", SITES)
    def test_nothing_is_missing_and_nothing_comes_twice(self, name: str, addon: dict[str, Any]) -> None:
        with serve_site(SITES[name]()) as served:
            without = run(served, {})
            done = run(served, addon)

        assert without.found == served.site.keys
        assert sorted(map(repr, done.items)) == sorted(map(repr, without.items))
        if name != "sessions":  # whose ids are drawn anew
            made, needed = (Counter(each.target for each in crawl.requests) for crawl in (done, without))
            assert needed <= made
            # A page whose numbers are asked for again, and one behind the end of the list that leads to it.
            assert (made - needed).total() == done.stats.get("neardup/looked_ahead", 0) <= 2
        assert done.found == served.site.keys
        assert done.stats["finish_reason"] == "finished"
        assert done.stats.get("neardup/failures", 0) == 0
        assert "log_count/ERROR" not in done.stats

    def test_new_pages_come_first(self, addon: dict[str, Any]) -> None:
        with serve_site(Forum(60)) as served:
            one = addon | {"CONCURRENT_REQUESTS": 1}
            off = run(served, one | {"NEARDUP_PREDICT": "off", "NEARDUP_ACTION": "record"})
            done = run(served, one)

        most = -(-99 * len(served.site.keys) // 100)
        assert done.requests_until(most) < 0.7 * off.requests_until(most)
        assert predicted(off) == 0
        assert predicted(done, "/deferred") > 100
        assert predicted(done, "/right") > 9 * predicted(done, "/wrong")

    def test_what_is_put_back_is_not_on_its_way(self, addon: dict[str, Any]) -> None:
        """Meanwhile, requests would be made that should wait longer."""
        with serve_site(Forum(60)) as served:
            done = run(served, addon | {"DOWNLOADER_MIDDLEWARES": {Gate: -2_000}})

        made = done.stats["downloader/request_count"]
        put_back = done.stats["scheduler/enqueued"] - made
        assert done.found == served.site.keys
        assert put_back >= predicted(done, "/deferred") > 100
        assert 0 <= done.stats["gate/passed"] - made <= put_back / 50

    def test_new_pages_come_before_new_session_ids(self, addon: dict[str, Any]) -> None:
        site = SessionIds(20, endless=True)
        site.most_requests = 200
        with serve_site(site) as served:
            done = run(served, addon)

        assert done.found == site.keys
        assert predicted(done, "/deferred") > 20

    def test_alike_pages_are_found_behind_ever_new_session_ids(self, addon: dict[str, Any]) -> None:
        """Copies at new ids end no cluster that still leads to pages with names of their own."""
        site = AlikeSessions(400)
        site.most_requests = 2_000
        with serve_site(site) as served:
            done = run(served, addon)

        assert done.found == site.keys
        assert done.stats["finish_reason"] == "finished"
        assert done.requests_until(400) < 600

    @pytest.mark.parametrize("on_disk", [False, True])
    def test_alike_pages_in_a_row_are_found_one_after_the_other(
        self, addon: dict[str, Any], tmp_path: Path, on_disk: bool
    ) -> None:
        """Copies at new ids end no cluster, and only one is requested beside the next page."""
        site = AlikeSessions(300, in_a_row=True)
        site.most_requests = 2_000
        with serve_site(site) as served:
            done = run(served, addon | ({"JOBDIR": str(tmp_path / "job")} if on_disk else {}))

        assert done.found == site.keys
        assert done.stats["finish_reason"] == "finished"
        assert done.requests_until(300) < 3 * 300  # one copy each step, and not seven

    def test_a_drawn_site_is_found_behind_ever_new_session_ids(self, addon: dict[str, Any]) -> None:
        """Chains of 60 pages that differ in numbers."""
        site = Drawn(18, new_ids=True)
        site.most_requests = 3_000
        with serve_site(site) as served:
            done = run(served, addon)

        assert done.found == site.keys
        assert done.stats["finish_reason"] == "finished"

    def test_a_drawn_site_in_versions_is_found(self, addon: dict[str, Any]) -> None:
        """Pages that are alike, three times: near the end, nearly all are copies of known ones."""
        site = Drawn(311, versions=3)
        with serve_site(site) as served:
            done = run(served, addon)

        assert done.found == site.keys
        assert done.stats["finish_reason"] == "finished"

    def test_alike_items_behind_links_that_are_drawn_are_no_copies(self, addon: dict[str, Any]) -> None:
        """Each answer has links to other items, as if each handed out new ids."""
        site = Teasers(400)
        with serve_site(site) as served:
            done = run(served, addon | {"NEARDUP_ENDLESS_AFTER": 20})

        assert done.found == site.keys

    @pytest.mark.parametrize("name", SITES)
    def test_dropping_loses_nothing_here(self, name: str, addon: dict[str, Any]) -> None:
        with serve_site(SITES[name]()) as served:
            done = run(served, addon | {"NEARDUP_PREDICT": "drop"})

        assert done.found == served.site.keys
        assert done.stats["finish_reason"] == "finished"

    def test_entries_behind_removed_ones_are_not_dropped(self, addon: dict[str, Any]) -> None:
        """Each removed entry is a copy of the one before, and the only way to the one behind it."""
        with serve_site(PrintedGuestbook()) as served:
            done = run(served, addon | {"NEARDUP_PREDICT": "drop"})

        assert done.found == served.site.keys

    def test_pages_told_apart_by_what_is_not_shown_are_not_dropped(self, addon: dict[str, Any]) -> None:
        """The number of a class: at addresses that differ in a parameter."""
        site = Drawn(3, beside=True)
        with serve_site(site) as served:
            done = run(served, addon | {"NEARDUP_PREDICT": "drop"})

        assert done.found == site.keys
        assert done.stats["finish_reason"] == "finished"

    def test_copies_with_links_of_their_own_are_not_dropped(self, addon: dict[str, Any]) -> None:
        """Of some articles, only near-copies of others know: their old revisions."""
        with serve_site(Wiki(200)) as served:
            done = run(served, addon | {"NEARDUP_PREDICT": "drop"})

        assert done.found == served.site.keys
        assert predicted(done, "/dropped") > 0

    def test_dropping_saves_requests(self, addon: dict[str, Any]) -> None:
        with serve_site(Forum(110)) as served:
            without = run(served, {})
            done = run(served, addon | {"NEARDUP_PREDICT": "drop"})

        dropped = predicted(done, "/dropped") - predicted(done, "/requeued")
        assert done.found == without.found
        assert dropped > 100
        assert len(done.requests) == len(without.requests) - dropped
        assert done.stats["neardup/requests_saved_at_least"] == dropped
        assert predicted(done, "/explored") > 0
        assert done.stats.get("retry/count", 0) == 0
        stored = stored_effects(addon)
        assert (stored.dropped, stored.saved) == (predicted(done, "/dropped"), dropped)
        assert stored.explored == predicted(done, "/explored")

    def test_session_ids_without_end_end(self, addon: dict[str, Any]) -> None:
        site = SessionIds(20, endless=True)
        site.most_requests = 1_000
        with serve_site(site) as served:
            done = run(served, addon | {"NEARDUP_PREDICT": "drop"})

        assert done.found == site.keys
        assert done.stats["finish_reason"] == "finished"
        assert len(done.requests) < 500

    def test_a_calendar_without_end_ends(self, addon: dict[str, Any]) -> None:
        site = Calendar(5)
        site.most_requests = 1_500
        with serve_site(site) as served:
            done = run(served, addon | {"NEARDUP_ENDLESS_AFTER": 20})

        assert done.found == site.keys
        assert done.stats["finish_reason"] == "finished"

    @pytest.mark.parametrize(
        "settings",
        [{"NEARDUP_PREDICT": "record"}, {"NEARDUP_ACTION": "record"}, {"SCHEDULER": NoPriorities}],
        ids=str,
    )
    def test_recording_changes_no_order(self, settings: dict[str, Any], addon: dict[str, Any]) -> None:
        one = {"CONCURRENT_REQUESTS": 1, "DUPEFILTER_CLASS": "scrapy.dupefilters.RFPDupeFilter"}
        site = Forum(30) if "SCHEDULER" not in settings else SessionIds(10)
        site.most_requests = 400
        with serve_site(site) as served:
            off = run(served, addon | one | settings | {"NEARDUP_PREDICT": "off"})
            done = run(served, addon | one | settings)

        if "SCHEDULER" not in settings:
            assert [request.target for request in done.requests] == [
                request.target for request in off.requests
            ]
            assert predicted(done, "/right") + predicted(done, "/wrong") == predicted(done) > 50
        assert predicted(done, "/deferred") == 0

    def test_start_requests_are_made_at_once(self, addon: dict[str, Any]) -> None:
        """Each start page is a copy of one that is known, and none waits."""

        class Starts(spiders.FollowSpider):
            name = "starts"

            def links(self, response: Any) -> Any:
                yield from ()

        with serve_site(SessionIds(12)) as served:
            starts = [f"{served.url}/page/{page}?sid={sid}" for sid in "abcdef" for page in range(1, 12)]

            class All(Starts):
                def __init__(self) -> None:
                    super().__init__()
                    self.start_urls = starts

            done = crawl(All, addon)

        assert len(done.items) == len(starts)
        assert done.neardup("duplicates") == 55
        assert done.neardup("predicted") == 0

    @pytest.mark.parametrize("predict", ["defer", "drop"])
    def test_stopped_crawl_goes_on_where_it_was(
        self, predict: str, addon: dict[str, Any], tmp_path: Path
    ) -> None:
        settings = addon | {"JOBDIR": str(tmp_path / "job"), "NEARDUP_PREDICT": predict}
        made: list[str] = []
        deferred = runs = 0
        with serve_site(Forum(40)) as served:
            without = run(served, {})
            for runs in count(1):  # noqa: B007
                done = run(served, settings | {"CLOSESPIDER_PAGECOUNT": 120})
                made += [request.target for request in done.requests]
                deferred += predicted(done, "/deferred")
                if done.stats["finish_reason"] == "finished":
                    break

        asked = {request.target for request in without.requests}
        assert runs >= 2
        assert set(made) <= asked
        assert len(made) == len(set(made)) + runs - 1  # each run begins with the start page
        assert not (tmp_path / "job" / made_before.FILE).exists()
        if predict == "defer":
            assert deferred > 0
            assert set(made) == asked
        found = {request.key for request in without.requests if request.target in made}
        assert found == without.found

    @pytest.mark.parametrize("seed", [7_037, 7_040])
    def test_loss_budget_loses_no_pages_that_are_alike(self, addon: dict[str, Any], seed: int) -> None:
        """Chains of pages that differ in the value of a field, or in a name within 400 words."""
        site = Drawn(seed)
        with serve_site(site) as served:
            done = run(served, addon | {"NEARDUP_LOSS_BUDGET": 0.05})

        assert done.found == site.keys

    def test_loss_budget_loses_nothing_behind_ever_new_session_ids(self, addon: dict[str, Any]) -> None:
        site = AlikeSessions(60, in_a_row=True)
        site.most_requests = 5_000
        with serve_site(site) as served:
            done = run(served, addon | {"NEARDUP_LOSS_BUDGET": 0.05})

        assert done.found == site.keys
        assert done.stats["finish_reason"] == "finished"

    def test_loss_budget_ends_the_crawl(
        self, addon: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """And a run without it makes what is left."""
        settings = addon | {"JOBDIR": str(tmp_path / "job"), "CONCURRENT_REQUESTS": 1}
        with caplog.at_level(logging.INFO), serve_site(Forum(120)) as served:
            without = run(served, {})
            done = run(served, settings | {"NEARDUP_LOSS_BUDGET": 0.1})
            rest = run(served, settings)

        audit = {name: done.stats.get(f"neardup/audit/{name}", 0) for name in ("sampled", "unique", "left")}
        assert done.stats["finish_reason"] == "neardup_loss_budget"
        assert len(without.found - done.found) <= 0.1 * len(without.found)
        assert audit["sampled"] > 30
        assert len(done.requests) + audit["left"] == len(without.requests)
        assert f"that the {audit['left']} requests that are left lead to at most 0.1" in caplog.text
        assert rest.stats["finish_reason"] == "finished"
        asked = {request.target for request in [*done.requests, *rest.requests]}
        assert asked == {request.target for request in without.requests}
        assert len(rest.requests) == audit["left"] + 1  # the start request once more

    def test_loss_budget_goes_on_with_a_job(self, addon: dict[str, Any], tmp_path: Path) -> None:
        settings = addon | {"JOBDIR": str(tmp_path / "job"), "NEARDUP_LOSS_BUDGET": 0.1}
        with serve_site(Forum(120)) as served:
            without = run(served, {})
            first = run(served, settings | {"CLOSESPIDER_PAGECOUNT": 150})
            done = run(served, settings)

        assert first.stats["finish_reason"] == "closespider_pagecount"
        assert done.stats["finish_reason"] == "neardup_loss_budget"
        assert len(first.requests) + len(done.requests) < len(without.requests)
        assert len(without.found - first.found - done.found) <= 0.1 * len(without.found)

    def test_summary_says_what_came_of_it(
        self, addon: dict[str, Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO), serve_site(Forum(40)) as served:
            done = run(served, addon)

        line = (
            f"  predicted   {predicted(done)} requests predicted to bring copies,"
            f" {predicted(done, '/deferred')} deferred"
        )
        assert line in caplog.text
        assert f", {predicted(done, '/right')} right" in caplog.text
        found = f"{done.stats['neardup/unique']} unique pages by {done.stats['neardup/requests']} requests"
        assert found in caplog.text

    def test_what_came_of_each_rule_and_the_curve_are_stored(self, addon: dict[str, Any]) -> None:
        with serve_site(Forum(40)) as served:
            done = run(served, addon | {"CONCURRENT_REQUESTS": 1})

        sums = stored_effects(addon)
        assert sums._asdict() == {
            "deferred": predicted(done, "/deferred"),
            "dropped": predicted(done, "/dropped"),
            "explored": predicted(done, "/explored"),
            "copies": predicted(done, "/right"),
            "others": predicted(done, "/wrong"),
            "saved": done.stats["neardup/requests_saved_at_least"],
        }
        assert min(sums.deferred, sums.copies) > 0
        with Store.open(addon["NEARDUP_DATABASE_URL"], scheme=None) as store, store.reading() as connection:
            found = curve(connection)

        assert found is not None
        assert found.points[0] == (0, 0)
        assert found.points[-1] == (done.stats["neardup/requests"], done.stats["neardup/unique"])
        assert found.points == sorted(found.points)
        # More than half of what there is comes in the first half of the requests.
        middle = found.points[len(found.points) // 2]
        assert middle[1] / found.points[-1][1] > middle[0] / found.points[-1][0]

    def test_what_a_loss_budget_saves_is_stored(self, addon: dict[str, Any]) -> None:
        with serve_site(Forum(120)) as served:
            done = run(served, addon | {"NEARDUP_LOSS_BUDGET": 0.1, "CONCURRENT_REQUESTS": 1})

        assert done.stats["finish_reason"] == "neardup_loss_budget"
        assert 0 < stored_effects(addon).saved <= done.stats["neardup/requests_saved_at_least"]


def stored_effects(addon: dict[str, Any]) -> Effect:
    """What came of all rules together in all crawls."""
    with Store.open(addon["NEARDUP_DATABASE_URL"], scheme=None) as store:
        effects = [stored.effect for stored in rules_of(store).values()]
    return Effect(*map(sum, zip(*effects, strict=True)))


def test_what_goes_wrong_costs_no_request(addon: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    class Broken(spiders.FollowSpider):
        """Breaks what has been learned, as a bug would."""

        name = "broken"

        def parse(self, response: Any) -> Any:
            neardup = self.crawler.get_extension(NearDuplicates)
            assert neardup is not None
            del neardup.predictions.learner
            self.parse = super().parse  # type: ignore[method-assign]
            return super().parse(response)

    with serve_site(SessionIds(12)) as served:
        served.begin()
        done = crawl(Broken, addon, start=served.start)

    assert served.found == served.site.keys
    assert done.stats["finish_reason"] == "finished"
    assert done.neardup("failures") > 12
    assert "cannot be judged and passes untouched" in caplog.text
