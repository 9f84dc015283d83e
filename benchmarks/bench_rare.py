"""How well two pages can be compared by what is rare on their site, and what that costs.

Run as ``python -m benchmarks.bench_rare --site NAME=FOLDER[,FOLDER…] …``. A shingle is rare if it stands on
at most max(6, 2 %) of the pages of the site, counted exactly. The truth is the exact resemblance of the rare
shingles of both pages. Pages with fewer than 11 rare shingles take no part: there the whole text decides.

Pairs are those within the default distance in bits. Half are drawn from all, half from those whose rare
shingles resemble each other by 0.5 or more. Each method has one page stored and the other one in hand:

- *places*: today's choice, the rare places of the stored one-bit sketch of the whole text;
- *second sketch*: a one-bit sketch of 1,024 places of the rare shingles;
- *weighted sketch*: one bit of each of 1,024 weighted samples, made by throwing darts (Christiani 2020). A
  rare shingle has the weight 1, another one (limit / pages that it stands on)²;
- *least hashes*: the 32 least 32-bit hashes of the rare shingles (Broder 1997);
- *least hashes, filtered*: the same. Stored hashes that are rare no longer are left out when they are read;
- *kept text*: the visible text by zstd with a dictionary of its site, compared exactly.

*Known late*: what is stored was made when a tenth of the site was known. The page in hand is judged when all
of it is.

Times are of the processor, the best of three rounds. They leave out the look-up of frequencies, which every
method needs. *Make* is for a page to be stored, *prepare* once for a page in hand.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.bench_judgement import add_sites, sites_of
from benchmarks.judged_pairs import OPTIONS, READER, Page
from benchmarks.provenance import give, header
from neardup.detection import own_text
from neardup.detection.document_frequencies import RARE_PAGES, RARE_SHARE
from neardup.detection.own_text import FEWEST_PLACES, FEWEST_SHINGLES, OwnPlaces
from neardup.detection.rule import SAME_HEADLINE, VERIFY
from neardup.fingerprint import sketch

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Hashes = npt.NDArray[np.uint64]
    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]

CUTS = (SAME_HEADLINE, VERIFY)
EARLY = 0.1
NEAR = 0.5
DISTANCE = OPTIONS.make_rule(READER.features).max_distance
PAIRS = 1000
MOST_DRAWN = 50_000
TIMED = 100
ROUNDS = 3
LEAST_HASHES = 32
DICTIONARY = 64 << 10
"""Bytes of a site's dictionary, the size of the host's table of frequencies."""


class Known:
    """On how many of some pages of a site shingles stand, exactly, and a dictionary of their texts."""

    def __init__(self, pages: Sequence[Page]) -> None:
        every = np.concatenate([page.shingles for page in pages])
        self._shingles, self._counts = np.unique(every, return_counts=True)
        self._of: dict[int, Ints] = {}
        self.limit = max(RARE_PAGES, int(RARE_SHARE * len(pages)))
        self.dictionary = dictionary_of([page.text for page in pages])

    @cached_property
    def by_hash(self) -> dict[int, int]:
        return dict(zip(hashes_of(self._shingles).tolist(), self._counts.tolist(), strict=True))

    def look_up(self, shingles: Hashes) -> Ints:
        places = np.minimum(np.searchsorted(self._shingles, shingles), self._shingles.size - 1)
        return np.where(self._shingles[places] == shingles, self._counts[places], 0)

    def counts(self, page: Page) -> Ints:
        """Of a page's distinct shingles; looked up once."""
        if id(page) not in self._of:
            self._of[id(page)] = self.look_up(page.shingles)
        return self._of[id(page)]

    def rare(self, page: Page) -> Hashes:
        return page.shingles[self.counts(page) <= self.limit]


class Method:
    """``store`` gives what is stored of a page, and its bytes. ``prepare`` is for the page in hand.

    ``compare`` estimates the resemblance of what is rare; None if the method does not know.
    """

    name: str
    out_of_date: str

    def store(self, page: Page, known: Known) -> tuple[Any, int]:
        raise NotImplementedError

    def prepare(self, page: Page, known: Known) -> Any:
        return self.store(page, known)[0]

    def compare(self, stored: Any, own: Any, known: Known) -> float | None:
        raise NotImplementedError


