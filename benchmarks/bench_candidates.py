"""What fingerprints propose, by choice of features: recall of the candidates, and how many there are.

Run as ``python -m benchmarks.bench_candidates --site NAME=FOLDER[,FOLDER…] …``. Sites and judged pairs are
those of :mod:`benchmarks.bench_judgement`. All fingerprints are compared: the index has no part in it.

- *Sites, truth by name*: wanted are pages of one path in neighbouring releases that resemble each other by
  0.5 or more and have not the same text. *Candidates* are the other pages of the site within the distance.
- *Judged pairs*: the share of the pairs of a kind within the distance.

*Bits* is the choice's own distance where sketches decide. *Bits for the same recall* is the least distance
with the recall of the first choice.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks import judged_pairs
from benchmarks.bench_judgement import add_sites, sites_of
from benchmarks.provenance import give, header
from neardup.fingerprint import simhash
from neardup.fingerprint.hamming import FINGERPRINT_BITS
from neardup.text.features import Features

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from benchmarks.judged_pairs import Page, Pair, Site

    Ints = npt.NDArray[np.int64]
    Values = npt.NDArray[np.uint64]

FEATURES = "word-tf,word-log-tf,shingle-2,shingle-3,word-tf+stop-english,word-tf+stem-english"
ALL = sys.maxsize


class Row(NamedTuple):
    """Of a site and a choice of features: recall and candidates a page by distance, both of shape (65,).

    ``recall`` is None if nothing is wanted.
    """

    features: Features
    recall: npt.NDArray[np.float64] | None
    candidates: npt.NDArray[np.float64]


def fingerprints(features: Features, pages: Sequence[Page]) -> Values:
    """Values of pages, shape (n,)."""
    made = np.zeros(len(pages), dtype=np.uint64)
    for place, page in enumerate(pages):
        extracted = features.extract(page.text)
        found = simhash.fingerprint(extracted.hashes, extracted.weights)
        made[place] = 0 if found is None else found.value
    return made


def within(distances: Ints) -> Ints:
    """How many are at most so many bits, by number of bits; shape (65,)."""
    return np.cumsum(np.bincount(distances, minlength=FINGERPRINT_BITS + 1))


def row(features: Features, pages: Sequence[Page], wanted: Sequence[tuple[int, int]]) -> Row:
    values = fingerprints(features, pages)
    counts = np.zeros(FINGERPRINT_BITS + 1, dtype=np.int64)
    for value in values:
        counts += within(np.bitwise_count(values ^ value).astype(np.int64))
    recall = None
    if wanted:
        first, second = np.array(wanted).T
        recall = within(np.bitwise_count(values[first] ^ values[second]).astype(np.int64)) / len(wanted)
    return Row(features, recall, counts / values.size - 1.0)


def site_table(sites: Sequence[Site], choices: Sequence[Features]) -> list[str]:
    columns = "features | bits | recall | candidates a page | bits for the same recall | candidates a page"
    lines = [f"| site | pages | wanted | {columns} |", "|---|---:|---:|---|---:|---:|---:|---:|---:|"]
    for site in sites:
        pages = [page for version in site.versions for page in version]
        places = {id(page): place for place, page in enumerate(pages)}
        wanted = [(places[id(pair.a)], places[id(pair.b)]) for pair in judged_pairs.versions(site, ALL)]
        rows = [row(one, pages, wanted) for one in choices]
        for of in rows:
            cells = [site.name, f"{len(pages):,}", f"{len(wanted):,}", of.features.name, *_cells(of, rows[0])]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr, flush=True)
    return lines


def _cells(of: Row, first: Row) -> list[str]:
    bits = of.features.verified_max_distance
    if of.recall is None or first.recall is None:
        return [str(bits), "–", f"{of.candidates[bits]:.1f}", "–", "–"]
    reached = int(np.argmax(of.recall >= first.recall[first.features.verified_max_distance]))
    recall = f"{of.recall[bits]:.4f}"
    return [str(bits), recall, f"{of.candidates[bits]:.1f}", str(reached), f"{of.candidates[reached]:.1f}"]


def pair_table(pairs: Sequence[Pair], choices: Sequence[Features]) -> list[str]:
    """Share of pairs within each choice's own distance, by kind, same pairs first."""
    names = [f"{one.name} ({one.verified_max_distance})" for one in choices]
    lines = [f"| kind | people | n | {' | '.join(names)} |", "|---|---|---:|" + "---:|" * len(choices)]
    near = []
    for one in choices:
        a, b = (fingerprints(one, [side(pair) for pair in pairs]) for side in (_first, _second))
        near.append(np.bitwise_count(a ^ b) <= one.verified_max_distance)
    kinds = dict.fromkeys((pair.same, pair.kind) for pair in pairs)
    for same, kind in sorted(kinds, key=lambda key: not key[0]):
        chosen = np.array([pair.kind == kind for pair in pairs])
        shares = " | ".join(f"{of[chosen].mean():.3f}" for of in near)
        lines.append(f"| {kind} | {'same' if same else 'different'} | {chosen.sum():,} | {shares} |")
    return lines


def _first(pair: Pair) -> Page:
    return pair.a


def _second(pair: Pair) -> Page:
    return pair.b


def report(sites: Sequence[Site], pairs: Sequence[Pair], choices: Sequence[Features]) -> str:
    lines = ["# What fingerprints propose", ""]
    lines += header(
        "python -m benchmarks.bench_candidates --site NAME=FOLDER,FOLDER …",
        n=f"{sum(len(version) for site in sites for version in site.versions):,} pages of {len(sites)} sites;"
        f" {len(pairs):,} judged pairs",
        recall="see the tables",
    )
    lines += ["", "## Sites, truth by name", "", *site_table(sites, choices)]
    return "\n".join([*lines, "", "## Judged pairs", "", *pair_table(pairs, choices), ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_sites(parser)
    parser.add_argument("--features", default=FEATURES, metavar="A,B", help=f"default: {FEATURES}")
    parser.add_argument("--output", type=Path, help="file for the tables; printed if not given")
    arguments = parser.parse_args()
    choices = [Features(name) for name in arguments.features.split(",")]
    sites = sites_of(arguments)
    pairs = list(judged_pairs.all_pairs(sites, arguments.most))
    text = report(sites, pairs, choices)
    give(text, arguments.output)


if __name__ == "__main__":
    main()
