"""The pages of a collection as a clean-up needs them: fingerprints, ranks, and who comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from neardup import native
from neardup.address import Address
from neardup.collection.collected_ranks import ranks_of
from neardup.collection.dataset import page_files
from neardup.detection.rule import MIN_FEATURES
from neardup.errors import ConfigurationError
from neardup.fingerprint import sketch
from neardup.fingerprint.reader import text_digest
from neardup.parquet import arrow_module, reading_parquet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    import numpy.typing as npt

    from neardup.collection.cleaning.rules import Rules
    from neardup.collection.dataset import Collection

    Rows = npt.NDArray[np.int64]

_ROWS_AT_ONCE = 1 << 14
_PLACES_AT_ONCE = 64
"""Pages that are compared with all after them at once: half a megabyte for 1,000 results."""


class CleanPages:
    """Arrays of shape (pages,), in the order of the ids.

    ``ids`` int64. ``values`` uint64: the fingerprints. ``compared`` bool: pages with a fingerprint of 10
    words or more. ``ranks`` float64: PageRank. ``kept`` bool: pages that the rules keep whatever is found.
    ``places`` int64: the place of each page in ``order``, by falling PageRank, then by rising id.

    ConfigurationError: the collection has no PageRank, or one of other pages.
    """

    def __init__(self, collection: Collection, rules: Rules) -> None:
        self._collection = collection
        parts = [
            (
                batch["id"].to_numpy(),
                batch["hash_value"].fill_null(0).to_numpy(),
                batch["hash_value"].is_valid().to_numpy(zero_copy_only=False)
                & (batch["features"].fill_null(0).to_numpy() >= MIN_FEATURES),
                np.array([host in rules.kept_hosts for host in batch["host"].to_pylist()], dtype=np.bool_),
            )
            for batch in _batches(collection, ["id", "hash_value", "features", "host"])
        ]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        if not parts or not columns[0].size:
            raise ConfigurationError(f"{collection.folder} has no pages: build it of other inputs")
        rising = np.argsort(columns[0], kind="stable")
        self.ids, self.values, self.compared, self.kept = (column[rising] for column in columns)
        self.ranks = ranks_of(collection, self.ids)
        if rules.below is not None:
            self.kept |= self.ranks >= rules.below
        self.order = np.argsort(-self.ranks, kind="stable")
        self.places = np.empty_like(self.order)
        self.places[self.order] = np.arange(self.order.size)
        self._urls: tuple[npt.NDArray[np.uint64], Rows] | None = None

    def __len__(self) -> int:
        return int(self.ids.size)

    def rows_of(self, ids: npt.NDArray[np.int64]) -> Rows:
        """The rows of pages by their ids; -1 where there is no such page."""
        rows = np.minimum(np.searchsorted(self.ids, ids), self.ids.size - 1)
        found: Rows = np.where(self.ids[rows] == ids, rows, -1)
        return found

    def rows_of_urls(self, urls: Iterable[str]) -> Rows:
        """The rows of pages by their URLs, of several captures the last; -1 where there is no such page."""
        if self._urls is None:
            digests = np.empty(self.ids.size, dtype=np.uint64)
            for batch in _batches(self._collection, ["id", "url"]):
                rows = self.rows_of(batch["id"].to_numpy())
                digests[rows] = [text_digest(url) for url in batch["url"].to_pylist()]
            rising = np.argsort(digests, kind="stable")
            self._urls = digests[rising], rising
        digests, by_digest = self._urls
        wanted = np.array([text_digest(Address.of(url).url) for url in urls], dtype=np.uint64)
        found = np.searchsorted(digests, wanted, side="right") - 1
        known: Rows = np.where((found >= 0) & (digests[found] == wanted), by_digest[found], -1)
        return known

    def urls_and_sketches(self, rows: Rows) -> tuple[list[str], npt.NDArray[np.uint64]]:
        """Of rising rows: their URLs and their sketches, shape (rows, places // 64)."""
        urls = [""] * rows.size
        sketches = np.zeros((rows.size, self._collection.places // 64), dtype=np.uint64)
        for batch in _batches(self._collection, ["id", "url", "sketch"]):
            of_batch = self.rows_of(batch["id"].to_numpy())
            wanted = np.flatnonzero(np.isin(of_batch, rows))
            if not wanted.size:
                continue
            to = np.searchsorted(rows, of_batch[wanted])
            taken = batch.take(arrow_module("pyarrow", self._collection.folder).array(wanted))
            for place, url in zip(to.tolist(), taken["url"].to_pylist(), strict=True):
                urls[place] = url
            sketches[to] = sketch.many_from_bytes(taken["sketch"].to_pylist(), self._collection.places)
        return urls, sketches


@native.twin
def stars(values: npt.NDArray[np.uint64], kept: npt.NDArray[np.bool_], max_distance: int) -> Rows:
    """For each page, given in the order of precedence, its canonical page or itself, as places; shape (n,).

    The first page is canonical, and those within the distance of it are its duplicates. So is the first of
    those that are left, and so on. Pages that are ``kept`` are duplicates of none. ValueError: there are not
    as many ``values`` as ``kept``.
    """
    if values.size != kept.size:
        raise ValueError(f"{values.size} values are not those of {kept.size} pages")
    heads = np.arange(values.size)
    free = ~kept
    for start in range(0, values.size, _PLACES_AT_ONCE):
        some = values[start : start + _PLACES_AT_ONCE, np.newaxis]
        near = np.bitwise_count(some ^ values[start:]) <= max_distance
        # Few pages are near any other one, and all of these are found at once.
        for row in np.flatnonzero(np.count_nonzero(near, axis=1) > 1).tolist():
            place = start + row
            if heads[place] == place:
                found = place + 1 + np.flatnonzero(near[row, row + 1 :] & free[place + 1 :])
                heads[found] = place
                free[found] = False
    return heads


def _batches(collection: Collection, columns: list[str]) -> Iterator[Any]:
    for path in page_files(collection):
        parquet = arrow_module("pyarrow.parquet", path)
        with reading_parquet(path):
            yield from parquet.ParquetFile(path).iter_batches(_ROWS_AT_ONCE, columns=columns)
