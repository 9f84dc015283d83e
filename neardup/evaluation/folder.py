"""The pages of folders as their own truth: what their exact resemblance says, against what each
rule reports.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.detection.rule import MIN_FEATURES
from neardup.errors import ConfigurationError, NeardupError
from neardup.evaluation import counting_kernels as kernels
from neardup.evaluation import join
from neardup.evaluation.measure import Score
from neardup.evaluation.mistakes import diff, each_page_once
from neardup.evaluation.pages import Pages
from neardup.evaluation.result import CUTS, Mistake, Result, Row
from neardup.fingerprint import sketch
from neardup.index.psm.psm_index import RECALL
from neardup.index.registry import PSM, make_index
from neardup.text.folders import html_files, read_page
from neardup.text.visible_text import text_of_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from neardup.evaluation.pages import Prints
    from neardup.evaluation.result import Choices, Trial

    Ints = npt.NDArray[np.int64]
    Progress = Callable[[str, int, int], None]

CUT = 0.9
CORRECT = 0.8
HALVES = ("first", "second")

_PAIRS_AT_ONCE = 20_000_000
_START_OF_FILE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOptions:
    """Pairs with a resemblance of at least ``cut`` are to be found; pairs reported with ``correct`` or more
    are right.

    Pages with fewer than ``min_features`` distinct words take no part. ``half`` (one of ``HALVES``) keeps
    only the pages whose file names have digests of one sort. So all versions of a page are in the same half.
    ``mistakes`` is how many mistakes of each kind are listed.
    """

    cut: float = CUT
    correct: float = CORRECT
    min_features: int = MIN_FEATURES
    half: str | None = None
    mistakes: int = 0

    def __post_init__(self) -> None:
        for name in ("cut", "correct"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ConfigurationError(f"--{name} must be above 0 and at most 1, not {getattr(self, name)}")


def evaluate_folders(
    folders: Sequence[Path], choices: Choices, options: FolderOptions, on_progress: Progress | None = None
) -> Result:
    """Score every rule on all pairs of the pages below the folders, and the candidates of an index by each
    one's own rules.

    All pairs are compared: n²/2 steps of 7 to 9 ns for each choice of features (1,631 and 2,140 pages).
    Memory: the shingles of the pages, about ten times over while the truth is computed, and 50 bytes for each
    pair of the truth.
    ``on_progress`` is as in :func:`neardup.evaluation.judged.evaluate_pairs`. Raises ConfigurationError if
    there are no two pages.
    """
    say = on_progress or (lambda *_: None)
    pages, paths, source = _read(folders, choices, options, say)
    truth = _truth(pages, options, say)
    classes = np.bincount(truth.classes, minlength=8)
    source |= {"pairs": len(pages) * (len(pages) - 1) // 2, **_totals(classes)}
    rows: list[Row] = []
    through_index: list[Row] = []
    for one in choices.features:
        prints = pages.prints(one.name)
        histogram = _count(prints, truth, say, one.name)
        trials = [trial for trial in choices.trials() if trial.features == one.name]
        rows += [_row("fingerprint", histogram, classes, trial, choices.note(trial)) for trial in trials]
        if one is choices.features[0]:
            alone = _by_estimate(histogram, classes)
        found: dict[int, Ints] = {}
        for trial in choices.own_trials(one):
            if trial.distance not in found:
                found[trial.distance] = _look_up(prints, truth, trial, say)
            through_index.append(_row("index", found[trial.distance], classes, trial, choices.note(trial)))
    mistakes = _mistakes(pages, paths, truth, choices.default, options.mistakes, say=say)
    return Result("pages", source, choices.default, rows + through_index + alone, mistakes)


def in_half(path: Path, half: str) -> bool:
    """Whether a page is in one of the two halves, by its file name without .gz."""
    name = path.name.removesuffix(".gz").encode("utf-8", "surrogateescape")
    return HALVES[hashlib.blake2b(name).digest()[0] & 1] == half


def has_markup(data: bytes) -> bool:
    """Whether a file is a page: Apache's lists of the languages of a page are named as pages, too."""
    return b"<" in data[:_START_OF_FILE]


