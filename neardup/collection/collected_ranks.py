"""The ranks that ``neardup collection pagerank`` has written beside the pages of a collection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup.collection import results
from neardup.errors import ConfigurationError
from neardup.parquet import arrow_module, reading_parquet

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from neardup.collection.dataset import Collection


def ranks_file(collection: Collection) -> Path:
    """Where ``neardup collection pagerank`` writes the ranks."""
    return results.path_of(collection, results.RANKS)


def ranks_of(collection: Collection, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The ranks of pages by their ids, shape (n,); ConfigurationError: one of them has none."""
    path = results.known(collection, results.RANKS)
    parquet = arrow_module("pyarrow.parquet", path)
    with reading_parquet(path):
        table = parquet.read_table(path, columns=["id", "pagerank"])
        ranked, ranks = table["id"].to_numpy(), table["pagerank"].to_numpy()
    rows = np.minimum(np.searchsorted(ranked, ids), max(0, ranked.size - 1))
    if not ranked.size or (missing := np.flatnonzero(ranked[rows] != ids)).size:
        number = ids.size if not ranked.size else missing.size
        raise ConfigurationError(
            f"{path} has no rank of {number:,} pages of the collection: run neardup collection pagerank"
            f" {collection.folder} again"
        )
    return np.asarray(ranks[rows], dtype=np.float64)