class Places(Method):
    name = "places (today)"
    out_of_date = "nothing"

    def store(self, page: Page, known: Known) -> tuple[Any, int]:
        return page.reading.sketch, 0

    def prepare(self, page: Page, known: Known) -> Any:
        held = known.look_up(page.reading.shingles[page.reading.holders]) <= known.limit
        bits = sketch.compact(held.astype(np.uint64))
        return page.reading.sketch, OwnPlaces(bits, int(np.bitwise_count(bits).sum()))

    def compare(self, stored: Any, own: Any, known: Known) -> float | None:
        compact, places = own
        if places.number < FEWEST_PLACES:
            return None
        whole = sketch.compact_estimates(stored[np.newaxis], compact)
        return float(own_text.resemblances(stored[np.newaxis], compact, whole, places)[0])


class SecondSketch(Method):
    name = "second sketch"
    out_of_date = "the sketch"

    def store(self, page: Page, known: Known) -> tuple[Any, int]:
        rare = known.rare(page)
        return (sketch.compact(sketch.minwise(rare)) if rare.size else None), sketch.SIZE // 8

    def compare(self, stored: Any, own: Any, known: Known) -> float | None:
        if stored is None or own is None:
            return None
        return float(sketch.compact_estimates(stored[np.newaxis], own)[0])


class WeightedSketch(SecondSketch):
    name = "weighted sketch"
    out_of_date = "the sketch"

    def store(self, page: Page, known: Known) -> tuple[Any, int]:
        counts = known.counts(page)
        return darts(
            page.shingles, np.minimum(1.0, known.limit / np.maximum(counts, 1)) ** 2
        ), sketch.SIZE // 8


class LeastHashes(Method):
    name = "least hashes"
    out_of_date = "hashes that are rare no longer; those that have become rare are missing"

    def store(self, page: Page, known: Known) -> tuple[Any, int]:
        least = np.sort(hashes_of(known.rare(page)))[:LEAST_HASHES]
        return least, 4 * least.size

    def compare(self, stored: Any, own: Any, known: Known) -> float | None:
        either = np.union1d(stored, own)[:LEAST_HASHES]
        both = np.intersect1d(stored, own, assume_unique=True)
        return float(np.isin(either, both).sum() / either.size) if either.size else None


class FilteredHashes(LeastHashes):
    name = "least hashes, filtered"
    out_of_date = "those that have become rare are missing"

    def prepare(self, page: Page, known: Known) -> Any:
        return np.sort(hashes_of(known.rare(page)))

    def compare(self, stored: Any, own: Any, known: Known) -> float | None:
        if stored.size == LEAST_HASHES:
            own = own[own <= stored[-1]]
        stored = [one for one in stored.tolist() if known.by_hash.get(one, 0) <= known.limit]
        either = np.union1d(stored, own).size
        return (len(stored) + own.size - either) / either if either else None


class KeptText(Method):
    name = "kept text"
    out_of_date = "nothing"

    def store(self, page: Page, known: Known) -> tuple[Any, int]:
        packed = zstd.compress(page.text, zstd_dict=known.dictionary)
        return (packed, known.dictionary), len(packed)

    def prepare(self, page: Page, known: Known) -> Any:
        return known.rare(page)

    def compare(self, stored: Any, own: Any, known: Known) -> float | None:
        text = zstd.decompress(stored[0], zstd_dict=stored[1])
        shingles = sketch.shingle_set(READER.features.extract(text).words)
        return sketch.resemblance(shingles[known.look_up(shingles) <= known.limit], own)


METHODS = (Places(), SecondSketch(), WeightedSketch(), LeastHashes(), FilteredHashes(), KeptText())


def dictionary_of(texts: Sequence[bytes]) -> zstd.ZstdDict:
    """A dictionary learned from texts of a site; of too few texts to learn from, the texts themselves."""
    try:
        return zstd.train_dict(texts, DICTIONARY)
    except zstd.ZstdError:
        return zstd.ZstdDict(b"".join(texts)[:DICTIONARY], is_raw=True)


def hashes_of(shingles: Hashes) -> npt.NDArray[np.uint32]:
    """32-bit hashes of shingles."""
    return (mixed(shingles, 0) >> np.uint64(32)).astype(np.uint32)


