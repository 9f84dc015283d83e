"""``neardup collection clusters``: all near-duplicates of a collection, as stars.

The results are ``relations.parquet`` and ``clusters.parquet`` in FOLDER/clusters. The rule is that of a crawl
with the settings of this project. The command can be interrupted: given again, it goes on.
"""

from __future__ import annotations

import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.progress import Progress, interruptible, number
from neardup.collection import bands, clusters, into_store
from neardup.collection.dataset import locked, open_collection
from neardup.collection.engine import MEMORY, DuckDB
from neardup.collection.spark import Spark
from neardup.errors import ConfigurationError
from neardup.store.store import Store

if TYPE_CHECKING:
    import argparse

    from neardup.collection.clusters import Choice, Found
    from neardup.collection.dataset import Collection
    from neardup.collection.engine import Engine
    from neardup.scrapy.options import Options

_ENGINES = ("duckdb", "spark")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what neardup collection build has made")
    parser.add_argument(
        "--recall",
        type=float,
        default=bands.RECALL,
        metavar="R",
        help="share of the pairs at the least resemblance of the rule that are to become candidates"
        f" (default: {bands.RECALL})",
    )
    parser.add_argument("--engine", choices=_ENGINES, default="duckdb", help="default: duckdb")
    parser.add_argument(
        "--remote", metavar="URL", help="the Spark Connect server of --engine spark, sc://HOST[:PORT]"
    )
    parser.add_argument(
        "--memory", metavar="M", default=MEMORY, help=f"of --engine duckdb, such as 8GB (default: {MEMORY})"
    )
    parser.add_argument(
        "--into-store",
        action="store_true",
        help="store pages and relations in the database too, as one more crawl; each URL has its last capture"
        " only, there and in FOLDER/clusters",
    )
    database.add_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    open_collection(arguments.folder)  # else there is nothing to lock
    options = database.read_options(arguments)
    with (
        locked(arguments.folder),
        interruptible("what was done is kept; the same command goes on from there"),
    ):
        collection = open_collection(arguments.folder)
        choice = choice_of(options, collection, recall=arguments.recall, last_captures=arguments.into_store)
        if arguments.into_store:  # what it lacks should not show after hours of work
            Store.open(options.database_url, scheme=collection.scheme).close()
        folder = clusters.job_folder(collection, choice)
        with closing(_engine(arguments, folder)) as engine:
            found = clusters.find(collection, engine, choice, _say)
            clusters.write(found, collection)
            _show(collection, choice, found)
            if arguments.into_store:
                _store(collection, found, choice, options)
        shutil.rmtree(folder)


def choice_of(
    options: Options, collection: Collection, *, recall: float = bands.RECALL, last_captures: bool = False
) -> Choice:
    """What decides, by the settings; ConfigurationError if the collection was made by others."""
    reader = options.detector.make_reader()
    if str(reader.scheme) != collection.scheme:
        raise ConfigurationError(
            f"{collection.folder} holds fingerprints of the scheme {collection.scheme!r}, the settings make"
            f" {str(reader.scheme)!r}; set NEARDUP_FEATURES, NEARDUP_CONTENT, NEARDUP_SELECTORS,"
            " NEARDUP_ALT_TEXTS and NEARDUP_SKETCH_SIZE as they were, or build the collection again"
        )
    return clusters.Choice(
        options.detector.make_rule(reader.features),
        recall=recall,
        min_features=options.detector.min_features,
        last_captures=last_captures,
        scope=options.detector.scope,
    )


def _engine(arguments: argparse.Namespace, folder: Path) -> Engine:
    if arguments.engine == "duckdb":
        if arguments.remote:
            raise ConfigurationError("--remote is the server of --engine spark; give both")
        return DuckDB(folder, arguments.memory)
    if not arguments.remote:
        raise ConfigurationError("--engine spark needs the URL of its server: --remote sc://HOST")
    return Spark(folder, arguments.remote)


def _say(stage: str) -> None:
    print(stage, file=sys.stderr, flush=True)


def _show(collection: Collection, choice: Choice, found: Found) -> None:
    chosen, least = found.bands, choice.rule.verify
    middle = (1.0 + least) / 2.0
    print(
        f"{number(chosen.number, 'band')} of {chosen.width} places find a pair of resemblance {least:g} with"
        f" the probability {chosen.found(least):.4f}, one of {middle:g} with {chosen.found(middle):.4f}"
    )
    canonical = len(found.relations["actual_hash_id"].unique())
    kept = " (last captures only)" if choice.last_captures else ""
    print(
        f"{collection.clusters}: {number(found.clusters.num_rows, 'page')}{kept},"
        f" {number(found.relations.num_rows, 'duplicate')} of {number(canonical, 'canonical page')}, judged"
        f" {number(found.judged, 'time')}"
    )
    if found.too_short:
        words = number(choice.min_features, "word")
        print(f"{number(found.too_short, 'page')} with fewer than {words}: compared with none")


def _store(collection: Collection, found: Found, choice: Choice, options: Options) -> None:
    with Store.open(options.database_url, scheme=collection.scheme) as store:
        crawl_id = into_store.store(
            collection, found, choice, store, options.recorded, Progress("pages", found.clusters.num_rows)
        )
        print(f"{store.location}: stored as crawl {crawl_id}, {number(found.clusters.num_rows, 'page')}")
