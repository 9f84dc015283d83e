"""A page has the same fingerprint whichever way it came: by a crawl over loopback, or out of storage."""

from __future__ import annotations

import csv
import dbm.dumb
import gzip
import io
import json
import os
import pickle
import zipfile
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import brotli
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scrapy
import sqlalchemy as sa
from scrapy.exporters import XmlItemExporter

from neardup.cli.collection_build import INCOMPLETE
from neardup.store.schema import simhash_values
from tests.support.archives import DATE, IP, Exchange, arc, chunked, unpacked, warc
from tests.support.collections import build, built, exchanges, rows
from tests.support.crawling import Page, crawl, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMPARED = ("hash_value", "weak_bits", "sketch", "features", "text_digest", "headline")
PAGES = exchanges()
TEXT = "Größe und Übermaß: ein Fluß mißt weiß, überall hört man schöne Wörter über Äpfel und Öl"
HTML = f"<title>Maß</title><h1>Übung</h1><p>{TEXT}</p>"

ODD = [
    ("/latin", HTML.encode("latin-1"), {"Content-Type": "text/html; charset=ISO-8859-1"}),
    ("/lies", HTML.encode("cp1252"), {"Content-Type": "text/html; charset=utf-8"}),
    ("/bom", HTML.encode("utf-8-sig"), {"Content-Type": "text/html; charset=latin-1"}),
    ("/utf16", HTML.encode("utf-16"), {"Content-Type": "text/html"}),
    ("/meta", b"<meta charset=windows-1252>" + HTML.encode("cp1252"), {"Content-Type": "text/html"}),
    ("/none", HTML.encode("cp1252"), {"Content-Type": "text/html"}),
    ("/xhtml", HTML.encode(), {"Content-Type": "application/xhtml+xml"}),
    ("/sniffed", b"<!DOCTYPE html><html>" + HTML.encode(), {}),
    ("/plain", b"no page but a text of some words", {"Content-Type": "text/plain"}),
    ("/gzip", gzip.compress(HTML.encode()), {"Content-Type": "text/html", "Content-Encoding": "gzip"}),
    ("/br", brotli.compress(HTML.encode()), {"Content-Type": "text/html", "Content-Encoding": "br"}),
]
"""Pages whose charset is found in different ways, one that is no HTML, and bodies that are packed."""


class Everything(scrapy.Spider):
    """Asks for all pages of a site, and exports their HTML."""

    name = "everything"
    start_urls: list[str]

    def parse(self, response: Any) -> Iterator[dict[str, Any]]:
        if isinstance(response, scrapy.http.HtmlResponse):
            yield {"url": response.url, "html": response.text, "date": DATE}


@dataclass
class Crawled:
    """What a crawl has stored, by URL, and where the same pages are besides."""

    stored: dict[str, dict[str, Any]]
    exchanges: list[Exchange]
    items: list[dict[str, Any]]
    database: str
    cache: Path


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    folder = tmp_path_factory.mktemp("crawled")
    url = f"sqlite:///{folder}/n.db"
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": url,
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(folder / "cache"),
    }
    with serve() as site:
        for path, body, headers in ODD:
            site.pages[path] = Page(body, headers=headers)
        for one in PAGES:
            site.pages[one.url.removeprefix("http://docs.example")] = Page(
                one.body, headers=dict(one.headers)
            )
        urls = [site.url + path for path in site.pages]
        done = crawl(Everything, settings, start_urls=urls)
        sent = [
            Exchange(site.url + path, page.body, tuple(page.headers.items()))
            for path, page in site.pages.items()
        ]
    with sa.create_engine(url, poolclass=sa.NullPool).connect() as connection:
        found = connection.execute(sa.select(simhash_values)).mappings().all()
    stored = {row["actual_url"]: {name: row[name] for name in COMPARED} for row in found}
    assert len(stored) == len(urls) - 1  # all but /plain
    assert all(row["hash_value"] for row in stored.values())
    return Crawled(stored, sent, done.items, url, folder / "cache")


