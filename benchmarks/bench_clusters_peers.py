"""The clusters of a collection beside what other libraries find of the same texts.

Run as ``python -m benchmarks.bench_clusters_peers FOLDER… [--times N] [--only LIBRARY…] [--out FILE]`` with
the extras ``bench`` and ``offline`` installed. The texts are the visible texts of the HTML pages below the
folders, each once, and of ten distinct words or more. With ``--times``, each text comes N times, as if in
other languages: all words of the second time end in ``xb``, those of the third in ``xc``. Each library is
given the texts as JSON Lines, in processes that load nothing but the library:

- **neardup**: ``build`` and ``clusters``, in one process each, as the commands do them. Pages have no
  headlines here, because others take texts only.
- **gaoya**: its MinHash index; each text is asked for before the text is inserted. Bands as below.
- **datatrove**: its three steps of MinHash (signatures, buckets, clusters), one after the other. Words are
  split at white space, since its own way needs spaCy.
- **text-dedup**: its script ``minhash``, if ``--text-dedup`` names a Python that has the library. The library
  names PySpark and others that the script does not load, and needs older versions than neardup. So it goes
  into an environment of its own: ``pip install --no-deps text-dedup``, then ``datasets``, ``click``,
  ``click-option-group``, ``ftfy``, ``psutil``, ``regex``, ``rich<14``, ``scipy``, ``tqdm``, ``xxhash``,
  ``zstandard`` and ``bitarray``.

Shingles are of three words, and the bands of the others find .99 of the pairs of resemblance .83, as those
of neardup do: 18 bands of 8 values.

The time is that of the processes, their threads and children after imports; memory is the most that was
resident in one of them.

Pairs are judged by the exact resemblance of their shingles, with the words of neardup. A pair is right at .83
or more. Texts of two languages share no word, so the pairs of each language are those of the first.
*Matches* are the pairs that a library names. *Clusters* are all pairs of two pages of one cluster; those of
datatrove and text-dedup are joined from match to match, and those of neardup are stars. *Pages* is the share
of the pages with any right pair of which a right pair was named.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.bench_latency import table
from benchmarks.cluster_libraries import BAND, BANDS, LIBRARIES, RESEMBLANCE, SHINGLE
from benchmarks.provenance import give, header
from neardup.detection.detector import DetectorOptions
from neardup.detection.rule import MIN_FEATURES
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import decode, parse, text_of_tree

if TYPE_CHECKING:
    from neardup.fingerprint.sketch import Hashes

_WORD = re.compile(r"\w+")


def measure(name: str, python: str, texts: Path, work: Path) -> dict[str, Any]:
    """What the steps of a library take together, and what the last one finds."""
    work.mkdir()
    steps = []
    for step in range(len(LIBRARIES[name])):
        command = [python, "-m", "benchmarks.cluster_libraries", name, str(step), str(texts), str(work)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        steps.append(json.loads(done.stdout))
    return {
        "seconds": [step["seconds"] for step in steps],
        "memory": max(step["memory"] for step in steps),
        "before": max(step["before"] for step in steps),
        "version": steps[-1]["version"],
        "found": steps[-1]["found"],
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


def visible(folders: list[Path]) -> list[str]:
    """Distinct texts."""
    reader = DetectorOptions().make_reader()
    texts: dict[str, None] = {}
    for path in html_files(folders):
        root = parse(decode(read_page(path)))
        text = "" if root is None else text_of_tree(root)
        if text not in texts and reader.read_text(text).distinct_words >= MIN_FEATURES:
            texts[text] = None
    return list(texts)


def in_language(text: str, number: int) -> str:
    """A text as if in another language; that of number 0 is the text."""
    letters = ""
    while number:
        number, letter = divmod(number, 26)
        letters += chr(ord("a") + letter)
    return _WORD.sub(rf"\g<0>x{letters}", text) if letters else text


def right_pairs(texts: list[str], times: int) -> dict[tuple[int, int], float]:
    """:func:`exact` of the texts in so many languages, one language after the other."""
    reader = DetectorOptions().make_reader()

    def of_languages(languages: int) -> dict[tuple[int, int], float]:
        every = (in_language(text, number) for number in range(languages) for text in texts)
        return exact([np.unique(reader.read_text(text).shingles) for text in every])

    def moved(languages: int) -> dict[tuple[int, int], float]:
        return {
            (a + shift, b + shift): resemblance
            for shift in range(0, languages * len(texts), len(texts))
            for (a, b), resemblance in of_one.items()
        }

    of_one = of_languages(1)
    are_apart = times == 1 or of_languages(2).keys() == moved(2).keys()
    assert are_apart, "give folders of languages that put spaces between words"
    return moved(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--text-dedup", metavar="PYTHON")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    texts = visible(arguments.folders)
    right = right_pairs(texts, arguments.times)
    pythons = dict.fromkeys(LIBRARIES, sys.executable) | {"text-dedup": arguments.text_dedup}
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "texts.jsonl"
        with path.open("w", encoding="utf-8") as out:
            for language in range(arguments.times):
                for number, text in enumerate(texts):
                    url = f"http://a.example/{language}/{number}"
                    out.write(json.dumps({"url": url, "text": in_language(text, language)}) + "\n")
        for name in arguments.only:
            python = pythons[name]
            if python is not None:
                rows += judged(name, measure(name, python, path, Path(temporary) / name), right)
    give(report(arguments, arguments.times * len(texts), len(right), rows), arguments.out)


def judged(name: str, result: dict[str, Any], right: dict[tuple[int, int], float]) -> list[list[object]]:
    rows: list[list[object]] = []
    pages = {page for pair in right for page in pair}
    for way, given in result["found"].items():
        pairs = {(a, b) for a, b in given}
        assert pairs, f"{name} finds nothing"
        hits = pairs & right.keys()
        named = {page for pair in hits for page in pair}
        cost = [
            " + ".join(f"{seconds:.1f}" for seconds in result["seconds"]),
            *(f"{result[of] / 1e6:,.0f}" for of in ("memory", "before")),
        ]
        rows.append(
            [
                f"{name} {result['version']}", *cost, way, f"{len(pairs):,}", f"{len(hits) / len(pairs):.3f}",
                f"{len(hits) / len(right):.3f}", f"{len(named) / len(pages):.3f}",
            ]
        )  # fmt: skip
    return rows


def report(arguments: argparse.Namespace, texts: int, right: int, rows: list[list[object]]) -> str:
    names = " ".join(folder.name for folder in arguments.folders)
    times = f" --times {arguments.times}" if arguments.times > 1 else ""
    if arguments.only != list(LIBRARIES):
        times += f" --only {' '.join(arguments.only)}"
    columns = ["library", "processor s", "MB", "MB before", "pairs", "named", "precision", "recall", "pages"]
    lines = [
        "# Clusters beside other libraries",
        "",
        *header(
            f"python -m benchmarks.bench_clusters_peers {names}{times}",
            n=f"{texts:,} distinct texts; {right:,} pairs of resemblance {RESEMBLANCE} or more",
            recall="measured, against the exact resemblance of all pairs",
        ),
        "",
        "From texts to clusters. Time is that of processes after imports: neardup builds, then clusters.",
        "*MB*: the most that one process had resident, and *MB before*: with its imports alone.",
        f"Others have {BANDS} bands of {BAND} values, of shingles of {SHINGLE} words.",
        "",
        table(columns, rows),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
