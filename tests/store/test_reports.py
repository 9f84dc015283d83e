"""The reports on all databases, over pages whose answers are known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
import sqlalchemy as sa

from neardup.detection.rule import Evidence
from neardup.detection.verdict import Kind
from neardup.fingerprint import hamming
from neardup.fingerprint.scheme import Scheme
from neardup.store import canonical_tags, page_report, reports, url_shares
from neardup.store.canonical_tags import Says, Tagged
from neardup.store.reports import Cluster, Crossing, Filters, Share
from neardup.store.schema import duplicate_values, page_ranks, simhash_values
from neardup.store.store import Store
from neardup.store.url_shares import OfParameter
from tests.support.stores import write
from tests.support.verdicts import duplicate, fingerprint, page

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL = Filters()


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    """Two crawls of two hosts, and a page that is too short.

    a.example has a cluster of four. b.example has a copy of a page of a.example.
    """
    with Store.open(database_url, scheme=str(Scheme())) as opened:
        first = opened.begin_crawl(spider="one", settings={})
        write(
            opened,
            page(1, "http://a.example/docs/x/1"),
            duplicate(2, "http://a.example/docs/x/2", 1, distance=0, resemblance=1.0, evidence=Evidence.TEXT),
            duplicate(3, "http://a.example/docs/y/3", 1, distance=2, resemblance=0.95),
            duplicate(4, "http://a.example/docs/y/z/4", 1, distance=3, resemblance=0.84),
            page(5, "http://a.example/docs/y/5"),
            crawl=first,
            links={3: 7},
            flags=[1],
        )
        opened.finish_crawl(first, reason="finished", counts={"pages": 5, "duplicates": 3})
        second = opened.begin_crawl(spider="two", settings={})
        write(
            opened,
            duplicate(6, "http://b.example/6", 5, distance=2, resemblance=0.85),
            page(7, "http://b.example/7", Kind.TOO_SHORT, features=2),
            page(8, "file:///data/8.html"),
            crawl=second,
        )
        with opened.begin_write() as connection:
            old = sa.update(simhash_values).where(simhash_values.c.id <= 5)
            connection.execute(old.values(last_seen=datetime(2020, 1, 1, tzinfo=UTC)))
        yield opened


@pytest.fixture
def connection(store: Store) -> Iterator[sa.Connection]:
    with store.reading() as opened:
        yield opened


class TestReports:
    def test_overview(self, connection: sa.Connection) -> None:
        overview = reports.overview(connection, ALL)

        assert overview.share == Share("all", 8, 4)
        assert (overview.share.distinct, overview.share.rate) == (4, 50.0)
        assert (overview.exact, overview.too_short, overview.clusters) == (1, 1, 2)

    def test_by_host(self, connection: sa.Connection) -> None:
        assert reports.by_host(connection, ALL) == [
            Share("a.example", 5, 3), Share("b.example", 2, 1), Share("", 1, 0)
        ]  # fmt: skip

    def test_by_path_prefix_leaves_out_what_all_pages_of_a_site_share(
        self, connection: sa.Connection
    ) -> None:
        assert url_shares.by_url(connection, ALL).folders == [
            Share("http://a.example/docs/y/", 3, 2),
            Share("http://a.example/docs/x/", 2, 1),
            Share("http://b.example/", 2, 1),
            Share("file:///data/", 1, 0),
        ]

    @pytest.mark.parametrize(
        "url",
        [
            "http://a.example", "http://a.example?q=/x/y", "http://a.example/", "http://a.example/x",
            "http://a.example//x", "http://a.example/x/y?from=/z/", "http://a.example/x/#/y/",
            "http://[a.example/x/y", "file:///x.html", "file:///x//y.html", "mailto:x/y/z",
            "x/y", "x", "", "//a.example/x/y/",
        ],
    )  # fmt: skip
    def test_folder_is_told_by_the_beginning_of_a_url(self, url: str) -> None:
        beginning = url_shares._beginning(url)

        assert url.startswith(beginning)
        if "[" not in url:  # which is no URL, and then its own folder
            assert url_shares._folder(beginning) == url_shares._folder(url)

    def test_no_host_has_parameters(self, connection: sa.Connection) -> None:
        assert url_shares.by_url(connection, ALL).parameters == []

    def test_a_page_counts_for_each_parameter_of_its_url(self, store: Store) -> None:
        write(
            store,
            page(11, "http://a.example/list?sort=price&page=2#?sid=1"),
            duplicate(12, "http://a.example/list?sort=price&sort=name;asc", 11, distance=0),
            duplicate(13, "http://a.example/list;jsessionid=4f?a[1]=x&a[22]=y", 11, distance=0),
            duplicate(14, "http://b.example/?", 11, distance=0),
            page(15, f"http://b.example/x?{'long' * 600}=1"),
            page(16, "file:///data/x;y.html?sid=1"),
        )
        with store.reading() as connection:
            parameters = url_shares.by_url(connection, ALL).parameters
            of_a_host = url_shares.by_url(connection, Filters(host="b.example")).parameters

        assert parameters == [
            OfParameter("a.example", Share("", 5, 3)),
            OfParameter("a.example", Share("sort", 2, 1)),
            OfParameter("a.example", Share(";jsessionid", 1, 1)),
            OfParameter("a.example", Share("a[0]", 1, 1)),
            OfParameter("", Share("", 1, 0)),
            OfParameter("", Share(";y.html", 1, 0)),
            OfParameter("", Share("sid", 1, 0)),
            OfParameter("a.example", Share("page", 1, 0)),
        ]
        assert of_a_host == []

    def test_canonical_tags_beside_texts(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(canonical_tags, "_ROWS_AT_ONCE", 2)
        names = "http://a.example/docs/x/1"
        with store.reading() as connection:
            assert canonical_tags.canonical_tags(connection, ALL) == []
        write(
            store,
            duplicate(11, "http://a.example/print", 1, declared_url=f"{names}#top"),
            page(12, "http://a.example/other?1", declared_url=names),
            page(13, "http://a.example/other?2", declared_url="http://a.example/print"),
            page(14, "http://a.example/other?3", declared_url="http://a.example/other?2"),
            page(15, "http://a.example/other?4", declared_url="http://a.example/nowhere"),
            page(16, "http://b.example/other?5", declared_url="http://b.example/7"),
            page(17, "http://b.example/short", Kind.TOO_SHORT, features=2, declared_url=names),
            # Canonical itself, and names one of its duplicates.
            page(18, "http://a.example/long"),
            duplicate(19, "http://a.example/long?copy", 18),
            page(18, "http://a.example/long", Kind.UNCHANGED, declared_url="http://a.example/long?copy"),
        )
        with store.reading() as connection:
            found = canonical_tags.canonical_tags(connection, ALL)
            of_a_host = canonical_tags.canonical_tags(connection, Filters(host="b.example"))

        assert found == [
            Tagged(Says.OTHER_CLUSTER, 3, "http://a.example/other?1", names),
            Tagged(Says.NOTHING, 5, "http://a.example/docs/x/2", None),
            Tagged(Says.NOT_COMPARED, 2, "http://a.example/other?4", "http://a.example/nowhere"),
            Tagged(Says.SAME_CLUSTER, 2, "http://a.example/print", f"{names}#top"),
        ]
        assert of_a_host == [
            Tagged(Says.NOTHING, 1, "http://b.example/6", None),
            Tagged(Says.NOT_COMPARED, 1, "http://b.example/other?5", "http://b.example/7"),
        ]

    def test_by_distance(self, connection: sa.Connection) -> None:
        found = reports.by_distance(connection, ALL)

        assert [(at.distance, at.duplicates) for at in found] == [(0, 1), (2, 2), (3, 1)]
        assert [at.resemblance for at in found] == [1.0, pytest.approx(0.9), 0.84]
        assert [at.least_resemblance for at in found] == [1.0, 0.85, 0.84]

    def test_by_evidence(self, store: Store) -> None:
        with store.begin_write() as connection:
            relation = duplicate_values.c
            old = sa.update(duplicate_values).where(relation.duplicate_hash_id == 6)
            connection.execute(old.values(evidence=None))  # of an older version
            found = reports.by_evidence(connection, ALL)

        assert [(row.evidence, row.confidence, row.duplicates, row.least_resemblance) for row in found] == [
            ("text", 1.0, 1, 1.0),
            ("whole", Evidence.WHOLE.confidence, 2, 0.84),
            (None, None, 1, 0.85),
        ]

    def test_evidence_that_is_as_sure_has_an_order(self, store: Store) -> None:
        with store.begin_write() as connection:
            for page_id, evidence in ((3, Evidence.DECISION), (4, Evidence.TEXT)):
                of_page = duplicate_values.c.duplicate_hash_id == page_id
                changed = sa.update(duplicate_values).where(of_page).values(evidence=evidence.value)
                connection.execute(changed)
            found = reports.by_evidence(connection, ALL)

        assert [(row.evidence, row.duplicates) for row in found] == [
            ("text", 2), ("decision", 1), ("whole", 1)
        ]  # fmt: skip

    def test_across_hosts_and_domains(self, connection: sa.Connection) -> None:
        hosts = reports.across_hosts(connection, ALL)

        assert hosts == [Crossing("b.example", "a.example", 1)]
        assert reports.across_domains(hosts) == hosts
        assert reports.across_hosts(connection, Filters(host="a.example")) == []
        assert reports.across_hosts(connection, Filters(until=datetime(2021, 1, 1, tzinfo=UTC))) == []

    def test_across_many_sites(self, store: Store) -> None:
        crawl = store.begin_crawl(spider="three", settings={})
        write(
            store,
            page(20, "http://www.one.co.uk/"),
            page(21, "file:///data/21.html"),
            *(duplicate(number, f"http://shop.one.co.uk/{number}", 20) for number in range(30, 35)),
            *(duplicate(number, f"http://www.two.co.uk:8000/{number}", 20) for number in range(40, 43)),
            *(duplicate(number, f"http://m.two.co.uk/{number}", 20) for number in range(43, 45)),
            duplicate(50, "http://www.one.co.uk./50", 20),
            duplicate(51, "http://WWW.one.co.uk/51", 20),
            duplicate(52, "http://www.one.co.uk/52", 21),
            duplicate(53, "file:///data/53.html", 20),
            crawl=crawl,
        )
        with store.reading() as connection:
            hosts = reports.across_hosts(connection, Filters(since=datetime(2021, 1, 1, tzinfo=UTC)))

        assert hosts == [
            Crossing("shop.one.co.uk", "www.one.co.uk", 5),
            Crossing("www.two.co.uk", "www.one.co.uk", 3),
            Crossing("m.two.co.uk", "www.one.co.uk", 2),
            Crossing("", "www.one.co.uk", 1),
            Crossing("b.example", "a.example", 1),
            Crossing("www.one.co.uk", "", 1),
        ]
        assert reports.across_domains(hosts) == [
            Crossing("two.co.uk", "one.co.uk", 5),
            Crossing("", "one.co.uk", 1),
            Crossing("b.example", "a.example", 1),
            Crossing("one.co.uk", "", 1),
        ]

    def test_flagged_clusters(self, connection: sa.Connection) -> None:
        (flagged,) = reports.largest_clusters(connection, ALL, limit=10, flagged=True)

        assert flagged == Cluster("http://a.example/docs/x/1", 3, "http://a.example/docs/x/2")

    def test_by_crawl(self, connection: sa.Connection) -> None:
        (first, of_first), (second, of_second) = reports.by_crawl(connection, ALL)

        assert (first["spider"], first["finish_reason"], first["pages"]) == ("one", "finished", 5)
        assert (second["spider"], second["finish_reason"]) == ("two", None)
        assert (of_first.pages, of_first.duplicates) == (5, 3)
        assert (of_second.pages, of_second.duplicates) == (3, 1)

    def test_largest_clusters(self, connection: sa.Connection) -> None:
        clusters = [
            Cluster("http://a.example/docs/x/1", 3, "http://a.example/docs/x/2"),
            Cluster("http://a.example/docs/y/5", 1, "http://b.example/6"),
        ]

        assert reports.largest_clusters(connection, ALL, limit=10) == clusters
        assert reports.largest_clusters(connection, ALL, limit=1) == clusters[:1]

    def test_clusters_of_highest_pagerank(self, connection: sa.Connection) -> None:
        largest, linked = reports.largest_clusters(connection, ALL, limit=2)

        assert reports.largest_clusters(connection, ALL, limit=2, by_rank=True) == [largest, linked]
        connection.execute(sa.insert(page_ranks).values(page_id=5, pagerank=0.25))

        for filters in (ALL, Filters(host="b.example")):
            assert reports.largest_clusters(connection, filters, limit=1, by_rank=True) == [linked]

    @pytest.mark.parametrize(
        ("filters", "pages"),
        [
            (Filters(host="b.example"), 2),
            (Filters(host="c.example"), 0),
            (Filters(since=datetime(2021, 1, 1, tzinfo=UTC)), 3),
            (Filters(until=datetime(2021, 1, 1, tzinfo=UTC)), 5),
            (Filters(until=datetime(2020, 1, 1, tzinfo=UTC)), 0),
            (Filters(since=datetime(2020, 1, 1, tzinfo=UTC), until=datetime(2020, 1, 2, tzinfo=UTC)), 5),
            (Filters(host="a.example", since=datetime(2021, 1, 1, tzinfo=UTC)), 0),
        ],
    )
    def test_filters_hold_for_every_report(
        self, connection: sa.Connection, filters: Filters, pages: int
    ) -> None:
        share = reports.overview(connection, filters).share

        assert share.pages == pages
        assert sum(host.pages for host in reports.by_host(connection, filters)) == pages
        assert sum(path.pages for path in url_shares.by_url(connection, filters).folders) == pages
        assert sum(at.duplicates for at in reports.by_distance(connection, filters)) == share.duplicates
        assert sum(row.duplicates for row in reports.by_evidence(connection, filters)) == share.duplicates
        assert sum(crawl.pages for _, crawl in reports.by_crawl(connection, filters)) == pages
        clusters = reports.largest_clusters(connection, filters, limit=99)
        assert sum(cluster.duplicates for cluster in clusters) == share.duplicates

    def test_empty_store(self, database_url: str) -> None:
        with Store.open(database_url, scheme=str(Scheme())) as empty, empty.reading() as connection:
            overview = reports.overview(connection, ALL)
            assert (overview.share, overview.share.rate) == (Share("all", 0, 0), 0.0)
            assert (overview.exact, overview.too_short, overview.clusters) == (0, 0, 0)
            assert reports.by_host(connection, ALL) == []
            assert url_shares.by_url(connection, ALL) == ([], [])
            assert reports.largest_clusters(connection, ALL, limit=3) == []


class TestPageReport:
    def test_canonical_page(self, connection: sa.Connection) -> None:
        report = page_report.page_report(connection, "http://a.example/docs/x/1#part", limit=2)

        assert report is not None
        assert (report.page_id, report.kind, report.features) == (1, "new", 30)
        assert report.fingerprint == 2**64 - 1
        assert report.first_crawl.startswith("1 (spider one, ")
        assert report.canonical is None
        assert report.duplicate_count == 3
        assert [d.url for d in report.duplicates] == [
            "http://a.example/docs/x/2",
            "http://a.example/docs/y/3",
        ]
        assert report.duplicates[0].percentage == 100.0

    def test_duplicate(self, connection: sa.Connection) -> None:
        report = page_report.page_report(connection, "http://a.example/docs/y/3")

        assert report is not None
        assert report.links_withheld == 7
        assert report.duplicate_count == 0
        assert report.canonical is not None
        assert (report.canonical.url, report.canonical.distance) == ("http://a.example/docs/x/1", 2)
        assert report.canonical.differing_bits == hamming.differing_bits(2**64 - 3, 2**64 - 1)
        assert datetime.now(UTC) - report.first_seen < timedelta(minutes=5)

    def test_unknown(self, connection: sa.Connection) -> None:
        assert page_report.page_report(connection, "http://c.example/") is None

    def test_canonical_fingerprints(self, connection: sa.Connection) -> None:
        ids, values = page_report.canonical_fingerprints(connection, min_features=10)

        assert sorted(ids) == [1, 5, 8]
        assert (ids.dtype, values.dtype) == (np.dtype(np.int64), np.dtype(np.uint64))
        assert {int(v) for v in values} == {fingerprint(2**64 - n).value for n in (1, 5, 8)}
        urls = page_report.urls_of(connection, [1, 8])
        assert urls == {1: "http://a.example/docs/x/1", 8: "file:///data/8.html"}

    def test_sizes(self, connection: sa.Connection) -> None:
        assert page_report.store_sizes(connection) == {
            "crawls": 2,
            "simhash_values": 8,
            "duplicate_values": 4,
            "page_versions": 0,
            "page_links": 0,
            "page_ranks": 0,
            "document_frequencies": 0,
            "url_rules": 0,
            "rule_effects": 0,
            "decisions": 0,
            "page_texts": 0,
            "host_ips": 0,
        }
