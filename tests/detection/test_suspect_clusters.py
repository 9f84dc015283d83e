"""Canonical pages that gather duplicates from many addresses are flagged, and no others."""

from __future__ import annotations

import itertools
import tracemalloc
import urllib.parse
from typing import TYPE_CHECKING

import pytest

from neardup import address
from neardup.detection import suspect_clusters
from neardup.detection.suspect_clusters import (
    FEWEST_ADDRESSES,
    LEAST_SHARE,
    MOST_ADDRESSES,
    ClusterWatch,
    Flag,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def flags(pages: Sequence[tuple[str, int | None]]) -> list[tuple[int, Flag]]:
    one = ClusterWatch()
    return [
        (number, flag)
        for number, (url, canonical) in enumerate(pages)
        if (flag := one.judged(url, () if canonical is None else (canonical,))) is not None
    ]


def test_a_page_found_at_many_addresses_is_flagged_once() -> None:
    pages = [(f"http://a.example/{i}", 1) for i in range(5 * FEWEST_ADDRESSES)]

    assert flags(pages) == [(FEWEST_ADDRESSES - 1, Flag(FEWEST_ADDRESSES, FEWEST_ADDRESSES))]


def test_queries_parameters_and_fragments_are_no_addresses() -> None:
    urls = [
        url
        for i in range(10 * FEWEST_ADDRESSES)
        for url in (f"http://a.example/list?sort={i}", f"http://a.example/list;jsessionid={i}")
    ]

    assert flags([(url, 1) for url in urls]) == []


def test_a_rare_error_page_of_a_large_site_is_not_flagged() -> None:
    rate = int(1 / LEAST_SHARE) + 1
    pages = [(f"http://a.example/{i}", None if i % rate else 1) for i in range(50 * rate)]
    more = [(f"http://a.example/{i}", None if i % (rate - 2) else 1) for i in range(50 * rate)]

    assert flags(pages) == []
    assert len(flags(more)) == 1


def test_pages_before_the_first_duplicate_do_not_count() -> None:
    pages: list[tuple[str, int | None]] = [(f"http://a.example/{i}", None) for i in range(10_000)]
    pages += [(f"http://a.example/error/{i}", 1) for i in range(FEWEST_ADDRESSES)]

    assert [number for number, _ in flags(pages)] == [len(pages) - 1]


def test_other_hosts_do_not_hide_it() -> None:
    pages = itertools.chain.from_iterable(
        [(f"http://a.example/{i}", 1), *((f"http://h{j}.example/{i}", None) for j in range(50))]
        for i in range(FEWEST_ADDRESSES)
    )

    assert [flag for _, flag in flags(list(pages))] == [Flag(FEWEST_ADDRESSES, FEWEST_ADDRESSES)]


@pytest.mark.parametrize("prefix", ["", "/pub/{}"])
@pytest.mark.parametrize("together", [False, True])
def test_mirrors_of_a_site_are_not_flagged(prefix: str, together: bool) -> None:
    mirrors, pages = 2 * FEWEST_ADDRESSES, 100
    order = [(m, page) for m in range(mirrors) for page in range(pages)]
    if together:
        order.sort(key=lambda one: one[1])

    assert (
        flags([(f"http://m{m}.example{prefix.format(m)}/{page}", page if m else None) for m, page in order])
        == []
    )


def test_old_versions_crawled_one_after_another_are_not_flagged() -> None:
    versions = range(2 * FEWEST_ADDRESSES)
    pages = [(f"http://a.example/v{v}/{page}", page if v else None) for v in versions for page in range(100)]

    assert flags(pages) == []


def test_the_error_page_of_mirrors_is_flagged_once() -> None:
    pages: list[tuple[str, int | None]] = [
        page
        for i in range(5 * FEWEST_ADDRESSES)
        for m in range(2 * FEWEST_ADDRESSES)
        for page in ((f"http://m{m}.example/{i}", None), (f"http://m{m}.example/gone/{i}", 1))
    ]

    assert [flag for _, flag in flags(pages)] == [Flag(FEWEST_ADDRESSES, 2 * FEWEST_ADDRESSES - 1)]


def test_a_host_that_was_forgotten_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspect_clusters, "_MOST_WATCHED", 10)
    pages: list[tuple[str, int | None]] = [(f"http://a.example/{i}", None) for i in range(4000)]
    pages += [(f"http://a.example/before/{i}", 1) for i in range(FEWEST_ADDRESSES - 1)]
    pages += [(f"http://h{i}.example/", None) for i in range(10)]
    pages += [(f"http://a.example/after/{i}", 1) for i in range(FEWEST_ADDRESSES)]

    assert flags(pages) == [(len(pages) - 1, Flag(FEWEST_ADDRESSES, FEWEST_ADDRESSES))]


def test_more_addresses_than_are_told_apart_are_counted() -> None:
    rate = int(1 / LEAST_SHARE) + 1
    pages = [(f"http://a.example/{i}", None if i % rate else 1) for i in range(5 * MOST_ADDRESSES * rate)]
    pages += [(f"http://a.example/down/{i}", 1) for i in range(5 * MOST_ADDRESSES)]

    ((_, flag),) = flags(pages)
    assert flag.addresses > 5 * MOST_ADDRESSES
    assert flag.addresses == pytest.approx(LEAST_SHARE * flag.pages, abs=1)


@pytest.mark.slow
def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    most, rate = 30, int(1 / LEAST_SHARE) + 1
    least = suspect_clusters._MOST_WATCHED
    monkeypatch.setattr(suspect_clusters, "_MOST_WATCHED", most)
    rare = [(f"/{i}", i % rate == 0) for i in range(2 * MOST_ADDRESSES * rate)]
    tracemalloc.start()
    try:
        one = ClusterWatch()
        for i in range(3 * most):
            for path, is_error in rare if i > 2 * most - 2 else rare[:1]:
                one.judged(f"http://host-number-{i}.example{path}", (i,) if is_error else ())
        for i in range(2 * most):
            for number in range(FEWEST_ADDRESSES):
                one.judged(f"http://flagged.example/{number}", (-i,))
        urllib.parse.clear_cache()  # type: ignore[attr-defined]  # typeshed leaves it out
        address._host_of_authority.cache_clear()
        address._place_of_authority.cache_clear()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert len(one._hosts) == len(one._flagged) == most
    assert most - 1 <= len(one._clusters) <= most  # a flagged one is counted no longer
    assert max(len(cluster.last) for cluster in one._clusters.values()) == MOST_ADDRESSES
    assert held * least / most < 20e6


def test_any_url_will_do() -> None:
    assert flags([("http://[", 1)] * 100) == []
