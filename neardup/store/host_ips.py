"""IP addresses of hosts, as they are stored: what crawls got pages from.

Two hosts with one IP address are a little more likely to be mirrors (:mod:`neardup.collection.mirrors`).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from sqlalchemy import delete, select

from neardup.store.schema import host_ips
from neardup.store.statements import in_parts
from neardup.store.types import stored_host

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from sqlalchemy import Connection, Insert

MOST_IPS = 16
"""IP addresses kept of a host, those seen last. Networks that deliver for others change theirs often."""

_ROWS_AT_ONCE = 10_000
_HOSTS_AT_ONCE = 100

_row = host_ips.c


def store_ips(connection: Connection, upsert: Insert, seen: Mapping[tuple[str, str], datetime]) -> None:
    """Store when hosts had IP addresses, by both; of a host, the last :data:`MOST_IPS` stay."""
    rows = {(stored_host(host), ip): moment for (host, ip), moment in seen.items()}
    # All crawls lock the rows in the same order.
    connection.execute(
        upsert,
        [
            {"host": host, "ip": ip, "first_seen": rows[host, ip], "last_seen": rows[host, ip]}
            for host, ip in sorted(rows)
        ],
    )
    for hosts in in_parts(sorted({host for host, _ in rows}), _HOSTS_AT_ONCE):
        query = select(_row.host, _row.ip).where(_row.host.in_(hosts))
        stored = connection.execute(query.order_by(_row.host, _row.last_seen.desc(), _row.ip)).all()
        for host, of_host in groupby(stored, key=lambda row: row.host):
            if too_many := [row.ip for row in of_host][MOST_IPS:]:
                connection.execute(delete(host_ips).where(_row.host == host, _row.ip.in_(too_many)))


def stored_ips(connection: Connection) -> Iterator[tuple[str, str]]:
    """All hosts with their IP addresses."""
    result = connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(select(_row.host, _row.ip))
    return ((row.host, row.ip) for row in result)
