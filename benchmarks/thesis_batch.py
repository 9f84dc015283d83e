"""Batch mode of the thesis (figure 10): PSM from the batch to chunks of the file, Manku's tables from the
file to the batch.
"""

from __future__ import annotations

import math
import statistics
import time
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from benchmarks import fingerprints
from benchmarks import thesis_kernels as kernels
from benchmarks import thesis_systems as systems
from benchmarks.thesis_flips import scratch
from neardup.collection import matching

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    import numpy.typing as npt

    from benchmarks.thesis_systems import Asked, Facts, Ints, Words

    Halves: TypeAlias = npt.NDArray[np.uint32]

_MADE_AT_ONCE = 1_000_000
_FEWEST_SEARCHED = 4_000
_SKEWED_ASKED = 100_000
_FALLBACK_FLIPS = 64


def batch_values(arguments: argparse.Namespace, *, even: bool) -> Words:
    """Values of a whole batch of queries, made in parts because their weights are large."""
    make = fingerprints.uniform_queries if even else fingerprints.simulated_queries
    parts = []
    for start in range(0, arguments.queries, _MADE_AT_ONCE):
        m = min(_MADE_AT_ONCE, arguments.queries - start)
        made = make(m, 1000 + start, arguments.folders, stored_seed=arguments.seed, stored=arguments.n)
        parts.append(made.values)
    whole = np.concatenate(parts)
    np.random.default_rng(arguments.seed).shuffle(whole)
    return whole


def _psm(
    chunks: list[Words], number: int, m: int, asked: Asked, k: int, *, only_first: bool
) -> tuple[Facts, Ints]:
    """Microseconds a query over all ``number`` chunks of the file, from some of them and the part asked of a
    batch of m.
    """
    p = p_of(m)
    offsets = np.empty((1 << p) + 1, dtype=np.uint32)
    out = np.zeros(4, dtype=np.int64)
    plans = np.empty((len(asked.values), k), dtype=np.uint32)
    started = time.process_time()
    kernels.plan(asked.weights, p, plans, *scratch())
    preparing = (time.process_time() - started) / len(asked.values)
    done = np.zeros(len(asked.values), dtype=np.bool_)
    building = searching = 0.0
    for values in chunks:
        if len(chunks) < number:
            out[kernels.MATCHED] += done.sum()
            done[:] = False
        started = time.process_time()
        kernels.make_offsets(values, p, offsets)
        built = time.process_time()
        kernels.psm_planned(values, offsets, p, asked.values, plans, k, only_first, done, out)
        searching += time.process_time() - built
        building += built - started
    out[kernels.MATCHED] += done.sum()
    scale = number / len(chunks)
    found = min(1.0, out[kernels.MATCHED] * scale / len(done))
    # Over all chunks, queries with a match stop being asked: half of them are open on average.
    still_open = 1.0 - found / 2 if only_first and len(chunks) < number else 1.0
    facts: Facts = {
        "preparing": preparing * 1e6,
        "offsets": building * scale / m * 1e6,
        "searching": searching * scale * still_open / len(asked.values) * 1e6,
        "found": float(found),
    }
    facts["us"] = facts["preparing"] + facts["offsets"] + facts["searching"]
    return facts, out


