"""Labelled pairs from a file: JSON lines or CSV, texts or pages, in the file itself or by path.

A row names each of its two sides by one of ``a_text``, ``a_html``, ``a_path`` and ``a`` (``b_text``…), and
has a ``label``. A path is relative to the file's folder, or a file:// URL. The value of ``a`` is taken for a
path if there is such a file. Any other value is taken for HTML if it has a tag, else for text. The name of a
page that is not there is an error. A file is read as HTML if its name is that of a page or it has a tag, else
as text.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import re
import urllib.request
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from neardup.errors import ConfigurationError, NeardupError
from neardup.text.folders import is_page, read_page
from neardup.text.visible_text import text_of_bytes, text_of_html

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_KINDS = ("", "_text", "_html", "_path")
_LARGEST_FIELD = 1 << 30
_LONGEST_PATH = 4096
_TAG = re.compile(r"<[a-zA-Z!/][^<>]*>")
_PAGE_NAME = re.compile(r"\S+\.x?html?(\.\S+)?")
_ALLOWED = "{0}_text, {0}_html, {0}_path or {0}"


class Side(NamedTuple):
    """One of a pair: ``kind`` is ``text``, ``html`` or ``path``, ``content`` the text, the HTML
    or the path.
    """

    name: str
    kind: str
    content: str

    def key(self) -> bytes:
        """Equal for sides with the same content."""
        return hashlib.blake2b(f"{self.kind} {self.content}".encode("utf-8", "surrogatepass")).digest()

    def text(self) -> str:
        """The visible text; NeardupError if the file cannot be read."""
        if self.kind == "html":
            return text_of_html(self.content)
        if self.kind == "text":
            return " ".join(self.content.split())
        path = Path(self.content)
        data = read_page(path)
        if is_page(path.name):
            return text_of_bytes(data)
        content = data.decode("utf-8", "replace")
        return Side("", "html" if _TAG.search(content) else "text", content).text()


class Pair(NamedTuple):
    """``label``: 0 or 1, or a grade; ``line``: where the row ends in the file."""

    line: int
    a: Side
    b: Side
    label: float


def read_pairs(path: Path, *, graded: bool = False) -> Iterator[Pair]:
    """The pairs of a .jsonl (.ndjson) or .csv file, perhaps packed (.gz), in their order.

    Raises ConfigurationError, which names file, line and value, for what is not of this form; also if there
    are no pairs.
    """
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    if kind not in {".jsonl", ".ndjson", ".csv"}:
        raise ConfigurationError(
            f"{path}: labelled pairs are read from .jsonl, .ndjson or .csv files (also .gz)"
        )
    number = 0
    try:
        with _open(path) as file:
            for line, row in _csv_rows(path, file) if kind == ".csv" else _json_rows(path, file):
                number += 1
                a, b = (_side(path, line, row, side) for side in "ab")
                yield Pair(line, a, b, _label(path, line, row, graded=graded))
    except (OSError, EOFError, zlib.error) as exc:
        raise ConfigurationError(f"{path} cannot be read: {getattr(exc, 'strerror', None) or exc}") from exc
    except UnicodeDecodeError as exc:
        raise ConfigurationError(f"{path} is not UTF-8: {exc}") from exc
    if not number:
        raise ConfigurationError(f"{path} has no pairs")


def _open(path: Path) -> IO[str]:
    if path.suffix.lower() == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _json_rows(path: Path, file: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(file, start=1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except (ValueError, RecursionError) as exc:
            raise ConfigurationError(f"{path}, line {line}: not JSON: {exc}") from exc
        if not isinstance(row, dict):
            raise ConfigurationError(
                f"{path}, line {line}: a JSON object with a, b and label is needed, not {row!r:.80}"
            )
        yield line, row


def _csv_rows(path: Path, file: IO[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    # Pages are longer than the 128 kB that the csv module takes for a field; the limit is one for the whole
    # process.
    csv.field_size_limit(max(csv.field_size_limit(), _LARGEST_FIELD))
    reader = csv.DictReader(file)
    try:
        columns = reader.fieldnames or ()
        if "label" not in columns:
            raise ConfigurationError(
                f"{path}: there is no column label, but {', '.join(columns) or 'nothing at all'}"
            )
        for side in "ab":
            if not any(f"{side}{kind}" in columns for kind in _KINDS):
                raise ConfigurationError(
                    f"{path}: there is no column {_ALLOWED.format(side)}, but {', '.join(columns)}"
                )
        for row in reader:
            for side in "ab":
                _drop_empty(row, side)
            yield reader.line_num, row
    except csv.Error as exc:
        raise ConfigurationError(f"{path}, line {reader.line_num}: not CSV: {exc}") from exc


def _drop_empty(row: dict[str, Any], side: str) -> None:
    """An empty cell is an empty text, unless the side has another column to stand in."""
    names = [name for kind in _KINDS if (name := f"{side}{kind}") in row]
    if len(names) > 1:
        for name in names:
            row[name] = row[name] or None


def _side(path: Path, line: int, row: Mapping[str, Any], side: str) -> Side:
    given = [kind for kind in _KINDS if row.get(f"{side}{kind}") is not None]
    if len(given) != 1:
        found = " and ".join(f"{side}{kind}" for kind in given) or "none of them"
        raise ConfigurationError(
            f"{path}, line {line}: one of {_ALLOWED.format(side)} is needed, not {found}"
        )
    (kind,) = given
    content = row[f"{side}{kind}"]
    if not isinstance(content, str):
        raise ConfigurationError(f"{path}, line {line}: {side}{kind} must be a text, not {content!r:.80}")
    name = f"{path}:{line} {side}"
    if kind in {"_text", "_html"}:
        return Side(name, kind[1:], content)
    file = _file(path, content)
    if file is not None:
        return Side(content, "path", str(file))
    if kind == "_path" or content.startswith("file:") or _PAGE_NAME.fullmatch(content):
        raise ConfigurationError(f"{path}, line {line}: {side}{kind} names no file: {content!r:.200}")
    return Side(name, "html" if _TAG.search(content) else "text", content)


def _file(pairs: Path, content: str) -> Path | None:
    """The file of this name, if there is one."""
    if not content or len(content) > _LONGEST_PATH:
        return None
    try:
        name = urllib.request.url2pathname(urlsplit(content).path) if content.startswith("file:") else content
        file = pairs.parent / Path(name).expanduser()
        return file if file.is_file() else None
    except (OSError, ValueError, RuntimeError):  # a text that is no URL, or no name for a file
        return None


def _label(path: Path, line: int, row: Mapping[str, Any], *, graded: bool) -> float:
    given = row.get("label")
    try:
        label = math.nan if given is None else float(given)
    except (TypeError, ValueError, OverflowError):
        label = math.nan
    if not math.isfinite(label) or (not graded and label not in {0.0, 1.0}):
        allowed = (
            "a finite number"
            if graded
            else "0 or 1 (for grades, say with --graded-cut from where on they mean duplicates)"
        )
        raise ConfigurationError(f"{path}, line {line}: label must be {allowed}, not {given!r:.80}")
    return label


def text_of(path: Path, pair: Pair, side: Side) -> str:
    """The visible text of a side; ConfigurationError names the line if it cannot be read."""
    try:
        return side.text()
    except NeardupError as exc:
        raise ConfigurationError(f"{path}, line {pair.line}: {exc}") from exc
