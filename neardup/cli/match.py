"""``neardup match``: the near-duplicates of a batch of queries in a file of fingerprints, which may be larger
than memory.
"""

from __future__ import annotations

import contextlib
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from neardup.cli.output import complain
from neardup.cli.progress import INTERRUPTED, QUIET_SECONDS, interruptible, number
from neardup.collection import fingerprint_files, matching
from neardup.collection.resume import Progress, identify
from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse

_BETWEEN_SECONDS = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "queries",
        metavar="QUERIES",
        type=Path,
        help="fingerprints: .npy (uint64), .npz (values, weak_bits) or .parquet (hash_value, weak_bits, id)",
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="fingerprints: .npy (uint64) or .parquet")
    parser.add_argument(
        "--weak-bits",
        type=Path,
        metavar="NPY",
        help="weak bits of the queries: uint8, 48 columns; without any: exact",
    )
    add_distance(parser)
    parser.add_argument(
        "--recall", type=float, metavar="R", help="share of the near-duplicates to be found (default: 0.95)"
    )
    parser.add_argument("--exact", action="store_true", help="find all near-duplicates")
    parser.add_argument("--all", action="store_true", help="all matches of each query, not only the first")
    add_threads(parser)
    parser.add_argument(
        "--chunk",
        type=int,
        default=matching.CHUNK_ROWS,
        metavar="N",
        help="rows read at a time (default: %(default)s)",
    )
    add_out(parser)


def add_distance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-distance", type=int, default=3, metavar="N", help="bits that may differ, 0 to 16 (default: 3)"
    )


def tell_left_out(path: Path, rows: int) -> None:
    """Say how many rows of a file have no fingerprint."""
    if rows:
        complain(f"{path}: {number(rows, 'row')} without a fingerprint left out")


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, metavar="N", help="default: one for each core")


def add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="output, named .npy, .parquet or .csv (default: CSV to the terminal)",
    )


def run(arguments: argparse.Namespace) -> None:
    if arguments.exact and arguments.recall is not None:
        raise ConfigurationError("--exact finds all near-duplicates; leave out --exact or --recall")
    options = matching.Options(
        max_distance=arguments.max_distance,
        recall=0.95 if arguments.recall is None else arguments.recall,
        exact=arguments.exact,
        every=arguments.all,
        chunk_rows=arguments.chunk,
        threads=arguments.threads,
    )
    with interruptible("the same command starts again, or goes on from where it was"):
        _run(arguments, options)


def _run(arguments: argparse.Namespace, options: matching.Options) -> None:
    if arguments.out:
        fingerprint_files.check_output(arguments.out, arguments.queries, arguments.file, arguments.weak_bits)
    queries = fingerprint_files.read_queries(arguments.queries, arguments.weak_bits)
    if queries.weak_bits is None and arguments.recall is not None:
        raise ConfigurationError(
            f"{arguments.queries} has no weak bits, so that nothing tells which bits to flip for a recall of"
            f" {arguments.recall}; give --weak-bits, or leave out --recall for an exact search"
        )
    source = fingerprint_files.open_fingerprints(arguments.file)
    tell_left_out(arguments.queries, len(queries.without))
    tell_left_out(arguments.file, len(source.without))
    search = matching.Matcher(queries.values, queries.weak_bits, source.rows, options)
    if arguments.out:
        _to_file(arguments, options, queries, source, search)
    else:
        _to_terminal(queries, source, search)


def _to_file(
    arguments: argparse.Namespace,
    options: matching.Options,
    queries: fingerprint_files.Queries,
    source: fingerprint_files.Fingerprints,
    search: matching.Matcher,
) -> None:
    out: Path = arguments.out
    settings = {name: value for name, value in asdict(options).items() if name != "threads"}
    # What was planned otherwise, by another version, would not find the same.
    settings["plan"] = search.plan.name
    inputs = {name: identify(getattr(arguments, name)) for name in ("queries", "weak_bits", "file")}
    try:
        progress = Progress(out, {**inputs, **settings})
    except OSError as exc:
        raise ConfigurationError(f"{out} cannot be written: {exc.strerror or exc}") from exc
    with contextlib.closing(progress):
        try:
            done = progress.matches()
            search.drop(done["query"])
            with Shown(f"{out.name}: {search.plan.name}", source.rows, progress.rows, len(done)) as shown:
                if progress.rows:
                    shown.say(f"goes on from row {progress.rows:,} with {len(done):,} matches")
                for found in search.run(source, progress.rows):
                    progress.add(found.matches, found.rows)
                    shown.update(found.rows, len(found.matches))
            matches = progress.matches()
            ids = source.ids(matches["row"])
            query_ids = None if queries.ids is None else queries.ids[matches["query"]]
            matches["query"], matches["row"] = queries.places(matches["query"]), source.places(matches["row"])
            fingerprint_files.write_records(out, matches, query_id=query_ids, id=ids)
        except KeyboardInterrupt:
            kept = f"{progress.rows:,} of {source.rows:,} rows are done; the same command goes on from there"
            print(f"\nneardup: interrupted: {kept}", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None
        except OSError as exc:
            raise ConfigurationError(f"{out}: the matches cannot be kept: {exc.strerror or exc}") from exc
        progress.remove()


def _to_terminal(
    queries: fingerprint_files.Queries, source: fingerprint_files.Fingerprints, search: matching.Matcher
) -> None:
    nothing = np.empty(0, dtype=np.int64)
    names = list(fingerprint_files.MATCH.names or ())
    names += ["query_id"] if queries.ids is not None else []
    names += ["id"] if source.ids(nothing) is not None else []
    fingerprint_files.write_csv(sys.stdout, dict.fromkeys(names, nothing))
    with (
        interruptible("nothing is kept of a search without --out"),
        Shown(search.plan.name, source.rows) as shown,
    ):
        for found in search.run(source):
            columns = {name: found.matches[name] for name in fingerprint_files.MATCH.names or ()}
            if queries.ids is not None:
                columns["query_id"] = queries.ids[columns["query"]]
            if (ids := source.ids(columns["row"])) is not None:
                columns["id"] = ids
            columns["query"] = queries.places(columns["query"])
            columns["row"] = source.places(columns["row"])
            fingerprint_files.write_csv(sys.stdout, columns, header=False)
            shown.update(found.rows, len(found.matches))


class Shown:
    """Progress on standard error, once a search takes longer than a moment.

    On a terminal, one line is written again and again. Elsewhere, a line is written now and then.
    """

    def __init__(self, name: str, rows: int, done: int = 0, matches: int = 0) -> None:
        self._name, self._rows, self._start = name, rows, done
        self._matches = matches
        self._chunks = 0
        self._began = self._last = time.monotonic()
        self._line = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._line:
            print(file=sys.stderr)

    def say(self, text: str) -> None:
        print(f"{self._name}: {text}", file=sys.stderr)

    def update(self, done: int, matches: int) -> None:
        """``done``: rows of the file so far; ``matches``: new ones."""
        self._matches += matches
        self._chunks += 1
        now = time.monotonic()
        terminal = sys.stderr.isatty()
        if now - self._began < QUIET_SECONDS or (not terminal and now - self._last < _BETWEEN_SECONDS):
            return
        self._last = now
        speed = (done - self._start) / (now - self._began)
        left = (self._rows - done) / speed if speed > 0 else 0.0
        text = (
            f"{self._name}: {self._chunks:,} chunks, {done:,} of {self._rows:,} rows, {speed:,.0f} a second,"
            f" {self._matches:,} matches, {left:.0f} s left"
        )
        print(
            f"\r{text}\x1b[K" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True
        )
        self._line = terminal