def _read(
    folders: Sequence[Path], choices: Choices, options: FolderOptions, say: Progress
) -> tuple[Pages, list[Path], dict[str, Any]]:
    files = [path for path in html_files(folders) if options.half is None or in_half(path, options.half)]
    pages = Pages(choices.features)
    paths: list[Path] = []
    unreadable = no_pages = too_short = 0
    for done, path in enumerate(files, start=1):
        try:
            data = read_page(path)
            if not has_markup(data):
                no_pages += 1
            elif (
                pages.add(path.resolve().as_uri(), text_of_bytes(data), min_features=options.min_features)
                is None
            ):
                too_short += 1
            else:
                paths.append(path)
        except NeardupError:  # one broken or huge file among thousands is counted, and stops nothing
            unreadable += 1
            continue
        say("pages read", done, len(files))
    if len(pages) < 2:
        named = ", ".join(map(str, folders))
        raise ConfigurationError(
            f"{named}: {len(pages)} of {len(files)} pages have {options.min_features} distinct words; two"
            " are needed"
        )
    source = {
        "folders": [str(folder) for folder in folders],
        "half": options.half,
        "pages": len(pages),
        "texts": int(np.unique(pages.texts).size),
        "too_short": too_short,
        "no_pages": no_pages,
        "unreadable": unreadable,
        "min_features": options.min_features,
        "cut": options.cut,
        "correct": options.correct,
        "index_recall": RECALL,
    }
    return pages, paths, source


def _truth(pages: Pages, options: FolderOptions, say: Progress) -> kernels.Truth:
    say("exact resemblances", 0, 1)
    found = join.similar_pairs(pages.sets, min(options.cut, options.correct))
    texts = pages.texts
    order = np.argsort(found.second, kind="stable")
    earlier, later, alike = found.first[order], found.second[order], found.resemblance[order]
    classes = (
        kernels.RIGHT * (alike >= options.correct)
        + kernels.WANTED * (alike >= options.cut)
        + kernels.SAME_TEXT * (texts[earlier] == texts[later])
    ).astype(np.uint8)
    say("exact resemblances", 1, 1)
    return kernels.Truth(np.searchsorted(later, np.arange(len(pages) + 1)), earlier, classes, alike)


def _totals(classes: Ints) -> dict[str, int]:
    """How many pairs are right and wanted, of all and of different texts, from the number of pairs of each
    class.
    """
    of = np.arange(8)
    different = of & kernels.SAME_TEXT == 0
    return {
        f"{name}{suffix}": int(classes[(of & bit > 0) & chosen].sum())
        for name, bit in (("right", kernels.RIGHT), ("wanted", kernels.WANTED))
        for suffix, chosen in (("", different | True), ("_different", different))
    }


def _count(prints: Prints, truth: kernels.Truth, say: Progress, name: str) -> Ints:
    """Histogram of all pairs; see :func:`neardup.evaluation.counting_kernels.count_pairs`."""
    histogram = np.zeros((8, 65, sketch.SIZE + 1), dtype=np.int64)
    for begin, end in _blocks(prints.values.size, say, f"{name}: all pairs"):
        histogram += kernels.count_pairs(prints, truth, begin, end)
    return histogram


