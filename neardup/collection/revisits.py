"""Revisits: records that say no more than that a page was the same as one that was stored before.

A revisit becomes a row with an address and a date of its own, and with the fingerprint of the page that it
refers to. The page may stand in any input. So revisits wait until all parts are there.

A revisit refers by keys, hashes of 64 bits. The first of these ways that leads to a record counts:

1. the id of the record (``WARC-Refers-To``);
2. its URL and date (``WARC-Refers-To-Target-URI``, ``WARC-Refers-To-Date``);
3. the digest of its payload (``WARC-Payload-Digest``), and of several records the first with a page.

A record whose payload is known to have another digest is not the one. All keys of the revisits are in memory:
some 300 bytes a revisit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import mmh3
import numpy as np

from neardup.collection import dataset
from neardup.collection.inputs.found import Why
from neardup.parquet import arrow_module, reading_parquet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    import numpy.typing as npt

    from neardup.collection.dataset import Collection
    from neardup.collection.inputs.found import Reference

    Keys = npt.NDArray[np.uint64]

_NOWHERE = -1
_TARGET = np.dtype([("key", "u8"), ("id", "i8"), ("digest", "u8"), ("skipped", "u1"), ("file", "i8")])
_REASONS = [None, *Why]
"""Why a record gives no row, by number; 0: it gives one."""


def keys(record: str, url: str, date: datetime | None, digest: str) -> tuple[int | None, ...]:
    """The keys of a record, in the order of :data:`neardup.collection.dataset.KEYS`; None: not known."""
    return (
        _key(record.strip("<> ")),
        _key(f"{url}\n{date.timestamp()}" if url and date else ""),
        _key(digest.strip().upper()),
    )


def told(refers_to: Reference) -> str:
    """How a revisit names what it refers to, for people."""
    if refers_to.url:
        return f"{refers_to.url} of {refers_to.date:%Y-%m-%dT%H:%M:%SZ}" if refers_to.date else refers_to.url
    return refers_to.record or refers_to.digest or "nothing"


class Outcome(NamedTuple):
    """What becomes of a revisit: why it has no row, None if it has one.

    ``refers_to`` names the record that no input has.
    """

    id: int
    skipped: Why | None
    refers_to: str


class Resolution:
    """What the revisits of a collection refer to, whose parts are all there."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._files = sorted(collection.records.glob("*.parquet"))
        arrow = arrow_module("pyarrow", collection.revisits)
        self._revisits = arrow.concat_tables(map(_read, revisit_files(collection)))
        self._targets = self._found()

    def outcomes(self) -> Iterator[Outcome]:
        """What becomes of each revisit."""
        found = self._targets["id"] != _NOWHERE
        for number, is_found in enumerate(found.tolist()):
            why = _REASONS[self._targets["skipped"][number]] if is_found else Why.REVISIT
            refers_to = "" if is_found else self._revisits["refers_to"][number].as_py()
            yield Outcome(self._revisits["id"][number].as_py(), why, refers_to)

    def write(self, note: Mapping[str, Any]) -> None:
        """Write the pages of the revisits that have one, and a note."""
        writer = dataset.Table(self._collection.resolved, dataset.PAGES())
        targets = self._targets
        rows = np.flatnonzero((targets["id"] != _NOWHERE) & (targets["skipped"] == 0))
        rows = rows[np.argsort(targets["file"][rows], kind="stable")]
        try:
            for some in np.split(rows, np.flatnonzero(np.diff(targets["file"][rows])) + 1):
                if some.size:
                    path = self._collection.pages / self._files[targets["file"][some[0]]].name
                    writer.write(_pages(path, self._revisits.take(some), targets["id"][some]))
            writer.finish(note)
            writer.publish()
        finally:
            writer.drop()

    def _found(self) -> npt.NDArray[Any]:
        """The record that each revisit refers to, dtype ``_TARGET``; its id is -1 if there is none."""
        asked = {name: _numbers(self._revisits, name) for name in dataset.KEYS}
        met = self._met({name: np.unique(wanted[wanted != 0]) for name, wanted in asked.items()})
        targets = np.zeros(len(self._revisits), dtype=_TARGET)
        targets["id"] = _NOWHERE
        for name, wanted in asked.items():
            # Of records with one key the first with a row, else the first.
            known = met[name][np.lexsort((met[name]["id"], met[name]["skipped"] != 0, met[name]["key"]))]
            known = known[np.r_[True, known["key"][1:] != known["key"][:-1]][: known.size]]
            if not known.size:
                continue
            target = known[np.minimum(np.searchsorted(known["key"], wanted), known.size - 1)]
            other = (asked["digest"] != 0) & (target["digest"] != 0) & (asked["digest"] != target["digest"])
            taken = (targets["id"] == _NOWHERE) & (target["key"] == wanted) & ~other
            targets[taken] = target[taken]
        return targets

    def _met(self, wanted: Mapping[str, Keys]) -> dict[str, npt.NDArray[Any]]:
        """By kind of key the records that have one of those wanted, dtype ``_TARGET``."""
        found: dict[str, list[npt.NDArray[Any]]] = {name: [np.empty(0, _TARGET)] for name in wanted}
        for number, path in enumerate(self._files):
            records = _read(path)
            digests, ids = _numbers(records, "digest"), records["id"].to_numpy()
            skipped = np.array(
                [_REASONS.index(why) for why in records["skipped"].to_pylist()], dtype=np.uint8
            )
            for name, keys_wanted in wanted.items():
                own = _numbers(records, name)
                at = np.flatnonzero(np.isin(own, keys_wanted))
                some = np.empty(at.size, _TARGET)
                some["key"], some["id"], some["digest"] = own[at], ids[at], digests[at]
                some["skipped"], some["file"] = skipped[at], number
                found[name].append(some)
        return {name: np.concatenate(some) for name, some in found.items()}


def _pages(path: Path, revisits: Any, targets: npt.NDArray[np.int64]) -> Any:
    """Rows of revisits, with what the pages of these ids in a file are compared by."""
    pages = _read(path)
    ids = pages["id"].to_numpy()
    order = np.argsort(ids)
    pages = pages.take(order[np.searchsorted(ids[order], targets)])
    arrow, schema = arrow_module("pyarrow", path), dataset.PAGES()
    columns = [(revisits if name in dataset.OWN else pages)[name] for name in schema.names]
    return arrow.table(columns, schema=schema)


def revisit_files(collection: Collection) -> list[Path]:
    return sorted(collection.revisits.glob("*.parquet"))


def _key(text: str) -> int | None:
    # 0 stands for none among numbers.
    return mmh3.mmh3_x64_128_utupledigest(text.encode("utf-8", "replace"))[0] or 1 if text else None


def _read(path: Path) -> Any:
    parquet = arrow_module("pyarrow.parquet", path)
    with reading_parquet(path), parquet.ParquetFile(path) as file:
        return file.read()


def _numbers(table: Any, name: str) -> Keys:
    """Keys, 0 for none."""
    found: Keys = table[name].fill_null(0).to_numpy()
    return found
