"""``neardup evaluate --same-name``: how well a crawl's verdicts agree with the names of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.settings import BaseSettings
from scrapy.utils.project import get_project_settings

from neardup.cli.output import Section, percent, plain, printable, show_json, show_sections
from neardup.cli.progress import interruptible
from neardup.detection.detector import Detector
from neardup.errors import ConfigurationError
from neardup.evaluation.names import EARLY, MISTAKES, NameOptions, judge_names
from neardup.evaluation.orders import ORDERS, RANDOM
from neardup.scrapy.options import Options

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from neardup.evaluation.measure import Score
    from neardup.evaluation.name_scores import NameScores
    from neardup.evaluation.names import NameResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--order", choices=ORDERS, help=f"in which --same-name judges the pages (default: {RANDOM})"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the random order (default: 0)")
    parser.add_argument(
        "--early",
        type=int,
        metavar="N",
        help=f"pages that are the first ones of a site (default: {EARLY:.0%} of them)".replace("%", "%%"),
    )
    parser.add_argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        help="judge with this setting, whatever the project says; may be given again",
    )


def run(arguments: argparse.Namespace, on_progress: Callable[[str, int, int], None]) -> None:
    if arguments.early is not None and arguments.early < 0:
        raise ConfigurationError(f"--early must not be below 0, but is {arguments.early}")
    settings = _settings(arguments.set or ())
    names = NameOptions(
        name=arguments.same_name,
        order=arguments.order or RANDOM,
        seed=arguments.seed or 0,
        early=arguments.early,
        half=arguments.half,
        mistakes=MISTAKES if arguments.mistakes is None else arguments.mistakes,
    )
    with interruptible("nothing is written"):
        made = judge_names(arguments.pages, Detector(settings.detector), names, on_progress)
    defaults = Options.from_settings(BaseSettings()).recorded
    given = {name: value for name, value in settings.recorded.items() if value != defaults[name]}
    if arguments.format == "json":
        show_json(made.record() | {"settings": given})
    else:
        _show(made, given)


def _settings(given: Iterable[str]) -> Options:
    """The settings of the project, or the defaults outside of one, with those of the command line."""
    settings = get_project_settings()
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name.startswith("NEARDUP_"):
            raise ConfigurationError(f"--set must be given NEARDUP_…=VALUE, not {one!r}")
        settings.set(name, value, priority="cmdline")
    return Options.from_settings(settings)


def _show(made: NameResult, given: dict[str, object]) -> None:
    print("names: " + ", ".join(f"{name} {plain(value)}" for name, value in made.source.items()))
    print(
        "settings: "
        + (", ".join(f"{name}={printable(value)}" for name, value in given.items()) or "defaults")
    )
    print()
    sections = list(_sections(made.scores, ""))
    if made.at_first:
        sections += _sections(made.at_first, ", by the verdicts as they were given")
    show_sections(sections, "table")
    for mistake in made.mistakes:
        print(f"\n{mistake.kind}: resemblance {mistake.resemblance:.3f}, distance {mistake.distance}")
        for url, canonical in ((mistake.a, mistake.a_canonical), (mistake.b, mistake.b_canonical)):
            print(f"  {printable(url)}" + (f", duplicate of {printable(canonical)}" if canonical else ""))
        for line in mistake.diff:
            print(f"    {printable(line)}")


def _sections(scores: NameScores, note: str) -> Iterator[Section]:
    yield Section(
        "scores",
        f"Reported pairs, truth by name{note}",
        ("pairs", "reported", "right", "wanted", "found", "precision %", "recall %", "F1 %"),
        [
            _row("duplicate and canonical page", scores.pairs),
            _row("all pairs of each cluster", scores.clusters),
        ],
    )
    yield Section(
        "recalls",
        f"Pages with an earlier page of their name{note}: such a page in their cluster",
        ("pages", "wanted", "found", "recall %"),
        [(one.among, one.wanted, one.found, percent(one.rate)) for one in scores.recalls],
    )
    yield Section(
        "different",
        f"Different pages called duplicates{note}",
        ("of", "pages", "called duplicates", "%", "same text under another name"),
        [(one.among, one.pages, one.called, percent(one.rate), one.same_text) for one in scores.different],
    )


def _row(pairs: str, score: Score) -> tuple[object, ...]:
    rates = (score.precision, score.recall, score.f1)
    return (pairs, score.reported, score.right, score.wanted, score.found, *map(percent, rates))
