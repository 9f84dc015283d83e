"""Pi et al., table I and figures 4 to 6: near-duplicates among the results of queries, on real pages.

``python -m benchmarks.bench_clean FOLDER… --topics FILE --work FOLDER [--out FILE]`` builds a collection of
the pages in the folders, with links and PageRank, and its index. What stands in the work folder already is
gone on with. Then ``neardup collection clean`` marks pages by the queries of two logs:

- ``topics``: the first 2,000 of the topics (``NUMBER:QUERY``, packed by gzip) that hit something. How often
  people asked them is not known. So they stand in the order of their file.
- ``anchors``, a simulated log: the 2,000 most frequent texts of links that hit something, by their counts.

Each log is done for the maximum distances 3, 2, 1 and 0, each time on all pages, one query after the other on
what those before have left. With distance 3, pages are marked in parallel as well, by 1 and by 8 processes.
A mark is right if the resemblance of the two pages is .8 or more, estimated from sketches of 1,024 places.
An SVG file with the figures is written beside the result file. Seconds are processor time.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import resource
import textwrap
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.provenance import give, header
from benchmarks.thesis_plots import shortened
from neardup.cli.main import main as neardup
from neardup.collection.cleaning.marking import Marker
from neardup.collection.cleaning.marks import marks_file
from neardup.collection.cleaning.pages import CleanPages
from neardup.collection.cleaning.rules import Rules, Steps
from neardup.collection.cleaning.search_log import clean_query
from neardup.collection.cleaning.text_index import TextIndex, index_file
from neardup.collection.cleaning.work import Query
from neardup.collection.dataset import open_collection, page_files
from neardup.text.folders import files_below, is_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

DISTANCES = (3, 2, 1, 0)
QUERIES = 2_000
"""As many as the paper's."""

PROCESSES = (1, 8)

_DEPTH = 1_000
_ANCHORS_OF_EVERY = 10
"""Pages of which one is read for the texts of its links: the frequent ones stand on all of them."""

_ANCHOR = re.compile(rb"<a\s[^>]*\bhref[^>]*>(.*?)</a>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>|&[#\w]+;")
_LONGEST = 60
_PAPER_PAGES = 1_612_633
_PAPER = {
    3: (31_097, 25_996, 23_393, 23_359, 22_344, 79_463, 118_171),
    2: (28_009, 23_071, 20_672, 20_555, 19_520, 70_784, 107_558),
    1: (24_096, 19_465, 17_490, 17_211, 16_034, 60_012, 90_255),
    0: (20_393, 16_155, 14_486, 14_101, 13_044, 50_706, 76_722),
}
"""Pages that were removed by the queries of each range (table I)."""

_PAPER_SECONDS = {3: 12_293, 2: 12_687, 1: 12_706, 0: 13_468}
"""The sums of the times of table I."""


def processor_seconds() -> float:
    """Of this process and of those that it has started and that have ended."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def run(*arguments: object) -> Any:
    """What a command of neardup prints, as JSON."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        code = neardup([str(argument) for argument in (*arguments, "--format", "json")])
    if code:
        raise SystemExit(code)
    return json.loads(printed.getvalue())


def made(folders: list[Path], work: Path) -> tuple[Path, dict[str, float]]:
    """The collection, and the processor seconds of its steps."""
    out, seconds = work / "collection", {}
    empty = work / "empty.tsv"
    empty.write_text("")
    # The processes of a build are none of this one's, so that their time is not known here.
    run("collection", "build", *folders, "--out", out)
    steps: dict[str, tuple[object, ...]] = {
        "pagerank": ("collection", "pagerank", out),
        "index": ("collection", "clean", out, "--queries", empty, "--inputs", *folders),
    }
    for name, command in steps.items():
        started = processor_seconds()
        run(*command)
        seconds[name] = processor_seconds() - started
    return out, seconds


