"""``neardup collection pagerank``: how much pages are linked to, by pages that are linked to themselves.

The links are those of a collection, or those that crawls have stored (``NEARDUP_LINKS``). Links that say
nofollow, links of a page to itself, and links to pages that are not stored do not count. Ranks are written
beside the pages: into FOLDER/pagerank.parquet, or into the table page_ranks.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from neardup.cli import source
from neardup.cli.arguments import count
from neardup.cli.output import Section, printable, show_sections
from neardup.cli.progress import QUIET_SECONDS, interruptible, number
from neardup.collection import link_graph
from neardup.collection.collected_links import CollectedLinks
from neardup.collection.dataset import identity, locked
from neardup.collection.pagerank import DAMPING, MOST_DAMPING, check_damping, pagerank
from neardup.collection.rank_work import RankWork
from neardup.errors import ConfigurationError
from neardup.scrapy.options import data_folder
from neardup.store import ranks
from neardup.store.page_links import count_pages
from neardup.store.statements import state_of
from neardup.store.transfer import snapshot_of

if TYPE_CHECKING:
    import argparse

    from neardup.collection.dataset import Collection
    from neardup.collection.link_graph import LinkGraph
    from neardup.collection.pagerank import Ranks
    from neardup.store.store import Store

_INTERRUPTED = "no ranks are written, and what was done is kept; the same command goes on from there"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--by",
        choices=("page", "host"),
        default="page",
        help="what is ranked; by host, one link between two hosts counts, and a page has the rank of its"
        " host (default: page)",
    )
    parser.add_argument(
        "--damping",
        type=float,
        default=DAMPING,
        metavar="D",
        help=f"probability that a link is followed, above 0 and at most {MOST_DAMPING} (default: {DAMPING})",
    )
    parser.add_argument("--limit", type=count, default=10, metavar="N", help="ranks shown (default: 10)")
    parser.add_argument("--format", choices=("table", "json"), default="table", help="default: table")
    source.add_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    check_damping(arguments.damping)
    source.run(arguments, _rank_collection, _rank_store)


def _rank_collection(arguments: argparse.Namespace, collection: Collection) -> None:
    by_host, chosen = arguments.by == "host", _chosen(arguments)
    with (
        interruptible(_INTERRUPTED),
        locked(collection.folder),
        tempfile.TemporaryDirectory(prefix="pagerank-", dir=collection.folder) as folder,
        closing(CollectedLinks(collection, Path(folder), by_host=by_host)) as collected,
    ):
        files = [
            path for one in (collection.pages, collection.links) for path in sorted(one.glob("*.parquet"))
        ]
        work = RankWork(collection.folder / "pagerank", {**chosen, "files": identity(collection, files)})
        graph = work.graph(lambda: link_graph.build(collected.links(), collected.nodes, Path(folder)))
        found = _ranked(graph, arguments, work)
        path = collected.write(found.values, chosen)
        work.remove()
        _show(arguments, str(path), graph, found, collected.highest(found.values, arguments.limit))


def _rank_store(arguments: argparse.Namespace, store: Store) -> None:
    by_host = arguments.by == "host"
    with store.reading() as connection:
        if not count_pages(connection):
            raise ConfigurationError(
                f"{store.location} has no links: let a crawl store them (NEARDUP_LINKS = True)"
            )
    folder = store.beside(data_folder(), "pagerank")
    with interruptible(_INTERRUPTED), locked(folder):
        with (
            snapshot_of(store) as connection,
            tempfile.TemporaryDirectory(prefix="links-", dir=folder) as sorting,
        ):
            work = RankWork(folder / "work", {**_chosen(arguments), "crawls": state_of(connection)})
            nodes = ranks.nodes_of_pages(connection, by_host=by_host)
            links = ranks.links_of_nodes(connection, nodes)
            graph = work.graph(lambda: link_graph.build(links, nodes.count, Path(sorting)))
        found = _ranked(graph, arguments, work)
        store.transact(lambda connection: ranks.store_ranks(connection, nodes, found.values), patiently=True)
        with store.reading() as connection:
            highest = ranks.highest(connection, arguments.limit)
        shutil.rmtree(folder, ignore_errors=True)
    _show(arguments, store.location, graph, found, highest)


def _chosen(arguments: argparse.Namespace) -> dict[str, object]:
    return {"by": arguments.by, "damping": arguments.damping}


def _ranked(graph: LinkGraph, arguments: argparse.Namespace, work: RankWork) -> Ranks:
    begun = work.ranks()
    if begun is not None:
        print(f"going on after {number(begun.iterations, 'iteration')}", file=sys.stderr, flush=True)
    told = _Convergence()

    def on_iteration(ranks: Ranks) -> None:
        work.keep(ranks)
        told(ranks)

    return pagerank(graph, damping=arguments.damping, begun=begun, on_iteration=on_iteration)


class _Convergence:
    """Says now and then how exactly the ranks are known, once it takes longer than a moment."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, ranks: Ranks) -> None:
        now = time.monotonic()
        if now - self._last >= QUIET_SECONDS:
            self._last = now
            print(f"iteration {ranks.iterations}: exact to {ranks.error:.1e}", file=sys.stderr, flush=True)


def _show(
    arguments: argparse.Namespace,
    place: str,
    graph: LinkGraph,
    found: Ranks,
    highest: list[tuple[float, str]],
) -> None:
    if arguments.format == "table":
        print(
            f"{printable(place)}: {number(graph.nodes, arguments.by)}, {number(graph.links, 'link')}; after"
            f" {number(found.iterations, 'iteration')} the ranks are exact to {found.error:.1e} in all\n"
        )
    rows = [(f"{rank:.3e}" if arguments.format == "table" else rank, url) for rank, url in highest]
    show_sections([Section("highest", "Highest ranks", ("pagerank", "url"), rows)], arguments.format)
