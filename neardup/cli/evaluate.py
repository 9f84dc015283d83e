"""``neardup evaluate``: how well each choice of features, distance and verification tells near-duplicates
apart.

PAIRS are labelled pairs (.jsonl or .csv): texts, HTML or paths, and whether they are duplicates. With
``--pages``, the exact resemblance of the 3-word shingles of pages is the truth. With ``--same-name``, the
names of pages are the truth. The pages are then judged one after the other, as a crawl with the settings of
this project judges them. Only this mode measures the whole rule of a crawl: the others know neither headlines
nor what is rare on a site.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.cli import evaluate_names
from neardup.cli.output import Section, percent, plain, printable, show_json, show_sections
from neardup.cli.progress import QUIET_SECONDS, interruptible
from neardup.detection import rule
from neardup.errors import ConfigurationError
from neardup.evaluation import folder, judged, names, result
from neardup.evaluation.plot import check_plot, plot
from neardup.index.base import check_max_distance
from neardup.text.features import Features

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from neardup.evaluation.result import Mistake, Result, Row

FEATURES = "word-tf,word-log-tf,shingle-3"
SHOWN = frozenset({*range(9), 10, 12})
"""Distances that a table has rows for, unless --distance says which."""

MISTAKES = 5

_PAIRS, _PAGES, _NAMES = "PAIRS", "--pages", "--same-name"
_MODES = {
    "graded_cut": (_PAIRS,),
    "cut": (_PAGES,),
    "correct": (_PAGES,),
    "half": (_PAGES, _NAMES),
    "plot": (_PAIRS, _PAGES),
    "features": (_PAIRS, _PAGES),
    "distance": (_PAIRS, _PAGES),
    "verify": (_PAIRS, _PAGES),
    "min_features": (_PAIRS, _PAGES),
    "order": (_NAMES,),
    "seed": (_NAMES,),
    "early": (_NAMES,),
    "set": (_NAMES,),
}
"""Options that are not for every mode, and the modes that they are for."""

_SETTING_OF = {
    "features": "NEARDUP_FEATURES",
    "distance": "NEARDUP_MAX_DISTANCE",
    "verify": "NEARDUP_VERIFY",
    "min_features": "NEARDUP_MIN_FEATURES",
}
"""What says the same where pages are judged by settings."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pairs", metavar="PAIRS", nargs="?", type=Path, help="labelled pairs: .jsonl or .csv")
    parser.add_argument(
        "--pages", metavar="FOLDER", nargs="+", type=Path, help="folders of HTML pages instead"
    )
    parser.add_argument(
        "--same-name",
        metavar="REGEX",
        help="pages are the same if the part of the path below FOLDER that this matches is (its first group,"
        " if it has one)",
    )
    parser.add_argument("--features", metavar="A,B", help=f"choices compared (default: {FEATURES})")
    parser.add_argument("--distance", metavar="N,M", help="only these distances, 0 to 16")
    parser.add_argument(
        "--verify",
        metavar="R,S",
        help=f"resemblances that the sketches must tell, 0 for none (default: {rule.VERIFY:g})",
    )
    parser.add_argument(
        "--min-features",
        type=int,
        metavar="N",
        help=f"distinct words that a page must have (default: {rule.MIN_FEATURES})",
    )
    parser.add_argument(
        "--graded-cut", type=float, metavar="X", help="labels of at least X mean duplicates (PAIRS)"
    )
    parser.add_argument(
        "--cut",
        type=float,
        metavar="R",
        help=f"resemblance from which pairs must be found (default: {folder.CUT})",
    )
    parser.add_argument(
        "--correct",
        type=float,
        metavar="R",
        help=f"resemblance from which reported pairs are right (default: {folder.CORRECT})",
    )
    parser.add_argument(
        "--half", choices=folder.HALVES, help="only this half of the pages, by their file names"
    )
    evaluate_names.add_arguments(parser)
    parser.add_argument(
        "--mistakes",
        type=int,
        metavar="N",
        help=f"worst of each kind (default: {MISTAKES}, with --same-name {names.MISTAKES})",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="precision against recall, as .svg or .png")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")


def run(arguments: argparse.Namespace) -> None:
    _check(arguments)
    if arguments.same_name is not None:
        evaluate_names.run(arguments, _progress())
        return
    choices = result.Choices(
        [Features(name) for name in dict.fromkeys(_listed(arguments.features, FEATURES))],
        [_number(text, "--verify", 0.0, 1.0) for text in _listed(arguments.verify, f"{rule.VERIFY:g}")],
        [check_max_distance(int(_number(text, "--distance", 0, 16))) for text in _listed(arguments.distance)],
    )
    if not choices.features or not choices.verify:
        raise ConfigurationError("--features and --verify must name at least one each")
    if arguments.plot:
        check_plot(arguments.plot)
    with interruptible("nothing is written"):
        made = _evaluate(arguments, choices)
        if arguments.plot:
            plot(made, arguments.plot)
    if arguments.format == "json":
        show_json(made.record())
    else:
        _show(made, choices)


