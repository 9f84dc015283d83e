"""``neardup collection elect``: choose the canonical pages of clusters anew, by rules in the order given.

Without it, the page that was seen first is canonical. The clusters are those of the database, or with FOLDER
those that ``neardup collection clusters`` has found. Chosen is the first page by the rules that all others
of its cluster are like. So clusters keep their pages. The command can be given again, and changes nothing
then.
"""

from __future__ import annotations

import argparse
import shutil
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from neardup.cli import database, source
from neardup.cli.arguments import count
from neardup.cli.collection_clusters import choice_of
from neardup.cli.output import Section, show_sections
from neardup.cli.progress import Progress, interruptible, number
from neardup.cli.removal import refuse_while_running
from neardup.cli.rules import stored_rule
from neardup.collection import clusters
from neardup.collection import election as collected
from neardup.collection.dataset import locked
from neardup.collection.engine import DuckDB
from neardup.errors import ConfigurationError
from neardup.store import election, ranks, removal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.collection.dataset import Collection
    from neardup.store.store import Store

_CLUSTERS_AT_ONCE = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ",".join(election.PREFERENCES)
    parser.add_argument(
        "--by",
        type=_preferences,
        required=True,
        metavar="RULES",
        help=f"the rules that decide, the first one first, such as {names}: the highest PageRank, the"
        " earliest visit, a URL with https, the shortest URL",
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would change")
    parser.add_argument("--yes", action="store_true", help="do it even if a crawl seems to be running")
    parser.add_argument("--limit", type=count, default=20, metavar="N", help="changes shown (default: 20)")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table", help="default: table")
    source.add_arguments(parser)


def _preferences(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in election.PREFERENCES or names.count(name) > 1:
            known = ", ".join(election.PREFERENCES)
            raise argparse.ArgumentTypeError(f"{text!r} is no list of different rules out of {known}")
    return names


def run(arguments: argparse.Namespace) -> None:
    source.run(arguments, _run_on_collection, _run_on_store)


def _run_on_collection(arguments: argparse.Namespace, collection: Collection) -> None:
    choice = choice_of(database.read_options(arguments), collection)
    with locked(collection.folder):
        folder = clusters.job_folder(collection, choice)
        with interruptible("nothing is changed"), closing(DuckDB(folder)) as engine:
            found = collected.elect(collection, engine, choice, arguments.by, dry=arguments.dry_run)
        shutil.rmtree(folder)
    _show(arguments, str(collection.folder), found)


def _run_on_store(arguments: argparse.Namespace, store: Store) -> None:
    with store.reading() as connection:
        if "pagerank" in arguments.by and not ranks.highest(connection, 1):
            raise ConfigurationError(
                f"{store.location} has no PageRank: run neardup collection pagerank first"
            )
        if not (arguments.yes or arguments.dry_run):
            refuse_while_running(removal.running(connection), "elect")
    with interruptible("what is elected is elected; the same command goes on from there"):
        found = _elect(store, arguments.by, dry=arguments.dry_run)
    _show(arguments, store.location, found)


def _show(arguments: argparse.Namespace, place: str, found: election.Elections) -> None:
    if arguments.format == "table":
        would = "would have" if arguments.dry_run else "have"
        print(
            f"{place}: of {number(found.clusters, 'cluster')}, {len(found.changed):,} {would}"
            f" another canonical page; {found.kept:,} keep theirs, because not all of their pages are like a"
            " better one\n"
        )
    rows = [
        (change.rule, change.duplicates, change.url, change.before)
        for change in found.changed[: arguments.limit]
    ]
    columns = ("by", "duplicates", "canonical", "before")
    show_sections([Section("elected", "Canonical pages", columns, rows)], arguments.format)


def _elect(store: Store, preferences: Sequence[str], *, dry: bool) -> election.Elections:
    rule, total = stored_rule(store), election.Elections()
    with store.reading() as connection:
        clusters = election.cluster_ids(connection)
    progress = Progress("clusters", len(clusters))
    for start in range(0, len(clusters), _CLUSTERS_AT_ONCE):
        ids = clusters[start : start + _CLUSTERS_AT_ONCE]
        work = partial(election.prefer, canonical_ids=ids, rule=rule, preferences=preferences, dry=dry)
        some = store.transact(work, patiently=True)
        total.clusters += some.clusters
        total.changed += some.changed
        total.kept += some.kept
        progress(total.clusters)
    return total
