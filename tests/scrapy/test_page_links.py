"""The links that a crawl stores: of real crawls, by the tree of a page and by the requests of its spider."""

from __future__ import annotations

import random
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
import sqlalchemy as sa

from crawler.spiders.site import SiteSpider
from neardup.errors import ConfigurationError, StoreError
from neardup.scrapy.options import Options
from neardup.store import page_links
from neardup.store.page_links import FOLLOWED, NOFOLLOW, are_damaged, decoded, encoded, stored_edges
from neardup.store.schema import page_links as table
from neardup.store.schema import simhash_values
from neardup.store.store import Store
from tests.support.crawling import Site, crawl, serve
from tests.support.places import PAGES
from tests.support.stores import write
from tests.support.twins import python_twin
from tests.support.verdicts import page as verdict_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scrapy.http import Response

WORDS = " ".join(f"word{number}" for number in range(60))


def edges_of(url: str) -> dict[tuple[str, str], int]:
    """Marks by paths of the two ends; the path of what is not stored is empty."""
    with Store.open(url, scheme=None, create=False) as store, store.reading() as connection:
        page = simhash_values.c
        paths = {0: ""} | {
            row.id: "/" + row.actual_url.split("/", 3)[3]
            for row in connection.execute(sa.select(page.id, page.actual_url))
        }
        found = {}
        for edges in stored_edges(connection):
            for source, target, mark in zip(*(column.tolist() for column in edges), strict=True):
                found[paths[source], paths[target]] = mark
        return found


