"""The ``neardup`` command over a store that a real crawl of the real pages has made."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from crawler.spiders.site import SiteSpider
from neardup.cli.main import VERBS, main
from neardup.collection import lookup
from neardup.detection.detector import Detector, DetectorOptions
from neardup.fingerprint.scheme import Scheme
from neardup.store.schema import VERSION_TABLE
from neardup.store.store import Store
from neardup.store.writer import Writer
from tests.support.crawling import crawl, serve
from tests.support.databases import BACKENDS, new_database
from tests.support.detectors import shuffled
from tests.support.places import PAGES
from tests.support.stores import upgraded, write
from tests.support.verdicts import page

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a database with the pages of one crawl over the folder tests/pages."""
    url = f"sqlite:///{tmp_path_factory.mktemp('cli')}/n.db"
    done = crawl(SiteSpider, {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url}, url=str(PAGES))
    assert done.neardup("pages") == 56
    return url


@pytest.fixture(autouse=True)
def environment(stored: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARDUP_DATABASE_URL", stored)
    monkeypatch.delenv("SCRAPY_SETTINGS_MODULE", raising=False)


class Output:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def of(self, *arguments: str, code: int = 0) -> str:
        assert main(arguments) == code
        self.error = ""
        captured = self._capsys.readouterr()
        self.error = captured.err
        return captured.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self.of(*arguments, "--format", "json"))


@pytest.fixture
def output(capsys: pytest.CaptureFixture[str]) -> Output:
    return Output(capsys)


def uri(name: str) -> str:
    return (PAGES / name).as_uri()


class TestReport:
    @pytest.mark.slow
    def test_json_has_all_sections(self, output: Output) -> None:
        report = output.json("report")

        (overview,) = report["overview"]
        assert overview["pages"] == 56
        assert overview["distinct"] == overview["pages"] - overview["duplicates"]
        assert overview["duplicates"] >= 30
        assert overview["rate"] == pytest.approx(100 * overview["duplicates"] / 56)
        by_path = {row["path"]: row for row in report["by_path"]}
        assert by_path[uri("clang-13") + "/"]["duplicates"] == 0
        assert by_path[uri("clang-16") + "/"]["duplicates"] == 12
        assert by_path[uri("apache") + "/"]["duplicates"] == 0
        assert sum(row["duplicates"] for row in report["by_distance"]) == overview["duplicates"]
        assert report["by_crawl"][0]["spider"] == "site"
        assert report["by_crawl"][0]["links_withheld"] == 0
        assert report["clusters"][0]["duplicates"] == 3

    @pytest.mark.slow
    def test_the_same_fingerprint_is_not_called_an_exact_duplicate(self, output: Output) -> None:
        report = output.json("report")

        (of_distance_0,) = [row for row in report["by_distance"] if row["distance"] == 0]
        assert report["overview"][0]["same_fingerprint"] == of_distance_0["duplicates"]
        assert of_distance_0["least_resemblance"] < 1.0

    def test_csv_says_the_same(self, output: Output) -> None:
        report = output.json("report")
        rows = list(csv.DictReader(io.StringIO(output.of("report", "--format", "csv"))))

        for section, records in report.items():
            of_section = [row for row in rows if row["section"] == section]
            assert len(of_section) == len(records)
            for row, record in zip(of_section, records, strict=True):
                assert {name: row[name] for name in record} == {
                    name: "" if value is None else str(value) for name, value in record.items()
                }

    def test_table_names_the_database_and_lines_up(self, output: Output, stored: str) -> None:
        lines = output.of("report").splitlines()

        assert lines[0] == stored.removeprefix("sqlite:///")
        start = lines.index("All pages")
        assert lines[start + 1].split()[:4] == ["pages", "distinct", "duplicates", "rate"]
        assert len(lines[start + 1]) == len(lines[start + 2])

    def test_limit(self, output: Output) -> None:
        assert len(output.json("report", "--limit", "2")["clusters"]) == 2
        assert "(the 2 with most pages, of 5)" in output.of("report", "--limit", "2")

    def test_filters(self, output: Output) -> None:
        of_files = output.json("report", "--host", "")
        assert of_files["overview"][0]["pages"] == 56
        assert {row["requests_saved"] for row in of_files["by_crawl"]} == {None}
        assert {row["links_withheld"] for row in output.json("report")["by_crawl"]} == {0}
        assert output.json("report", "--since", "2020-01-01")["overview"][0]["pages"] == 56
        assert output.json("report", "--until", "2020-01-01T00:00")["overview"][0]["pages"] == 0

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--host", "other.example"], "no page of the host 'other.example' is stored in "),
            (["--html", "r.html", "--format", "json"], "--html writes one HTML file: --format does not go"),
        ],
    )
    def test_what_cannot_be_reported(self, arguments: list[str], message: str, output: Output) -> None:
        output.of("report", *arguments, code=1)

        assert message in output.error

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--since", "yesterday"], "'yesterday' is no time; give one like 2026-11-21"),
            (["--limit", "0"], "'0' is not a whole number of at least 1"),
            (["--since", "0001-01-01T00:00:00+14:00"], "is no time; give one like 2026-11-21"),
            (["--format", "xml"], "invalid choice: 'xml'"),
            (["--database", ""], "the URL is empty; leave the option out for the default database"),
        ],
    )
    def test_wrong_arguments(
        self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            main(["report", *arguments])

        assert message in capsys.readouterr().err


BEYOND = str(2**63)
NUMBERS = (
    ["report", "--limit"],
    ["show", "http://a.example/", "--limit"],
    ["check", "http://a.example/", "--limit"],
    ["collection", "pagerank", "--limit"],
    ["crawls", "share"],
    ["crawls", "remove"],
    ["decisions", "undo"],
)
"""Commands, without the number that they end with."""


@pytest.mark.parametrize("command", NUMBERS)
@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("0", "'0' is not a whole number of at least 1"),
        ("-1", "'-1' is not a whole number of at least 1"),
        (BEYOND, f"{BEYOND} is too large: at most {2**63 - 1}"),
    ],
)
def test_numbers_that_no_database_takes(
    command: list[str], number: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*command, number])

    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", [command for command in NUMBERS if command[0] != "check"])