def psm(whole: Words, m: int, asked: Asked, k: int, budget: float, *, only_first: bool) -> Facts:
    """The median of repetitions of about ``budget`` seconds each, or of all queries asked, and the time of
    the offsets.
    """
    number = -(-len(whole) // m)
    # One of ``number`` fingerprints after another: a sorted random part, as batches appended one by one are.
    searched = sorted({0, number // 2, number - 1})
    chunks = [np.ascontiguousarray(whole[chunk::number]) for chunk in searched]
    _psm(chunks[:1], number, m, asked.first(10), k, only_first=only_first)  # compiles
    few, _ = _psm(chunks, number, m, asked.first(_FEWEST_SEARCHED), k, only_first=only_first)
    each = (few["preparing"] + few["searching"] * len(chunks) / number) / 1e6
    part = asked.first(int(min(m, len(asked.values), max(_FEWEST_SEARCHED, budget / each))))
    runs = [_psm(chunks, number, m, part, k, only_first=only_first) for _ in range(systems.REPETITIONS)]
    runs.sort(key=lambda run: float(run[0]["us"]))
    facts, out = runs[len(runs) // 2]
    assert out[kernels.PROBES] > 0
    started = time.process_time()
    np.sort(asked.values)
    facts["sorting"] = (time.process_time() - started) / len(asked.values) * 1e6
    facts["us"] += facts["sorting"]
    return facts | {
        "k": k, "p": p_of(m), "chunks": number, "chunks timed": len(chunks),
        "queries timed": len(part.values),
    }  # fmt: skip


def p_of(m: int) -> int:
    return round(math.log2(m))


def manku(whole: Words, queries: Words, budget: float) -> Facts:
    """Four tables over the matching, searched for a random part of the file; the time is scaled up to all of
    it.
    """
    started = time.process_time()
    index = systems.manku(queries, 4)
    building = time.process_time() - started
    random = np.random.default_rng(0)
    m = 200
    seconds = 0.0
    while seconds < budget / 10 and m < len(whole):
        m = min(4 * m, len(whole))
        part = systems.Asked(whole[random.integers(0, len(whole), m)], np.empty((0, 64), np.float32))
        started = time.process_time()
        index.search(part, only_first=False)
        seconds = time.process_time() - started
    m = int(min(len(whole), m * budget / max(seconds, 1e-9)))
    part = systems.Asked(whole[random.integers(0, len(whole), m)], np.empty((0, 64), np.float32))
    times = []
    for _ in range(systems.REPETITIONS):
        started = time.process_time()
        out = index.search(part, only_first=False)
        times.append(time.process_time() - started)
    each = statistics.median(times) / m
    assert out[kernels.PROBES] == 4 * m
    return {
        "us": (building + each * len(whole)) / len(queries) * 1e6,
        "building": building / len(queries) * 1e6,
        "us a stored fingerprint": each * 1e6,
        "stored timed": m,
        "candidates a query": float(out[kernels.CANDIDATES] / m * len(whole) / len(queries)),
        "matches a query": float(out[kernels.MATCHES] / m * len(whole) / len(queries)),
    }


def weak_bits(asked: Asked) -> npt.NDArray[np.uint8]:
    """:meth:`neardup.fingerprint.simhash.Fingerprint.pack_weak_bits` of many, (m, 48)."""
    packed = np.empty((len(asked.values), 48), dtype=np.uint8)
    for start in range(0, len(packed), 1 << 16):
        part = np.abs(asked.weights[start : start + (1 << 16)].astype(np.float64))
        part /= np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-300)
        weakest = np.argsort(part, axis=1, kind="stable")[:, :24]
        steps = np.minimum(np.rint(np.take_along_axis(part, weakest, axis=1) * 1020.0), 255.0)
        packed[start : start + (1 << 16), :24] = weakest
        packed[start : start + (1 << 16), 24:] = steps
    return packed


def project(whole: Words, asked: Asked) -> Facts:
    """This project's batch mode, one thread, file and all: the queries asked are the batch; once, since it
    takes long.
    """
    packed = weak_bits(asked)
    file = np.random.default_rng(0).permutation(whole)
    facts: Facts = {"batch": len(asked.values), "n": len(whole)}
    matching.match(
        asked.values[:100], file[:1000], weak_bits=packed[:100], options=matching.Options(threads=1)
    )
    sample = 20_000
    known = systems.multi_index(whole).truth(asked.first(sample)).counts
    for name, every, exact in (("first", False, False), ("all", True, False), ("exact all", True, True)):
        options = matching.Options(threads=1, every=every, exact=exact)
        started = time.process_time()
        found = matching.match(asked.values, file, weak_bits=packed, options=options)
        seconds = time.process_time() - started
        met = found["query"][found["query"] < sample]
        facts[name] = {
            "us": seconds / len(asked.values) * 1e6,
            "matches": len(found),
            "recall": float(len(met) / known.sum() if every else len(np.unique(met)) / (known > 0).sum()),
        }
    return facts


def run(
    put: Callable[..., None],
    whole: Words,
    asked: Asked,
    arguments: argparse.Namespace,
    *,
    even: bool,
    ks: dict[int, tuple[int | None, int | None]],
) -> None:
    """Figure 10a: batches of different sizes at the largest n; 10b: the largest batch at different n."""
    queries = batch_values(arguments, even=even)
    random = np.random.default_rng(0)
    n, largest = len(whole), len(queries)
    cases = [(n, m) for m in sorted({max(1000, largest // s) for s in (10, 5, 2, 1)})]
    cases += [(size, largest) for size in (n // 6, n // 3, n * 2 // 3)]
    for size, m in cases:
        stored = whole if size == n else np.sort(random.choice(whole, size, replace=False))
        nearest = min(ks, key=lambda p: abs(p - round(np.log2(m))))
        first, all_ = (_FALLBACK_FLIPS if k is None else k for k in ks[nearest])
        facts: Facts = {
            "manku": manku(stored, queries[:m], arguments.budget),
            "psm all": psm(stored, m, asked, all_, 3 * arguments.budget, only_first=False),
            "psm first": psm(stored, m, asked, first, 3 * arguments.budget, only_first=True),
        }
        put("batch", f"{size} {m}", facts=facts)
    # Of skewed ones many a query has thousands of matches.
    put("batch project", facts=project(whole, asked if even else asked.first(_SKEWED_ASKED)))
