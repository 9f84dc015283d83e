"""The spider of the ready project: where it goes on web sites and in folders, and what that costs."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
from scrapy.http import HtmlResponse

from crawler.spiders.site import SiteSpider
from tests.support.crawling import Site, crawl, serve
from tests.support.places import ROOT
from tests.support.spiders import OTHER, WORDS

if TYPE_CHECKING:
    from tests.support.crawling import Crawl


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    """Without the guard: the spider does not rely on it."""
    return {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db"}


def urls(done: Crawl) -> list[str]:
    return sorted(item.url for item in done.items)


def write(folder: Path, pages: dict[str, str]) -> None:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"<html><body>{text}</body></html>")


def links(*targets: str) -> str:
    return "".join(f'<a href="{target}">.</a>' for target in targets)


class TestWebPages:
    def test_lead_to_no_file(self, settings: dict[str, Any], site: Site, tmp_path: Path) -> None:
        write(tmp_path / "mirror", {"start.html": WORDS, "sub/other.html": OTHER})
        start = tmp_path / "mirror" / "start.html"
        other = (tmp_path / "mirror" / "sub" / "other.html").as_uri()
        host = "127.0.0.1"
        site.add(
            "/",
            "start",
            other,
            other.replace("//", f"//{host}"),
            "data:text/html,a",
            "/next",
            "ftp://127.0.0.1/x",
        )
        site.add("/next", "next", "other.html")
        site.pages["/next"].body = site.pages["/next"].body.replace(
            b"<body>", f'<base href="{other}"><body>'.encode()
        )

        done = crawl(SiteSpider, settings, url=f"{start},{site.url}/")

        assert urls(done) == sorted([start.as_uri(), f"{site.url}/", f"{site.url}/next"])
        assert done.stats["downloader/request_count"] == 3

    @pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
    def test_redirect_to_no_file(
        self, settings: dict[str, Any], site: Site, tmp_path: Path, code: int
    ) -> None:
        write(tmp_path, {"secret.html": WORDS})
        site.add("/", "start", "/away", "/refresh")
        site.add("/away", "", status=code, headers={"Location": (tmp_path / "secret.html").as_uri()})
        site.add(
            "/refresh", f'<meta http-equiv="refresh" content="0; url={(tmp_path / "secret.html").as_uri()}">'
        )

        done = crawl(SiteSpider, settings, url=f"{site.url}/")

        assert not any(url.startswith("file:") for url in urls(done))
        assert site.requested == ["/", "/away", "/refresh"]

    @pytest.mark.slow
    def test_in_the_ready_project_a_page_leads_to_no_file_and_no_other_place(
        self, site: Site, tmp_path: Path
    ) -> None:
        with serve() as inner:
            inner.add("/", "within")
            write(tmp_path / "mirror", {"start.html": WORDS + links("next.html"), "next.html": OTHER})
            start = tmp_path / "mirror" / "start.html"
            secret = tmp_path / "secret.html"
            write(tmp_path, {"secret.html": OTHER})
            site.add("/", f"=1+1 {WORDS}", "/next", "/away", secret.as_uri(), f"{inner.url}/")
            site.add("/next", "<title>＝1+1</title>" + OTHER)
            site.add("/away", "", status=302, headers={"Location": f"{inner.url}/away"})
            command = [sys.executable, "-m", "scrapy", "crawl", "site", "-a", f"url={start},{site.url}/"]
            command += ["-O", f"{tmp_path}/pages.csv", "-s", "NEARDUP_ACTION=record"]
            environment = {**os.environ, "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db"}

            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
            )

            assert inner.requested == []
        rows = list(csv.DictReader((tmp_path / "pages.csv").read_text().splitlines()))
        wanted = [start.as_uri(), start.with_name("next.html").as_uri(), f"{site.url}/", f"{site.url}/next"]
        assert sorted(row["url"] for row in rows) == sorted(wanted)
        assert {row["title"] for row in rows} == {"", "'＝1+1"}
        assert "'neardup/guard_refused': 2" in done.stderr
        assert done.stderr.count("A request was refused: 127.0.0.1:") == 1


class TestHosts:
    @pytest.mark.parametrize(
        ("start", "link", "is_own"),
        [
            ("http://example.com/", "http://example.com./x", True),
            ("http://example.com./", "http://example.com/x", True),
            ("http://example.com./", "http://www.example.com/x", True),
            ("http://EXAMPLE.com/", "http://Example.COM/x", True),
            ("http://example.com/", "https://example.com:8443/x", True),
            ("http://example.com:80/", "http://www.example.com./x", True),
            ("http://münchen.example/", "http://xn--mnchen-3ya.example/x", True),
            ("http://xn--mnchen-3ya.example/", "http://www.MÜNCHEN.example/x", True),
            ("http://me:secret@example.com/", "http://example.com/x", True),
            ("http://[::1]/", "http://[::1]:81/x", True),
            ("http://example.com/", "http://example.com.evil.example/x", False),
            ("http://example.com./", "http://evil.example./x", False),
            ("http://example.com/", "http://evilexample.com/x", False),
            ("http://example.com/", "http://example.com@evil.example/x", False),
            ("http://example.com/", "http://evil.example/?example.com", False),
            ("http://example.com/", "//evil.example/x", False),
            ("http://example.com/", "file://example.com/etc/passwd", False),
            ("http://example.com/", "ftp://example.com/x", False),
            ("http://[::1]/", "http://[::2]/x", False),
        ],
    )
    def test_own_and_foreign(self, start: str, link: str, is_own: bool) -> None:
        spider = SiteSpider(url=start)
        response = HtmlResponse(
            start, body=links(link).encode(), encoding="utf-8", request=scrapy.Request(start)
        )

        followed = [found for found in spider.parse(response) if isinstance(found, scrapy.Request)]

        assert len(followed) == is_own


class TestFolders:
    def test_symbolic_links_lead_nowhere_outside_and_every_page_is_read_once(
        self, settings: dict[str, Any], tmp_path: Path
    ) -> None:
        outside, folder = tmp_path / "outside", tmp_path / "folder"
        write(outside, {"secret.html": WORDS, "no-ending": OTHER, "index.html": WORDS})
        targets = (
            "alias.html", "leak.html", "out/secret.html", "out/", "in/page.html", "round/round/a.html",
            "loop.html", "leak-no-ending", "own/",
        )  # fmt: skip
        write(folder, {"a.html": links(*targets), "sub/page.html": OTHER, "own/page.html": WORDS})
        (folder / "leak.html").symlink_to(outside / "secret.html")
        (folder / "leak-no-ending").symlink_to(outside / "no-ending")
        (folder / "out").symlink_to(outside)
        (folder / "alias.html").symlink_to("sub/page.html")
        (folder / "in").symlink_to("sub")
        (folder / "round").symlink_to(folder)
        (folder / "loop.html").symlink_to("loop.html")
        (folder / "own" / "index.html").symlink_to(outside / "index.html")
        (tmp_path / "link").symlink_to(folder)

        for start in (folder, folder / "a.html", tmp_path / "link"):
            done = crawl(SiteSpider, settings, url=str(start))

            found = [folder / "a.html", folder / "sub" / "page.html"]
            found += [] if start == folder / "a.html" else [folder / "own" / "page.html"]
            assert urls(done) == sorted(path.as_uri() for path in found)
            assert "log_count/ERROR" not in done.stats

    def test_what_cannot_be_read_or_named_stops_nothing(
        self, settings: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        odd = ("x" * 300 + ".html", "a%00.html", "%ff.html", "next.html")
        write(
            tmp_path / "f",
            {"a.html": links(*odd), "next.html": WORDS, "sub/no-ending": OTHER, "z.html": OTHER},
        )
        os.mkfifo(tmp_path / "f" / "pipe")
        unreadable = tmp_path / "f" / "sub" / "no-ending"
        real = Path.open

        def opened(path: Path, *rest: Any, **more: Any) -> Any:
            if path == unreadable:  # root may read everything
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, *rest, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "open", opened)
            done = crawl(SiteSpider, settings, url=str(tmp_path / "f"))

        assert len(urls(done)) == 3
        assert "log_count/ERROR" not in done.stats
        assert any("no-ending' cannot be read: Permission denied" in r.getMessage() for r in caplog.records)

    def test_a_link_is_looked_up_once_however_often_it_is_met(
        self, settings: dict[str, Any], tmp_path: Path
    ) -> None:
        names = [f"{number}.html" for number in range(30)]
        menu = links(*names, *(f"missing/{number}.html" for number in range(30)), "../outside.html")
        write(tmp_path / "f", {name: f"{menu} page {name}" for name in names})
        write(tmp_path, {"outside.html": WORDS})
        looked_up: list[str] = []
        real = os.lstat

        def counted(path: Any, *rest: Any, **more: Any) -> Any:
            looked_up.append(os.fspath(path))
            return real(path, *rest, **more)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "lstat", counted)  # what realpath asks for every part of a path
            done = crawl(SiteSpider, settings, url=str(tmp_path / "f" / "0.html"))

        assert len(done.items) == len(names)
        ours = [path for path in looked_up if path.endswith(".html") and not path.endswith("/f/0.html")]
        assert set(map(looked_up.count, ours)) == {1}
        assert len(ours) == 29 + 30 + 1
