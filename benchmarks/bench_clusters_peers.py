"""The clusters of a collection beside what other libraries find of the same texts.

Run as ``python -m benchmarks.bench_clusters_peers FOLDER… [--out FILE]`` with the extras ``bench`` and
``offline`` installed. The texts are the visible texts of the HTML pages below the folders, each once, and of
ten distinct words or more. Each library is given them as JSON Lines, in a process of its own:

- **neardup**: ``build`` and ``clusters``, as the commands do them, in one process. Pages have no headlines
  here, because others take texts only.
- **gaoya**: its MinHash index; each text is asked for before the text is inserted. Bands as below.
- **datatrove**: its three steps of MinHash (signatures, buckets, clusters), one after the other. Words are
  split at white space, since its own way needs spaCy.

Shingles are of three words, and the bands of the others find .99 of the pairs of resemblance .83, as those
of neardup do: 18 bands of 8 values.

text-dedup is left out. Its version 0.4.0 did not install within three minutes: it asks for PySpark, unisim
with onnxruntime, and urllib3 2.0 or older.

The time is that of the process and its threads after imports; memory is the most that was resident.

Pairs are judged by the exact resemblance of their shingles, with the words of neardup. A pair is right at .83
or more. *Matches* are the pairs that a library names. *Clusters* are all pairs of two pages of one cluster;
those of datatrove are joined from match to match, and those of neardup are stars. *Pages* is the share of the
pages with any right pair of which a right pair was named.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import closing
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.bench_clusters import CHOICE, most_resident
from benchmarks.bench_latency import table
from benchmarks.provenance import give, header
from neardup.collection import clusters, engine
from neardup.collection.build import build
from neardup.collection.dataset import open_collection
from neardup.collection.inputs.tables import Names
from neardup.detection.detector import DetectorOptions
from neardup.scrapy.stored_responses import html_response
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import decode, parse, text_of_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from neardup.fingerprint.sketch import Hashes

    Pairs = set[tuple[int, int]]

SHINGLE = 3
BANDS, BAND = 18, 8
RESEMBLANCE = CHOICE.rule.verify


class Texts:
    """JSON Lines with a text each, by their places in the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[str]:
        with self.path.open(encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)["text"]


def neardup(texts: Texts, work: Path) -> Callable[[], dict[str, Pairs]]:
    engine.duckdb_module("clusters need")

    def run() -> dict[str, Pairs]:
        folder = work / "collection"
        build(folder, [str(texts.path)], Names(), DetectorOptions(), html_response, 1, lambda *_: None)
        collection = open_collection(folder)
        with closing(engine.DuckDB(clusters.job_folder(collection, CHOICE))) as made:
            found = clusters.find(collection, made, CHOICE)
            clusters.write(found, collection)
            matched = made.fetch(
                f"SELECT one.id AS a, other.id AS b FROM edge_{found.judged} AS edge"
                " JOIN numbered AS one ON a = one.ordinal"
                " JOIN numbered AS other ON b = other.ordinal"
            )
        places = {one: place for place, one in enumerate(pq.read_table(collection.pages)["id"].to_pylist())}

        def pairs(table: Any, one: str, other: str) -> list[tuple[int, int]]:
            ids = (table[one].to_pylist(), table[other].to_pylist())
            return [(places[a], places[b]) for a, b in zip(*ids, strict=True)]

        stars = pairs(found.relations, "duplicate_hash_id", "actual_hash_id")
        matches = {_sorted(*pair) for pair in pairs(matched, "a", "b")}
        return {"matches": matches, "clusters": within([*stars, *((first, first) for _, first in stars)])}

    return run


def gaoya(texts: Texts, work: Path) -> Callable[[], dict[str, Pairs]]:
    from gaoya.minhash import MinHashStringIndex

    def run() -> dict[str, Pairs]:
        index = MinHashStringIndex(
            32, RESEMBLANCE, BANDS, BAND, None, "word", True, (SHINGLE, SHINGLE), "vec"
        )
        found: Pairs = set()
        for number, text in enumerate(texts):
            found.update((other, number) for other in index.query(text))
            index.insert_document(number, text)
        return {"matches": found}

    return run


def datatrove(texts: Texts, work: Path) -> Callable[[], dict[str, Pairs]]:
    from datatrove.data import Document
    from datatrove.pipeline.dedup import minhash
    from datatrove.utils.logging import logger

    logger.remove()
    minhash.load_word_tokenizer = lambda _: Words()
    signatures, buckets, ends = (str(work / name) for name in ("signatures", "buckets", "clusters"))
    config = minhash.MinhashConfig(n_grams=SHINGLE, num_buckets=BANDS, hashes_per_bucket=BAND)

    def run() -> dict[str, Pairs]:
        first = minhash.MinhashDedupSignature(signatures, config)
        first.run(Document(text=text, id=str(number)) for number, text in enumerate(texts))
        for bucket in range(BANDS):
            second = minhash.MinhashDedupBuckets(
                signatures, buckets, config=config, only_dedup_in_index=False
            )
            second.run(rank=bucket, world_size=BANDS)
        minhash.MinhashDedupCluster(buckets, ends, config, save_cluster_id=True).run()
        matches = {
            _sorted(a, b)
            for path in Path(buckets).glob("*.dups")
            for _, a, _, b in struct.iter_unpack("<4I", path.read_bytes())
        }
        members = struct.iter_unpack("<2I", (Path(ends) / "000000.clusters").read_bytes())
        return {"matches": matches, "clusters": within(members)}

    return run


