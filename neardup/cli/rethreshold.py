"""``neardup rethreshold``: what the store would hold with other thresholds, without a new crawl."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.arguments import count
from neardup.cli.output import show_fields, show_json, show_table
from neardup.cli.progress import Progress, interruptible
from neardup.cli.removal import refuse_while_running
from neardup.cli.rules import stored_rule
from neardup.collection import rethreshold
from neardup.store import removal
from neardup.store.page_report import store_sizes

if TYPE_CHECKING:
    import argparse

    from neardup.collection.rethreshold import Outcome


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    parser.add_argument("--max-distance", type=int, metavar="BITS", help="default: that of the settings")
    parser.add_argument("--verify", type=float, metavar="RESEMBLANCE", help="default: that of the settings")
    parser.add_argument("--min-features", type=count, metavar="WORDS", help="default: that of the settings")
    parser.add_argument(
        "--apply", action="store_true", help="give the pages the standing that they would have"
    )
    parser.add_argument("--yes", action="store_true", help="apply even if a crawl seems to be running")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")


def run(arguments: argparse.Namespace) -> None:
    options = database.read_options(arguments)
    given = {
        name: value
        for name in ("max_distance", "verify", "min_features")
        if (value := getattr(arguments, name)) is not None
    }
    detector = replace(options.detector, **given)
    scheme = str(detector.make_reader().scheme)
    with database.open_store(options, scheme=scheme) as store:
        with store.reading() as connection:
            pages = store_sizes(connection)["simhash_values"]
            if arguments.apply and not arguments.yes:
                refuse_while_running(removal.running(connection), "rethreshold")
        progress = Progress("pages", pages)
        with interruptible("nothing is changed"):
            outcome, changes = rethreshold.rethreshold(store, detector, stored_rule(store), progress)
        if arguments.apply:
            rethreshold.apply(store, changes)
    _show(outcome, arguments)


def _show(outcome: Outcome, arguments: argparse.Namespace) -> None:
    found = asdict(outcome)
    if arguments.format == "json":
        show_json({**found, "applied": arguments.apply})
        return
    show_fields(
        {name.replace("_", " "): value for name, value in found.items() if not isinstance(value, list)}
    )
    if outcome.examples:
        print("\nExamples")
        rows = [(one.url, one.before or "(canonical)", one.then or "(canonical)") for one in outcome.examples]
        show_table(("page", "before", "then"), rows)
    if outcome.splits:
        print("\nClusters that are split")
        parts = [
            (split.canonical_url, split.pages, split.clusters, part.canonical_url, part.pages)
            for split in outcome.splits
            for part in split.parts
        ]
        show_table(("canonical page", "pages", "clusters", "canonical page then", "pages there"), parts)
    print("\napplied" if arguments.apply else "\nnothing is changed; --apply makes it so")
