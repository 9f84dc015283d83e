"""What :mod:`benchmarks.bench_native` measures in a process, with whichever neardup its Python has.

``PYTHON benchmarks/native_probes.py MEASURE ARGUMENT`` prints a JSON object. The file imports nothing of this
folder, so that an older neardup can be measured with it.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

ROUNDS = 5
QUERIES = 20_000
BATCH = 1_000_000
PAGES = 300


def skewed(count: int, seed: int) -> npt.NDArray[np.uint64]:
    """Fingerprints whose bits are one-sided, as those of pages are: each bit is set with a probability of its
    own (beta .5, .5).
    """
    shares = np.random.default_rng(1).beta(0.5, 0.5, 64)
    rng = np.random.default_rng(seed)
    made = np.empty(count, dtype=np.uint64)
    for start in range(0, count, 1 << 20):
        size = min(1 << 20, count - start)
        bits = rng.random((size, 64), dtype=np.float32) < shares
        made[start : start + size] = np.packbits(bits, axis=1).view(">u8").ravel()
    return made


def queries(values: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
    """Edited copies of fingerprints: bit weights are normal, and an edit adds a normal difference to each."""
    rng = np.random.default_rng(3)
    bits = np.unpackbits(values.astype(">u8").view(np.uint8).reshape(-1, 8), axis=1)
    weights = np.abs(rng.normal(size=bits.shape)) * np.where(bits, 1.0, -1.0)
    weights += rng.normal(scale=0.05, size=weights.shape)
    return np.packbits(weights > 0.0, axis=1).view(">u8").ravel().astype(np.uint64), weights


def timed(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Median of some rounds, in seconds of processor time."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        taken.append(time.process_time() - started)
    return statistics.median(taken)


def read(folder: str) -> dict[str, Any]:
    """``read_tree`` of the pages of a folder, milliseconds a page: the least of some rounds of each page,
    since everything else that a machine does only adds.
    """
    from lxml import etree

    from neardup.detection.detector import DetectorOptions

    reader = DetectorOptions().make_reader()
    bodies = (path.read_bytes() for path in sorted(Path(folder).rglob("*.html")))
    pages = [body for body in bodies if b"<body" in body.lower()][:PAGES]
    total, values = 0.0, []
    for body in pages:
        best = float("inf")
        for _ in range(ROUNDS):
            root = etree.fromstring(body, etree.HTMLParser(encoding="utf-8"))
            started = time.perf_counter()
            reading = reader.read_tree("http://host/page.html", root)
            best = min(best, time.perf_counter() - started)
        total += best
        values.append(0 if reading.fingerprint is None else reading.fingerprint.value)
    return {"read_tree, ms": 1000 * total / len(pages), "_pages": len(pages), "_values": hash(tuple(values))}


def index(count: str) -> dict[str, Any]:
    """Searches and insertions, in microseconds; bytes a fingerprint."""
    from neardup.fingerprint.simhash import Fingerprint
    from neardup.index.psm.psm_index import PSMIndex

    n = int(count)
    warm = PSMIndex()
    warm.extend(skewed(20_000, 9), np.arange(20_000))
    for row in range(1000):
        warm.add(row, row)
    values = skewed(n, 2)
    made = PSMIndex(max_distance=3, recall=0.95)
    made.extend(values[: n // 2], np.arange(n // 2))
    adding = 0.0
    for start in range(n // 2, n, 1 << 20):
        some = values[start : start + (1 << 20)].tolist()
        started = time.process_time()
        for row, value in enumerate(some, start):
            made.add(value, row)
        adding += time.process_time() - started
    stored = values[:: n // QUERIES]
    near, weights = queries(stored)
    asked = [Fingerprint(value, weight) for value, weight in zip(near.tolist(), weights, strict=True)]
    warm.find_first(asked[0])  # in a version with numba, all is compiled by now
    away = (np.bitwise_count(near ^ stored) <= 3) & (near != stored)
    found = [made.find_first(query) is not None for query in asked]
    seconds = timed(lambda: [made.find_first(query) for query in asked])
    rows = iter(range(n, n + 2 * ROUNDS * len(asked)))

    def as_a_crawl_does() -> None:
        for query in asked:
            made.find_first(query)
            made.add(query.value, next(rows))

    as_crawl = timed(as_a_crawl_does)
    return {
        "find_first, µs": 1e6 * seconds / len(asked),
        "add, µs": 1e6 * adding / (n - n // 2),
        "find_first and add, µs": 1e6 * as_crawl / len(asked),
        "bytes a fingerprint": made.nbytes / len(made),
        "recall": float(np.mean(np.array(found)[away])),
    }


def growth(count: str) -> dict[str, Any]:
    """Longest single ``add``, in milliseconds of processor time, and its memory, from an empty index on."""
    from neardup.index.psm.psm_index import PSMIndex

    warm = PSMIndex()
    for row, value in enumerate(skewed(20_000, 9).tolist()):
        warm.add(value, row)
    before, longest, made = _resident(), [0], PSMIndex(max_distance=3, recall=0.95)
    rng = np.random.default_rng(1)
    for start in range(0, int(count), 1 << 20):
        for row, value in enumerate(rng.integers(0, 2**64 - 1, 1 << 20, dtype=np.uint64).tolist(), start):
            began = time.thread_time_ns()
            made.add(value, row)
            took = time.thread_time_ns() - began
            if took > longest[0]:
                longest = sorted([*longest, took])[-5:]
    return {
        "longest add, ms": longest[-1] / 1e6,
        "fifth longest add, ms": longest[0] / 1e6,
        "resident bytes a fingerprint": (_resident() - before) / len(made),
    }


def _resident() -> int:
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def batch(folder: str) -> dict[str, Any]:
    """``match`` by PSM and exactly, ``pairs`` of a million, and ``evaluate`` of a folder of pages, in seconds
    of wall time.
    """
    from neardup.collection.matching import Options, match
    from neardup.collection.pairs import pairs
    from neardup.evaluation.folder import FolderOptions, evaluate_folders
    from neardup.evaluation.result import Choices
    from neardup.fingerprint.simhash import Fingerprint
    from neardup.text.features import Features

    values = skewed(BATCH, 5)
    near, weights = queries(values[:100_000])
    asked = [Fingerprint(value, weight) for value, weight in zip(near.tolist(), weights, strict=True)]
    weak = np.array([list(query.pack_weak_bits()) for query in asked], dtype=np.uint8)

    def wall(work: Callable[[], Any]) -> tuple[float, Any]:
        taken = []
        for _ in range(3):
            started = time.perf_counter()
            answer = work()
            taken.append(time.perf_counter() - started)
        return statistics.median(taken), answer

    match(near[:50], values[:5000], weak_bits=weak[:50])
    pairs(values[:5000], max_distance=3)
    psm, found = wall(lambda: match(near, values, weak_bits=weak, options=Options(search="psm", recall=0.95)))
    exact, all_found = wall(lambda: match(near, values, weak_bits=weak, options=Options(exact=True)))
    joined, all_pairs = wall(lambda: pairs(values, max_distance=3))
    choices = Choices([Features()])
    evaluated, _ = wall(lambda: evaluate_folders([Path(folder)], choices, FolderOptions()))
    return {
        "match (PSM), s": psm, "match (exact), s": exact, "pairs, s": joined, "evaluate, s": evaluated,
        "_found": [len(found), len(all_found), len(all_pairs)],
    }  # fmt: skip


MEASURES = {"read": read, "index": index, "growth": growth, "batch": batch}

if __name__ == "__main__":
    print(json.dumps(MEASURES[sys.argv[1]](sys.argv[2])))
