"""All clusters of a store in memory, for lists that no index gives: by verdict, and by PageRank.

A cluster takes 29 bytes, a duplicate 16: a million pages with 250,000 duplicates some 8 MB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from sqlalchemy import func, select

from neardup.store.schema import duplicate_values, page_ranks, simhash_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from sqlalchemy import Connection

    Integers = npt.NDArray[np.int64]

_ROWS_AT_ONCE = 10_000

_page, _relation, _rank = simhash_values.c, duplicate_values.c, page_ranks.c


@dataclass(frozen=True, slots=True)
class ClusterTable:
    """The canonical pages with duplicates in the order of their ids: arrays of shape (clusters,).

    ``ranks`` are 0 where a page has no PageRank. ``hosts`` and ``kinds`` are places in ``host_names`` and
    ``kind_names``. ``heads`` and ``crawls``, of shape (duplicates,), are the place of the cluster and the
    crawl of each duplicate.
    """

    ids: Integers
    ranks: npt.NDArray[np.float64]
    hosts: npt.NDArray[np.int32]
    kinds: npt.NDArray[np.int8]
    host_names: dict[str, int]
    kind_names: dict[str, int]
    heads: Integers
    crawls: Integers

    @classmethod
    def load(cls, connection: Connection) -> ClusterTable:
        """Read all clusters: two passes over the duplicates."""
        relations = select(_relation.actual_hash_id, _relation.crawl_id)
        pairs = [
            np.array([tuple(row) for row in rows], dtype=np.int64).reshape(-1, 2)
            for rows in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(relations).partitions()
        ]
        of_page, crawls = np.concatenate([np.empty((0, 2), dtype=np.int64), *pairs]).T
        ids = np.unique(of_page)
        table = cls(
            ids,
            np.zeros(ids.size),
            np.zeros(ids.size, dtype=np.int32),
            np.full(ids.size, -1, dtype=np.int8),
            {},
            {},
            np.searchsorted(ids, of_page),
            crawls.copy(),
        )
        if ids.size:
            table._fill(connection)
        return table

    def _fill(self, connection: Connection) -> None:
        are_heads = _page.id.in_(select(_relation.actual_hash_id))
        query = (
            select(_page.id, _page.host, _page.kind, func.coalesce(_rank.pagerank, 0.0))
            .join_from(simhash_values, page_ranks, _rank.page_id == _page.id, isouter=True)
            .where(are_heads)
        )
        result = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query)
        for rows in result.partitions():
            of_page, hosts, kinds, ranks = zip(*rows, strict=True)
            there, places = self._places(np.array(of_page, dtype=np.int64))
            self.ranks[places] = np.array(ranks)[there]
            self.hosts[places] = np.array(_codes(self.host_names, hosts), dtype=np.int32)[there]
            self.kinds[places] = np.array(_codes(self.kind_names, kinds), dtype=np.int8)[there]

    def _places(self, of_page: Integers) -> tuple[npt.NDArray[np.bool_], Integers]:
        """Which pages were heads when the duplicates were read, and where these stand."""
        places = np.minimum(np.searchsorted(self.ids, of_page), self.ids.size - 1)
        there = self.ids[places] == of_page
        return there, places[there]

    def sizes(self, crawl: int | None) -> Integers:
        """Duplicates of each cluster, shape (clusters,); ``crawl``: only those that this crawl found."""
        heads = self.heads if crawl is None else self.heads[self.crawls == crawl]
        return np.bincount(heads, minlength=self.ids.size)

    def are(self, *, host: str | None, kind: str | None) -> npt.NDArray[np.bool_]:
        """Which clusters have a canonical page on this host and with this verdict, shape (clusters,)."""
        found = self.kinds >= 0
        if host is not None:
            found &= self.hosts == self.host_names.get(host, -1)
        if kind is not None:
            found &= self.kinds == self.kind_names.get(kind, -2)
        return found


def _codes(names: dict[str, int], values: Sequence[str]) -> list[int]:
    return [names.setdefault(value, len(names)) for value in values]
