"""The benchmark of large stores, small: what it makes is what the reports, the start of a crawl and the
snapshot then say.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from benchmarks.made_store import HOSTS, SCHEME, START, MadePages, fill
from neardup.store import reports, url_shares
from neardup.store.canonical_tags import Says, canonical_tags
from neardup.store.engine import database_url
from neardup.store.store import Store
from tests.support.databases import BACKENDS, new_database
from tests.support.stores import upgraded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

pytestmark = pytest.mark.slow

PAGES = 3000
LAST_WEEKS = START.replace(tzinfo=UTC) + timedelta(weeks=30)


@pytest.fixture(scope="module", params=BACKENDS)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with new_database(request.param, tmp_path_factory.mktemp("scale")) as url:
        fill(database_url(upgraded(url)), MadePages(PAGES), PAGES)
        with Store.open(url, scheme=SCHEME) as store:
            yield store


@pytest.fixture(scope="module")
def pages() -> MadePages:
    return MadePages(PAGES)


def test_benchmark_runs_and_finds_all_that_it_made(tmp_path: Path) -> None:
    out = tmp_path / "scale.md"
    command = [sys.executable, "-m", "benchmarks.bench_scale", "--pages", str(PAGES)]

    subprocess.run([*command, "--databases", "sqlite", "--out", str(out)], check=True, capture_output=True)

    text = out.read_text(encoding="utf-8")
    for line in (
        "| 3,000 pages | sqlite |",
        "| writer: rows/s | ",
        "| show: a duplicate | ",
        "| pages by url_key; ",
    ):
        assert line in text


@pytest.mark.parametrize(
    "filters",
    [
        reports.Filters(),
        reports.Filters(host=HOSTS[0]),
        reports.Filters(since=LAST_WEEKS),
        reports.Filters(until=LAST_WEEKS, host=HOSTS[1]),
    ],
)
def test_reports_count_what_was_made(filled: Store, pages: MadePages, filters: reports.Filters) -> None:
    chosen = _chosen(pages, filters)
    copies = chosen & pages.duplicate
    sizes = np.bincount(pages.of[copies])
    crossing = copies & (pages.hosts != pages.hosts[pages.of])

    with filled.reading() as connection:
        overview = reports.overview(connection, filters)
        assert (overview.share.pages, overview.share.duplicates) == (chosen.sum(), copies.sum())
        assert overview.exact == (copies & (pages.distance == 0)).sum()
        assert overview.too_short == (chosen & pages.short).sum()
        assert overview.clusters == np.count_nonzero(sizes)
        folders, parameters = url_shares.by_url(connection, filters)
        for name in ("lang", "session"):
            with_name = [of.share for of in parameters if of.share.name == name]
            assert sum(share.pages for share in with_name) == chosen.sum()
            assert sum(share.duplicates for share in with_name) == copies.sum()
        for shares in (reports.by_host(connection, filters), folders):
            assert sum(share.pages for share in shares) == chosen.sum()
            assert sum(share.duplicates for share in shares) == copies.sum()
        for share in reports.by_host(connection, filters):
            here = pages.hosts == HOSTS.index(share.name)
            assert (share.pages, share.duplicates) == ((chosen & here).sum(), (copies & here).sum())
        tagged = {found.says: found.pages for found in canonical_tags(connection, filters)}
        named = copies & pages.names_canonical
        counts = {Says.SAME_CLUSTER: named.sum(), Says.NOTHING: (copies & ~named).sum()}
        assert tagged == ({says: count for says, count in counts.items() if count} if named.any() else {})
        for crawl, share in reports.by_crawl(connection, filters):
            last = pages.last_crawl == crawl["id"]
            assert (share.pages, share.duplicates) == ((chosen & last).sum(), (copies & last).sum())
        assert sum(at.duplicates for at in reports.by_distance(connection, filters)) == copies.sum()
        found = reports.across_hosts(connection, filters)
        assert sum(between.duplicates for between in found) == crossing.sum()
        clusters = reports.largest_clusters(connection, filters, limit=5)
        assert [cluster.duplicates for cluster in clusters] == np.sort(sizes)[::-1][:5].tolist()
        for cluster in clusters:
            canonical = next(place for place in range(PAGES) if pages.url(place) == cluster.canonical_url)
            first = int(np.flatnonzero(copies & (pages.of == canonical))[0])
            assert cluster.example_url == pages.url(first)
        flagged = reports.largest_clusters(connection, filters, limit=5, flagged=True)
        assert [cluster.duplicates for cluster in flagged] == sizes[np.flatnonzero(pages.flagged)].tolist()


def _chosen(pages: MadePages, filters: reports.Filters) -> npt.NDArray[np.bool_]:
    chosen = np.ones(len(pages), dtype=bool)
    if filters.host is not None:
        chosen &= pages.hosts == HOSTS.index(filters.host)
    seen = pages.last_crawl > 30  # the crawl of a week begins with it
    if filters.since is not None:
        chosen &= seen
    if filters.until is not None:
        chosen &= ~seen
    return chosen


def test_crawls_are_those_of_the_pages(filled: Store, pages: MadePages) -> None:
    assert [row[2] for row in filled.state(but=0)] == [len(pages) // 40 // 500 + 2] * 40
    known = list(filled.known_pages())

    assert [page.page_id for page in known] == pages.ids.tolist()
    assert [page.url for page in known] == [pages.url(place) for place in range(PAGES)]
    assert [page.canonical_id for page in known] == [
        int(pages.ids[of]) if duplicate else None
        for of, duplicate in zip(pages.of, pages.duplicate, strict=True)
    ]
    assert json.dumps([page.value for page in known if page.value]) == json.dumps(
        pages.values[~pages.short].tolist()
    )
