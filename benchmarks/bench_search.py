"""The two embedded searches of a clean-up beside each other: SQLite FTS5 and tantivy.

Run as ``python -m benchmarks.bench_search FOLDER… --work FOLDER [--output FILE]``. Each FOLDER of HTML files
is a part of one collection, made below the work folder. Both indexes get the same texts. The queries are the
texts of links, as ``benchmarks.bench_clean`` counts them. Of those with 1,000 results or more, each search
finds the first 1,000, the best time of three, in turn. What is told of results: how many pages both searches
find, and how many marks are the same.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bench_clean import anchors, processor_seconds, run
from benchmarks.provenance import give, header
from neardup.collection.cleaning import tantivy_index, text_index
from neardup.collection.cleaning.indexes import Engine, open_index
from neardup.collection.cleaning.marking import Marker
from neardup.collection.cleaning.pages import CleanPages
from neardup.collection.cleaning.rules import Rules, Steps
from neardup.collection.cleaning.work import Query
from neardup.collection.dataset import open_collection

if TYPE_CHECKING:
    from neardup.collection.cleaning.tantivy_index import TantivyIndex
    from neardup.collection.cleaning.text_index import TextIndex

DEPTH = 1_000
QUERIES = 500
ROUNDS = 3


def first_results(index: TextIndex | TantivyIndex, query: Query) -> tuple[float, list[int]]:
    """Processor seconds, the best of the rounds, and the rows of the first results."""
    seconds: list[float] = []
    rows: list[int] = []
    for _ in range(ROUNDS):
        started = time.process_time()
        found = next(index.results(query), None)
        seconds.append(time.process_time() - started)
        rows = [] if found is None else found.tolist()
    return min(seconds), rows


def size_of(path: Path) -> int:
    return sum(one.stat().st_size for one in path.rglob("*")) if path.is_dir() else path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--output", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    arguments.work.mkdir(exist_ok=True)
    out, empty = arguments.work / "collection", arguments.work / "empty.tsv"
    empty.write_text("")
    run("collection", "build", *arguments.folders, "--out", out)
    run("collection", "pagerank", out)
    making: dict[Engine, float] = {}
    for engine in Engine:
        started = processor_seconds()
        run(
            "collection", "clean", out, "--search", engine.value, "--queries", empty, "--inputs",
            *arguments.folders,
        )  # fmt: skip
        making[engine] = processor_seconds() - started
    collection = open_collection(out)
    rules = Rules(max_distances=Steps.of("3", "k"), depths=Steps.of(str(DEPTH), "depth"))
    pages = CleanPages(collection, rules)
    indexes = {engine: open_index(collection, engine, pages) for engine in Engine}
    times: dict[Engine, list[float]] = {engine: [] for engine in Engine}
    whole: dict[Engine, list[float]] = {engine: [] for engine in Engine}
    common, marks = [], []
    for place, (text, _) in enumerate(anchors(arguments.folders), 1):
        query = Query(place, text, 1, text)
        results = {engine: first_results(index, query) for engine, index in indexes.items()}
        if min(len(rows) for _, rows in results.values()) < DEPTH:
            continue
        marked = {}
        for engine, (seconds, _) in results.items():
            times[engine].append(seconds)
            started = time.process_time()
            found = Marker(pages, indexes[engine], rules).mark(query)
            whole[engine].append(time.process_time() - started)
            marked[engine] = {mark.page for mark in found.marks}
        one, other = (set(rows) for _, rows in results.values())
        common.append(len(one & other) / DEPTH)
        either = marked[Engine.SQLITE] | marked[Engine.TANTIVY]
        marks.append(len(marked[Engine.SQLITE] & marked[Engine.TANTIVY]) / max(1, len(either)))
        if len(common) == QUERIES:
            break
    places = {
        Engine.SQLITE: text_index.index_file(collection),
        Engine.TANTIVY: tantivy_index.index_folder(collection),
    }
    table = [
        f"| {engine} | {making[engine]:.1f} | {size_of(places[engine]) / 1e6:.1f} |"
        f" {1e3 * statistics.mean(times[engine]):.2f} | {1e3 * _percentile(times[engine]):.2f} |"
        f" {1e3 * statistics.mean(whole[engine]):.2f} | {1e3 * _percentile(whole[engine]):.2f} |"
        for engine in Engine
    ]
    lines = [
        "# Embedded searches of a clean-up",
        "",
        *header(
            "python -m benchmarks.bench_search FOLDER… --work FOLDER",
            n=f"{len(pages):,} pages, {len(common):,} queries with {DEPTH:,} results or more",
            recall="-",
        ),
        "",
        f"Pages: {', '.join(folder.name for folder in arguments.folders)}.",
        "Times are ms of processor time: of the first 1,000 results alone, and of the query with its marks.",
        "",
        "| search | making the index, s | MB | results, mean | results, 99 % | query, mean | query, 99 % |",
        "|---|---|---|---|---|---|---|",
        *table,
        "",
        f"Of the first {DEPTH:,} results, both searches find {100 * statistics.mean(common):.1f} %.",
        f"Of the pages that either marks, both mark {100 * statistics.mean(marks):.1f} %.",
        "",
    ]
    give("\n".join(lines), arguments.output)


def _percentile(seconds: list[float]) -> float:
    """The time that 99 % of queries do not exceed."""
    return sorted(seconds)[max(0, round(0.99 * len(seconds)) - 1)]


if __name__ == "__main__":
    main()
