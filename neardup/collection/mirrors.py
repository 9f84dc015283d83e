"""Mirrors: hosts and parts of hosts that have the same pages.

Candidates come from two sides (Bharat, Broder, Dean & Henzinger 2000, A Comparison of Techniques to Find
Mirrored Hosts on the WWW). Two pages of one cluster whose paths end alike vote for the two prefixes before
that end. A vote counts the less, the more hosts the cluster has: an error page stands on all. Hosts that
share rare pairs of successive parts of paths are candidates, too.

A candidate is judged by 20 paths of each side (Bharat & Broder 1999, Mirror, Mirror on the Web). What counts
is whether the other side has the path, and whether the two pages are near-copies.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from heapq import nsmallest
from itertools import combinations, pairwise, zip_longest
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from neardup.address import host_of
from neardup.detection.rule import VERIFY
from neardup.fingerprint import sketch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    Sketches = Callable[[Sequence[int]], Mapping[int, bytes]]
    """Given ids of pages: their sketches, as stored."""

PATHS = 20
"""Paths of each side that are looked up at the other."""

MOST_OF_CLUSTERS = 20
"""Pages of a cluster that vote in all pairs. Of more, each votes with the first alone."""

_LEAST_VOTES = 1.0
_LEAST_WEIGHT = 0.2
"""Of a vote, so that hosts which are all mirrors of each other become candidates by five clusters."""

_LESS_ALIKE = 0.2
"""What a common IP address takes off :data:`_LEAST_ALIKE`, if no third host has it: half of this."""

_LEAST_SUPPORT = 3
_LEAST_COPIES = 0.5
_MIRROR = 0.8
"""Share of the pages compared that must be copies, and share of the paths that makes a mirror full."""

_NUMBERS = re.compile(r"\d+")
_COMMON_HOSTS = 20
"""Hosts with a pair of parts of paths, or with an IP address, above which it says nothing."""

_LEAST_ALIKE = 0.3
"""Cosine of two hosts by the pairs of parts of their paths."""

_AT_ONCE = 1_000

_64_BITS = (1 << 64) - 1


class Class(StrEnum):
    """How two sides are alike."""

    FULL = "full"
    """Each side has the paths of the other, and nearly all pages are near-copies."""
    PARTIAL = "partial"
    """So are nearly all pages, but one side has a part of the other's paths."""
    NEAR = "same paths, near content"
    """Many pages of the same paths are near-copies: versions."""
    OTHER_PATHS = "other paths"
    """Near-copies of the pages stand under other paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """Two prefixes of URLs without the scheme, the first in the order of the alphabet first.

    ``paths_first``: share of the sampled paths of the first that the second has. ``copies`` and ``same``:
    shares of near-copies and of pages with the very text among the pages compared, ``support`` in number. If
    the two sides differ in numbers alone, ``same`` may be that of all pages of paths in common.
    ``sample``: two URLs.
    """

    first: str
    second: str
    kind: Class
    paths_first: float
    paths_second: float
    copies: float
    same: float
    support: int
    sample: tuple[str, str]

    @property
    def hosts(self) -> tuple[str, str]:
        """The hosts of the two sides."""
        return self.first.partition("/")[0], self.second.partition("/")[0]

    def is_of(self, host: str) -> bool:
        """Whether one of the two sides is on a host, at whatever port."""
        return host in (host_of(f"//{self.first}"), host_of(f"//{self.second}"))


class SitePages:
    """Pages with a fingerprint, by their URLs without scheme and fragment, in the order of these names.

    A URL that stands for several pages, by http and https, or in several captures, is that of the last. A
    page takes 24 bytes and its name.
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._ids, self._clusters, self._digests = array("q"), array("q"), array("Q")
        self._hosts_of_ip: dict[str, set[str]] = defaultdict(set)

    def __len__(self) -> int:
        return len(self.names)

    def add(self, url: str, page_id: int, cluster: int, digest: int) -> None:
        """``cluster``: id of the canonical page; ``digest``: that of the text, 64 bits."""
        name = url.partition("#")[0].partition("://")[2]
        self.names.append(name if "/" in name else f"{name}/")
        self._ids.append(page_id)
        self._clusters.append(cluster)
        self._digests.append(digest & _64_BITS)

    def add_ip(self, host: str, ip: str) -> None:
        """A host has had an IP address."""
        self._hosts_of_ip[ip].add(host)

    def finish(self) -> None:
        """Call this when all pages are added, before anything is asked."""
        added = self.names
        order = sorted(range(len(added)), key=added.__getitem__)
        last = [
            row for row, after in zip_longest(order, order[1:]) if after is None or added[row] != added[after]
        ]
        self.names = [added[row] for row in last]
        for column in (self._ids, self._clusters, self._digests):
            column[:] = array(column.typecode, [column[row] for row in last])

    def row(self, name: str) -> int | None:
        """The row of a page, or None."""
        row = bisect_left(self.names, name)
        return row if row < len(self.names) and self.names[row] == name else None

    def page_id(self, row: int) -> int:
        return self._ids[row]

    def cluster(self, row: int) -> int:
        return self._clusters[row]

    def are_same_text(self, one: int, other: int) -> bool:
        return self._digests[one] == self._digests[other]

    def below(self, prefix: str) -> range:
        """The rows of the names that begin with a prefix."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return range(bisect_left(self.names, prefix), bisect_left(self.names, end))

    def near_by_ip(self) -> dict[tuple[str, str], float]:
        """Pairs of hosts with an IP address in common, in the order of the alphabet; weight: 1 / hosts."""
        found: dict[tuple[str, str], float] = {}
        for hosts in self._hosts_of_ip.values():
            if 1 < len(hosts) <= _COMMON_HOSTS:
                for pair in combinations(sorted(hosts), 2):
                    found[pair] = max(found.get(pair, 0.0), 1.0 / len(hosts))
        return found

    def clusters(self) -> Iterator[list[int]]:
        """The rows of each cluster of several pages, in the order of their first names."""
        clusters = np.frombuffer(self._clusters, dtype=np.int64)
        order = np.argsort(clusters, kind="stable")
        starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
        ends = np.append(starts[1:], order.size)
        several = ends - starts > 1
        starts, ends = starts[several], ends[several]
        for place in np.argsort(order[starts]).tolist():
            yield order[starts[place] : ends[place]].tolist()


def find(
    pages: SitePages, sketches: Sketches, progress: Callable[[int], None] = lambda done: None
) -> list[Mirror]:
    """All pairs of mirrors, those with most support first; ``progress`` is told how many candidates of
    :func:`candidates` are judged.
    """
    judge = _Judge(pages, sketches)
    found: list[Mirror] = []
    pairs = candidates(pages)
    for start in range(0, len(pairs), _AT_ONCE):
        found += judge.judged(pairs[start : start + _AT_ONCE])
        progress(start)
    elsewhere = {mirror.hosts for mirror in found if mirror.kind is not Class.OTHER_PATHS}
    told = [
        mirror for mirror in found if mirror.kind is not Class.OTHER_PATHS or mirror.hosts not in elsewhere
    ]
    return sorted(told, key=lambda mirror: (-mirror.support, mirror.first, mirror.second))


def candidates(pages: SitePages) -> list[tuple[str, str]]:
    """Pairs of prefixes that may be mirrors, in their order.

    An IP address in common (Bharat et al. 2000) makes no candidate by itself. It counts as half a vote at
    most, and lets hosts be candidates whose paths are a little less alike.
    """
    by_ip = _ByIp(pages.near_by_ip())
    votes: dict[tuple[str, str], float] = defaultdict(float)
    for rows in pages.clusters():
        names = [pages.names[row] for row in rows]
        weight = max(_LEAST_WEIGHT, 1.0 / len({name.partition("/")[0] for name in names}))
        for one, other in _pairs(names):
            pair = _prefixes(one, other)
            if pair[0] != pair[1]:
                votes[min(pair), max(pair)] += weight
    voted = {pair for pair, weight in votes.items() if weight + by_ip.weight(*pair) >= _LEAST_VOTES}
    return sorted(voted | _alike_by_paths(pages.names, by_ip))


class _ByIp:
    """How near prefixes are by the IP addresses of their hosts."""

    def __init__(self, weights: Mapping[tuple[str, str], float]) -> None:
        self._weights = weights

    def weight(self, one: str, other: str) -> float:
        """0 to 0.5."""
        if not self._weights:
            return 0.0
        hosts = host_of(f"//{one}"), host_of(f"//{other}")
        return self._weights.get((min(hosts), max(hosts)), 0.0)


def _pairs(names: list[str]) -> Iterable[tuple[str, str]]:
    """Pairs of the pages of a cluster: all, or those with the first.

    So many mirrors of each other take no more time than pages.
    """
    ahead = names if len(names) <= MOST_OF_CLUSTERS else names[:1]
    return ((one, other) for place, one in enumerate(ahead) for other in names[place + 1 :])


def _prefixes(one: str, other: str) -> tuple[str, str]:
    """What stands before the parts of two names that end alike; the hosts if the last parts differ.

    >>> _prefixes("a.example/1/docs/x", "b.example/mirror/2/docs/x"), _prefixes("a.example/x", "b.example/y")
    (('a.example/1/', 'b.example/mirror/2/'), ('a.example/', 'b.example/'))
    """
    parts, other_parts = one.split("/"), other.split("/")
    same = 0
    most = min(len(parts), len(other_parts)) - 1
    while same < most and parts[-1 - same] == other_parts[-1 - same]:
        same += 1
    if not same:
        return f"{parts[0]}/", f"{other_parts[0]}/"
    return "/".join([*parts[:-same], ""]), "/".join([*other_parts[:-same], ""])


def _alike_by_paths(names: Sequence[str], by_ip: _ByIp) -> set[tuple[str, str]]:
    """Hosts that share pairs of successive parts of paths, weighted by how rare the pairs are."""
    hosts, of_host, of_pair = _pairs_of_parts(names)
    order = np.lexsort((of_host, of_pair))
    of_host, of_pair = of_host[order], of_pair[order]
    is_first = np.append(True, (np.diff(of_pair) != 0) | (np.diff(of_host) != 0))[: order.size]
    of_host, of_pair = of_host[is_first], of_pair[is_first]
    _, starts, counts = np.unique(of_pair, return_index=True, return_counts=True)
    weights = np.log1p(len(hosts) / counts) ** 2
    norms = np.bincount(of_host, np.repeat(weights, counts), minlength=len(hosts))
    shared: dict[tuple[int, int], float] = defaultdict(float)
    for place in np.flatnonzero((counts > 1) & (counts <= _COMMON_HOSTS)).tolist():
        weight = float(weights[place])
        for pair in combinations(of_host[starts[place] : starts[place] + counts[place]].tolist(), 2):
            shared[pair] += weight
    found = set()
    for (one, other), weight in shared.items():
        pair = f"{hosts[one]}/", f"{hosts[other]}/"
        least = _LEAST_ALIKE - _LESS_ALIKE * by_ip.weight(*pair)
        if weight >= least * math.sqrt(norms[one] * norms[other]):
            found.add(pair)
    return found


def _pairs_of_parts(
    names: Sequence[str],
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The hosts in the order of the alphabet, and all pairs of successive parts of paths.

    Two arrays of shape (pairs,): the place of the host, and a number for the pair. Most pairs of folders
    stand there once, not once a page.
    """
    codes = {host: code for code, host in enumerate(sorted({name.partition("/")[0] for name in names}))}
    of_host, of_pair = array("q"), array("q")
    before: str | None = None
    code, tail = 0, ""
    for name in names:
        folder, _, last = name.rpartition("/")
        if folder != before:
            host, *parts = folder.split("/")
            before, code, tail = folder, codes[host], parts[-1] if parts else ""
            for pair in pairwise(("", *parts)):
                of_host.append(code)
                of_pair.append(hash(pair))  # which holds in this process, and longer than needed
        of_host.append(code)
        of_pair.append(hash((tail, last)))
    return list(codes), np.frombuffer(of_host, dtype=np.int64), np.frombuffer(of_pair, dtype=np.int64)


