"""What crawls with a loss budget lose, by many seeds: sites of real pages, replayed without HTTP.

Run as ``python -m benchmarks.bench_loss --folder NAME=FOLDER[,PART…]… [--budgets .01,.05] [--runs N] [--only
WORDS]``. The sites are those of ``benchmarks.bench_budget``, breadth first. Requests wait in the bands of a
crawl, and :class:`neardup.urls.audit.Audit` draws the sample and ends the crawl. Each run has a seed of its
own. ``benchmarks.bench_audit`` does the same over HTTP, with few runs.

A loss is the share of the unique pages of a crawl without a budget that is missing. What a crawl itself takes
for unique decides when it ends; the truth decides what is lost. The exit code is 1 if more than one crawl in
twenty of a site lost more than its budget.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter, deque
from typing import TYPE_CHECKING

from benchmarks.bench_audit import ALLOWED, HEAD, options, over, told
from benchmarks.bench_budget import sites, unique_pages
from benchmarks.provenance import header
from benchmarks.replay import Policy, Replay, Site
from neardup.address import host_of
from neardup.scrapy.links import OF_DUPLICATES
from neardup.scrapy.predictions import BANDS, is_unique
from neardup.urls.audit import Audit

if TYPE_CHECKING:
    from neardup.detection.verdict import Verdict


class Audited(Replay):
    """A crawl whose deferred requests wait in bands and are audited, as those of a crawl over HTTP."""

    def __init__(self, site: Site, budget: float, seed: int) -> None:
        super().__init__(site, Policy("audited", learns=True, links_last=True), breadth_first=True)
        self.audit = Audit(budget, OF_DUPLICATES + len(BANDS), seed)
        self.has_ended = False
        self._bands: dict[float, deque[str]] = {}
        self._roots = Counter[str]()
        """Numbers of the requests of a sample, and of those that such a request has led to."""
        self._in_hand = 0
        """Number of the request of a sample whose page is judged now; 0: none."""

    def _next(self) -> str | None:
        while self._queue:
            url = self._queue.popleft()
            if not self._waits(url, 0):
                return url
        while not self.has_ended and (waiting := sorted(band for band, urls in self._bands.items() if urls)):
            stop = self.audit.stop_to_judge(sum(map(len, self._bands.values())))
            if stop is not None and self.audit.has_enough(stop):
                self.has_ended = True
                return None
            url = self._bands[waiting[0]].popleft()
            self.audit.left(waiting[0])
            if not self._waits(url, waiting[0]):
                return url
        return None

    def _waits(self, url: str, band: float) -> bool:
        """Whether a request that leaves a band, or the queue, is put into a later band."""
        probability, _ = self._probability(url)
        if probability < BANDS[0]:
            waits = url in self._of_duplicates and not self._roots[url]
            probability = self._links.share(host_of(url)) if waits else -1.0
        later: float = OF_DUPLICATES + bisect_right(BANDS, probability) if probability >= 0.0 else 0
        if later <= band:
            return False
        if not float(band).is_integer():
            sampled = self.audit.sample(url, band)
            if sampled is not None:
                self._roots[url] = sampled
                return False
        later = self.audit.next_band(url, band, int(later), self._roots[url])
        self._bands.setdefault(later, deque()).append(url)
        self.audit.put(later)
        return True

    def _arrived(self, url: str) -> None:
        seen, self._in_hand = set(self._seen), self._roots[url]
        super()._arrived(url)
        if self._roots[url]:
            self._roots.update(dict.fromkeys(self._seen - seen, self._roots[url]))

    def _observe(self, verdict: Verdict) -> int | None:
        cluster = super()._observe(verdict)
        if is_unique(verdict, cluster):
            self.audit.unique += cluster is not None
            if self._in_hand:
                self.audit.led_to_unique(self._in_hand)
        self._in_hand = 0  # pages that are judged again are none of the sample
        return cluster


def compare(site: Site, budgets: list[float], runs: int) -> bool:
    """Crawl a site with all budgets and print its rows; whether few enough crawls lost too much."""
    everything = Replay(site, Policy("all"), breadth_first=True).run()
    unique, held = unique_pages(site, everything), True
    for budget in budgets:
        requests, lost, ended = [], [], 0
        for seed in range(runs):
            crawl = Audited(site, budget, seed)
            outcome = crawl.run()
            requests.append(len(outcome.found))
            lost.append(len(unique - outcome.stars) / len(unique))
            ended += crawl.has_ended
        held &= over(lost, budget) <= ALLOWED * runs
        row = told(
            site.name, len(unique), len(everything.found), budget, requests=requests, lost=lost, ended=ended
        )
        print(row, flush=True)
    return held


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--folder", action="append", default=[], help="NAME=FOLDER or NAME=FOLDER,PART,PART")
    arguments = parser.parse_args()
    print("# The loss budget by many seeds, without HTTP\n")
    command = "python -m benchmarks.bench_loss --folder NAME=FOLDER,PART…"
    print("\n".join(header(command, n=f"{arguments.runs} crawls a site and budget", recall="0.98 asked")))
    print(HEAD)
    chosen = [site for site in sites(arguments.folder) if arguments.only in site.name]
    failed = [site.name for site in chosen if not compare(site, arguments.budgets, arguments.runs)]
    if failed:
        print(f"\nmore than one crawl in twenty lost too much of: {', '.join(failed)}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
