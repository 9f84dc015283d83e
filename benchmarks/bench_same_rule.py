"""Verdicts of a collection beside those of a crawl of the same pages, truth by path.

Run as ``python -m benchmarks.bench_same_rule NAME=FOLDER[,FOLDER…] … [--out FILE]``. The folders of a set
hold versions of one site. Pages are the HTML files below them, at addresses of one host, in one random
order. Pages of one path are the same page.

Three ways judge them:

- *crawl*: ``Detector``, page after page, with all that is judged again at the end;
- *collection*: ``neardup collection build`` and ``clusters``;
- *as a whole*: the same collection without its folder ``rare``, as it was before that folder was made.

*Precision* is the share of the duplicates whose canonical page has the same path or text, *recall* the share
of the pages with an earlier page of the same path whose cluster holds such a page. *As in the crawl* are the
duplicates of both, of those of either.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time

import pyarrow.parquet as pq

from benchmarks.bench_latency import table
from benchmarks.provenance import give, header
from neardup.detection.detector import AGAIN, Detector, DetectorOptions
from neardup.detection.verdict import CANONICAL, Kind
from neardup.errors import NeardupError
from neardup.evaluation.name_scores import Judged, score_names
from neardup.text.folders import html_files, read_page

SEED = 0


@dataclass(frozen=True)
class Page:
    url: str
    name: str
    html: str


@dataclass(frozen=True)
class Way:
    """What one way says: the canonical page of each duplicate, by URL; and the processor seconds."""

    title: str
    canonical: dict[str, str]
    seconds: float
    evidence: dict[str, int]


def pages_of(title: str, folders: list[Path]) -> list[Page]:
    found = []
    for number, folder in enumerate(folders):
        for path in html_files([folder]):
            name = path.resolve().relative_to(folder.resolve()).as_posix()
            try:
                html = read_page(path).decode("utf-8", "replace")
            except NeardupError:
                continue
            found.append(Page(f"http://{title}.example/{number}/{name}", name, html))
    random.Random(SEED).shuffle(found)  # no secret
    return found


def crawled(pages: list[Page]) -> tuple[Way, list[str], dict[str, int]]:
    """The verdicts of a crawl; the URLs of the pages that can be compared, and their texts' digests."""
    started, detector = process_time(), Detector(DetectorOptions())
    texts: dict[str, int] = {}
    for page in pages:
        verdict = detector.examine_html(page.url, page.html)
        detector.judge_again(AGAIN)
        if (verdict.kind is Kind.DUPLICATE or verdict.kind in CANONICAL) and verdict.text_digest:
            texts[verdict.url] = verdict.text_digest
    detector.judge_all_again()
    canonical = {url: detector.canonical_of(url) for url in texts}
    found = {url: other for url, other in canonical.items() if other}
    return Way("crawl", found, process_time() - started, {}), list(texts), texts


def seconds_of(*arguments: object) -> float:
    """Processor seconds of a command of neardup, its start included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "neardup", "collection", *map(str, arguments)], check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def clustered(title: str, folder: Path) -> Way:
    seconds = seconds_of("clusters", folder)
    urls = {
        row["id"]: row["url"] for row in pq.read_table(folder / "pages", columns=["id", "url"]).to_pylist()
    }
    relations = pq.read_table(folder / "clusters" / "relations.parquet").to_pylist()
    evidence: dict[str, int] = {}
    for row in relations:
        evidence[row["evidence"]] = evidence.get(row["evidence"], 0) + 1
    found = {urls[row["duplicate_hash_id"]]: urls[row["actual_hash_id"]] for row in relations}
    return Way(title, found, seconds, evidence)


def scored(way: Way, order: list[str], names: dict[str, str], texts: dict[str, int]) -> list[str]:
    """Duplicates, precision and recall."""
    numbers: dict[str, int] = {}
    rows = {url: row for row, url in enumerate(order)}
    judged = [
        Judged(numbers.setdefault(names[url], len(numbers)), texts[url], rows[way.canonical.get(url, url)])
        for url in order
    ]
    met: set[int] = set()
    likest: dict[int, float] = {}
    for row, page in enumerate(judged):
        if page.name in met:
            likest[row] = 1.0
        met.add(page.name)
    pairs = score_names(judged, likest, early=0).pairs
    precision = f"{pairs.right / pairs.reported:.4f}" if pairs.reported else "–"
    recall = f"{pairs.found / pairs.wanted:.4f}" if pairs.wanted else "–"
    return [f"{len(way.canonical):,}", precision, recall]


def measured(title: str, folders: list[Path], work: Path) -> tuple[list[list[str]], list[str]]:
    pages = pages_of(title, folders)
    names = {page.url: page.name for page in pages}
    feed, out = work / f"{title}.jsonl", work / title
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with feed.open("w", encoding="utf-8") as lines:
        for number, page in enumerate(pages):
            date = (start + timedelta(seconds=number)).isoformat()
            lines.write(json.dumps({"url": page.url, "html": page.html, "date": date}) + "\n")
    crawl, order, texts = crawled(pages)
    build = seconds_of("build", feed, "--out", out, "--processes", 1)
    sizes = [sum(path.stat().st_size for path in (out / name).iterdir()) for name in ("pages", "rare")]
    frequencies = (out / "frequencies.parquet").stat().st_size
    by_rare = clustered("collection", out)
    shutil.rmtree(out / "rare")
    as_whole = clustered("as a whole", out)
    rows = []
    for way in (crawl, as_whole, by_rare):
        both = len(way.canonical.keys() & crawl.canonical.keys())
        either = len(way.canonical.keys() | crawl.canonical.keys())
        evidence = ", ".join(f"{name} {count:,}" for name, count in sorted(way.evidence.items()))
        scores = scored(way, order, names, texts)
        alike = f"{both:,} of {either:,}"
        rows.append([title, f"{len(order):,}", way.title, *scores, alike, evidence, f"{way.seconds:.1f}"])
    bytes_a_row = [f"{size / len(pages):.0f}" for size in sizes]
    return rows, [title, f"{len(pages):,}", *bytes_a_row, f"{frequencies:,}", f"{build:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="+", metavar="NAME=FOLDER[,FOLDER…]")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows: list[list[str]] = []
    costs: list[list[str]] = []
    with tempfile.TemporaryDirectory() as work:
        for one in arguments.sets:
            title, _, folders = one.partition("=")
            found, cost = measured(title, [Path(folder) for folder in folders.split(",")], Path(work))
            rows += found
            costs.append(cost)
    named = " ".join(f"{one.partition('=')[0]}=…" for one in arguments.sets)
    pages = sum(int(cost[1].replace(",", "")) for cost in costs)
    judged = ["set", "pages", "way", "duplicates", "precision", "recall", "as in the crawl", "evidence", "s"]
    text = [
        "# The same rule",
        "",
        *header(
            f"python -m benchmarks.bench_same_rule {named}",
            n=f"{pages:,} pages of {len(costs)} sets",
            recall="measured, truth by path",
        ),
        "",
        "*As a whole*: without what is rare, as collections were judged before. Processor seconds hold the",
        "start of the command, 1.5 s; those of the crawl are reading and judging, without a network.",
        "A set of one folder has different pages only, so that no duplicate there can be right.",
        "",
        table(judged, rows),
        "",
        "What it costs, bytes a row:",
        "",
        table(["set", "pages", "of `pages`", "of `rare`", "`frequencies.parquet` in all", "build s"], costs),
        "",
    ]
    give("\n".join(text), arguments.out)


if __name__ == "__main__":
    main()
