"""The default rule on pairs that people would agree on, by kind of pair and by cut.

Run as ``python -m benchmarks.bench_judgement --site NAME=FOLDER[,FOLDER…] … [--translated NAME=FOLDER]``.
The folders of a site are its releases, with the same relative paths. :mod:`benchmarks.judged_pairs` says how
pairs are made and labelled. ``--pairs FILE`` writes them for ``neardup evaluate FILE``.

Each pair is judged by itself: one page is stored, the other one in hand. *Known* means with the document
frequencies that a crawl of the whole site leaves. *Not known* means with none. *Whole* is the resemblance of
the whole texts alone. All three ask for at most ``max_distance`` bits.

A total gives each kind of pair the same weight. With s the mean share of same pairs called duplicates and d
that of different ones, recall is s and precision s / (s + d): as if there were as many of either.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks import judged_pairs
from benchmarks.judged_pairs import OPTIONS, READER, Page, Pair, Site
from benchmarks.provenance import give, header
from neardup.address import Address
from neardup.detection import rule
from neardup.detection.cluster_sizes import ClusterSizes
from neardup.detection.document_frequencies import DocumentFrequencies
from neardup.detection.known_bits import KnownBits
from neardup.detection.known_pages import KnownPages
from neardup.detection.rule import VERIFY, Rule
from neardup.detection.scope import ANY, Scope
from neardup.detection.verification import Verifier
from neardup.fingerprint import hamming, sketch
from neardup.text import headline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

CUTS = (0.7, 0.75, 0.8, VERIFY, 0.85, 0.9, 0.95)
WAYS = ("whole", "not known", "known")
THRESHOLDS = {"SAME_HEADLINE": (0.6, 0.65, 0.7, 0.75, 0.8), "OTHER_HEADLINE": (0.8, 0.85, 0.9, 0.95)}
"""Constants of :mod:`neardup.detection.rule` with the values that are tried, one at a time."""
DISTANCE = OPTIONS.make_rule(READER.features).max_distance
MOST = 1000
WORST = 5


@dataclass
class Stored:
    """One stored page, as a detector knows canonical pages."""

    pages: KnownPages = field(default_factory=KnownPages)
    sketches: KnownBits = field(default_factory=lambda: KnownBits(OPTIONS.sketch_size))
    headlines: KnownBits = field(default_factory=lambda: KnownBits(8 * headline.BYTES))
    sizes: ClusterSizes = field(default_factory=ClusterSizes)

    def put(self, page: Page) -> int:
        """The row of a page."""
        address, reading = Address.of(page.url), page.reading
        row = self.pages.row(address)
        if row < 0:
            assert reading.fingerprint is not None
            assert reading.sketch is not None
            row = len(self.pages)
            self.pages.add(address, page_id=row + 1, value=reading.fingerprint.value, canonical=row)
            self.sketches.put(row, reading.sketch)
            self.headlines.put(row, reading.headline.view(np.uint64))
        return row


class Judged(NamedTuple):
    """``exact`` and ``whole``: resemblance of the whole texts, exact and estimated.

    ``called`` is whether the pages are called duplicates, by way and cut; shape (3, 7). ``at`` is the same
    with one of ``THRESHOLDS`` at another value, the site known and the default cut.
    """

    pair: Pair
    distance: int
    exact: float
    whole: float
    called: npt.NDArray[np.bool_]
    at: dict[tuple[str, float], bool]


@contextmanager
def threshold(name: str, value: float) -> Iterator[None]:
    """Have a constant of the rule at another value for a while."""
    before = getattr(rule, name)
    setattr(rule, name, value)
    try:
        yield
    finally:
        setattr(rule, name, before)


class Judge:
    """Judges pairs by the real rule at each cut."""

    def __init__(self) -> None:
        self._stored = Stored()
        self._nothing = DocumentFrequencies()
        self._verifiers: dict[int, list[list[Verifier]]] = {}

    def _of(self, site: Site) -> list[list[Verifier]]:
        """Verifiers by way, without the first, and by cut."""
        if id(site) not in self._verifiers:
            self._verifiers[id(site)] = [
                [Verifier(Rule(DISTANCE, cut), Scope(ANY), self._stored, frequencies) for cut in CUTS]
                for frequencies in (self._nothing, site.frequencies)
            ]
        return self._verifiers[id(site)]

    def judge(self, pair: Pair) -> Judged:
        a, b = pair.a.reading, pair.b.reading
        assert a.fingerprint is not None
        assert b.fingerprint is not None
        assert a.sketch is not None
        assert b.sketch is not None
        distance = hamming.distance(a.fingerprint.value, b.fingerprint.value)
        whole = float(sketch.compact_estimates(a.sketch[np.newaxis], b.sketch)[0])
        called = np.zeros((len(WAYS), len(CUTS)), dtype=np.bool_)
        is_copy = a.text_digest == b.text_digest
        at = {(name, value): is_copy for name, values in THRESHOLDS.items() for value in values}
        if is_copy:
            called[:] = True
        elif distance <= DISTANCE:
            called[0] = whole >= np.array(CUTS)
            match = np.array([[self._stored.put(pair.a), distance]], dtype=np.int64)
            address = Address.of(pair.b.url)
            for way, verifiers in enumerate(self._of(pair.site), start=1):
                for place, verifier in enumerate(verifiers):
                    called[way, place] = verifier.comparison(address, b).confirmed(match) is not None
            default = self._of(pair.site)[-1][CUTS.index(VERIFY)]
            for name, value in at:
                with threshold(name, value):
                    at[name, value] = default.comparison(address, b).confirmed(match) is not None
        exact = sketch.resemblance(pair.a.shingles, pair.b.shingles)
        return Judged(pair, distance, exact, whole, called, at)


def by_kind(judged: Iterable[Judged]) -> dict[tuple[bool, str], list[Judged]]:
    """Judged pairs by label and kind, same ones first."""
    found: defaultdict[tuple[bool, str], list[Judged]] = defaultdict(list)
    for one in judged:
        found[one.pair.same, one.pair.kind].append(one)
    return dict(sorted(found.items(), key=lambda item: not item[0][0]))


def share(some: Sequence[Judged], way: int, place: int) -> float:
    return float(np.mean([one.called[way, place] for one in some]))


def kind_table(kinds: dict[tuple[bool, str], list[Judged]]) -> list[str]:
    """Kinds, and how many of them are called duplicates by default."""
    default = CUTS.index(VERIFY)
    lines = [
        f"| kind | people | n | r: 5 %, median, 95 % | ≤ {DISTANCE} bits | whole | not known | known |",
        "|---|---|---:|---|---:|---:|---:|---:|",
    ]
    for (same, kind), some in kinds.items():
        low, middle, high = np.quantile([one.exact for one in some], (0.05, 0.5, 0.95))
        near = np.mean([one.distance <= DISTANCE for one in some])
        cells = " | ".join(f"{share(some, way, default):.3f}" for way in range(len(WAYS)))
        people = "same" if same else "different"
        spread = f"{low:.2f}, {middle:.2f}, {high:.2f}"
        lines.append(f"| {kind} | {people} | {len(some):,} | {spread} | {near:.3f} | {cells} |")
    return lines


def cut_table(kinds: dict[tuple[bool, str], list[Judged]]) -> list[str]:
    lines = [
        f"| kind | people | {' | '.join(f'{cut:g}' for cut in CUTS)} |",
        "|---|---|" + "---:|" * len(CUTS),
    ]
    for (same, kind), some in kinds.items():
        cells = " | ".join(f"{share(some, WAYS.index('known'), place):.3f}" for place in range(len(CUTS)))
        lines.append(f"| {kind} | {'same' if same else 'different'} | {cells} |")
    return lines


def threshold_table(kinds: dict[tuple[bool, str], list[Judged]], name: str) -> list[str]:
    values = THRESHOLDS[name]
    lines = [f"| kind | people | {' | '.join(f'{value:g}' for value in values)} |"]
    lines.append("|---|---|" + "---:|" * len(values))
    for (same, kind), some in kinds.items():
        cells = " | ".join(f"{np.mean([one.at[name, value] for one in some]):.3f}" for value in values)
        lines.append(f"| {kind} | {'same' if same else 'different'} | {cells} |")
    return lines


def total(kinds: dict[tuple[bool, str], list[Judged]], way: int, place: int) -> tuple[float, float, float]:
    """Precision, recall and F1, each kind of pair with the same weight."""
    recall, wrong = (
        float(np.mean([share(some, way, place) for (same, _), some in kinds.items() if same is label]))
        for label in (True, False)
    )
    precision = recall / (recall + wrong) if recall else 0.0
    return precision, recall, 2.0 * precision * recall / (precision + recall) if recall else 0.0


def total_table(judged: Sequence[Judged]) -> list[str]:
    """Precision / recall / F1 by way and cut, of all pairs, and of real and made ones."""
    lines = [f"| pairs | way | {' | '.join(f'{cut:g}' for cut in CUTS)} |", "|---|---|" + "---|" * len(CUTS)]
    for name, some in (
        ("all", judged),
        ("real", [one for one in judged if one.pair.is_real]),
        ("made", [one for one in judged if not one.pair.is_real]),
    ):
        kinds = by_kind(some)
        if {same for same, _ in kinds} != {True, False}:
            continue
        for way, named in enumerate(WAYS):
            scores = [total(kinds, way, place) for place in range(len(CUTS))]
            best = max(range(len(CUTS)), key=lambda place: scores[place][2])
            cells = [" / ".join(f"{value:.3f}" for value in one) for one in scores]
            cells[best] = f"**{cells[best]}**"
            lines.append(f"| {name} | {named} | {' | '.join(cells)} |")
    return lines


def site_table(judged: Sequence[Judged]) -> list[str]:
    """Real pairs by site at the default cut, and the cut with the best F1 of the site."""
    default, known = CUTS.index(VERIFY), WAYS.index("known")
    lines = [
        "| site | pairs | same | precision / recall / F1 | best F1 | at |",
        "|---|---:|---:|---|---:|---:|",
    ]
    sites = dict.fromkeys(one.pair.site for one in judged if one.pair.is_real)
    for site in sites:
        some = [one for one in judged if one.pair.site is site and one.pair.is_real]
        kinds = by_kind(some)
        if {same for same, _ in kinds} != {True, False}:
            continue
        scores = [total(kinds, known, place) for place in range(len(CUTS))]
        best = max(range(len(CUTS)), key=lambda place: scores[place][2])
        cells = " / ".join(f"{value:.3f}" for value in scores[default])
        same = sum(one.pair.same for one in some)
        lines.append(
            f"| {site.name} | {len(some):,} | {same:,} | {cells} | {scores[best][2]:.3f} | {CUTS[best]:g} |"
        )
    return lines


def worst(kinds: dict[tuple[bool, str], list[Judged]]) -> Iterator[str]:
    """Of each kind the mistakes that the whole texts say least of."""
    default, known = CUTS.index(VERIFY), WAYS.index("known")
    for (same, kind), some in kinds.items():
        wrong = [one for one in some if one.called[known, default] != same]
        for one in sorted(wrong, key=lambda one: one.exact, reverse=same)[:WORST]:
            names = ", ".join(f"`{name}`" for name in dict.fromkeys((one.pair.a.name, one.pair.b.name)))
            yield (
                f"- {kind}, {'missed' if same else 'wrong'}: r = {one.exact:.3f}, {one.distance} bits,"
                f" {one.pair.site.name}: {names}"
            )


def report(judged: Sequence[Judged], command: str) -> str:
    kinds = by_kind(judged)
    lines = ["# Pairs that people would agree on", ""]
    lines += header(command, n=f"{len(judged):,} pairs of {len(kinds)} kinds", recall="see the tables")
    lines += ["", "## Kinds of pairs", ""]
    lines += [f"Share called duplicates with `NEARDUP_VERIFY` = {VERIFY:g}:", "", *kind_table(kinds)]
    lines += ["", "## By cut", "", "Share called duplicates, the site known:", "", *cut_table(kinds)]
    for name in THRESHOLDS:
        lines += ["", f"## `{name}`", "", f"The same at {VERIFY:g}, with other values of `{name}` (default"]
        lines[-1] += f" {getattr(rule, name):g}):"
        lines += ["", *threshold_table(kinds, name)]
    lines += ["", "## Totals", "", "Precision / recall / F1; the best F1 is bold:", "", *total_table(judged)]
    lines += ["", "## Sites", "", "Real pairs, the site known:", "", *site_table(judged)]
    return "\n".join([*lines, "", "## Mistakes", "", *worst(kinds), ""])


def write_pairs(file: IO[str], pairs: Iterable[Pair]) -> None:
    """Pairs as ``neardup evaluate`` reads them, by their texts."""
    for pair in pairs:
        texts = {
            f"{side}_text": page.text.decode("utf-8", "replace")
            for side, page in (("a", pair.a), ("b", pair.b))
        }
        json.dump({**texts, "label": int(pair.same), "kind": pair.kind}, file, ensure_ascii=False)
        file.write("\n")


def add_sites(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--site", action="append", default=[], metavar="NAME=FOLDER[,FOLDER…]")
    parser.add_argument("--translated", action="append", default=[], metavar="NAME=FOLDER")
    parser.add_argument(
        "--leave-out", default="", metavar="REGEX", help="pages with such a path take no part"
    )
    parser.add_argument("--most", type=int, default=MOST, help="pairs of a kind at most")


def sites_of(arguments: argparse.Namespace) -> list[Site]:
    """The sites that the command line names."""
    sites = []
    for given, translated in ((arguments.site, False), (arguments.translated, True)):
        for one in given:
            name, _, folders = one.partition("=")
            paths = [Path(folder) for folder in folders.split(",")]
            sites.append(judged_pairs.load(name, paths, arguments.leave_out, translated=translated))
            print(f"{name}: {sum(map(len, sites[-1].versions)):,} pages", file=sys.stderr, flush=True)
    return sites


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_sites(parser)
    parser.add_argument("--pairs", type=Path, help="file for the pairs themselves: .jsonl or .jsonl.gz")
    parser.add_argument("--output", type=Path, help="file for the tables; printed if not given")
    arguments = parser.parse_args()
    sites = sites_of(arguments)
    pairs = list(judged_pairs.all_pairs(sites, arguments.most))
    print(f"{len(pairs):,} pairs", file=sys.stderr, flush=True)
    if arguments.pairs:
        opened = gzip.open if arguments.pairs.suffix == ".gz" else open
        with opened(arguments.pairs, "wt", encoding="utf-8") as file:
            write_pairs(file, pairs)
    judge = Judge()
    judged = [judge.judge(pair) for pair in pairs]
    text = report(judged, "python -m benchmarks.bench_judgement --site NAME=FOLDER,FOLDER …")
    give(text, arguments.output)


if __name__ == "__main__":
    main()
