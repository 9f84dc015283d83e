"""Limits by which the code of a project ends a crawl at so many pages or items, in whatever order they come.

Such a limit is no reason for keeping requests in their order. What waits leaves more of the limit to new
pages.
"""

from __future__ import annotations

import ast
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from neardup.scrapy.spider_source import Shared, methods_of, name_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from neardup.scrapy.spider_source import Method

_AT_THE_START = frozenset({"__init__", "open_spider", "spider_opened", "start", "start_requests"})
"""Methods that may set a counter, because they are called before the first page."""

_ADD = frozenset({"add", "append"})

_COUNTS_OF_SCRAPY = frozenset({"item_scraped_count", "response_received_count", "downloader/response_count"})
"""Names in its statistics."""

_RETURNED = (ast.Name, ast.Dict, ast.List, ast.ListComp, ast.Call)
"""What a method returns that returns items or requests. Others return whether something holds, or a count."""

_LEAVING = (ast.Return, ast.Continue, ast.Break, ast.Raise)


class OwnLimits:
    """The limits of a class, whose source is read once it is asked for."""

    def __init__(self, cls: type) -> None:
        self._cls = cls
        self._shared = Shared.of(cls)

    def end(self, qualified: str, closing: Collection[str]) -> bool:
        """Whether a method ends the crawl at a limit of a counter, and never else.

        A counter is an attribute that counts pages or items, and is never set back. A list or a set of these
        is one, too, where the code asks how long it is. So are Scrapy's own counts. ``qualified`` is the name
        of the method with that of its class, and ``closing`` are the names that code ends a crawl by. False
        if it is no method, or has no source.
        """
        owner, _, name = qualified.rpartition(".")
        if owner.rpartition(".")[2] not in self._shared.classes:
            return False
        named = [method for method in self._methods if method.name == name]
        return bool(named) and not any(_ends_otherwise(each, closing, self._counters) for each in named)

    @cached_property
    def _methods(self) -> list[Method]:
        return list(methods_of(self._cls))

    @cached_property
    def _counters(self) -> set[str]:
        return _counters(self._methods, self._shared)


def _ends_otherwise(method: Method, closing: Collection[str], counters: set[str]) -> bool:
    assigned = (node for node in ast.walk(method) if isinstance(node, ast.Assign))
    known = counters | {name_of(node.targets[0]) for node in assigned if _is_count_of_scrapy(node.value)}
    waiting: list[ast.AST] = [*method.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If):
            at_limit, below = _sides(node.test, known)
            waiting += chain([node.test], () if at_limit else node.body, () if below else node.orelse)
        elif isinstance(node, ast.ExceptHandler):
            waiting += node.body
        elif isinstance(node, ast.Name | ast.Attribute) and name_of(node) in closing:
            return True
        else:
            waiting += ast.iter_child_nodes(node)
    return False


def _sides(test: ast.expr, counters: set[str]) -> tuple[bool, bool]:
    """Whether a counter has reached a limit if a condition holds, and if it does not."""
    if isinstance(test, ast.BoolOp):
        if_true, if_false = zip(*(_sides(each, counters) for each in test.values), strict=True)
        return (
            (any(if_true), all(if_false)) if isinstance(test.op, ast.And) else (all(if_true), any(if_false))
        )
    if not isinstance(test, ast.Compare) or len(test.ops) > 1:
        return False, False
    is_less = isinstance(test.ops[0], ast.Lt | ast.LtE)
    is_more = isinstance(test.ops[0], ast.Gt | ast.GtE | ast.Eq)
    if _counts(test.left, counters):
        return is_more, is_less
    if _counts(test.comparators[0], counters):
        return is_less, is_more
    return False, False


def _counts(node: ast.expr, counters: set[str]) -> bool:
    if isinstance(node, ast.Call) and len(node.args) == 1 and name_of(node.func) == "len":
        node = node.args[0]
    return _is_count_of_scrapy(node) or name_of(node) in counters


def _is_count_of_scrapy(node: ast.expr) -> bool:
    """Whether something is ``stats.get_value("item_scraped_count")`` or the like."""
    if not isinstance(node, ast.Call) or not node.args or name_of(node.func) != "get_value":
        return False
    return getattr(node.args[0], "value", None) in _COUNTS_OF_SCRAPY


