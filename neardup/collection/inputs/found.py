"""What stands in an input, one record after the other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

PART_BYTES = 64 << 20
"""Bytes of a file that are read and kept at once."""

PART_ROWS = 4096
"""Pages that are read and kept at once, where they are counted."""


class Why(StrEnum):
    """Why a record gives no row."""

    DAMAGED = "damaged"
    """The record cannot be read, or its length is wrong. Reading goes on at the next record that begins."""
    NO_RESPONSE = "no_response"
    """The record holds no HTTP response."""
    ERROR_PAGE = "error_page"
    """The status is not 2xx."""
    NOT_HTML = "not_html"
    REVISIT = "revisit"
    """The record only says that a page was the same as another, which is in no input."""
    NO_URL = "no_url"
    NO_CONTENT = "no_content"
    """The row has neither HTML nor text."""
    UNDECODABLE = "undecodable"
    """The body cannot be unpacked, or its chunks are wrong."""
    TOO_LARGE = "too_large"
    """The page is over the budget of a page, as in a crawl."""
    FAILED = "failed"
    """The page made its reader fail, which a crawl survives, too."""
    NO_COLUMNS = "no_columns"
    """The table lacks the columns with URLs or with pages, which other tables have."""


UNREAD = frozenset({Why.DAMAGED, Why.NO_COLUMNS})
"""Reasons that hide what an input may have held; by the others, it is known what it was."""


class Values(NamedTuple):
    """What a page is compared by, as the dataset has it. A page without words has only ``features``, 0."""

    hash_value: int | None
    weak_bits: bytes | None
    sketch: bytes | None
    features: int
    text_digest: int | None
    headline: bytes | None


class Capture(NamedTuple):
    """What other records of archives may call a record by: its id, and the digest of its payload."""

    record: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a page comes from. ``place`` is an offset in bytes or the number of a row, and rises.

    ``capture`` is what a record of an archive has, and nothing else. ``undated``: it has a date that
    cannot be read.
    """

    place: int
    url: str
    date: datetime | None = None
    ip: str | None = None
    capture: Capture | None = None
    undated: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page as a server sent it: raw header lines without the status line, and a body that may be packed."""

    origin: Origin
    status: int
    headers: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Text:
    """The visible text of a page."""

    origin: Origin
    text: str


@dataclass(frozen=True, slots=True)
class Known:
    """A page whose fingerprint is stored already."""

    origin: Origin
    values: Values


class Reference(NamedTuple):
    """What a revisit says of the record that it refers to; what it does not say is empty.

    ``record`` is the id of the record, ``digest`` that of its payload.
    """

    record: str
    url: str
    date: datetime | None
    digest: str


@dataclass(frozen=True, slots=True)
class Revisit:
    """A page that was the same as one that was stored before (ISO 28500, section 6.7)."""

    origin: Origin
    refers_to: Reference


class Skipped(NamedTuple):
    """A record that gives no row."""

    place: int
    why: Why
    detail: str = ""


class Other(NamedTuple):
    """A record that is no page and is not counted: a request, metadata, information on an archive."""

    place: int


@dataclass(frozen=True, slots=True)
class End:
    """The last of what is found: where the first record after it begins, or the end of the input."""

    place: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file of which nothing can be read: one record that is skipped. ``detail`` goes on from its name."""

    why: Why
    detail: str

    @property
    def size(self) -> int:
        return 1

    @property
    def starts(self) -> list[int]:
        return [0]

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        yield Skipped(start, self.why, self.detail)
        yield End(end)


class Input(Protocol):
    """Something to read pages from, which may be sent to another process."""

    @property
    def size(self) -> int:
        """The place behind the last record."""

    @property
    def starts(self) -> list[int]:
        """The places, from 0 on and rising, at which parts of the input begin."""

    def records(self, start: int, end: int) -> Iterator[Record | End]:
        """The records of a part, in order, and where the first one after them begins.

        These are all records that begin in ``[start, end)``. What stands in front of the first record after
        ``start`` belongs to the part before.
        """


Record = Page | Text | Known | Revisit | Skipped | Other
