"""Search at distance 3 of 64 bits: neardup's indexes and other libraries side by side, one thread, same data.

Run as ``python -m benchmarks.bench_peers [--n N] [--queries M] [--uniform] [--only WORD…] [--out FOLDER]
FOLDER…`` with the extra ``bench`` installed. Data: :mod:`benchmarks.fingerprints`, half the queries
near-duplicates of stored documents.

In each of 3 rounds each index is built anew, one after the other. So what else the machine does hits all
alike. The median of the rounds counts, in processor time. Most of the fingerprints are inserted in bulk, in
chunks of up to N/16. The last N/10, but at most 10,000, are inserted one by one. Training counts as bulk.

An index that is slow stops when its time is over. Bulk has ``--seconds``; one by one, online and batch have a
fifth of ``--seconds`` each. The table shows the n of that index, and only matches among its n count.

R_F (Sood, eq. 7.4) is the share of the queries with a match for which any match was found. R_A (eq. 7.5) is
the share of all matches that were found. An index said to be exact must find all, or the run stops. The run
also stops if an answer is wrong or one is missing. Bytes a fingerprint: growth of the process's resident
memory.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib.metadata
import json
import os
import platform
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import fingerprints
from benchmarks.compiled import compiled
from benchmarks.peers import DISTANCE, Peer, all_peers
from benchmarks.provenance import header

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

ROUNDS = 3
_FIRST_CHUNK = 4096
_NO_MISSES = 1e-4
_QUERIES_A_CALL = 1000
_PACKAGES = ("neardup", "numpy", "numba", "faiss-cpu", "usearch", "gaoya", "simhash")


@dataclass
class Result:
    """One peer's figures; lists have an entry for each round."""

    name: str
    exact: bool
    n: int = 0
    queries: int = 0
    bulk: list[float] = field(default_factory=list)
    one_by_one: list[float] = field(default_factory=list)
    online: list[float] = field(default_factory=list)
    online_without_hashing: list[float] = field(default_factory=list)
    batch: list[float] = field(default_factory=list)
    bytes_each: float = 0.0
    first_recall: float = 0.0
    all_recall: float | None = None


@dataclass
class Exact:
    """All stored rows within the distance of each query: ``rows[starts[i]:starts[i+1]]``."""

    starts: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]

    def of(self, query: int, n: int) -> set[int]:
        """Those among the first n."""
        rows = self.rows[self.starts[query] : self.starts[query + 1]]
        return set(rows[rows < n].tolist())


def exact_answers(values: npt.NDArray[np.uint64], queries: npt.NDArray[np.uint64]) -> Exact:
    """By four sorted 16-bit blocks, one of which is equal in all matches."""
    found: list[npt.NDArray[np.int64]] = []
    for block in range(4):
        shift = np.uint64(16 * block)
        keys = ((values >> shift) & np.uint64(0xFFFF)).astype(np.int64)
        order = np.argsort(keys, kind="stable")
        starts = np.searchsorted(keys[order], np.arange((1 << 16) + 1))
        asked = ((queries >> shift) & np.uint64(0xFFFF)).astype(np.int64)
        pairs = np.empty((64 * len(queries), 2), dtype=np.int64)
        count = _compare(values[order], order, starts, asked, queries, pairs)
        if count > len(pairs):
            pairs = np.empty((count, 2), dtype=np.int64)
            _compare(values[order], order, starts, asked, queries, pairs)
        found.append(pairs[:count])
    unique = np.unique(np.concatenate(found), axis=0)
    return Exact(np.searchsorted(unique[:, 0], np.arange(len(queries) + 1)), unique[:, 1])


@compiled
def _compare(
    values: npt.NDArray[np.uint64], rows: npt.NDArray[np.int64], starts: npt.NDArray[np.int64],
    asked: npt.NDArray[np.int64], queries: npt.NDArray[np.uint64], pairs: npt.NDArray[np.int64],
) -> int:  # fmt: skip
    count = 0
    for i in range(queries.size):
        for k in range(starts[asked[i]], starts[asked[i] + 1]):
            rest = values[k] ^ queries[i]
            for _ in range(3):
                rest &= rest - np.uint64(1)
            if rest == 0:
                if count < pairs.shape[0]:
                    pairs[count, 0] = i
                    pairs[count, 1] = rows[k]
                count += 1
    return count


