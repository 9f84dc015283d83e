"""The pages of a crawl by what their URLs have in common, as many as fit."""

from __future__ import annotations

from typing import NamedTuple

from neardup.urls.tally import Tally

MOST_CLUSTERS = 16
"""Clusters of the pages of one key. With more, the part that was left out matters, and the key is closed."""


class Page:
    """A page that was judged. ``cluster`` is the id of its canonical page, its own if it is canonical.
    ``left`` is the key of what was left of its URL (:class:`neardup.urls.slots.Reduced`).
    """

    __slots__ = ("cluster", "host", "left", "url")

    def __init__(self, url: str, host: str, cluster: int, left: int) -> None:
        self.url = url
        self.host = host
        self.cluster = cluster
        self.left = left


class Bucket(Tally):
    """Pages whose URLs are alike but for one part; and how often a page was in a cluster of those before
    it.
    """

    __slots__ = ("is_closed", "pages")

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[Page] = []
        self.is_closed = False

    def put(self, page: Page) -> None:
        """Keep a page, if it is not too many of one cluster; too many clusters close the bucket."""
        if self.is_closed or page in self.pages:
            return
        clusters = {other.cluster for other in self.pages}
        if page.cluster not in clusters and len(clusters) >= MOST_CLUSTERS:
            self.is_closed = True
            self.pages = []
        elif page.cluster not in clusters or len(self.pages) < MOST_CLUSTERS:
            self.pages.append(page)


class ClusterPages(NamedTuple):
    """The first page of a cluster, and how many pages it has."""

    first: Page
    number: int


class Memory:
    """Pages, buckets and clusters by key, in two generations: when the younger one has so many pages, the
    older one is forgotten.
    """

    def __init__(self, most_pages: int) -> None:
        self._most_young = max(1, most_pages // 2)
        self._young: dict[int, Page | Bucket | ClusterPages] = {}
        self._old: dict[int, Page | Bucket | ClusterPages] = {}
        self._pages = 0

    def __len__(self) -> int:
        """Entries."""
        return len(self._young) + len(self._old)

    def page(self, key: int) -> Page | None:
        """The page of a URL."""
        found = self._young.get(key) or self._old.get(key)
        return found if isinstance(found, Page) else None

    def bucket(self, key: int) -> Bucket | Page | None:
        """The pages of a key: a bucket, or the one page there is."""
        found = self._young.get(key)
        if found is None and self._old:
            found = self._old.get(key)
        return None if isinstance(found, ClusterPages) else found

    def cluster(self, cluster: int) -> ClusterPages | None:
        found = self._young.get(key := hash(("cluster", cluster))) or self._old.get(key)
        return found if isinstance(found, ClusterPages) else None

    def add_page(self, key: int, page: Page) -> None:
        """Remember a page by its URL and its cluster."""
        self._pages += 1
        if self._pages > self._most_young:
            self._old, self._young, self._pages = self._young, {}, 1
        self._young[key] = page
        known = self.cluster(page.cluster)
        of = ClusterPages(known.first, known.number + 1) if known else ClusterPages(page, 1)
        self._young[hash(("cluster", page.cluster))] = of

    def widen(self, key: int) -> Bucket:
        """The bucket of a key, to count in or to put a page into."""
        found = self.bucket(key)
        if not isinstance(found, Bucket):
            bucket = Bucket()
            if found is not None:
                bucket.pages.append(found)
            found = bucket
        self._young[key] = found
        return found

    def put(self, key: int, page: Page) -> None:
        """Put a page into the bucket of a key."""
        if self.bucket(key) is None:
            self._young[key] = page
        else:
            self.widen(key).put(page)
