"""The texts of two pages, and what differs between them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from neardup.address import host_of
from neardup.detection.template_words import are_template
from neardup.store import texts
from neardup.store.frequencies import frequencies_of
from neardup.store.types import stored_host
from neardup.text.visible_text import parse
from neardup.web.differences import (
    MOST_CHARACTERS,
    MOST_WORDS,
    Differences,
    Piece,
    differences,
    pieces_of,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.detection.document_frequencies import HostFrequencies
    from neardup.fingerprint.reader import Reader
    from neardup.store.explore import PageRow
    from neardup.web.site import Site


_BYTES_READ = 4 * MOST_CHARACTERS + 4
"""Of a kept text: enough to tell whether it has more characters than are compared."""


@dataclass(frozen=True, slots=True)
class PageText:
    """The visible text of a page as it was at some time, and the URL that it was read from."""

    url: str
    text: str
    at: datetime
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two texts, as of some times, and what differs. ``kept``: whether crawls have kept both."""

    at: tuple[datetime, datetime]
    kept: bool
    template_known: bool
    differences: Differences


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The text of a page of a host, with what is taken for template.

    A shingle on more than ``limit`` of the ``pages`` of the host that were counted is template. ``share`` is
    that of the words, 0 to 1. ``is_cut``: only the beginning of a long text is marked.
    """

    url: str
    at: datetime
    kept: bool
    pages: int
    limit: int
    share: float
    pieces: list[Piece]
    is_cut: bool


def kept_text(site: Site, page: PageRow) -> PageText | None:
    """The text of a page as a crawl kept it."""
    with site.store.looking() as connection:
        kept = texts.text_of(connection, page.page_id, most=_BYTES_READ)
    return None if kept is None else PageText(page.url, *kept, kept=True)


def todays_text(site: Site, page: PageRow) -> PageText:
    """The text of a page, which is fetched; NeardupError says why there is none."""
    response = site.fetch(page.url, as_stored=True)
    site.reader.limits.check_size(response.body)
    site.reader.limits.check_html(response.text)
    root = parse(response.text)
    text = "" if root is None else site.reader.content.text(response.url, root)
    return PageText(page.url, text, datetime.now(UTC), kept=False)


def compare(site: Site, a: PageText, b: PageText) -> Compared:
    """What differs between two texts, with the template of their hosts as far as it is known."""
    hosts = [stored_host(host_of(page.url)) for page in (a, b)]
    with site.store.looking() as connection:
        known = frequencies_of(connection, hosts)
    words = words_of(a.text[:MOST_CHARACTERS]), words_of(b.text[:MOST_CHARACTERS])
    marks = [
        _template(site.reader, known.of(host), of_page) for host, of_page in zip(hosts, words, strict=True)
    ]
    return Compared(
        at=(a.at, b.at),
        kept=a.kept and b.kept,
        template_known=all(known.of(host) is not None for host in hosts),
        differences=differences(
            *words, (marks[0], marks[1]), is_cut=max(len(a.text), len(b.text)) > MOST_CHARACTERS
        ),
    )


def marked(site: Site, known: HostFrequencies, page: PageRow, text: PageText) -> Marked:
    """The text of a page with the template of its host."""
    found = words_of(text.text[:MOST_CHARACTERS])
    words = found[:MOST_WORDS]
    template = _template(site.reader, known, words)
    return Marked(
        url=page.url,
        at=text.at,
        kept=text.kept,
        pages=known.pages,
        limit=known.limit,
        share=sum(template) / len(words) if words else 0.0,
        pieces=pieces_of(words, template, same=True),
        is_cut=len(found) > MOST_WORDS or len(text.text) > MOST_CHARACTERS,
    )


def _template(reader: Reader, known: HostFrequencies | None, words: Sequence[str]) -> list[bool]:
    """Of each word for people whether it is template: whether all words of it that are compared are."""
    reading = reader.read_text("".join(words))
    counts = [len(reader.features.words(word)) for word in words]
    if (
        known is None
        or not reading.shingles.size
        or sum(counts) != len(reader.features.words("".join(words)))
    ):
        return [False] * len(words)
    template = are_template(known, reading.shingles, sum(counts))
    ends = np.cumsum(counts)
    marks: list[bool] = []
    for count, end in zip(counts, ends.tolist(), strict=True):
        is_template = bool(template[end - count : end].all()) if count else bool(marks and marks[-1])
        marks.append(is_template)
    return marks
