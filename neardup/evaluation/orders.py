"""The orders in which the pages of folders are judged."""

from __future__ import annotations

import random
import urllib.request
from collections import deque
from typing import TYPE_CHECKING, cast
from urllib.parse import urljoin, urlsplit

from neardup.errors import ConfigurationError, NeardupError
from neardup.text.folders import read_page
from neardup.text.visible_text import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

RANDOM = "random"
CRAWL = "crawl"
FILES = "files"
ORDERS = (RANDOM, CRAWL, FILES)

_LINKS = "//a/@href | //area/@href | //frame/@src | //iframe/@src"
_START_PAGE = "index.htm"


def in_order(
    files: Sequence[Path], order: str, seed: int, on_progress: Callable[[str, int, int], None]
) -> list[Path]:
    """Files, sorted by path and without symbolic links in them, in one of ``ORDERS``.

    - ``random``: as the seed has it.
    - ``crawl``: along the links, breadth first. The start page is the index page with the shortest path, or
      else the first file. Where the links lead no further, the next start page is that of the files that are
      left.
    - ``files``: as they are.
    """
    if order == RANDOM:
        return random.Random(seed).sample(files, len(files))  # noqa: S311  # no secret
    if order == CRAWL:
        return list(_along_links(files, on_progress))
    if order == FILES:
        return list(files)
    raise ConfigurationError(f"there is no order {order!r}, but {', '.join(ORDERS)}")


def _along_links(files: Sequence[Path], on_progress: Callable[[str, int, int], None]) -> Iterator[Path]:
    known = {str(file): file for file in files}
    starts = sorted(files, key=lambda file: (not file.name.startswith(_START_PAGE), len(file.parts)))
    queued: set[Path] = set()
    for start in starts:
        waiting = deque([] if start in queued else [start])
        queued.add(start)
        while waiting:
            page = waiting.popleft()
            yield page
            for name in _linked(page):
                file = known.get(name) or known.get(f"{name}.gz") or known.get(f"{name}/index.html")
                if file and file not in queued:
                    queued.add(file)
                    waiting.append(file)
            on_progress("links followed", len(queued) - len(waiting), len(files))


def _linked(page: Path) -> Iterator[str]:
    """Names of the files that a page links to, in the order of the links, whether there are such or not."""
    try:
        root = parse(read_page(page).decode("utf-8", "replace"))
    except NeardupError:  # judging it will say so
        return
    base = page.as_uri()
    links = [] if root is None else cast("list[str]", root.xpath(_LINKS))
    for link in dict.fromkeys(link.partition("#")[0].strip() for link in links):
        try:
            parts = urlsplit(urljoin(base, link))
        except ValueError:  # not a URL
            continue
        if parts.scheme == "file":
            yield urllib.request.url2pathname(parts.path).rstrip("/")
