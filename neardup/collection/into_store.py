"""A collection and its clusters on their way into the tables of a crawl, by the crawl's own writer.

The pages are those of one more crawl, named after the folder. A later crawl starts with them as with those of
any other crawl, and reconciles them with what the tables had before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.address import Address
from neardup.collection import rare_places
from neardup.collection.dataset import page_files
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind, Verdict
from neardup.fingerprint import sketch
from neardup.fingerprint.simhash import Fingerprint
from neardup.parquet import arrow_module, reading_parquet
from neardup.store.writer import Writer
from neardup.text import headline as headlines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from neardup.collection.clusters import Choice, Found
    from neardup.collection.dataset import Collection
    from neardup.store.store import Store

_COLUMNS = ["id", "url", "hash_value", "weak_bits", "sketch", "features", "text_digest", "headline"]
_AT_ONCE = 5_000


def store(
    collection: Collection,
    found: Found,
    choice: Choice,
    opened: Store,
    settings: Mapping[str, object],
    on_progress: Callable[[int], None],
) -> int:
    """Store the pages of a collection that count, and their relations; returns the id of the crawl that they
    are of.

    ``on_progress`` is told how many pages are stored. Raises DatabaseUnavailable if the database does not
    take them. What it has taken stays, and storing again replaces it.
    """
    crawl_id = opened.begin_crawl(spider=f"collection {collection.folder.resolve().name}", settings=settings)
    frequencies = rare_places.read_frequencies(collection, are_stored=False)
    writer = Writer(opened, crawl_id, batch_rows=_AT_ONCE, frequencies=frequencies)
    done = 0
    try:
        for are_duplicates in (False, True):  # duplicates last, because their rows refer to others
            for verdict in _verdicts(collection, found, choice, crawl_id, are_duplicates=are_duplicates):
                writer.put(verdict)
                done += 1
                if done % _AT_ONCE == 0:
                    writer.flush()
                    on_progress(done)
                    if writer.error is not None:
                        raise writer.error
            writer.flush()
            # What the tables had of these URLs may have had duplicates, which this collection does not know.
            # Its own duplicates are stored after that: without their shingles, pages are judged by less.
            opened.resolve(crawl_id, [page_id for _, page_id in writer.learnt()], choice.rule)
    finally:
        writer.close()
    duplicates = found.relations.num_rows
    opened.finish_crawl(
        crawl_id,
        reason="finished",
        counts={"pages": done, "new": done - duplicates, "duplicates": duplicates},
    )
    return crawl_id


def _verdicts(
    collection: Collection, found: Found, choice: Choice, crawl_id: int, *, are_duplicates: bool
) -> Iterator[Verdict]:
    """The verdicts of the pages that count, either of the duplicates or of the others."""
    ids = found.clusters["id"].to_numpy()
    relations = {
        name: found.relations[name].to_numpy(zero_copy_only=False) for name in found.relations.column_names
    }
    canonical_ids = np.searchsorted(ids, relations["actual_hash_id"]) + 1 + crawl_id * PAGES_PER_CRAWL
    for row in _rows(collection):
        at = int(np.searchsorted(ids, row["id"]))
        if at == ids.size or ids[at] != row["id"]:
            continue  # not the last capture of its URL
        place = int(np.searchsorted(relations["duplicate_hash_id"], row["id"]))
        is_duplicate = place < found.relations.num_rows and relations["duplicate_hash_id"][place] == row["id"]
        if bool(is_duplicate) != are_duplicates:
            continue
        relation: dict[str, Any] = {}
        if is_duplicate:
            relation = {
                "canonical_id": int(canonical_ids[place]),
                "distance": int(relations["hamming_distance"][place]),
                "resemblance": float(relations["resemblance"][place]),
                "evidence": Evidence(relations["evidence"][place]),
            }
        yield _verdict(row, crawl_id * PAGES_PER_CRAWL + at + 1, choice.min_features, relation)


def _verdict(row: dict[str, Any], page_id: int, min_features: int, relation: dict[str, Any]) -> Verdict:
    value, kind = row["hash_value"], Kind.DUPLICATE if relation else Kind.NEW
    if value is None or row["features"] < min_features:
        kind = Kind.TOO_SHORT
    return Verdict(
        address=Address(row["url"]),
        kind=kind,
        follow=True,
        reason="found in a collection",
        page_id=page_id,
        fingerprint=None if value is None else Fingerprint.unpack(value, row["weak_bits"]),
        sketch=None if row["sketch"] is None else sketch.from_bytes(row["sketch"]),
        features=row["features"],
        headline=headlines.from_bytes(row["headline"]),
        text_digest=row["text_digest"],
        **relation,
    )


def _rows(collection: Collection) -> Iterator[dict[str, Any]]:
    for path in page_files(collection):
        parquet = arrow_module("pyarrow.parquet", path)
        with reading_parquet(path):
            for batch in parquet.ParquetFile(path).iter_batches(_AT_ONCE, columns=_COLUMNS):
                yield from batch.to_pylist()
