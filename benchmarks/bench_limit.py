"""How near the PSM index comes to what memory allows.

``python -m benchmarks.bench_limit FOLDER… [--n 1000000 60000000] [--out FOLDER]``

The benchmark takes three measures:

- the cache lines that searches touch (nodes of the tree; runs of lines of leaves). A copy of
  ``neardup/index/psm/walk.py`` with counters counts the lines; the copy is made when this runs;
- how long memory takes for as many independent reads of random lines, or of random runs of lines;
- how long the searches take.

The reads are in arrays of the same size, with nothing else to do and as many in flight as the machine can
have. The ratio is what is left to gain, at most. Upper nodes of the tree stay in the cache, but the nodes
read at random do not. So a ratio below 1 is possible. Times are CPU times of one thread, medians of five.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numba
import numpy as np

from benchmarks import fingerprints
from benchmarks.provenance import header
from benchmarks.thesis_report import millions, table
from neardup.compiled import compiled
from neardup.index.base import ANY_NUMBER
from neardup.index.psm import leaf_allocator, walk
from neardup.index.psm import tree as index_kernels
from neardup.index.psm.child_probability import LEVELS
from neardup.index.psm.psm_index import PSMIndex

if TYPE_CHECKING:
    from types import ModuleType

    import numpy.typing as npt

    Words: TypeAlias = npt.NDArray[np.uint64]
    Facts: TypeAlias = dict[str, Any]

H = 3
RECALL = 0.95
REPETITIONS = 5
_READS = 2_000_000
_OWN = "    place, level = place_of(heads, value)\n"
_NODE = "        if level == queue[_READY]:\n"
_VISITS = f"{LEVELS}, 0, 2"
_COUNTERS = (
    # The steps down the query's own path, other nodes whose children are looked at, the lines of a leaf
    # compared with.
    (_OWN, f"{_OWN}    state[QUERIES] += level\n"),
    (_NODE, f"        if product != 1.0:\n            shares[{_VISITS}] += 1.0\n{_NODE}"),
    ("state[CANDIDATES] += met\n", "state[CANDIDATES] += (met + 15) // 16\n"),
)


def counting_walk(folder: Path) -> ModuleType:
    """walk.py with QUERIES counting queries and nodes of their own paths, other nodes among the shares, and
    CANDIDATES lines of leaves.
    """
    source = Path(walk.__file__).read_text()
    for old, new in _COUNTERS:
        assert source.count(old) == 1, f"walk.py has changed: {old!r}"
        source = source.replace(old, new)
    path = folder / "counting_walk.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("counting_walk", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["counting_walk"] = module
    spec.loader.exec_module(module)
    return module


def asking(search: Any) -> Any:
    """A compiled loop over queries around one search."""

    @numba.njit(nogil=True)  # not cached: it closes over the search
    def ask(
        heads: Words,
        values: Words,
        rows: npt.NDArray[np.uint32],
        state: npt.NDArray[np.int64],
        queries: Words,
        weights: npt.NDArray[np.float32],
        recall: float,
        most: int,
        workspace: tuple[Any, ...],
        matches: Words,
    ) -> int:
        wide = np.empty(64)
        found = 0
        for i in range(queries.size):
            for j in range(64):
                wide[j] = weights[i, j]
            given = (
                heads,
                values,
                rows,
                state,
                queries[i],
                wide,
                H,
                recall,
                most,
                *workspace,
                matches,
            )
            found += search(*given)
        return found

    return ask


@compiled
def read_runs(words: Words, lines: int, reads: int, seed: int) -> int:
    """Read one word of each line of random runs of ``lines`` lines; every read is independent
    of the others.
    """
    whole = np.uint64(words.size // 8 - lines)
    random = np.uint64(seed)
    total = np.uint64(0)
    for _ in range(reads):
        random = random * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        # The upper half, scaled: no division.
        line = ((random >> np.uint64(32)) * whole) >> np.uint64(32)
        for i in range(lines):
            total += words[(line + np.uint64(i)) * np.uint64(8)]
    return int(total >> np.uint64(1))


def read_ns(words: Words, lines: int) -> float:
    """Nanoseconds of a random run of lines."""
    reads = _READS // lines
    read_runs(words, lines, 10, 1)
    times = []
    for seed in range(REPETITIONS):
        started = time.process_time()
        read_runs(words, lines, reads, seed)
        times.append(time.process_time() - started)
    return statistics.median(times) / reads * 1e9


def one(values: Words, queries: fingerprints.Queries, ask: Any, count: Any) -> list[Facts]:
    index = PSMIndex(max_distance=H, recall=RECALL)
    index.extend(values, np.arange(len(values), dtype=np.int64))
    assert len(index) == len(values)
    state = index._state
    held = int(state[leaf_allocator.TOP]) * leaf_allocator.LINE
    lows = index._lows[:held].view(np.uint64)
    nodes = int(state[index_kernels.NODES]) * index_kernels.CHILDREN
    matches = np.zeros((1, 3), dtype=np.uint64)
    arrays = (index._heads, index._lows, index._rests)
    rows = []
    for kind, most in (("F", 1), ("A", ANY_NUMBER)):
        asked = (queries.values, queries.weights, RECALL, most, index._workspace, matches)
        ask(*arrays, state, *asked)
        times = []
        for _ in range(REPETITIONS):
            started = time.process_time()
            found = ask(*arrays, state, *asked)
            times.append((time.process_time() - started) / len(queries.values) * 1e9)
        costs = state.copy()
        visits = index._workspace[1][LEVELS, 0]
        visits[2] = 0.0
        counted = count(*arrays, state, *asked)
        costs = state - costs
        # The threshold that recent searches ended at is part of the workspace, so few probes may differ.
        assert found > 0
        assert abs(counted - found) <= 0.02 * found
        m = len(queries.values)
        node_lines = float((costs[index_kernels.QUERIES] + visits[2]) / m - 1.0)
        leaves = float((costs[index_kernels.PROBES] - costs[index_kernels.EMPTY_PROBES]) / m)
        leaf_lines = float(costs[index_kernels.CANDIDATES] / m)
        run = max(1, round(leaf_lines / max(leaves, 1e-9)))
        line_ns, run_ns = read_ns(index._heads[:nodes], 1), read_ns(lows, run)
        memory = node_lines * line_ns + leaves * run_ns
        rows.append({
            "kind": kind, "node lines": node_lines, "leaves": leaves, "leaf lines": leaf_lines, "run": run,
            "node ns": line_ns, "line ns": read_ns(lows, 1), "run ns": run_ns, "memory ns": memory,
            "search ns": statistics.median(times), "ratio": statistics.median(times) / memory,
        })  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument(
        "--n", type=int, nargs="+", default=[1_000_000, 4_000_000, 16_000_000, 60_000_000],
        help="the largest is made, the others are its first fingerprints",
    )  # fmt: skip
    parser.add_argument("--asked", type=int, default=1_000_000, help="queries made")
    parser.add_argument("--timed", type=int, default=100_000, help="queries timed, the first of them")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results"))
    arguments = parser.parse_args()
    head: list[str] = []
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as folder:
        ask, count = asking(walk.search), asking(counting_walk(Path(folder)).search)
        for name in ("uniform", "simulated"):
            values, made = fingerprints.load(
                max(arguments.n), arguments.folders, queries=arguments.asked, even=name == "uniform"
            )
            m = arguments.timed
            queries = fingerprints.Queries(made.values[:m], made.weights[:m], made.rows[:m])
            for n in sorted(arguments.n):
                for facts in one(values[:n], queries, ask, count):
                    head = ["", "n", *facts]
                    rows.append([name, millions(n), *facts.values()])
                    print(*rows[-1], flush=True)
                write(arguments, head, rows)


def write(arguments: argparse.Namespace, head: list[str], rows: list[list[object]]) -> None:
    arguments.out.mkdir(parents=True, exist_ok=True)
    sizes = ", ".join(f"{n:,}" for n in arguments.n)
    lines = [
        "# Searches of the PSM index against what memory allows", "",
        *header("python -m benchmarks.bench_limit", n=sizes, recall=f"{RECALL} asked"), "",
        f"Written by `python -m benchmarks.bench_limit`; {arguments.timed} queries, recall {RECALL} asked,",
        "per query. memory ns = node lines × node ns + leaves × run ns, the time of as many independent",
        "random reads in arrays of the same sizes and nothing else; ratio = search ns / memory ns.", "",
    ]  # fmt: skip
    (arguments.out / "limit.md").write_text("\n".join(lines + table(head, rows)).rstrip() + "\n")


if __name__ == "__main__":
    main()