def _counters(methods: Sequence[Method], shared: Shared) -> set[str]:
    counted: set[ast.AST] = set()
    for method in methods:
        counted.update(_counted(method.body, _given(method.body)))
    named, set_otherwise = set(), set()
    for method in methods:
        arguments = [*method.args.posonlyargs, *method.args.args]
        nodes = list(ast.walk(method)) if arguments else []
        calls = (node.func for node in nodes if isinstance(node, ast.Call))
        called = {function.value for function in calls if isinstance(function, ast.Attribute)}
        for node in nodes:
            place = shared.found(node, arguments[0].arg)
            if place is None:
                continue
            is_set = place in called or not isinstance(place.ctx, ast.Load)
            if place in counted:
                named.add(name_of(place))
            elif is_set and method.name not in _AT_THE_START:
                set_otherwise.add(name_of(place))
    return named - set_otherwise


def _counted(
    block: Sequence[ast.stmt], given: _Given, *, on_condition: bool = False, is_given: bool = False
) -> Iterator[ast.expr]:
    """What counts up where something is given, too: a page was got, or an item.

    On a condition that is all that the method gives (``given``), or all items. Old or empty pages may be
    counted else, and the order of requests decides when these reach a limit.
    """
    if on_condition:
        here = _given(block)
        is_given = 0 < here.items == given.items or 0 < here.yields == given.yields
    else:
        is_given = is_given or _given([each for each in block if not _leaves(each)]).is_any
    for each in block:
        if is_given and (counter := _counted_up(each)) is not None:
            yield counter
        elif isinstance(each, ast.If):
            # Behind it stand pages without what it gives.
            leaves = _leaves(each)
            is_given = is_given and not (leaves and _given(each.body).is_any)
            yield from _counted(each.body, given, on_condition=True)
            certain = leaves and not on_condition
            yield from _counted(each.orelse, given, on_condition=not certain, is_given=certain and is_given)
        elif isinstance(each, ast.Try | ast.With | ast.AsyncWith):
            yield from _counted(each.body, given, on_condition=on_condition, is_given=is_given)
        elif isinstance(each, ast.For | ast.While | ast.AsyncFor):
            yield from _counted(each.body, given, on_condition=on_condition)


def _counted_up(statement: ast.stmt) -> ast.expr | None:
    """What a statement adds one to: a number, a list or a set."""
    if isinstance(statement, ast.AugAssign):
        is_one_more = isinstance(statement.op, ast.Add) and isinstance(statement.value, ast.Constant)
        return statement.target if is_one_more else None
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        target, added = statement.targets[0], statement.value
        is_one_more = isinstance(added.op, ast.Add) and isinstance(added.right, ast.Constant)
        return target if is_one_more and _are_same(target, added.left) else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _ADD:
        return call.func.value
    return None


def _are_same(one: ast.expr, other: ast.expr) -> bool:
    """Whether two are the same attribute of one name."""
    if not isinstance(one, ast.Attribute) or not isinstance(other, ast.Attribute):
        return False
    return (one.attr, name_of(one.value)) == (other.attr, name_of(other.value))


def _leaves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], _LEAVING)


class _Given(NamedTuple):
    """In how many places something is given."""

    items: int
    yields: int
    """Items, requests or either."""
    returns: int

    @property
    def is_any(self) -> bool:
        return self.yields + self.returns > 0


def _given(block: Sequence[ast.stmt]) -> _Given:
    nodes = [node for statement in block for node in ast.walk(statement)]
    yielded = [node.value for node in nodes if isinstance(node, ast.Yield) and node.value is not None]
    several = sum(isinstance(node, ast.YieldFrom) for node in nodes)
    returns = sum(isinstance(node, ast.Return) and isinstance(node.value, _RETURNED) for node in nodes)
    return _Given(sum(map(_is_item, yielded)), len(yielded) + several, returns)


def _is_item(value: ast.expr) -> bool:
    if isinstance(value, ast.Name):
        return "req" not in value.id.lower()
    called = value.func if isinstance(value, ast.Call) else value
    return isinstance(value, ast.Dict) or "item" in name_of(called).lower()
