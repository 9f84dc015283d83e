"""The PageRank of stored pages: which pages take part, where their links lead, and what is stored of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import delete, insert, select

from neardup.detection.verdict import Kind
from neardup.store.page_links import NOFOLLOW, stored_edges
from neardup.store.schema import page_ranks, simhash_values
from neardup.store.statements import STORED_IDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt
    from sqlalchemy import Connection

    Integers = npt.NDArray[np.int64]

_ROWS_AT_ONCE = 10_000

_page, _rank = simhash_values.c, page_ranks.c


@dataclass(frozen=True, slots=True)
class Nodes:
    """``page_ids``, in their order, and the node of each, both of shape (pages,); ``count`` nodes."""

    page_ids: Integers
    nodes: Integers
    count: int


def nodes_of_pages(connection: Connection, *, by_host: bool) -> Nodes:
    """A node for each page that is not gone, or for each host of such pages. Memory has 16 bytes a page."""
    query = select(_page.id, _page.host).where(_page.kind != Kind.GONE.value).order_by(_page.id)
    hosts: dict[str, int] = {}
    ids: list[Integers] = []
    nodes: list[Integers] = []
    for rows in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query).partitions():
        ids.append(np.array([row.id for row in rows], dtype=np.int64))
        if by_host:
            nodes.append(np.array([hosts.setdefault(row.host, len(hosts)) for row in rows], dtype=np.int64))
    page_ids = np.concatenate(ids) if ids else np.empty(0, dtype=np.int64)
    if not by_host:
        return Nodes(page_ids, np.arange(page_ids.size), page_ids.size)
    return Nodes(page_ids, np.concatenate(nodes) if nodes else page_ids, len(hosts))


def links_of_nodes(connection: Connection, nodes: Nodes) -> Iterator[tuple[Integers, Integers]]:
    """The nodes of the two ends of links, some at a time. Left out are links that say ``nofollow``, and links
    to or from what is no node.
    """
    for edges in stored_edges(connection):
        counted = (edges.marks & NOFOLLOW) == 0
        sources, known_sources = _found(nodes, edges.sources)
        targets, known_targets = _found(nodes, edges.targets)
        counted &= known_sources & known_targets
        yield sources[counted], targets[counted]


def _found(nodes: Nodes, page_ids: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """The nodes of pages, and whether each page has one."""
    at = np.minimum(np.searchsorted(nodes.page_ids, page_ids), nodes.page_ids.size - 1)
    return nodes.nodes[at], nodes.page_ids[at] == page_ids


def store_ranks(connection: Connection, nodes: Nodes, values: npt.NDArray[np.float64]) -> int:
    """Store the PageRank of each page in place of what is stored; returns how many pages.

    A page that somebody has removed meanwhile is left out.
    """
    connection.execute(delete(page_ranks))
    stored = 0
    for start in range(0, nodes.page_ids.size, _ROWS_AT_ONCE):
        ids = nodes.page_ids[start : start + _ROWS_AT_ONCE].tolist()
        ranks = values[nodes.nodes[start : start + _ROWS_AT_ONCE]].tolist()
        there = set(connection.execute(STORED_IDS, {"ids": ids}).scalars())
        rows = [
            {"page_id": page_id, "pagerank": rank}
            for page_id, rank in zip(ids, ranks, strict=True)
            if page_id in there
        ]
        if rows:
            connection.execute(insert(page_ranks), rows)
        stored += len(rows)
    return stored


def highest(connection: Connection, limit: int) -> list[tuple[float, str]]:
    """The highest ranks and the URLs of their pages."""
    query = (
        select(_rank.pagerank, _page.actual_url)
        .join_from(page_ranks, simhash_values, _page.id == _rank.page_id)
        .order_by(_rank.pagerank.desc(), _page.id)
        .limit(limit)
    )
    return [(row.pagerank, row.actual_url) for row in connection.execute(query)]