class Follower(scrapy.Spider):
    name = "follower"

    def __init__(self, url: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.start_urls = [url]

    def parse(self, response: Response, **kwargs: Any) -> Iterator[scrapy.Request]:
        for href in response.css("a.go::attr(href)").getall():
            yield response.follow(href)


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        yield site


def page(number: int, links: str, head: str = "") -> bytes:
    words = " ".join(f"w{number}x{word}" for word in range(80))
    return f"<html><head>{head}</head><body><p>{words}</p>{links}</body></html>".encode()


def settings(tmp_path: Path, **others: Any) -> dict[str, Any]:
    return {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
        "NEARDUP_LINKS": True,
        "ROBOTSTXT_OBEY": False,
        **others,
    }


def add(site: Site, path: str, body: bytes, **kwargs: Any) -> None:
    site.add(path, "", **kwargs)
    site.pages[path].body = body


class TestCrawl:
    def fill(self, site: Site) -> None:
        add(
            site,
            "/",
            page(0, '<a class=go href="/a">a</a><a class=go href="b#part">b</a><a href="/c?x=1">c</a>'
                 '<a rel="external NoFollow" href="/a/../b">b</a><a href="#top">t</a>'
                 '<a href="mailto:x@y">m</a><a href="http://other.example/">o</a>'),
        )  # fmt: skip
        add(site, "/a", page(1, '<a href="/">up</a><a rel=nofollow class=go href="/d">d</a>'))
        add(site, "/b", page(2, '<a href="a">a</a>', '<meta name=Robots content="noindex, NOFOLLOW">'))
        add(site, "/d", page(3, '<a href="d">me</a><a href="e">e</a>', '<base href="/below/">'))

    def test_what_is_stored(self, site: Site, tmp_path: Path) -> None:
        self.fill(site)

        stats = crawl(Follower, settings(tmp_path), url=f"{site.url}/").stats

        assert edges_of(f"sqlite:///{tmp_path}/n.db") == {
            ("/", "/a"): FOLLOWED,
            ("/", "/b"): FOLLOWED,
            ("/", ""): 0,
            ("/a", "/"): 0,
            ("/a", "/d"): FOLLOWED | NOFOLLOW,
            ("/b", "/a"): NOFOLLOW,
            ("/d", ""): 0,
        }
        assert stats["neardup/links/stored"] == 4 + 2 + 1 + 2
        assert "neardup/failures" not in stats

    def test_a_later_crawl_names_known_pages_by_their_ids(self, site: Site, tmp_path: Path) -> None:
        self.fill(site)
        crawl(Follower, settings(tmp_path), url=f"{site.url}/")
        url = f"sqlite:///{tmp_path}/n.db"
        before = edges_of(url)
        add(site, "/b", page(2, '<a href="a">a</a><a href="d">d</a>'))

        crawl(Follower, settings(tmp_path), url=f"{site.url}/b")

        assert edges_of(url) == before | {("/b", "/a"): 0, ("/b", "/d"): 0}

    def test_links_to_what_redirects_lead_to_its_page(self, site: Site, tmp_path: Path) -> None:
        add(site, "/", page(0, '<a class=go href="/old">a</a>'))
        site.add("/old", "", status=302)
        site.pages["/old"].headers["Location"] = "/new"
        add(site, "/new", page(1, ""))

        crawl(Follower, settings(tmp_path), url=f"{site.url}/")

        assert edges_of(f"sqlite:///{tmp_path}/n.db") == {("/", "/new"): FOLLOWED}

    def test_a_skipped_page_has_links_that_nobody_followed(self, site: Site, tmp_path: Path) -> None:
        add(site, "/", page(0, '<a class=go href="/a">a</a><a class=go href="/b">b</a>'))
        for path in ("/a", "/b"):
            add(site, path, page(1, '<a class=go href="/">up</a>', "<title>One title of both</title>"))

        stats = crawl(
            Follower,
            settings(tmp_path, NEARDUP_ACTION="skip", NEARDUP_FOLLOW_PER_CLUSTER=1, NEARDUP_PREDICT="off"),
            url=f"{site.url}/",
        ).stats

        assert stats["neardup/pages_skipped"] == 1
        assert edges_of(f"sqlite:///{tmp_path}/n.db")["/b", "/"] == 0

    def test_beyond_the_most(self, site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("neardup.scrapy.page_links.MOST_NUMBERS", 3)
        self.fill(site)

        stats = crawl(Follower, settings(tmp_path), url=f"{site.url}/").stats

        assert set(edges_of(f"sqlite:///{tmp_path}/n.db")) <= {
            ("/", "/a"),
            ("/", "/b"),
            ("/a", "/"),
            ("/b", "/a"),
        }
        assert stats["neardup/links/beyond"] >= 3

    @pytest.mark.slow
    def test_real_pages(self, tmp_path: Path) -> None:
        stats = crawl(SiteSpider, settings(tmp_path), url=str(PAGES)).stats

        edges = edges_of(f"sqlite:///{tmp_path}/n.db")
        followed = sum(bool(mark & FOLLOWED) for mark in edges.values())
        assert stats["neardup/links/stored"] > len(edges) > followed > 20
        assert "neardup/failures" not in stats

    def test_off_unless_set(self, site: Site, tmp_path: Path) -> None:
        self.fill(site)

        crawl(Follower, settings(tmp_path, NEARDUP_LINKS=False), url=f"{site.url}/")

        assert edges_of(f"sqlite:///{tmp_path}/n.db") == {}

    def test_items_have_no_links(self) -> None:
        with pytest.raises(ConfigurationError, match="NEARDUP_LINKS"):
            Options.from_settings(
                scrapy.settings.Settings({"NEARDUP_LINKS": True, "NEARDUP_CONTENT_FIELD": "html"})
            )


class TestForm:
    def test_there_and_back(self) -> None:
        rows: list[dict[int, int]] = [
            {}, {0: 0}, {5: 3, 127: 1, 128: 2, 1 << 40: 0}, {}, dict.fromkeys(range(1, 300_000, 7), 2), {},
            dict.fromkeys(range(500), 2), {0: 1, 1: 1, 2: 1, 3: 0, 4: 0, 5: 0, 8: 0, 9: 0}, {1: 2, 2: 2},
        ]  # fmt: skip

        of_rows, codes, marks = decoded([encoded(row) for row in rows])

        for number, row in enumerate(rows):
            here = of_rows == number
            assert dict(zip(codes[here].tolist(), marks[here].tolist(), strict=True)) == row

    @pytest.mark.parametrize("links", [1, 2, 3, 4, 5, 6, 7, 17, 18, 100])
    def test_rows_of_earlier_versions_have_no_runs(self, links: int) -> None:
        earlier = bytes([20 << 2 | FOLLOWED] + [1 << 2 | FOLLOWED] * (links - 1))
        row = encoded(dict.fromkeys(range(20, 20 + links), FOLLOWED))

        both = decoded([row, earlier, row])

        assert (len(row) < len(earlier)) == (links > 2)
        for of_row in range(3):
            codes, marks = (column[both[0] == of_row].tolist() for column in both[1:])
            assert codes == list(range(20, 20 + links))
            assert marks == [FOLLOWED] * links

    @pytest.mark.parametrize(
        ("row", "what"),
        [
            (b"\x80", "does not end"),
            (b"\x05\xff", "does not end"),
            (b"\x80" * 12 + b"\x01", "does not end"),
            (b"\xff" * 9 + b"\x01", "does not end"),
            (b"\xa0\x1f\xfc" + b"\xff" * 8 + b"\x01", "does not end"),  # a step back
            (b"\xa0\x1f" + b"\x80" * 9 + b"\x02", "does not end"),  # of more than 64 bits
            (b"\x08\x80\x00", "longer than it needs"),
            ((b"\xff" * 8 + b"\x7f") * 5, "too large"),
            (b"\x08" + b"\x03" * 1_000_000, "more than 10,000,000 links"),
        ],
    )
    def test_damage(self, row: bytes, what: str) -> None:
        with pytest.raises(StoreError, match=f"page_links is damaged: .*{what}"):
            decoded([b"\x04", row])
        assert are_damaged([b"\x04", row]) == [False, True]

    @pytest.mark.slow
    def test_many_rows_of_long_runs_take_little_memory(self, store: Store) -> None:
        row = b"\x08" + b"\x03" * 15_000
        crawl_id = store.begin_crawl(spider="s", settings={})
        write(store, *(verdict_page(number, f"u{number}") for number in range(1, 81)), crawl=crawl_id)
        with store.begin_write() as connection:
            connection.execute(
                sa.insert(table),
                [
                    {"crawl_id": crawl_id, "page_id": page_id, "numbers": b"", "links": row}
                    for page_id in range(1, 81)
                ],
            )

        tracemalloc.start()
        with store.reading() as connection:
            links = sum(edges.marks.size for edges in page_links.stored_edges(connection))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert links == 80 * 240_001
        assert most < 400_000_000  # all at once take 830 million bytes

    def test_a_number_that_no_crawl_gives(self, store: Store) -> None:
        crawl_id = store.begin_crawl(spider="s", settings={})
        write(store, verdict_page(1, "u"), crawl=crawl_id)
        with store.begin_write() as connection:
            row = {"crawl_id": crawl_id, "page_id": 1, "numbers": encoded({1 << 40: 0}), "links": b""}
            connection.execute(sa.insert(table), row)

        with store.reading() as connection, pytest.raises(StoreError, match="the number 1,099"):
            list(page_links.stored_edges(connection))


def test_twins_encode_alike() -> None:
    chance, twin = random.Random(5), python_twin(page_links)
    for most in (4, 300, 1 << 24, 1 << 60):
        for _ in range(100):
            starts = [chance.randrange(most) for _ in range(chance.randrange(40))]
            codes_of_runs = [
                start + more for start in starts for more in range(chance.choice((1, 1, 2, 9, 30)))
            ]
            marks = dict.fromkeys(codes_of_runs, 2) | {code: chance.randrange(4) for code in starts}
            assert encoded(marks) == twin.encoded(marks)
            codes, found = decoded([encoded(marks)])[1:]
            assert dict(zip(codes.tolist(), found.tolist(), strict=True)) == marks
