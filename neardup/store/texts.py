"""The texts of pages, compressed, as far as crawls have kept them (``NEARDUP_KEEP_TEXT``)."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from sqlalchemy import select

from neardup.store.schema import page_texts, simhash_values

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from sqlalchemy import ColumnElement, Connection, Insert

_MOST_BYTES = 100_000_000
"""Of a text, unpacked: what somebody else has written to the table may unpack to more."""


def store_texts(connection: Connection, upsert: Insert, texts: Mapping[int, tuple[bytes, datetime]]) -> None:
    """Store the texts of pages by their ids, each with the time at which it was seen."""
    rows = [
        {"page_id": page_id, "text": zlib.compress(text), "seen_at": seen}
        for page_id, (text, seen) in texts.items()
    ]
    connection.execute(upsert, rows)


def text_of(connection: Connection, page_id: int, *, most: int) -> tuple[str, datetime] | None:
    """The first ``most`` bytes of the text of a page, and when it was seen; None if it is not kept, or cannot
    be read.
    """
    return _text(connection, page_texts.c.page_id == page_id, most)


def text_of_key(connection: Connection, key: bytes) -> str | None:
    """The text of the page with this ``url_key``; None as for :func:`text_of`."""
    page = select(simhash_values.c.id).where(simhash_values.c.url_key == key).scalar_subquery()
    found = _text(connection, page_texts.c.page_id == page, _MOST_BYTES)
    return None if found is None else found[0]


def _text(connection: Connection, condition: ColumnElement[bool], most: int) -> tuple[str, datetime] | None:
    query = select(page_texts.c.text, page_texts.c.seen_at).where(condition)
    row = connection.execute(query).one_or_none()
    text = None if row is None else unpacked(row.text, most)
    return None if row is None or text is None else (text, row.seen_at)


def unpacked(packed: bytes, most: int = _MOST_BYTES) -> str | None:
    """The first ``most`` bytes of a text as the table has it; None if it cannot be read."""
    try:
        return zlib.decompressobj().decompress(packed, most).decode("utf-8", "replace")
    except zlib.error:
        return None
