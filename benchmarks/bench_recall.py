"""Recall of PSM_F and PSM_A on the fingerprints of real pages, against the linear scan.

Run as ``python -m benchmarks.bench_recall FOLDER… [--distance H] [--fill N]``. The targets are 0.90, 0.95 and
0.99. The distinct fingerprints of all HTML pages below the folders are looked up and then added one by one,
as a crawl does it. Every pair at distance 1 to H counts (thesis, eqs. 7.4 and 7.5). Exact twins are always
found and would only flatter the figures. ``--fill`` first adds N random fingerprints, so that prefixes are as
long as in a crawl of that size.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neardup.fingerprint import simhash
from neardup.index.psm.psm_index import PSMIndex
from neardup.index.scan import LinearScan
from neardup.text.features import Features
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import text_of_bytes

if TYPE_CHECKING:
    from neardup.fingerprint.simhash import Fingerprint

FEWEST_FEATURES = 10
TARGETS = (0.90, 0.95, 0.99)


@dataclass
class Found:
    """Matches per query of one way to search."""

    per_query: list[set[int]]
    seconds: float


def fingerprints(folders: list[Path]) -> list[Fingerprint]:
    """Distinct fingerprints of the pages below the folders, in the order of their paths."""
    choice = Features()
    made: dict[int, Fingerprint] = {}
    for page in html_files(folders):
        extracted = choice.extract(text_of_bytes(read_page(page)))
        fingerprint = simhash.fingerprint(extracted.hashes, extracted.weights)
        if fingerprint is not None and extracted.distinct_words >= FEWEST_FEATURES:
            made.setdefault(fingerprint.value, fingerprint)
    return list(made.values())


def search_all(index: PSMIndex | LinearScan, queries: list[Fingerprint], *, first: bool) -> Found:
    per_query: list[set[int]] = []
    seconds = 0.0
    for row, query in enumerate(queries):
        started = time.perf_counter()
        if first:
            match = index.find_first(query)
            rows = set() if match is None else {match.row}
        else:
            rows = {match.row for match in index.find_all(query)}
        seconds += time.perf_counter() - started
        per_query.append({found for found in rows if found < len(queries)})
        index.add(query.value, row)
    return Found(per_query, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--distance", type=int, default=3)
    parser.add_argument("--fill", type=int, default=0)
    arguments = parser.parse_args()
    queries = fingerprints(arguments.folders)
    exact = search_all(LinearScan(max_distance=arguments.distance), queries, first=False)
    pairs = sum(map(len, exact.per_query))
    with_any = sum(map(bool, exact.per_query))
    assert pairs > 0, "no pair within the distance: nothing to measure"
    background = np.random.default_rng(1).integers(0, 2**64 - 1, size=arguments.fill, dtype=np.uint64)
    print(
        f"{len(queries)} distinct fingerprints, {arguments.fill} random ones added, max_distance"
        f" {arguments.distance}"
    )
    print(
        "\n| target | mode | recall | of | n | probes | candidates | µs a query"
        " |\n|---|---|---|---|---|---|---|---|"
    )
    for target in TARGETS:
        for name, first in (("PSM_F", True), ("PSM_A", False)):
            index = PSMIndex(max_distance=arguments.distance, recall=target)
            index.extend(background, np.arange(arguments.fill) + len(queries))
            before = index.stats
            found = search_all(index, queries, first=first)
            assert len(index) == len(queries) + arguments.fill
            assert all(some <= all_ for some, all_ in zip(found.per_query, exact.per_query, strict=True))
            hits = sum(map(bool if first else len, found.per_query))
            of = with_any if first else pairs
            probes = (index.stats.probes - before.probes) / len(queries)
            candidates = (index.stats.candidates - before.candidates) / len(queries)
            print(
                f"| {target} | {name} | {hits / of:.3f} | {of} {'queries' if first else 'pairs'} |"
                f" {len(index)}"
                f" | {probes:.1f} | {candidates:.0f} | {1e6 * found.seconds / len(queries):.1f} |"
            )
    print(f"linear scan: {1e6 * exact.seconds / len(queries):.1f} µs a query")


if __name__ == "__main__":
    main()
