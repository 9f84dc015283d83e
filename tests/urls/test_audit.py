"""The audit of requests that wait: its bound, its samples, its judgements."""

from __future__ import annotations

import heapq
import random
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.urls.audit import Audit, most_left

BANDS = 8


def at_most(unique: int, sampled: int, marked: int, population: int) -> Fraction:
    """The distribution function of the hypergeometric distribution, exactly."""
    ways = sum(
        comb(marked, met) * comb(population - marked, sampled - met)
        for met in range(max(0, sampled - population + marked), min(unique, marked, sampled) + 1)
    )
    return Fraction(ways, comb(population, sampled))


@given(st.data())
def test_the_bound_is_the_exact_one(data: st.DataObject) -> None:
    sampled = data.draw(st.integers(0, 40))
    unique = data.draw(st.integers(0, sampled))
    left = data.draw(st.integers(0, 60))
    alpha = 0.025

    most = most_left(sampled, unique, left, alpha)

    possible = [
        number
        for number in range(left + 1)
        if at_most(unique, sampled, unique + number, sampled + left) > alpha
    ]
    assert most == max(possible)


class Crawl:
    """Requests that wait, some of which lead to unique pages, made in the order of their bands."""

    def __init__(self, audit: Audit, bands: dict[str, int], unique: set[str]) -> None:
        self.audit = audit
        self.later = bands
        self.unique = unique
        self.queue: list[tuple[float, str]] = []
        for url, later in bands.items():
            self.put(url, audit.next_band(url, 0, later, 0))
        self.made: list[str] = []

    def put(self, url: str, band: float) -> None:
        heapq.heappush(self.queue, (band, url))
        self.audit.put(band)

    def make(self, url: str, root: int) -> None:
        self.made.append(url)
        if url in self.unique:
            self.audit.unique += 1
            self.audit.led_to_unique(root)

    def run(self) -> list[str]:
        """Make requests until the audit has enough; those that are left."""
        while self.queue:
            stop = self.audit.stop_to_judge(len(self.queue))
            if stop is not None and self.audit.has_enough(stop):
                return [url for _, url in self.queue]
            band, url = heapq.heappop(self.queue)
            self.audit.left(band)
            root = None if float(band).is_integer() else self.audit.sample(url, band)
            later = self.later[url]
            if root is None and later > band:
                self.put(url, self.audit.next_band(url, band, later, 0))
            else:
                self.make(url, root or 0)
        return []


def crawl(seed: int, *, share: float, waiting: int = 3_000, found: int = 1_000) -> tuple[int, int, int]:
    """Unique pages that are left behind, unique pages in all, and requests that are left, of a crawl in which
    such a share of what waits leads to unique pages.
    """
    chance = random.Random(seed)
    urls = {f"http://a.example/{number}": chance.randint(1, BANDS) for number in range(waiting)}
    unique = {url for url in urls if chance.random() < share}
    audit = Audit(0.02, BANDS, seed)
    audit.unique = found
    left = Crawl(audit, urls, unique).run()
    return len(unique.intersection(left)), found + len(unique), len(left)


@pytest.mark.parametrize(
    "share", [*(pytest.param(share, marks=pytest.mark.slow) for share in (0.002, 0.006, 0.01, 0.03)), 0.2]
)
def test_losses_are_within_the_budget(share: float) -> None:
    """Also where what waits leads to just so much that a crawl might end too early."""
    outcomes = [crawl(seed, share=share) for seed in range(20)]

    assert sum(lost > 0.02 * of for lost, of, _ in outcomes) <= 1


def test_copies_alone_are_left() -> None:
    for seed in range(5):
        lost, _, left = crawl(seed, share=0.0)
        assert lost == 0
        assert left > 2_000


def test_nothing_is_left_of_a_small_site() -> None:
    lost, of, left = crawl(1, share=0.3, waiting=50, found=10)

    assert of > 10
    assert lost == left == 0


def test_what_an_early_request_led_to_counts_for_it() -> None:
    """A section behind one of 500 requests makes the crawl go on."""

    def has_enough(pages: int) -> bool:
        audit = Audit(0.05, 1, seed=1)
        audit.unique = 1_000
        roots = []
        for number in range(1_000):
            band = audit.next_band(f"u{number}", 0, 1, 0)
            if band == 1:
                audit.put(band)
            else:
                roots.append(audit.sample(f"u{number}", band))
        for _ in range(pages):
            audit.led_to_unique(roots[0] or 0)
        stop = audit.stop_to_judge(audit.beyond[0])
        assert stop == 0
        return audit.has_enough(stop)

    assert has_enough(0)
    assert not has_enough(100)


@pytest.mark.parametrize(("requests", "fewest"), [(2_000, None), (50, 100)])
def test_a_crawl_does_not_end_for_a_few_requests(requests: int, fewest: int | None) -> None:
    """Nor for fewer than were sampled: one of those that are left may lead to a chain."""

    def has_enough(few: int) -> bool:
        audit = Audit(0.05, 1, seed=1)
        audit.unique = 1_000
        sampled = sum(audit.sample(str(number), 0.5) is not None for number in range(requests))
        for _ in range((fewest or sampled) - few):
            audit.put(1)
        audit.unique = 10_000
        return audit.has_enough(0)

    assert has_enough(0)
    assert not has_enough(1)


def test_the_more_the_pages_behind_requests_differ_in_number_the_more_may_be_left() -> None:
    """Most requests of a sample lead to a page, and one leads to a chain: others may lead to chains, too."""

    def has_enough(*led: int) -> bool:
        audit = Audit(0.05, 1, seed=1)
        audit.unique = 1_000
        for number in range(1_000):
            root = audit.sample(f"u{number}", 0.5)
            if root is None:
                audit.put(1)
            else:
                for _ in range(led[root - 1] if root <= len(led) else 0):
                    audit.led_to_unique(root)
        audit.unique = 4_900
        return audit.has_enough(0)

    assert has_enough(3, 3, 3, 3)
    assert not has_enough(1, 1, 1, 9)


def test_a_sample_does_not_take_what_it_led_to() -> None:
    audit = Audit(0.01, BANDS, seed=1)
    audit.unique = 2_000
    drawn = [url for url in map(str, range(100)) if audit.next_band(url, 0, 1, 0) == 0.5]
    root = next(filter(None, (audit.sample(url, 0.5) for url in drawn)))
    drawn_twice = next(url for url in drawn if audit.next_band(url, 1, 2, 0) == 1.5)

    assert audit.next_band(drawn_twice, 0, 1, root) == 1
    assert audit.next_band(drawn_twice, 0, 2, root) == 1.5


def test_nothing_is_sampled_where_a_sample_would_be_next_to_all() -> None:
    audit = Audit(0.01, BANDS, seed=1)

    assert not audit.may_end
    assert audit.next_band("http://a.example/", 0, 1, 0) == 0.5
    assert audit.sample("http://a.example/", 0.5) is None
    assert audit.stop_to_judge(0) is None


def test_requests_of_an_earlier_band_keep_a_sample_from_being_judged() -> None:
    audit = Audit(0.01, BANDS, seed=1)
    audit.unique = 2_000
    assert any(audit.sample(str(number), 1.5) for number in range(100))
    audit.put(3)
    audit.put(2)

    assert audit.stop_to_judge(3) is None
    assert audit.stop_to_judge(2) == 1
