"""Spiders that limit the depth of a crawl by themselves.

Each request carries how many steps led to it. Or the spider compares what Scrapy counts.
"""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Any

from neardup.scrapy.carried import is_of_component
from neardup.scrapy.spider_source import components_of, methods_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

_LEAST_LINKS = 2
"""Links of one page that count on. The one link to the next page of a listing may carry a number as well."""


class Steps:
    """The numbers of a page's request that the page's links count on: by one, all of them alike.

    Numbers that differ from link to link are places in a list.
    """

    def __init__(self, response: Response) -> None:
        request = response.request
        self._own = {} if request is None else dict(_numbers(request))
        self._counted: dict[tuple[str, str], Counter[int]] = {}

    def read(self, request: Request) -> None:
        """Take note of what a link of the page carries."""
        if not self._own:
            return
        for place, number in _numbers(request):
            if place in self._own:
                self._counted.setdefault(place, Counter())[number] += 1

    def counted(self) -> str | None:
        """What counts steps, such as ``meta 'hops'``; None: nothing does."""
        for (where, name), numbers in self._counted.items():
            (number, links), *others = numbers.most_common(2)
            if not others and links >= _LEAST_LINKS and abs(number - self._own[where, name]) == 1:
                return f"{where} {name!r}"
        return None


def _numbers(request: Request) -> Iterator[tuple[tuple[str, str], int]]:
    """The numbers that a spider has given a request, by where and under which name."""
    carried: tuple[tuple[str, Mapping[str, Any]], ...] = (
        ("cb_kwargs", request.cb_kwargs),
        ("meta", request.meta),
    )
    for where, values in carried:
        for name, value in values.items():
            if type(value) is int and not (where == "meta" and is_of_component(name, value)):
                yield (where, name), value


def compares_depth(crawler: Crawler) -> str | None:
    """A method of the spider or of a middleware that compares ``meta["depth"]``, such as ``Shop.parse``.

    None: none does.
    """
    middlewares = components_of(crawler.settings, "SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES")
    for cls in (type(crawler.spider), *middlewares):
        for method in methods_of(cls):
            if _compares_depth(method):
                return f"{cls.__name__}.{method.name}"
    return None


def _compares_depth(method: ast.AST) -> bool:
    nodes = list(ast.walk(method))
    names = {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None
        if any(map(_is_depth, ast.walk(node.value)))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    compared = (part for node in nodes if isinstance(node, ast.Compare) for part in ast.walk(node))
    return any(_is_depth(part) or (isinstance(part, ast.Name) and part.id in names) for part in compared)


def _is_depth(node: ast.AST) -> bool:
    """Whether something is ``meta["depth"]`` or ``meta.get("depth")``, of whatever has it."""
    if isinstance(node, ast.Subscript):
        meta, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        meta, key = node.func.value, node.args[0]
    else:
        return False
    return name_of(meta) == "meta" and isinstance(key, ast.Constant) and key.value == "depth"
