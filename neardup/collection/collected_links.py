"""The links of a collection as those of a graph, and the ranks of its pages; DuckDB joins the URLs."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.collection import results
from neardup.collection.collected_ranks import ranks_file
from neardup.collection.engine import MEMORY, duckdb_module
from neardup.errors import ConfigurationError, NeardupError
from neardup.parquet import arrow_module

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import numpy.typing as npt

    from neardup.collection.dataset import Collection

    Integers = npt.NDArray[np.int64]

_LINKS_AT_ONCE = 1 << 20


class CollectedLinks:
    """A node for each URL of a collection, whatever its captures, or for each host.

    DuckDB takes 1.2 GB of memory, and writes what does not fit into ``folder``. ConfigurationError if there
    is no DuckDB, or the collection has no page; NeardupError if the folder is full, or a file is damaged.
    """

    def __init__(self, collection: Collection, folder: Path, *, by_host: bool) -> None:
        self._duckdb = duckdb_module("PageRank of a collection needs")
        self._collection = collection
        config = {"memory_limit": MEMORY, "temp_directory": str(folder), "preserve_insertion_order": False}
        node = "host" if by_host else "url"
        with self._failing():
            self._connection = self._duckdb.connect(str(folder / "nodes.duckdb"), config=config)
            for name, files in (("pages", collection.pages), ("links", collection.links)):
                self._connection.read_parquet(str(files / "*.parquet")).create_view(name)
            self._connection.sql(
                f"SELECT row_number() OVER (ORDER BY min(id)) - 1 AS node, {node} AS name"  # noqa: S608
                f" FROM pages GROUP BY {node}"
            ).create("nodes")
            self._connection.sql(
                f"SELECT DISTINCT url, node FROM pages JOIN nodes ON nodes.name = pages.{node}"  # noqa: S608
            ).create("urls")
            self.nodes = int(self._connection.execute("SELECT count(*) FROM nodes").fetchall()[0][0])
        if not self.nodes:
            raise ConfigurationError(f"{collection.folder} has no pages: build it of other inputs")

    def close(self) -> None:
        self._connection.close()

    def links(self) -> Iterator[tuple[Integers, Integers]]:
        """The nodes of the two ends of links, some at a time. Left out are links that say ``nofollow``, and
        links to what is no page of the collection.
        """
        with self._failing():
            found = self._connection.sql(
                "SELECT source.node AS source, target.node AS target FROM links"
                " JOIN pages ON pages.id = links.page_id JOIN urls AS source ON source.url = pages.url"
                " JOIN urls AS target ON target.url = links.url WHERE NOT links.nofollow"
            ).to_arrow_reader(_LINKS_AT_ONCE)
            for batch in found:
                yield batch["source"].to_numpy(), batch["target"].to_numpy()

    def write(self, values: npt.NDArray[np.float64], note: Mapping[str, Any]) -> Path:
        """Write the rank of each page beside the pages, all of it or nothing; returns the file."""
        arrow = arrow_module("pyarrow", self._collection.folder)
        parquet = arrow_module("pyarrow.parquet", self._collection.folder)
        path = ranks_file(self._collection)
        begun = path.with_name(f"{path.name}.{os.getpid()}.writing")
        ranks = arrow.table({"node": np.arange(values.size), "pagerank": values})
        metadata = {"neardup": json.dumps(note)}
        fields = [arrow.field("id", arrow.int64(), False), arrow.field("pagerank", arrow.float64(), False)]
        schema = arrow.schema(fields, metadata=metadata)
        with self._failing():
            self._connection.register("ranks", ranks)
            found = self._connection.sql(
                "SELECT id, pagerank FROM pages JOIN urls USING (url) JOIN ranks USING (node) ORDER BY id"
            ).to_arrow_reader(_LINKS_AT_ONCE)
            try:
                with parquet.ParquetWriter(begun, schema, compression="zstd") as writer:
                    for batch in found:
                        writer.write_table(arrow.Table.from_batches([batch]).cast(schema))
                begun.replace(path)
                results.renewed(self._collection, [results.RANKS])
            finally:
                begun.unlink(missing_ok=True)
        return path

    def highest(self, values: npt.NDArray[np.float64], limit: int) -> list[tuple[float, str]]:
        """The highest ranks, and the URLs or hosts that have them."""
        nodes = np.argsort(-values, kind="stable")[:limit].tolist()
        with self._failing():
            named = dict(
                self._connection.execute("SELECT node, name FROM nodes WHERE node IN ?", [nodes]).fetchall()
            )
        return [(float(values[node]), named[node]) for node in nodes]

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except (self._duckdb.Error, OSError) as exc:
            raise NeardupError(f"{self._collection.folder}: {exc}") from exc
