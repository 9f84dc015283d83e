"""The classes of spiders and components as far as projects have written them, and their source."""

from __future__ import annotations

import ast
import inspect
import sys
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from scrapy.utils.misc import load_object

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.settings import BaseSettings

Method: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_DICTS = frozenset({dict, defaultdict, OrderedDict})

_PACKAGES_LEFT_OUT = frozenset({"builtins", "neardup", "scrapy", "scrapy_redis"})
"""Packages whose classes are no project's own."""


def own_classes(cls: type) -> Iterator[type]:
    """A class and its bases, without those of libraries."""
    return (base for base in cls.__mro__ if base.__module__.partition(".")[0] not in _PACKAGES_LEFT_OUT)


def components_of(settings: BaseSettings, *kinds: str) -> list[type]:
    """The components of a crawl that are classes; ``kinds`` are settings, such as ``ITEM_PIPELINES``."""
    named = [each for kind in kinds for each in settings.getdict(kind).items()]
    loaded = [load_object(name) for name, order in named if order is not None]
    return [each for each in loaded if isinstance(each, type)]


def methods_of(cls: type) -> Iterator[Method]:
    """The methods of a class and of its bases; none of a class that has no source, or is a library's."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for base in own_classes(cls):
        module = base.__module__
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


@dataclass(frozen=True, slots=True)
class Shared:
    """The names by which the methods of a class reach what they share, beside ``self``."""

    classes: frozenset[str]
    dictionaries: frozenset[str]
    """Those of the modules."""

    @classmethod
    def of(cls, owner: type) -> Shared:
        """The names of a class and its bases, as far as a project has them, and those in their modules."""
        classes = list(own_classes(owner))
        modules = (vars(sys.modules.get(each.__module__, object)) for each in classes)
        return cls(
            frozenset(each.__name__ for each in classes),
            frozenset(name for module in modules for name, value in module.items() if type(value) in _DICTS),
        )

    def found(self, node: ast.AST, owner: str) -> ast.Attribute | ast.Name | None:
        """An attribute of an object itself or of its class, such as ``self.names``, or a dictionary of the
        module; None: it is something else. ``owner`` is the name of the object.
        """
        if isinstance(node, ast.Name):
            return node if node.id in self.dictionaries else None
        return node if isinstance(node, ast.Attribute) and self._is_own(node.value, owner) else None

    def _is_own(self, node: ast.expr, owner: str) -> bool:
        """Whether something is ``self``, ``type(self)`` or ``self.__class__``, or a class by its name."""
        if isinstance(node, ast.Call) and len(node.args) == 1 and getattr(node.func, "id", "") == "type":
            node = node.args[0]
        elif isinstance(node, ast.Attribute) and node.attr == "__class__":
            node = node.value
        elif isinstance(node, ast.Name) and node.id in self.classes:
            return True
        return isinstance(node, ast.Name) and node.id == owner


def name_of(node: ast.AST) -> str:
    """``count`` of ``self.count`` or of ``count``; "" of what is neither an attribute nor a name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
