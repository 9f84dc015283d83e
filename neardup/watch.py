"""Canonical pages that gather duplicates from many addresses at an unusual rate.

An error page sent with status 200, a login wall, an empty listing or a page that only scripts fill looks the same under many
addresses; whatever links to them seems to lead to one page. Such a canonical page deserves a look by a person. A page with
session ids or sort orders in its query has one address, and a mirror or an old version gives a page one more.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

FEWEST_ADDRESSES = 20
"""Different addresses of duplicates before a canonical page is flagged."""

LEAST_SHARE = 0.1
"""Share of them among the pages of their hosts judged since the first of them."""

_MOST_WATCHED = 10_000
"""Clusters, and hosts, that are kept count of; the one that has been quiet the longest is forgotten first (some 20 MB at most)."""


class Flag(NamedTuple):
    """Why a canonical page is flagged: so many addresses among so many pages."""

    addresses: int
    pages: int


@dataclass(slots=True)
class _Cluster:
    addresses: set[int] = field(default_factory=set)
    """Hashes of them; they live as long as this process."""
    pages_before: dict[str, int] = field(default_factory=dict)
    """Pages of each host judged before its first duplicate came."""
    flagged: bool = False


class ClusterWatch:
    """Watches the clusters of one crawl."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, int] = OrderedDict()
        self._clusters: OrderedDict[int, _Cluster] = OrderedDict()

    def judged(self, url: str, canonical_id: int | None) -> Flag | None:
        """Take note of a page, and of its canonical page if it is a duplicate; the flag, the one time that it is raised."""
        host, path = _address(url)
        pages = self._pages[host] = self._pages.pop(host, 0) + 1
        if len(self._pages) > _MOST_WATCHED:
            self._pages.popitem(last=False)
        if canonical_id is None:
            return None
        cluster = self._clusters.setdefault(canonical_id, _Cluster())
        self._clusters.move_to_end(canonical_id)
        if len(self._clusters) > _MOST_WATCHED:
            self._clusters.popitem(last=False)
        if cluster.flagged:
            return None
        cluster.addresses.add(hash((host, path)))
        cluster.pages_before.setdefault(host, pages - 1)
        addresses = len(cluster.addresses)
        if addresses < FEWEST_ADDRESSES:
            return None
        since = sum(self._pages.get(other, before) - before for other, before in cluster.pages_before.items())
        if addresses < LEAST_SHARE * since:
            return None
        cluster.flagged = True
        cluster.addresses.clear()
        return Flag(addresses, since)


def _address(url: str) -> tuple[str, str]:
    """Host and path, without query and parameters: where a session or an order is kept."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "", url
    return parts.netloc, parts.path.partition(";")[0]
