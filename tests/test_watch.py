"""Canonical pages that gather duplicates from many addresses are flagged, and no others."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from neardup import watch
from neardup.watch import FEWEST_ADDRESSES, LEAST_SHARE, ClusterWatch, Flag

if TYPE_CHECKING:
    from collections.abc import Sequence


def flags(pages: Sequence[tuple[str, int | None]]) -> list[tuple[int, Flag]]:
    one = ClusterWatch()
    return [
        (number, flag)
        for number, (url, canonical) in enumerate(pages)
        if (flag := one.judged(url, canonical)) is not None
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


def test_mirrors_of_a_site_are_not_flagged() -> None:
    pages = [
        (f"http://mirror{m}.example/{page}", page if m else None)
        for m in range(FEWEST_ADDRESSES - 1)
        for page in range(100)
    ]

    assert flags(pages) == []


def test_memory_is_bounded() -> None:
    one = ClusterWatch()
    for i in range(watch._MOST_WATCHED + 1000):
        one.judged(f"http://h{i}.example/", i)

    assert len(one._pages) == len(one._clusters) == watch._MOST_WATCHED


def test_any_url_will_do() -> None:
    assert flags([("http://[", 1)] * 100) == []
