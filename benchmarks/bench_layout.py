"""How many cache lines a look-up reads: in the tree of the PSM index, and in one table by linear hashing.

``python -m benchmarks.bench_layout [--n 10000000]``. The table of the other layout has one number of prefix
bits for all. The fingerprints of a prefix stand in buckets of a cache line, five in each, addressed by the
mixed prefix. Which prefixes a query probes is planned for a recall of .95 at distance 3. The buckets are
counted, not built, so the counts leave out the collisions of other prefixes. Queries are edited copies of
pages that are not stored.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.native_probes import queries, skewed
from benchmarks.provenance import header
from neardup.fingerprint.simhash import Fingerprint
from neardup.index.psm.flips import plan_flips
from neardup.index.psm.psm_index import PSMIndex

ASKED = 2_000
BUCKET = 5
LOWS_A_LINE = 16
MOST_PROBES = 1 << 16
H, RECALL = 3, 0.95


def of_table(values: np.ndarray, asked: list[Fingerprint], prefix_bits: int) -> tuple[float, float, float]:
    """Mean probes, candidates and cache lines of a query."""
    counts = np.bincount((values >> np.uint64(64 - prefix_bits)).astype(np.int64), minlength=1 << prefix_bits)
    costs = []
    for query in asked:
        flips, _ = plan_flips(query.weights, prefix_bits, H, RECALL, MOST_PROBES)
        met = counts[(np.uint64(query.value) ^ flips) >> np.uint64(64 - prefix_bits)]
        costs.append((len(flips), met.sum(), np.maximum(1, -(-met // BUCKET)).sum()))
    probes, candidates, lines = np.mean(costs, axis=0).tolist()
    return probes, candidates, lines


def of_tree(values: np.ndarray, asked: list[Fingerprint]) -> tuple[float, float, float]:
    """The same of the tree; a leaf's lines are those of its lower halves and one to reach it."""
    index = PSMIndex(max_distance=H, recall=RECALL)
    index.extend(values, np.arange(len(values)))
    for query in asked:  # it learns how far to go
        index.find_all(query)
    before = index.stats
    for query in asked:
        index.find_all(query)
    probes = (index.stats.probes - before.probes) / len(asked)
    candidates = (index.stats.candidates - before.candidates) / len(asked)
    return probes, candidates, probes + candidates / LOWS_A_LINE


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=10_000_000)
    n = parser.parse_args().n
    lines = ["# Cache lines of a look-up: the tree against linear hashing", ""]
    lines += header(
        f"python -m benchmarks.bench_layout --n {n}", n=f"{n:,} fingerprints", recall="0.95 asked"
    )
    lines += ["", "| fingerprints | layout | probes | candidates | cache lines |", "|---|---|---|---|---|"]
    even = np.random.default_rng(2).integers(0, 2**64 - 1, n, dtype=np.uint64)
    others = np.random.default_rng(7).integers(0, 2**64 - 1, ASKED, dtype=np.uint64)
    for name, values, pages in (("skewed", skewed(n, 2), skewed(ASKED, 77)), ("even", even, others)):
        asked = [
            Fingerprint(v, w) for v, w in zip(queries(pages)[0].tolist(), queries(pages)[1], strict=True)
        ]
        rows = {f"table, {bits} bits": of_table(values, asked, bits) for bits in (18, 20, 21, 23)}
        for layout, costs in (rows | {"tree": of_tree(values, asked)}).items():
            lines.append(f"| {name} | {layout} | " + " | ".join(f"{cost:,.0f}" for cost in costs) + " |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
