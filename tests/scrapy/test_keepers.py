"""Which callbacks keep what others look up, by the source of their spiders."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import scrapy
from scrapy.spiders import CrawlSpider, Rule

from neardup.scrapy.elsewhere import Callbacks
from neardup.scrapy.keepers import Keepers
from tests.support.crawling import with_spider

if TYPE_CHECKING:
    from scrapy.http import Response


class Base(scrapy.Spider):
    """A spider of whose callbacks one reads brands, and another products."""

    name = "base"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.names: dict[str, Any] = {}
        self.lists: dict[str, list[str]] = defaultdict(list)
        self.seen: set[str] = set()
        self.number = 0
        self.stopped = False
        self.store: Any = None

    def parse(self, response: Response) -> Any:
        yield response.follow("/brand", self.brand)
        yield response.follow("/product", self.product)

    def brand(self, response: Response) -> Any:
        yield {"name": response.text}

    def product(self, response: Response) -> Any:
        yield {"product": response.text, "brand": self.names.get(response.url)}


class UnderAKey(Base):
    def brand(self, response: Response) -> Any:
        self.names[response.url] = response.text


class UnderTwoKeys(Base):
    def brand(self, response: Response) -> Any:
        self.names[response.url]["en"] = response.text


class InATuple(Base):
    def brand(self, response: Response) -> Any:
        url, self.names[response.url] = response.url, response.text
        yield {"url": url}


class ByUpdate(Base):
    def brand(self, response: Response) -> Any:
        self.names.update({response.url: response.text})


class ByDefault(Base):
    def brand(self, response: Response) -> Any:
        self.names.setdefault(response.url, {})["en"] = response.text


class InAList(Base):
    async def brand(self, response: Response) -> Any:
        self.lists[response.url].append(response.text)

    async def product(self, response: Response) -> Any:
        yield {"brands": list(self.lists[response.url])}


class MoreInAList(InAList):
    async def brand(self, response: Response) -> Any:
        self.lists[response.url] += response.css("h2::text").getall()


class BySuper(UnderAKey):
    def brand(self, response: Response) -> Any:
        super().brand(response)
        yield {"name": response.text}


class InAnAttribute(Base):
    def brand(self, response: Response) -> Any:
        self.last = response.text

    def product(self, response: Response) -> Any:
        yield {"brand": self.last}


class InAFunctionWithin(Base):
    def brand(self, response: Response) -> Any:
        def kept(link: Any) -> str:
            self.names[link.get()] = response.text
            return response.text

        return [{"name": kept(link)} for link in response.css("a")]


class ByMethods(Base):
    def brand(self, response: Response) -> Any:
        self.keep(response.url, response.text)

    def product(self, response: Response) -> Any:
        yield {"brand": self.name_of(response.url)}

    def keep(self, url: str, name: str) -> None:
        self.names[url] = name

    def name_of(self, url: str) -> Any:
        return self.names.get(url)


class InAnObject(Base):
    def brand(self, response: Response) -> Any:
        self.store.put(response.url, name=response.text)
        self.logger.info("%s", response.url)

    def product(self, response: Response) -> Any:
        self.logger.info("%s", response.url)
        yield {"brand": self.store.find(response.url)}


class InADatabase(Base):
    async def brand(self, response: Response) -> Any:
        await self.store.execute("INSERT INTO brands VALUES (?)", response.text)

    async def product(self, response: Response) -> Any:
        await self.store.execute("SELECT name FROM brands WHERE url = ?", response.url)
        yield {"brand": await self.store.fetchone()}


class Derived(UnderAKey):
    def parse(self, response: Response) -> Any:
        yield response.follow("/", self.brand)


class OfTheClass(Base):
    brands: ClassVar[dict[str, str]] = {}

    def brand(self, response: Response) -> Any:
        OfTheClass.brands[response.url] = response.text

    def product(self, response: Response) -> Any:
        yield {"brand": type(self).brands.get(response.url)}


class AnAttributeOfTheClass(Base):
    def brand(self, response: Response) -> Any:
        self.__class__.last = response.text  # type: ignore[attr-defined]

    def product(self, response: Response) -> Any:
        yield {"brand": self.last}  # type: ignore[attr-defined]


NAMES: dict[str, str] = {}


class OfTheModule(Base):
    def brand(self, response: Response) -> Any:
        NAMES[response.url] = response.text

    def product(self, response: Response) -> Any:
        yield {"brand": NAMES[response.url]}


class CaseOfAnotherName(Base):
    def brand(this, response: Response) -> Any:  # noqa: N805
        this.names[response.url] = response.text


@pytest.mark.parametrize(
    "spider",
    [
        UnderAKey, UnderTwoKeys, InATuple, ByUpdate, ByDefault, InAList, MoreInAList, BySuper, InAnAttribute,
        InAFunctionWithin, ByMethods, InAnObject, InADatabase, Derived, OfTheClass, AnAttributeOfTheClass,
        OfTheModule, CaseOfAnotherName,
    ],
)  # fmt: skip
def test_found(spider: type[Base]) -> None:
    assert keeping(spider) == {"brand"}


class OfItsOwn(Base):
    """Only one callback looks up what it has kept."""

    def brand(self, response: Response) -> Any:
        if response.url not in self.lists:
            self.lists[response.url] = []
            yield {"name": response.text}


class OfItsOwnByMethods(Base):
    def brand(self, response: Response) -> Any:
        if not self.is_known(response.url):
            self.note(response.url)

    def is_known(self, url: str) -> bool:
        return url in self.lists

    def note(self, url: str) -> None:
        self.lists[url] = []


class AtTheEnd(Base):
    def brand(self, response: Response) -> Any:
        self.lists[response.url].append(response.text)

    def closed(self, reason: str) -> None:
        self.logger.info(self.lists)

    def idle(self, spider: scrapy.Spider) -> None:
        self.logger.info(self.lists)


class Seen(Base):
    def brand(self, response: Response) -> Any:
        self.seen.add(response.url)

    def product(self, response: Response) -> Any:
        if response.url not in self.seen:
            yield {"url": response.url}


class InRows(Base):
    def brand(self, response: Response) -> Any:
        self.store.append(response.url)

    def product(self, response: Response) -> Any:
        if response.url not in self.store:
            yield {"url": response.url}


class Closes(Base):
    """What a method is called without arguments for keeps nothing of a page."""

    def brand(self, response: Response) -> Any:
        self.store.refresh()
        self.logger.info("%s", response.url)

    def product(self, response: Response) -> Any:
        yield {"brand": self.store.now(), "logger": self.logger.name}


class Counts(Base):
    def brand(self, response: Response) -> Any:
        self.number += 1

    def product(self, response: Response) -> Any:
        if self.number < 9:
            yield {"url": response.url}


class CountsByKey(Base):
    def brand(self, response: Response) -> Any:
        self.names[response.url] += 1


class Switches(Base):
    def brand(self, response: Response) -> Any:
        self.stopped = True

    def product(self, response: Response) -> Any:
        if not self.stopped:
            yield {"url": response.url}


class OfAnother(Base):
    def brand(self, response: Response) -> Any:
        self.crawler.stats.get_stats()["brand"] = response.text
        response.meta["names"][response.url] = response.text

    def product(self, response: Response) -> Any:
        yield {"brand": self.crawler.stats.get_value("brand")}


HEADERS = {"accept": "text/html"}


class OfAnotherModule(Base):
    """What is only looked up, and what libraries have."""

    def brand(self, response: Response) -> Any:
        json.dump(response.text, self.store)
        known: dict[str, str] = dict(HEADERS)
        known[response.url] = response.text
        type(response).texts[0] = response.text  # type: ignore[attr-defined]

    def product(self, response: Response) -> Any:
        yield {"brand": json.loads(response.text)} | HEADERS


@pytest.mark.parametrize(
    "spider",
    [
        Base, OfItsOwn, OfItsOwnByMethods, AtTheEnd, Seen, InRows, Closes, Counts, CountsByKey, Switches,
        OfAnother, OfAnotherModule, scrapy.Spider,
    ],
)  # fmt: skip
def test_not_found(spider: type[scrapy.Spider]) -> None:
    assert keeping(spider) == set()


def test_without_a_source() -> None:
    made: dict[str, Any] = {}
    exec("import scrapy\nclass Made(scrapy.Spider):\n    name = 'made'", made)

    assert keeping(made["Made"]) == set()


class Pipeline:
    def process_item(self, item: Any, spider: Base) -> Any:
        return item | {"brand": spider.lists.get(item["url"])}


class ForAPipeline(Base):
    def brand(self, response: Response) -> Any:
        self.lists[response.url].append(response.text)


class PipelineOfTheModule:
    def process_item(self, item: Any, spider: Base) -> Any:
        return item | {"brand": NAMES.get(item["url"])}


class ForAPipelineOfTheModule(Base):
    def brand(self, response: Response) -> Any:
        NAMES[response.url] = response.text


def test_what_a_pipeline_looks_up_in_the_module() -> None:
    assert keeping(ForAPipelineOfTheModule) == set()
    assert keeping(ForAPipelineOfTheModule, ITEM_PIPELINES={PipelineOfTheModule: 100}) == {"brand"}


def test_what_a_pipeline_looks_up() -> None:
    assert keeping(ForAPipeline) == set()
    assert keeping(ForAPipeline, ITEM_PIPELINES={Pipeline: 100}) == {"brand"}
    assert keeping(ForAPipeline, ITEM_PIPELINES={Pipeline: None}) == set()


class Ruled(CrawlSpider):
    name = "ruled"
    rules = (Rule(callback="brand"), Rule(callback="product"), Rule())

    def brand(self, response: Response) -> Any:
        self.names = {response.url: response.text}
        self.names["last"] = response.url

    def product(self, response: Response) -> Any:
        yield {"brand": self.names.get(response.url)}


def test_callbacks_of_rules() -> None:
    spider, keepers = found(Ruled)
    by_rule = [
        scrapy.Request("http://a.example/", spider._callback, meta={"rule": number}) for number in range(3)
    ]

    assert [keepers.keep(request) for request in by_rule] == [True, False, False]


def test_a_callback_that_holds_values() -> None:
    spider, keepers = found(UnderAKey)
    request = scrapy.Request("http://a.example/", partial(spider.brand, number=1))

    assert keepers.keep(request)


def test_the_callback_without_a_name() -> None:
    class Parses(Base):
        def parse(self, response: Response) -> Any:
            self.names[response.url] = response.text

    _, keepers = found(Parses)

    assert keepers.keep(scrapy.Request("http://a.example/"))
    assert keepers.keep(None)


def test_may_complete_an_item() -> None:
    """So its callback is not skipped, and no rule drops its requests."""
    spider, keepers = found(UnderAKey)
    callbacks, brand = Callbacks(keepers), scrapy.Request("http://a.example/", spider.brand)

    callbacks.brought(brand, None)

    assert callbacks.complete_items(brand)
    assert not callbacks.read_pages_alone(brand)


def test_tells_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    found(UnderAKey)[1].tell()

    assert "neardup: brand keeps what it reads in 'names', where others look it up" in caplog.text


def found(spider: type[scrapy.Spider], **settings: Any) -> tuple[Any, Keepers]:
    crawler = with_spider(spider, **settings)
    return crawler.spider, Keepers(crawler)


def keeping(spider: type[scrapy.Spider], **settings: Any) -> set[str]:
    """The names of the callbacks that are found."""
    made, keepers = found(spider, **settings)
    names = [name for name in ("parse", "brand", "product") if hasattr(made, name)]
    return {name for name in names if keepers.keep(scrapy.Request("http://a.example/", getattr(made, name)))}
