"""Exact copies behind many pages of the same words in other orders, whose fingerprints are all equal: a
look-up's worst case.

``python -m benchmarks.bench_twins [--pages 100000] [--twins 10000] [--words 60] [--scope any] [--index psm]``

The benchmark judges so many pages with the same words, each in another order. Then it judges copies of a
sample of these pages, spread over all ages. The output says:

- how many copies were found (all: asserted);
- how long a page took, its words and sketch included;
- what the digests take of memory;
- how long the digests of a snapshot take to be read.

The time of the processor is that of all threads.
"""

from __future__ import annotations

import argparse
import random
import resource
from time import perf_counter, process_time

import numpy as np

from neardup.detection.detector import Detector, DetectorOptions
from neardup.detection.known_digests import KnownDigests
from neardup.detection.scope import SCOPES
from neardup.detection.verdict import Kind, Verdict
from neardup.index.registry import NAMES

_PARTS = 10
"""Of the pages, by age, whose times are shown apart."""


def text_of(number: int, words: int) -> str:
    """The page of a number: the same words as all others, in an order of its own."""
    order = [f"word{place}" for place in range(words)]
    random.Random(number).shuffle(order)
    return " ".join(order)


class Clock:
    """Judges pages and keeps how long each took, in ms, and the time of the processor, in s."""

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self.times: list[float] = []
        self.processor = 0.0

    def judge(self, url: str, text: str) -> Verdict:
        started, processor = perf_counter(), process_time()
        verdict = self._detector.examine_text(url, text)
        self.processor += process_time() - processor
        self.times.append(1e3 * (perf_counter() - started))
        return verdict

    def told(self) -> str:
        times = np.array(self.times)
        return (
            f"mean {times.mean():.2f} ms (processor {1e3 * self.processor / times.size:.2f}),"
            f" median {np.median(times):.2f}, p99 {np.percentile(times, 99):.2f}, longest {times.max():.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--twins", type=int, default=10_000)
    parser.add_argument("--words", type=int, default=60)
    parser.add_argument("--scope", choices=SCOPES, default="any")
    parser.add_argument("--index", choices=NAMES, default="psm")
    arguments = parser.parse_args()
    detector = Detector(DetectorOptions(scope=arguments.scope, index=arguments.index))
    pages = arguments.pages
    all_pages = Clock(detector)
    for part in range(_PARTS):
        clock = Clock(detector)
        for number in range(part * pages // _PARTS, (part + 1) * pages // _PARTS):
            verdict = clock.judge(f"http://a.example/{number}", text_of(number, arguments.words))
            assert verdict.kind is Kind.NEW, verdict
        all_pages.times += clock.times
        all_pages.processor += clock.processor
        print(f"pages up to {(part + 1) * pages // _PARTS}: {clock.told()}", flush=True)
    print(f"all {pages} pages: {all_pages.told()}")

    twins, found = Clock(detector), 0
    sample = np.linspace(0, pages - 1, arguments.twins, dtype=np.int64).tolist()
    for place, number in enumerate(sample):
        verdict = twins.judge(f"http://a.example/copy{place}", text_of(number, arguments.words))
        found += verdict.canonical_url == f"http://a.example/{number}"
    print(f"{len(sample)} copies: {found / len(sample):.4f} found; {twins.told()}")
    assert found == len(sample)

    known, rows = detector.digests, len(detector.pages)
    print(
        f"digests: {known.nbytes(rows) / pages:.1f} bytes a canonical page (of {rows} pages, {pages}"
        " canonical)"
    )
    print(f"most memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
    started = perf_counter()
    KnownDigests.from_array(known.array(rows).copy())
    print(f"from an array: {perf_counter() - started:.3f} s")


if __name__ == "__main__":
    main()
