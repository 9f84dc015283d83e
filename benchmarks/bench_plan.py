"""How near ``neardup plan`` comes to what is then measured.

Run as ``python -m benchmarks.bench_plan [--n N…] [--stored FOLDER…]``. Each index is built at its full size
and asked the same queries as the plan. The table has planned and measured side by side, of both the fastest
of some rounds. ``--stored``: also with fingerprints made from the real pages below the folders
(:mod:`benchmarks.fingerprints`), the plan seeing the first million of them. All queries are such that find
nothing: that is what is planned.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import fingerprints
from neardup.fingerprint.simhash import Fingerprint
from neardup.index import plan
from neardup.index.registry import make_index
from neardup.index.tables import MultiIndexHashing

if TYPE_CHECKING:
    import numpy.typing as npt

SECONDS = 1.0
QUERIES = 2000


def compare(title: str, values: npt.NDArray[np.uint64], sample: plan.Sample | None) -> None:
    queries = plan.typical_queries() if sample is None else list(sample.queries)
    costs = plan.plan(len(values), max_distance=3, recall=0.95, sample=sample)
    for cost in costs:
        if cost.name == "scan":
            continue
        index = make_index(cost.name, max_distance=3, recall=0.95)
        index.extend(values, np.arange(len(values)))
        assert len(index) == len(values)
        index.find_all(queries[0])
        before = replace(index.stats)
        rounds: list[float] = []
        while sum(rounds) * len(queries) < 1e6 * SECONDS:
            started = perf_counter()
            for query in queries:
                index.find_all(query)
            rounds.append(1e6 * (perf_counter() - started) / len(queries))
        made = len(rounds) * len(queries)
        measured = (
            (index.stats.probes - before.probes) / made,
            (index.stats.candidates - before.candidates) / made,
            index.nbytes / 1e6,
            min(rounds),
        )
        planned = (cost.probes, cost.candidates, cost.nbytes / 1e6, cost.microseconds)
        cells = [f"{p:.1f} / {m:.1f} ({p / m:.2f})" for p, m in zip(planned, measured, strict=True)]
        print(f"| {title} | {len(values):,} | {cost.name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--stored", type=Path, nargs="*", default=[])
    arguments = parser.parse_args()
    print(
        "| fingerprints | n | index | probes: planned / measured | candidates | MB | µs a query"
        " |\n|---|---|---|---|---|---|---|"
    )
    for n in arguments.n:
        even = np.random.default_rng(7).integers(0, 2**64 - 1, size=n, dtype=np.uint64, endpoint=True)
        compare("evenly spread", even, None)
        if arguments.stored:
            values, queries = fingerprints.load(n, arguments.stored)
            exact = MultiIndexHashing(max_distance=3)
            exact.extend(values, np.arange(n))
            unlike = (
                Fingerprint(int(queries.values[i]), queries.weights[i].astype(np.float64))
                for i in np.flatnonzero(queries.rows < 0)
            )
            asked = list(islice((each for each in unlike if exact.find_first(each) is None), QUERIES))
            assert len(asked) == QUERIES
            del exact
            compare("simulated from pages", values, plan.Sample(values[: plan.MEASURED_PAGES], asked))


if __name__ == "__main__":
    main()
