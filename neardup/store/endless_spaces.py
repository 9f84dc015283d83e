"""Endless spaces that crawls have left, as the column ``endless_spaces`` of ``crawls`` holds them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from neardup.store.schema import crawls
from neardup.store.types import stored_host

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Connection

MOST_SPACES = 100
"""Spaces that are kept of a crawl: those with most links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndlessSpace:
    """Pages whose links a crawl has stopped following: near-copies of a page, or what a parameter makes.

    ``links`` were not followed, and stood on no other page.
    """

    host: str
    canonical_url: str | None = None
    parameter: str | None = None
    links: int = 0
    last_url: str


@dataclass(frozen=True, slots=True)
class LeftSpace:
    """A space, and the newest crawl that has left it."""

    crawl_id: int
    space: EndlessSpace


def as_text(spaces: Iterable[EndlessSpace]) -> str | None:
    """What is stored of a crawl; None if it has left no space."""
    most = sorted(spaces, key=lambda space: -space.links)[:MOST_SPACES]
    return json.dumps([asdict(space) for space in most]) if most else None


def endless_spaces(connection: Connection, *, host: str | None = None) -> list[LeftSpace]:
    """Each space once, those of the newest crawl first; ``host``: only the spaces of this host."""
    query = (
        select(crawls.c.id, crawls.c.endless_spaces)
        .where(crawls.c.endless_spaces.is_not(None))
        .order_by(crawls.c.id.desc())
    )
    found: dict[tuple[str, str | None, str | None], LeftSpace] = {}
    for crawl_id, text in connection.execute(query):
        for values in json.loads(text):
            space = EndlessSpace(**values)
            if host is None or stored_host(space.host) == host:
                key = space.host, space.canonical_url, space.parameter
                found.setdefault(key, LeftSpace(crawl_id, space))
    return list(found.values())
