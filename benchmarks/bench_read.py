"""What it costs to read a page, part by part, against another checkout: ``Reader.read_tree``.

Run as ``python -m benchmarks.bench_read [--other CHECKOUT] [--pages 300] [--rounds 7] [--features NAME]
[--content NAME] [--include CSS] [--exclude CSS] FOLDER…``. Of the HTML pages below each FOLDER at most
``--pages`` are read, chosen with a fixed seed.

Each checkout has a process of its own, which parses all pages first. Then the processes read all pages in
turn, round by round, so that whatever else the machine does hits both alike. A round reads each page three
times, one after the other, and the fastest counts. The table shows medians of the rounds, in ms a page. The
ratio is the median of the ratios of the rounds. Parts are those of ``ReadingSeconds``; ``rest`` is what no
part counts.

Both checkouts must read the same from every page: fingerprint, bit weights, shingles, sketches, number of
words and digest. Else the run stops.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import IO, TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from lxml import etree

    from neardup.fingerprint.reader import Reader, Reading

HERE = Path(__file__).resolve().parents[1]
URL = "http://a.example/"
TIMES = 3
PARTS = ("text", "features", "simhash", "sketch", "rest", "all")


class Checkout:
    """A process that reads pages by the code of one checkout."""

    def __init__(self, folder: Path, choice: dict[str, Any], pages: list[Path]) -> None:
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, "--serve"],
            cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        # What was read of each page, as a digest.
        self.read: list[str] = self._ask({**choice, "pages": [str(path) for path in pages]})

    def round(self) -> dict[str, float]:
        """Milliseconds a page, by part."""
        return cast("dict[str, float]", self._ask("round"))

    def close(self) -> None:
        cast("IO[str]", self._process.stdin).close()
        self._process.wait()

    def _ask(self, question: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit("a checkout has failed")
        return json.loads(answer)


def serve() -> None:
    """Answer the questions of :class:`Checkout`, by the package that this process finds."""
    from neardup.fingerprint.reader import Reader
    from neardup.text.content import Content
    from neardup.text.features import Features

    choice = json.loads(sys.stdin.readline())
    reader = Reader(Content(choice["content"], choice["selectors"]), Features(choice["features"]))
    roots = [root for path in choice["pages"] if (root := parsed(Path(path))) is not None]
    print(json.dumps([digest(reader.read_tree(URL, root)) for root in roots]), flush=True)
    for _ in sys.stdin:
        print(json.dumps(timed(reader, roots)), flush=True)


def parsed(path: Path) -> etree._Element | None:
    from neardup.text.folders import read_page
    from neardup.text.visible_text import decode, parse

    return parse(decode(read_page(path)))


def digest(reading: Reading) -> str:
    """Of all that was read of a page, bit for bit."""
    parts: list[object] = [reading.distinct_words, reading.text_digest]
    if reading.fingerprint is not None:
        parts += [reading.fingerprint.value, reading.fingerprint.weights.tobytes()]
    if reading.sketch is not None:
        parts += [reading.sketch.tobytes()]
    parts += [reading.shingles.tobytes(), reading.holders.tobytes()]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def timed(reader: Reader, roots: list[etree._Element]) -> dict[str, float]:
    """Milliseconds a page, by part, of all pages read once more."""
    total = dict.fromkeys(PARTS, 0.0)
    for root in roots:
        runs = []
        for _ in range(TIMES):
            before = asdict(reader.seconds)
            started = time.perf_counter()
            reader.read_tree(URL, root)
            took = time.perf_counter() - started
            parts = {part: spent - before[part] for part, spent in asdict(reader.seconds).items()}
            runs.append({**parts, "rest": took - sum(parts.values()), "all": took})
        best = min(runs, key=lambda run: run["all"])
        for part in PARTS:
            total[part] += 1e3 * best[part] / len(roots)
    return total


def compare(folder: str, arguments: argparse.Namespace) -> None:
    from neardup.text.folders import html_files

    files = html_files([folder])
    if not files:
        raise SystemExit(f"no pages below {folder}")
    chosen = files if len(files) <= arguments.pages else random.Random(0).sample(files, arguments.pages)
    selectors = {kind: css for kind in ("include", "exclude") if (css := getattr(arguments, kind))}
    choice = {
        "content": arguments.content,
        "features": arguments.features,
        "selectors": {"*": selectors} if selectors else {},
    }
    folders = [HERE] if arguments.other is None else [arguments.other.resolve(), HERE]
    checkouts = [Checkout(each, choice, chosen) for each in folders]
    if differing := sum(a != b for a, b in zip(checkouts[0].read, checkouts[-1].read, strict=True)):
        raise SystemExit(f"{folder}: {differing} pages are read differently")
    rounds = [[checkout.round() for checkout in checkouts] for _ in range(arguments.rounds)]
    size = sum(path.stat().st_size for path in chosen) / len(chosen) / 1e3
    print(f"{folder}: {len(checkouts[0].read)} pages, {size:.1f} kB a page, {arguments.rounds} rounds")
    names = "".join(f"{name:>10}" for name in ("other", "here")[-len(folders) :])
    print(f"{'part':10}{names}{'ratio':>8}")
    for part in PARTS:
        times = "".join(f"{median(one[i][part] for one in rounds):10.4f}" for i in range(len(folders)))
        print(f"{part:10}{times}{median(one[0][part] / one[-1][part] for one in rounds):8.2f}")
    for checkout in checkouts:
        checkout.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument(
        "--other", type=Path, metavar="CHECKOUT", help="with its native core built, if it has one"
    )
    parser.add_argument("--pages", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--features", default="word-tf")
    parser.add_argument("--content", default="body")
    parser.add_argument("--include")
    parser.add_argument("--exclude")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        compare(folder, arguments)


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        main()
