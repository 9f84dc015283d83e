"""What the charts of the report show, on all databases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from neardup.detection.verdict import Kind
from neardup.store import figures
from neardup.store.reports import Share
from neardup.store.schema import simhash_values
from tests.support.stores import write
from tests.support.verdicts import duplicate, page

if TYPE_CHECKING:
    from neardup.store.store import Store


def test_figures_of_two_crawls(store: Store) -> None:
    first = store.begin_crawl(spider="one", settings={})
    write(
        store,
        page(1, "http://a.example/1"),
        duplicate(2, "http://a.example/2", 1, distance=0, resemblance=1.0),
        duplicate(3, "http://a.example/3", 1, distance=2, resemblance=0.904),
        duplicate(4, "http://a.example/4", 1, distance=3, resemblance=0.896),
        crawl=first,
    )
    with store.begin_write() as connection:
        connection.execute(sa.update(simhash_values).values(first_seen=datetime(2020, 1, 1, 23, tzinfo=UTC)))
    second = store.begin_crawl(spider="two", settings={})
    write(
        store,
        page(5, "http://a.example/5"),
        page(6, "http://a.example/6", Kind.TOO_SHORT, features=2),
        page(7, "http://a.example/7"),
        crawl=second,
    )
    with store.reading() as connection:
        days = figures.by_day(connection)
        resemblances = figures.by_resemblance(connection)
        growth = figures.growth(connection, points=4)
        by_page = figures.growth(connection, points=100)
        newest, count, new = figures.new_pages(connection, limit=1)

    assert days[0] == Share("2020-01-01", 4, 3)
    assert sum(day.pages for day in days[1:]) == 3
    assert [(at.resemblance, at.duplicates) for at in resemblances] == [(0.9, 2), (1.0, 1)]
    assert [(at.pages, at.distinct) for at in growth] == [(0, 0), (2, 1), (4, 1), (6, 3), (7, 4)]
    assert [at.distinct for at in by_page] == [0, 1, 1, 1, 1, 2, 3, 4]
    assert (newest, count, [one.url for one in new]) == (second, 2, ["http://a.example/5"])


def test_figures_of_nothing(store: Store) -> None:
    with store.reading() as connection:
        assert figures.by_day(connection) == []
        assert figures.by_resemblance(connection) == []
        assert figures.growth(connection, points=10) == []
        assert figures.new_pages(connection, limit=10) == (None, 0, [])
