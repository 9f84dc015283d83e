"""``neardup mirrors``: pairs of hosts, and of folders of hosts, that have the same pages.

Candidates come from clusters and from paths that hosts share. Each candidate is judged by 20 paths of either
side: whether the other side has the path, and whether the two pages are near-copies. Known is what crawls
have stored, and nothing is fetched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.arguments import count
from neardup.cli.output import FORMATS, Section, show_sections
from neardup.cli.progress import interruptible, number
from neardup.collection.stored_mirrors import mirrors_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from neardup.collection.mirrors import Mirror

_COLUMNS = (
    "class",
    "paths",
    "paths back",
    "copies",
    "same",
    "support",
    "first",
    "second",
    "sample",
    "its copy",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    database.add_arguments(parser)
    add_output_arguments(parser)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """How pairs are shown."""
    parser.add_argument("--limit", type=count, default=20, metavar="N", help="pairs shown (default: 20)")
    parser.add_argument("--format", choices=FORMATS, default="table", help="default: table")


def run(arguments: argparse.Namespace) -> None:
    with (
        interruptible("nothing is changed by this command"),
        database.open_store(database.read_options(arguments)) as store,
    ):
        pages, found = mirrors_of(store)
    show(arguments, store.location, pages, found)


def show(arguments: argparse.Namespace, place: str, pages: int, found: Sequence[Mirror]) -> None:
    """Print pairs of mirrors among so many pages, as the arguments say."""
    if arguments.format == "table":
        print(f"{place}: {number(pages, 'page')}, {number(len(found), 'pair')} of mirrors\n")
    show_sections([section(found[: arguments.limit])], arguments.format)


def section(found: Sequence[Mirror], title: str = "Mirrors") -> Section:
    """Pairs of mirrors as a table."""
    rows = [
        (
            mirror.kind.value,
            mirror.paths_first,
            mirror.paths_second,
            mirror.copies,
            mirror.same,
            mirror.support,
            mirror.first,
            mirror.second,
            *mirror.sample,
        )
        for mirror in found
    ]
    return Section("mirrors", title, _COLUMNS, rows)