def mixed(values: npt.NDArray[np.uint64], salt: int) -> npt.NDArray[np.uint64]:
    """Other random bits for each value and salt (splitmix64)."""
    made = values + np.uint64(0x9E3779B97F4A7C15 * (salt + 1) & (2**64 - 1))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        made = (made ^ (made >> np.uint64(shift))) * np.uint64(factor)
    return made ^ (made >> np.uint64(31))


def darts(shingles: Hashes, weights: Floats) -> sketch.Compact:
    """One bit of each of 1,024 weighted samples of shingles, whose weights are at most 1.

    Darts are thrown at each shingle at the times of a Poisson process, at heights from 0 to 1. A dart counts
    if it hits below the weight. Each dart is for one of the samples, and the first one is the sample. Two
    pages agree in a sample with the probability Σ min / Σ max of their weights.
    """
    size = sketch.SIZE
    # With so many darts hardly a sample has none (Christiani 2020).
    until = (size * np.log(size) + 2 * size) / weights.sum()
    number = int(until + 6.0 * np.sqrt(until) + 10.0)
    seeds = mixed(shingles[:, np.newaxis] ^ mixed(np.arange(number, dtype=np.uint64), 1), 2)
    gaps, heights = (((mixed(seeds, salt) >> np.uint64(11)) + 1.0) * 2.0**-53 for salt in (3, 4))
    times = np.cumsum(-np.log(gaps), axis=1)
    hit = (heights <= weights[:, np.newaxis]) & (times <= until)
    hashes = mixed(seeds[hit], 5)
    order = np.argsort(-times[hit], kind="stable")
    bits = np.zeros(size, dtype=np.uint64)
    bits[(hashes >> np.uint64(1)).astype(np.int64)[order] % size] = hashes[order] & np.uint64(
        1
    )  # the first wins
    return sketch.compact(bits)


class Compared(NamedTuple):
    """A pair of pages, the exact resemblance of what is rare, and estimates by method, None for no answer.

    ``late`` are the estimates with the stored page made when little was known.
    """

    stored: Page
    own: Page
    exact: float
    estimates: list[float | None]
    late: list[float | None]