def test_highest_number_is_taken_by_the_database(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*command, str(2**63 - 1)])

    assert (code, "cannot be used" in capsys.readouterr().err) == (int(command[0] != "report"), False)


@pytest.mark.parametrize("verb", [["web", "--no-browser"], ["serve", "--results"]])
@pytest.mark.parametrize("port", ["99999", "-1", "http"])
def test_ports_that_do_not_exist(verb: list[str], port: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*verb, "--port", port])

    assert f"'{port}' is no port: a whole number from 0 to 65535" in capsys.readouterr().err


def test_decisions_cannot_be_exported_there(output: Output, tmp_path: Path) -> None:
    output.of("decisions", "export", str(tmp_path / "no" / "x.jsonl"), code=1)

    assert "x.jsonl cannot be written: No such file or directory" in output.error


SURELY = {"resemblance": 1.0, "confidence": 1.0, "evidence": "text"}


class TestCheck:
    def test_a_copy_with_another_url(self, output: Output, tmp_path: Path) -> None:
        copy = tmp_path / "copy.html"
        copy.write_bytes((PAGES / "clang-13/FAQ.html").read_bytes())

        (checked,) = output.json("check", str(copy))

        assert checked["url"] == copy.as_uri()
        assert (checked["verdict"], checked["percentage"]) == ("duplicate", 100.0)
        assert checked["resembles"] == [
            {"url": uri("clang-13/FAQ.html"), "distance": 0, "percentage": 100.0} | SURELY
        ]

    def test_an_exact_copy_behind_more_pages_of_the_same_words_than_are_looked_at(
        self, tmp_path: Path, output: Output, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lookup, "MOST_VERIFIED", 2)
        url = f"sqlite:///{tmp_path}/n.db"
        texts = [shuffled(" ".join(f"word{i}" for i in range(60)), seed) for seed in range(9)]
        with Store.open(url, scheme=str(Scheme())) as store:
            crawl_id = store.begin_crawl(spider="s", settings={})
            detector, writer = Detector(DetectorOptions()), Writer(store, crawl_id)
            for number, text in enumerate(texts):
                writer.put(detector.examine_text(f"u{number}", text))
            writer.close()
        page = tmp_path / "page.html"
        page.write_text(f"<p>{texts[7]}")

        (checked,) = output.json("check", "--database", url, str(page))

        assert checked["verdict"] == "duplicate"
        assert checked["resembles"] == [{"url": "u7", "distance": 0, "percentage": 100.0} | SURELY]

    def test_what_a_crawl_would_say(self, output: Output, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/n.db"
        settings = {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": url}
        crawl(SiteSpider, settings, url=f"{PAGES / 'clang-13'},{PAGES / 'apache'}")
        pages = sorted((PAGES / "clang-16").glob("**/*.html"))
        pages.append(tmp_path / "copy.html")
        pages[-1].write_bytes((PAGES / "clang-13/FAQ.html").read_bytes())

        expected = []
        with Store.open(url, scheme=str(Scheme())) as store:
            for path in pages:
                detector = Detector(DetectorOptions())
                detector.restore(store.known_pages())
                store.load_frequencies(detector.verifier.frequencies)
                verdict = detector.examine_html(path.as_uri(), path.read_bytes())
                expected.append((verdict.is_duplicate, verdict.confidence))
        checked = output.json("check", "--database", url, *map(str, pages))

        found = [(one["verdict"] == "duplicate", one["resembles"][0]["confidence"]) for one in checked]
        assert found == expected
        assert len({confidence for _, confidence in expected}) >= 3

    def test_a_page_about_something_else_is_no_duplicate(self, output: Output, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path}/n.db"
        template = " ".join(f"word{i}" for i in range(300))
        with Store.open(url, scheme=str(Scheme())) as store:
            detector = Detector(DetectorOptions(), first_id=1)
            frequencies = detector.verifier.frequencies
            crawl_id = store.begin_crawl(spider="s", settings={})
            writer = Writer(store, crawl_id, frequencies=frequencies)
            writer.put(
                detector.examine_html("http://a.example/1", f"<title>Function alpha</title><p>{template} a")
            )
            writer.put_learned()
            writer.close()
        for title, verdict, evidence in (
            ("Function alpha", "duplicate", "whole"),
            ("Function beta", "not a duplicate", None),
            ("", "duplicate", "whole"),
        ):
            page = tmp_path / "page.html"
            page.write_text(f"<title>{title}</title><p>{template} b")

            (checked,) = output.json("check", "--database", url, str(page))

            assert checked["verdict"] == verdict
            assert checked["resembles"][0]["evidence"] == evidence
        assert "confidence" in output.of("check", "--database", url, str(page))

    def test_nothing_is_stored(self, output: Output, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        page.write_text("<p>" + " ".join(f"w{i}" for i in range(100)))

        for _ in range(2):
            (checked,) = output.json("check", str(page))
            assert checked["verdict"] == "not a duplicate"
            assert len(checked["resembles"]) == 1
            assert checked["resembles"][0]["distance"] > 3
        assert output.json("report")["overview"][0]["pages"] == 56

    def test_a_stored_page_is_not_a_duplicate_of_itself(self, output: Output) -> None:
        (checked,) = output.json("check", uri("clang-13/FAQ.html"))

        assert checked["verdict"].startswith("not a duplicate of another page (stored itself, as new)")
        assert uri("clang-13/FAQ.html") not in [other["url"] for other in checked["resembles"]]

    def test_over_http_as_the_crawl_sees_it(self, output: Output) -> None:
        with serve() as site:
            site.add_folder(PAGES)
            korean, clang = output.json(
                "check", f"{site.url}/apache/ko/mod/mod_env.html", f"{site.url}/clang-16/FAQ.html"
            )

        assert korean["resembles"][0]["url"] == uri("apache/ko/mod/mod_env.html")
        assert clang["verdict"] == "duplicate"

    def test_too_short(self, output: Output, tmp_path: Path) -> None:
        page = tmp_path / "page.html"
        page.write_text("<p>three short words")

        (checked,) = output.json("check", str(page))

        assert (checked["verdict"], checked["percentage"], checked["features"]) == (
            "too short to be matched",
            None,
            3,
        )

    def test_what_cannot_be_read_does_not_stop_the_rest(self, capsys: pytest.CaptureFixture[str]) -> None:
        with serve() as site, pytest.raises(SystemExit, match="1"):
            main(
                [
                    "check",
                    "missing.html",
                    f"{site.url}/404",
                    "http://127.0.0.1:1/",
                    str(PAGES / "clang-13/FAQ.html"),
                ]
            )

        captured = capsys.readouterr()
        assert "missing.html is neither an http(s) URL nor a file" in captured.err
        assert "HTTP status 404" in captured.err
        assert "http://127.0.0.1:1/ cannot be fetched" in captured.err
        assert "clang-13/FAQ.html: not a duplicate of another page" in captured.out

    def test_not_html(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4")

        with pytest.raises(SystemExit):
            main(["check", str(tmp_path / "a.pdf")])

        said = "a.pdf is no HTML page; the URL or the file of an HTML page is expected"
        assert said in capsys.readouterr().err

    def test_nothing(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main(["check", ""])

        assert "'' is empty; the URL or the file of an HTML page is expected" in capsys.readouterr().err


class TestShow:
    def test_duplicate(self, output: Output) -> None:
        text = output.of("show", uri("clang-14/ClangCheck.html"))
        shown = output.json("show", uri("clang-14/ClangCheck.html"))

        assert shown["kind"] == "duplicate"
        assert shown["canonical"]["url"] == uri("clang-13/ClangCheck.html")
        assert len(shown["canonical"]["differing_bits"]) == shown["canonical"]["distance"] == 1
        assert shown["links_withheld"] == 0
        for expected in (
            "verdict",
            "duplicate",
            f"{shown['fingerprint']:#018x}",
            "word-tf",
            "crawl 1 (spider site",
        ):
            assert expected in text
        assert uri("clang-13/ClangCheck.html") in text

    def test_canonical_page(self, output: Output) -> None:
        text = output.of("show", uri("clang-13/FAQ.html"), "--limit", "2")

        assert "Canonical page of 3 duplicates (the 2 nearest)" in text

    def test_unknown(self, output: Output) -> None:
        output.of("show", "http://a.example/\x1b[2J", code=1)

        assert "http://a.example/\\x1b[2J is not stored in" in output.error


class TestDb:
    def test_info(self, output: Output, stored: str) -> None:
        text = output.of("db", "info")

        assert stored.removeprefix("sqlite:///") in text
        assert "rows of simhash_values" in text

    @pytest.mark.parametrize("backend", BACKENDS)
    def test_upgrade_makes_the_tables(self, backend: str, output: Output, tmp_path: Path) -> None:
        with new_database(backend, tmp_path) as url:
            assert "the tables are those of this version" in output.of("db", "upgrade", "--database", url)
            assert "0" in output.of("db", "info", "--database", url)
            assert "by_host" in output.json("report", "--database", url)

    def test_database_away(self, output: Output, tmp_path: Path) -> None:
        output.of("report", "--database", f"sqlite:///{tmp_path}/none.db", code=1)

        assert "there is no database" in output.error
        assert "a crawl makes it" in output.error

    @pytest.mark.parametrize("verb", ["report", "db"])
    def test_server_without_tables(self, verb: str, output: Output, tmp_path: Path) -> None:
        with new_database("postgresql", tmp_path) as url:
            arguments = [verb] if verb == "report" else ["db", "info"]
            output.of(*arguments, "--database", url, code=1)

        assert "run: neardup db upgrade, with the same --database URL if you gave one" in output.error

    def test_tables_of_a_newer_version_are_not_touched(self, output: Output, tmp_path: Path) -> None:
        import sqlite3

        output.of("db", "upgrade", "--database", f"sqlite:///{tmp_path}/n.db")
        with sqlite3.connect(tmp_path / "n.db") as connection:
            connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = 'x'")
        connection.close()

        output.of("db", "upgrade", "--database", f"sqlite:///{tmp_path}/n.db", code=1)

        assert "Upgrade neardup" in output.error


@pytest.mark.slow
def test_settings_of_the_project_name_the_database(
    output: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: str
) -> None:
    monkeypatch.delenv("NEARDUP_DATABASE_URL")
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = their_settings\n")
    (tmp_path / "their_settings.py").write_text(f"NEARDUP_DATABASE_URL = {stored!r}\n")
    command = [sys.executable, "-m", "neardup", "db", "info"]

    # Commands that ran in this process may have named this project in the environment.
    environment = {name: value for name, value in os.environ.items() if name != "SCRAPY_SETTINGS_MODULE"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)

    assert done.stdout.startswith(stored.removeprefix("sqlite:///"))


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([verb, "--help"])

    assert len(capsys.readouterr().out) > 200


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["collection", "--help"]])
def test_only_the_verb_that_is_asked_for_is_imported(arguments: list[str]) -> None:
    code = (
        "import sys, atexit; from neardup.cli.main import main\n"
        "atexit.register(lambda: print({'numpy', 'scrapy', 'sqlalchemy'} & set(sys.modules)))\n"
        f"main({arguments})"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.endswith("set()\n")


def test_a_verb_that_is_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["reprot"])

    assert "'reprot'" in capsys.readouterr().err


def test_ctrl_c_while_the_verb_is_imported() -> None:
    code = (
        "import signal, sys; from neardup.cli.main import main\n"
        # A shell has what it starts in the background ignore SIGINT.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "class Slow:\n"
        "    @staticmethod\n"
        "    def find_spec(name, *_):\n"
        "        if name == 'neardup.cli.report': signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Slow)\n"
        "sys.exit(main(['report']))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (130, "\nneardup: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["report", "db info"])
def test_full_disk_behind_standard_output(verb: str, stored: str) -> None:
    # The one fills a buffer on its way, the other has all of its output in it at the end.
    command = f"{sys.executable} -m neardup {verb} --database {stored} > /dev/full"

    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (1, "neardup: [Errno 28] No space left on device\n")


@pytest.mark.slow
def test_output_that_knows_few_characters(tmp_path: Path) -> None:
    url = upgraded(f"sqlite:///{tmp_path}/n.db")
    store = Store.open(url, scheme=str(Scheme()))
    write(store, page(1, "http://a.example/중"))
    store.close()
    environment = os.environ | {"PYTHONIOENCODING": "latin-1"}
    command = [sys.executable, "-m", "neardup", "show", "http://a.example/중", "--database", url]

    done, as_json = (
        subprocess.run(given, env=environment, capture_output=True, text=True, check=True)
        for given in (command, [*command, "--format", "json"])
    )

    assert done.stdout.startswith("http://a.example/\\uc911\n")
    assert json.loads(as_json.stdout)["url"] == "http://a.example/중"


@pytest.mark.slow
def test_output_into_a_closed_pipe_is_no_error(stored: str) -> None:
    command = f"{sys.executable} -m neardup report --limit 1000 --format csv | head -1"

    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)

    assert done.stdout.startswith("section,")
    assert done.stderr == ""