def topics(path: Path) -> Iterator[tuple[str, int]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield clean_query(line.partition(":")[2]), 1


def anchors(folders: Iterable[Path]) -> list[tuple[str, int]]:
    """Texts of links and how often they stand in a tenth of the pages, the most frequent first."""
    counted: Counter[str] = Counter()
    for folder in folders:
        pages = [path for path in files_below(folder, lambda _: None) if is_page(path.name)]
        for path in sorted(pages)[::_ANCHORS_OF_EVERY]:
            for found in _ANCHOR.findall(path.read_bytes()):
                text = clean_query(_TAG.sub(" ", found.decode("utf-8", "replace")))
                if 0 < len(text) <= _LONGEST:
                    counted[text.casefold()] += 1
    return sorted(counted.items(), key=lambda one: (-one[1], one[0]))


def hitting(found: Iterable[tuple[str, int]], index: TextIndex, path: Path) -> tuple[int, int]:
    """Write a log of the first queries that hit something; how many these are, and of how many."""
    lines: list[str] = []
    tried = 0
    for text, asked in found:
        tried += 1
        if next(index.results(Query(tried, text, asked, text)), None) is not None:
            lines.append(f"{text}\t{asked}\n")
        if len(lines) == QUERIES:
            break
    path.write_text("".join(lines))
    return len(lines), tried


def full_queries(out: Path, log: Path) -> list[float]:
    """The times of the queries of a log that have 1,000 results or more, in seconds."""
    rules = Rules(max_distances=Steps.of("3", "max_distance"), depths=Steps.of(str(_DEPTH), "depth"))
    collection = open_collection(out)
    pages = CleanPages(collection, rules)
    marker = Marker(pages, TextIndex(index_file(collection), pages), rules)
    seconds = []
    for place, line in enumerate(log.read_text().splitlines(), 1):
        text = line.rpartition("\t")[0]
        started = time.process_time()
        found = marker.mark(Query(place, text, 1, text))
        if found.results >= _DEPTH:
            seconds.append(time.process_time() - started)
    return seconds


def table_of_log(out: Path, log: Path) -> tuple[dict[int, Any], Any]:
    """What the sequential way comes to for each distance; the parallel way for the first, which is the same
    by however many processes.
    """
    sequential = {}
    for distance in DISTANCES:
        done = run(
            "collection", "clean", out, "--queries", log, "--way", "sequential", "--max-distance", distance
        )
        sequential[distance] = {**done["ways"]["sequential"], "applied": applied(out, "sequential")}
    parallel, written = [], set()
    for processes in PROCESSES:
        done = run(
            "collection", "clean", out, "--queries", log, "--way", "parallel", "--max-distance", DISTANCES[0],
            "--processes", processes,
        )  # fmt: skip
        parallel.append(done["ways"]["parallel"])
        written.add(hashlib.sha256(marks_file(open_collection(out)).read_bytes()).hexdigest())
    assert len(written) == 1, "the marks depend on the number of processes"
    parallel[0]["applied"] = applied(out, "parallel")
    return sequential, parallel[0]


def applied(out: Path, way: str) -> dict[str, int]:
    """What ``--apply`` takes out; all of it is put back."""
    files = {path: path.read_bytes() for path in page_files(open_collection(out))}
    found: dict[str, int] = run("collection", "clean", out, "--apply", way)
    with redirect_stdout(io.StringIO()):
        assert neardup(["collection", "clean", str(out), "--undo"]) == 0
    assert files == {path: path.read_bytes() for path in files}, "--undo does not put all back"
    return found


def tables(name: str, sequential: dict[int, Any], parallel: Any, pages: int) -> list[str]:
    lines = [
        "| k | queries | with results | results | removed | seconds | removed by the paper |",
        "|---|---|---|---|---|---|---|",
    ]
    for distance, found in sequential.items():
        for number, one in enumerate(found["ranges"]):
            lines.append(
                f"| {distance} | {one['first']}–{one['last']} | {one['hit']:,} | {one['results']:,}"
                f" | {one['marked']:,} | {one['seconds']:.2f} | {_PAPER[distance][number]:,} |"
            )
    lines += [
        "",
        "| k | removed | of all pages, % | right, % | s | s a query | paper: of all, % | paper: s a query |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for distance, found in sequential.items():
        seconds = sum(one["seconds"] for one in found["ranges"])
        queries = sum(one["queries"] for one in found["ranges"])
        lines.append(
            f"| {distance} | {found['marked']:,} | {100 * found['marked'] / pages:.1f} | {_right(found)}"
            f" | {seconds:.1f} | {seconds / queries:.4f}"
            f" | {100 * sum(_PAPER[distance]) / _PAPER_PAGES:.1f} | {_PAPER_SECONDS[distance] / 2_000:.1f} |"
        )
    ways = {"sequential": sequential[DISTANCES[0]], "parallel": parallel}
    lines += [
        "",
        f"| way, k = {DISTANCES[0]} | marked | right, % | results | taken out | unlike | orphans |",
        "|---|---|---|---|---|---|---|",
    ]
    for way, found in ways.items():
        results = sum(one["results"] for one in found["ranges"])
        after = " | ".join(f"{found['applied'][one]:,}" for one in ("removed", "unlike", "orphans"))
        lines.append(f"| {way} | {found['marked']:,} | {_right(found)} | {results:,} | {after} |")
    return [f"## {name}", "", *lines, ""]


def _right(found: Any) -> str:
    right, marked = (sum(share[name] for share in found["shares"]) for name in ("right", "marked"))
    return f"{100 * right / marked:.1f}" if marked else "–"


def draw(logs: dict[str, dict[int, Any]], path: Path) -> None:
    """Figures 4 to 6, with a line or bars for each log."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    FigureCanvasSVG(figure)
    fourth, fifth, sixth = figure.subplots(1, 3)
    values: tuple[tuple[Any, Callable[[Any], float]], ...] = (
        (fifth, lambda found: found["marked"]),
        (sixth, lambda found: sum(one["seconds"] for one in found["ranges"])),
    )
    for number, (name, sequential) in enumerate(logs.items()):
        ranges = sequential[DISTANCES[0]]["ranges"]
        at = np.arange(len(ranges))
        fourth.plot(at, [one["marked"] / one["queries"] for one in ranges], "o-", ms=3, label=name)
        if number == 0:
            fourth.set_xticks(
                at, [f"{one['first']}–{one['last']}" for one in ranges], rotation=40, fontsize=7
            )
        for axes, value in values:
            heights = [value(sequential[distance]) for distance in DISTANCES]
            axes.bar(np.arange(len(DISTANCES)) + 0.4 * number, heights, 0.38, label=name)
    for axes, title, unit in (
        (fourth, "4: removed by a query, k = 3", "pages"),
        (fifth, "5: removed by all queries", "pages"),
        (sixth, "6: processor time", "s"),
    ):
        axes.set_title(title, fontsize=10)
        axes.set_ylabel(unit)
        axes.set_ylim(0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
        if axes is not fourth:
            axes.set_xticks(np.arange(len(DISTANCES)) + 0.2, [f"k = {one}" for one in DISTANCES])
    text = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "neardup"}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    path.write_text(shortened(text.getvalue()), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--topics", type=Path, required=True, metavar="FILE")
    parser.add_argument("--work", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("clean.md"))
    arguments = parser.parse_args()
    arguments.work.mkdir(exist_ok=True)
    out, seconds = made(arguments.folders, arguments.work)
    collection = open_collection(out)
    pages = CleanPages(
        collection, Rules(max_distances=Steps.of("3", "k"), depths=Steps.of(str(_DEPTH), "depth"))
    )
    index = TextIndex(index_file(collection), pages)
    given = {"topics": topics(arguments.topics), "anchors": anchors(arguments.folders)}
    logs, ways, tried, full = {}, {}, {}, {}
    for name, queries in given.items():
        log = arguments.work / f"{name}.tsv"
        tried[name] = hitting(queries, index, log)
        full[name] = full_queries(out, log)
        logs[name], ways[name] = table_of_log(out, log)
    draw(logs, arguments.out.with_suffix(".svg"))
    lines = [
        "# Clean-up by queries: Pi et al., table I and figures 4 to 6",
        "",
        *header(
            "python -m benchmarks.bench_clean FOLDER… --topics FILE --work FOLDER",
            n=f"{len(pages):,} pages of {len(arguments.folders)} folders; {tried['topics'][0]:,} topics;"
            f" {tried['anchors'][0]:,} anchor texts; depth {_DEPTH:,}",
            recall="not of all duplicates: only those that a query brings together are seen",
        ),
        f"- load of the machine when done: {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores",
        "",
        *textwrap.wrap(
            f"Pages: {', '.join(folder.name for folder in arguments.folders)}.", 105, break_on_hyphens=False
        ),
        "Search: SQLite FTS5, pages with all words of a query, ranked by BM25.",
        "",
        *_introduction(seconds, full, tried, arguments.out.with_suffix(".svg").name),
    ]
    for name, sequential in logs.items():
        title = (
            "Anchor texts by their counts, a simulated log"
            if name == "anchors"
            else "Topics, as in their file"
        )
        lines += tables(title, sequential, ways[name], len(pages))
    give("\n".join(lines), arguments.out)


def _introduction(
    seconds: dict[str, float],
    full: dict[str, list[float]],
    tried: dict[str, tuple[int, int]],
    picture: str,
) -> list[str]:
    lines = [
        "k is the maximum distance of two fingerprints. Each k begins with all pages. Removed pages are",
        "marked pages; nothing is deleted. A mark is right if the estimated resemblance of the page and the",
        "page that is kept is .8 or more. `--apply` takes right ones out. Unlike pages and orphans stay: the",
        "kept page is not that similar, or is taken out itself.",
        "",
        f"![Figures 4 to 6]({picture})",
        "",
        "| step | processor seconds |",
        "|---|---|",
        *(f"| {name} | {value:.1f} |" for name, value in seconds.items()),
        "",
        "| log | queries tried | with results | with 1,000 or more | their mean, s | median | 99 % | most |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, times in full.items():
        hit, of = tried[name]
        found = "–" + " | –" * 3
        if times:
            found = " | ".join(
                f"{value:.4f}" for value in (np.mean(times), *np.percentile(times, (50, 99)), max(times))
            )
        lines.append(f"| {name} | {of:,} | {hit:,} | {len(times):,} | {found} |")
    return [*lines, ""]


if __name__ == "__main__":
    main()
