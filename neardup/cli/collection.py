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

from neardup.cli.verbs import Verb, add_verbs

if TYPE_CHECKING:
    import argparse

VERBS = {
    "build": Verb(
        "neardup.cli.collection_build",
        "read archives (WARC, ARC, WACZ), HTML, JSON Lines, Parquet, caches and databases into a dataset",
    ),
    "clusters": Verb(
        "neardup.cli.collection_clusters",
        "find all near-duplicates of a dataset of fingerprints",
    ),
    "pagerank": Verb(
        "neardup.cli.collection_pagerank",
        "how much pages are linked to: PageRank over a collection or a store",
    ),
    "elect": Verb(
        "neardup.cli.collection_elect",
        "choose canonical pages by PageRank, age, https or length of the URL",
    ),
    "clean": Verb(
        "neardup.cli.collection_clean",
        "mark near-duplicates among the results of a search log, and take them out",
    ),
    "mirrors": Verb("neardup.cli.collection_mirrors", "pairs of hosts and folders that have the same pages"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_verbs(parser, VERBS, dest="collection_verb")
