"""Verbs of a collection that work on a store, too: FOLDER, or else the database."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.collection.dataset import open_collection
from neardup.errors import ConfigurationError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from neardup.collection.dataset import Collection
    from neardup.store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Have a verb take FOLDER or a database."""
    parser.add_argument(
        "folder",
        type=Path,
        nargs="?",
        metavar="FOLDER",
        help="what neardup collection build has made; without it, the database",
    )
    database.add_arguments(parser)


def run(
    arguments: argparse.Namespace,
    on_collection: Callable[[argparse.Namespace, Collection], None],
    on_store: Callable[[argparse.Namespace, Store], None],
) -> None:
    """Run a verb on what is given; ConfigurationError: both are."""
    if arguments.folder is None:
        with database.open_store(database.read_options(arguments)) as store:
            on_store(arguments, store)
    elif arguments.database:
        raise ConfigurationError("FOLDER and --database are two sources; give one")
    else:
        on_collection(arguments, open_collection(arguments.folder))
