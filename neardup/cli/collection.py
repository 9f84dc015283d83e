"""``neardup collection`` works on stored pages instead of a running crawl.

``neardup collection build`` reads archives, folders, tables and databases into a dataset of fingerprints.
``neardup collection clusters`` finds all near-duplicates of such a dataset.
``neardup collection pagerank`` says how much its pages are linked to.
``neardup collection elect`` chooses canonical pages by rules.
``neardup collection clean`` marks near-duplicates among the results of a search log.
``neardup collection mirrors`` finds hosts and folders that have the same pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neardup.cli import (
    collection_build,
    collection_clean,
    collection_clusters,
    collection_elect,
    collection_mirrors,
    collection_pagerank,
)

if TYPE_CHECKING:
    import argparse

HELP = (
    "stored pages: datasets (build), near-duplicates (clusters), PageRank (pagerank), elections (elect),"
    " clean-up by queries (clean), mirrored hosts (mirrors)"
)

VERBS = {
    "build": collection_build,
    "clusters": collection_clusters,
    "pagerank": collection_pagerank,
    "elect": collection_elect,
    "clean": collection_clean,
    "mirrors": collection_mirrors,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="collection_verb", required=True, metavar="VERB")
    for name, module in VERBS.items():
        description = (module.__doc__ or "").replace("``", "")
        module.add_arguments(verbs.add_parser(name, help=module.HELP, description=description))


def run(arguments: argparse.Namespace) -> None:
    VERBS[arguments.collection_verb].run(arguments)
