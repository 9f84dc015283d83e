"""What mirrors are found by in a collection: the addresses, clusters and sketches of its pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.address import ip_text
from neardup.collection import results
from neardup.collection.mirrors import SitePages
from neardup.parquet import arrow_module, reading_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from neardup.collection.dataset import Collection

_ROWS_AT_ONCE = 1 << 14
_DIGITS = 40
"""Bits of an id that number the record in its input."""


def site_pages(collection: Collection) -> SitePages:
    """The pages that have a fingerprint; ConfigurationError if the clusters are not known."""
    canonical: dict[int, int] = {}
    for batch in _batches(results.known(collection, "clusters.parquet"), ["id", "canonical_id"]):
        canonical.update(zip(batch["id"].to_pylist(), batch["canonical_id"].to_pylist(), strict=True))
    pages = SitePages()
    for path in sorted(collection.pages.glob("*.parquet")):
        for batch in _batches(path, ["url", "id", "text_digest", "host", "ip", "sketch"]):
            known = batch["sketch"].is_valid().to_pylist()
            columns = (batch[name].to_pylist() for name in ("url", "id", "text_digest"))
            for has_text, url, page_id, digest in zip(known, *columns, strict=True):
                if has_text:
                    pages.add(url, page_id, canonical.get(page_id, page_id), digest)
            for host, ip in set(zip(batch["host"].to_pylist(), batch["ip"].to_pylist(), strict=True)):
                if ip and (known_ip := ip_text(ip)):
                    pages.add_ip(host, known_ip)
    pages.finish()
    return pages


def sketches_of(collection: Collection, page_ids: Sequence[int]) -> dict[int, bytes]:
    """The sketches of pages; only files of inputs that have one of them are read."""
    wanted = set(page_ids)
    inputs = {f"{page_id >> _DIGITS:06}" for page_id in wanted}
    found: dict[int, bytes] = {}
    for path in sorted(collection.pages.glob("*.parquet")):
        if path.name.partition("-")[0] in inputs:
            for batch in _batches(path, ["id", "sketch"]):
                for page_id, drawn in zip(batch["id"].to_pylist(), batch["sketch"], strict=True):
                    if page_id in wanted and drawn.is_valid:
                        found[page_id] = drawn.as_py()
    return found


def _batches(path: Path, columns: list[str]) -> Iterator[Any]:
    parquet = arrow_module("pyarrow.parquet", path)
    with reading_parquet(path):
        yield from parquet.ParquetFile(path).iter_batches(_ROWS_AT_ONCE, columns=columns)
