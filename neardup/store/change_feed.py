"""The change feed: what other crawls have written since this crawl looked last.

Every row names the transaction that wrote it last (``batch_id``). Every crawl counts its transactions
(``crawls.batches``). So what is new of a crawl are the rows between two of its counts. Nothing is missed and
no clock is asked. A row that two crawls have written since is read once, as the later crawl left it.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import bindparam, literal, select, update

from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.stored_page import StoredPage
from neardup.detection.verdict import Kind
from neardup.store.schema import crawls, duplicate_values, simhash_values
from neardup.store.statements import batch_id, in_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sqlalchemy import Connection

    from neardup.store.store import Store

_PAGES_AT_ONCE = 5_000


class Unreconciled(NamedTuple):
    """A page whose near-copies nobody has looked for.

    ``doubtful``: whether the page may have duplicates that are no longer duplicates of it.
    """

    page: StoredPage
    doubtful: bool


class _Crawl(NamedTuple):
    """How many batches a crawl has written, how many of them are reconciled, and whether it has ended."""

    batches: int
    reconciled_batches: int
    ended: bool


class ChangeFeed:
    """Reads what shared crawls other than ``crawl_id`` write from now on.

    ``look_back``: whether to read, too, what nobody has reconciled.

    ``crawls.reconciled_batches`` counts the batches of a crawl whose pages have been reconciled with all
    others. Later batches were written by a crawl that runs, has died or does not share, or by a removal.
    """

    def __init__(self, store: Store, crawl_id: int, *, look_back: bool = True) -> None:
        self._store = store
        self._crawl_id = crawl_id
        self._at_start = self._others()
        self._read_until = {number: crawl.batches for number, crawl in self._at_start.items()}
        # By ids: when these pages are seen again meanwhile, they are of other batches.
        self._unreconciled = {
            number: self._pages_of(number, crawl.reconciled_batches, crawl.batches)
            for number, crawl in self._at_start.items()
            if look_back and crawl.reconciled_batches < crawl.batches
        }

    def read(self) -> Iterator[list[StoredPage]]:
        """The pages written since the last time, some at a time; those of a part count as read when the next
        is asked for.

        Raises DatabaseUnavailable; what was not read comes the next time.
        """
        for crawl_id, crawl in self._others().items():
            for until, pages in self._between(crawl_id, self._read_until.get(crawl_id, 0), crawl.batches):
                if pages:
                    yield pages
                self._read_until[crawl_id] = until

    def unreconciled(self) -> Iterator[list[Unreconciled]]:
        """The pages that were there from the start and that nobody has reconciled by now, as they are now;
        each is told once.

        Those of a crawl that has written since then, and has not ended, are left to it.
        """
        others = self._others()
        for crawl_id in sorted(self._unreconciled):
            before, now = self._at_start[crawl_id], others.get(crawl_id)
            if now is not None and now.batches > before.batches and not now.ended:
                continue
            if now is None or now.reconciled_batches < before.batches:
                for ids in in_parts(self._unreconciled[crawl_id], _PAGES_AT_ONCE):
                    yield self._as_they_are(ids)
            del self._unreconciled[crawl_id]

    def mark_reconciled(self, own: int) -> None:
        """Note in the tables that all that was read has been reconciled, and the ``own`` batches, unless
        there are others by now.

        (A removal counts its changes for a crawl, too.)
        """
        read = {
            crawl_id: batches
            for crawl_id, batches in self._read_until.items()
            if crawl_id not in self._unreconciled
            and (crawl_id not in self._at_start or batches > self._at_start[crawl_id].reconciled_batches)
        }

        def work(connection: Connection) -> None:
            # All crawls that end lock the rows in the same order.
            for crawl_id, batches in sorted([*read.items(), (self._crawl_id, own)]):
                mark = _MARK if crawl_id != self._crawl_id else _MARK.where(crawls.c.batches == own)
                connection.execute(mark, {"crawl": crawl_id, "read": batches})

        self._store.transact(work)

    def _pages_of(self, crawl_id: int, after: int, until: int) -> array[int]:
        """Ids of the pages of a crawl's batches after one of them; negative ones if the duplicates of the
        page may be wrong.

        They are right if the page is unchanged, or new and its crawl the first that stored it.
        """
        query = select(_page.id, _page.kind).where(
            _page.batch_id > batch_id(crawl_id, after), _page.batch_id <= batch_id(crawl_id, until)
        )
        ids = array("q")
        with self._store.reading(patiently=False) as connection:
            for page_id, kind in connection.execute(query).yield_per(_PAGES_AT_ONCE):
                new = kind == Kind.NEW.value and page_id // PAGES_PER_CRAWL == crawl_id
                ids.append(page_id if new or kind == Kind.UNCHANGED.value else -page_id)
        return ids

    def _as_they_are(self, ids: list[int]) -> list[Unreconciled]:
        doubtful = {-page_id for page_id in ids if page_id < 0}
        pages = self._store.pages_by_id(map(abs, ids))
        return [Unreconciled(page, page.page_id in doubtful) for page in pages]

    def _between(self, crawl_id: int, after: int, until: int) -> Iterator[tuple[int, list[StoredPage]]]:
        """Pages of a crawl's batches after one of them, some at a time, and up to which batch that is."""
        start, end = batch_id(crawl_id, after), batch_id(crawl_id, until)
        while start < end:
            with self._store.reading(patiently=False) as connection:
                start, pages = _some_pages(connection, start, end)
            yield start - batch_id(crawl_id, 0), pages

    def _others(self) -> dict[int, _Crawl]:
        query = select(
            crawls.c.id, crawls.c.batches, crawls.c.reconciled_batches, crawls.c.finished_at.is_not(None)
        ).where(crawls.c.id != self._crawl_id, crawls.c.shared != 0)
        with self._store.reading(patiently=False) as connection:
            rows = connection.execute(query.order_by(crawls.c.id)).all()
        return {row.id: _Crawl(row.batches, row.reconciled_batches, bool(row[3])) for row in rows}