def near_pairs(pages: Sequence[Page], known: Known) -> list[tuple[float, Page, Page]]:
    """Candidate pairs with the exact resemblance of what is rare, as the docstring of the module says."""
    values = np.array(
        [page.reading.fingerprint.value for page in pages if page.reading.fingerprint], np.uint64
    )
    found: list[tuple[int, int]] = []
    for row in range(len(pages)):
        near = np.flatnonzero(np.bitwise_count(values[row + 1 :] ^ values[row]) <= DISTANCE) + row + 1
        found += [(row, other) for other in near.tolist()]
    chance = random.Random(0)
    drawn = chance.sample(found, min(len(found), MOST_DRAWN))
    pairs = []
    for a, b in drawn:
        rare = [known.rare(pages[place]) for place in (a, b)]
        if min(one.size for one in rare) >= FEWEST_SHINGLES:
            pairs.append((sketch.resemblance(*rare), pages[a], pages[b]))
    near_ones = [pair for pair in pairs[PAIRS // 2 :] if pair[0] >= NEAR]
    return pairs[: PAIRS // 2] + near_ones[: PAIRS // 2]


def compared(pages: list[Page]) -> tuple[list[Compared], Known, Known]:
    """The pairs of a site by every method; what is known of the site at the end, and early."""
    random.Random(1).shuffle(pages)
    known, early = Known(pages), Known(pages[: max(2, int(EARLY * len(pages)))])
    store = cache(lambda method, page, then: method.store(page, then)[0])
    prepare = cache(lambda method, page: method.prepare(page, known))
    found = []
    for exact, a, b in near_pairs(pages, known):
        made: tuple[list[float | None], list[float | None]] = ([], [])
        for method in METHODS:
            own = prepare(method, b)
            for answers, then in zip(made, (known, early), strict=True):
                answers.append(method.compare(store(method, a, then), own, known))
        found.append(Compared(a, b, exact, *made))
    return found, known, early


class Costs(NamedTuple):
    """Bytes a page; µs to make, to prepare and to compare."""

    nbytes: float
    make: float
    prepare: float
    compare: float


def costs(method: Method, pairs: Sequence[Compared], known: Known) -> Costs:
    some = random.Random(2).sample(pairs, min(len(pairs), TIMED))
    stored, nbytes = zip(*(method.store(pair.stored, known) for pair in some), strict=True)
    own = [method.prepare(pair.own, known) for pair in some]
    return Costs(
        float(np.mean(nbytes)),
        timed(lambda place: method.store(some[place].stored, known), len(some)),
        timed(lambda place: method.prepare(some[place].own, known), len(some)),
        timed(lambda place: method.compare(stored[place], own[place], known), len(some)),
    )


def timed(call: Callable[[int], object], number: int) -> float:
    """µs of a call on average."""
    best = np.full(number, np.inf)
    for _ in range(ROUNDS):
        for place in range(number):
            start = time.thread_time()
            call(place)
            best[place] = min(best[place], time.thread_time() - start)
    return float(best.mean()) * 1e6


def errors(exact: Floats, estimates: Sequence[float | None]) -> list[str]:
    """Cells: share without answer; RMSE of all and of those near; share on the wrong side of each cut."""
    answered = np.array([one is not None for one in estimates])
    found = np.array([0.0 if one is None else one for one in estimates])[answered]
    truth = exact[answered]
    near = truth >= NEAR

    def rmse(chosen: npt.NDArray[np.bool_]) -> str:
        return f"{np.sqrt(np.mean((found - truth)[chosen] ** 2)):.3f}" if chosen.any() else "–"

    wrong = [f"{np.mean((found >= cut) != (truth >= cut)):.2%}" if truth.size else "–" for cut in CUTS]
    return [f"{1.0 - answered.mean():.2%}", rmse(np.ones_like(near)), rmse(near), *wrong]


def error_table(pairs: Sequence[Compared]) -> list[str]:
    ends = " | ".join(f"wrong side of {cut:g}" for cut in CUTS)
    lines = [
        f"| method | no answer | RMSE | RMSE, ≥ {NEAR:g} | {ends} | known late: RMSE, ≥ {NEAR:g} | {ends} |",
        "|---|" + "---:|" * 8,
    ]
    exact = np.array([pair.exact for pair in pairs])
    for place, method in enumerate(METHODS):
        now = errors(exact, [pair.estimates[place] for pair in pairs])
        late = errors(exact, [pair.late[place] for pair in pairs])
        lines.append(f"| {method.name} | {' | '.join([*now, *late[2:]])} |")
    return lines


def report(sites: dict[str, list[Page]]) -> str:
    found = {name: compared(pages) for name, pages in sites.items()}
    every = [pair for pairs, _, _ in found.values() for pair in pairs]
    lines = ["# Comparing what is rare", ""]
    lines += header(
        "python -m benchmarks.bench_rare --site NAME=FOLDER,FOLDER …",
        n=f"{len(every):,} pairs of {sum(map(len, sites.values())):,} pages of {len(sites)} sites",
        recall="error of the estimates, see the tables",
    )
    lines += ["", "## Cost", "", "| method | site | bytes a page | make, µs | prepare, µs | compare, µs |"]
    lines += ["|---|---|---:|---:|---:|---:|"]
    for method in METHODS:
        for name, (pairs, known, _) in found.items():
            cost = costs(method, pairs, known)
            cells = " | ".join(f"{value:.0f}" if value >= 10.0 else f"{value:.1f}" for value in cost)
            lines.append(f"| {method.name} | {name} | {cells} |")
    lines += ["", f"A dictionary of at most {DICTIONARY:,} bytes a site comes to the kept texts.", ""]
    lines += ["What a better known site makes out of date:", ""]
    lines += [f"- {method.name}: {method.out_of_date};" for method in METHODS]
    lines += ["", "## Error", "", "All sites:", "", *error_table(every)]
    for name, (pairs, known, early) in found.items():
        size = np.mean([known.rare(page).size / page.shingles.size for page in sites[name]])
        lines += [
            "",
            f"{name}: {len(sites[name]):,} pages, {len(pairs):,} pairs, limit {known.limit} pages (early",
        ]
        lines[-1] += f" {early.limit}), {size:.0%} of a page's shingles rare:"
        lines += ["", *error_table(pairs)]
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_sites(parser)
    parser.add_argument("--output", type=Path, help="file for the tables; printed if not given")
    arguments = parser.parse_args()
    sites = {
        site.name: [page for version in site.versions for page in version] for site in sites_of(arguments)
    }
    text = report(sites)
    give(text, arguments.output)


if __name__ == "__main__":
    main()
