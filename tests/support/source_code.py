"""The modules of the project, and what they import."""

from __future__ import annotations

import ast
from functools import cache
from typing import TYPE_CHECKING

from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path


CODE = sorted([*(ROOT / "neardup").rglob("*.py"), *(ROOT / "crawler").rglob("*.py")])


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's syntax tree. Several tests walk each tree, and making one takes longest."""
    return tuple(ast.walk(ast.parse(path.read_text())))


@cache
def imports(path: Path, *, with_types: bool) -> frozenset[str]:
    """Names of the modules a file imports; ``with_types``: also those only mypy reads."""
    for_types = {
        inner
        for node in nodes(path)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    found: set[str] = set()
    for node in nodes(path):
        if node in for_types and not with_types:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)
