"""``neardup plan``: which index suits a crawl of so many pages on this machine, and what it costs there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.output import FORMATS, Section, show_sections
from neardup.errors import ConfigurationError
from neardup.fingerprint.simhash import Fingerprint
from neardup.index import plan
from neardup.store import page_report

if TYPE_CHECKING:
    import argparse

    from neardup.scrapy.options import Options

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_FEWEST_STORED = 5_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pages", required=True, type=int, metavar="N", help="canonical pages to plan for")
    parser.add_argument("--distance", type=int, metavar="H", help="maximum distance (default: the settings')")
    parser.add_argument("--recall", type=float, metavar="R", help="PSM's target (default: the settings')")
    parser.add_argument("--memory", metavar="M", help="what the index may take up, such as 500M or 2G")
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument(
        "--database",
        type=database.given_url,
        metavar="URL",
        help=f"fingerprints stored there (at least {_FEWEST_STORED:,}) for a sample of those to come",
    )


def run(arguments: argparse.Namespace) -> None:
    if arguments.pages < 1:
        raise ConfigurationError(f"--pages must be at least 1, not {arguments.pages}")
    memory = None if arguments.memory is None else _bytes(arguments.memory)
    options = database.read_options(arguments)
    detector = options.detector
    distance, recall = arguments.distance, arguments.recall
    if distance is None:
        distance = detector.make_rule(detector.make_reader().features).max_distance
    if recall is None:
        recall = detector.recall
    sample = _sample(options) if arguments.database else None
    costs = plan.plan(arguments.pages, max_distance=distance, recall=recall, sample=sample)
    fitting = [cost for cost in costs if memory is None or cost.nbytes <= memory]
    columns = (
        "index",
        "recall",
        "prefix_bits",
        "probes",
        "candidates",
        "MB",
        "bytes_each",
        "microseconds",
        "advice",
    )
    rows = [
        (
            cost.name,
            f"{cost.recall:g}",
            cost.prefix_bits,
            cost.probes,
            cost.candidates,
            cost.nbytes / 1e6,
            cost.nbytes / arguments.pages,
            cost.microseconds,
            _advice(cost, fitting),
        )
        for cost in costs
    ]
    title = f"{arguments.pages:,} pages, distance {distance}: " + (
        "evenly spread fingerprints" if sample is None else f"like {len(sample.values):,} stored ones"
    )
    show_sections([Section("plan", title, columns, rows)], arguments.format)


def _advice(cost: plan.Cost, fitting: list[plan.Cost]) -> str:
    if cost not in fitting:
        return "too large"
    exact = [other for other in fitting if other.recall == 1.0]
    if cost is fitting[0]:
        return "fastest"
    if cost.nbytes == min(other.nbytes for other in fitting):
        return "smallest"
    return "fastest exact" if exact and cost is exact[0] else ""


def _bytes(text: str) -> int:
    """A size such as 500M, in bytes."""
    parsed = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", text.strip().upper())
    if parsed is None:
        raise ConfigurationError(f"--memory must be a number with K, M, G or T, such as 500M, not {text!r}")
    return int(float(parsed[1]) * _UNITS[parsed[2]])


def _sample(options: Options) -> plan.Sample:
    with database.open_store(options) as opened, opened.reading() as connection:
        _, values = page_report.canonical_fingerprints(connection, min_features=options.detector.min_features)
        if len(values) < _FEWEST_STORED:
            raise ConfigurationError(
                f"{opened.location} holds {len(values):,} canonical pages; to plan after them takes"
                f" {_FEWEST_STORED:,}: plan without --database"
            )
        queries = [
            Fingerprint.unpack(value, weak_bits)
            for value, weak_bits in page_report.weak_bits_of_some(connection, limit=2000)
        ]
    return plan.Sample(values, queries)
