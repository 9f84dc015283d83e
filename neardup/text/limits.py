"""The budget of a page: what is larger is not judged, because judging it could hold up the crawl.

Reading a page takes time and memory in proportion to its bytes, tags and words, but for one thing. The
parser, libxml2, walks all attributes of an element for each attribute that it adds. A page of 0.9 MB with
100,000 attributes took 13 s. So the budget is checked on the page as a string, before the page is parsed. The
budget bounds what hostile pages cost to 1 s and 300 MB (``python -m benchmarks.bench_hostile``). The largest
of 4,705 pages of two manuals has 3.0 MB, 69,111 tags and 119,048 words. In a seventh of these pages, no
element has more than 8 attributes.

A page over the budget is not judged by its beginning: two books may begin with the same words and still be
different.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any

from lxml import etree

from neardup import native
from neardup.errors import ConfigurationError, PageTooLarge

PAGE_BYTES = 3_500_000
TAGS = 150_000
ATTRIBUTES = 200
WORDS = 200_000

_SHORTEST_ATTRIBUTE = 2
"""Characters, with the space before it."""

_IN_ALL = 1_000
"""Attributes of a page, for each that an element may have, above which they are counted no further: a million
would take 0.3 s.
"""

_SIGNS = re.compile(r"""=\s*+["']|["']|<(?=[A-Za-z])|>""")
"""What begins and ends tags and values: a quotation mark after an equals sign opens a value."""

_PLACES = re.compile(r"""[ \t\n\r\f/"'](?![ \t\n\r\f/>])""")
"""Where an attribute may begin: behind white space, a slash, or the value of another one."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a page may have: bytes, signs ``<``, attributes of one element, words.

    Raises ConfigurationError for a limit below 1.
    """

    page_bytes: int = PAGE_BYTES
    tags: int = TAGS
    attributes: int = ATTRIBUTES
    words: int = WORDS

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < 1:
                raise ConfigurationError(f"max_{field.name} must be at least 1, not {value}")

    def check_size(self, page: str | bytes) -> None:
        """Raise PageTooLarge for a page of too many bytes; those of a string are those of its UTF-8."""
        size = len(page)
        if isinstance(page, str) and not page.isascii() and size <= self.page_bytes:
            size = len(page.encode("utf-8", "replace"))
        if size > self.page_bytes:
            raise PageTooLarge("page_bytes", f"{size:,} bytes", self.page_bytes)

    def check_html(self, html: str) -> None:
        """Raise PageTooLarge for a page with too many tags, or too many attributes in one of them. It is not
        parsed unless that is likely.
        """
        tags, has_nuls, may_have_attributes = overview(html, self.attributes)
        if tags > self.tags:
            raise PageTooLarge("tags", f"{tags:,} tags", self.tags)
        if has_nuls:
            html = html.replace("\x00", "")  # as parsel does
            may_have_attributes = overview(html, self.attributes)[2]
        if may_have_attributes:
            self._count_attributes(html)

    def check_words(self, found: int) -> None:
        """Raise PageTooLarge for a page of too many words."""
        if found > self.words:
            raise PageTooLarge("words", "so many words or more", self.words)

    def _count_attributes(self, html: str) -> None:
        # By libxml2 itself: any other reading of broken tags would not be that by which the tree is made.
        # Without a tree it is linear.
        counter = _AttributeCounter(self.attributes)
        target: Any = counter  # the stubs ask for all five methods, and each would be called
        parser = etree.HTMLParser(target=target, recover=True, encoding="utf-8", huge_tree=True)
        etree.fromstring(html.strip().encode("utf-8", "replace") or b"<html/>", parser)


@native.twin
def overview(html: str, most: int) -> tuple[int, bool, bool]:
    """How many signs ``<`` a page has, whether it has NULs, and whether a tag may have more attributes than
    ``most``.

    A ``>`` ends a tag if it is not part of a value. The quotation marks before it alone tell whether it is.
    So what is counted may be more than a tag, and is never less.

    Of 116 pages of news sites, 20 may have more than 200 by this count. By the length of tags, 95 may.

    >>> overview("<p><a href=x class='y'>", 1), overview("<p><a href=x class='y'>", 2)
    ((2, False, True), (2, False, False))
    """
    return html.count("<"), "\x00" in html, _may_have_attributes(html, most)


def _may_have_attributes(html: str, most: int) -> bool:
    begin: int | None = None
    open_values = {'"': False, "'": False}
    for found in _SIGNS.finditer(html):
        sign, at = found[0], found.start()
        if sign == "<":
            begin = at + 1 if begin is None else begin
        elif sign == ">":
            if not any(open_values.values()):
                if begin is not None and _has_places(html, begin, at, most):
                    return True
                begin = None
        else:
            open_values[sign[-1]] = len(sign) > 1
    return begin is not None and _has_places(html, begin, len(html), most)


def _has_places(html: str, begin: int, end: int, most: int) -> bool:
    """Whether more attributes than ``most`` may begin in a part of a page."""
    if end - begin <= _SHORTEST_ATTRIBUTE * most:
        return False
    return sum(1 for _ in _PLACES.finditer(html, begin, end)) > most


class _AttributeCounter:
    """Target of a parser."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most * _IN_ALL

    def start(self, _tag: str, attributes: dict[str, str]) -> None:
        number = len(attributes)
        self._left -= number
        if number > self._most or self._left < 0:
            raise PageTooLarge(
                "attributes", f"{number:,} attributes in an element, or many in many", self._most
            )

    def close(self) -> None:
        pass
