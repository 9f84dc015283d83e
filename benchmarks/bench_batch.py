"""Batch mode over a file of fingerprints like those of real pages: queries a second, recall, memory; and all
pairs of the file.

``python -m benchmarks.bench_batch [--n 10000000] [--queries 1000000] FOLDER…`` with folders of HTML pages
(see :mod:`benchmarks.fingerprints`). The file is read from disk (the page cache, when it has just been made).
Each row is the best of ``--repeat`` runs, each in a process of its own. Memory is the
largest of that process, less the memory before the search.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import fingerprints
from neardup.collection.fingerprint_files import open_fingerprints
from neardup.collection.matching import Matcher, Options
from neardup.collection.pairs import pairs

if TYPE_CHECKING:
    import numpy.typing as npt

_KINDS: dict[str, dict[str, Any]] = {
    "PSM_F": {"search": "psm"},
    "PSM_A": {"search": "psm", "every": True},
    "exact, first": {"exact": True},
    "exact, all": {"exact": True, "every": True},
}


def packed(weights: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """``Fingerprint.pack_weak_bits`` of many at once: (m, 64) to (m, 48)."""
    made = np.empty((len(weights), 48), dtype=np.uint8)
    for first in range(0, len(weights), 1 << 16):
        part = np.abs(weights[first : first + (1 << 16)].astype(np.float64))
        relative = part / np.sqrt((part**2).sum(axis=1))[:, None]
        weakest = np.argsort(relative, axis=1, kind="stable")[:, :24]
        steps = np.minimum(np.rint(np.take_along_axis(relative, weakest, axis=1) * (255 / 0.25)), 255)
        made[first : first + len(part), :24] = weakest
        made[first : first + len(part), 24:] = steps
    return made


def _memory(name: str = "VmHWM") -> int:
    """Bytes: the largest so far, or those now (``VmRSS``). Linux only; getrusage would count the parent's."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[name].split()[0]) * 1024


def _match(file: Path, asked: Path, options: Options, answer: Any) -> None:
    """One search, in a process of its own: seconds of planning and in all, bytes, the plan, the matches."""
    with np.load(asked) as data:
        queries, weak_bits = data["values"], data["weak_bits"]
    for part in Matcher(queries[:50], weak_bits[:50], 5000, options).run(open_fingerprints(file)):
        assert part.rows
        break
    before = _memory("VmRSS")
    started = time.perf_counter()
    source = open_fingerprints(file)
    search = Matcher(queries, weak_bits, source.rows, options)
    parts = [part.matches for part in search.run(source)]
    seconds = time.perf_counter() - started
    found = np.concatenate(parts)
    hit = np.zeros(len(queries), dtype=np.bool_)
    hit[found["query"]] = True
    answer.send((seconds, _memory() - before, search.plan.name, len(found), hit))


def _pairs(file: Path, max_distance: int, threads: int, answer: Any) -> None:
    values = np.load(file)
    pairs(values[:3000], max_distance=max_distance)
    before = _memory("VmRSS")
    started = time.perf_counter()
    found = pairs(values, max_distance=max_distance, threads=threads)
    answer.send((time.perf_counter() - started, _memory() - before, "", len(found), None))


def best(repeat: int, target: Any, *arguments: Any) -> Any:
    """Answer of the fastest of some runs."""
    answers = []
    context = multiprocessing.get_context("spawn")
    for _ in range(repeat):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=target, args=(*arguments, theirs))
        process.start()
        theirs.close()
        answers.append(ours.recv())
        process.join()
    return min(answers, key=lambda one: one[0])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--n", type=int, default=10_000_000)
    parser.add_argument("--queries", type=int, default=1_000_000)
    parser.add_argument("--max-distance", type=int, default=3)
    parser.add_argument("--recall", type=float, default=0.95)
    parser.add_argument("--chunk", type=int, default=Options().chunk_rows)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--even", action="store_true", help="uniform fingerprints in place of skewed ones")
    arguments = parser.parse_args()
    n, most = arguments.n, arguments.max_distance
    values, queries = fingerprints.load(n, arguments.folders, queries=arguments.queries, even=arguments.even)
    file, _ = fingerprints.paths(n, arguments.folders, queries=arguments.queries, even=arguments.even)
    near = queries.rows >= 0
    near[near] = np.bitwise_count(values[queries.rows[near]] ^ queries.values[near]) <= most
    asked = fingerprints.cache_folder() / f"batch-{file.stem}-queries{arguments.queries}.npz"
    np.savez(asked, values=queries.values, weak_bits=packed(queries.weights))
    print(
        f"n = {n:,} ({'even' if arguments.even else 'skewed'}), {len(near):,} queries, {near.sum():,} of"
        " them with a planted"
        f" near-duplicate, max_distance {most}, recall target {arguments.recall}, chunks of"
        f" {arguments.chunk:,}\n"
    )
    print("| search | threads | seconds | queries/s | recall | matches | memory, MB | plan |")
    print("|---|--:|--:|--:|--:|--:|--:|---|")
    for name, settings in _KINDS.items():
        for threads in arguments.threads:
            options = Options(
                max_distance=most,
                recall=arguments.recall,
                chunk_rows=arguments.chunk,
                threads=threads,
                **settings,
            )
            seconds, memory, plan, matches, hit = best(arguments.repeat, _match, file, asked, options)
            recall = hit[near].mean()
            assert recall == 1.0 if options.exact else recall >= arguments.recall - 0.01, (name, recall)
            print(
                f"| {name} | {threads} | {seconds:.2f} | {len(hit) / seconds:,.0f} | {recall:.4f} |"
                f" {matches:,}"
                f" | {memory / 1e6:.0f} | {plan} |",
                flush=True,
            )
    expected = None
    for threads in arguments.threads:
        seconds, memory, _, found, _ = best(arguments.repeat, _pairs, file, most, threads)
        assert found == (expected := expected or found) > 0
        print(
            f"| pairs | {threads} | {seconds:.2f} | {n / seconds:,.0f} fingerprints/s | 1 | {found:,} |"
            f" {memory / 1e6:.0f} | |",
            flush=True,
        )


if __name__ == "__main__":
    main()