def _blocks(pages: int, say: Progress, what: str) -> Iterator[tuple[int, int]]:
    """Pages in groups that make about the same number of pairs with those before them."""
    number = max(1, pages * pages // (2 * _PAIRS_AT_ONCE))
    ends = np.rint(pages * np.sqrt(np.arange(number + 1) / number)).astype(int).tolist()
    for begin, end in itertools.pairwise(ends):
        yield begin, end
        say(what, end, pages)


def _look_up(prints: Prints, truth: kernels.Truth, trial: Trial, say: Progress) -> Ints:
    """Histogram of the pairs that an index finds, each page looked up among those before it, as a crawl does
    it.
    """
    index = make_index(PSM, max_distance=trial.distance, recall=RECALL)
    histogram = np.zeros((8, 65, sketch.SIZE + 1), dtype=np.int64)
    marks = np.zeros(prints.values.size, dtype=np.uint8)
    for row in range(prints.values.size):
        query = prints.fingerprint(row)
        matches = index.match_table(query)
        rows, distances = matches[:, 0].astype(np.int64), matches[:, 2].astype(np.int64)
        of_truth = slice(truth.offsets[row], truth.offsets[row + 1])
        marks[truth.partners[of_truth]] = truth.classes[of_truth]
        differing = np.bitwise_count(prints.sketches[rows] ^ prints.sketches[row]).sum(axis=1, dtype=np.int64)
        np.add.at(histogram, (marks[rows], distances, differing), 1)
        marks[truth.partners[of_truth]] = 0
        index.add(query.value, row)
        say(f"{trial.features}: looked up within {trial.distance}", row + 1, prints.values.size)
    return histogram


def _most_differing(verify: float | None) -> int:
    """Bits in which the sketches of two pages may differ, for an estimate of at least ``verify``; all if that
    is off.
    """
    return sketch.most_differing(sketch.SIZE, verify) if verify else sketch.SIZE


def _score(reported: Ints, classes: Ints) -> Score:
    """Score from the numbers of reported pairs and of all pairs of the truth by class, shapes (8,)."""
    of = np.arange(8)
    wanted = of & kernels.WANTED > 0
    return Score(
        reported=int(reported.sum()),
        right=int(reported[of & kernels.RIGHT > 0].sum()),
        wanted=int(classes[wanted].sum()),
        found=int(reported[wanted].sum()),
    )


def _both(by: str, reported: Ints, classes: Ints, **named: Any) -> Row:
    """A row with the score of all pairs, and that of pairs of different texts."""
    different = np.arange(8) & kernels.SAME_TEXT == 0
    return Row(
        by, _score(reported, classes), different=_score(reported * different, classes * different), **named
    )


def _row(by: str, histogram: Ints, classes: Ints, trial: Trial, note: str) -> Row:
    reported = histogram[:, : trial.distance + 1, : _most_differing(trial.verify) + 1].sum(axis=(1, 2))
    return _both(by, reported, classes, trial=trial, note=note)


def _by_estimate(histogram: Ints, classes: Ints) -> list[Row]:
    """What the sketches say without any fingerprint."""
    up_to = histogram.sum(axis=1).cumsum(axis=1)
    rows = [_both("estimate", up_to[:, _most_differing(cut)], classes, cut=cut) for cut in CUTS]
    scored = [(_both("estimate", up_to[:, at], classes), at) for at in range(sketch.SIZE // 2 + 1)]
    best, at = max(scored, key=lambda row: rate.value if (rate := row[0].score.f1) else -1.0)
    if best.score.f1:
        rows.append(replace(best, cut=1.0 - 2.0 * at / sketch.SIZE, note="best"))
    return rows


def _mistakes(
    pages: Pages, paths: list[Path], truth: kernels.Truth, trial: Trial, number: int, *, say: Progress
) -> list[Mistake]:
    """Of the wanted pairs missed those most alike, and of the wrong pairs reported those least alike, each
    page once in either.
    """
    if not number:
        return []
    prints = pages.prints(trial.features)
    chosen = [("missed", pair) for pair in each_page_once(_missed(prints, truth, trial), number)]
    chosen += [("wrong", pair) for pair in each_page_once(_wrong(pages, prints, truth, trial, say), number)]
    mistakes = []
    for kind, (a, b) in chosen:
        distance = int(np.bitwise_count(prints.values[a] ^ prints.values[b]))
        estimate = float(sketch.compact_estimates(prints.sketches[a : a + 1], prints.sketches[b])[0])
        alike = sketch.resemblance(pages.sets[a], pages.sets[b])
        texts = (text_of_bytes(read_page(paths[row])) for row in (a, b))
        mistakes.append(
            Mistake(kind, pages.names[a], pages.names[b], alike, distance, estimate, diff(*texts))
        )
    return mistakes


def _missed(prints: Prints, truth: kernels.Truth, trial: Trial) -> Iterator[tuple[int, int]]:
    """Wanted pairs that the rule does not report, most alike first."""
    wanted = np.flatnonzero(truth.classes & kernels.WANTED)
    later = np.searchsorted(truth.offsets, wanted, side="right") - 1
    earlier = truth.partners[wanted]
    missed = np.bitwise_count(prints.values[earlier] ^ prints.values[later]) > trial.distance
    if trial.verify:
        for start in range(0, wanted.size, _PAIRS_AT_ONCE // 100):
            part = slice(start, start + _PAIRS_AT_ONCE // 100)
            both = prints.sketches[earlier[part]] ^ prints.sketches[later[part]]
            missed[part] |= np.bitwise_count(both).sum(axis=1, dtype=np.int64) > _most_differing(trial.verify)
    places = np.flatnonzero(missed)
    for place in places[np.argsort(-truth.resemblances[wanted[places]], kind="stable")].tolist():
        yield int(earlier[place]), int(later[place])


def _wrong(
    pages: Pages, prints: Prints, truth: kernels.Truth, trial: Trial, say: Progress
) -> Iterator[tuple[int, int]]:
    """For each page the worst pair with an earlier one that is reported and not right, least alike first."""
    starts = np.concatenate(([0], np.cumsum([one.size for one in pages.sets])))
    sets = kernels.Sets(np.concatenate(pages.sets), starts)
    rule = {"max_distance": trial.distance, "most_differing": _most_differing(trial.verify)}
    found = [
        kernels.least_alike(prints, truth, sets, begin, end, **rule)
        for begin, end in _blocks(len(pages), say, "worst mistakes")
    ]
    resemblances, others = (np.concatenate(pieces) for pieces in zip(*found, strict=True))
    for later in np.argsort(resemblances, kind="stable").tolist():
        if others[later] < 0:
            break
        yield int(others[later]), int(later)
