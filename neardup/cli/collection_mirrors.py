"""``neardup collection mirrors``: pairs of hosts, and of folders of hosts, that have the same pages.

The clusters of the collection must be known (neardup collection clusters). Each candidate is judged by 20
paths of either side: whether the other side has the path, and whether the two pages are near-copies.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.cli import mirrors as output
from neardup.cli.progress import interruptible
from neardup.collection import mirror_pages, mirrors
from neardup.collection.dataset import open_collection

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what neardup collection build has made")
    output.add_output_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    collection = open_collection(arguments.folder)
    with interruptible("nothing is changed by this command"):
        pages = mirror_pages.site_pages(collection)
        found = mirrors.find(pages, partial(mirror_pages.sketches_of, collection))
    output.show(arguments, str(collection.folder), len(pages), found)
