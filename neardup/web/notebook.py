"""Clusters and pairs in notebooks: what has ``_repr_html_`` shows as a table there.

>>> Clusters.of("sqlite:///neardup.db")  # doctest: +SKIP
>>> PairView.of("sqlite:///neardup.db", "http://a.example/1", "http://a.example/2")  # doctest: +SKIP
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from neardup.address import Address
from neardup.errors import NeardupError
from neardup.store import explore
from neardup.store.store import Store
from neardup.web.pages import render

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Clusters:
    """The largest clusters of a store."""

    rows: Sequence[explore.ClusterRow]

    @classmethod
    def of(cls, database: str, *, host: str | None = None) -> Self:
        """Read a database by its URL; ``host``: only clusters whose canonical page is there."""
        with Store.open(database, scheme=None, create=False) as store, store.looking() as connection:
            return cls(explore.clusters(connection, explore.ClusterFilters(host=host)).rows)

    def _repr_html_(self) -> str:
        return render("notebook_clusters.html", clusters=self.rows)


@dataclass(frozen=True, slots=True)
class PairView:
    """Two pages side by side: the bits that differ, resemblance and evidence."""

    pair: explore.Pair

    @classmethod
    def of(cls, database: str, a: str, b: str) -> Self:
        """Read two pages by their URLs; NeardupError if one of them is not stored."""
        keys = Address.of(a).key, Address.of(b).key
        with Store.open(database, scheme=None, create=False) as store, store.looking() as connection:
            found = explore.pair(connection, *keys)
        if found is None:
            raise NeardupError("one of the two pages is not stored")
        return cls(found)

    def _repr_html_(self) -> str:
        return render("notebook_pair.html", pair=self.pair)