def compared(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {row["url"]: {name: row[name] for name in COMPARED} for row in found}


def in_chunks(one: Exchange) -> Exchange:
    headers = (*one.headers, ("Transfer-Encoding", "chunked"))
    return replace(one, body=chunked(one.body), headers=headers)


@pytest.mark.parametrize(
    "form", ["warc", "warc.gz", "one-piece.warc.gz", "chunked.warc.gz", "arc", "arc.gz", "wacz", "zip.wacz"]
)
def test_archives_give_the_rows_of_the_crawl(crawled: Crawled, tmp_path: Path, form: str) -> None:
    sent = [in_chunks(one) for one in crawled.exchanges] if "chunked" in form else crawled.exchanges
    packed = form.endswith((".gz", "wacz"))
    written = (arc if "arc" in form and "warc" not in form else warc)(sent, packed=packed).data
    if "one-piece" in form:
        written = gzip.compress(unpacked(written))
    path = tmp_path / f"pages.{form}"
    if form.endswith("wacz"):
        kind = zipfile.ZIP_DEFLATED if form == "zip.wacz" else zipfile.ZIP_STORED
        with zipfile.ZipFile(path, "w", kind) as file:
            file.writestr("datapackage.json", "{}")
            file.writestr("archive/data.warc.gz", written)
    else:
        path.write_bytes(written)

    found = built(tmp_path / "out", path)

    assert compared(found) == crawled.stored
    assert {(row["ip"], f"{row['date']:%Y-%m-%dT%H:%M:%SZ}") for row in found} == {(IP, DATE)}
    assert {row["host"] for row in found} == {"127.0.0.1"}
    inside = "/archive/data.warc.gz" if form.endswith("wacz") else ""
    assert {row["file"] for row in found} == {f"{path}{inside}"}
    places = [row["place"] for row in found]
    assert [row["id"] for row in found] == places == sorted(set(places))


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "json", "csv", "xml", "parquet"])
def test_feeds_and_tables_give_the_rows_of_the_crawl(crawled: Crawled, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"items.{form}"
    lines = [json.dumps(item) for item in crawled.items]
    if form == "jsonl":
        path.write_text("\n".join(lines) + "\n")
    elif form == "jsonl.gz":
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
    elif form == "json":
        path.write_text("[\n" + ",\n".join(lines) + "\n]")
    elif form == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["url", "html", "date"])
            writer.writeheader()
            writer.writerows(crawled.items)
    elif form == "xml":
        exported = io.BytesIO()
        exporter = XmlItemExporter(exported)
        exporter.start_exporting()
        for item in crawled.items:
            exporter.export_item(item)
        exporter.finish_exporting()
        path.write_bytes(exported.getvalue())
    else:
        pq.write_table(pa.Table.from_pylist(crawled.items), path, row_group_size=5)

    found = built(tmp_path / "out", path)

    assert compared(found) == crawled.stored
    assert {f"{row['date']:%Y-%m-%dT%H:%M:%SZ}" for row in found} == {DATE}


def test_http_cache_gives_the_rows_of_the_crawl(crawled: Crawled, tmp_path: Path) -> None:
    found = built(tmp_path / "all", crawled.cache)

    assert compared(found) == crawled.stored
    assert compared(built(tmp_path / "spider", crawled.cache / "everything")) == crawled.stored
    for path in (tmp_path / "all").parent.iterdir():
        assert path.name in {"all", "spider"}


