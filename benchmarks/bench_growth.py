"""How long single insertions take while an index grows, and what it takes up.

Run as ``python -m benchmarks.bench_growth [--n 60000000] [--index psm] [--values FILE.npy]``. Evenly spread
fingerprints (or those of a file) are added one by one from Python, each call timed; percentiles from the
first million on. Wall time, with the machine's own pauses in it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING

import numpy as np

from neardup.index.registry import NAMES, make_index

if TYPE_CHECKING:
    import numpy.typing as npt

FIRST = 1_000_000
NOTED_NS = 1_000_000


def percentiles(nanoseconds: npt.NDArray[np.uint32]) -> str:
    cuts = np.quantile(nanoseconds, [0.5, 0.99, 0.999]) / 1000
    return " / ".join(f"{cut:.2f}" for cut in cuts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=60_000_000)
    parser.add_argument("--index", choices=NAMES, default="psm")
    parser.add_argument("--values", type=Path)
    arguments = parser.parse_args()
    warm = make_index(arguments.index, max_distance=3, recall=0.95)
    warm.extend(np.arange(20_000, dtype=np.uint64), np.arange(20_000))
    for row in range(1000):
        warm.add(row, row)
    index = make_index(arguments.index, max_distance=3, recall=0.95)
    if arguments.values:
        values = np.load(arguments.values)[: arguments.n]
    else:
        values = np.random.default_rng(1).integers(0, 2**64 - 1, size=arguments.n, dtype=np.uint64)
    index.extend(values[:FIRST], np.arange(min(FIRST, len(values))))
    calls = np.zeros(len(values) - FIRST, dtype=np.uint32)
    longest: list[tuple[int, int]] = []
    row = FIRST
    for start in range(FIRST, len(values), FIRST):
        for value in values[start : start + FIRST].tolist():
            began = perf_counter_ns()
            index.add(value, row)
            took = perf_counter_ns() - began
            calls[row - FIRST] = took
            row += 1
            if took > NOTED_NS:
                longest.append((took, row))
        print(
            f"{row:,}: {percentiles(calls[start - FIRST : row - FIRST])} µs, {index.nbytes / row:.1f} B",
            flush=True,
        )
    assert len(index) == len(values)
    worst = ", ".join(f"{wall / 1e6:.2f} ms at {at:,}" for wall, at in sorted(longest, reverse=True)[:5])
    print(
        f"\n{arguments.index}: {FIRST:,} to {len(values):,}: p50 / p99 / p99.9 {percentiles(calls)} µs,"
        f" mean {calls.mean() / 1000:.2f} µs, longest {worst or f'{calls.max() / 1e6:.2f} ms'};"
        f" {index.nbytes / len(index):.2f} bytes a fingerprint"
    )


if __name__ == "__main__":
    main()
