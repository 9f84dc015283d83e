"""Tests for numbers by which spiders limit the depth of a crawl themselves."""

from __future__ import annotations

from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response

from neardup.scrapy.steps import Steps, compares_depth
from tests.support.crawling import with_spider

URL = "http://site.example/page"


def counted(own: dict[str, Any], *links: dict[str, Any]) -> str | None:
    """What counts steps, of a page whose request has these arguments, and of its links."""
    steps = Steps(HtmlResponse(URL, request=Request(URL, **own)))
    for number, link in enumerate(links):
        steps.read(Request(f"{URL}/{number}", **link))
    return steps.counted()


@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize(("where", "said"), [("meta", "meta 'hops'"), ("cb_kwargs", "cb_kwargs 'hops'")])
def test_a_number_that_all_links_count_on(where: str, said: str, step: int) -> None:
    own, link = {where: {"hops": 3}}, {where: {"hops": 3 + step}}

    assert counted(own, link, link) == said


def test_other_links_carry_nothing() -> None:
    link = {"meta": {"hops": 2, "name": "chair"}}

    assert counted({"meta": {"hops": 1}}, {}, link, {"meta": {"hops": "2"}}, link) == "meta 'hops'"


@pytest.mark.parametrize(
    ("own", "links"),
    [
        ({"page": 1}, [{"page": 2}]),  # the next page of a listing
        ({"place": 1}, [{"place": 1}, {"place": 2}, {"place": 2}]),
        ({"shop": 7}, [{"shop": 7}, {"shop": 7}]),
        ({"shop": 7}, [{"shop": 9}, {"shop": 9}]),
        ({}, [{"hops": 1}, {"hops": 1}]),
        ({"sale": False}, [{"sale": True}, {"sale": True}]),
        ({"rule": 0, "depth": 1, "neardup_chain": 1}, [{"rule": 1, "depth": 2, "neardup_chain": 2}] * 2),
    ],
    ids=["one link", "places", "the same", "two more", "none before", "yes and no", "components"],
)
def test_numbers_that_count_no_steps(own: dict[str, Any], links: list[dict[str, Any]]) -> None:
    assert counted({"meta": own}, *({"meta": link} for link in links)) is None


def test_a_response_without_a_request() -> None:
    steps = Steps(HtmlResponse(URL))
    steps.read(Request(URL, meta={"hops": 1}))

    assert steps.counted() is None


class Compares(Spider):
    def parse(self, response: Response) -> Any:
        if response.meta["depth"] < 3:
            yield response.follow("/")


class ComparesByAName(Spider):
    async def parse_list(self, response: Response) -> Any:
        meta = response.meta
        depth = int(meta.get("depth", 0)) + 1
        if not depth > 3:
            yield response.follow("/")


class ComparesAtOnce(Spider):
    def parse(self, response: Response) -> Any:
        return [] if (steps := response.meta["depth"]) and steps >= 3 else [response.follow("/")]


class ComparesWithAType(Spider):
    def parse(self, response: Response) -> Any:
        depth: int = response.meta["depth"]
        return [response.follow("/")] if depth < 3 else []


class Derives(Compares):
    pass


@pytest.mark.parametrize(
    ("spider", "method"),
    [
        (Compares, "parse"),
        (ComparesByAName, "parse_list"),
        (ComparesAtOnce, "parse"),
        (ComparesWithAType, "parse"),
        (Derives, "parse"),
    ],
)
def test_a_spider_that_compares_the_depth(spider: type[Spider], method: str) -> None:
    assert compares_depth(with_spider(spider)) == f"{spider.__name__}.{method}"


class LeavesOut:
    def process_request(self, request: Request) -> None:
        if request.meta.get("depth", 0) > 3:
            raise IgnoreRequest


@pytest.mark.parametrize("kind", ["SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES"])
def test_a_middleware_that_compares_the_depth(kind: str) -> None:
    assert compares_depth(with_spider(Spider, **{kind: {LeavesOut: 543}})) == "LeavesOut.process_request"
    assert compares_depth(with_spider(Spider, **{kind: {LeavesOut: None}})) is None


class TellsTheDepth(Spider):
    def parse(self, response: Response) -> Any:
        depth = response.meta["depth"]
        if response.meta["rule"] == 3 and response.css("a"):
            yield {"depth": depth}


@pytest.mark.parametrize("spider", [Spider, TellsTheDepth])
def test_a_spider_that_does_not(spider: type[Spider]) -> None:
    assert compares_depth(with_spider(spider)) is None
