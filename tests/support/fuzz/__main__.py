"""Coverage-guided fuzzing with atheris: ``python -m tests.support.fuzz TARGET --seconds N [--corpus DIR]``.

TARGET is ``text``, ``words``, ``index``, ``snapshot`` or ``files`` (:mod:`tests.support.fuzz.targets`). N are
seconds of CPU time. The extra ``fuzz`` is needed (``pip install -e '.[dev,fuzz]'``); atheris has wheels for
Linux on x86-64. If DIR is given, the corpus is kept there, and the next run goes on with the corpus.

A fault is any exception that the target does not expect, or more than ``SLOWEST`` seconds for one input. Each
kind of fault is shown once, and the run goes on; its exit status is then 1. The input is run once more, and
the line says whether the fault came again. A fault that did not may come from the state of the process. The
input is written beside DIR, or else to the temporary folder that is named. A crash of the interpreter ends
the run; libFuzzer writes the input to the same place. Inputs that found something belong, as small as they
can be, into ``tests/support/fuzz/found``. Such inputs are seeds from then on, and
``tests/faults/test_fuzz.py`` runs them.

The branches of neardup's Python code and of BeautifulSoup are counted. ``nox -s fuzz`` lets AddressSanitizer
and UndefinedBehaviorSanitizer watch the native core meanwhile. ``CC=clang nox -s fuzz`` counts its branches,
too. libxml2, Arrow and NumPy are neither counted nor watched.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SLOWEST = 10.0
"""Seconds of CPU time for an input."""

_LONGEST = 600
"""Seconds by the clock after which libFuzzer ends the run, for loops that never come back from native code.
On a busy machine, or while a process is stopped, the clock goes on and the time of ``SLOWEST`` does not.
"""

_LARGEST = 1 << 16
_INSTRUMENTED = ["neardup", "bs4"]


class Watch:
    """Runs inputs, keeps the first of each kind of fault, and ends the process when the time is over."""

    def __init__(self, run: Callable[[bytes], None], folder: Path, name: str) -> None:
        self._run = run
        self._folder = folder
        self._name = name
        self._end = math.inf
        self._kinds: set[str] = set()
        self._inputs = 0

    def end_after(self, seconds: float) -> None:
        self._end = time.process_time() + seconds

    def __call__(self, data: bytes) -> None:
        started = time.process_time()
        if started > self._end:
            faults = f"{len(self._kinds)} kinds of fault: {sorted(self._kinds)}"
            print(f"{self._inputs} inputs, {faults}", flush=True)
            os._exit(1 if self._kinds else 0)  # libFuzzer takes any other end for a fault
        self._inputs += 1
        fault = self._fault(data)
        took = time.process_time() - started
        if fault is not None:
            self._keep(_kind(fault), data, fault)
        if took > SLOWEST:
            self._keep(f"hang of {took:.0f} s", data)

    def _fault(self, data: bytes) -> Exception | None:
        try:
            self._run(data)
        except Exception as exc:  # noqa: BLE001  # what is expected is caught by the target
            return exc
        return None

    def _keep(self, kind: str, data: bytes, fault: Exception | None = None) -> None:
        if kind in self._kinds:
            return
        self._kinds.add(kind)
        path = self._folder / f"{self._name}-{hashlib.sha256(data).hexdigest()[:12]}"
        path.write_bytes(data)
        again = ""
        if fault is not None:
            second = self._fault(data)
            comes_again = second is not None and _kind(second) == kind
            again = ", comes again" if comes_again else ", does not come again"
        print(f"FAULT: {kind}{again}; the input is {path}", flush=True)
        if fault is not None:
            traceback.print_exception(fault)


def _kind(fault: Exception) -> str:
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__} in {Path(frame.filename).name}:{frame.lineno}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.support.fuzz")
    parser.add_argument("target", choices=("text", "words", "index", "snapshot", "files"))
    parser.add_argument("--seconds", type=float, default=600.0, help="of CPU time (600)")
    parser.add_argument("--corpus", type=Path, help="folder to keep the corpus in")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="neardup-fuzz-"))
    corpus, faults = arguments.corpus or folder / "corpus", folder / "faults"
    if arguments.corpus is not None:
        faults = arguments.corpus.with_name(f"{arguments.corpus.name}-faults")
    seeds = folder / "seeds"
    for each in (corpus, faults, seeds):
        each.mkdir(parents=True, exist_ok=True)

    import atheris

    with atheris.instrument_imports(include=_INSTRUMENTED):
        from tests.support.fuzz import targets
    warnings.simplefilter("error")
    watch = Watch(targets.TARGETS[arguments.target].run, faults, arguments.target)
    for number, seed in enumerate(targets.seeds(arguments.target)):
        (seeds / f"{number:04}").write_bytes(seed)
        watch(seed)
    print(f"{len(list(seeds.iterdir()))} seeds; faults go to {faults}", flush=True)
    options = [
        f"-max_len={_LARGEST}", f"-timeout={_LONGEST}", f"-report_slow_units={_LONGEST}",
        "-rss_limit_mb=4096", "-detect_leaks=0", f"-artifact_prefix={faults}/", str(corpus), str(seeds),
    ]  # fmt: skip
    watch.end_after(arguments.seconds)
    atheris.Setup([sys.argv[0], *options], watch)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
