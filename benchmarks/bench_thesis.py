"""Chapter VII of the thesis (Sood 2011) repeated on this machine: figures 5, 7b, 7c, 8 and 10 and the claims
made of them.

``python -m benchmarks.bench_thesis FOLDER… [--n 60000000] [--queries 10000000] [--out FOLDER]``

Stored fingerprints and queries are made from the pages below the folders (:mod:`benchmarks.fingerprints`),
uniform and skewed ones. Smaller collections are parts of the largest, as in the thesis. Queries whose value
is stored are left out, since in the thesis exact duplicates were removed. Of the other queries the first are
asked, as many as fit in ``--budget`` seconds.

``--queries`` is the largest batch of figure 10. All queries of the batch stand in Manku's tables, while the
searches themselves are timed on parts. For PSM, at most ``--asked`` queries are timed in three of the chunks;
of the F still open, half of the matched ones are counted. For Manku, as many stored fingerprints are timed as
fit in the budget. Times are CPU times of one thread (``time.process_time``), medians of three interleaved
repetitions.

``thesis.json`` is written after every step; ``thesis.md`` and the plots at the end, or with ``--report`` from
it alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import time
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import fingerprints, thesis_batch, thesis_report
from benchmarks import thesis_kernels as kernels
from benchmarks import thesis_systems as systems
from neardup.index import base

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.thesis_systems import Asked, Exact, Facts, Ints, Truth, Words

MOST_FLIPS = 60
MOST_COUNTED = 2048
MOST_KNOWN = 300_000
TUNED = 50_000
CHECKED = 2000
THRESHOLDS = tuple(0.3 * 0.75**i for i in range(37))
"""Of the probability of a flip that is tried: 0.3 to 0.00001."""
RECALLS = (0.90, 0.95, 0.99)
PROJECT_RECALLS = (0.90, 0.95, 0.99)
BATCH_PREFIXES = (16, 18, 20, 21, 22, 23, 24, 25, 26)


def say(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


class Results:
    """What is known so far, written down after every step."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "thesis.json"
        self.facts: Facts = {}

    def put(self, *keys: str, facts: object) -> None:
        place = self.facts
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = facts
        self.path.write_text(json.dumps(self.facts, indent=1) + "\n")
        say("/".join(keys))


def machine() -> Facts:
    cpu = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.processor(),
    )
    sources = hashlib.sha256()
    for path in sorted(Path(base.__file__).parent.rglob("*.py")):
        sources.update(path.read_bytes())
    cache = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "last level cache": cache.read_text().strip() if cache.exists() else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "memory GiB": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "numba")},
        "sha256 of neardup/index": sources.hexdigest()[:12],
    }


def without_twins(values: Words, queries: fingerprints.Queries) -> Asked:
    """The queries whose value is not stored; ``values`` sorted."""
    places = np.searchsorted(values, queries.values)
    kept = values[np.minimum(places, len(values) - 1)] != queries.values
    return systems.Asked(queries.values[kept], queries.weights[kept])


def check(ordered: Words, exact: dict[str, Exact], asked: Asked, truth: Truth) -> None:
    """The exact systems must agree with each other, and with a linear scan of a few queries."""
    part = asked.first(min(CHECKED, len(truth.ends)))
    for name, system in exact.items():
        out = system.search(part, only_first=False)
        assert out[kernels.MATCHES] == truth.ends[len(part.values) - 1], name
        first = system.search(part, only_first=True)
        assert first[kernels.MATCHED] == out[kernels.MATCHED] == first[kernels.MATCHES], name
    counts = truth.counts
    few = np.concatenate([np.flatnonzero(counts)[:6], np.flatnonzero(counts == 0)[:4]])
    scanned = systems.linear(ordered, asked.at(few), only_first=False)
    assert scanned[kernels.MATCHES] == counts[few].sum(), "linear scan"


def known(index: Exact, asked: Asked, budget: float) -> Truth:
    """All matches of the first queries, as many as the budget allows."""
    facts = systems.measure({"x": partial(index.search, only_first=False)}, asked.first(20_000), budget / 10)
    m = int(min(len(asked.values), MOST_KNOWN, budget / facts["x"]["us"] * 1e6))
    return index.truth(asked.first(m))


