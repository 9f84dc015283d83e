"""Where the sketch of a page holds what is rare on its host, once the host is known.

A crawl verifies by what is rare on a site (:mod:`neardup.detection.own_text`). For that it has the shingles
of the page in hand, which are many times as large as a row. What is rare is known when all pages are read. So
the shingles of a part wait in a file beside the part. Then two steps follow:

1. The pages of each host are counted as a crawl counts them, in the order of the parts.
2. Of each page, the places of the sketch that hold something rare become a row of ``rare/``. The shingles go.

What a canonical page and its duplicates have in common is no evidence of a template. So a crawl raises the
limit by the number of these duplicates. In a collection this number shows only when pages are compared. So
the places are told for several limits, those of ``BESIDE``.

Memory holds counts of 64 MB, and the digests of four million texts.
"""

from __future__ import annotations

from array import array
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from neardup.collection import dataset, waiting, workers
from neardup.detection.document_frequencies import DocumentFrequencies, HostFrequencies
from neardup.detection.own_text import OwnText
from neardup.detection.rule import KNOWN_PAGES
from neardup.parquet import arrow_module, reading_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    from neardup.collection.dataset import Collection
    from neardup.fingerprint.reader import Reading

    Planes = npt.NDArray[np.uint64]

BESIDE = (0, 4, 8, 16, 32, 64)
"""By how much the limit is raised for each plane of places."""

_TEXTS = 1 << 22
"""Digests of texts that are remembered; 32 MB."""

_TEXTS_OF_A_BLOCK = 1 << 6
"""Slots whose memory is taken together: a small collection takes little of the 32 MB."""

_ROWS_AT_ONCE = 256


def plane_of(duplicates: int, limit: int) -> int:
    """The first of the planes for a canonical page of so many duplicates; ``len(BESIDE)``: all is rare.

    What the canonical page and its duplicates have in common stands on ``duplicates`` + 1 pages. That is
    rare if it is not above the limit of the host as raised for the plane.

    >>> [plane_of(duplicates, 6) for duplicates in (0, 5, 6, 9, 10, 69, 70)]
    [0, 0, 1, 1, 2, 5, 6]
    """
    planes = enumerate(BESIDE)
    return next((plane for plane, beside in planes if duplicates < limit + beside), len(BESIDE))


def plane_sql(columns: tuple[str, ...]) -> str:
    """SQL that takes the column of a plane, as :func:`plane_of` does, by ``duplicates`` and ``rare_limit``.

    Where one of these is null, all planes say the same.
    """
    planes = zip(BESIDE, columns, strict=False)
    cases = " ".join(f"WHEN duplicates < rare_limit + {beside} THEN {column}" for beside, column in planes)
    first, last = columns[0], columns[-1]
    return f"CASE WHEN duplicates IS NULL OR rare_limit IS NULL THEN {first} {cases} ELSE {last} END"


def learn(collection: Collection, processes: int) -> None:
    """Make ``rare/`` of the shingles that wait, and count the pages of hosts.

    OSError: the collection cannot be written. What was done is kept.
    """
    parts = sorted(collection.shingles.glob(f"*{waiting.SUFFIX}"))
    if parts:
        _count(collection, parts)
        make = partial(_Placing, collection)
        for _ in workers.run(make, parts, min(processes, len(parts)), lambda _: None):
            pass
    collection.shingles.rmdir()


def read_frequencies(collection: Collection, *, are_stored: bool) -> DocumentFrequencies:
    """What is known of the hosts of a collection. ``are_stored``: the tables of a crawl need not get it."""
    known = DocumentFrequencies()
    if collection.frequencies.exists():
        for batch in _batches(collection.frequencies):
            for row in batch.to_pylist():
                known.put(
                    row["host"],
                    HostFrequencies.from_bytes(row["pages"], row["counts"]),
                    are_stored=are_stored,
                )
    return known


