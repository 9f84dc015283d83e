"""Folders: HTML files, such as a mirrored site, and Scrapy's HTTP cache."""

from __future__ import annotations

import ast
import gzip
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from neardup.collection.inputs.found import PART_ROWS, End, Origin, Page, Record, Skipped, Why
from neardup.collection.inputs.gzip_members import MAGIC
from neardup.errors import NeardupError
from neardup.text.folders import read_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DAMAGE = (OSError, EOFError, ValueError, SyntaxError, KeyError, TypeError, zlib.error)


@dataclass(frozen=True, slots=True)
class HtmlFiles:
    """HTML files in the order of their paths; a place is a number in this order."""

    paths: tuple[Path, ...]

    @property
    def size(self) -> int:
        return len(self.paths)

    @property
    def starts(self) -> list[int]:
        return [0, *range(PART_ROWS, self.size, PART_ROWS)]

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        for place, path in enumerate(self.paths[start:end], start):
            origin = Origin(place=place, url=path.absolute().as_uri(), date=_changed(path))
            try:
                yield Page(origin, 200, b"Content-Type: text/html", read_page(path))
            except NeardupError as exc:
                yield Skipped(place, Why.DAMAGED, str(exc))
        yield End(min(end, self.size))


@dataclass(frozen=True, slots=True)
class HttpCache:
    """Responses that Scrapy's FilesystemCacheStorage has kept, each in a folder of its own."""

    folders: tuple[Path, ...]

    @property
    def size(self) -> int:
        return len(self.folders)

    @property
    def starts(self) -> list[int]:
        return [0, *range(PART_ROWS, self.size, PART_ROWS)]

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        for place, folder in enumerate(self.folders[start:end], start):
            try:
                yield _cached(place, folder)
            except _DAMAGE as exc:
                yield Skipped(place, Why.DAMAGED, f"{folder}: {exc}")
        yield End(min(end, self.size))


def cached_responses(folder: Path) -> tuple[Path, ...]:
    """The folders of responses of an HTTP cache: that of a spider, or that of all spiders; sorted."""
    for pattern in ("[0-9a-f][0-9a-f]/*/response_headers", "*/[0-9a-f][0-9a-f]/*/response_headers"):
        if found := sorted(path.parent for path in folder.glob(pattern)):
            return tuple(found)
    return ()


def _cached(place: int, folder: Path) -> Page:
    meta_file = (folder / "meta").read_bytes()
    # HTTPCACHE_GZIP packs all files of a response. A body may be packed without it, as a server sent it.
    unpack = gzip.decompress if meta_file.startswith(MAGIC) else bytes
    meta = ast.literal_eval(unpack(meta_file).decode())
    date = datetime.fromtimestamp(meta["timestamp"], UTC)
    origin = Origin(place=place, url=str(meta["response_url"]), date=date)
    headers, body = (unpack((folder / name).read_bytes()) for name in ("response_headers", "response_body"))
    return Page(origin, int(meta["status"]), headers, body)


def _changed(path: Path) -> datetime | None:
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError:
        return None
