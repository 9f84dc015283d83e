"""The ready project as people run it: ``scrapy crawl site`` in processes of their own."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from neardup.detection.detector import DetectorOptions
from neardup.detection.known_pages import PAGES_PER_CRAWL
from neardup.detection.rule import Evidence
from neardup.fingerprint import hamming, sketch
from neardup.text.features import Features
from tests.support.crawling import Page
from tests.support.killing import check_tables
from tests.support.places import PAGES, ROOT
from tests.support.sites.cms import Forum
from tests.support.sites.served import serve_site

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.crawling import Site

STARTS = [f"clang-{version}/index.html" for version in (13, 14, 15, 16)]


@dataclass
class Run:
    """Files of a crawl: its database, its items, and the log it wrote."""

    folder: Path
    log: str = ""

    @property
    def database(self) -> Path:
        return self.folder / "n.db"

    def start(self, *arguments: str, python: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        command = [sys.executable, *python, "-m", "scrapy", "crawl", "site", *arguments]
        environment = {**os.environ, "NEARDUP_DATABASE_URL": f"sqlite:///{self.database}"}
        environment.pop("SCRAPY_SETTINGS_MODULE", None)
        return subprocess.Popen(
            [*command, "-O", f"{self.folder}/items.jsonl", "-s", "REMOTE_CONTROL_ENABLED=False"],
            cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> Run:
        _, self.log = process.communicate(timeout=120)
        if self.database.exists():
            check_tables(f"sqlite:///{self.database}")
        return self

    def crawl(self, *arguments: str, python: tuple[str, ...] = ()) -> Run:
        process = self.start(*arguments, python=python)
        self.finish(process)
        assert process.returncode == 0, self.log
        return self

    @property
    def items(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "items.jsonl").read_text().splitlines()]

    def stat(self, name: str) -> int:
        found = re.search(rf"'neardup/{name}': (\d+)", self.log)
        return int(found[1]) if found else 0

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.database)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def verdicts(self) -> dict[str, tuple[str, str | None, int | None]]:
        return {
            item["url"]: (item["verdict"], item["canonical_url"], item["distance"]) for item in self.items
        }


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


@pytest.fixture
def manuals(site: Site) -> Site:
    site.add_folder(PAGES)
    return site


@pytest.mark.slow
def test_folder(run: Run) -> None:
    run.crawl("-a", f"url={PAGES}")

    assert len(run.items) == 56
    stored = run.rows("SELECT id, hash_value, sketch, kind, actual_url FROM simhash_values ORDER BY id")
    found = run.rows("SELECT duplicate_hash_id, actual_hash_id, evidence FROM duplicate_values")
    relations = {duplicate: actual for duplicate, actual, _ in found}
    said = {url: item[0] for url, item in run.verdicts().items()}
    assert said.keys() == {row[4] for row in stored}
    # An item has its verdict before the site is known well.
    assert sum(said[row[4]] != row[3] for row in stored) <= run.stat("judged_again")
    # The exact answer: every page, in the order they were judged, against all canonical pages before it.
    values = {row[0]: np.uint64(row[1] % 2**64) for row in stored}
    sketches = {row[0]: sketch.from_bytes(row[2]) for row in stored}
    rule = DetectorOptions().make_rule(Features())
    canonical: list[int] = []
    exact = set()

    def matches(page: int, others: list[int]) -> bool:
        distances = hamming.distances(np.array([values[other] for other in others]), int(values[page]))
        estimates = sketch.compact_estimates(np.stack([sketches[other] for other in others]), sketches[page])
        return bool(rule.are_matches(distances, estimates).any())

    for page in values:
        if canonical and matches(page, canonical):
            exact.add(page)
        else:
            canonical.append(page)
    assert len(exact) >= 30
    assert len(relations.keys() & exact) >= 0.95 * len(exact)
    # Pages of one headline may be less alike; here, these are versions of one page of the manual.
    path_in_manual = {row[0]: row[4].removeprefix(PAGES.as_uri()).split("/", 2)[2] for row in stored}
    for page, other, evidence in found:
        if not matches(page, [other]):
            assert evidence in {Evidence.HEADLINE, Evidence.RARE}
            assert path_in_manual[page] == path_in_manual[other]
    assert not relations.keys() & set(relations.values())


@pytest.mark.slow
def test_http_along_the_links(run: Run, manuals: Site) -> None:
    manuals.pages["/robots.txt"] = Page(b"User-agent: *\nDisallow: /clang-15/FAQ.html\n")
    run.crawl("-a", "url=" + ",".join(f"{manuals.url}/{start}" for start in STARTS))

    requested = Counter(manuals.requested)
    assert requested["/clang-15/FAQ.html"] == 0
    assert requested["/clang-16/FAQ.html"] == 1
    assert not any(path.startswith("/apache") for path in requested)
    assert all(item["url"].startswith(manuals.url) for item in run.items)
    kinds = Counter(item["verdict"] for item in run.items)
    assert kinds["duplicate"] >= 25
    assert run.stat("links_deferred") > 0
    assert run.stat("links_withheld") == 0
    assert "neardup: summary" in run.log


@pytest.mark.slow
def test_what_only_a_duplicate_links_to_is_asked_for_last(run: Run, manuals: Site) -> None:
    mirror = manuals.pages["/clang-13/FAQ.html"].body
    manuals.pages["/mirror/FAQ.html"] = Page(
        mirror.replace(b"</body>", b'<a href="/mirror/only.html">x</a></body>')
    )
    manuals.add("/mirror/only.html", " ".join(f"w{i}" for i in range(99)))
    manuals.add("/", " ".join(f"v{i}" for i in range(99)), "/clang-13/FAQ.html", "/mirror/FAQ.html")
    settings = ["-s", "SCHEDULER_MEMORY_QUEUE=scrapy.squeues.FifoMemoryQueue", "-s", "CONCURRENT_REQUESTS=1"]

    run.crawl("-a", f"url={manuals.url}/", *settings)

    assert "/mirror/FAQ.html" in manuals.requested
    assert manuals.requested[-1] == "/mirror/only.html"


@pytest.mark.slow
def test_loss_budget_ends_the_crawl(run: Run) -> None:
    """With every Scrapy: the audit asks the scheduler how many requests are left."""
    # The sample is drawn at random. A budget of 0.2 ends one crawl in some forty only with its last request.
    with serve_site(Forum(200)) as served:
        run.crawl("-a", f"url={served.start}", "-s", "NEARDUP_LOSS_BUDGET=0.5", "-s", "DOWNLOAD_DELAY=0")

    assert "'finish_reason': 'neardup_loss_budget'" in run.log
    assert run.stat("audit/left") > 0
    assert run.stat("failures") == 0


@pytest.mark.slow
def test_second_crawl_over_the_same_database(run: Run) -> None:
    first = run.crawl("-a", f"url={PAGES}").verdicts()
    # An item has the verdict of its time. Some are corrected by the end, by the order of the pages.
    kinds = dict(run.rows("SELECT actual_url, kind FROM simhash_values"))
    expected = {url: "unchanged" if kind == "new" else kind for url, kind in kinds.items()}
    # The second crawl knows more of the site, so the evidence may be another.
    columns = "actual_hash_id, duplicate_hash_id, percentage, hamming_distance, resemblance, found_at"
    relations = run.rows(f"SELECT {columns} FROM duplicate_values ORDER BY id")

    second = run.crawl("-a", f"url={PAGES}").verdicts()

    assert run.stat("new") == 0
    assert run.stat("unchanged") == list(expected.values()).count("unchanged") >= 20
    assert {url: verdict for url, (verdict, *_) in second.items()} == expected
    assert len([url for url in first if first[url][1:] == second[url][1:]]) >= len(first) - 3
    assert run.rows(f"SELECT {columns} FROM duplicate_values ORDER BY id") == relations
    assert run.rows("SELECT COUNT(*), COUNT(DISTINCT url_key) FROM simhash_values") == [(56, 56)]
    assert run.rows("SELECT COUNT(*) FROM crawls WHERE finish_reason = 'finished'") == [(2,)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "loop",
    [
        [],
        ["-s", "TWISTED_REACTOR_ENABLED=False"],
        ["-s", "TWISTED_REACTOR=twisted.internet.selectreactor.SelectReactor"],
    ],
    ids=["asyncio reactor", "no reactor", "select reactor"],
)
def test_every_event_loop_gives_the_same_verdicts_without_deprecation(run: Run, loop: list[str]) -> None:
    one_by_one = ["-s", "CONCURRENT_REQUESTS=1"]
    warn = ("-W", "error::DeprecationWarning:neardup", "-W", "always")

    run.crawl("-a", f"url={PAGES}", *one_by_one, *loop, python=warn)

    assert len(run.items) == 56
    assert Counter(item["verdict"] for item in run.items)["duplicate"] == 32
    assert "ScrapyDeprecationWarning" not in run.log
    assert "ResourceWarning" not in run.log
    assert "Traceback" not in run.log


@pytest.mark.slow
def test_stopped_crawl_goes_on_where_it_was(run: Run, manuals: Site) -> None:
    arguments = [
        "-a",
        "url=" + ",".join(f"{manuals.url}/{start}" for start in STARTS),
        "-s",
        f"JOBDIR={run.folder}/job",
    ]
    slowly = ["-s", "DOWNLOAD_SLOTS={}", "-s", "DOWNLOAD_DELAY=0.1", "-s", "NEARDUP_ACTION=record"]
    process = run.start(*arguments, *slowly)
    while len(manuals.requested) < 15 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    run.finish(process)
    stored_before = run.rows("SELECT COUNT(*) FROM simhash_values")[0][0]
    reported = run.stat("pages")
    assert "Received SIGINT, shutting down gracefully" in run.log
    assert 0 < stored_before == reported < 48

    run.crawl(*arguments, "-s", "NEARDUP_ACTION=record")

    # 12 pages of each of the four manuals, once each; what was stored before the stop has not been lost or
    # doubled.
    assert run.rows("SELECT COUNT(*), COUNT(DISTINCT url_key) FROM simhash_values") == [(48, 48)]
    assert run.rows("SELECT COUNT(*) FROM simhash_values WHERE crawl_id = 1") == [(stored_before,)]
    canonical = run.rows(
        "SELECT COUNT(*) FROM duplicate_values d"
        " JOIN duplicate_values c ON c.duplicate_hash_id = d.actual_hash_id"
    )
    assert canonical == [(0,)]


@pytest.mark.slow
def test_killed_crawl_leaves_a_consistent_database(run: Run, manuals: Site) -> None:
    process = run.start(
        "-a", f"url={manuals.url}/{STARTS[0]}", "-s", "DOWNLOAD_SLOTS={}", "-s", "DOWNLOAD_DELAY=0.3"
    )
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if run.database.exists() and _count_or_none(run):
            break
        time.sleep(0.05)
    process.kill()
    run.finish(process)

    assert run.rows("PRAGMA integrity_check") == [("ok",)]
    assert run.rows("SELECT finish_reason FROM crawls") == [(None,)]
    before = run.rows("SELECT COUNT(*) FROM simhash_values")[0][0]
    assert before > 0
    run.crawl("-a", f"url={manuals.url}/{STARTS[0]}")
    assert run.rows("SELECT COUNT(*), COUNT(DISTINCT url_key) FROM simhash_values") == [(12, 12)]


def _count_or_none(run: Run) -> int:
    try:
        return int(run.rows("SELECT COUNT(*) FROM simhash_values")[0][0])
    except sqlite3.OperationalError:  # the tables are not made yet
        return 0


@pytest.mark.slow
def test_two_crawls_at_once_on_one_database(run: Run, tmp_path: Path) -> None:
    others = [Run(tmp_path / name) for name in "ab"]
    for other in others:
        other.folder.mkdir()
        (other.folder / "n.db").symlink_to(run.database)

    processes = [other.start("-a", f"url={PAGES}") for other in others]
    for other, process in zip(others, processes, strict=True):
        other.finish(process)
        assert process.returncode == 0, other.log
        assert "Traceback" not in other.log
        assert other.stat("pages") == len(other.items) == 56
        assert other.stat("rows_rejected") == 0

    assert run.rows("SELECT COUNT(*), COUNT(DISTINCT url_key) FROM simhash_values") == [(56, 56)]
    assert {row[0] // PAGES_PER_CRAWL for row in run.rows("SELECT id FROM simhash_values")} <= {1, 2}
    assert run.rows("PRAGMA foreign_key_check") == []


@pytest.mark.slow
class TestStart:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "nothing to crawl: give -a url=URL, FOLDER or FILE"),
            (
                ["-a", "url=/no/such/folder"],
                "'/no/such/folder' is neither an http(s) URL nor a folder or file",
            ),
            (["-a", "url=ftp://a.example/"], "is neither an http(s) URL"),
            (["-a", f"url={PAGES}", "-s", "NEARDUP_ACTION=ignore"], "NEARDUP_ACTION must be one of"),
        ],
    )
    def test_what_cannot_work_says_why_and_fails(self, run: Run, arguments: list[str], message: str) -> None:
        process = run.start(*arguments)
        run.finish(process)

        assert message in run.log
        assert process.returncode != 0
        assert "Spider opened" not in run.log

    @pytest.mark.parametrize(
        "url",
        ["postgresql://user:geheim@127.0.0.1:1/d", "mysql://user:geheim@127.0.0.1:1/d"],
        ids=["postgresql", "mysql"],
    )
    def test_database_away_fails_before_the_first_request_and_hides_the_password(
        self, run: Run, url: str
    ) -> None:
        process = run.start("-a", f"url={PAGES}", "-s", f"NEARDUP_DATABASE_URL={url}")
        run.finish(process)

        assert process.returncode != 0
        assert "check that the server runs" in run.log
        assert "geheim" not in run.log
        assert "Spider opened" not in run.log


@pytest.mark.slow
def test_scrapy_shell_works_in_a_project_with_the_addon(run: Run) -> None:
    page = (PAGES / "clang-13" / "FAQ.html").as_uri()
    command = [sys.executable, "-m", "scrapy", "shell", page, "-c", "response.css('title::text').get()"]
    environment = {**os.environ, "NEARDUP_DATABASE_URL": f"sqlite:///{run.database}"}
    environment.pop("SCRAPY_SETTINGS_MODULE", None)

    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)

    assert "Frequently Asked Questions" in done.stdout, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_depth_limit(run: Run, manuals: Site) -> None:
    manuals.add("/0", " ".join(f"a{i}" for i in range(50)), "/1")
    manuals.add("/1", " ".join(f"b{i}" for i in range(50)), "/2")
    manuals.add("/2", " ".join(f"c{i}" for i in range(50)))

    run.crawl("-a", f"url={manuals.url}/0", "-s", "DEPTH_LIMIT=1")

    assert [item["url"].rpartition("/")[2] for item in run.items] == ["0", "1"]


@pytest.mark.slow
def test_page_limit(run: Run) -> None:
    run.crawl("-a", f"url={PAGES}", "-s", "CLOSESPIDER_PAGECOUNT=4", "-s", "CONCURRENT_REQUESTS=1")

    assert "closespider_pagecount" in run.log
    assert 4 <= len(run.items) < 56
    assert run.rows("SELECT COUNT(*) FROM simhash_values") == [(len(run.items),)]


HOSTILE_TITLES = {
    "formula": "=HYPERLINK(&quot;http://evil.example/&quot;)",
    "plus": "+1",
    "at": "@SUM(1)",
    "minus": "-1+1",
    "hidden": "\x1b=1+1",
    "escape": "Red \x1b[31malert\x9b2J",
    "plain": "Ü – نمی\u200cخواهم, 1 = 1",
}
"""Titles that a spreadsheet would run or a terminal obey, and one that is only foreign."""


@pytest.mark.slow
def test_titles_of_strangers(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir()
    for name, title in HOSTILE_TITLES.items():
        (folder / f"{name}.html").write_text(
            f'<meta charset="utf-8"><title>{title}</title><p>{name} stands here</p>'
        )

    run.crawl("-a", f"url={folder}", "-O", f"{tmp_path}/pages.csv")

    def titles(items: Iterable[dict[str, Any]]) -> dict[str, str]:
        return {Path(item["url"]).stem: item["title"] for item in items}

    written = (tmp_path / "pages.csv").read_text()
    assert all(line.isprintable() for line in written.splitlines())
    assert titles(csv.DictReader(written.splitlines())) == {
        "formula": '\'=HYPERLINK("http://evil.example/")',
        "plus": "'+1",
        "at": "'@SUM(1)",
        "minus": "'-1+1",
        "hidden": "'=1+1",
        "escape": "Red [31malert2J",
        "plain": "Ü – نمی\\u200cخواهم, 1 = 1",
    }
    # Items as data are what the pages say.
    assert titles(run.items) == {
        "formula": '=HYPERLINK("http://evil.example/")',
        "plus": "+1",
        "at": "@SUM(1)",
        "minus": "-1+1",
        "hidden": "=1+1",
        "escape": "Red [31malert2J",
        "plain": "Ü – نمی\u200cخواهم, 1 = 1",
    }
