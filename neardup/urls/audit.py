"""How many unique pages are left behind requests that wait: a random audit of them.

A crawl with a budget of losses may end before it has made the requests that are deferred. Random ones of
these are made early, and tell how many of the others lead to unique pages.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import mean, pstdev

import mmh3

CONFIDENCE = 0.95
"""How sure it is that a crawl that ends is within its budget."""

_DEVIATIONS = 2.0
"""By so many standard deviations the requests that are left may lead to more pages than those of a sample."""

MARGIN = 1.5
"""By so much a sample is larger than one without a unique page has to be."""

_LARGEST = 0.5
"""The largest part of what waits that is made as a sample: with more, less would be left than was sampled."""

_FEWEST_LEFT = 100
"""Requests for which a crawl ends. A chain of copies has one request at a time, and nothing else may wait."""

_MOST = 1 << 32


def most_left(sampled: int, unique: int, left: int, alpha: float) -> int:
    """The most requests among ``left`` that lead to unique pages, if ``unique`` of ``sampled`` did.

    The sample is drawn without replacement from all of them. So the number in a sample is hypergeometric. The
    bound is the exact upper one of Clopper and Pearson (1934), one-sided, with confidence ``1 - alpha``.

    >>> most_left(100, 0, 1_000, 0.05), most_left(0, 0, 10, 0.05), most_left(10, 0, 0, 0.05)
    (30, 10, 0)
    """
    lowest, highest = 0, left
    while lowest < highest:
        middle = (lowest + highest + 1) // 2
        if _at_most(unique, sampled, unique + middle, sampled + left) > alpha:
            lowest = middle
        else:
            highest = middle - 1
    return lowest


def _at_most(unique: int, sampled: int, marked: int, population: int) -> float:
    """The probability of at most so many marked ones in a sample."""
    others = population - marked
    most = min(unique, marked, sampled)
    total = _log_choices(population, sampled)
    return sum(
        math.exp(_log_choices(marked, met) + _log_choices(others, sampled - met) - total)
        for met in range(max(0, sampled - others), most + 1)
    )


def _log_choices(number: int, chosen: int) -> float:
    return math.lgamma(number + 1) - math.lgamma(chosen + 1) - math.lgamma(number - chosen + 1)


@dataclass(slots=True)
class _Sample:
    """The requests that are made at a stop, by number, and how many unique pages each has ``led`` to.

    ``share`` is the part of the requests beyond the stop that is chosen.
    """

    share: float
    led: dict[int, int] = field(default_factory=dict)


class Audit:
    """Draws the sample of requests that wait, and says when a crawl has enough.

    Requests wait in bands 1, 2, …, those that are likelier copies in later ones. Before each band there is a
    stop: 0.5, 1.5, …. A random part of the requests that wait beyond a stop is made at the stop. The part is
    chosen by a hash of the URL and ``seed``. When the part is made, with what its pages led to at once, the
    others beyond the stop are judged by it.

    The crawl has enough when the bound on unique pages left is at most the share ``budget`` of all unique
    pages. The first judgement has half of the error probability, .05. The others, one for each band at most,
    have the same part of the other half.

    ``beyond`` counts the requests that wait beyond each stop, ``unique`` the unique pages found. A crawl that
    goes on later keeps the audit as it is.
    """

    def __init__(self, budget: float, bands: int, seed: int) -> None:
        self.budget = budget
        self.beyond = [0] * bands
        self.unique = 0
        self._seed = seed
        self._alpha = (1.0 - CONFIDENCE) / 2
        self._alpha_later = self._alpha / bands
        self._judged = -1
        """The last stop that was judged."""
        self._samples: dict[int, _Sample] = {}
        self._roots = 0
        self._gain, self._spread = 1.0, 0.0
        """Unique pages for each request of the last sample that led to any, and their standard deviation."""

    @property
    def may_end(self) -> bool:
        """Whether enough unique pages are known for a sample, after which the crawl might end."""
        return self._needed_share(self._alpha) <= _LARGEST

    def next_band(self, url: str, band: float, later: int, root: int) -> float:
        """Where a request waits that leaves a band for a later one: there, or at a stop on the way.

        ``root``: the request of a sample that led to this one, by its number; 0: none. A sample does not take
        what it has led to itself: it would never end in an endless space.
        """
        share = self._needed_share(self._alpha_later)
        for stop in range(math.ceil(band), later):
            if not self.is_of_sample(root, stop) and self._draw(url, stop) < share:
                return stop + 0.5
        return float(later)

    def put(self, band: float) -> None:
        """Note that a request begins to wait in a band."""
        self._count(band, 1)

    def left(self, band: float) -> None:
        """Note that a request waits no longer in a band."""
        self._count(band, -1)

    def _count(self, band: float, number: int) -> None:
        for stop in range(min(math.ceil(band - 0.5), len(self.beyond))):
            self.beyond[stop] += number

    def sample(self, url: str, band: float) -> int | None:
        """The number of a request in the sample, if it is made at its stop; None: it waits on.

        On a small site nothing is sampled, and requests are made in the order of their bands.
        """
        stop = math.floor(band)
        if stop not in self._samples:
            self._samples[stop] = _Sample(self._needed_share(self._alpha) if self.may_end else 0.0)
        sample = self._samples[stop]
        if self._draw(url, stop) >= sample.share:
            return None
        self._roots += 1
        sample.led[self._roots] = 0
        return self._roots

    def led_to_unique(self, root: int) -> None:
        """Note that a request of a sample, by its number, has led to one more unique page."""
        for sample in self._samples.values():
            if root in sample.led:
                sample.led[root] += 1

    def is_of_sample(self, root: int, stop: int) -> bool:
        """Whether a number is that of a request of the sample of a stop."""
        return stop in self._samples and root in self._samples[stop].led

    def stop_to_judge(self, pending: int) -> int | None:
        """The first stop whose sample is to be judged next, if all ``pending`` requests wait beyond it.

        The request in hand is one of these: the crawl makes that, unless it ends.
        """
        stops = (stop for stop in sorted(self._samples) if stop > self._judged and self._samples[stop].led)
        return next((stop for stop in stops if pending <= self.beyond[stop]), None)

    def has_enough(self, stop: int) -> bool:
        """Judge by the sample of a stop whether the crawl may end.

        Few requests that are left, or fewer than were sampled, are made. That costs little, and one of them
        may lead to a chain.
        """
        led = self._samples[stop].led.values()
        fruitful = [number for number in led if number]
        if fruitful:
            self._gain, self._spread = mean(fruitful), pstdev(fruitful)
        alpha, self._alpha = self._alpha, self._alpha_later
        self._judged, waiting = stop, self.beyond[stop]
        if waiting < max(len(led), _FEWEST_LEFT):
            return False
        left = most_left(len(led), len(fruitful), waiting, alpha)
        # One request may lead to a chain of pages, and most lead to none.
        return left * self._gain + _DEVIATIONS * self._spread * math.sqrt(left) <= self._allowed()

    def _allowed(self) -> float:
        """The most unique pages that may be left."""
        return self.unique * self.budget / (1.0 - self.budget)

    def _needed_share(self, alpha: float) -> float:
        """The part of what waits that has to be in a sample: about 1 - (1 - share)^allowed = 1 - alpha."""
        allowed = self._allowed() / self._gain
        return 1.0 if allowed <= 0.0 else min(1.0, MARGIN * -math.log(alpha) / allowed)

    def _draw(self, url: str, stop: int) -> float:
        return mmh3.hash(f"{stop} {url}", self._seed, signed=False) / _MOST
