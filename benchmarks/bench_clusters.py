"""Clusters of a collection: processor time, memory, and recall against an exact comparison of all sketches.

Run as ``python -m benchmarks.bench_clusters FOLDER… [--rows 1000000] [--sample 1000] [--out FILE]``. The rows
are made of the sketches of the real pages below the folders (``made_collection``): once as they are, once
with half of the rows near-copies of one page, and once with half of the rows pages of one template.

Each collection is clustered by a process of its own. Processor time is that of the process and its threads,
memory the most that was resident. Then a sample of the rows is compared with all rows, by the rule. Numbers
are shown only after the relations have been found to be stars.

- *pairs*: the share of these pairs that are among the candidates, by resemblance; only where no block is
  large.
- *rows*: the share of the sampled rows with any such pair of which at least one is among the candidates.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks import made_collection
from benchmarks.bench_latency import table
from benchmarks.provenance import header
from neardup.collection import clusters, engine
from neardup.collection.dataset import open_collection
from neardup.detection.detector import DetectorOptions
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from benchmarks.made_collection import Made

_MEGABYTE = 1e6
_CASES = (
    ("no template", 0.0, 0.95),
    ("half near-copies of one page", 0.5, 0.95),
    ("half of one template", 0.5, 0.7),
)
_STEPS = (0.83, 0.84, 0.86, 0.9, 1.0)
_READER = DetectorOptions().make_reader()
CHOICE = clusters.Choice(DetectorOptions().make_rule(_READER.features))


def cluster(folder: Path, heads: int) -> dict[str, Any]:
    """Cluster a collection in this process; its tables are kept."""
    clusters.HEADS = heads
    collection = open_collection(folder)
    stages: list[tuple[str, float]] = []

    def on_stage(name: str) -> None:
        stages.append((name.partition(",")[0], process_time()))

    started, began = process_time(), perf_counter()
    with closing(engine.DuckDB(clusters.job_folder(collection, CHOICE))) as made:
        found = clusters.find(collection, made, CHOICE, on_stage)
        clusters.write(found, collection)
        seconds, wall = process_time() - started, perf_counter() - began
        counts = {name: made.count(name) for name in ("page", "pair")}
        counts["edge"] = made.count(f"edge_{found.judged}")
    ends = [at for _, at in stages[1:]] + [started + seconds]
    by_stage: dict[str, float] = {}
    for (name, at), end in zip(stages, ends, strict=True):
        by_stage[name] = by_stage.get(name, 0.0) + end - at
    return {
        "seconds": seconds,
        "wall": wall,
        "memory": most_resident(),
        "input": _bytes(collection.pages),
        "tables": _bytes(collection.clusters / "work"),
        "stages": by_stage,
        "judged": found.judged,
        "bands": f"{found.bands.number} × {found.bands.width}",
        "duplicates": found.relations.num_rows,
        **counts,
    }


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.parquet"))


def most_resident() -> int:
    """Bytes; not by getrusage, which knows the parent's, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def exact(
    made: Made, rows: Sequence[int]
) -> Iterator[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
    """The rows that each of some rows matches by the rule, and how much they resemble it.

    Made pages of one cluster have one headline, and others have headlines of their own.
    """
    for row in rows:
        near = np.bitwise_count(made.values ^ made.values[row]) <= CHOICE.rule.max_distance
        others = np.flatnonzero(near)
        others = others[(others != row) & (made.headlines[others] == made.headlines[row]).all(axis=1)]
        resemblances = sketch.compact_estimates(made.sketches[others], made.sketches[row])
        alike = resemblances >= CHOICE.rule.verify
        yield row, others[alike], resemblances[alike]


def recall(made: Made, folder: Path, sample: int) -> dict[str, Any]:
    """Shares found, of the pairs and of the rows."""
    relations = pq.read_table(folder / "clusters" / "relations.parquet")
    canonical, duplicate = (relations[name].to_numpy() for name in ("actual_hash_id", "duplicate_hash_id"))
    assert not np.isin(canonical, duplicate).any()
    assert np.unique(duplicate).size == duplicate.size
    work = folder / "clusters" / "work"
    numbered = pq.read_table(work / "numbered")
    first = np.empty(len(made.values), dtype=np.int64)
    first[numbered["id"].to_numpy()] = numbered["first"].to_numpy()
    pairs = pq.read_table(work / "pair")
    keys = np.sort((pairs["a"].to_numpy() << 32) + pairs["b"].to_numpy())
    rows = np.random.default_rng(21).choice(len(made.values), sample, replace=False).tolist()
    found: list[tuple[float, bool]] = []
    with_pairs: list[bool] = []
    for row, others, resemblances in exact(made, rows):
        a, b = np.minimum(first[others], first[row]), np.maximum(first[others], first[row])
        places = np.minimum(np.searchsorted(keys, (a << 32) + b), keys.size - 1)
        hits = (keys[places] == (a << 32) + b) | (a == b)
        if others.size:
            with_pairs.append(bool(hits.any()))
        # Of a page of a large cluster a hundred will do.
        found += zip(resemblances[:100].tolist(), hits[:100].tolist(), strict=True)
    return {"pairs": found, "rows": with_pairs}


def by_resemblance(pairs: list[tuple[float, bool]]) -> list[list[object]]:
    shown: list[list[object]] = []
    for low, high in itertools.pairwise(_STEPS):
        hits = [hit for resemblance, hit in pairs if low <= resemblance < high]
        shown.append([f"{low} to {high}", f"{len(hits):,}", f"{np.mean(hits):.4f}" if hits else "–"])
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--case", choices=[name for name, *_ in _CASES], help="default: all")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sample", type=int, default=1000)
    parser.add_argument("--heads", type=int, nargs="+", default=[clusters.HEADS])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--cluster", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.cluster:
        print(json.dumps(cluster(arguments.cluster, arguments.heads[0])))
        return
    costs: list[list[object]] = []
    stages: list[list[object]] = []
    pairs: list[list[object]] = []
    for name, template, likeness in _CASES:
        if arguments.case not in {None, name}:
            continue
        made = made_collection.rows(arguments.rows, arguments.folders, template=template, likeness=likeness)
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "collection"
            made_collection.write(made, folder)
            for heads in [clusters.HEADS] if template else arguments.heads:
                command = [
                    sys.executable,
                    "-m",
                    __spec__.name,
                    "--cluster",
                    str(folder),
                    "--heads",
                    str(heads),
                ]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                cost = json.loads(done.stdout)
                found = recall(made, folder, arguments.sample)
                rows = found["rows"]
                costs.append(
                    [
                        name, heads, cost["bands"], f"{cost['page']:,}", f"{cost['pair']:,}",
                        f"{cost['edge']:,}", f"{cost['duplicates']:,}", cost["judged"],
                        f"{cost['seconds']:.0f}", f"{cost['wall']:.0f}",
                        f"{cost['memory'] / _MEGABYTE:,.0f}", f"{cost['input'] / arguments.rows:,.0f}",
                        f"{cost['tables'] / arguments.rows:,.0f}", f"{np.mean(rows):.4f} of {len(rows)}",
                    ]
                )  # fmt: skip
                print(costs[-1], flush=True)
                if not template:
                    pairs += [[heads, *row] for row in by_resemblance(found["pairs"])]
                    stages += [[heads, stage, f"{seconds:.1f}"] for stage, seconds in cost["stages"].items()]
    text = report(arguments, costs, pairs, stages)
    print(text)
    if arguments.out:
        arguments.out.write_text(text)


