"""What the charts of a report show: duplicates by day and by resemblance, the growth of the store, and what
the newest crawl brought.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Integer as SqlInteger
from sqlalchemy import case, cast, func, literal_column, select

from neardup.detection.verdict import CANONICAL
from neardup.store.reports import Share
from neardup.store.schema import crawls, duplicate_values, simhash_values

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import Connection

BINS = 50
"""Steps of the histogram of resemblances, from 0 to 1."""

_page, _relation = simhash_values.c, duplicate_values.c
_IS_CANONICAL = _page.kind.in_([kind.value for kind in CANONICAL])


@dataclass(frozen=True, slots=True)
class AtResemblance:
    """Duplicates whose resemblance is nearest to this one, in steps of 1 / ``BINS``."""

    resemblance: float
    duplicates: int


@dataclass(frozen=True, slots=True)
class Growth:
    """After so many pages, in the order in which crawls met them, how many of these are no duplicates."""

    pages: int
    distinct: int


@dataclass(frozen=True, slots=True)
class Curve:
    """Unique pages by requests made: pairs of both, from (0, 0) to the end of a crawl."""

    crawl_id: int
    points: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class NewPage:
    """A canonical page that a crawl brought."""

    url: str
    first_seen: datetime


def by_day(connection: Connection) -> list[Share]:
    """Pages by the day on which they were first seen, in the order of days; names are ISO dates."""
    day = func.date(_page.first_seen)
    query = (
        select(day, func.count(), func.count(_relation.id))
        .join_from(simhash_values, duplicate_values, _relation.duplicate_hash_id == _page.id, isouter=True)
        .group_by(day)
        .order_by(day)
    )
    return [Share(str(name), pages, duplicates) for name, pages, duplicates in connection.execute(query)]


def by_resemblance(connection: Connection) -> list[AtResemblance]:
    """In ascending order of the resemblance."""
    step = func.round(_relation.resemblance * float(BINS))
    query = select(step, func.count()).group_by(step).order_by(step)
    return [AtResemblance(float(at) / BINS, count) for at, count in connection.execute(query)]


def growth(connection: Connection, *, points: int) -> list[Growth]:
    """How the store grew, in so many steps or fewer. The order of ids is that in which crawls met the pages.

    What counts is whether a page is a duplicate by now.
    """
    pages: int = connection.execute(select(func.count()).select_from(simhash_values)).scalar_one()
    if not pages:
        return []
    place = func.row_number().over(order_by=_page.id) - 1
    is_duplicate = case((_relation.id.is_(None), 0), else_=1)
    placed = (
        select(place.label("place"), is_duplicate.label("is_duplicate"))
        .join_from(simhash_values, duplicate_values, _relation.duplicate_hash_id == _page.id, isouter=True)
        .subquery()
    )
    size = -(-pages // points)
    part = cast(placed.c.place, SqlInteger) // literal_column(str(size))
    query = (
        select(func.count(), func.sum(placed.c.is_duplicate))
        .select_from(placed)
        .group_by(part)
        .order_by(part)
    )
    found = [Growth(0, 0)]
    for count, duplicates in connection.execute(query):
        last = found[-1]
        found.append(Growth(last.pages + count, last.distinct + count - int(duplicates)))
    return found


def curve(connection: Connection) -> Curve | None:
    """The curve of the newest crawl that has ended and found something; None: there is none."""
    query = (
        select(crawls.c.id, crawls.c.curve)
        .where(crawls.c.curve.is_not(None), crawls.c.pages > 0)
        .order_by(crawls.c.id.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    return Curve(row.id, [(requests, unique) for requests, unique in json.loads(row.curve)])


def new_pages(connection: Connection, *, limit: int) -> tuple[int | None, int, list[NewPage]]:
    """The newest crawl, how many canonical pages it brought, and the first of them. There may be no crawl."""
    newest = connection.execute(select(func.max(crawls.c.id))).scalar()
    condition = (_page.crawl_id == newest) & _IS_CANONICAL
    count = connection.execute(select(func.count()).select_from(simhash_values).where(condition)).scalar_one()
    query = select(_page.actual_url, _page.first_seen).where(condition).order_by(_page.id).limit(limit)
    return newest, count, [NewPage(*row) for row in connection.execute(query)]
