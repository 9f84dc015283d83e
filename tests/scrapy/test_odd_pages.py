"""Pages and sites as the web has them: broken, mislabelled, empty, huge, hostile. The crawl goes on, nothing
is lost.
"""

from __future__ import annotations

import functools
import gzip
import logging
import sqlite3
import threading
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
import sqlalchemy as sa
from scrapy.http import HtmlResponse, Response

from crawler.spiders.site import SiteSpider
from neardup import get_verdict
from neardup.detection.verdict import LEFT_ALONE, Kind
from neardup.errors import SchemeMismatch
from neardup.fingerprint.scheme import Scheme
from neardup.scrapy import extension, recording
from neardup.store import engine as engines
from neardup.store.schema import duplicate_values, simhash_values
from neardup.store.store import Store
from neardup.store.writer import Writer
from tests.support.crawling import Page, Site, crawl, recorder_of
from tests.support.places import PAGES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

WORDS = " ".join(f"word{i} " * (1 + 40 // (i + 1)) for i in range(80))
LAST = " ".join(f"last{i}" for i in range(80))


class OnePage(scrapy.Spider):
    """Asks for pages in order and tells their verdicts."""

    name = "pages"

    def __init__(self, urls: list[str]) -> None:
        super().__init__()
        self.start_urls = urls

    def parse(self, response: Response) -> Iterator[Any]:
        verdict = get_verdict(response)
        assert verdict is not None
        yield {"url": response.url, "kind": verdict.kind, "canonical": verdict.canonical_url}


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
        "DOWNLOAD_WARNSIZE": 0,
    }


def html(body: str) -> bytes:
    return f"<html><body><p>{body}</p></body></html>".encode()


ODD_PAGES = {
    "empty": (Page(b""), Kind.TOO_SHORT),
    "no content": (Page(b"", status=204), Kind.TOO_SHORT),
    "white space": (Page(b" \n\t "), Kind.TOO_SHORT),
    "never closed": (Page(b"<table><tr><td><b><i><p " + html(WORDS)), Kind.DUPLICATE),
    "garbage in tags": (Page(b"<p \x00<b =a/>&#xFFFFFFF;&nope;<" + html(WORDS)), Kind.DUPLICATE),
    "NUL bytes": (Page(html("\0" + WORDS.replace("word3 ", "wo\0rd3 "))), Kind.DUPLICATE),
    "charset that does not exist": (
        Page(html(WORDS), headers={"Content-Type": "text/html; charset=no-such"}), Kind.DUPLICATE
    ),
    "latin-1 called utf-8": (
        Page(html(WORDS).replace(b"</p>", "äöü</p>".encode("latin-1"))), Kind.DUPLICATE
    ),
    "utf-16 with a mark": (
        Page(html(WORDS).decode().encode("utf-16"), headers={"Content-Type": "text/html"}), Kind.DUPLICATE
    ),
    "gzip": (
        Page(gzip.compress(html(WORDS)), headers={"Content-Type": "text/html", "Content-Encoding": "gzip"}),
        Kind.DUPLICATE,
    ),
    "70,000 deep": (
        Page(b"<html><body>" + WORDS.encode() + b"<div>" * 70_000 + b"</div>" * 70_000), Kind.DUPLICATE
    ),
    "script only": (
        Page(b"<html><body><script>" + WORDS.encode() + b"</script></body></html>"), Kind.TOO_SHORT
    ),
    "frameset": (Page(b"<html><frameset><frame src='/x'></frameset></html>"), Kind.TOO_SHORT),
    "one word of 3 MB": (Page(b"<p>" + b"x" * 3_000_000), Kind.TOO_SHORT),
    "90,000 elements": (Page(b"<html><body>" + b"<b>x</b><p>y" * 45_000), Kind.TOO_SHORT),
    "600,000 tags": (Page(b"<html><body>" + b"<b>x</b><p>y" * 200_000), Kind.UNJUDGED),
    "30,000 attributes": (
        Page(b"<p " + b" ".join(b"a%d" % n for n in range(30_000)) + b">" + html(WORDS)), Kind.UNJUDGED
    ),
    "PDF": (Page(b"%PDF-1.4", headers={"Content-Type": "application/pdf"}), Kind.NOT_HTML),
    "JSON": (Page(b'{"a": 1}', headers={"Content-Type": "application/json"}), Kind.NOT_HTML),
    "feed": (Page(b"<rss><channel/></rss>", headers={"Content-Type": "application/rss+xml"}), Kind.NOT_HTML),
    "XHTML": (
        Page(b'<?xml version="1.0"?>' + html(WORDS), headers={"Content-Type": "application/xhtml+xml"}),
        Kind.DUPLICATE,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_PAGES)
def test_odd_page_has_a_verdict_and_the_crawl_goes_on(
    site: Site, settings: dict[str, Any], name: str
) -> None:
    odd, kind = ODD_PAGES[name]
    site.pages["/first"], site.pages["/odd"], site.pages["/last"] = Page(html(WORDS)), odd, Page(html(LAST))

    done = crawl(OnePage, settings, urls=[f"{site.url}/{path}" for path in ("first", "odd", "last")])

    assert [item["kind"] for item in done.items] == [Kind.NEW, kind, Kind.NEW]
    assert done.items[1]["canonical"] == (f"{site.url}/first" if kind is Kind.DUPLICATE else None)
    assert "log_count/ERROR" not in done.stats
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        assert len(list(store.known_pages())) == (2 if kind in LEFT_ALONE else 3)


@pytest.mark.parametrize(("megabytes", "kinds"), [(1, [Kind.NEW, Kind.DUPLICATE]), (50, [Kind.UNJUDGED] * 2)])
def test_megabytes_of_text(site: Site, settings: dict[str, Any], megabytes: int, kinds: list[Kind]) -> None:
    words = (" ".join(f"word{i % 50_000}" for i in range(100_000)) + " ").encode() * megabytes
    site.pages["/huge"], site.pages["/copy"], site.pages["/last"] = Page(words), Page(words), Page(html(LAST))

    done = crawl(OnePage, settings, urls=[f"{site.url}/{path}" for path in ("huge", "copy", "last")])

    assert len(words) > 900_000 * megabytes
    assert [item["kind"] for item in done.items] == [*kinds, Kind.NEW]


@pytest.mark.parametrize("language", ["ja", "ko", "zh-cn", "fr", "tr", "es", "de"])
def test_real_pages_in_their_charsets_are_copies_of_themselves_in_utf_8(
    site: Site, settings: dict[str, Any], language: str
) -> None:
    page = min((PAGES / "apache" / language).rglob("*.html"))
    response = HtmlResponse(page.as_uri(), body=page.read_bytes())
    declared = {"Content-Type": "text/html; charset=utf-8"}
    site.pages["/own"] = Page(page.read_bytes(), headers={"Content-Type": "text/html"})
    site.pages["/utf-8"] = Page(response.text.encode(), headers=declared)

    done = crawl(OnePage, settings, urls=[f"{site.url}/own", f"{site.url}/utf-8"])

    assert [item["kind"] for item in done.items] == [Kind.NEW, Kind.DUPLICATE]
    assert done.neardup("exact_duplicates") == 1


def test_session_ids(site: Site, settings: dict[str, Any]) -> None:
    for number in range(50):
        site.pages[f"/page?sid={number:032x}"] = Page(html(WORDS))

    done = crawl(OnePage, settings, urls=[site.url + path for path in site.pages])

    assert (done.neardup("new"), done.neardup("exact_duplicates")) == (1, 49)


def test_urls_are_data(site: Site, settings: dict[str, Any]) -> None:
    urls = ["/" + "x" * 20_000, "/a%00b", "/a%1B%5B2J", "/%F0%9F%98%80", "/'; DROP TABLE crawls; --"]
    for url in urls:
        site.pages[scrapy.Request(site.url + url).url.removeprefix(site.url)] = Page(html(WORDS))

    done = crawl(OnePage, settings | {"URLLENGTH_LIMIT": 0}, urls=[site.url + url for url in urls])

    assert done.neardup("pages") == done.stats["response_received_count"] == len(urls)
    with Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store:
        assert sorted(page.url for page in store.known_pages()) == sorted(item["url"] for item in done.items)


class Broken(HtmlResponse):
    """A response of a middleware of the user's, with a defect."""

    @property
    def selector(self) -> Any:
        raise RuntimeError("as middlewares do")


class BrokenResponses:
    """A downloader middleware that answers with :class:`Broken` where the URL says so."""

    async def process_response(self, request: Any, response: Response) -> Response:
        if not request.url.endswith("broken"):
            return response
        return Broken(response.url, status=response.status, headers=response.headers, body=response.body)


def test_what_neardup_fails_on_passes_untouched(
    site: Site, settings: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    class Junk(scrapy.Spider):
        name = "junk"

        async def start(self) -> Any:
            yield scrapy.Request(f"{site.url}/broken")
            for number in range(3):
                # Keys of neardup's own, with what cannot be theirs.
                junk = {"neardup_cluster": [], "neardup_chain": "long", "neardup_out_of": {}}
                yield scrapy.Request(f"{site.url}/{number}", meta=junk)

        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url}
            yield scrapy.Request(f"{response.url}-more", self.parse, meta={"neardup": False})

    for path in ("broken", "0", "1", "2"):
        site.pages[f"/{path}"] = site.pages[f"/{path}-more"] = Page(html(WORDS))
    middlewares = {"DOWNLOADER_MIDDLEWARES": {BrokenResponses: 1}}

    with caplog.at_level(logging.WARNING, "neardup"):
        done = crawl(Junk, settings | middlewares)

    assert len(done.items) == 8
    assert not any(name.startswith("spider_exceptions") for name in done.stats)
    assert done.neardup("failures") >= 4
    (warning,) = [record for record in caplog.records if "this is a bug of neardup" in record.message]
    assert warning.exc_info is not None


def test_callback_that_fails_on_a_duplicate(site: Site, settings: dict[str, Any]) -> None:
    class Fails(OnePage):
        def parse(self, response: Response) -> Iterator[Any]:
            yield {"url": response.url}
            yield scrapy.Request(f"{site.url}/more")
            raise RuntimeError("as callbacks do")

    site.pages["/1"] = site.pages["/2"] = Page(html(WORDS))
    site.pages["/0"] = Page(html(f'{LAST}<a href="/1">.</a><a href="/2">.</a>'))

    class Starts(Fails):
        def __init__(self, urls: list[str]) -> None:
            super().__init__(urls[:1])
            self.rest = urls[1:]

        def parse(self, response: Response) -> Iterator[Any]:
            if response.url == self.start_urls[0]:
                yield from (scrapy.Request(url) for url in self.rest)
            else:
                yield from super().parse(response)

    settings["NEARDUP_ACTION"] = "nofollow"

    done = crawl(Starts, settings, urls=[f"{site.url}/{number}" for number in range(3)])

    # Links counted before the failure are stored with the page, and the failure is Scrapy's to report.
    assert done.neardup("links_withheld") == 1
    assert done.stats["spider_exceptions/RuntimeError"] == 2
    with (
        Store.open(settings["NEARDUP_DATABASE_URL"], scheme=str(Scheme())) as store,
        store.reading() as connection,
    ):
        skipped = connection.execute(
            sa.select(simhash_values.c.links_withheld).join(
                duplicate_values, duplicate_values.c.duplicate_hash_id == simhash_values.c.id
            )
        ).scalars()
        assert list(skipped) == [1]


def test_callbacks_without_output_and_items_without_page(site: Site, settings: dict[str, Any]) -> None:
    class Silent(OnePage):
        async def start(self) -> Any:
            yield {"from": "start"}
            for url in self.start_urls:
                yield scrapy.Request(url, callback=self.nothing)

        def nothing(self, response: Response) -> None:
            return None

    site.pages["/1"] = site.pages["/2"] = Page(html(WORDS))

    done = crawl(Silent, settings | {"NEARDUP_ACTION": "drop"}, urls=[f"{site.url}/1", f"{site.url}/2"])

    assert done.items == [{"from": "start"}]
    assert done.neardup("duplicates") == 1


class TestFolders:
    """The ready spider on folders as mirroring programs leave them."""

    def test_names_and_links(self, tmp_path: Path, settings: dict[str, Any]) -> None:
        folder = tmp_path / "mirror, with spaces & ümlaut"
        (folder / "sub").mkdir(parents=True)
        pages = {
            "page.php?id=3": html(WORDS),
            "no-ending": b"<!DOCTYPE html>" + html(LAST),
            "notes.txt": WORDS.encode(),
            "picture.png": b"\x89PNG",
            "sub/index.html": html("index " * 3 + " ".join(f"sub{i}" for i in range(50))),
            "start.html": html(
                " ".join(f"start{i}" for i in range(50))
                + '<a href="sub/">.</a><a href="missing.html">.</a><a href="../outside.html">.</a>'
                '<a href="start.html?x=1#y">.</a><a href="http://a.example/">.</a>'
            ),
        }
        for name, body in pages.items():
            (folder / name).write_bytes(body)
        (tmp_path / "outside.html").write_bytes(html(LAST))

        done = crawl(SiteSpider, settings, url=str(folder))

        assert sorted(item.url.rpartition("/")[2] for item in done.items) == [
            "index.html", "no-ending", "page.php%3Fid%3D3", "start.html"
        ]  # fmt: skip
        assert "log_count/ERROR" not in done.stats
        assert done.neardup("pages") == 4

    def test_one_file_and_what_it_links_to(self, settings: dict[str, Any]) -> None:
        done = crawl(SiteSpider, settings, url=str(PAGES / "clang-16" / "index.html"))

        names = {item.url.rpartition("/clang-16/")[2] for item in done.items}
        assert {"index.html", "FAQ.html", "CommandGuide/index.html"} <= names
        assert len(names) == len(done.items) == 12

    def test_several_folders(self, settings: dict[str, Any]) -> None:
        done = crawl(SiteSpider, settings, url=f"{PAGES / 'clang-13'},{PAGES / 'clang-14'}")

        assert len(done.items) == 24

    def test_item_tells_the_verdict(self, settings: dict[str, Any]) -> None:
        done = crawl(SiteSpider, settings, url=str(PAGES))

        duplicates = [item for item in done.items if item.verdict == "duplicate"]
        assert len(duplicates) == done.neardup("duplicates")
        assert all(item.percentage == 100 * (64 - item.distance) / 64 for item in duplicates)
        assert all(item.canonical_url is None for item in done.items if item.verdict == "new")
        assert all(item.title for item in done.items)


class TestDatabase:
    @pytest.mark.parametrize(
        "more", [{}, {"NEARDUP_CONTENT_FIELD": "html"}], ids=["middleware", "pipeline alone"]
    )
    def test_gone_for_good_closes_the_crawl_with_its_own_reason(
        self,
        site: Site,
        settings: dict[str, Any],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        more: dict[str, Any],
    ) -> None:
        caplog.set_level(logging.INFO)
        # Seconds instead of a minute; otherwise the writer as it is.
        monkeypatch.setattr(engines, "BUSY_SECONDS", 0.05)
        monkeypatch.setattr(
            recording, "Writer", functools.partial(Writer, batch_seconds=0.05, give_up_after=0.3)
        )
        holder = sqlite3.connect(tmp_path / "n.db", isolation_level=None, check_same_thread=False)

        class Locks(OnePage):
            def parse(self, response: Response) -> Iterator[Any]:
                if not holder.in_transaction:
                    holder.execute("BEGIN EXCLUSIVE")
                yield {"url": response.url, "html": response.text}

        for number in range(100):
            site.pages[f"/{number}"] = Page(html(WORDS + f" page{number}"))

        done = crawl(
            Locks, settings | more | {"DOWNLOAD_DELAY": 0.05}, urls=[f"{site.url}/{n}" for n in range(100)]
        )

        holder.close()
        assert done.stats["finish_reason"] == "neardup_database_unavailable"
        assert "rows could not be stored" in caplog.text
        assert "neardup: summary" in caplog.text
        assert 0 < len(done.items) < 100

    def test_crawl_waits_while_too_many_rows_wait(
        self, site: Site, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(engines, "BUSY_SECONDS", 0.05)
        monkeypatch.setattr(extension, "_MOST_WAITING", 5)
        monkeypatch.setattr(recording, "Writer", functools.partial(Writer, batch_seconds=0.01))
        holder = sqlite3.connect(tmp_path / "n.db", isolation_level=None, check_same_thread=False)
        backlogs: list[int] = []
        """At each page that is read while the database is locked, and when it is released."""
        is_released = threading.Event()

        def release(writer: Writer) -> None:
            is_released.set()
            backlogs.append(writer.backlog)
            holder.execute("ROLLBACK")

        class Chain(OnePage):
            """Each page links to the next; the database is locked from the first on, for two seconds."""

            def parse(self, response: Response) -> Iterator[Any]:
                writer = recorder_of(self.crawler).writer
                if not backlogs:
                    holder.execute("BEGIN EXCLUSIVE")
                    threading.Timer(2.0, release, [writer]).start()
                if not is_released.is_set():
                    backlogs.append(writer.backlog)
                number = int(response.url.rpartition("/")[2])
                if number < 60:
                    yield scrapy.Request(f"{site.url}/{number + 1}")

        for number in range(61):
            site.pages[f"/{number}"] = Page(html(" ".join(f"page{number}word{i}" for i in range(30))))

        done = crawl(Chain, settings, urls=[f"{site.url}/0"])

        holder.close()
        assert done.neardup("pages") == 61
        assert len(backlogs) <= 7
        assert 5 <= max(backlogs) <= 7
        assert done.neardup("store_retries") > 0
        assert done.neardup("rows_written") == 61

    def test_another_scheme(self, site: Site, settings: dict[str, Any]) -> None:
        with Store.open(settings["NEARDUP_DATABASE_URL"], scheme="other/1") as store:
            store.begin_crawl(spider="s", settings={})

        with pytest.raises(SchemeMismatch, match="Name another database with NEARDUP_DATABASE_URL"):
            crawl(OnePage, settings, urls=[f"{site.url}/"])

        assert site.requested == []
