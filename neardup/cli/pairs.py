"""``neardup pairs``: all near-duplicates within one file of fingerprints, exactly, each pair once.

Equal fingerprints are a star: each is paired with the first of them only, and only this first with other
fingerprints.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.cli.match import add_distance, add_out, add_threads, tell_left_out
from neardup.cli.progress import QUIET_SECONDS, interruptible
from neardup.collection import fingerprint_files
from neardup.collection.pairs import pairs

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    import numpy.typing as npt


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="fingerprints: .npy (uint64) or .parquet")
    add_distance(parser)
    add_threads(parser)
    add_out(parser)


def run(arguments: argparse.Namespace) -> None:
    if arguments.out:
        fingerprint_files.check_output(arguments.out, arguments.file)
    source = fingerprint_files.open_fingerprints(arguments.file)
    tell_left_out(arguments.file, len(source.without))
    with interruptible("nothing is written"):
        parts = list(source.chunks(0, max(1, source.rows)))
        values = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
        found = pairs(
            values,
            max_distance=arguments.max_distance,
            threads=arguments.threads,
            on_progress=_progress(arguments.file.name),
        )
        first_ids, second_ids = source.ids(found["first"]), source.ids(found["second"])
        found["first"], found["second"] = source.places(found["first"]), source.places(found["second"])
        if arguments.out:
            fingerprint_files.write_records(arguments.out, found, first_id=first_ids, second_id=second_ids)
        else:
            _show(found, first_ids, second_ids)


def _show(
    found: npt.NDArray[Any], first_ids: npt.NDArray[np.int64] | None, second_ids: npt.NDArray[np.int64] | None
) -> None:
    columns = {name: found[name] for name in fingerprint_files.PAIR.names or ()}
    if first_ids is not None and second_ids is not None:
        columns |= {"first_id": first_ids, "second_id": second_ids}
    fingerprint_files.write_csv(sys.stdout, columns)


def _progress(name: str) -> Callable[[float, int], None]:
    """Shows progress on standard error every two seconds."""
    began = last = time.monotonic()

    def show(done: float, found: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > QUIET_SECONDS:
            last = now
            left = (now - began) * (1.0 - done) / done
            print(f"{name}: {done:.0%} done, {found:,} pairs, {left:.0f} s left", file=sys.stderr, flush=True)

    return show