def recall(asked: Asked, truth: Truth, p: int) -> Facts:
    """Figures 8a and 8b at one size: recall against flips in both orders, and what choosing all above a
    threshold gives.
    """
    part = asked.first(len(truth.ends))
    facts: Facts = {
        "p": p,
        "queries": len(truth.ends),
        "with a match": int((truth.counts > 0).sum()),
        "matches": len(truth.met),
    }
    for name, calibrated in (("thesis", False), ("calibrated", True)):
        found = systems.ranks(part, truth, p, MOST_COUNTED, calibrated=calibrated)
        for kind, curve in zip(("first", "all"), systems.recalls(found, truth, MOST_COUNTED), strict=True):
            facts[f"{name} {kind}"] = {
                "curve": [round(float(x), 5) for x in curve[: MOST_FLIPS + 1]],
                "k": {str(wanted): systems.least(curve, wanted) for wanted in RECALLS},
                "k interpolated": {str(wanted): systems.between(curve, wanted) for wanted in RECALLS},
            }
    rows = systems.adaptive_curve(part, truth, p, THRESHOLDS)
    for kind in ("first", "all"):
        reached = [row[kind] for row in rows]
        facts[f"adaptive {kind}"] = {
            "curve": [[round(row["flips"], 3), round(row[kind], 5)] for row in rows],
            "k": {
                str(wanted): float(np.interp(wanted, reached, [row["flips"] for row in rows]))
                if reached[0] <= wanted <= reached[-1]
                else None
                for wanted in RECALLS
            },
        }
    return facts


def fewest(facts: Facts, kind: str) -> int:
    """k for a recall of .95 in the thesis's order; the most tried where that is not enough."""
    return int(facts[f"thesis {kind}"]["k"]["0.95"] or MOST_COUNTED)


def asked_for(ordered: Words, asked: Asked, truth: Truth, *, only_first: bool) -> float:
    """The recall to ask this project for, so that what it finds is .95 (bisection on the logarithm of what is
    missed).
    """
    m = min(len(truth.ends), TUNED)
    part, counts = asked.first(m), truth.counts[:m]
    whole = int((counts > 0).sum() if only_first else counts.sum())
    place = kernels.MATCHED if only_first else kernels.MATCHES
    low, high = 0.001, 0.9
    for _ in range(8):
        middle = float(np.sqrt(low * high))
        found = systems.Project(ordered, 1.0 - middle).search(part, only_first=only_first)[place]
        low, high = (middle, high) if found >= 0.95 * whole else (low, middle)
    return 1.0 - low


def searches(
    ordered: Words, asked: Asked, truth: Truth, p: int, facts: Facts, exact: dict[str, Exact]
) -> tuple[dict[str, Callable[[Asked], Ints]], dict[str, int]]:
    """All systems at one size by name, and the bytes of each."""
    psm = systems.Psm(ordered, p)
    projects = {wanted: systems.Project(ordered, wanted) for wanted in PROJECT_RECALLS}
    sizes = {"psm": psm.nbytes, "project": projects[0.95].nbytes} | {n: e.nbytes for n, e in exact.items()}
    found: dict[str, Callable[[Asked], Ints]] = {}
    for kind, only_first in (("first", True), ("all", False)):
        found[f"psm {kind}"] = partial(psm.search, k=fewest(facts, kind), only_first=only_first)
        found[f"calibrated {kind}"] = partial(
            psm.search, k=int(facts[f"calibrated {kind}"]["k"]["0.95"] or MOST_COUNTED),
            only_first=only_first, calibrated=True,
        )  # fmt: skip
        for name, index in exact.items():
            found[f"{name} {kind}"] = partial(index.search, only_first=only_first)
        for wanted, project in projects.items():
            found[f"project {wanted} {kind}"] = partial(project.search, only_first=only_first)
        equal = asked_for(ordered, asked, truth, only_first=only_first)
        facts[f"asked of the project {kind}"] = equal
        found[f"project equal {kind}"] = partial(
            systems.Project(ordered, equal).search, only_first=only_first
        )
        found[f"linear {kind}"] = partial(systems.linear, ordered, only_first=only_first)
    return found, sizes


