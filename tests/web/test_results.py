"""Answers of search engines without near-duplicates: what goes in, what comes out, and who may ask."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from neardup.cli.main import main
from neardup.detection.detector import DetectorOptions
from neardup.detection.rule import VERIFY
from neardup.store.store import Store
from neardup.web.results import Cleaner, application
from neardup.web.security import MOST_BODY_BYTES, Secret
from neardup.web.server import listen
from tests.support.web import TOKEN, Browser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

TEXT = "the quick brown fox jumps over a lazy dog near the old river bank"


def cleaner(store: Store | None = None, **more: Any) -> Cleaner:
    reader = DetectorOptions().make_reader()
    given = {"verify": VERIFY, "keep": 10, "url_field": "url", "text_field": None, **more}
    return Cleaner(store=store, reader=reader, **given)


@pytest.fixture
def urls(filled: str) -> list[str]:
    """Of stored pages of a manual in two versions, page by page."""
    engine = sa.create_engine(filled)
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT actual_url FROM simhash_values").scalars().all()
    engine.dispose()
    return sorted((url for url in found if "/clang-" in url), key=lambda url: url.split("/")[::-1])


@pytest.fixture
def engine(filled: str) -> Iterator[Browser]:
    """Asks for results by what a crawl has stored."""
    with Store.open(filled, scheme=None, create=False) as store:
        browser = Browser(application(cleaner(store), None), known=False)
        yield browser
        browser.close()


def test_elasticsearch_by_the_store(engine: Browser, urls: list[str]) -> None:
    hits = [{"_id": f"d{place}", "_score": 1.5, "_source": {"url": url}} for place, url in enumerate(urls)]
    hits.append({"_id": "unknown", "_source": {"url": "http://nobody.example/"}})
    sent = {"took": 3, "hits": {"total": {"value": 99}, "hits": hits}}
    answered = engine.ask("POST", "/results", params={"keep": "100"}, json=sent).json()

    kept = answered["hits"]["hits"]
    assert answered["took"] == 3
    assert answered["hits"]["total"] == {"value": 99}
    assert {**kept[0], "neardup": None} == {**hits[0], "neardup": None}
    assert kept[0]["neardup"] == {"hides": ["d1"]}  # the other version
    assert kept[-1]["neardup"] == {"hides": []}
    hidden = sum(len(hit["neardup"]["hides"]) for hit in kept)
    assert hidden >= 3
    assert answered["neardup"] == {
        "results": len(hits), "kept": len(hits) - hidden, "hidden": hidden, "unknown": 1,
    }  # fmt: skip


def test_solr_by_the_id(engine: Browser, urls: list[str]) -> None:
    sent = {"response": {"numFound": 2, "docs": [{"id": url} for url in urls[:2]]}}
    answered = engine.ask("POST", "/results", json=sent).json()

    assert answered["response"]["docs"] == [{"id": urls[0], "neardup": {"hides": [urls[1]]}}]


@pytest.mark.parametrize(
    "hits",
    [
        {"hits": {"hits": [{"_source": {"body": TEXT}}, {"fields": {"body": [TEXT, ""]}}, {"_source": {}}]}},
        {"response": {"docs": [{"body": TEXT}, {"body": [TEXT[:20], TEXT[20:]]}, {"body": 7}]}},
    ],
)
def test_texts_without_a_store(hits: dict[str, Any]) -> None:
    answered = json.loads(cleaner(text_field="body").clean(json.dumps(hits).encode(), 10))

    assert answered["neardup"]["unknown"] == 1
    (kept, _) = answered.get("hits", {}).get("hits") or answered["response"]["docs"]
    assert kept["neardup"] == {"hides": [1]}  # by its place, where there is no id


def test_text_over_the_limits_is_unknown() -> None:
    many = " ".join(map(str, range(DetectorOptions().max_words + 1)))
    sent = json.dumps({"response": {"docs": [{"body": many}, {"body": TEXT}]}}).encode()

    assert json.loads(cleaner(text_field="body").clean(sent, 10))["neardup"]["unknown"] == 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no JSON", "the answer is no JSON"),
        (b"\xff", "the answer is no JSON"),
        (b"[" * 100_000, "the answer is no JSON"),
        (b"[]", "no list of results"),
        (b'{"hits": {"hits": {}}}', "no list of results"),
        (b'{"hits": {"hits": [1]}}', "result 0 of the answer is no object"),
        (b'{"hits": {"hits": [%s{}]}}' % (b"{}," * 10_000), "10,001 results; 10,000 can be compared"),
    ],
    ids=range(7),
)
def test_what_is_no_answer(engine: Browser, body: bytes, message: str) -> None:
    refused = engine.ask("POST", "/results", content=body)

    assert refused.status_code == 400
    assert message in refused.json()["error"]


@pytest.mark.parametrize("keep", ["0", "-1", "ten", "10001", "9" * 5000])
def test_keep_that_is_no_number(engine: Browser, keep: str) -> None:
    refused = engine.ask("POST", "/results", params={"keep": keep}, json={"hits": {"hits": []}})

    assert refused.status_code == 400
    assert "keep must be a number from 1 to 10000" in refused.json()["error"]


def test_who_may_ask_and_how_much(engine: Browser) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(MOST_BODY_BYTES // 1_000_000 + 1):
            yield b" " * 1_000_000

    path = "/results"
    assert engine.get(path).status_code == 404
    assert engine.ask("POST", path, headers={"Host": "evil.example"}).status_code == 421
    assert engine.ask("POST", path, headers={"Origin": "http://evil.example"}).status_code == 403
    assert engine.ask("POST", path, content=endless()).status_code == 413


def test_password() -> None:
    stranger = Browser(application(cleaner(), Secret(TOKEN, is_password=True)), known=False)
    sent: dict[str, Any] = {"hits": {"hits": []}}
    asked = {"Authorization": f"Bearer {TOKEN}"}

    assert stranger.ask("POST", "/results", json=sent).status_code == 401
    assert stranger.ask("POST", "/results", json=sent, headers=asked).status_code == 200
    stranger.close()


def test_small_answers_leave_at_once() -> None:
    async def no_delay() -> int:
        told: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            its_socket = writer.get_extra_info("socket")
            told.set_result(its_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listening = listen("127.0.0.1", 0)
        async with await asyncio.start_server(connected, sock=listening):
            _, writer = await asyncio.open_connection(*listening.getsockname())
            delay = await told
            writer.close()
            await writer.wait_closed()
        return delay

    assert asyncio.run(no_delay())


@pytest.mark.slow
def test_command(filled: str, urls: list[str]) -> None:
    server = subprocess.Popen(
        [sys.executable, "-m", "neardup", "serve", "--results", "--database", filled, "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    try:
        told = server.stdout.readline() + server.stdout.readline()
        port = re.search(r"POST http://127\.0\.0\.1:(\d+)/results", told)
        assert port is not None, told
        connection = http.client.HTTPConnection("127.0.0.1", int(port[1]), timeout=30)
        body = json.dumps({"response": {"docs": [{"url": url} for url in urls[:2]]}})
        connection.request("POST", "/results", body)
        answered = json.load(connection.getresponse())
        connection.close()
    finally:
        server.send_signal(signal.SIGINT)
        _, complaints = server.communicate(timeout=30)

    assert answered["response"]["docs"] == [{"url": urls[0], "neardup": {"hides": [1]}}]
    assert (server.returncode, complaints) == (0, "")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--keep", "0"], "keep must be a number from 1 to 10000, not '0'"),
        (["--host", "0.0.0.0"], "--host 0.0.0.0 is open to others: --password-file FILE is needed"),
        (["--port", "0"], "none.db"),
    ],
)
def test_what_the_command_refuses(
    given: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database = ["--database", f"sqlite:///{tmp_path}/none.db"]

    assert main(["serve", "--results", *database, *given]) == 1
    assert message in capsys.readouterr().err


def test_sketches_of_another_scheme(own_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    engine = sa.create_engine(own_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE crawls SET scheme = 'another'")
    engine.dispose()

    assert main(["serve", "--results", "--database", own_url, "--text-field", "body", "--port", "0"]) == 1
    assert "sketches of the scheme another" in capsys.readouterr().err
