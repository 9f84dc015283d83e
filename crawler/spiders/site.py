"""``scrapy crawl site -a url=…``: crawl web sites or mirrored folders and tell which pages are
near-duplicates.
"""

from __future__ import annotations

import logging
import mimetypes
import os
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from w3lib.url import file_uri_to_path

from crawler.items import PageItem
from neardup import get_verdict
from neardup.address import host_of, is_web
from neardup.text.folders import files_below

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

logger = logging.getLogger(__name__)

_INDEX_PAGES = ("index.html", "index.htm")
_START_OF_FILE = 1024

_LINKS_REMEMBERED = 1 << 16
"""Links between files whose answers are kept, some 30 MB: a menu of a thousand links is on every page."""


class SiteSpider(scrapy.Spider):
    """Crawl one or several sites, given as ``-a url=``: URLs, folders and HTML files, separated by commas or
    spaces.

    A web site is crawled from its URL along the links that stay on its host. A folder is a mirrored site.
    Every HTML page below the folder is read, and links are followed to other files below the folder. No page
    on the web leads to a file, and no symbolic link out of the folders.
    """

    name = "site"

    def __init__(self, url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = []
        self.folders: list[Path] = []
        self.files: list[Path] = []
        for start in _split(url):
            if is_web(start):
                self.start_urls.append(start)
            else:
                self._add_path(start)
        if not (self.start_urls or self.files or self.folders):
            raise ValueError(
                "nothing to crawl: give -a url=URL, FOLDER or FILE (several separated by commas)"
            )
        self.hosts = {host_of(start) for start in self.start_urls}
        self._web_links = LinkExtractor()
        self._file_links = LinkExtractor(allow=r"^file://")
        self._roots = self.folders or [file.parent for file in self.files]
        self._file_of = lru_cache(_LINKS_REMEMBERED)(self._look_up)

    def _add_path(self, start: str) -> None:
        path = Path(file_uri_to_path(start) if start.startswith("file:") else start).expanduser().resolve()
        if path.is_dir():
            self.folders.append(path)
        elif path.is_file():
            self.files.append(path)
        else:
            raise ValueError(f"{start!r} is neither an http(s) URL nor a folder or file that exists ({path})")

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for url in self.start_urls:
            yield scrapy.Request(url)
        for file in self.files:
            yield scrapy.Request(file.as_uri())
        for folder in self.folders:
            for file in _html_files(folder):
                # Every page of the folder is listed here, so none of them is the start from which others are
                # reached.
                yield scrapy.Request(file.as_uri(), meta={"is_start_request": False})

    def parse(self, response: Response) -> Iterator[PageItem | scrapy.Request]:
        if not isinstance(response, HtmlResponse):
            return
        if response.meta.get("is_start_request") and is_web(response.url):
            # A start URL may redirect, from example.com to www.example.com or the other way round: same site.
            self.hosts.add(host_of(response.url))
        verdict = get_verdict(response)
        yield PageItem(
            url=response.url,
            title=_one_line(response.xpath("string(//title)").get(default="")),
            verdict=verdict.kind.value if verdict else "",
            canonical_url=verdict.canonical_url if verdict else None,
            distance=verdict.distance if verdict else None,
            percentage=verdict.percentage if verdict else None,
            resemblance=verdict.resemblance if verdict else None,
        )
        links = self._links_to_site if is_web(response.url) else self._links_to_files
        yield from links(response)

    def _links_to_site(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        """Links to the hosts of the start URLs and their subdomains."""
        for link in self._web_links.extract_links(response):
            # A file's URL may have a host as well: file://example.com/etc/passwd.
            host = host_of(link.url) if is_web(link.url) else ""
            if host and any(host == site or host.endswith(f".{site}") for site in self.hosts if site):
                yield response.follow(link)

    def _links_to_files(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        """Links to files below the folders of the crawl, or that of a file: a file has no query."""
        for link in self._file_links.extract_links(response):
            file = self._file_of(link.url.partition("?")[0])
            if file is not None:
                yield response.follow(file)

    def _look_up(self, url: str) -> str | None:
        """The URL of the file that a link leads to, without symbolic links; a folder stands for its index
        page.

        None if there is none below the folders of the crawl, or its name is none that the system takes.
        """
        path = file_uri_to_path(url)
        names = _INDEX_PAGES if os.path.isdir(path) else ("",)  # noqa: PTH112  # Path raises for some names
        for name in names:
            try:
                file = Path(os.path.realpath(Path(path, name)))
                if any(file.is_relative_to(root) for root in self._roots) and file.is_file():
                    return file.as_uri()
            except (OSError, ValueError):
                return None
        return None


def _split(starts: str) -> list[str]:
    """Separate by commas and white space; a folder whose name has a space or comma is taken whole if it
    exists.
    """
    if Path(starts).expanduser().exists() and starts.strip():
        return [starts]
    return starts.replace(",", " ").split()


def _one_line(text: str) -> str:
    """The text without the control characters that a terminal would obey; those of Unicode that shape words
    stay.
    """
    return "".join(c for c in " ".join(text.split()) if unicodedata.category(c) != "Cc")


def _html_files(folder: Path) -> Iterator[Path]:
    """All files below a folder that are HTML, in the order of their paths."""
    for file in files_below(folder, _complain):
        try:
            if _is_html(file):
                yield file
        except OSError as exc:
            _complain(exc)


def _complain(error: OSError) -> None:
    logger.warning("%r cannot be read: %s", error.filename, error.strerror)


def _is_html(file: Path) -> bool:
    """By the ending of its name; without a known one, by its first bytes (mirrors keep names such as
    page.php?id=3).
    """
    mime_type, _ = mimetypes.guess_type(file.name)
    if mime_type is not None:
        return mime_type in {"text/html", "application/xhtml+xml"}
    with file.open("rb") as stream:
        start = stream.read(_START_OF_FILE).lower()
    return b"<html" in start or b"<!doctype html" in start