def one_size(results: Results, name: str, ordered: Words, asked: Asked, budget: float) -> tuple[Truth, Facts]:
    """Recall and times at one n (figures 7b, 7c, 8)."""
    n = len(ordered)
    p = round(np.log2(n))
    say(f"{name}: n {n}, tables")
    exact = {"mih": systems.multi_index(ordered)}
    truth = known(exact["mih"], asked, 3 * budget)
    facts = recall(asked, truth, p)
    results.put(name, str(n), "recall", facts=facts)
    for tables in (4, 10):
        exact[f"manku{tables}"] = systems.manku(ordered, tables)
    check(ordered, exact, asked, truth)
    say(f"{name}: n {n}, exact systems agree")
    found, sizes = searches(ordered, asked, truth, p, facts, exact)
    results.put(name, str(n), "recall", facts=facts)
    results.put(name, str(n), "bytes", facts=sizes)
    timed = systems.measure(found, asked, budget)
    counts = truth.counts
    for row, facts_of in timed.items():
        # What was found is held against all there is, for the queries that both saw.
        m = min(facts_of["queries"], len(counts))
        if m == facts_of["queries"]:
            there = counts[:m]
            whole = (there > 0).sum() if row.endswith("first") else there.sum()
            facts_of["recall"] = float(
                facts_of["matched" if row.endswith("first") else "matches"] / max(1, whole)
            )
    results.put(name, str(n), "times", facts=timed)
    return truth, facts


def prefixes(results: Results, name: str, ordered: Words, asked: Asked, truth: Truth, budget: float) -> None:
    """Figure 5: flips needed and time against p; the time of a prefix of d bits is there too (figure 7c)."""
    d = round(np.log2(len(ordered)))
    part = asked.first(len(truth.ends))
    few = part
    for p in sorted({min(p, d) for p in BATCH_PREFIXES} | {max(4, d - 10), d}):
        if p > d:
            continue
        facts: Facts = {"tables": 1 + 2.0 ** (p - d)}
        found = systems.ranks(few, truth, p, MOST_COUNTED, calibrated=False)
        index = systems.Psm(ordered, p)
        runs: dict[str, Callable[[Asked], Ints]] = {}
        for kind, curve in zip(("first", "all"), systems.recalls(found, truth, MOST_COUNTED), strict=True):
            k = systems.least(curve, 0.95)
            facts[f"k {kind}"] = k
            runs[kind] = partial(index.search, k=MOST_COUNTED if k is None else k, only_first=kind == "first")
        facts |= systems.measure(runs, asked, budget / 4)
        results.put(name, "prefixes", str(p), facts=facts)


def collection(results: Results, name: str, arguments: argparse.Namespace) -> None:
    """Everything; or figure 10 alone, with the flips known from before."""
    n = arguments.n
    values, queries = fingerprints.load(
        n, arguments.folders, queries=arguments.asked, even=name == "uniform", seed=arguments.seed
    )
    whole = np.sort(values)
    asked = without_twins(whole, queries)
    if arguments.batch:
        batches(results, name, whole, asked, arguments)
        return
    results.put(name, "queries", facts={"made": len(queries.values), "not stored": len(asked.values), "n": n})
    del queries
    for size in sorted({max(1000, n // 60), max(1000, n // 15), max(1000, n * 4 // 15), n}):
        ordered = whole if size == n else np.sort(values[:size])
        truth, _ = one_size(results, name, ordered, asked, arguments.budget)
    del values
    prefixes(results, name, whole, asked, truth, arguments.budget)
    batches(results, name, whole, asked, arguments)


def batches(results: Results, name: str, whole: Words, asked: Asked, arguments: argparse.Namespace) -> None:
    thesis_batch.run(
        partial(results.put, name), whole, asked, arguments, even=name == "uniform",
        ks={int(p): (f["k first"], f["k all"]) for p, f in results.facts[name]["prefixes"].items()},
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--n", type=int, default=60_000_000)
    parser.add_argument("--queries", type=int, default=10_000_000)
    parser.add_argument("--asked", type=int, default=1_000_000)
    parser.add_argument("--budget", type=float, default=1.0, help="seconds of one repetition")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results"))
    parser.add_argument("--collections", nargs="+", default=["uniform", "simulated"])
    parser.add_argument("--batch", action="store_true", help="figure 10 alone, into the thesis.json there is")
    parser.add_argument(
        "--report", action="store_true", help="write the report from thesis.json, measure nothing"
    )
    arguments = parser.parse_args()
    results = Results(arguments.out)
    if not arguments.report:
        if not arguments.folders:
            parser.error("folders with pages are needed")
        settings = {k: getattr(arguments, k) for k in ("n", "queries", "asked", "budget", "seed")}
        if arguments.batch:
            results.facts = json.loads(results.path.read_text())
        else:
            results.put("machine", facts=machine())
            results.put("settings", facts={**settings, "folders": len(arguments.folders)})
        for name in arguments.collections:
            collection(results, name, arguments)
    thesis_report.write(arguments.out)


if __name__ == "__main__":
    main()
