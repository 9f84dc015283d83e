"""Limits by which the code of a project ends a crawl at so many pages or items, in whatever order they come.

Such a limit is no reason for keeping requests in their order. What waits leaves more of the limit to new
pages.
"""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING

from neardup.scrapy.spider_source import Shared, methods_of, name_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from neardup.scrapy.spider_source import Method

_AT_THE_START = frozenset({"__init__", "open_spider", "spider_opened", "start", "start_requests"})
"""Methods that may set a counter, because they are called before the first page."""

_ADD = frozenset({"add", "append"})

_LEAVING = (ast.Return, ast.Continue, ast.Break, ast.Raise)


def ends_at_a_count(cls: type, qualified: str, closing: Collection[str]) -> bool:
    """Whether a method of a class ends the crawl at a limit of a counter, and never else.

    A counter is an attribute that counts pages or items, and is never set back. A list or a set of these is
    one, too, where the code asks how long it is. ``qualified`` is the name of
    the method with that of its class, and ``closing`` are the names that code ends a crawl by. False if it is
    no method, or has no source.
    """
    shared = Shared.of(cls)
    owner, _, name = qualified.rpartition(".")
    if owner.rpartition(".")[2] not in shared.classes:
        return False
    methods = list(methods_of(cls))
    named = [method for method in methods if method.name == name]
    counters = _counters(methods, shared) if named else set()
    return bool(counters) and not any(_ends_otherwise(method, closing, counters) for method in named)


def _ends_otherwise(method: Method, closing: Collection[str], counters: set[str]) -> bool:
    waiting: list[ast.AST] = [*method.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If):
            at_limit, below = _sides(node.test, counters)
            waiting += chain([node.test], () if at_limit else node.body, () if below else node.orelse)
        elif isinstance(node, ast.Name | ast.Attribute) and _last_name(node) in closing:
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
    if _counter(test.left) in counters:
        return is_more, is_less
    if _counter(test.comparators[0]) in counters:
        return is_less, is_more
    return False, False


def _counter(node: ast.expr) -> str:
    """The name of what may be a counter: ``count`` of ``self.count``, and ``seen`` of ``len(self.seen)``."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and _last_name(node) == "len":
        node = node.args[0]
    return _last_name(node)


def _counters(methods: Sequence[Method], shared: Shared) -> set[str]:
    counted: set[ast.AST] = set()
    for method in methods:
        counted.update(_counted(method.body, _items(method.body)))
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
    block: Sequence[ast.stmt], items: int, *, on_condition: bool = False, is_given: bool = False
) -> Iterator[ast.expr]:
    """What counts up where something is given, too: a page was got, or an item.

    On a condition these are all ``items`` that the method gives. Old or empty pages may be counted else, and
    the order of requests decides when these reach a limit.
    """
    if on_condition:
        is_given = 0 < items == _items(block)
    else:
        is_given = is_given or any(_gives(each) for each in block if not _leaves(each))
    for each in block:
        if is_given and (counter := _counted_up(each)) is not None:
            yield counter
        elif isinstance(each, ast.If):
            # Behind it stand pages without what it gives.
            is_given = is_given and not (_leaves(each) and _gives(each))
            yield from _counted(each.body, items, on_condition=True)
            yield from _counted(each.orelse, items, on_condition=True)
        elif isinstance(each, ast.Try | ast.With | ast.AsyncWith):
            yield from _counted(each.body, items, on_condition=on_condition, is_given=is_given)
        elif isinstance(each, ast.For | ast.While | ast.AsyncFor):
            yield from _counted(each.body, items, on_condition=on_condition)


def _counted_up(statement: ast.stmt) -> ast.expr | None:
    """What a statement adds one to: a number, a list or a set."""
    if isinstance(statement, ast.AugAssign):
        is_one_more = isinstance(statement.op, ast.Add) and isinstance(statement.value, ast.Constant)
        return statement.target if is_one_more else None
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _ADD:
        return call.func.value
    return None


def _leaves(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and isinstance(statement.body[-1], _LEAVING)


def _gives(statement: ast.stmt) -> bool:
    return any(
        isinstance(node, ast.YieldFrom) or getattr(node, "value", None) is not None
        for node in ast.walk(statement)
        if isinstance(node, ast.Yield | ast.YieldFrom | ast.Return)
    )


def _items(block: Sequence[ast.stmt]) -> int:
    """The places where a block gives an item."""
    nodes = (node for statement in block for node in ast.walk(statement))
    return sum(isinstance(node, ast.Yield) and _is_item(node.value) for node in nodes)


def _is_item(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Name):
        return "req" not in value.id.lower()
    return isinstance(value, ast.Dict) or "item" in _last_name(value).lower()


def _last_name(node: ast.AST | None) -> str:
    """``count`` of ``self.count``, and ``load_item`` of ``loader.load_item()``."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
