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
    for base in cls.__mro__:
        module = sys.modules.get(base.__module__)
        if module is None or base.__module__.partition(".")[0] in PACKAGES_LEFT_OUT:
            continue
        try:
            tree = ast.parse(inspect.getsource(module))
        except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == base.__name__:
                yield from (each for each in node.body if isinstance(each, Method))
