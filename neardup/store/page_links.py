"""The links of pages as they are stored: sorted numbers of targets, each as its distance from the one before.

A target has a *code*. A page that was known when the crawl met the first link to it has its page id as code.
Any other target gets a number of the crawl, counted from 1. When the crawl stores the page of such a target,
the page's row says the number. A target that is never stored keeps its number and nothing else: its links are
counted, and its URL is not kept.

``links`` is a sequence of variable-length integers, seven bits a byte, the lowest first. Each integer is the
difference of a code from the code before, times four, plus the marks of the link. ``numbers`` has the same
form without marks.

Codes that follow one on another are common: a page has most of its links in common with pages before. No
difference is 0, but for the first of a row. So 0, 1, 2 or 3 stands for a *run*: 2, 3, 4 or 16 more links.
Each of these leads to the next code, with the marks of the link before. Earlier versions stored no runs, and
their rows are read the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sqlalchemy import exists, func, select

from neardup import native
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.errors import StoreError
from neardup.store.schema import page_links
from neardup.store.statements import STORED_IDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt
    from sqlalchemy import Connection, Insert

    Integers = npt.NDArray[np.int64]

NOFOLLOW = 1
"""Mark of a link that says ``nofollow``, or stands on a page that does."""

FOLLOWED = 2
"""Mark of a link that the spider made a request for, which was not withheld."""

MARKS = 3

MOST_NUMBERS = 10_000_000
"""Targets that a crawl gives a number: 30 bytes of memory each while it runs."""

RUNS = (2, 3, 4, 16)
"""Links of a run, by the integer that stands for it; real pages are shortest with these."""

_ROWS_AT_ONCE = 2_000

_BYTES_AT_ONCE = 1 << 18
"""Bytes of rows that are decoded together. A byte stands for 16 links at most, and a link takes 60 bytes."""

_LONGEST = 9
"""Bytes of an integer of 63 bits."""

_row = page_links.c


@dataclass(frozen=True, slots=True)
class StoredLinks:
    """``numbers`` and ``links`` of a row of ``page_links``."""

    numbers: bytes
    links: bytes


class Edges(NamedTuple):
    """Links of some pages, each array of shape (n,): page ids of the two ends, and marks.

    ``targets`` is 0 where the target is not stored.
    """

    sources: Integers
    targets: Integers
    marks: Integers


@native.twin
def encoded(marks_of_codes: dict[int, int]) -> bytes:
    """Codes, 0 or more, and their marks as they are stored.

    >>> encoded({7: FOLLOWED, 5: 0, 1_000: NOFOLLOW}).hex()
    '140a851f'
    >>> encoded(dict.fromkeys(range(20, 40), FOLLOWED)).hex()
    '520301'
    """
    made = bytearray()
    before, marks_before, run = 0, -1, 0
    for code in sorted(marks_of_codes):
        marks = marks_of_codes[code]
        if code == before + 1 and marks == marks_before:
            run += 1
        else:
            _put_run(made, run, marks_before)
            value = (code - before) << 2 | marks
            while value > 127:
                made.append(value & 127 | 128)
                value >>= 7
            made.append(value)
            run = 0
        before, marks_before = code, marks
    _put_run(made, run, marks_before)
    return bytes(made)


def _put_run(made: bytearray, run: int, marks: int) -> None:
    """Append so many links to one code after the other, with the same marks."""
    for integer in (3, 2, 1, 0):
        made.extend([integer] * (run // RUNS[integer]))
        run %= RUNS[integer]
    made.extend([1 << 2 | marks] * run)


def decoded(rows: Sequence[bytes]) -> tuple[Integers, Integers, Integers]:
    r"""The row numbers, codes and marks of all links of some rows, each of shape (n,); StoreError if a row is
    damaged.

    >>> [column.tolist() for column in decoded([bytes.fromhex("140a851f"), b"", b"\x08"])]
    [[0, 0, 0, 2], [5, 7, 1000, 2], [0, 2, 1, 0]]
    """
    joined = np.frombuffer(b"".join(rows), dtype=np.uint8)
    row_ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    lasts = np.flatnonzero(joined < 128)
    starts = np.append(0, lasts[:-1] + 1) if lasts.size else lasts
    nonempty = [end - 1 for row, end in zip(rows, row_ends.tolist(), strict=True) if row]
    if np.any(joined[nonempty] > 127) or (lasts.size and (lasts - starts).max() >= _LONGEST):
        raise _damaged("an integer does not end")
    if np.any((joined[lasts] == 0) & (lasts > starts)):
        raise _damaged("an integer is longer than it needs to be")
    if not lasts.size:
        return lasts, lasts, lasts
    shifts = 7 * (np.arange(joined.size) - np.repeat(starts, lasts - starts + 1))
    values = np.add.reduceat((joined & 127).astype(np.int64) << shifts, starts)
    of_rows = np.searchsorted(row_ends, lasts, side="right")
    is_run = values >> 2 == 0
    is_run[np.flatnonzero(np.diff(of_rows, prepend=-1))] = False
    counts = np.where(is_run, np.array(RUNS)[values & MARKS], 1)
    firsts = np.flatnonzero(np.diff(of_rows, prepend=-1))
    if np.add.reduceat(counts, firsts).max() > MOST_NUMBERS:
        raise _damaged(f"it has more than {MOST_NUMBERS:,} links")
    # What a run repeats is the last integer before it that is none; the first of a row never is.
    steps_at = np.maximum.accumulate(np.where(is_run, 0, np.arange(values.size)))
    of_rows, marks = np.repeat(of_rows, counts), np.repeat(values[steps_at] & MARKS, counts)
    sums = np.cumsum(np.repeat(np.where(is_run, 1, values >> 2), counts))
    firsts = np.flatnonzero(np.diff(of_rows, prepend=-1))
    before = np.append(0, sums)[firsts]
    codes = sums - np.repeat(before, np.diff(np.append(firsts, sums.size)))
    if codes.min() < 0:
        raise _damaged("a number is too large")
    return of_rows, codes, marks


def _damaged(what: str) -> StoreError:
    return StoreError(f"a row of page_links is damaged: {what}; neardup db check names it")


def store_links(
    connection: Connection, upsert: Insert, crawl_id: int, links: Mapping[int, StoredLinks]
) -> int:
    """Store the links of pages by page id; returns how many pages. A page that is not stored is left out:
    the database has refused it, or somebody has removed it.
    """
    stored = set(connection.execute(STORED_IDS, {"ids": list(links)}).scalars())
    rows = [
        {"crawl_id": crawl_id, "page_id": page_id, "numbers": of_page.numbers, "links": of_page.links}
        for page_id, of_page in links.items()
        if page_id in stored
    ]
    if rows:
        connection.execute(upsert, rows)
    return len(rows)


def count_pages(connection: Connection) -> int:
    """Pages of which links are stored."""
    return connection.execute(select(func.count(_row.page_id.distinct()))).scalar_one()


def stored_edges(connection: Connection) -> Iterator[Edges]:
    """The links of all pages, each page by the last crawl that stored its links, some at a time.

    Memory has 8 bytes for each target of the crawl in hand.
    """
    query = select(_row.crawl_id).distinct().order_by(_row.crawl_id)
    for crawl_id in list(connection.execute(query).scalars()):
        page_of_number = _pages_of_numbers(connection, crawl_id)
        newer = page_links.alias("newer").c
        rows = select(_row.page_id, _row.links).where(
            _row.crawl_id == crawl_id,
            ~exists().where(newer.page_id == _row.page_id, newer.crawl_id > crawl_id),
        )
        result = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(rows)
        for some in _decoded_together(result, "links"):
            ids = np.array([row.page_id for row in some], dtype=np.int64)
            of_rows, codes, marks = decoded([row.links for row in some])
            is_number = codes < page_of_number.size
            targets = np.where(codes > PAGES_PER_CRAWL, codes, 0)
            targets[is_number] = page_of_number[codes[is_number]]
            yield Edges(ids[of_rows], targets, marks)


def _pages_of_numbers(connection: Connection, crawl_id: int) -> Integers:
    """The page id of each number of a crawl; 0: no page that is stored."""
    query = select(_row.page_id, _row.numbers).where(_row.crawl_id == crawl_id)
    pages: list[Integers] = []
    numbers: list[Integers] = []
    for some in _decoded_together(connection.execute(query), "numbers"):
        of_rows, codes, _ = decoded([row.numbers for row in some])
        pages.append(np.array([row.page_id for row in some], dtype=np.int64)[of_rows])
        numbers.append(codes)
    if not pages:
        return np.zeros(1, dtype=np.int64)
    all_numbers = np.concatenate(numbers)
    most = int(all_numbers.max(initial=0))
    if most > MOST_NUMBERS:
        raise StoreError(f"page_links of crawl {crawl_id} is damaged: a page has the number {most:,}")
    found = np.zeros(most + 1, dtype=np.int64)
    found[all_numbers] = np.concatenate(pages)
    return found


def _decoded_together(rows: Iterable[Any], column: str) -> Iterator[list[Any]]:
    """The rows in their order, some at a time, with few bytes in a column together."""
    some: list[Any] = []
    size = 0
    for row in rows:
        some.append(row)
        size += len(getattr(row, column))
        if size >= _BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some


def are_damaged(rows: Iterable[bytes]) -> list[bool]:
    """Whether each of some values of ``numbers`` or ``links`` cannot be read."""
    damaged = []
    for row in rows:
        try:
            decoded([row])
        except StoreError:
            damaged.append(True)
        else:
            damaged.append(False)
    return damaged