class Words:
    """Words for datatrove, which has lower case and no punctuation by then."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()


LIBRARIES = {"neardup": neardup, "gaoya": gaoya, "datatrove": datatrove}


def _sorted(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def within(members: Iterable[tuple[int, int]]) -> Pairs:
    """All pairs of two pages of one cluster, given pages and the cluster of each."""
    by_cluster: dict[int, set[int]] = defaultdict(set)
    for page, cluster in members:
        by_cluster[cluster].add(page)
    return {_sorted(*pair) for pages in by_cluster.values() for pair in combinations(pages, 2)}


def measure(name: str, path: Path, work: Path) -> dict[str, Any]:
    run = LIBRARIES[name](Texts(path), work)
    before, started = most_resident(), process_time()
    found = run()
    seconds = process_time() - started
    return {
        "seconds": seconds,
        "memory": most_resident(),
        "before": before,
        "found": {way: sorted(pairs) for way, pairs in found.items()},
    }


def exact(shingles: list[Hashes]) -> dict[tuple[int, int], float]:
    """The resemblance of each pair that is right, and of no other."""
    sizes = np.array([one.size for one in shingles])
    owners = np.repeat(np.arange(sizes.size), sizes)
    order = np.argsort(np.concatenate(shingles), kind="stable")
    owners, values = owners[order], np.concatenate(shingles)[order]
    found: dict[tuple[int, int], float] = {}
    for page, own in enumerate(shingles):
        starts, ends = np.searchsorted(values, own), np.searchsorted(values, own, side="right")
        both = np.zeros(sizes.size, dtype=np.int64)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            both[owners[start:end]] += 1  # a page has a shingle once
        resemblances = both / (sizes[page] + sizes - both)
        for other in np.flatnonzero(resemblances[:page] >= RESEMBLANCE).tolist():
            found[other, page] = float(resemblances[other])
    return found


def visible(folders: list[Path]) -> tuple[list[str], list[Hashes]]:
    """Distinct texts and the distinct shingles of each."""
    reader = DetectorOptions().make_reader()
    texts: dict[str, Hashes] = {}
    for path in html_files(folders):
        root = parse(decode(read_page(path)))
        text = "" if root is None else text_of_tree(root)
        if text not in texts and (reading := reader.read_text(text)).distinct_words >= CHOICE.min_features:
            texts[text] = np.unique(reading.shingles)
    return list(texts), list(texts.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        name, path, work = arguments.run
        print(json.dumps(measure(name, Path(path), Path(work))))
        return
    texts, shingles = visible(arguments.folders)
    right = exact(shingles)
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "texts.jsonl"
        lines = (
            json.dumps({"url": f"http://a.example/{number}", "text": text}) + "\n"
            for number, text in enumerate(texts)
        )
        path.write_text("".join(lines), encoding="utf-8")
        for name in LIBRARIES:
            work = Path(temporary) / name
            work.mkdir()
            command = [sys.executable, "-m", __spec__.name, "--run", name, str(path), str(work)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows += judged(name, json.loads(done.stdout), right)
    give(report(arguments, len(texts), len(right), rows), arguments.out)


def judged(name: str, result: dict[str, Any], right: dict[tuple[int, int], float]) -> list[list[object]]:
    rows: list[list[object]] = []
    pages = {page for pair in right for page in pair}
    for way, given in result["found"].items():
        pairs = {(a, b) for a, b in given}
        assert pairs, f"{name} finds nothing"
        hits = pairs & right.keys()
        named = {page for pair in hits for page in pair}
        cost = [f"{result['seconds']:.1f}", *(f"{result[of] / 1e6:,.0f}" for of in ("memory", "before"))]
        rows.append(
            [
                f"{name} {version(name)}", *cost, way, f"{len(pairs):,}", f"{len(hits) / len(pairs):.3f}",
                f"{len(hits) / len(right):.3f}", f"{len(named) / len(pages):.3f}",
            ]
        )  # fmt: skip
    return rows


def report(arguments: argparse.Namespace, texts: int, right: int, rows: list[list[object]]) -> str:
    names = " ".join(folder.name for folder in arguments.folders)
    columns = ["library", "processor s", "MB", "MB before", "pairs", "named", "precision", "recall", "pages"]
    lines = [
        "# Clusters beside other libraries",
        "",
        *header(
            f"python -m benchmarks.bench_clusters_peers {names}",
            n=f"{texts:,} distinct texts; {right:,} pairs of resemblance {RESEMBLANCE} or more",
            recall="measured, against the exact resemblance of all pairs",
        ),
        "",
        "Time and memory of one process each, from texts to clusters; *MB before*: with its imports alone.",
        f"Others have {BANDS} bands of {BAND} values, of shingles of {SHINGLE} words.",
        "",
        table(columns, rows),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
