"""How many probes a recall takes on real pages.

Compared are a fixed number of probes, as in the thesis, and all above one threshold, as in this project's
index.

Run as ``python -m benchmarks.bench_probes FOLDER… [--bits 18 22 26]``. Every pair of distinct fingerprints at
distance 1 to 3 of the pages below the folders counts (all of them: PSM_A, thesis, eq. 7.5). ``--bits`` are
the numbers of prefix bits: about log2 n - 6 for an index of n.

Fixed numbers are given in the thesis's order (eq. 4.5) and in that of the calibrated odds, interpolated
between whole ones. For the threshold, the mean over the queries with a pair is given. The own prefix, which
all probe, is not counted.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks import bench_recall
from benchmarks.bench_thesis import RECALLS, recall
from benchmarks.thesis_flips import H
from benchmarks.thesis_report import number, table
from benchmarks.thesis_systems import Asked, Truth


def pairs_of(folders: list[Path]) -> tuple[Asked, Truth]:
    """The fingerprints with others at distance 1 to 3, and the bits in which these differ."""
    found = bench_recall.fingerprints(folders)
    values = np.array([fingerprint.value for fingerprint in found], dtype=np.uint64)
    differences = [values ^ value for value in values]
    near = [some[(some != 0) & (np.bitwise_count(some) <= H)] for some in differences]
    kept = [i for i, some in enumerate(near) if len(some)]
    assert kept, "no pair within the distance: nothing to measure"
    weights = np.array([found[i].weights for i in kept], dtype=np.float32)
    ends = np.cumsum([len(near[i]) for i in kept])
    return Asked(values[kept], weights), Truth(ends, np.concatenate([near[i] for i in kept]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--bits", type=int, nargs="+", default=[18, 22, 26])
    arguments = parser.parse_args()
    asked, truth = pairs_of(arguments.folders)
    rows: list[list[object]] = []
    for bits in arguments.bits:
        facts = recall(asked, truth, bits)
        row: list[object] = [bits]
        for wanted in map(str, RECALLS):
            row += [
                number(facts[f"{order} all"]["k interpolated"][wanted]) for order in ("thesis", "calibrated")
            ]
            row.append(number(facts["adaptive all"]["k"][wanted]))
        rows.append(row)
    print(
        f"{len(asked.values)} fingerprints with others at distance 1 to {H}, {len(truth.met)} pairs (each"
        " way)\n"
    )
    heads = [f"{wanted} {kind}" for wanted in RECALLS for kind in ("eq. 4.5", "calibrated", "threshold")]
    print("\n".join(table(["prefix bits", *heads], rows)))


if __name__ == "__main__":
    main()