@pytest.mark.parametrize("kind", ["dbm.dumb", "dbm.gnu"])
def test_http_cache_in_a_database_gives_the_rows_of_the_crawl(
    crawled: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    module = pytest.importorskip(kind, exc_type=ImportError)  # every Python has dbm.dumb
    settings = {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_STORAGE": "scrapy.extensions.httpcache.DbmCacheStorage",
        "HTTPCACHE_DIR": str(tmp_path / "cache"),
        "HTTPCACHE_DBM_MODULE": kind,
    }
    with serve() as site:
        for one in crawled.exchanges:
            path = one.url[one.url.index("/", 8) :]
            site.pages[path] = Page(one.body, headers=dict(one.headers))
        crawl(Everything, settings, start_urls=[site.url + path for path in site.pages])
        own, url = site.url, crawled.exchanges[0].url
    theirs = url[: url.index("/", 8)]
    cache = tmp_path / "cache" / "everything.db"
    stored = {key.replace(theirs, own): row for key, row in crawled.stored.items()}

    found = built(tmp_path / "all", tmp_path / "cache")

    assert compared(found) == stored
    assert all(row["date"] for row in found)
    assert {row["ip"] for row in found} == {"127.0.0.1"}
    for given in (cache, cache.with_name("everything.db.dat")):
        assert compared(built(tmp_path / given.name, given)) == stored

    # What a pickle would call is not called.
    with module.open(str(cache), "w") as database:
        names = [str(name, "utf-8") for name in database.keys() if isinstance(name, bytes)]  # noqa: SIM118
        keys = sorted(name for name in names if name.endswith("_data"))
        database[keys[0]] = pickle.dumps(_Calling(tmp_path / "called"))
        database[keys[1]] = database[keys[1]][:20]
        del database[keys[2].replace("_data", "_time")]
    capsys.readouterr()
    assert build(tmp_path / "damaged", cache, "--format", "json") == INCOMPLETE
    told = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "called").exists()
    assert told["skipped"]["damaged"] == 3
    assert any("mkdir is no part of a response" in one["detail"] for one in told["examples"])


class _Calling:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._path),)


@pytest.mark.parametrize("kind", ["dbm.dumb", "dbm.gnu"])
def test_damaged_database_of_a_cache_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    module = pytest.importorskip(kind, exc_type=ImportError)
    cache = tmp_path / "cache" / "everything.db"
    cache.parent.mkdir()
    with module.open(str(cache), "c") as database:
        database["key_data"] = "value"
    damaged = cache.with_name("everything.db.dir") if kind == "dbm.dumb" else cache
    data = damaged.read_bytes()
    damaged.write_bytes(data.replace(b"(", b"", 1) if kind == "dbm.dumb" else data[:100])

    assert build(tmp_path / "none", cache.parent) == 1  # nothing is left to read
    assert f"neardup: {cache} cannot be read as an HTTP cache of Scrapy: " in capsys.readouterr().err
    assert not (tmp_path / "none").exists()

    (cache.parent / "page.html").write_text("<p>words of a page")
    assert build(tmp_path / "out", cache.parent) == INCOMPLETE
    assert f"neardup: {cache}, 0: damaged (cannot be read as an HTTP cache" in capsys.readouterr().err
    assert len(rows(tmp_path / "out")) == 1


def test_database_of_another_kind_is_no_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with dbm.dumb.open(str(tmp_path / "other.db"), "c") as database:
        database["key"] = "value"

    assert build(tmp_path / "out", tmp_path / "other.db") == 1
    assert "other.db cannot be read" in capsys.readouterr().err
    (tmp_path / "locked.db").write_bytes(bytes(12) + b"\xce\x9a\x57\x13" + bytes(100))
    assert build(tmp_path / "out", tmp_path / "locked.db") == 1
    assert "locked.db" in capsys.readouterr().err


def test_store_gives_the_rows_of_the_crawl(crawled: Crawled, tmp_path: Path) -> None:
    found = built(tmp_path / "out", crawled.database)

    assert compared(found) == crawled.stored
    assert [row["place"] for row in found] == list(range(len(found)))
    assert "sqlite:" not in found[0]["file"]
    assert not rows(tmp_path / "out", "links")


def test_store_of_another_scheme_is_refused(
    crawled: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = own_settings\n")
    (tmp_path / "own_settings.py").write_text("NEARDUP_FEATURES = 'shingle-3'\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)

    assert build(tmp_path / "out", crawled.database) == 1
    assert "must never be compared" in capsys.readouterr().err


def test_folder_gives_the_rows_of_its_pages(crawled: Crawled, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    for one in PAGES:
        path = folder / one.url.removeprefix("http://docs.example/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(one.body)

    found = built(tmp_path / "out", folder)

    by_path = {
        url.partition("/clang")[2] or url.rpartition("apache")[2]: row for url, row in crawled.stored.items()
    }
    assert len(found) == len(PAGES)
    for row in found:
        assert row["url"].startswith("file:///")
        key = row["url"].partition("/clang")[2] or row["url"].rpartition("apache")[2]
        assert {name: row[name] for name in COMPARED} == by_path[key]
