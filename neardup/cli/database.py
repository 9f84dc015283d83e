"""Finding the database as a crawl of this project does."""

from __future__ import annotations

import argparse

from scrapy.utils.project import get_project_settings

from neardup.scrapy.options import DATABASE_URL, Options
from neardup.store.store import Store


def add_arguments(parser: argparse.ArgumentParser, *, default: str | None = None) -> None:
    """Add ``--database``. ``default``: argparse.SUPPRESS for a verb below one that takes it, too."""
    parser.add_argument(
        "--database",
        type=given_url,
        metavar="URL",
        default=default,
        help=f"database URL; else {DATABASE_URL} from the project's settings or the environment, else SQLite"
        " in the project's data folder",
    )


def given_url(text: str) -> str:
    """A URL that is not empty: that of a shell's variable that is not set would mean the default."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the URL is empty; leave the option out for the default database")
    return text


def read_options(arguments: argparse.Namespace) -> Options:
    """The settings of the Scrapy project in the current folder, or Scrapy's defaults outside of one."""
    settings = get_project_settings()
    if arguments.database:
        settings.set(DATABASE_URL, arguments.database, priority="cmdline")
    return Options.from_settings(settings)


def open_store(options: Options, *, scheme: str | None = None) -> Store:
    """The store as it is: what only reads makes no database, and without ``scheme`` reads what any scheme has
    stored.
    """
    return Store.open(options.database_url, scheme=scheme, create=False)
