"""Texts to SimHash, and texts to sketches: neardup and other libraries side by side, one core, same texts.

Run as ``python -m benchmarks.bench_peers_text [--pages N] [--rounds N] [--pybind FOLDER] [--out FILE]
FOLDER…`` with the extra ``bench`` installed. The texts are the visible texts of at most N HTML pages below
each FOLDER, chosen with a fixed seed. Pages with the same text count once. A text of fewer than three words
is left out, since it has no shingle of three words.

In each round everything runs once over all texts, one after the other, one call a text. A round before the
first is not counted. Times are processor times; the median of the rounds counts. A library that is missing is
skipped, and the reason is printed.

simhash-pybind installs its package under the name of simhash's. So simhash-pybind stands in a folder of its
own: ``pip install --no-deps --target FOLDER simhash-pybind``.

The run stops if the work was not done:

- Texts must have more than half as many SimHash values, since versions of a page may share one. A text with
  one word more must be less than half as far away as the next text.
- Resemblances are estimated of each text with its first two thirds and with the next text. They must be .06
  from the exact ones at most, in the mean. Libraries differ in what is a word.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import platform
import random
import re
import sys
import time
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.provenance import header
from neardup import DetectorOptions
from neardup.fingerprint import simhash, sketch
from neardup.text import feature_kernels
from neardup.text.features import Features
from neardup.text.folders import html_files, read_page

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from neardup.fingerprint.sketch import Hashes

PERMUTATIONS = 128
_SEED = 1
_CHECKED = 200
_MOST_ERROR = 0.06
_PACKAGES = ("neardup", "numpy", "gaoya", "tors", "simhash", "datasketch", "rensa")
_WORD = re.compile(r"\w+")


def same_places(a: Any, b: Any) -> float:
    """The share of places at which two sketches agree."""
    return float(np.mean(np.asarray(a) == np.asarray(b)))


def same_bits(a: Hashes, b: Hashes) -> float:
    return float(sketch.compact_estimates(a[None, :], b)[0])


class Hashing(NamedTuple):
    """A way from a text to its SimHash of 64 bits."""

    name: str
    includes: str
    run: Callable[[str], int]


class Sketching(NamedTuple):
    """A way from a text to a sketch of its shingles of three words.

    - ``of_hashes``: the sketch of shingles that are hashed already; None if the library has no such function.
    - ``given``: what ``of_hashes`` takes, from the hashes of shingles.
    """

    name: str
    includes: str
    of_text: Callable[[str], Any]
    of_hashes: Callable[[Any], Any] | None = None
    given: Callable[[Hashes], Any] = np.asarray
    estimate: Callable[[Any, Any], float] = same_places


@dataclass
class Row:
    """The figures of one way: seconds of each round, and what the check says."""

    name: str
    includes: str
    seconds: list[float] = field(default_factory=list)
    hashed_seconds: list[float] = field(default_factory=list)
    check: str = ""


def there(package: str, missing: dict[str, str]) -> Any:
    """The package, or None with the reason in ``missing``."""
    try:
        return importlib.import_module(package)
    except ImportError as exc:
        missing[package] = str(exc)
        return None


def pybind(folder: Path | None, missing: dict[str, str]) -> Any:
    """simhash-pybind, under another name than simhash."""
    if folder is None:
        missing["simhash-pybind"] = "--pybind is not given"
        return None
    package = folder / "simhash"
    found = importlib.util.spec_from_file_location(
        "simhash_pybind", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["simhash_pybind"] = module
    found.loader.exec_module(module)
    return module


def words_of(text: str) -> list[str]:
    """Words, as the libraries take them that leave words to their users."""
    return _WORD.findall(text.lower())


def runs_of(text: str) -> list[str]:
    """What simhash itself takes from a text. With NumPy 2, ``Simhash(text)`` raises OverflowError if a run
    occurs more than 255 times; a list of runs has no weights.
    """
    joined = "".join(words_of(text))
    return [joined[start : start + 4] for start in range(max(1, len(joined) - 3))]


def shingles_of(text: str) -> set[str]:
    found = words_of(text)
    return set(map(" ".join, zip(found, found[1:], found[2:], strict=False)))


def simhashes(folder: Path | None, missing: dict[str, str]) -> list[Hashing]:
    features, reader = Features(), DetectorOptions().make_reader()

    def fingerprint(text: str) -> int:
        extracted = features.extract(text)
        made = simhash.fingerprint(extracted.hashes, extracted.weights)
        return 0 if made is None else made.value

    def read(text: str) -> int:
        made = reader.read_text(text).fingerprint
        return 0 if made is None else made.value

    ways = [
        Hashing("neardup, features and fingerprint", "words; with the 64 bit weights", fingerprint),
        Hashing("neardup, Reader.read_text", "the same; sketch of 1,024 places, digest of the text", read),
    ]
    if gaoya := there("gaoya.gaoya", missing):
        index = gaoya.simhash.SimHash64StringIntIndex(6, 3, "word", True, None)
        ways.append(Hashing("gaoya, doc2signature", "words in lower case", index.doc2signature))
    if tors := there("tors", missing):
        ways.append(Hashing("tors, simhash64", "words", tors.simhash64))
    if peer := there("simhash", missing):
        ways += [
            Hashing(
                "simhash, Simhash(runs)", "runs of 4 characters in Python; MD5",
                lambda text: peer.Simhash(runs_of(text)).value,
            ),
            Hashing(
                "simhash, Simhash(words)", "words by \\w+ in Python; MD5",
                lambda text: peer.Simhash(words_of(text)).value,
            ),
        ]  # fmt: skip
    if other := pybind(folder, missing):
        ways.append(
            Hashing(
                "simhash-pybind, compute", "words by \\w+ in Python; MD5 by its unsigned_hash",
                lambda text: other.compute([other.unsigned_hash(word.encode()) for word in words_of(text)]),
            )
        )  # fmt: skip
    return ways


def own_sketches() -> list[Sketching]:
    features = Features()

    def shingles(text: str) -> Hashes:
        return feature_kernels.shingles(features.extract(text).words, sketch.WIDTH)

    def compact(hashes: Hashes) -> Hashes:
        return sketch.compact(sketch.minwise(hashes))

    def small(hashes: Hashes) -> Hashes:
        return sketch.minwise(hashes, PERMUTATIONS)

    return [
        Sketching(
            f"neardup, minwise, {PERMUTATIONS} places", "64 bits a place; the features are counted, too",
            lambda text: small(shingles(text)), small,
        ),
        Sketching(
            f"neardup, a crawl's {sketch.SIZE:,} places", "1 bit a place; the features are counted, too",
            lambda text: compact(shingles(text)), compact, estimate=same_bits,
        ),
    ]  # fmt: skip


def sketches(missing: dict[str, str]) -> list[Sketching]:
    ways = own_sketches()
    if datasketch := there("datasketch", missing):
        blank = datasketch.MinHash(PERMUTATIONS)
        numbers = datasketch.MinHash(PERMUTATIONS, hashfunc=lambda number: number)

        def of(empty: Any, elements: Sequence[object]) -> Any:
            made = empty.copy()
            made.update_batch(elements)
            return made.digest()

        ways.append(
            Sketching(
                "datasketch, MinHash.update_batch", "shingles in Python; SHA-1; hashes of 32 bits",
                lambda text: of(blank, [one.encode() for one in shingles_of(text)]),
                lambda given: of(numbers, given),
                lambda hashes: (hashes & np.uint64(0xFFFFFFFF)).tolist(),
            )
        )  # fmt: skip
    if rensa := there("rensa", missing):

        def updated(kind: Any, text: str) -> Any:
            made = kind(PERMUTATIONS, _SEED)
            made.update(list(shingles_of(text)))
            return made.digest()

        matrix, many = rensa.RMinHash.digest_matrix_from_token_hash_sets, rensa.CMinHash
        ways += [
            Sketching(
                "rensa, RMinHash.update", "shingles in Python",
                lambda text: updated(rensa.RMinHash, text),
                lambda given: matrix([given], PERMUTATIONS, _SEED).to_rows()[0],
            ),
            Sketching(
                "rensa, CMinHash.update", "shingles in Python",
                lambda text: updated(rensa.CMinHash, text),
                lambda given: many.digests64_from_token_hash_sets([given], PERMUTATIONS, _SEED)[0],
            ),
        ]  # fmt: skip
    if gaoya := there("gaoya.gaoya", missing):
        index = gaoya.minhash.MinHash32StringIntIndexVec(
            0.5, PERMUTATIONS // 4, 4, PERMUTATIONS, "word", True, (sketch.WIDTH, sketch.WIDTH)
        )
        ways.append(Sketching("gaoya, tokenize_and_minhash", "32 bits a place", index.tokenize_and_minhash))
    if tors := there("tors", missing):

        def signature(text: str) -> Any:
            return tors.minhash_signature(text, num_perm=PERMUTATIONS, shingle_size=sketch.WIDTH)

        ways.append(Sketching("tors, minhash_signature", "method xxh", signature))
    return ways


def read(folders: list[Path], most: int) -> list[str]:
    """Different visible texts of at most so many pages below each folder, each of three words at least."""
    content = DetectorOptions().make_reader().content
    texts: dict[str, None] = {}
    for folder in folders:
        files = html_files([folder])
        for path in files if len(files) <= most else random.Random(_SEED).sample(files, most):
            text = content.text_of_html(str(path), read_page(path).decode("utf-8", "replace"))
            if len(words_of(text)) >= sketch.WIDTH:
                texts[text] = None
    if len(texts) < _CHECKED // 10:
        raise SystemExit("too few pages below the folders")
    return list(texts)


def timed(run: Callable[[Any], Any], arguments: Sequence[Any]) -> float:
    started = time.process_time()
    for argument in arguments:
        run(argument)
    return time.process_time() - started


def check_simhash(way: Hashing, texts: list[str]) -> str:
    values = [way.run(text) for text in texts]
    different = len(set(values))
    assert different > len(texts) / 2, f"{way.name}: {different} values of {len(texts)} texts"
    near = fmean(
        (way.run(f"{text} heliotrope") ^ value).bit_count() for text, value in zip(texts, values, strict=True)
    )
    far = fmean((a ^ b).bit_count() for a, b in pairwise(values))
    assert near < far / 2, f"{way.name}: {near} bits to nearly the same text, {far} to another"
    return f"{near:.1f} | {far:.1f} | {different} of {len(texts)}"


def check_sketch(way: Sketching, texts: list[str]) -> str:
    """The mean error of estimates."""
    features, errors = Features(), []
    for text, following in pairwise(texts):
        for other in (" ".join(text.split()[: max(3, 2 * len(text.split()) // 3)]), following):
            exact = sketch.resemblance(
                *(sketch.shingle_set(features.extract(one).words) for one in (text, other))
            )
            errors.append(abs(way.estimate(way.of_text(text), way.of_text(other)) - exact))
            if way.of_hashes is not None:
                made = [
                    way.of_hashes(way.given(sketch.shingle_set(features.extract(one).words)))
                    for one in (text, other)
                ]
                errors.append(abs(way.estimate(made[0], made[1]) - exact))
    assert fmean(errors) <= _MOST_ERROR, f"{way.name}: estimates are {fmean(errors)} from the resemblance"
    return f"{fmean(errors):.3f}"


def measure(
    hashings: list[Hashing], sketchings: list[Sketching], texts: list[str], rounds: int
) -> tuple[list[Row], list[Row]]:
    """Rows of both tables, after all checks; the first round is not counted."""
    checked = random.Random(_SEED).sample(texts, min(_CHECKED, len(texts)))
    hashed = [Row(way.name, way.includes, check=check_simhash(way, checked)) for way in hashings]
    sketched = [Row(way.name, way.includes, check=check_sketch(way, checked)) for way in sketchings]
    features = Features()
    shingled = [sketch.shingle_set(features.extract(text).words) for text in texts]
    for number in range(rounds + 1):
        for hashing, row in zip(hashings, hashed, strict=True):
            row.seconds.append(timed(hashing.run, texts))
        for way, row in zip(sketchings, sketched, strict=True):
            row.seconds.append(timed(way.of_text, texts))
            if way.of_hashes is not None:
                row.hashed_seconds.append(timed(way.of_hashes, list(map(way.given, shingled))))
        if number == 0:
            for row in hashed + sketched:
                row.seconds.clear()
                row.hashed_seconds.clear()
        print(f"round {number} of {rounds}", flush=True)
    return hashed, sketched


def tables(hashed: list[Row], sketched: list[Row], megabytes: float, count: int) -> list[str]:
    lines = [
        "MB of UTF-8 a second of processor time; medians, least and most. Near: bits to the same text with a",
        "word more. Far: bits to another text. Values: different ones of different texts, some of which are",
        "versions of one page.",
        "",
        "| text to SimHash | includes | MB/s | least | most | near | far | values |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in hashed:
        speeds = [megabytes / seconds for seconds in row.seconds]
        figures = " | ".join(f"{speed:.1f}" for speed in (median(speeds), min(speeds), max(speeds)))
        lines.append(f"| {row.name} | {row.includes} | {figures} | {row.check} |")
    lines += [
        "",
        f"Sketches of shingles of three words, {PERMUTATIONS} places unless the row says otherwise.",
        "From hashes: of shingles that are found and hashed already. Error: of the resemblance, in the mean.",
        "",
        "| text to sketch | includes | sketches/s | least | most | from hashes/s | error |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    for row in sketched:
        speeds = [count / seconds for seconds in row.seconds]
        figures = " | ".join(f"{speed:,.0f}" for speed in (median(speeds), min(speeds), max(speeds)))
        alone = f"{count / median(row.hashed_seconds):,.0f}" if row.hashed_seconds else "–"
        lines.append(f"| {row.name} | {row.includes} | {figures} | {alone} | {row.check} |")
    return lines


def versions(folder: Path | None) -> str:
    known = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            known.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            known.append(f"{package} not installed")
    if folder is not None:
        known += [path.name.removesuffix(".dist-info") for path in folder.glob("simhash_pybind-*.dist-info")]
    return ", ".join(known)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pybind", type=Path, help="folder with simhash-pybind")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = "1"  # before the peers are imported
    missing: dict[str, str] = {}
    hashings, sketchings = simhashes(arguments.pybind, missing), sketches(missing)
    for package, reason in missing.items():
        print(f"skipped: {package} ({reason})")
    texts = read(arguments.folders, arguments.pages)
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    hashed, sketched = measure(hashings, sketchings, texts, arguments.rounds)
    lines = ["# Text to SimHash and to sketches beside others", ""]
    lines += header(
        f"python -m benchmarks.bench_peers_text --pages {arguments.pages} --rounds {arguments.rounds}",
        n=f"{len(texts):,} texts, {size / 1e6:.1f} MB", recall="–",
    )  # fmt: skip
    lines += [f"- rounds: {arguments.rounds}", f"- versions: {versions(arguments.pybind)}"]
    lines += [f"- skipped: {package} ({reason})" for package, reason in missing.items()]
    lines += ["", *tables(hashed, sketched, size / 1e6, len(texts))]
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
