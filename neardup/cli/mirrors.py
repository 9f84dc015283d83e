"""``neardup mirrors``: pairs of hosts, and of folders of hosts, that have the same pages.

Candidates come from clusters and from paths that hosts share. Each candidate is judged by 20 paths of either
side: whether the other side has the path, and whether the two pages are near-copies. Known is what crawls
have stored, and nothing is fetched.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from neardup.cli import database
from neardup.cli.arguments import count
from neardup.cli.output import FORMATS, Section, show_sections
from neardup.cli.progress import interruptible, number
from neardup.collection import mirrors
from neardup.store import mirror_pages

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from neardup.collection.mirrors import Mirror, SitePages

HELP = "pairs of hosts and folders that have the same pages"

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
        store.reading() as connection,
    ):
        pages = mirrors.SitePages()
        for page in mirror_pages.clustered_pages(connection):
            pages.add(page.url, page.page_id, page.cluster, page.digest)
        pages.finish()
        found = mirrors.find(pages, partial(mirror_pages.sketches_of, connection))
    show(arguments, store.location, pages, found)


def show(arguments: argparse.Namespace, place: str, pages: SitePages, found: Sequence[Mirror]) -> None:
    """Print pairs of mirrors, as the arguments say."""
    if arguments.format == "table":
        print(f"{place}: {number(len(pages), 'page')}, {number(len(found), 'pair')} of mirrors\n")
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
        for mirror in found[: arguments.limit]
    ]
    show_sections([Section("mirrors", "Mirrors", _COLUMNS, rows)], arguments.format)
