"""Whether the code of a project may end a crawl by what it reads: then the order of requests decides what is
found.

A spider of news may stop at the first article that an earlier crawl has had. Newer articles must not wait.
"""

from __future__ import annotations

import dis
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from neardup.scrapy.carried import enclosed
from neardup.scrapy.own_limits import OwnLimits
from neardup.scrapy.spider_source import components_of, own_classes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.crawler import Crawler

_CLOSING = frozenset({"CloseSpider", "close_spider", "close_spider_async"})
"""What code says that ends a crawl: the exception, and methods of the engine."""

_WHEN_IDLE = "idle"
"""In the names of methods that are called when no request is left, such as ``spider_idle``."""

_ASKS = frozenset({"COMPARE_OP", "CONTAINS_OP", "IS_OP", "UNARY_NOT"})
"""Instructions that give True or False."""

WITHOUT_PAGE = frozenset({"__init__", "from_crawler", "closed"})
"""Methods that are given something, but no page."""


def own_end(crawler: Crawler) -> str | None:
    """What in the spider, its modules, pipelines, spider middlewares or extensions may end the crawl, such as
    ``CloseSpider in parse``; None: nothing.

    What ends the crawl at so many pages or items does not count. Beside what closes the spider, a switch
    counts. It is an attribute of the spider that some place of it asks for. A method with a page or an item
    sets it to True or False. Pipelines have other switches of their own, as for the first item of a file.
    """
    components = components_of(crawler.settings, "ITEM_PIPELINES", "SPIDER_MIDDLEWARES", "EXTENSIONS")
    spider = type(crawler.spider)
    codes = {cls: list(_codes(cls)) for cls in (spider, *components)}
    for cls, of_class in codes.items():
        limits = OwnLimits(cls)
        for code in of_class:
            closing = sorted(_CLOSING.intersection(code.co_names) - {code.co_name})
            if closing and _WHEN_IDLE not in code.co_name and not limits.end(code.co_qualname, _CLOSING):
                return f"{closing[0]} in {code.co_name}"
    asked = {
        instruction.argval
        for code in codes[spider]
        for instruction in dis.get_instructions(code)
        if instruction.opname in {"LOAD_ATTR", "LOAD_METHOD"}
    }
    for cls, of_class in codes.items():
        for code in of_class:
            for name in _switches(code, own=cls is spider):
                if name in asked:
                    return f"the switch {name!r} in {code.co_name}"
    return None


def _codes(cls: type) -> Iterator[CodeType]:
    """The code of the methods of a class and its bases, of functions beside these, and of those within."""
    met: set[CodeType] = set()
    for base in own_classes(cls):
        beside = vars(sys.modules.get(base.__module__, object)).values()
        functions = [each for each in beside if getattr(each, "__module__", None) == base.__module__]
        for value in (*vars(base).values(), *functions):
            yield from _within(value, met)


def _within(value: object, met: set[CodeType]) -> Iterator[CodeType]:
    """The code of a function, of functions in it, and of those that it wraps, each once."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    code = value.__code__ if isinstance(value, FunctionType) else value
    if not isinstance(code, CodeType) or code in met:  # a function may refer to itself
        return
    met.add(code)
    yield code
    for constant in code.co_consts:
        yield from _within(constant, met)
    if isinstance(value, FunctionType):
        for each in enclosed(value):
            yield from _within(each, met)


def _switches(code: CodeType, *, own: bool) -> Iterator[str]:
    """The attributes that a method sets to True or False: of its first argument, or of other things if not
    ``own``. None of a method that is given nothing.

    A method that is given the spider is called when the crawl begins, idles or ends.
    """
    if code.co_argcount < 2 or code.co_name in WITHOUT_PAGE or code.co_varnames[1] == "spider":
        return
    before: list[dis.Instruction] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "STORE_ATTR":
            owner = len(before) - 1
            while owner > 1 and before[owner].opname == "LOAD_ATTR":
                owner -= 1  # to ``self`` of ``self.crawler.spider``
            is_own = owner == len(before) - 1 and before[owner].argval == code.co_varnames[0]
            value = before[owner - 1]
            if own == is_own and (isinstance(value.argval, bool) or value.opname in _ASKS):
                yield instruction.argval
        before.append(instruction)
