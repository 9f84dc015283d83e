"""The command as it serves: browsers that go away, and a cluster of very many pages."""

from __future__ import annotations

import re
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Semaphore, Thread
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import pytest

from neardup.address import key_of
from neardup.cli.main import main
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.fingerprint.scheme import Scheme
from neardup.store.statements import BATCHES_PER_CRAWL
from neardup.web.app import _DO_AT_ONCE
from tests.support.places import ROOT
from tests.support.stores import upgraded

if TYPE_CHECKING:
    from collections.abc import Iterator

_MANY = 60
"""More than the views that Starlette runs at once, fewer than the connections that are served."""

pytestmark = pytest.mark.slow


_PAGES = 250_000


def large_cluster(folder: Path) -> str:
    """A store of a cluster that has very many pages, as a login wall has them."""
    url = upgraded(f"sqlite:///{folder}/large.db")
    scheme, when = str(Scheme()), "2026-01-01 00:00:00.000000"
    first = PAGES_PER_CRAWL + 1
    with closing(sqlite3.connect(f"{folder}/large.db")) as connection:
        connection.create_function("key_of", 1, lambda page: key_of(page.encode()), deterministic=True)
        connection.execute(
            "INSERT INTO crawls"
            " VALUES (1, 'made', ?, ?, 'finished', ?, '{}', ?, 1, ?, 0, 0, 1, 1, 1, 1, 0, NULL, NULL)",
            (when, when, scheme, _PAGES, _PAGES - 1),
        )
        connection.execute(
            f"""
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {_PAGES})
            INSERT INTO simhash_values (id, hash_value, actual_url, url_key, host, scheme, features,
                weak_bits, sketch, text_digest, kind, crawl_id, last_crawl_id, first_seen, last_seen,
                links_withheld, batch_id, headline)
            SELECT {PAGES_PER_CRAWL} + i, 12345, 'http://a.example/' || i, key_of('http://a.example/' || i),
                'a.example', ?1, 100, zeroblob(48), zeroblob(128), 77, iif(i = 1, 'new', 'duplicate'), 1, 1,
                ?2, ?2, 0, {BATCHES_PER_CRAWL} + 1, zeroblob(80)
            FROM n
            """,  # numbers
            (scheme, when),
        )
        connection.execute(
            "INSERT INTO duplicate_values (actual_hash_id, duplicate_hash_id, percentage, hamming_distance,"
            " resemblance, crawl_id, found_at, evidence)"
            " SELECT ?1, id, 100, 0, 1.0, 1, ?2, 'text' FROM simhash_values WHERE id > ?1",
            (first, when),
        )
        connection.commit()
    return url


def peak_megabytes(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1000


@contextmanager
def running(url: str) -> Iterator[tuple[str, str, int]]:
    """The place where the command serves, its token and its process; it ends in order when it is told."""
    arguments = ["web", "--database", url, "--port", "0", "--no-browser", "--private"]
    with subprocess.Popen(
        [sys.executable, "-m", "neardup", *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        server.stdout.readline()
        address = urlsplit(server.stdout.readline().strip())
        yield address.netloc, address.query.partition("=")[2], server.pid
        server.terminate()
        complaints = server.communicate()[1]
    assert (complaints, server.returncode) == ("", 0)


def asked(place: str, token: str, path: str, **form: str) -> str:
    with closing(HTTPConnection(place, timeout=120)) as connection:
        headers = {"Authorization": f"Bearer {token}"}
        if form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request("POST" if form else "GET", path, urlencode(form) if form else None, headers)
        return connection.getresponse().read().decode()


@contextmanager
def silent() -> Iterator[tuple[str, Event, Semaphore]]:
    """A web server that answers when the event is set, not before; its URL, and how many have asked."""
    answering, have_asked = Event(), Semaphore(0)
    page = b"<p>" + b" ".join(b"late%d" % number for number in range(60))
    answer = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + page

    def serve(one: socket.socket) -> None:
        with one:
            one.recv(1 << 16)
            have_asked.release()
            answering.wait()
            one.sendall(answer)

    def accept() -> None:
        while True:
            try:
                Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listening:
        Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/", answering, have_asked
        answering.set()
        listening.shutdown(socket.SHUT_RDWR)


def test_browsers_that_go_away_keep_nobody_from_looking(filled: str) -> None:
    with running(filled) as (place, token, _), silent() as (slow, answering, have_asked):
        form_token = re.findall(r'name="form_token" value="(\w+)"', asked(place, token, "/check"))[0]
        body = urlencode({"form_token": form_token, "url": slow})
        request = (
            f"POST /check HTTP/1.1\r\nHost: {place}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        )
        host, _, port = place.partition(":")
        for _ in range(_MANY):
            with socket.create_connection((host, int(port))) as gone:
                gone.sendall(request.encode())
        assert all(have_asked.acquire(timeout=60) for _ in range(_DO_AT_ONCE))
        clusters = asked(place, token, "/clusters")  # the fetches of those who went away still wait
        assert not answering.is_set()
        answering.set()
        checked = asked(place, token, "/check", form_token=form_token, url=slow)

    assert "<h1>Clusters</h1>" in clusters
    assert "not a duplicate" in checked


def test_a_cluster_of_very_many_pages(tmp_path: Path) -> None:
    url = large_cluster(tmp_path)
    head, member = (key_of(f"http://a.example/{number}".encode()).hex() for number in (1, 7))
    views = (
        "/clusters",
        f"/cluster/{head}",
        f"/cluster/{head}?after={_PAGES - 20}",
        f"/page/{head}",
        f"/pair/{member}/{head}",
        "/search?q=a.example/9",
    )
    with running(url) as (place, token, process):
        shown = {view: asked(place, token, view) for view in views}
        form_token = re.findall(r'name="form_token" value="(\w+)"', shown[views[3]])[0]
        refused = asked(place, token, f"/page/{member}/decide", form_token=form_token, decision="canonical")
        asked(place, token, f"/pair/{member}/{head}/decide", form_token=form_token, decision="different")
        after = asked(place, token, f"/page/{head}")
        peak = peak_megabytes(process)
    report = tmp_path / "report.html"
    assert main(["report", "--database", url, "--html", str(report)]) == 0

    assert "249\u202f999 duplicates" in shown[f"/page/{head}"]
    assert "249\u202f998 duplicates" in after
    assert "at most 100,000 can be given another canonical page" in refused
    assert max(map(len, shown.values())) < 100_000
    assert "Go on" in shown[f"/cluster/{head}"]
    assert "Go on" not in shown[f"/cluster/{head}?after={_PAGES - 20}"]
    assert "249\u202f998 of 250\u202f000 pages" in report.read_text("utf-8")
    assert report.stat().st_size < 200_000
    assert peak < 200  # megabytes