def rows_of(collection: Collection, page_ids: npt.NDArray[np.int64]) -> Any:
    """The rows of ``rare/`` of some pages, as an Arrow table in the order of the ids, which rise.

    A page without a row has nulls.
    """
    arrow = arrow_module("pyarrow", collection.rare)
    compute = arrow_module("pyarrow.compute", collection.rare)
    wanted = arrow.array(page_ids)
    found = [dataset.RARE().empty_table()]
    for path in sorted(collection.rare.glob("*.parquet")):
        for batch in _batches(path):
            table = arrow.Table.from_batches([batch], schema=dataset.RARE())
            found.append(table.filter(compute.is_in(table["id"], wanted)))
    together = arrow.concat_tables(found)
    return together.take(compute.index_in(wanted, together["id"].combine_chunks()))


def folder_of(collection: Collection, folder: Path) -> Path:
    """Where the rows of ``rare/`` are; a place in ``folder`` if there are none, made without rows."""
    if any(collection.rare.glob("*.parquet")):
        return collection.rare
    none = folder / "nothing_rare"
    none.mkdir(exist_ok=True)
    parquet = arrow_module("pyarrow.parquet", none)
    parquet.write_table(dataset.RARE().empty_table(), none / "part.parquet")
    return none


def planes_of(own: OwnText) -> Planes:
    """The rare places of a sketch for each limit, shape (len(BESIDE), size // 64).

    A place is in the first plane of which it is rare. Where too little is rare for a plane, the plane is
    empty.
    """
    reached = own.bits_beside(BESIDE)  # a higher limit takes all that a lower one does
    made = reached.copy()
    made[1:] ^= reached[:-1]
    return made


def _batches(path: Path) -> Iterator[Any]:
    parquet = arrow_module("pyarrow.parquet", path)
    with reading_parquet(path), parquet.ParquetFile(path, memory_map=True) as file:
        yield from file.iter_batches(_ROWS_AT_ONCE)


class _Texts:
    """The digests of texts met; of those that share a slot the last one."""

    def __init__(self) -> None:
        self._blocks: list[array[int] | None] = [None] * (_TEXTS // _TEXTS_OF_A_BLOCK)

    def met(self, digest: int) -> bool:
        """Whether a text was met before; it is from now on."""
        number, slot = divmod(digest % _TEXTS, _TEXTS_OF_A_BLOCK)
        block = self._blocks[number]
        if block is None:
            block = self._blocks[number] = array("Q", bytes(8 * _TEXTS_OF_A_BLOCK))
        was = block[slot] == digest
        block[slot] = digest
        return was


def _count(collection: Collection, all_parts: list[Path]) -> None:
    """Count the pages of the parts that are not counted yet. A text is counted once, as in a crawl."""
    counted: set[str] = set()
    if collection.frequencies.exists():
        counted |= set(dataset.read_note(collection.frequencies)["counted"])
    parts = [path for path in all_parts if path.name not in counted]
    if not parts:
        return
    known, texts = read_frequencies(collection, are_stored=False), _Texts()
    for path in parts:
        for _, host, reading in waiting.read(path):
            if not texts.met(reading.text_digest):
                known.count(host, reading.shingles, reading.headline)
    table = dataset.Table(collection.frequencies, dataset.FREQUENCIES())
    try:
        for row in known.to_store(all_changed=True):
            table.add_row(row)
        table.finish({"counted": sorted(counted | {path.name for path in parts})})
        table.publish()
    finally:
        table.drop()


class _Placing:
    """Makes the rows of ``rare/`` of parts, in a process of its own."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection

    def __call__(self, task: Path, tell: Callable[[Any], None]) -> Path:
        table = dataset.Table((self._collection.rare / task.name).with_suffix(".parquet"), dataset.RARE())
        try:
            for page_id, host, reading in waiting.read(task):
                known = self._frequencies.of(host)
                if known is not None:
                    table.add_row((page_id, *self._row(reading, known)))
            table.finish({})
            table.publish()
        except OSError as exc:
            raise dataset.unwritable(self._collection, exc) from exc
        finally:
            table.drop()
        task.unlink()
        return task

    def close(self) -> None:
        return

    @cached_property
    def _frequencies(self) -> DocumentFrequencies:
        return read_frequencies(self._collection, are_stored=True)

    def _row(self, reading: Reading, known: HostFrequencies) -> tuple[bytes, int, bool, bool]:
        own = OwnText(reading, known)
        is_all_rare = known.pages >= KNOWN_PAGES and own.is_all_rare()
        return planes_of(own).astype("<u8").tobytes(), known.limit, is_all_rare, own.is_article()