def _some_pages(connection: Connection, start: int, end: int) -> tuple[int, list[StoredPage]]:
    """Pages of batches after ``start``, of ``end`` at the latest, and the last batch that was read as a
    whole.
    """
    query = _PAGES.where(_page.batch_id > start, _page.batch_id <= end)
    rows = connection.execute(query.limit(_PAGES_AT_ONCE + 1)).all()
    if len(rows) > _PAGES_AT_ONCE:
        # The last of these batches may go on; unless all are of one batch, it is left for the next time.
        end = rows[-1].batch_id
        if end > rows[0].batch_id:
            end -= 1
            rows = [row for row in rows if row.batch_id <= end]
        else:
            return end, pages_of_batch(connection, end)
    return end, [StoredPage(*row[:-1]) for row in rows]


def pages_by_id(connection: Connection, page_ids: Iterable[int]) -> list[StoredPage]:
    """Some pages as they are stored now; those that have been removed are missing."""
    return [
        StoredPage(*row[:-1])
        for ids in in_parts(page_ids, _PAGES_AT_ONCE)
        for row in connection.execute(_PAGES.where(_page.id.in_(ids)))
    ]


def pages_of_batch(connection: Connection, number: int) -> list[StoredPage]:
    """The pages that one transaction has written, and none after it."""
    return [StoredPage(*row[:-1]) for row in connection.execute(_PAGES.where(_page.batch_id == number))]


_MARK = (
    update(crawls)
    .where(crawls.c.id == bindparam("crawl"), crawls.c.reconciled_batches < bindparam("read"))
    .values(reconciled_batches=bindparam("read"))
)

_page = simhash_values.c
_canonical = simhash_values.alias("canonical")
_PAGES = (
    select(
        _page.id,
        _page.actual_url,
        _page.hash_value,
        _page.features,
        _canonical.c.id,
        _page.sketch,
        _page.text_digest,
        _page.headline,
        literal(1),
        _page.weak_bits,
        _canonical.c.actual_url,
        duplicate_values.c.hamming_distance,
        _page.kind,
        _page.batch_id,
    )
    .join_from(
        simhash_values, duplicate_values, duplicate_values.c.duplicate_hash_id == _page.id, isouter=True
    )
    .join(_canonical, _canonical.c.id == duplicate_values.c.actual_hash_id, isouter=True)
    .order_by(_page.batch_id, _page.id)
)
