"""``neardup db``: where the database is and what it holds; making and migrating its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.commands import database
from neardup.commands.output import show_fields
from neardup.store import pagereport, store

if TYPE_CHECKING:
    import argparse

HELP = "where the database is and what it holds (info); make or migrate its tables (upgrade)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="db_verb", required=True, metavar="VERB")
    for name, text in (("info", "where it is and what it holds"), ("upgrade", "make or migrate its tables")):
        database.add_arguments(verbs.add_parser(name, help=text, description=text))


def run(arguments: argparse.Namespace) -> None:
    options = database.read_options(arguments)
    if arguments.db_verb == "upgrade":
        location = store.upgrade(options.database_url)
        print(f"{location}: the tables are those of this version")
        return
    with database.open_store(options) as opened, opened.reading() as connection:
        sizes = pagereport.store_sizes(connection)
        scheme = pagereport.stored_scheme(connection)
    print(opened.location)
    show_fields(
        {"scheme": scheme or "none yet", **{f"rows of {name}": f"{rows:,}" for name, rows in sizes.items()}}
    )
