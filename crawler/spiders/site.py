"""``scrapy crawl site -a url=…``: crawl web sites or mirrored folders and tell which pages are near-duplicates."""

from __future__ import annotations

import mimetypes
import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import scrapy
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from w3lib.url import file_uri_to_path

from crawler.items import PageItem
from neardup.scrapy import get_verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response

_INDEX_PAGES = ("index.html", "index.htm")
_START_OF_FILE = 1024


class SiteSpider(scrapy.Spider):
    """Crawl one or several sites, given as ``-a url=``: URLs, folders and HTML files, separated by commas or spaces.

    A web site is crawled from its URL along the links that stay on its host. A folder is a mirrored site: every HTML page
    below it is read, and links are followed to other files below it.
    """

    name = "site"

    def __init__(self, url: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = []
        self.folders: list[Path] = []
        self.files: list[Path] = []
        for start in _split(url):
            if urlsplit(start).scheme in {"http", "https"}:
                self.start_urls.append(start)
            else:
                self._add_path(start)
        if not (self.start_urls or self.files or self.folders):
            raise ValueError(
                "nothing to crawl: give -a url=URL, FOLDER or FILE (several separated by commas)"
            )
        self.hosts = {urlsplit(start).hostname or "" for start in self.start_urls}
        self._web_links = LinkExtractor()
        self._file_links = LinkExtractor(allow=r"^file://")

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
                # Every page of the folder is listed here, so none of them is the start from which others are reached.
                yield scrapy.Request(file.as_uri(), meta={"is_start_request": False})

    def parse(self, response: Response) -> Iterator[PageItem | scrapy.Request]:
        if not isinstance(response, HtmlResponse):
            return
        if response.meta.get("is_start_request"):
            # A start URL may redirect, from example.com to www.example.com or the other way round: same site.
            self.hosts.add(urlsplit(response.url).hostname or "")
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
        links = self._links_to_files if response.url.startswith("file:") else self._links_to_site
        yield from links(response)

    def _links_to_site(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        """Links to the hosts of the start URLs and their subdomains."""
        for link in self._web_links.extract_links(response):
            host = urlsplit(link.url).hostname or ""
            if any(host == site or host.endswith(f".{site}") for site in self.hosts):
                yield response.follow(link)

    def _links_to_files(self, response: HtmlResponse) -> Iterator[scrapy.Request]:
        """Links to files below the folder of the crawl: a file has no query, and a folder stands for its index page."""
        roots = self.folders or [file.parent for file in self.files]
        for link in self._file_links.extract_links(response):
            path = Path(file_uri_to_path(link.url.partition("?")[0]))
            if path.is_dir():
                path = next((path / name for name in _INDEX_PAGES if (path / name).is_file()), path)
            if path.is_file() and any(path.resolve().is_relative_to(root) for root in roots):
                yield response.follow(path.as_uri())


def _split(starts: str) -> list[str]:
    """Separate by commas and white space; a folder whose name has a space or comma is taken whole if it exists."""
    if Path(starts).expanduser().exists() and starts.strip():
        return [starts]
    return starts.replace(",", " ").split()


def _one_line(text: str) -> str:
    """The text without the control characters that a terminal would obey; those of Unicode that shape words stay."""
    return "".join(c for c in " ".join(text.split()) if unicodedata.category(c) != "Cc")


def _html_files(folder: Path) -> Iterator[Path]:
    """All files below a folder that are HTML, in the order of their paths."""
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            file = Path(parent, name)
            if file.is_file() and _is_html(file):
                yield file


def _is_html(file: Path) -> bool:
    """By the ending of its name; without a known one, by its first bytes (mirrors keep names such as page.php?id=3)."""
    mime_type, _ = mimetypes.guess_type(file.name)
    if mime_type is not None:
        return mime_type in {"text/html", "application/xhtml+xml"}
    with file.open("rb") as stream:
        start = stream.read(_START_OF_FILE).lower()
    return b"<html" in start or b"<!doctype html" in start
