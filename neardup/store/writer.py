"""The writer: one thread that stores verdicts in batches, so that the crawl never waits for the database."""

from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError, StatementError

from neardup import hamming, sketch
from neardup.errors import DatabaseUnavailable, StoreError
from neardup.pages import url_key
from neardup.store import history, statements
from neardup.store.outage import Outage
from neardup.store.waiting import Batch, split
from neardup.verdict import Kind, Relation, Verdict

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from neardup.store.store import Store

logger = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 5.0

_ENDS = ("duplicate_hash_id", "actual_hash_id")


class Writer:
    """Stores the verdicts of one crawl.

    A batch is written when ``batch_rows`` have gathered or the oldest has waited ``batch_seconds``; each is one transaction of
    page rows, relations, skipped links and, with ``history``, versions of pages (:mod:`neardup.store.history`), and harmless if
    it is tried twice. A failure of the database is retried with
    growing waits, and one warning for each outage (:mod:`neardup.store.outage`). When it has lasted ``give_up_after`` seconds,
    ``error`` is set for the crawl to see; nothing is discarded, and the retries go on until they succeed, which takes ``error``
    back, or until :meth:`close`.

    A row that the database refuses by itself (not because it is away) is logged and counted in ``rows_rejected``; the rest of
    its batch is stored.

    ``put``, ``links_skipped`` and ``flag`` are called by one thread, take microseconds and never touch the database. What a crash
    of the process can lose is what they were given in the last ``batch_seconds``, and what the database had not yet taken.
    """

    def __init__(
        self,
        store: Store,
        crawl_id: int,
        *,
        history: bool = False,
        batch_rows: int = 500,
        batch_seconds: float = 1.0,
        give_up_after: float = 60.0,
    ) -> None:
        self.store = store
        self.crawl_id = crawl_id
        self.history = history
        self.batch_rows = batch_rows
        self.batch_seconds = batch_seconds
        self.give_up_after = give_up_after
        self.rows_written = 0
        self.rows_rejected = 0
        self.retries = 0
        self.seconds = 0.0
        self.error: StoreError | None = None
        self._gathering = Batch()
        self._writing = Batch()
        self._changed = threading.Condition()
        self._closing = False
        self._hurried = False
        self._stored_id: dict[int, int] = {}
        self._learnt: list[tuple[str, int]] = []
        self._dropped: set[int] = set()
        self.batches = 0
        """Transactions that this crawl has counted."""
        dialect = store.engine.dialect.name
        self._upsert_page = statements.upsert_page(dialect)
        self._upsert_relation = statements.upsert_relation(dialect)
        self._thread = threading.Thread(target=self._run, name="neardup-writer", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """Rows that wait to be stored."""
        return len(self._gathering) + len(self._writing)

    def put(self, verdict: Verdict) -> None:
        """Have a verdict stored; of several for one page in a batch the last counts, but for its history all. Not-HTML pages are not stored."""
        if verdict.kind is Kind.NOT_HTML or verdict.page_id is None:
            return
        with self._changed:
            visits = self._gathering.visits.setdefault(verdict.page_id, [])
            if not self.history:
                visits.clear()
            visits.append((verdict, datetime.now(UTC)))
            self._gathering.reconciled.pop(verdict.page_id, None)
            self._wake_when_full()

    def links_skipped(self, page_id: int, links: int) -> None:
        """Have it stored that so many links of a page, whose verdict was put before, were not followed."""
        with self._changed:
            self._gathering.links[page_id] = links
            self._wake_when_full()

    def flag(self, page_id: int) -> None:
        """Have it stored that a canonical page, whose verdict was put before or stored earlier, has been flagged."""
        with self._changed:
            self._gathering.flags[page_id] = datetime.now(UTC)
            self._wake_when_full()

    def reconcile(self, pair: Relation) -> None:
        """Have it stored that a page is a duplicate; the verdicts of both were put before or stored earlier."""
        with self._changed:
            self._gathering.reconciled[pair.duplicate_id] = pair, datetime.now(UTC)
            self._wake_when_full()

    def stored_id(self, page_id: int) -> int:
        """The id under which a page is stored; another one if another crawl stored its URL first."""
        return self._stored_id.get(page_id, page_id)

    def learnt(self) -> list[tuple[str, int]]:
        """URLs that another crawl stored first, and their ids; each is told once."""
        with self._changed:
            known, self._learnt = self._learnt, []
        return known

    def dropped(self) -> set[int]:
        """Ids of the pages of reconciled pairs that were not stored, because one of the two had changed; each is told once."""
        with self._changed:
            dropped, self._dropped = self._dropped, set()
        return dropped

    def pages_waiting(self) -> set[int]:
        """Ids of the pages whose verdicts are not stored yet."""
        with self._changed:
            return {*self._gathering.visits, *self._writing.visits}

    def flush(self) -> None:
        """Wait until what has been put is stored, or the database has been given up."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self.backlog or self.error is not None)
            self._hurried = False

    def close(self) -> None:
        """Store everything and stop; DatabaseUnavailable says how many rows could not be stored."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        if self.backlog:
            raise DatabaseUnavailable(
                f"{self.backlog} rows could not be stored: {self.error}"
            ) from self.error

    def _wake_when_full(self) -> None:
        if len(self._gathering) == 1 or len(self._gathering) >= self.batch_rows:
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while self._gather() and self._store_batch():
                pass
        except StoreError as exc:
            self._give_up(exc)
        except Exception as exc:
            # A thread that died in silence would have the crawl go on with nothing stored.
            logger.exception("neardup: the writer failed")
            self._give_up(StoreError(f"the writer failed: {exc!r}"))

    def _give_up(self, error: StoreError) -> None:
        with self._changed:
            self.error = error
            self._changed.notify_all()

    def _gather(self) -> bool:
        """Wait for a batch and move it to ``_writing``; False when there will be no more."""
        with self._changed:
            while not self._gathering and not self._closing:
                self._changed.wait()
            deadline = monotonic() + self.batch_seconds
            while len(self._gathering) < self.batch_rows and not (self._closing or self._hurried):
                if not self._changed.wait(deadline - monotonic()):
                    break
            everything = self._gathering
            self._writing, self._gathering = split(everything)
            return bool(self._writing)

    def _store_batch(self) -> bool:
        """Store ``_writing``, however long it takes; False if the crawl has ended before that was possible."""
        outage: Outage | None = None
        wait = _FIRST_WAIT_SECONDS
        while True:
            started = perf_counter()
            try:
                self._write_or_write_each(self._writing)
            except SQLAlchemyError as exc:
                problem = self.store.unavailable(exc)
                outage = outage or Outage()
                outage.failed(exc, problem)
            else:
                if outage is not None:
                    outage.end()
                with self._changed:
                    self._writing = Batch()
                    self.error = None
                    self._changed.notify_all()
                return True
            finally:
                self.seconds += perf_counter() - started
            self.retries += 1
            if outage.seconds >= self.give_up_after:
                self._give_up(problem)
                if self._closing:
                    return False
            sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)

    def _write_or_write_each(self, batch: Batch) -> None:
        try:
            self._write(batch)
        except SQLAlchemyError as exc:
            if not _is_refusal(exc):
                raise
            self._write_each(batch)

    def _write_each(self, batch: Batch) -> None:
        """Store the rows one by one; what the database refuses is logged, and the rest is kept.

        Each row leaves the batch when it is done with: should the database go away on the way, those before it are neither
        logged nor counted again.
        """
        for page_id, visits in list(batch.visits.items()):
            links = {page_id: batch.links[page_id]} if page_id in batch.links else {}
            self._write_unless_refused(Batch({page_id: visits}, links), visits[-1][0].url)
            del batch.visits[page_id]
            batch.links.pop(page_id, None)
        for page_id, pair in list(batch.reconciled.items()):
            self._write_unless_refused(Batch(reconciled={page_id: pair}), f"the duplicate {page_id}")
            del batch.reconciled[page_id]
        self._write(batch)

    def _write_unless_refused(self, batch: Batch, name: str) -> None:
        try:
            self._write(batch)
        except SQLAlchemyError as exc:
            if not _is_refusal(exc):
                raise
            self.rows_rejected += 1
            logger.error(
                "neardup: the row of %(name)s is not stored: %(reason)s",
                {"name": name, "reason": self.store.unavailable(exc)},
            )

    def _write(self, batch: Batch) -> None:
        """One transaction: pages first, because relations refer to them."""
        last = {page: visits[-1] for page, visits in batch.visits.items()}
        relations: list[dict[str, Any]] = []
        versions = 0
        with self.store.begin_write() as connection:
            batch_id = statements.count_batch(connection, self.crawl_id)
            if last:
                rows = [self._page_row(verdict, seen, batch_id) for verdict, seen in last.values()]
                connection.execute(self._upsert_page, rows)
                self._learn_stored_ids(connection, rows)
                relations = [
                    self._relation_row(verdict.relation, seen)
                    for verdict, seen in last.values()
                    if verdict.relation is not None
                ]
                # A page that is new has no relation, unless another process stored it: were that one's relation kept, the
                # two processes could make two pages duplicates of each other, and neither would be canonical.
                others = [
                    self.stored_id(page)
                    for page, (verdict, _) in last.items()
                    if not verdict.is_duplicate and (verdict.kind is not Kind.NEW or page in self._stored_id)
                ]
                if others:
                    connection.execute(statements.DELETE_RELATIONS, {"ids": others})
                if relations:
                    connection.execute(self._upsert_relation, relations)
                if self.history:
                    visits = {self.stored_id(page): visits for page, visits in batch.visits.items()}
                    versions = history.add_versions(connection, self.crawl_id, visits)
            if batch.links:
                connection.execute(
                    statements.SET_LINKS_SKIPPED,
                    [
                        {"page_id": self.stored_id(page), "links": links}
                        for page, links in batch.links.items()
                    ],
                )
            if batch.flags:
                connection.execute(
                    statements.SET_FLAGGED,
                    [{"page_id": self.stored_id(page), "at": at} for page, at in batch.flags.items()],
                )
            if batch.reconciled:
                relations += self._reconcile(connection, batch, batch_id)
        self.batches += 1
        self.rows_written += len(last) + len(relations) + versions

    def _reconcile(self, connection: Connection, batch: Batch, batch_id: int) -> list[dict[str, Any]]:
        """Store the pairs that still are as they were compared: other crawls may have changed their pages since."""
        pairs = [self._relation_row(pair, at) for pair, at in batch.reconciled.values()]
        ids = {row[end] for row in pairs for end in _ENDS}
        values = {
            page_id: value
            for page_id, value in connection.execute(statements.VALUES, {"ids": sorted(ids)})
            if value is not None
        }
        true = [row for row in pairs if _still_holds(row, values)]
        duplicates = {row["duplicate_hash_id"] for row in true}
        with self._changed:  # for nothing if the transaction fails, which does no harm
            self._dropped |= {
                row[end] for row in pairs if row["duplicate_hash_id"] not in duplicates for end in _ENDS
            }
        if true:
            connection.execute(self._upsert_relation, true)
            connection.execute(statements.SET_DUPLICATE, {"ids": sorted(duplicates), "batch": batch_id})
        return true

    def _learn_stored_ids(self, connection: Connection, rows: list[dict[str, Any]]) -> None:
        """Another process may have stored a URL first, under an id of its own: from now on that is the page's id."""
        stored = set(
            connection.execute(statements.STORED_IDS, {"ids": [row["id"] for row in rows]}).scalars()
        )
        missing = {row["url_key"]: row["id"] for row in rows if row["id"] not in stored}
        urls = {row["url_key"]: row["actual_url"] for row in rows}
        if missing:
            for key, stored_id in connection.execute(statements.IDS_BY_KEY, {"keys": list(missing)}):
                self._stored_id[missing[bytes(key)]] = stored_id
                with self._changed:
                    self._learnt.append((urls[bytes(key)], stored_id))

    def _page_row(self, verdict: Verdict, seen: datetime, batch_id: int) -> dict[str, Any]:
        fingerprint = verdict.fingerprint
        return {
            "id": verdict.page_id,
            "hash_value": None if fingerprint is None else fingerprint.value,
            "actual_url": _storable(verdict.url),
            "url_key": url_key(verdict.url),
            "host": _host(verdict.url),
            "scheme": self.store.scheme,
            "features": verdict.features,
            "weak_bits": None if fingerprint is None else fingerprint.pack_weak_bits(),
            "sketch": None if verdict.sketch is None else sketch.to_bytes(verdict.sketch),
            "kind": verdict.kind.value,
            "crawl_id": self.crawl_id,
            "last_crawl_id": self.crawl_id,
            "first_seen": seen,
            "last_seen": seen,
            "links_skipped": 0,
            "batch_id": batch_id,
        }

    def _relation_row(self, pair: Relation, seen: datetime) -> dict[str, Any]:
        return {
            "actual_hash_id": self.stored_id(pair.canonical_id),
            "duplicate_hash_id": self.stored_id(pair.duplicate_id),
            "percentage": hamming.percentage(pair.distance),
            "hamming_distance": pair.distance,
            "resemblance": pair.resemblance,
            "crawl_id": self.crawl_id,
            "found_at": seen,
        }


def _still_holds(row: dict[str, Any], values: dict[int, int]) -> bool:
    """Whether the pages of a relation have the distance that it says, by the fingerprints that are stored."""
    one, other = (values.get(row[end]) for end in _ENDS)
    return one is not None and other is not None and hamming.distance(one, other) == row["hamming_distance"]


def _is_refusal(exc: SQLAlchemyError) -> bool:
    """Whether the database, or the driver, will never take these rows; any other failure may pass."""
    return isinstance(exc, DataError | IntegrityError) or type(exc) is StatementError


def _storable(text: str) -> str:
    """URLs are data: PostgreSQL takes no NUL, and no database takes a lone surrogate."""
    return text.replace("\x00", "%00").encode("utf-8", "replace").decode()


def _host(url: str) -> str:
    try:
        return _storable(urlsplit(url).hostname or "")[:255]
    except ValueError:
        return ""