def _check(arguments: argparse.Namespace) -> None:
    if (arguments.pairs is None) == (arguments.pages is None):
        raise ConfigurationError("give either PAIRS, a file of labelled pairs, or --pages FOLDER…")
    if arguments.same_name is not None and arguments.pages is None:
        raise ConfigurationError("--same-name needs --pages FOLDER…")
    mode = _PAIRS if arguments.pages is None else _PAGES if arguments.same_name is None else _NAMES
    for name, modes in _MODES.items():
        if getattr(arguments, name) is not None and mode not in modes:
            hint = f"; with --same-name say --set {_SETTING_OF[name]}=…" if name in _SETTING_OF else ""
            raise ConfigurationError(f"--{name.replace('_', '-')} is for {' and '.join(modes)} only{hint}")
    if arguments.mistakes is not None and arguments.mistakes < 0:
        raise ConfigurationError(f"--mistakes must not be below 0, but is {arguments.mistakes}")
    if arguments.min_features is not None and arguments.min_features < 1:
        raise ConfigurationError(f"--min-features must be at least 1, not {arguments.min_features}")


def _listed(text: str | None, default: str = "") -> list[str]:
    return [one.strip() for one in (default if text is None else text).split(",") if one.strip()]


def _number(text: str, option: str, low: float, high: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not low <= number <= high or (isinstance(low, int) and number != int(number)):
        raise ConfigurationError(
            f"{option} must be numbers from {low:g} to {high:g} with commas between, not {text!r}"
        )
    return number


def _evaluate(arguments: argparse.Namespace, choices: result.Choices) -> Result:
    min_features = rule.MIN_FEATURES if arguments.min_features is None else arguments.min_features
    mistakes = MISTAKES if arguments.mistakes is None else arguments.mistakes
    if arguments.pages is None:
        return judged.evaluate_pairs(
            arguments.pairs,
            choices,
            graded_cut=arguments.graded_cut,
            min_features=min_features,
            mistakes=mistakes,
            on_progress=_progress(),
        )
    options = folder.FolderOptions(
        cut=folder.CUT if arguments.cut is None else arguments.cut,
        correct=folder.CORRECT if arguments.correct is None else arguments.correct,
        min_features=min_features,
        half=arguments.half,
        mistakes=mistakes,
    )
    return folder.evaluate_folders(arguments.pages, choices, options, _progress())


def _progress() -> Callable[[str, int, int], None]:
    """Shows progress on standard error every two seconds."""
    last = time.monotonic()

    def show(what: str, done: int, end: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > QUIET_SECONDS:
            last = now
            print(f"{what}: {done:,}" + (f" of {end:,}" if end else ""), file=sys.stderr, flush=True)

    return show


def _show(made: Result, choices: result.Choices) -> None:
    default = made.default
    print(f"{made.mode}: " + ", ".join(f"{name} {plain(value)}" for name, value in made.source.items()))
    print(f"default rule: {default.features}, distance {default.distance}, {_how(default.verify)}\n")
    sections = []
    for one in choices.features:
        for verify in choices.cuts:
            rows = [
                row
                for row in made.rows
                if row.by == "fingerprint"
                and row.trial
                and (row.trial.features, row.trial.verify) == (one.name, verify)
                and (choices.distances or row.trial.distance in SHOWN or row.note)
            ]
            sections.append(_section(f"{one.name}, {_how(verify)}", rows))
    sections += [
        _section(title, rows)
        for by, title in (
            ("index", "Candidates found by the index"),
            ("resemblance", "Exact resemblance"),
            ("estimate", "Sketches alone"),
        )
        if (rows := [row for row in made.rows if row.by == by])
    ]
    show_sections(sections, "table")
    for mistake in made.mistakes:
        _show_mistake(mistake)


def _how(verify: float | None) -> str:
    return "by distance alone" if verify is None else f"verified at {verify:g}"


def _section(title: str, rows: Iterable[Row]) -> Section:
    columns: tuple[str, ...] = ()
    cells = []
    for row in rows:
        shown: dict[str, object] = {}
        if row.by == "index" and row.trial:
            shown["features"] = row.trial.features
            shown["verify"] = "-" if row.trial.verify is None else f"{row.trial.verify:g}"
        if row.trial:
            shown["distance"] = row.trial.distance
        else:
            shown["cut"] = f"{row.cut:.3f}"
        shown |= {
            "reported": row.score.reported,
            "precision %": percent(row.score.precision),
            "recall %": percent(row.score.recall),
        }
        if row.different:
            shown["of different texts"] = percent(row.different.recall)
        shown |= {"F1 %": percent(row.score.f1), "": row.note}
        columns = tuple(shown)
        cells.append(tuple(shown.values()))
    return Section(title, title, columns, cells)


def _show_mistake(mistake: Mistake) -> None:
    print(
        f"\n{mistake.kind}: resemblance {mistake.resemblance:.3f}, distance {mistake.distance},"
        f" estimated {mistake.estimate:.3f}\n  {printable(mistake.a)}\n  {printable(mistake.b)}"
    )
    for line in mistake.diff:
        print(f"    {printable(line)}")
