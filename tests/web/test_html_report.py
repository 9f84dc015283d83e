"""The report as one HTML file: what it says, and that it asks for nothing else."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crawler.spiders.site import SiteSpider
from neardup.cli.main import main
from neardup.detection.rule import Rule
from neardup.errors import ConfigurationError
from neardup.fingerprint.scheme import Scheme
from neardup.store.endless_spaces import EndlessSpace, as_text
from neardup.store.reports import Share
from neardup.store.store import Store
from neardup.store.summary import summarise
from neardup.web import html_report
from tests.support.crawling import crawl
from tests.support.places import PAGES, ROOT
from tests.support.stores import taught, upgraded, write
from tests.support.verdicts import duplicate, page
from tests.support.web import Elements

HOSTILE = "http://evil.example/<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"


def asks_for_nothing(text: str) -> bool:
    """Whether a browser that opens the page fetches nothing and runs nothing."""
    loads = {"src", "srcset", "poster", "background", "data", "action", "style"}
    return not any(
        tag in {"script", "link", "img", "iframe", "object", "base"}
        or any(name in loads or name.startswith("on") for name in attributes)
        for tag, attributes in Elements(text).met
    ) and not re.search(r"url\(|@import", text)


def commands_told() -> set[str]:
    """The commands in the templates, with names in capitals for what a reader puts there."""
    texts = [path.read_text("utf-8") for path in Path(html_report.__file__).parent.glob("templates/*.html")]
    return {command for text in texts for command in re.findall(r"more\('(neardup [^'%]*)'\)", text)}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(upgraded(f"sqlite:///{tmp_path}/n.db"), scheme=str(Scheme()))


def report_of(store: Store, tmp_path: Path) -> str:
    html_report.write(store, Rule(7), tmp_path / "report.html")
    return (tmp_path / "report.html").read_text("utf-8")


@pytest.mark.slow
def test_a_crawl_writes_it_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
        "NEARDUP_REPORT": str(path),
    }
    done = crawl(SiteSpider, settings, url=str(PAGES))
    text = path.read_text("utf-8")

    assert asks_for_nothing(text)
    assert f"{done.neardup('duplicates')} of 56 pages" in text
    assert "clang-16" in text
    assert text.count('<svg class="chart"') == 5
    assert f">{done.neardup('requests')} requests made<" in text
    assert list(tmp_path.glob(".report*")) == []


def test_the_command_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: Store) -> None:
    write(
        store,
        page(1, "http://a.example/1"),
        duplicate(2, "http://a.example/2", 1),
        rules=taught(None, "a.example"),
    )
    store.close()
    path = tmp_path / "r.html"

    assert main(["report", "--database", f"sqlite:///{tmp_path}/n.db", "--html", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: {path.stat().st_size:,} bytes\n"
    text = path.read_text("utf-8")
    assert "1 of 2 pages" in text
    assert "parameter sid" in text
    assert "<code>neardup rules</code>" in text
    assert (
        main(["report", "--database", f"sqlite:///{tmp_path}/n.db", "--html", str(path), "--host", "x"]) == 1
    )
    assert "the whole store" in capsys.readouterr().err


def test_parameters_of_urls(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: Store) -> None:
    assert "Parameters of URLs" not in report_of(store, tmp_path)
    write(
        store,
        page(1, "http://a.example/1"),
        duplicate(2, "http://a.example/1?sid=2&<script>=3", 1),
        page(3, "http://b.example/1?id=7"),
        page(4, "http://c.example/1"),
    )
    text = report_of(store, tmp_path)
    _, of_hosts = summarise(store, Rule(7))

    assert asks_for_nothing(text)
    for name in ("sid", "&lt;script&gt;", "id", "(none)"):
        assert f'<th scope="row"><bdi class="url">{name}</bdi></th>' in text
    assert of_hosts["a.example"].parameters.rows == [
        Share("<script>", 1, 1), Share("sid", 1, 1), Share("", 1, 0)
    ]  # fmt: skip
    assert of_hosts["b.example"].parameters.rows == [Share("id", 1, 0)]
    assert of_hosts["c.example"].parameters.total == 0
    store.close()

    database = f"sqlite:///{tmp_path}/n.db"
    assert main(["report", "--database", database, "--limit", "2", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["by_parameter"]
    counts = {"pages": 1, "distinct": 0, "duplicates": 1, "rate": 100.0}
    assert told == [{"host": "a.example", "parameter": name, **counts} for name in ("<script>", "sid")]
    assert main(["report", "--database", database, "--limit", "2"]) == 0
    assert "By parameter of the URL (the 2 with most duplicates, of 4)" in capsys.readouterr().out
    assert main(["report", "--database", database, "--host", "c.example"]) == 0
    assert "By parameter" not in capsys.readouterr().out


@pytest.mark.parametrize("command", sorted(commands_told()))
def test_commands_that_tell_more_are_commands(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, *arguments = command.replace("DATE", "2026-11-28").split()

    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--help"])
    assert ended.value.code == 0, capsys.readouterr().err


def test_canonical_tags(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: Store) -> None:
    assert "Canonical tags" not in report_of(store, tmp_path)
    write(store, page(1, "http://a.example/1"), page(2, "http://a.example/2", declared_url=HOSTILE))
    text = report_of(store, tmp_path)
    store.close()

    assert asks_for_nothing(text)
    assert '<th scope="row">names a page that was not compared</th><td class="n">1</td>' in text
    database = f"sqlite:///{tmp_path}/n.db"
    assert main(["report", "--database", database, "--format", "json"]) == 0
    says = {"says": "names a page that was not compared", "pages": 1}
    urls = {"example_url": "http://a.example/2", "named_url": HOSTILE}
    assert json.loads(capsys.readouterr().out)["canonical_tags"] == [says | urls]
    assert main(["report", "--database", database, "--until", "2020-01-01"]) == 0
    assert "Canonical tags" not in capsys.readouterr().out


def test_endless_spaces(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: Store) -> None:
    assert "Endless spaces" not in report_of(store, tmp_path)
    left = [
        EndlessSpace(
            host="a.example", canonical_url=HOSTILE, parameter=None, links=2, last_url="http://a.example/9"
        ),
        EndlessSpace(
            host="b.example", canonical_url=None, parameter="<b>", links=1, last_url="http://b.example/?<b>=9"
        ),
        EndlessSpace(
            host="c.example", canonical_url=None, parameter=None, links=0, last_url="http://c.example/9"
        ),
    ]
    crawl_id = store.begin_crawl(spider="s", settings={})
    write(store, page(1, "http://a.example/1"), page(2, "http://b.example/1"), crawl=crawl_id)
    store.finish_crawl(crawl_id, reason="finished", counts={"endless_spaces": as_text(left)})
    text = report_of(store, tmp_path)
    _, of_hosts = summarise(store, Rule(7))
    store.close()

    assert [row.space for row in of_hosts["b.example"].endless_spaces.rows] == left[1:2]
    assert asks_for_nothing(text)
    for told in ("the parameter <code><bdi>&lt;b&gt;</bdi></code>", "a page that was forgotten"):
        assert f"<td>{told}</td>" in text
    database = f"sqlite:///{tmp_path}/n.db"
    assert main(["report", "--database", database, "--host", "b.example", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["endless_spaces"]
    assert row == {
        "host": "b.example",
        "parameter": "<b>",
        "copies_of": None,
        "links": 1,
        "crawl": crawl_id,
        "last_url": "http://b.example/?<b>=9",
    }
    assert main(["report", "--database", database, "--limit", "1"]) == 0
    assert "no further (the 1 of the newest crawls, of 3)" in capsys.readouterr().out
    assert main(["report", "--database", database, "--since", "2020-01-01"]) == 0
    assert "Endless spaces" not in capsys.readouterr().out


def test_of_an_empty_store(store: Store, tmp_path: Path) -> None:
    text = report_of(store, tmp_path)

    assert asks_for_nothing(text)
    assert "There are no pages in this store yet" in text


def test_what_strangers_wrote_is_text(store: Store, tmp_path: Path) -> None:
    crawl_id = store.begin_crawl(spider="<script>spider</script>", settings={})
    write(
        store,
        page(1, HOSTILE),
        duplicate(2, "javascript:alert(3)", 1),
        page(3, "http://a.example/مرحبا/中文"),
        crawl=crawl_id,
        flags=[1],
    )
    text = report_of(store, tmp_path)

    assert asks_for_nothing(text)
    links = [attributes.get("href") or "" for tag, attributes in Elements(text).met if tag == "a"]
    assert HOSTILE.split("/<", maxsplit=1)[0] in " ".join(links)
    assert [link for link in links if not link.startswith("http://")] == []
    assert "مرحبا/中文" in text


@pytest.mark.slow
def test_no_store_makes_it_large(store: Store, tmp_path: Path) -> None:
    long = "x<" * 20_000
    crawls = [store.begin_crawl(spider="s" * 255, settings={}) for _ in range(40)]
    for number, crawl_id in enumerate(crawls):
        first = 10 * number + 1
        host = f"http://{number}.example/{long}"
        write(
            store,
            page(first, f"{host}/{number}"),
            duplicate(first + 1, f"{host}/{number}/b", first),
            duplicate(first + 2, f"http://other.example/{long}/{number}", first),
            crawl=crawl_id,
            flags=[first],
        )
    text = report_of(store, tmp_path)

    assert len(text.encode()) < 300_000
    assert "The 20 largest of 41 hosts." in text
    assert "The 30 newest of 40 crawls." in text


def test_where_it_cannot_be_written(store: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigurationError, match="NEARDUP_REPORT must name a file in a folder that is there"):
        crawl(SiteSpider, {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_REPORT": "no/r.html"}, url=str(PAGES))
    path = tmp_path / "r.html"
    (tmp_path / "r.html.writing").mkdir()
    settings = {
        "ADDONS": {"neardup.Addon": 500},
        "NEARDUP_DATABASE_URL": f"sqlite:///{tmp_path}/n.db",
        "NEARDUP_REPORT": str(path),
    }
    with caplog.at_level(logging.ERROR):
        done = crawl(SiteSpider, settings, url=str(PAGES / "apache"))

    assert "r.html cannot be written" in caplog.text
    assert done.stats["finish_reason"] == "finished"


@pytest.mark.slow
def test_without_the_extra(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from neardup.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    upgraded(f"sqlite:///{tmp_path}/n.db")
    arguments = ["report", "--database", f"sqlite:///{tmp_path}/n.db", "--html", str(tmp_path / "r.html")]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "needs jinja2; install it with pip install 'neardup[web]'" in done.stderr


def test_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: Store) -> None:
    write(store, page(1, "http://a.example/1|2"), duplicate(2, "http://a.example/<b>*", 1))
    store.close()

    assert main(["report", "--database", f"sqlite:///{tmp_path}/n.db", "--format", "markdown"]) == 0
    printed = capsys.readouterr().out
    assert (
        "### Largest clusters\n\n| duplicates | canonical_url | example_url |\n| --- | --- | --- |\n"
        in printed
    )
    assert r"| 1 | http://a.example/1\|2 | http://a.example/\<b\>\* |" in printed
    assert "Flagged" not in printed
