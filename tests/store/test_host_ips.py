"""IP addresses of hosts, in the tables of real servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zlib import crc32

import pytest
import sqlalchemy as sa

from neardup.collection.stored_mirrors import mirrors_of
from neardup.detection.rule import Rule
from neardup.store import removal
from neardup.store.host_ips import MOST_IPS, store_ips, stored_ips
from neardup.store.schema import host_ips
from neardup.store.statements import upsert_ip
from neardup.store.writer import Writer
from tests.support.stores import write
from tests.support.verdicts import fingerprint, page

if TYPE_CHECKING:
    from collections.abc import Mapping

    from neardup.detection.verdict import Verdict
    from neardup.store.store import Store

BEGUN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def put(store: Store, seen: Mapping[tuple[str, str], datetime]) -> None:
    with store.begin_write() as connection:
        store_ips(connection, upsert_ip(store.engine.dialect.name), seen)


def rows_of(store: Store) -> list[tuple[str, str, datetime, datetime]]:
    with store.reading() as connection:
        return [tuple(row) for row in connection.execute(sa.select(host_ips).order_by(*host_ips.primary_key))]


def test_the_first_and_the_last_time_are_kept(store: Store) -> None:
    earlier, later = BEGUN - timedelta(hours=1), BEGUN + timedelta(days=1)
    for moment in (BEGUN, later, earlier):
        put(store, {("a.example", "192.0.2.1"): moment, ("a.example", "2001:db8::1"): BEGUN})

    assert rows_of(store) == [
        ("a.example", "192.0.2.1", BEGUN, later),
        ("a.example", "2001:db8::1", BEGUN, BEGUN),
    ]


def test_no_more_than_the_last_ones_are_kept_of_a_host(store: Store) -> None:
    put(store, {("a.example", "2001:db8::1"): BEGUN + timedelta(days=9), ("b.example", "192.0.2.200"): BEGUN})
    for number in range(MOST_IPS + 4):
        put(store, {("a.example", f"192.0.2.{number}"): BEGUN + timedelta(minutes=number)})

    found = {ip for host, ip, _, _ in rows_of(store) if host == "a.example"}
    assert found == {"2001:db8::1", *(f"192.0.2.{number}" for number in range(5, MOST_IPS + 4))}
    assert len(rows_of(store)) == MOST_IPS + 1


def test_they_go_with_the_last_page_of_their_host(store: Store) -> None:
    crawl_id = store.begin_crawl(spider="s", settings={})
    write(store, page(1, "http://a.example/1"), page(2, "http://b.example/"), crawl=crawl_id)
    writer = Writer(store, crawl_id)
    writer.put_ip("a.example", "192.0.2.1")
    writer.put_ip("b.example", "192.0.2.1")
    writer.close()
    with store.reading() as connection:
        assert sorted(stored_ips(connection)) == [("a.example", "192.0.2.1"), ("b.example", "192.0.2.1")]

    for _ in removal.remove_pages(store, sa.literal_column("host") == "a.example", Rule(3)):
        pass

    assert [row[:2] for row in rows_of(store)] == [("b.example", "192.0.2.1")]


@pytest.mark.parametrize("known", [False, True])
def test_mirrors_are_found_by_them(store: Store, *, known: bool) -> None:
    """Hosts whose paths are not quite enough alike to be candidates by themselves."""
    paths = [f"shared{number}/page.html" for number in range(6)]
    own = [f"own{number}/page.html" for number in range(8)]
    verdicts: list[Verdict] = []
    for host in "ab":
        for path in (*paths, *(f"{host}{path}" for path in own)):
            value = fingerprint(1 + crc32(path.encode()))
            verdicts.append(page(len(verdicts) + 1, f"http://{host}.example/{path}", fingerprint=value))
    write(store, *verdicts)
    if known:
        put(store, {(f"{host}.example", "192.0.2.1"): BEGUN for host in "ab"})

    found = mirrors_of(store).found

    assert [(mirror.first, mirror.second) for mirror in found] == [("a.example/", "b.example/")] * known
