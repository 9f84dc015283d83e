"""What counts as a limit of pages or items, and what only looks like one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from scrapy.exceptions import CloseSpider

from neardup.scrapy.own_end import own_end
from tests.support.crawling import with_spider

if TYPE_CHECKING:
    from scrapy.http import Response


def found(spider: type[scrapy.Spider], **settings: Any) -> str | None:
    return own_end(with_spider(spider, **settings))


class Base(scrapy.Spider):
    name = "base"
    count = 0
    limit = 50


class Pages(Base):
    def parse(self, response: Response) -> Any:
        self.count += 1
        if self.count > self.limit:
            raise CloseSpider("enough")
        yield from response.follow_all(["/next"])


class Items(Base):
    def __init__(self) -> None:
        super().__init__()
        self.items = 0

    def parse(self, response: Response) -> Any:
        if response.css("h1"):
            self.items += 1
            yield {"title": response.css("h1::text").get()}
        if self.items >= 1000:
            self.crawler.engine.close_spider(self, reason="enough")


class Loaded(Base):
    def parse(self, response: Response) -> Any:
        for row in response.css("li"):
            if row.css("a"):
                self.count += 1
                yield self.load_item(row)
            if self.limit <= self.count:
                raise CloseSpider("enough")

    def load_item(self, row: Any) -> dict[str, str]:
        return {"row": row.get()}


class Otherwise(Base):
    async def parse(self, response: Response) -> Any:
        for row in response.css("li"):
            if self.count < self.limit:
                self.count += 1
                item = {"row": row.get()}
                yield item
            else:
                await self.crawler.engine.close_spider_async(reason="enough")


class Tried(Base):
    def parse(self, response: Response) -> Any:
        try:
            self.count += 1
            if self.limit > 0 and self.count >= self.limit:
                raise CloseSpider("enough")
            yield {"title": response.css("h1::text").get()}
        except ValueError:
            self.logger.warning("no page")


class OfTheClass(Base):
    def parse(self, response: Response) -> Any:
        if response.status != 200:
            return
        OfTheClass.count += 1
        if OfTheClass.count == self.limit:
            raise CloseSpider("enough")
        yield {"url": response.url}


class InAnotherMethod(Base):
    def parse(self, response: Response) -> Any:
        self.check()
        self.count += 1
        return [{"url": response.url}]

    def check(self) -> None:
        if self.count >= self.limit or self.count >= 1000:
            raise CloseSpider("enough")


class InASet(Base):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def parse(self, response: Response) -> Any:
        self.seen.add(response.url)
        if len(self.seen) >= self.limit:
            raise CloseSpider("enough")
        yield response.follow("/next")


class PagesOfHtml(Base):
    def parse(self, response: Response) -> Any:
        if "text/html" in str(response.headers["Content-Type"]):
            self.count = self.count + 1
            if self.count >= self.limit:
                self.crawler.engine.close_spider(self, "enough")
                return
            for link in response.css("a"):
                if link.attrib["href"].endswith(".html"):
                    yield response.follow(link.attrib["href"])


class AndCaught(Base):
    def parse(self, response: Response) -> Any:
        try:
            self.count += 1
            if self.count > self.limit:
                raise CloseSpider("enough")
            yield {"url": response.url}
        except CloseSpider:
            raise
        except ValueError:
            self.logger.warning("no page")


class OrElse(Base):
    def parse(self, response: Response) -> Any:
        if self.count >= self.limit:
            raise CloseSpider("enough")
        else:
            self.count += 1
        yield {"url": response.url}


class ItemsBesideRequests(Base):
    def parse(self, response: Response) -> Any:
        for row in response.css("li"):
            if row.css("a"):
                if self.count < self.limit:
                    self.count += 1
                    yield {"row": row.get()}
                else:
                    raise CloseSpider("enough")
            else:
                yield response.follow("/next")


class CountedByScrapy(Base):
    def parse(self, response: Response) -> Any:
        count = self.crawler.stats.get_value("item_scraped_count")
        if count == self.limit:
            raise CloseSpider("enough")
        if self.crawler.stats.get_value("response_received_count", 0) > self.limit:
            raise CloseSpider("enough")
        yield {"url": response.url}


@pytest.mark.parametrize(
    "spider",
    [
        Pages, Items, Loaded, Otherwise, Tried, OfTheClass, InAnotherMethod, InASet, PagesOfHtml, AndCaught,
        OrElse, ItemsBesideRequests, CountedByScrapy,
    ],
)  # fmt: skip
def test_a_limit(spider: type[scrapy.Spider]) -> None:
    assert found(spider) is None


class KnownOnes(Base):
    def parse(self, response: Response) -> Any:
        for row in response.css("li"):
            if row.get() in self.settings["KNOWN"]:
                self.count += 1
                continue
            yield response.follow(row.attrib["href"])
        if self.count > 9:
            raise CloseSpider("old")


class KnownOnesLast(Base):
    def parse(self, response: Response) -> Any:
        for row in response.css("li"):
            if row.get() not in self.settings["KNOWN"]:
                yield {"row": row.get()}
                continue
            self.count += 1
            if self.count > 9:
                raise CloseSpider("old")
        yield response.follow("/next")


class KnownOnesBesideOthers(Base):
    def parse(self, response: Response) -> Any:
        if response.url not in self.settings["KNOWN"]:
            yield {"url": response.url}
            return
        self.count += 1
        if self.count > 9:
            raise CloseSpider("old")
        yield response.follow("/next")


class EmptyOnes(Base):
    def parse(self, response: Response) -> Any:
        if not response.css("li"):
            self.count += 1
            if self.count > 3:
                raise CloseSpider("empty")
            yield scrapy.Request(response.url + "0")
        yield {"url": response.url}


class OldOnesAreGiven(Base):
    def parse(self, response: Response) -> Any:
        item = {"url": response.url}
        if response.css(".old"):
            self.count += 1
            if self.count > 9:
                raise CloseSpider("old")
            yield item
        else:
            yield item


class OldOnesInASet(InASet):
    def parse(self, response: Response) -> Any:
        if response.css(".old"):
            self.seen.add(response.url)
        if len(self.seen) >= self.limit:
            raise CloseSpider("old")
        yield {"url": response.url}


class OfScrapysErrors(Base):
    def parse(self, response: Response) -> Any:
        if self.crawler.stats.get_value("log_count/ERROR") > 9:
            raise CloseSpider("errors")
        yield {"url": response.url}


class NewOnesOrElse(Base):
    def parse(self, response: Response) -> Any:
        if not response.css(".old"):
            yield {"url": response.url}
            return
        else:
            self.count += 1
        if self.count > 9:
            raise CloseSpider("old")


class OldOnesByMethods(Base):
    def parse(self, response: Response) -> Any:
        if self.is_old(response) and self.number_of(response) > 9:
            return
        if self.count > 9:
            raise CloseSpider("old")
        yield {"url": response.url}

    def is_old(self, response: Response) -> Any:
        if response.css(".old"):
            self.count += 1
            return True
        return None

    def number_of(self, response: Response) -> int:
        self.count += 1
        return self.count


class InARow(Base):
    def parse(self, response: Response) -> Any:
        self.count += 1
        if self.count > 3:
            raise CloseSpider("old")
        if response.css("li"):
            self.count = 0
        yield {"url": response.url}


class ByNumbersOfThePage(Base):
    def parse(self, response: Response) -> Any:
        self.count += len(response.css("li.old"))
        if self.count > 3:
            raise CloseSpider("old")
        yield {"url": response.url}


class AlsoByWhatItReads(Pages):
    def parse(self, response: Response) -> Any:
        self.count += 1
        if self.count > self.limit:
            raise CloseSpider("enough")
        if not response.css("a"):
            raise CloseSpider("the end")
        yield {"url": response.url}


class EitherWay(Base):
    def parse(self, response: Response) -> Any:
        self.count += 1
        if self.count > self.limit or not response.css("a"):
            raise CloseSpider("enough")
        yield {"url": response.url}


class BelowTheLimit(Base):
    def parse(self, response: Response) -> Any:
        self.count += 1
        if self.count > self.limit:
            self.logger.info("enough")
        elif response.css("h2"):
            raise CloseSpider("the end")
        yield {"url": response.url}


class InAFunctionWithin(Base):
    def parse(self, response: Response) -> Any:
        def stop() -> None:
            raise CloseSpider("old")

        self.count += 1
        if self.count > self.limit:
            stop()
        yield {"url": response.url}


@pytest.mark.parametrize(
    "spider",
    [
        KnownOnes, KnownOnesLast, KnownOnesBesideOthers, EmptyOnes, OldOnesAreGiven, OldOnesInASet,
        OfScrapysErrors, NewOnesOrElse, OldOnesByMethods, InARow, ByNumbersOfThePage,
        AlsoByWhatItReads, EitherWay, BelowTheLimit,
    ],
)  # fmt: skip
def test_no_limit(spider: type[scrapy.Spider]) -> None:
    assert found(spider) == "CloseSpider in parse"


class OfAnotherCounter(Base):
    def parse(self, response: Response) -> Any:
        self.count = response.meta["old"].count + 1
        if self.count > 9:
            raise CloseSpider("old")
        yield {"url": response.url}


def test_a_sum_of_another_counter() -> None:
    assert found(OfAnotherCounter) == "CloseSpider in parse"


def test_a_function_within_is_no_method() -> None:
    assert found(InAFunctionWithin) == "CloseSpider in stop"


def test_without_a_source() -> None:
    made = dict(globals())
    exec(
        "class Made(Base):\n"
        "    def parse(self, response):\n"
        "        self.count += 1\n"
        "        if self.count > 9:\n"
        "            raise CloseSpider('enough')\n"
        "        yield {}",
        made,
    )

    assert found(made["Made"]) == "CloseSpider in parse"


class Counting:
    """A pipeline."""

    def __init__(self) -> None:
        self.count = 0

    def process_item(self, item: Any, spider: scrapy.Spider) -> Any:
        self.count += 1
        if self.count >= 100:
            spider.crawler.engine.close_spider(spider, "enough")
        return item


class CountingKnownOnes(Counting):
    def process_item(self, item: Any, spider: scrapy.Spider) -> Any:
        if item["url"] in spider.settings["KNOWN"]:
            self.count += 1
            if self.count >= 100:
                spider.crawler.engine.close_spider(spider, "old")
            return item
        return item


def test_a_limit_of_a_pipeline() -> None:
    assert found(Base, ITEM_PIPELINES={Counting: 100}) is None
    assert found(Base, ITEM_PIPELINES={CountingKnownOnes: 100}) == "close_spider in process_item"
