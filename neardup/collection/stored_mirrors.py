"""Mirrors among the pages of a store."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from neardup.collection import mirrors
from neardup.store import host_ips, mirror_pages

if TYPE_CHECKING:
    from neardup.collection.mirrors import Mirror
    from neardup.store.store import Store


class StoredMirrors(NamedTuple):
    """Pairs of mirrors, and among how many pages they were looked for."""

    pages: int
    found: list[Mirror]


def mirrors_of(store: Store) -> StoredMirrors:
    """The mirrors of a store, those with most support first. A million pages take some 10 s and 0.4 GB."""
    pages = mirrors.SitePages()
    with store.reading() as connection:
        for url, page_id, cluster, digest in mirror_pages.clustered_pages(connection):
            pages.add(url, page_id, cluster, digest)
        for host, ip in host_ips.stored_ips(connection):
            pages.add_ip(host, ip)
        pages.finish()
        return StoredMirrors(len(pages), mirrors.find(pages, partial(mirror_pages.sketches_of, connection)))
