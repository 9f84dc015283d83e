"""Callbacks that keep what they read, for the items or requests of other callbacks.

A spider may read the names of brands first, and look them up for the items of products. The pages of brands
must not wait behind these. The source of the spider tells.
"""

from __future__ import annotations

import ast
import logging
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from neardup.scrapy.own_end import WITHOUT_PAGE
from neardup.scrapy.spider_source import Shared, components_of, methods_of, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

_BY_KEY = frozenset({"setdefault", "update"})
"""Methods that keep something in a dictionary under a key."""

_IN_A_ROW = frozenset({"add", "append", "extend", "insert"})
"""Methods that keep something in a list or a set. Such a one mostly tells what was seen, in whatever order.
So it counts only under a key.
"""

_KEEPS_NOTHING = "logger"
"""An attribute of spiders that is given things, and has none of them."""

_GIVE = frozenset({"get", "setdefault"})
"""Methods that give what stands under a key."""


class Keepers:
    """The callbacks of a spider that keep something which others look up, by the names of their methods.

    What counts is an attribute of the spider or of its class, or a dictionary in it. So does a dictionary of
    the module. An object counts if one of its methods is called with something, and for no result. Counters
    and switches do not count.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._spider = crawler.spider
        self._kept: dict[str, str] = {}
        """By method: an attribute."""
        if self._spider is not None:
            self._kept = _kept_for_others(
                type(self._spider), components_of(crawler.settings, "ITEM_PIPELINES")
            )
        self._leading: set[str] = set()
        """Methods that have made requests for one of these, or for each other."""

    def tell(self) -> None:
        """Say in the log whose requests do not wait."""
        for method, attribute in sorted(self._kept.items()):
            logger.info(
                "neardup: %(method)s keeps what it reads in %(attribute)r, where others look it up, so its"
                " requests do not wait",
                {"method": method, "attribute": attribute},
                extra={"spider": self._spider},
            )

    def keep(self, request: Request | None) -> bool:
        """Whether the callback of a request is one of them."""
        return bool(self._kept) and _method_of(self._spider, request) in self._kept

    def note(self, by: Request | None, request: Request) -> None:
        """Take note of a request that comes out of the page of another."""
        if self._kept and self.cannot_wait(request):
            self._leading.add(_method_of(self._spider, by))

    def cannot_wait(self, request: Request) -> bool:
        """Whether a request must not wait: its callback is one of them, or has led to one."""
        if not self._kept:
            return False
        method = _method_of(self._spider, request)
        return method in self._kept or method in self._leading


def _method_of(spider: Spider | None, request: Request | None) -> str:
    """The name of the method that reads the page of a request. A rule of a CrawlSpider has its own."""
    if request is None or request.callback is None:
        return "parse"
    rules, number = getattr(spider, "_rules", ()), request.meta.get("rule")
    callback = request.callback.func if isinstance(request.callback, partial) else request.callback
    if isinstance(number, int) and 0 <= number < len(rules) and callback == getattr(spider, "_callback", 0):
        callback = rules[number].callback
    return callback if isinstance(callback, str) else str(getattr(callback, "__name__", ""))


@dataclass(slots=True)
class _Method:
    """What a method does with attributes of its object, and which methods it calls."""

    is_given: bool = False
    """Whether it may be given a page."""
    keeps: set[str] = field(default_factory=set)
    looks_up: set[str] = field(default_factory=set)
    calls: set[str] = field(default_factory=set)


def _kept_for_others(spider: type, pipelines: list[type]) -> dict[str, str]:
    """By the name of a method with a page: an attribute in which it keeps what another one looks up."""
    shared = Shared.of(spider)
    methods = _methods(spider, shared)
    called = {name for method in methods.values() for name in method.calls}
    named = {"parse"}.union(*(method.looks_up for method in methods.values()))
    callbacks = [
        name for name, method in methods.items() if method.is_given and (name in named or name not in called)
    ]
    in_pipelines = {
        name
        for pipeline in pipelines
        for method in methods_of(pipeline)
        if method.name == "process_item"
        for name in _all_names(method, shared)
    }
    found: dict[str, str] = {}
    whole = {name: _with_called(name, methods) for name in callbacks}
    for name, method in whole.items():
        others = (other.looks_up for at, other in whole.items() if at != name)
        if kept := method.keeps & in_pipelines.union(*others):
            found[name] = min(kept)
    return found


def _with_called(name: str, methods: dict[str, _Method]) -> _Method:
    """A method with those that it calls, and those that these call."""
    whole, waiting, met = _Method(), [name], set()
    while waiting:
        method = waiting.pop()
        if method in met or method not in methods:
            continue
        met.add(method)
        whole.keeps |= methods[method].keeps
        whole.looks_up |= methods[method].looks_up
        waiting += methods[method].calls
    return whole


def _methods(cls: type, shared: Shared) -> dict[str, _Method]:
    """The methods of a class that may be given a page, or are called by such methods. What a method of a base
    does counts as well, since the one in its place may call it.
    """
    methods: dict[str, _Method] = defaultdict(_Method)
    for method in methods_of(cls):
        given = [each.arg for each in (*method.args.posonlyargs, *method.args.args)]
        if given and method.name not in WITHOUT_PAGE and given[1:2] != ["spider"]:
            methods[method.name].is_given |= len(given) > 1
            _read(method, given[0], shared, methods[method.name])
    return methods


def _all_names(method: ast.AST, shared: Shared) -> Iterator[str]:
    """The attributes that a method looks up, of whatever has them, and the dictionaries."""
    for node in ast.walk(method):
        if isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and node.id in shared.dictionaries):
            yield name_of(node)


def _read(method: ast.AST, owner: str, shared: Shared, read: _Method) -> None:
    """Take note in ``read`` of what a method does; ``owner`` is the name of its object."""
    to_keep: set[ast.AST] = set()
    """What stands where something is kept in it."""
    for node in ast.walk(method):
        for kept in _places(node):
            place = _root(kept, owner, shared)
            if place is not None and name_of(place) != _KEEPS_NOTHING:
                to_keep.add(place)
                read.keeps.add(name_of(place))
        if isinstance(node, ast.Call) and (called := shared.found(node.func, owner)) is not None:
            to_keep.add(called)
            read.calls.add(name_of(called))
    for node in ast.walk(method):
        place = shared.found(node, owner)
        if place is not None and place not in to_keep and isinstance(place.ctx, ast.Load):
            read.looks_up.add(name_of(place))


def _places(node: ast.AST) -> Iterator[ast.expr]:
    """Where a statement or a call keeps something: under a key, or in an attribute."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            for place in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
                is_plain = isinstance(place, ast.Attribute)
                if isinstance(place, ast.Subscript) or (is_plain and not _is_switch(node.value)):
                    yield place
        return
    if isinstance(node, ast.AugAssign):
        if isinstance(node.target, ast.Subscript) and not isinstance(node.value, ast.Constant):
            yield node.target
        return
    is_alone = isinstance(node, ast.Expr)
    call = node.value if isinstance(node, ast.Expr) else node
    if isinstance(call, ast.Await):
        call = call.value
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        kept_in, method = call.func.value, call.func.attr
        if method in _IN_A_ROW:
            keeps = isinstance(kept_in, ast.Subscript | ast.Call)
        else:
            keeps = method in _BY_KEY or (is_alone and bool(call.args or call.keywords))
        if keeps:
            yield kept_in


def _is_switch(value: ast.expr | None) -> bool:
    return value is None or isinstance(value, ast.Constant | ast.Compare)


def _root(place: ast.expr, owner: str, shared: Shared) -> ast.Attribute | ast.Name | None:
    """In which attribute or dictionary a place is: ``self.names`` of ``self.names[brand]["en"]``."""
    node: ast.expr = place
    while True:
        found = shared.found(node, owner)
        if found is not None:
            return found
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _GIVE:
            node = node.func.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return None
