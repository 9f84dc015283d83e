"""PageRank of made graphs: processor time and memory, by the number of links.

Run as ``python -m benchmarks.bench_pagerank [NODES:LINKS…] [--output FILE]``. Sources are even, and targets
are drawn so that few nodes have most links. Each graph has a process of its own, which also makes the links;
this time is told apart. The error is a bound on the L1 distance from the exact ranks. A graph of at most
20,000 nodes is compared with networkx.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.provenance import give, header
from neardup.collection.link_graph import build
from neardup.collection.pagerank import pagerank

if TYPE_CHECKING:
    from collections.abc import Iterator

    from neardup.collection.link_graph import Integers

GRAPHS = ("20000:200000", "1000000:10000000")
LINKS_AT_ONCE = 1 << 20
MOST_COMPARED = 20_000


class Made:
    """Links of a graph, and the time that making them took."""

    def __init__(self, nodes: int, links: int) -> None:
        self.nodes, self.links = nodes, links
        self.seconds = 0.0

    def __iter__(self) -> Iterator[tuple[Integers, Integers]]:
        chance = np.random.default_rng(self.links)
        for start in range(0, self.links, LINKS_AT_ONCE):
            started = time.process_time()
            size = min(LINKS_AT_ONCE, self.links - start)
            sources = chance.integers(0, self.nodes, size)
            targets = (self.nodes * chance.random(size) ** 3).astype(np.int64)
            self.seconds += time.process_time() - started
            yield sources, targets


def measured(nodes: int, links: int) -> dict[str, Any]:
    made = Made(nodes, links)
    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        graph = build(made, nodes, Path(folder))
    built = time.process_time()
    found = pagerank(graph)
    ranked = time.process_time()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "links": graph.links,
        "build": built - started - made.seconds,
        "rank": ranked - built,
        "iterations": found.iterations,
        "error": found.error,
        "memory": memory,
        "difference": _difference(made, found.values) if nodes <= MOST_COMPARED else None,
    }


def _difference(made: Made, values: Any) -> float:
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(made.nodes))
    for sources, targets in made:
        pairs = zip(sources.tolist(), targets.tolist(), strict=True)
        graph.add_edges_from((source, target) for source, target in pairs if source != target)
    exact = nx.pagerank(graph, tol=1e-15, max_iter=1_000)
    return float(sum(abs(exact[node] - values[node]) for node in range(made.nodes)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("graphs", nargs="*", default=list(GRAPHS), metavar="NODES:LINKS")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--output", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    sizes = [tuple(map(int, graph.split(":"))) for graph in arguments.graphs]
    if arguments.one:
        print(json.dumps(measured(*sizes[0])))
        return
    rows = []
    for nodes, links in sizes:
        command = [sys.executable, "-m", "benchmarks.bench_pagerank", "--one", f"{nodes}:{links}"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        difference = "" if found["difference"] is None else f"{found['difference']:.1e}"
        rows.append(
            f"| {nodes:,} | {found['links']:,} | {found['build']:.1f} | {found['rank']:.1f} |"
            f" {found['iterations']} | {found['error']:.1e} | {found['memory']:.2f} | {difference} |"
        )
    graphs = " ".join(arguments.graphs)
    text = [
        "# PageRank",
        "",
        *header(f"python -m benchmarks.bench_pagerank {graphs}", n="see the table", recall="–"),
        "",
        "Seconds of processor time without making the links. The error bounds the L1 distance from the exact",
        "ranks. The last column is the L1 distance from the ranks of networkx, where that is measured.",
        "",
        "| nodes | different links | s, sorting | s, ranking | iterations | error | GiB | networkx |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
        "",
    ]
    give("\n".join(text), arguments.output)


if __name__ == "__main__":
    main()
