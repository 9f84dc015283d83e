"""What is found in code that may end a crawl."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from scrapy.exceptions import CloseSpider, DontCloseSpider

from neardup.scrapy.own_end import own_end
from tests.support.crawling import with_spider

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.http import Response


def found(spider: type[scrapy.Spider], **settings: Any) -> str | None:
    return own_end(with_spider(spider, **settings))


class Base(scrapy.Spider):
    name = "base"
    stopped = False

    def parse(self, response: Response) -> Any:
        if not self.stopped:
            yield {"url": response.url}


class Raises(Base):
    def check(self, date: str) -> None:
        if date < "2026":
            raise CloseSpider("old")


class CallsTheEngine(Base):
    async def parse_list(self, response: Response) -> None:
        await self.crawler.engine.close_spider_async(reason="old")


def deeper(parse: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(parse)
    def wrapper(*args: Any) -> Any:
        return parse(*args)

    return wrapper


class Decorated(Base):
    @deeper
    def parse_list(self, response: Response) -> Any:
        return [self.one(each) for each in response.css("a")]

    def one(self, link: Any) -> Any:
        def check() -> None:
            raise CloseSpider("old")

        return check


class DecoratedItself(Base):
    @deeper
    def parse_list(self, response: Response) -> Any:
        raise CloseSpider("old")


class Switches(Base):
    def parse_list(self, response: Response) -> None:
        if response.css(".old"):
            self.stopped = True


class Compares(Base):
    def check(self, date: str) -> None:
        self.stopped = date < "2026"


class Negates(Base):
    def check(self, dates: list[str]) -> None:
        self.stopped = not dates


class Deriving(Switches):
    pass


def counting_down(parse: Callable[..., Any]) -> Callable[..., Any]:
    def wrapper(self: Any, number: int) -> Any:
        return wrapper(self, number - 1) if number else parse(self)

    return wrapper


class RefersToItself(Base):
    @counting_down
    def parse_list(self, response: Response) -> Any:
        raise CloseSpider("old")


class SetsAtTheStart(Base):
    def __init__(self, stopped: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stopped = False


class EndsWhenIdle(Base):
    def spider_idle(self) -> None:
        self.crawler.engine.close_spider(self, reason="no more to ask for")


class SetsWithoutAPage(Base):
    def closed(self, reason: str) -> None:
        self.stopped = True

    def ask(self) -> None:
        self.stopped = True
        raise DontCloseSpider

    def idle(self, spider: scrapy.Spider) -> None:
        self.stopped = True


class SetsWhatNobodyAsksFor(Base):
    def parse_list(self, response: Response) -> None:
        self.has_lists = True


class SetsAnother(Base):
    def parse_list(self, response: Response, other: Any) -> None:
        other.stopped = True


class Counts(Base):
    number = 0

    def parse_list(self, response: Response) -> None:
        self.number += 1
        self.last = response.url


@pytest.mark.parametrize(
    ("spider", "end"),
    [
        (Raises, "CloseSpider in check"),
        (CallsTheEngine, "close_spider_async in parse_list"),
        (Decorated, "CloseSpider in check"),
        (DecoratedItself, "CloseSpider in parse_list"),
        (RefersToItself, "CloseSpider in parse_list"),
        (Switches, "the switch 'stopped' in parse_list"),
        (Compares, "the switch 'stopped' in check"),
        (Negates, "the switch 'stopped' in check"),
        (Deriving, "the switch 'stopped' in parse_list"),
        (Base, None),
        (SetsAtTheStart, None),
        (EndsWhenIdle, None),
        (SetsWithoutAPage, None),
        (SetsWhatNobodyAsksFor, None),
        (SetsAnother, None),
        (Counts, None),
    ],
)
def test_what_may_end_a_crawl(spider: type[scrapy.Spider], end: str | None) -> None:
    assert found(spider) == end


class Closing:
    def process_item(self, item: Any, spider: scrapy.Spider) -> Any:
        if item["date"] < "2026":
            spider.crawler.engine.close_spider(spider, "old")
        return item

    def close_spider(self, spider: scrapy.Spider) -> None:
        pass


class WritesAFile:
    is_first = True

    def process_item(self, item: Any) -> Any:
        if not self.is_first:
            item["comma"] = ","
        self.is_first = False
        return item


class StopsTheSpider:
    def open_spider(self, spider: scrapy.Spider) -> None:
        spider.is_open = True  # type: ignore[attr-defined]

    def process_item(self, item: Any, spider: scrapy.Spider) -> Any:
        if item["date"] < "2026":
            spider.stopped = True  # type: ignore[attr-defined]
        spider.told = True  # type: ignore[attr-defined]
        return item


class StopsTheSpiderOfTheCrawler:
    crawler: Any

    def process_item(self, item: Any) -> Any:
        self.crawler.spider.stopped = item["date"] < "2026"
        return item


class ClosedWithTheSpider:
    def process_item(self, item: Any) -> Any:
        return item

    def close_spider(self, spider: scrapy.Spider) -> None:
        super().close_spider(spider)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("pipelines", "end"),
    [
        ({Closing: 1}, "close_spider in process_item"),
        ({f"{__name__}.Closing": 1}, "close_spider in process_item"),
        ({Closing: None}, None),
        ({ClosedWithTheSpider: 1}, None),
        ({WritesAFile: 1}, None),
        ({StopsTheSpider: 1}, "the switch 'stopped' in process_item"),
        ({StopsTheSpiderOfTheCrawler: 1}, "the switch 'stopped' in process_item"),
        ({"neardup.scrapy.pipeline.NearDuplicatePipeline": 0}, None),
    ],
)
def test_a_pipeline_may_end_a_crawl(pipelines: dict[Any, int | None], end: str | None) -> None:
    assert found(Base, ITEM_PIPELINES=pipelines) == end


class EndsBehindOldPages:
    def process_spider_output(self, response: Response, result: Any) -> Any:
        for each in result:
            if isinstance(each, dict) and each["date"] < "2026":
                raise CloseSpider("old")
            yield each


class EndsAtKnownItems:
    def item_scraped(self, item: Any, spider: scrapy.Spider) -> None:
        if item["url"] in spider.settings["KNOWN"]:
            spider.crawler.engine.close_spider(spider, "known")

    def spider_idle(self, spider: scrapy.Spider) -> None:
        spider.crawler.engine.close_spider(spider, "idle")


def test_an_extension_may_end_a_crawl() -> None:
    assert found(Base, EXTENSIONS={EndsAtKnownItems: 500}) == "close_spider in item_scraped"


@pytest.mark.parametrize(("order", "end"), [(543, "CloseSpider in process_spider_output"), (None, None)])
def test_a_spider_middleware_may_end_a_crawl(order: int | None, end: str | None) -> None:
    assert found(Base, SPIDER_MIDDLEWARES={EndsBehindOldPages: order}) == end
