"""What crawls have learned of hosts, as it is stored: on how many pages of a host a shingle stands.

A row a host (:mod:`neardup.detection.document_frequencies`). Crawls that run at once count each for itself.
Of two of them, the row of the crawl that has counted more pages of the host stays.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from neardup.detection.document_frequencies import MOST_BYTES, DocumentFrequencies, HostFrequencies
from neardup.store.schema import document_frequencies
from neardup.store.statements import in_parts
from neardup.store.types import stored_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy import Connection, Insert

logger = logging.getLogger(__name__)

_HOSTS_AT_ONCE = 100
"""A row may have half a megabyte."""

_MOST_HOSTS = MOST_BYTES // HostFrequencies().nbytes
"""There is no room in memory for more, however little is known of each."""


def store_frequencies(
    connection: Connection, upsert: Insert, changed: Mapping[str, tuple[int, bytes]]
) -> None:
    """Store pages and counts by host, unless more pages of the host are counted in the tables."""
    now = datetime.now(UTC)
    rows = {
        stored_host(host): {"pages": pages, "counts": counts, "updated_at": now}
        for host, (pages, counts) in changed.items()
    }
    # All crawls lock the rows in the same order.
    connection.execute(upsert, [{"host": host, **rows[host]} for host in sorted(rows)])


def load_frequencies(connection: Connection, frequencies: DocumentFrequencies) -> list[str]:
    """Have a crawl that begins know the hosts with most pages, as many as there is room for; the hosts whose
    rows cannot be read.

    A row that cannot be read is as good as none. One warning names its host.
    """
    host = document_frequencies.c
    query = select(host.host).order_by(host.pages.desc(), host.host).limit(_MOST_HOSTS)
    found: list[tuple[str, HostFrequencies]] = []
    damaged: list[str] = []
    room = MOST_BYTES
    for name, known in _read(connection, list(connection.execute(query).scalars()), damaged):
        room -= known.nbytes
        if room < 0:
            break
        found.append((name, known))
    for name, known in reversed(found):  # the first are forgotten first: those with fewest pages
        frequencies.put(name, known)
    return damaged


def frequencies_of(connection: Connection, hosts: Iterable[str]) -> DocumentFrequencies:
    """What is stored of some hosts, named as in the tables, as far as there is room."""
    frequencies = DocumentFrequencies()
    for name, known in _read(connection, sorted(set(hosts)), []):
        if not frequencies.put(name, known):
            break
    return frequencies


def remove_frequencies(connection: Connection, hosts: Iterable[str]) -> None:
    """Remove the rows of some hosts."""
    for some in in_parts(hosts, _HOSTS_AT_ONCE):
        connection.execute(delete(document_frequencies).where(document_frequencies.c.host.in_(some)))


def _read(
    connection: Connection, hosts: list[str], damaged: list[str]
) -> Iterator[tuple[str, HostFrequencies]]:
    """The rows of some hosts in their order; the hosts of those that cannot be read are added to
    ``damaged``.
    """
    row = document_frequencies.c
    for some in in_parts(hosts, _HOSTS_AT_ONCE):
        query = select(row.host, row.pages, row.counts).where(row.host.in_(some))
        rows = {host: (pages, counts) for host, pages, counts in connection.execute(query)}
        for host in some:
            if host not in rows:
                continue
            pages, counts = rows[host]
            try:
                yield host, HostFrequencies.from_bytes(pages, bytes(counts))
            except ValueError as exc:
                damaged.append(host)
                logger.warning(
                    "neardup: what was learned of the host %(host)r cannot be read, and is learned anew:"
                    " %(problem)s",
                    {"host": host, "problem": exc},
                )
