"""A search log: which queries were asked, and how often."""

from __future__ import annotations

import gzip
import json
import unicodedata
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

LONGEST_LINE = 1 << 14
"""Bytes of a line. A longer one is damaged."""

_LINES = (".jsonl", ".jl", ".ndjson", ".jsonlines", ".json")
_MOST_COUNT = 1 << 40


class Logged(NamedTuple):
    """A query, how often it was asked, and how TREC run files name it: by its number, or else as it is."""

    query: str
    asked: int
    name: str


class Damaged(NamedTuple):
    """A line that says nothing of a query: its number from 1 on, and why."""

    line: int
    reason: str


def read_log(path: Path) -> Iterator[Logged | Damaged]:
    """The lines of a search log, in order; empty ones are left out. ConfigurationError: it cannot be read.

    ``.jsonl`` has objects with ``query``, ``count`` and perhaps ``id`` in its lines. All others are TSV: the
    count stands behind the last tab. Either may be packed (``.gz``). Tabs and control characters in a query
    are blanks.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    parse = _of_json if (suffixes[:-1] if packed else suffixes)[-1:] in [[one] for one in _LINES] else _of_tsv
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            for number, line in enumerate(_lines(cast("BinaryIO", file)), 1):
                if line is not None and not line.strip():
                    continue
                try:
                    yield parse(line)
                except _Bad as exc:
                    yield Damaged(number, str(exc))
    except (OSError, EOFError, zlib.error) as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc}") from exc


class _Bad(Exception):
    """What is wrong with a line."""


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Lines, of bounded memory; None stands for one that is too long."""
    while line := file.readline(LONGEST_LINE):
        if line.endswith(b"\n") or len(line) < LONGEST_LINE:
            yield line
            continue
        while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
            pass
        yield None


def _of_tsv(line: bytes | None) -> Logged:
    query, tab, count = _decoded(line).rstrip("\r\n").rpartition("\t")
    if not tab:
        raise _Bad("no tab")
    return _logged(query, int(count) if count.strip().isdecimal() else count, None)


def _of_json(line: bytes | None) -> Logged:
    try:
        found = json.loads(_decoded(line))
    except (ValueError, RecursionError) as exc:
        raise _Bad("no JSON") from exc
    if not isinstance(found, dict):
        raise _Bad("no JSON object")
    return _logged(found.get("query"), found.get("count"), found.get("id"))


def _decoded(line: bytes | None) -> str:
    if line is None:
        raise _Bad(f"longer than {LONGEST_LINE:,} bytes")
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise _Bad("not UTF-8") from exc


def _logged(query: Any, count: Any, name: Any) -> Logged:
    if not isinstance(query, str) or not (cleaned := clean_query(query)):
        raise _Bad("no query")
    if not isinstance(count, int) or isinstance(count, bool) or not 0 < count < _MOST_COUNT:
        raise _Bad("the count is no whole number above 0")
    return Logged(cleaned, count, cleaned if name is None else clean_query(str(name)))


def clean_query(text: str) -> str:
    r"""A query without control characters and superfluous blanks.

    >>> clean_query(" near\tduplicate\x00 pages ")
    'near duplicate pages'
    """
    plain = text if text.isprintable() else "".join(" " if _is_control(c) else c for c in text)
    # JSON can escape half a character, which no file takes.
    return " ".join(plain.split()).encode("utf-8", "replace").decode()


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"
