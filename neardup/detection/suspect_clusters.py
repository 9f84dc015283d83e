"""Canonical pages that gather duplicates from many addresses at an unusual rate.

Some pages look the same under many addresses: error pages sent with status 200, login walls, empty listings,
pages that only scripts fill. Whatever links to these addresses seems to lead to one page. Such a canonical
page deserves a look by a person.

A text may outlive its canonical page: who solves a captcha gets another page at the same address. So copies
of one text are counted together, whatever their canonical pages.

Each host is counted by itself, and a page is flagged if one host at least meets both conditions. Duplicates
of the page stand at ``FEWEST_ADDRESSES`` different addresses of the host. These duplicates are
``LEAST_SHARE`` or more of the pages of the host that were judged since the first of these duplicates.

An address is a path. So a page with session ids or sort orders in its query has one address. Mirrors have one
address on each host, however many mirrors there are and in whatever order they are crawled. Old versions
below one host have an address each. If more than ``FEWEST_ADDRESSES`` versions are read page by page and not
version by version, pages that have never changed are flagged.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from neardup.address import place_of
from neardup.detection.latest import keep_latest

if TYPE_CHECKING:
    from collections.abc import Collection

FEWEST_ADDRESSES = 20
"""Different addresses of duplicates on one host before a canonical page is flagged."""

LEAST_SHARE = 0.1
"""Share of them among the pages of the host judged since the first of them."""

MOST_ADDRESSES = 64
"""Addresses that are told apart; one that comes again after so many others counts again."""

_MOST_WATCHED = 10_000
"""Hosts, clusters by host, and flagged pages that are remembered; of each, the one that has been quiet the
longest is forgotten first. With ``MOST_ADDRESSES`` this is 20 MB at most.
"""


class Flag(NamedTuple):
    """Why a canonical page is flagged: so many addresses among so many pages of their host."""

    addresses: int
    pages: int


@dataclass(slots=True, eq=False)
class _Host:
    pages: int = 0


@dataclass(slots=True, eq=False)
class _Cluster:
    """The duplicates of one canonical page on one host."""

    host: _Host
    pages_before: int
    """Pages of the host judged before the first duplicate came."""
    addresses: int = 0
    last: array[int] = field(default_factory=lambda: array("q"))
    """Hashes of the last addresses; they live as long as this process."""


class ClusterWatch:
    """Watches the clusters of one crawl."""

    def __init__(self) -> None:
        self._hosts: OrderedDict[str, _Host] = OrderedDict()
        self._clusters: OrderedDict[tuple[int, str], _Cluster] = OrderedDict()
        self._flagged: OrderedDict[int, None] = OrderedDict()

    def judged(self, url: str, copy_of: Collection[int] = ()) -> Flag | None:
        """Take note of a page, and of what it is a copy of; the flag, the one time that it is raised.

        ``copy_of`` is that of the verdict: what stands for the canonical page, and for the text.
        """
        name, path = _address(url)
        host = self._hosts.get(name) or _Host()
        host.pages += 1
        keep_latest(self._hosts, name, host, _MOST_WATCHED)
        flagged = self._flagged.keys() & set(copy_of)
        for of in flagged:
            self._flagged.move_to_end(of)
        if flagged:
            return None
        flag = None
        for of in copy_of:
            flag = self._counted(of, name, host, hash(path)) or flag
        if flag is not None:
            for of in copy_of:
                keep_latest(self._flagged, of, None, _MOST_WATCHED)
                del self._clusters[of, name]
        return flag

    def _counted(self, of: int, name: str, host: _Host, address: int) -> Flag | None:
        cluster = self._clusters.get((of, name))
        if cluster is None or cluster.host is not host:  # a host that was forgotten begins anew
            cluster = _Cluster(host, host.pages - 1)
        keep_latest(self._clusters, (of, name), cluster, _MOST_WATCHED)
        if address not in cluster.last:
            cluster.addresses += 1
            cluster.last.append(address)
            del cluster.last[:-MOST_ADDRESSES]
        since = host.pages - cluster.pages_before
        if cluster.addresses < max(FEWEST_ADDRESSES, LEAST_SHARE * since):
            return None
        return Flag(cluster.addresses, since)


def _address(url: str) -> tuple[str, str]:
    """Host, with its port, and path, without query and parameters: where a session or an order is kept."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return "", url
    return place_of(url), path.partition(";")[0]
