"""The libraries of :mod:`benchmarks.bench_clusters_peers`, each in processes that load nothing else.

``python -m benchmarks.cluster_libraries LIBRARY STEP TEXTS FOLDER`` does one step, and writes what the step
took and found as JSON. ``TEXTS`` is a file in JSON Lines, and a text is known by its place there.
"""

from __future__ import annotations

import json
import resource
import struct
import sys
from collections import defaultdict
from contextlib import closing, redirect_stdout
from functools import partial
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from neardup.collection import clusters, engine
    from neardup.collection.dataset import Collection

    Pairs = set[tuple[int, int]]
    Found = dict[str, Pairs]
    Run = Callable[[], Callable[[], Found]]
    """What is measured; then what gives the pairs that it found."""

SHINGLE = 3
BANDS, BAND = 18, 8
RESEMBLANCE = 0.83


def texts_in(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def most_resident() -> int:
    """Bytes; not by getrusage, which knows the parent's, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def processor_seconds() -> float:
    """Of this process and its children that have ended."""
    spent = (resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in spent)


def neardup_build(path: Path, work: Path) -> Run:
    import pyarrow.parquet  # noqa: F401

    from neardup.collection.build import build
    from neardup.collection.inputs.tables import Names
    from neardup.detection.detector import DetectorOptions
    from neardup.scrapy.stored_responses import stored_page

    def run() -> Callable[[], Found]:
        given = Names(), DetectorOptions(), stored_page, 1
        build(work / "collection", [str(path)], *given, lambda *_: None)
        return dict

    return run


def neardup_clusters(path: Path, work: Path) -> Run:
    import duckdb  # noqa: F401
    import pyarrow.parquet as pq

    from neardup.collection import clusters, engine
    from neardup.collection.dataset import open_collection
    from neardup.detection.detector import DetectorOptions

    def run() -> Callable[[], Found]:
        collection, options = open_collection(work / "collection"), DetectorOptions()
        choice = clusters.Choice(options.make_rule(options.make_reader().features))
        assert choice.rule.verify == RESEMBLANCE
        made = engine.DuckDB(clusters.job_folder(collection, choice))
        found = clusters.find(collection, made, choice)
        clusters.write(found, collection)
        return partial(read, collection, made, found)

    def read(collection: Collection, made: engine.DuckDB, found: clusters.Found) -> Found:
        with closing(made):
            matched = made.fetch(
                f"SELECT one.id AS a, other.id AS b FROM edge_{found.judged} AS edge"
                " JOIN numbered AS one ON a = one.ordinal"
                " JOIN numbered AS other ON b = other.ordinal"
            )
        ids = pq.read_table(collection.pages, columns=["id"])["id"].to_pylist()
        places = {one: place for place, one in enumerate(ids)}

        def pairs(table: Any, one: str, other: str) -> list[tuple[int, int]]:
            ids = (table[one].to_pylist(), table[other].to_pylist())
            return [(places[a], places[b]) for a, b in zip(*ids, strict=True)]

        stars = pairs(found.relations, "duplicate_hash_id", "actual_hash_id")
        matches = {_sorted(*pair) for pair in pairs(matched, "a", "b")}
        return {"matches": matches, "clusters": within([*stars, *((first, first) for _, first in stars)])}

    return run


def gaoya(path: Path, work: Path) -> Run:
    from gaoya.minhash import MinHashStringIndex

    def run() -> Callable[[], Found]:
        index = MinHashStringIndex(
            32, RESEMBLANCE, BANDS, BAND, None, "word", True, (SHINGLE, SHINGLE), "vec"
        )
        found: Pairs = set()
        for number, text in enumerate(texts_in(path)):
            found.update((other, number) for other in index.query(text))
            index.insert_document(number, text)
        return lambda: {"matches": found}

    return run


def datatrove(path: Path, work: Path) -> Run:
    from datatrove.data import Document
    from datatrove.pipeline.dedup import minhash
    from datatrove.utils.logging import logger

    logger.remove()
    minhash.load_word_tokenizer = lambda _: Words()
    signatures, buckets, ends = (str(work / name) for name in ("signatures", "buckets", "clusters"))
    config = minhash.MinhashConfig(n_grams=SHINGLE, num_buckets=BANDS, hashes_per_bucket=BAND)

    def run() -> Callable[[], Found]:
        first = minhash.MinhashDedupSignature(signatures, config)
        first.run(Document(text=text, id=str(number)) for number, text in enumerate(texts_in(path)))
        for bucket in range(BANDS):
            second = minhash.MinhashDedupBuckets(
                signatures, buckets, config=config, only_dedup_in_index=False
            )
            second.run(rank=bucket, world_size=BANDS)
        minhash.MinhashDedupCluster(buckets, ends, config, save_cluster_id=True).run()
        return read

    def read() -> Found:
        matches = {
            _sorted(a, b)
            for found in Path(buckets).glob("*.dups")
            for _, a, _, b in struct.iter_unpack("<4I", found.read_bytes())
        }
        members = struct.iter_unpack("<2I", (Path(ends) / "000000.clusters").read_bytes())
        return {"matches": matches, "clusters": within(members)}

    return run


class Words:
    """Words for datatrove, which has lower case and no punctuation by then."""

    def word_tokenize(self, text: str) -> list[str]:
        return text.split()


def text_dedup(path: Path, work: Path) -> Run:
    from text_dedup import minhash

    options = {
        "path": "json", "data_files": path, "split": "train", "column": "text", "cache_dir": work / "cache",
        "output": work / "output", "num_proc": 1, "ngram": SHINGLE, "threshold": RESEMBLANCE,
        "num_perm": BANDS * BAND, "b": BANDS, "r": BAND,
    }  # fmt: skip
    given = ["--no-local", *(str(word) for name, value in options.items() for word in (f"--{name}", value))]

    def run() -> Callable[[], Found]:
        minhash.main(given, standalone_mode=False)
        return read

    def read() -> Found:
        texts = sum(1 for _ in texts_in(path))
        return {"clusters": within((number, minhash.uf.find(number)) for number in range(texts))}

    return run


LIBRARIES: dict[str, tuple[Callable[[Path, Path], Run], ...]] = {
    "neardup": (neardup_build, neardup_clusters),
    "gaoya": (gaoya,),
    "datatrove": (datatrove,),
    "text-dedup": (text_dedup,),
}


def _sorted(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def within(members: Iterable[tuple[int, int]]) -> Pairs:
    """All pairs of two pages of one cluster, given pages and the cluster of each."""
    by_cluster: dict[int, set[int]] = defaultdict(set)
    for page, cluster in members:
        by_cluster[cluster].add(page)
    return {_sorted(*pair) for pages in by_cluster.values() for pair in combinations(pages, 2)}


def main() -> None:
    name, step, path, work = sys.argv[1:]
    with redirect_stdout(sys.stderr):  # what libraries print
        run = LIBRARIES[name][int(step)](Path(path), Path(work))
        before, started = most_resident(), processor_seconds()
        read = run()
        taken = {
            "seconds": processor_seconds() - started,
            "memory": most_resident(),
            "before": before,
            "version": version(name),
        }
        found = read()
    print(json.dumps({**taken, "found": {way: sorted(pairs) for way, pairs in found.items()}}))


if __name__ == "__main__":
    main()
