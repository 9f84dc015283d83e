"""Endless spaces that crawls have left, on all databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from neardup.fingerprint.scheme import Scheme
from neardup.store.endless_spaces import MOST_SPACES, EndlessSpace, as_text, endless_spaces
from neardup.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

CALENDAR = "http://a.example/calendar"


def space(host: str = "a.example", **kwargs: Any) -> EndlessSpace:
    values = {"canonical_url": None, "parameter": None, "links": 1, "last_url": f"http://{host}/last"}
    return EndlessSpace(host=host, **values | kwargs)


def crawled(store: Store, spaces: Sequence[EndlessSpace]) -> int:
    crawl_id = store.begin_crawl(spider="s", settings={})
    store.finish_crawl(crawl_id, reason="finished", counts={"endless_spaces": as_text(spaces)})
    return crawl_id


def found(store: Store, host: str | None = None) -> list[tuple[int, EndlessSpace]]:
    with store.reading() as connection:
        return [(left.crawl_id, left.space) for left in endless_spaces(connection, host=host)]


def test_each_is_told_once_as_the_newest_crawl_left_it(database_url: str) -> None:
    with Store.open(database_url, scheme=str(Scheme())) as store:
        assert found(store) == []
        calendar, other = space(canonical_url=CALENDAR), space("b.example", parameter="sid", links=3)
        first = crawled(store, [calendar, other])
        crawled(store, [])
        later = space(canonical_url=CALENDAR, links=7, last_url="http://a.example/calendar?month=ü\x00")
        newest = crawled(store, [later])

        assert found(store) == [(newest, later), (first, other)]
        assert found(store, "b.example") == [(first, other)]
        assert found(store, "c.example") == []


@pytest.mark.parametrize("characters", [10, 40_000])
def test_those_with_most_links_are_kept(characters: int, database_url: str) -> None:
    """MySQL's TEXT ends at 64 kB."""
    many = [space(f"{links}.example", links=links, parameter="x" * characters) for links in range(150)]
    with Store.open(database_url, scheme=str(Scheme())) as store:
        crawled(store, many)

        kept = [left for _, left in found(store)]
    assert [left.links for left in kept] == list(range(149, 149 - MOST_SPACES, -1))
    assert all(left in many for left in kept)
