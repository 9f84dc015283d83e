"""Labelled pairs, judged by every rule, by their exact resemblance, and by their sketches alone."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.detection.rule import MIN_FEATURES
from neardup.errors import ConfigurationError
from neardup.evaluation import measure
from neardup.evaluation.labelled import read_pairs, text_of
from neardup.evaluation.mistakes import diff, each_page_once
from neardup.evaluation.pages import Pages
from neardup.evaluation.result import CUTS, Mistake, Result, Row
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from neardup.evaluation.result import Choices, Trial

    Bools = npt.NDArray[np.bool_]
    Floats = npt.NDArray[np.float64]
    Ints = npt.NDArray[np.int64]


class Labelled(NamedTuple):
    """Pairs of rows of ``pages`` from a file, ``graded`` or not; all arrays have shape (m,)."""

    path: Path
    graded: bool
    pages: Pages
    first: Ints
    second: Ints
    grades: Floats
    labels: Bools


class Compared(NamedTuple):
    """Hamming distances and estimated resemblances of pairs, shapes (m,)."""

    distances: Ints
    estimates: Floats


def evaluate_pairs(
    path: Path,
    choices: Choices,
    *,
    graded_cut: float | None = None,
    min_features: int = MIN_FEATURES,
    mistakes: int = 0,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> Result:
    """Score labelled pairs; a grade of at least ``graded_cut`` means duplicates.

    A pair of which one page has fewer than ``min_features`` distinct words is never reported, whatever it is
    judged by. ``on_progress`` is told what is done, how far it is, and the end, 0 if that is not known.
    Raises ConfigurationError for pairs that cannot be read.
    """
    if graded_cut is not None and not math.isfinite(graded_cut):
        raise ConfigurationError(f"--graded-cut must be a finite number, not {graded_cut}")
    known = _load(path, choices, graded_cut, on_progress)
    long_enough = known.pages.distinct_words >= min_features
    usable = long_enough[known.first] & long_enough[known.second]
    exact = _exact(known)
    compared = {one.name: _compare(known, one.name) for one in choices.features}
    rows = [
        Row(
            "fingerprint",
            measure.score(usable & judge(compared[trial.features], trial), known.labels),
            trial,
            note=choices.note(trial),
        )
        for trial in choices.trials()
    ]
    estimates = compared[choices.default.features].estimates
    rows += _by_cut("resemblance", exact, usable, known.labels)
    rows += _by_cut("estimate", estimates, usable, known.labels)
    source: dict[str, Any] = {
        "path": str(path),
        "pairs": known.labels.size,
        "duplicates": int(np.count_nonzero(known.labels)),
        "too_short": int(np.count_nonzero(~usable)),
        "min_features": min_features,
        "graded_cut": graded_cut,
    }
    if graded_cut is not None:
        source["spearman_resemblance"] = measure.spearman(exact, known.grades)
        source["spearman_estimate"] = measure.spearman(estimates, known.grades)
    default = choices.default
    reported = usable & judge(compared[default.features], default)
    worst = _mistakes(known, reported, exact, compared[default.features], mistakes)
    return Result("pairs", source, default, rows, worst)


def judge(compared: Compared, trial: Trial) -> Bools:
    """Which pairs match."""
    return trial.rule().are_matches(compared.distances, compared.estimates)


def _load(
    path: Path,
    choices: Choices,
    graded_cut: float | None,
    on_progress: Callable[[str, int, int], None] | None,
) -> Labelled:
    pages = Pages(choices.features)
    rows: dict[bytes, int] = {}
    places = array("q")
    grades = array("d")
    for number, pair in enumerate(read_pairs(path, graded=graded_cut is not None), start=1):
        for side in (pair.a, pair.b):
            # Most sets name a page in many pairs.
            key = side.key()
            if key not in rows:
                row = pages.add(side.name, text_of(path, pair, side))
                assert row is not None
                rows[key] = row
            places.append(rows[key])
        grades.append(pair.label)
        if on_progress is not None:
            on_progress("pairs read", number, 0)
    both = np.array(places, dtype=np.int64).reshape(-1, 2)
    values = np.array(grades, dtype=np.float64)
    labels = values >= (1.0 if graded_cut is None else graded_cut)
    return Labelled(path, graded_cut is not None, pages, both[:, 0], both[:, 1], values, labels)


def _exact(known: Labelled) -> Floats:
    sets = known.pages.sets
    pairs = zip(known.first.tolist(), known.second.tolist(), strict=True)
    return np.fromiter((sketch.resemblance(sets[a], sets[b]) for a, b in pairs), np.float64, known.first.size)


def _compare(known: Labelled, features: str) -> Compared:
    prints = known.pages.prints(features)
    estimates = np.empty(known.first.size)
    for place, (a, b) in enumerate(zip(known.first.tolist(), known.second.tolist(), strict=True)):
        estimates[place] = sketch.compact_estimates(prints.sketches[a : a + 1], prints.sketches[b])[0]
    distances = np.bitwise_count(prints.values[known.first] ^ prints.values[known.second]).astype(np.int64)
    return Compared(distances, estimates)


def _by_cut(by: str, values: Floats, usable: Bools, labels: Bools) -> Iterator[Row]:
    for cut in CUTS:
        yield Row(by, measure.score(usable & (values >= cut), labels), cut=cut)
    best = measure.best_cut(np.where(usable, values, -1.0), labels)
    if best is not None and best >= 0.0:
        yield Row(by, measure.score(usable & (values >= best), labels), cut=best, note="best")


def _mistakes(
    known: Labelled, reported: Bools, exact: Floats, compared: Compared, number: int
) -> list[Mistake]:
    """The pairs labelled duplicates that are most alike of those missed, then those least alike of the
    wrongly reported.
    """
    order = np.argsort(exact, kind="stable")
    chosen: dict[int, str] = {}
    for kind, ordered, mistaken in (
        ("missed", order[::-1], known.labels & ~reported),
        ("wrong", order, reported & ~known.labels),
    ):
        places = ordered[mistaken[ordered]]
        pairs = list(zip(known.first[places].tolist(), known.second[places].tolist(), strict=True))
        chosen |= {int(places[pairs.index(pair)]): kind for pair in each_page_once(pairs, number)}
    # Texts are not kept; the few that are shown are read again.
    pairs_again = read_pairs(known.path, graded=known.graded) if chosen else ()
    shown = {place: pair for place, pair in enumerate(pairs_again) if place in chosen}
    return [
        Mistake(
            kind, shown[at].a.name, shown[at].b.name, float(exact[at]), int(compared.distances[at]),
            float(compared.estimates[at]),
            diff(text_of(known.path, shown[at], shown[at].a), text_of(known.path, shown[at], shown[at].b)),
        )
        for at, kind in chosen.items()
    ]  # fmt: skip