def resident() -> int:
    """Bytes of memory in use, after giving back what is free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def parts(start: int, end: int, first: int, most: int) -> list[tuple[int, int]]:
    """Chunks that grow from ``first`` to ``most``."""
    cut = []
    while start < end:
        cut.append((start, min(end, start + first)))
        start, first = start + first, min(2 * first, most)
    return cut


@dataclass
class Data:
    values: npt.NDArray[np.uint64]
    queries: fingerprints.Queries
    exact: Exact
    seconds: float


def fill(peer: Peer, data: Data, limit: int, results: list[Result]) -> int:
    """Build the index with at most ``limit`` fingerprints; how many it took."""
    values = data.values
    before = resident()
    each = min(10_000, limit // 10) if peer.has_one_by_one else 0
    started = time.process_time()
    peer.make(values)
    making = seconds = time.process_time() - started
    stored = 0
    # What was stored in the first round is stored again, however long it takes.
    budget = float("inf") if results[0].n else data.seconds
    begun = time.perf_counter()
    for start, end in parts(0, limit - each, _FIRST_CHUNK, max(1 << 16, limit // 16)):
        peer.overhead = 0.0
        started = time.process_time()
        peer.extend(values[start:end], start)
        seconds += time.process_time() - started - peer.overhead
        stored = end
        if seconds - making > budget or time.perf_counter() - begun > 3 * budget:
            break
    bulk = stored / seconds
    seconds, singles = 0.0, 0
    for start, end in parts(stored, stored + each, 100, 100):
        prepared = peer.prepare_values(values[start:end])
        peer.overhead = 0.0
        started = time.process_time()
        peer.add_each(prepared, start)
        seconds += time.process_time() - started - peer.overhead
        stored, singles = end, singles + end - start
        if seconds > budget / 5:
            break
    prepared = []
    assert len(peer) == stored, f"{peer.name} holds {len(peer)} of {stored}"
    grown = (resident() - before) / stored
    for result in results:
        result.bulk.append(bulk)
        if singles:
            result.one_by_one.append(singles / seconds)
        if not result.n:
            result.n, result.bytes_each = stored, grown
    return stored


def ask(
    queries: Sequence[Any], size: int, seconds: float, search: Callable[[Any], tuple[float, list[Any]]]
) -> tuple[float, list[Any]]:
    """Queries a second and the answers, until the time is over."""
    spent = 0.0
    answers: list[Any] = []
    for start in range(0, len(queries), size):
        took, some = search(queries[start : start + size])
        spent += took
        answers += some
        if spent > seconds:
            break
    return len(answers) / spent, answers


def search(peer: Peer, data: Data, stored: int, result: Result) -> None:
    prepared = peer.prepare(data.queries.values, data.queries.weights)

    hashing: list[float] = []

    def online(some: Any) -> tuple[float, list[Any]]:
        call = peer.online
        started = time.process_time()
        answers = [call(query) for query in some]
        took = time.process_time() - started
        hashing.append(peer.hashing(some) / len(some))
        return took, answers

    def batch(some: Any) -> tuple[float, list[Any]]:
        made = peer.prepare_batch(some)
        started = time.process_time()
        answer = peer.batch(made)
        took = time.process_time() - started
        rows = peer.batch_rows(answer)
        assert len(rows) == len(some)
        return took, rows

    for query in prepared[:20]:  # compiles, and warms caches
        peer.online(query)
    speed, raw = ask(prepared, 100, data.seconds / 5, online)
    result.online.append(speed)
    without = 1 / speed - sum(hashing) / len(hashing)
    if any(hashing) and without > 0.2 / speed:
        result.online_without_hashing.append(1 / without)
    answers = [set(peer.rows(answer)) for answer in raw]
    result.queries = max(result.queries, len(answers))
    judge(peer, data, stored, answers, result)
    if peer.has_batch:
        peer.batch(peer.prepare_batch(prepared[:20]))
        speed, lists = ask(prepared, min(_QUERIES_A_CALL, len(answers)), data.seconds / 5, batch)
        result.batch.append(speed)
        judge(peer, data, stored, list(map(set, lists)), None)


def judge(peer: Peer, data: Data, stored: int, answers: list[set[int]], result: Result | None) -> None:
    assert answers
    having = found = pairs = found_pairs = 0
    for query, answer in enumerate(answers):
        right = data.exact.of(query, stored)
        assert answer <= right, f"{peer.name} found {answer - right} for query {query}, too far away"
        assert answer == right or not (peer.exact and peer.returns_all), f"{peer.name} is not exact"
        having += bool(right)
        found += bool(answer)
        pairs += len(right)
        found_pairs += len(answer)
    assert having, "no query has a match"
    assert found == having or not peer.exact, f"{peer.name} is not exact"
    if result is not None:
        result.first_recall = found / having
        result.all_recall = found_pairs / pairs if peer.returns_all else None


def run(peers: list[Peer], data: Data, report: Callable[[list[Result]], None]) -> None:
    groups: dict[tuple[str, str], list[Peer]] = {}
    for peer in peers:
        groups.setdefault((peer.family, peer.build), []).append(peer)
    results = {id(peer): Result(peer.name, peer.exact) for peer in peers}
    for number in range(ROUNDS):
        for group in groups.values():
            builder = group[0]
            mine = [results[id(peer)] for peer in group]
            warm = np.ascontiguousarray(data.values[: _FIRST_CHUNK + 100])
            if number == 0:
                # Not before the memory is measured: what this compiles or imports stays.
                fill(
                    builder, Data(warm, data.queries, data.exact, 10.0), len(warm), [Result("", exact=False)]
                )
            stored = fill(builder, data, mine[0].n or len(data.values), mine)
            for peer, result in zip(group, mine, strict=True):
                peer.share(builder)
                search(peer, data, stored, result)
                result.name = peer.name
                print(number + 1, line(result), flush=True)
            for peer in group:
                peer.index = None
        report(list(results.values()))


def line(result: Result) -> str:
    def rate(figures: list[float]) -> str:
        return f"{median(figures):,.0f}" if figures else "–"

    every = "–" if result.all_recall is None else f"{result.all_recall:.4f}"
    name = result.name
    if result.online_without_hashing:
        name += f" (online without hashing text {rate(result.online_without_hashing)}/s)"
    columns = [
        name, f"{result.n:,}", rate(result.bulk), rate(result.one_by_one), rate(result.online),
        rate(result.batch), f"{result.queries:,}", f"{result.bytes_each:.0f}", f"{result.first_recall:.4f}",
        every,
    ]  # fmt: skip
    return f"| {' | '.join(columns)} |"


_COLUMNS = (
    "index", "n", "bulk inserts/s", "one by one/s", "online queries/s", "batch queries/s", "queries",
    "bytes each", "R_F", "R_A",
)  # fmt: skip
HEAD = f"| {' | '.join(_COLUMNS)} |\n|---|" + "--:|" * (len(_COLUMNS) - 1)


def machine() -> dict[str, str]:
    cpu = next((text for text in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in text), "")
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "cpu": cpu.partition(":")[2].strip() or platform.processor(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "load average when done": f"{os.getloadavg()[0]:.2f}",
        **versions,
    }


def plot(results: list[Result], path: Path, title: str) -> None:
    matplotlib: Any = importlib.import_module("matplotlib")
    matplotlib.use("svg")
    pyplot: Any = importlib.import_module("matplotlib.pyplot")
    figure, axes = pyplot.subplots(figsize=(12, 8))
    families = sorted({" ".join(result.name.split()[:2]) for result in results})
    largest = max(result.n for result in results)
    for result in results:
        family = " ".join(result.name.split()[:2])
        number = families.index(family)
        colour = pyplot.get_cmap("tab20")(number)
        at = max(1 - result.first_recall, _NO_MISSES), median(result.online)
        axes.scatter(
            *at, marker="osD^v<>PX*ph"[number % 12], s=60, edgecolors=colour,
            facecolors=colour if result.n == largest else "none", label=family,
        )  # fmt: skip
        size = "" if result.n == largest else f" (n {result.n:,})"
        axes.annotate(f"  {' '.join(result.name.split()[2:])}{size}", at, fontsize=6)
    axes.set(ylabel="queries/s, one call a query", xscale="log", yscale="log", title=title)
    axes.set_xlabel(f"queries whose matches are missed, 1 - R_F (at {_NO_MISSES:g}: none); hollow: smaller n")
    axes.invert_xaxis()
    axes.grid(visible=True, alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    axes.legend(unique.values(), unique.keys(), fontsize=8, loc="lower left")
    figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--uniform", action="store_true")
    parser.add_argument(
        "--only", nargs="+", metavar="WORD", help="only peers with one of these in their names"
    )
    parser.add_argument("--out", type=Path, default=Path())
    arguments = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1")  # before the peers are imported
    peers = all_peers(arguments.n)
    if arguments.only:
        peers = [peer for peer in peers if any(word in peer.name for word in arguments.only)]
    if any(peer.family == "faiss" for peer in peers):
        faiss: Any = importlib.import_module("faiss")
        faiss.omp_set_num_threads(1)
    values, queries = fingerprints.load(arguments.n, arguments.folders, even=arguments.uniform)
    chosen = slice(arguments.queries)
    queries = fingerprints.Queries(queries.values[chosen], queries.weights[chosen], queries.rows[chosen])
    data = Data(values, queries, exact_answers(values, queries.values), arguments.seconds)
    print(
        f"{sum(bool(data.exact.of(i, len(values))) for i in range(len(queries.values)))} queries have"
        " matches,"
    )
    print(f"{len(data.exact.rows)} in all\n{HEAD}")
    kind = "uniform" if arguments.uniform else "simulated"
    title = f"{kind}, n {arguments.n:,}, {len(queries.values):,} queries, distance ≤ {DISTANCE}, one thread"
    arguments.out.mkdir(parents=True, exist_ok=True)
    about = header(
        "python -m benchmarks.bench_peers", n=f"{arguments.n:,}", recall="R_F and R_A in the table"
    )
    target = arguments.out / f"peers-{kind}-{arguments.n}"
    run(peers, data, lambda results: report(results, title, about, target))


def report(results: list[Result], title: str, head: list[str], target: Path) -> None:
    """Write what there is after each round, so that a run cut short is not lost."""
    about = machine() | {"rounds": str(len(results[0].bulk))}
    head = [f"# The index beside others: {title}", "", *head, *(f"- {k}: {v}" for k, v in about.items())]
    table = "\n".join([*head, "", HEAD, *map(line, results)])
    target.with_suffix(".md").write_text(table + "\n")
    figures = {"title": title, "machine": about, "results": [asdict(result) for result in results]}
    target.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
    plot(results, target.with_suffix(".svg"), f"{title}\n{about['cpu']}")
    print(table)


if __name__ == "__main__":
    main()