@dataclass(slots=True)
class _Sample:
    """Pages of two sides to compare, as rows, and the share of the paths of each that the other has."""

    pair: tuple[str, str]
    kind: Class | None
    compared: list[tuple[int, int]]
    shares: tuple[float, float]


class _Judge:
    def __init__(self, pages: SitePages, sketches: Sketches) -> None:
        self._pages = pages
        self._sketches = sketches
        self._samples: dict[tuple[str, str], list[str]] = {}
        self._rows: dict[str, dict[int, int]] = {}

    def judged(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Mirror]:
        samples = [sample for pair in pairs if (sample := self._sampled(pair)) is not None]
        self._samples.clear()
        self._rows.clear()
        ids = {self._pages.page_id(row) for sample in samples for rows in sample.compared for row in rows}
        stored = self._sketches(sorted(ids))
        for sample in samples:
            mirror = self._judged(sample, stored)
            if mirror is not None:
                yield mirror

    def _sampled(self, pair: tuple[str, str]) -> _Sample | None:
        """What is compared: pages of the same paths, or else, of hosts, pages of the same clusters."""
        compared: dict[tuple[int, int], None] = {}
        shares: list[float] = []
        for prefix, other in (pair, pair[::-1]):
            paths = self._paths(prefix, other)
            both = [(self._pages.row(prefix + path), self._pages.row(other + path)) for path in paths]
            there = [(one, at_other) for one, at_other in both if one is not None and at_other is not None]
            compared |= dict.fromkeys(there if prefix is pair[0] else [(two, one) for one, two in there])
            shares.append(len(there) / len(paths) if paths else 0.0)
        if len(compared) >= _LEAST_SUPPORT:
            return _Sample(pair, None, list(compared), (shares[0], shares[1]))
        return self._sampled_by_clusters(pair)

    def _sampled_by_clusters(self, pair: tuple[str, str]) -> _Sample | None:
        pages = self._pages
        compared: list[tuple[int, int]] = []
        shares: list[float] = []
        for prefix, other in (pair, pair[::-1]):
            there = self._by_cluster(other)
            rows = [
                row for path in self._paths(prefix, other) if (row := pages.row(prefix + path)) is not None
            ]
            found = [(row, there[pages.cluster(row)]) for row in rows if pages.cluster(row) in there]
            compared += found if prefix is pair[0] else [(two, one) for one, two in found]
            shares.append(len(found) / len(rows) if rows else 0.0)
        if len(compared) < _LEAST_SUPPORT or max(shares) < _LEAST_COPIES:
            return None
        return _Sample(pair, Class.OTHER_PATHS, compared, (0.0, 0.0))

    def _by_cluster(self, prefix: str) -> dict[int, int]:
        """The rows of the pages below a prefix by their clusters; told once for many pairs."""
        if prefix not in self._rows:
            self._rows[prefix] = {self._pages.cluster(row): row for row in self._pages.below(prefix)}
        return self._rows[prefix]

    def _paths(self, prefix: str, other: str) -> list[str]:
        """Some paths below a prefix, the same for the same paths, whatever the host; none below the other
        prefix, which may be below this one.
        """
        apart = other if other.startswith(prefix) else ""
        if (prefix, apart) not in self._samples:
            rows = self._pages.below(prefix)
            without = self._pages.below(apart) if apart else range(rows.stop, rows.stop)
            names, start = self._pages.names, len(prefix)
            below = [
                name[start:]
                for name in (*names[rows.start : without.start], *names[without.stop : rows.stop])
            ]
            chosen = nsmallest(PATHS, below, key=lambda path: (crc32(path.encode()), path))
            self._samples[prefix, apart] = chosen
        return self._samples[prefix, apart]

    def _judged(self, sample: _Sample, stored: Mapping[int, bytes]) -> Mirror | None:
        estimates = [self._estimate(one, other, stored) for one, other in sample.compared]
        support = len(estimates)
        copies = sum(estimate >= VERIFY for estimate in estimates) / support
        same = sum(self._pages.are_same_text(*rows) for rows in sample.compared) / support
        if copies < _LEAST_COPIES:
            return None
        # Versions are as near to each other as mirrors that say their own names. Numbers tell them apart: of
        # two sides that differ in numbers alone, all pages must be the same. A sample does not show that: of
        # Kafka's manuals 3.8 and 3.9, one page in 13 differs.
        are_numbered = _NUMBERS.sub("", sample.pair[0]) == _NUMBERS.sub("", sample.pair[1])
        kind = sample.kind
        if kind is None and are_numbered and same == 1.0:
            same = self._same_of_all(*sample.pair)
        if kind is None and (same < 1.0 if are_numbered else copies < _MIRROR):
            kind = Class.NEAR
        if kind is None:
            kind = Class.FULL if min(sample.shares) >= _MIRROR else Class.PARTIAL
        one, other = sample.compared[int(np.argmax(estimates))]
        return Mirror(
            first=sample.pair[0],
            second=sample.pair[1],
            kind=kind,
            paths_first=sample.shares[0],
            paths_second=sample.shares[1],
            copies=copies,
            same=same,
            support=support,
            sample=(self._pages.names[one], self._pages.names[other]),
        )

    def _same_of_all(self, prefix: str, other: str) -> float:
        """The share of the pages with the very text of the other side, of all pages of paths in common."""
        pages, start = self._pages, len(prefix)
        rows = pages.below(prefix)
        both = [
            (row, there) for row in rows if (there := pages.row(other + pages.names[row][start:])) is not None
        ]
        return sum(pages.are_same_text(*pair) for pair in both) / len(both)

    def _estimate(self, one: int, other: int, stored: Mapping[int, bytes]) -> float:
        """The resemblance of two pages; 1 if a crawl called them copies, 0 if somebody has removed one."""
        if self._pages.cluster(one) == self._pages.cluster(other):
            return 1.0
        drawn = [stored.get(self._pages.page_id(row)) for row in (one, other)]
        if drawn[0] is None or drawn[1] is None:
            return 0.0
        first, second = (sketch.from_bytes(some) for some in drawn if some is not None)
        return float(sketch.compact_estimates(np.asarray([first], dtype=np.uint64), second)[0])