def report(
    arguments: argparse.Namespace,
    costs: list[list[object]],
    pairs: list[list[object]],
    stages: list[list[object]],
) -> str:
    command = "python -m benchmarks.bench_clusters FOLDER…"
    folders = ", ".join(path.name for path in arguments.folders)
    heads = " ".join(map(str, arguments.heads))
    case = f' --case "{arguments.case}"' if arguments.case else ""
    lines = [
        "# Clusters of a collection",
        "",
        *header(
            f"{command} --rows {arguments.rows} --sample {arguments.sample} --heads {heads}{case}",
            n=f"{arguments.rows:,} rows made of the sketches of real pages ({folders})",
            recall=f"measured, {arguments.sample:,} rows compared with all; asked for {CHOICE.recall}",
        ),
        "",
        f"DuckDB with a memory limit of {engine.MEMORY}; processor seconds, most memory resident.",
        "*Heads*: with how many pages of a block each page of the block is compared.",
        "*Bytes a row*: of the collection in Parquet; *of tables*: of all that the job writes in Parquet.",
        "*Rows found*: the share of the sampled rows with a match of which at least one match is among the",
        "candidates.",
        "",
        table(
            [
                "case", "heads", "bands", "distinct rows", "candidates", "matches", "duplicates", "judged",
                "processor s", "s", "MB", "bytes a row", "of tables", "rows found",
            ],
            costs,
        ),
        "",
        "Pairs that are candidates, without a template:",
        "",
        table(["heads", "resemblance", "pairs", "found"], pairs),
        "",
        "Processor seconds by stage, without a template:",
        "",
        table(["heads", "stage", "processor s"], stages),
        "",
    ]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    main()
