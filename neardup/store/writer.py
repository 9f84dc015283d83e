"""The writer: one thread that stores verdicts in batches, so that the crawl never waits for the database."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from datetime import UTC, datetime
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from neardup.detection.verdict import LEFT_ALONE, Kind, Relation, Verdict
from neardup.errors import DatabaseUnavailable, StoreError
from neardup.fingerprint import hamming, sketch
from neardup.store import history, statements
from neardup.store.frequencies import store_frequencies
from neardup.store.host_ips import store_ips
from neardup.store.missing import MissingPages
from neardup.store.outage import Outage
from neardup.store.page_links import store_links
from neardup.store.pairs import store_pairs
from neardup.store.pending_batch import Batch, halves, split
from neardup.store.refusal import another_page, is_refusal, may_be_refusal
from neardup.store.texts import store_texts
from neardup.store.types import storable, stored_host
from neardup.store.url_rules import store_rules
from neardup.text import headline as headlines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from neardup.detection.document_frequencies import DocumentFrequencies
    from neardup.store.page_links import StoredLinks
    from neardup.store.store import Store
    from neardup.store.url_rules import UrlRules
    from neardup.text.headline import Headline

logger = logging.getLogger(__name__)

_DOUBT_SECONDS = (0.1, 0.3)
"""Waits between the tries of a row that fails while others pass: by chance, a connection may break each time
that it is its turn.
"""


class Writer:
    """Stores the verdicts of one crawl.

    A batch is written when ``batch_rows`` have gathered or the oldest row has waited ``batch_seconds``. Each
    batch is one transaction of page rows, relations, links and, with ``history``, versions of pages
    (:mod:`neardup.store.history`). A batch also has what ``frequencies`` have learned of hosts meanwhile,
    and now and then what ``rules`` have learned of URLs. A batch that is tried twice does no harm.

    A batch that meets a failure of the database is tried again with growing waits. The log has one warning
    for each outage (:mod:`neardup.store.outage`). After ``give_up_after`` seconds of an outage, ``error`` is
    set for the crawl to see. Nothing is discarded. The retries go on until they succeed, which takes
    ``error`` back, or until :meth:`close`.

    A database that is there may refuse a row, if only for its size. Such a row is found by halving its batch,
    logged and counted in ``rows_rejected``. The rest of the batch is stored. A duplicate whose canonical page
    is not there is stored as ``new``.

    ``put``, ``links_withheld``, ``put_links``, ``put_ip`` and ``flag`` are called by one thread, take
    microseconds and never touch the database. A crash of the process can lose what these methods were given
    in the last ``batch_seconds``. A crash can also lose what the database had not yet taken.
    """

    def __init__(
        self,
        store: Store,
        crawl_id: int,
        *,
        history: bool = False,
        frequencies: DocumentFrequencies | None = None,
        rules: UrlRules | None = None,
        batch_rows: int = 500,
        batch_seconds: float = 1.0,
        give_up_after: float = 60.0,
    ) -> None:
        self.store = store
        self.crawl_id = crawl_id
        self.history = history
        self.frequencies = frequencies
        self.rules = rules
        self.batch_rows = batch_rows
        self.batch_seconds = batch_seconds
        self.give_up_after = give_up_after
        self.rows_written = 0
        self.rows_rejected = 0
        self.retries = 0
        self.seconds = 0.0
        self.error: StoreError | None = None
        self._gathering = Batch()
        self._writing: list[Batch] = []
        """Parts of a batch; the last is the next to be stored."""
        self._changed = threading.Condition()
        self._closing = False
        self._hurried = False
        self._stored_id: dict[int, int] = {}
        self._learnt: list[tuple[str, int]] = []
        self._dropped: set[int] = set()
        self._missing = MissingPages()
        self.batches = 0
        """Transactions that this crawl has counted."""
        dialect = store.engine.dialect.name
        self._upsert_page = statements.upsert_page(dialect)
        self._upsert_relation = statements.upsert_relation(dialect)
        self._upsert_links = statements.upsert_links(dialect)
        self._upsert_frequencies = statements.upsert_frequencies(dialect)
        self._upsert_rule = statements.upsert_rule(dialect)
        self._upsert_ip = statements.upsert_ip(dialect)
        self._upsert_text = statements.upsert_text(dialect)
        self._thread = threading.Thread(target=self._run, name="neardup-writer", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """Rows that wait to be stored."""
        return len(self._gathering) + sum(map(len, self._writing))

    def put(self, verdict: Verdict) -> None:
        """Have a verdict stored; of several for one page in a batch the last counts, but for its history all.
        Not-HTML pages are not stored.
        """
        if verdict.kind in LEFT_ALONE or verdict.page_id is None:
            return
        with self._changed:
            visits = self._gathering.visits.setdefault(verdict.page_id, [])
            if not self.history:
                visits.clear()
            visits.append((verdict, datetime.now(UTC)))
            self._gathering.reconciled.pop(verdict.page_id, None)
            self._wake_when_full()

    def links_withheld(self, page_id: int, links: int) -> None:
        """Have it stored that so many links of a page, whose verdict was put before, were not followed."""
        with self._changed:
            self._gathering.links[page_id] = links
            self._wake_when_full()

    def put_links(self, page_id: int, links: StoredLinks) -> None:
        """Have the links of a page stored, whose verdict was put before."""
        with self._changed:
            self._gathering.page_links[page_id] = links
            self._wake_when_full()

    def put_ip(self, host: str, ip: str) -> None:
        """Have it stored that a host has an IP address now."""
        with self._changed:
            self._gathering.ips[host, ip] = datetime.now(UTC)
            self._wake_when_full()

    def flag(self, page_id: int) -> None:
        """Have it stored that a canonical page, whose verdict was put before or stored earlier, has been
        flagged.
        """
        with self._changed:
            self._gathering.flags[page_id] = datetime.now(UTC)
            self._wake_when_full()

    def soft_404(self, page_id: int) -> None:
        """Have it stored that a page, whose verdict was put before, stands for one that is not there."""
        with self._changed:
            self._gathering.soft_404[page_id] = True
            self._wake_when_full()

    def reconcile(self, pair: Relation) -> None:
        """Have it stored that a page is a duplicate; the verdicts of both were put before or
        stored earlier.
        """
        with self._changed:
            self._gathering.reconciled[pair.duplicate_id] = pair, datetime.now(UTC)
            self._wake_when_full()

    def put_learned(self, *, all_changed: bool = True) -> None:
        """Have it stored what has been learned of hosts and URLs, as far as it is not stored as it is.

        Without ``all_changed`` only hosts of which much is new, and URLs if the last time was a while ago.

        Takes milliseconds for a host or a thousand rules, so the thread of the crawl leaves it to others. A
        page that the crawl counts meanwhile may be counted in part.
        """
        frequencies: dict[str, tuple[int, bytes]] = {}
        if self.frequencies is not None:
            with suppress(RuntimeError):  # a host was met while they were listed; the next batch has them
                for host, pages, counts in self.frequencies.to_store(all_changed=all_changed):
                    frequencies[host] = pages, counts
        rules = {} if self.rules is None else self.rules.to_store(all_changed=all_changed)
        with self._changed:
            self._gathering.frequencies |= frequencies
            self._gathering.rules |= rules
            self._changed.notify_all()

    def stored_id(self, page_id: int) -> int:
        """The id under which a page is stored; another one if another crawl stored its URL first."""
        return self._stored_id.get(page_id, page_id)

    def learnt(self) -> list[tuple[str, int]]:
        """URLs that another crawl stored first, and their ids; each is told once."""
        with self._changed:
            known, self._learnt = self._learnt, []
        return known

    def dropped(self) -> set[int]:
        """Ids of the pages of pairs that were not stored, because one of the two had changed or is not there;
        each is told once.
        """
        with self._changed:
            dropped, self._dropped = self._dropped, set()
        return dropped

    def missing(self) -> set[str]:
        """URLs of pages that others were found to be duplicates of, and that are not stored: refused, or
        removed meanwhile.
        """
        return set(self._missing.urls.values())

    def pages_waiting(self) -> set[int]:
        """Ids of the pages whose verdicts are not stored yet."""
        with self._changed:
            return {page for batch in (self._gathering, *self._writing) for page in batch.visits}

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
        self.put_learned(all_changed=False)
        with self._changed:
            now, self._gathering = split(self._gathering)
            self._writing = [now] if now else []
            return bool(now)

    def _store_batch(self) -> bool:
        """Store ``_writing``, however long it takes; False if the crawl has ended before that
        was possible.
        """
        outage: Outage | None = None
        doubts = iter(_DOUBT_SECONDS)
        while self._writing:
            failure = self._failure_of(self._writing[-1])
            if failure is not None and self._is_outage(failure):
                outage = outage or Outage()
                problem = self.store.unavailable(failure)
                outage.failed(failure, problem)
                if outage.seconds >= self.give_up_after:
                    self._give_up(problem)
                    if self._closing:
                        return False
                outage.wait()
                continue
            if outage is not None:
                outage.end()
                outage = None
            if failure is None:
                self._done()
            else:
                certain = is_refusal(failure) or not self._writing[-1].stands_alone
                wait = None if certain else next(doubts, None)
                if wait is not None:
                    sleep(wait)
                    continue
                self._divide_or_reject(failure)
            doubts = iter(_DOUBT_SECONDS)
        return True

    def _failure_of(self, part: Batch) -> SQLAlchemyError | None:
        """Try to store a part of a batch; what prevented it."""
        started = perf_counter()
        try:
            self._write(part)
        except SQLAlchemyError as exc:
            return exc
        finally:
            self.seconds += perf_counter() - started
        return None

    def _is_outage(self, failure: SQLAlchemyError) -> bool:
        """Whether a failure is not that of a row: the database does not take another one, small and not kept,
        either.
        """
        if is_refusal(failure):
            return False
        self.retries += 1
        if not may_be_refusal(failure):
            return True
        row = self._page_row(another_page(self.crawl_id), datetime.now(UTC), 0)
        return not self.store.would_take(self._upsert_page, row)

    def _done(self) -> None:
        """The next part of ``_writing`` is stored, or rejected."""
        with self._changed:
            self._writing.pop()
            self.error = None
            self._changed.notify_all()

    def _divide_or_reject(self, failure: SQLAlchemyError) -> None:
        """Halve the next part of ``_writing``, of which a row is refused, or reject it if it stands alone."""
        part = self._writing[-1]
        if not part.stands_alone:
            first, second = halves(part)
            with self._changed:
                self._writing[-1:] = [second, first]
            return
        with suppress(DatabaseUnavailable):  # then the part is tried again, which tells more
            if self._missing.discover(part.visits, lambda page: self.store.has_page(self.stored_id(page))):
                return
            self.rows_rejected += 1
            logger.error(
                "neardup: the row of %(name)s is not stored; the database takes others, but of this one"
                " says: %(reason)s",
                {"name": part.name, "reason": self.store.reason(failure)},
            )
            self._done()

    def _write(self, batch: Batch) -> None:
        """One transaction: pages first, because relations refer to them."""
        visits, orphans = self._missing.without(batch.visits)
        last = {page: seen[-1] for page, seen in visits.items()}
        relations: list[dict[str, Any]] = []
        versions = 0
        dropped: set[int] = set()
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
                others = [
                    self.stored_id(page)
                    for page, (verdict, _) in last.items()
                    if not verdict.is_duplicate
                    and (page in orphans or self._may_have_relation(page, verdict))
                ]
                if others:
                    connection.execute(statements.DELETE_RELATIONS, {"ids": others})
                if relations:
                    connection.execute(self._upsert_relation, relations)
                self._store_texts(connection, last)
                if self.history:
                    by_id = {self.stored_id(page): seen for page, seen in visits.items()}
                    versions = history.add_versions(connection, self.crawl_id, by_id)
            with_links = self._write_about_pages(connection, batch)
            if batch.reconciled:
                pairs = [self._relation_row(pair, at) for pair, at in batch.reconciled.values()]
                stored, changed = store_pairs(connection, pairs, self._upsert_relation, batch_id)
                relations += stored
                dropped |= changed
            if batch.frequencies:
                store_frequencies(connection, self._upsert_frequencies, batch.frequencies)
            if batch.rules:
                store_rules(connection, self._upsert_rule, self.crawl_id, batch.rules)
            if batch.ips:
                store_ips(connection, self._upsert_ip, batch.ips)
        self._missing.remove(last)
        with self._changed:
            self._dropped |= dropped | {self.stored_id(page) for page in orphans}
        self.batches += 1
        self.rows_written += len(last) + len(relations) + versions + with_links

    def _store_texts(self, connection: Connection, visits: Mapping[int, tuple[Verdict, datetime]]) -> None:
        texts = {
            self.stored_id(page): (verdict.text, seen)
            for page, (verdict, seen) in visits.items()
            if verdict.text is not None
        }
        if texts:
            store_texts(connection, self._upsert_text, texts)

    def _write_about_pages(self, connection: Connection, batch: Batch) -> int:
        """Write what is told of pages that are stored; returns of how many pages the links are new."""
        with_links = 0
        if batch.links:
            connection.execute(
                statements.SET_LINKS_WITHHELD,
                [{"page_id": self.stored_id(page), "links": links} for page, links in batch.links.items()],
            )
        if batch.page_links:
            of_pages = {self.stored_id(page): links for page, links in batch.page_links.items()}
            with_links = store_links(connection, self._upsert_links, self.crawl_id, of_pages)
        if batch.flags:
            connection.execute(
                statements.SET_FLAGGED,
                [{"page_id": self.stored_id(page), "at": at} for page, at in batch.flags.items()],
            )
        if batch.soft_404:
            connection.execute(
                statements.SET_SOFT_404, [{"page_id": self.stored_id(page)} for page in batch.soft_404]
            )
        return with_links

    def _may_have_relation(self, page: int, verdict: Verdict) -> bool:
        """Whether a relation of a page that is no duplicate may be stored.

        A page that is new has none, unless the page was a duplicate until it was judged again, or another
        process stored it. Were that one's relation kept, the two processes could make two pages duplicates of
        each other, and neither would be canonical.
        """
        return verdict.kind is not Kind.NEW or verdict.again or page in self._stored_id

    def _learn_stored_ids(self, connection: Connection, rows: list[dict[str, Any]]) -> None:
        """Another process may have stored a URL first, under an id of its own: from now on that is the page's
        id.
        """
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
            "actual_url": storable(verdict.url),
            "url_key": verdict.address.key,
            "host": stored_host(verdict.address.host),
            "scheme": self.store.scheme,
            "features": verdict.features,
            "weak_bits": None if fingerprint is None else fingerprint.pack_weak_bits(),
            "sketch": None if verdict.sketch is None else sketch.to_bytes(verdict.sketch),
            "text_digest": verdict.text_digest,
            "kind": verdict.kind.value,
            "crawl_id": self.crawl_id,
            "last_crawl_id": self.crawl_id,
            "first_seen": seen,
            "last_seen": seen,
            "links_withheld": 0,
            "batch_id": batch_id,
            "headline": _stored_headline(verdict.headline),
            "declared_url": None if verdict.declared_url is None else storable(verdict.declared_url),
            "soft_404": 1 if verdict.soft_404 else None,
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
            "evidence": pair.evidence.value,
        }


def _stored_headline(headline: Headline | None) -> bytes | None:
    """One without words takes no room."""
    return headlines.to_bytes(headline) if headline is not None and headline.any() else None
