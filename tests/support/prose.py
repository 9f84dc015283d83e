"""The sentences of Markdown pages and of docstrings, without tables, code, doctests and formulas."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_END_OF_SENTENCE = re.compile(r"(?<=[.!?])(?<!\b[Ee]q\.)(?<!\beqs\.)(?<!\bal\.)\s+|(?<=[.!?][\"')*])\s+")
_NEW_BLOCK = re.compile(r"\n\s*(?:[-*]|\d+\.|#+) |\n\s*\n|\n(?=[|=])")


def sentences_of(path: Path) -> Iterator[str]:
    """The sentences of a Markdown page, or of all docstrings of a Python module."""
    if path.suffix == ".md":
        yield from sentences_of_markdown(path.read_text())
        return
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield from sentences_of_docstring(docstring)


def sentences_of_markdown(text: str) -> Iterator[str]:
    without_code = re.sub(r"^ *```.*?^ *```$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from _sentences(re.sub(r"\]\([^)]*\)", "]", without_code))


def sentences_of_docstring(text: str) -> Iterator[str]:
    """Doctests and indented paragraphs, which are formulas, tables and code, are no sentences."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    prose = [paragraph for paragraph in paragraphs if not paragraph.startswith((" ", ">>>"))]
    yield from _sentences("\n\n".join(prose))


def _sentences(text: str) -> Iterator[str]:
    for block in _NEW_BLOCK.split(f"\n{text}"):
        if block.strip() and not block.startswith(("|", "=")):
            yield from _END_OF_SENTENCE.split(" ".join(block.split()))
