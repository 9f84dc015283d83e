"""The source of spiders and pipelines, as far as projects have written them."""

from __future__ import annotations

import ast
import inspect
import sys
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Method: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

PACKAGES_LEFT_OUT = frozenset({"builtins", "neardup", "scrapy", "scrapy_redis"})
"""Packages whose classes are no project's own."""


def methods_of(cls: type) -> Iterator[Method]:
    """The methods of a class and of its bases; none of a class that has no source, or is a library's."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for base in cls.__mro__:
        module = base.__module__
        if module.partition(".")[0] in PACKAGES_LEFT_OUT:
            continue
        if module not in classes:
            classes[module] = _classes_of(module)
        for found in classes[module]:
            if found.name == base.__name__:
                yield from (each for each in found.body if isinstance(each, Method))


def _classes_of(module: str) -> list[ast.ClassDef]:
    """The classes that the source of a module has, also within functions and classes."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (KeyError, OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return []
    waiting: list[ast.AST] = [tree]
    found: list[ast.ClassDef] = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef):
            found.append(node)
        # Expressions, of which there are many more, hold no classes.
        waiting += (each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt))
    return found
