"""What crawled pages, stored files and other users of the machine must not be able to do."""

from __future__ import annotations

import ast
import csv
import io
import json
import logging
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import scrapy
import sqlalchemy as sa

from crawler.exporters import SafeCsvItemExporter
from neardup.cli.main import main
from neardup.cli.output import Section, complain, show_json, show_sections
from neardup.evaluation.mistakes import diff
from neardup.fingerprint.scheme import Scheme
from neardup.store.schema import simhash_values
from neardup.store.store import Store
from tests.support.crawling import crawl
from tests.support.places import ROOT
from tests.support.source_code import CODE, imports, nodes
from tests.support.spiders import OTHER, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOSTILE = "http://a.example/\x1b[2J\r\n2026-01-01 [scrapy] forged\x9b\u202e\u2028\x00'; DROP TABLE crawls; --"
"""A URL that clears a terminal, forges a line of a log, turns the direction of writing, and ends a statement.
"""

EVERY_MODULE = sorted([*CODE, *(ROOT / "migrations").rglob("*.py")])

OBJECTS_FROM_BYTES = {
    "pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "jsonpickle",
    "yaml",
}

CACHES = ROOT / "neardup" / "collection" / "inputs" / "dbm_caches.py"
"""Scrapy pickles the responses of its DBM cache. An unpickler that makes no other objects reads them."""


class TestNothingStoredIsRun:
    @pytest.mark.parametrize("path", EVERY_MODULE, ids=lambda path: str(path.relative_to(ROOT)))
    def test_no_pickle_and_no_eval(self, path: Path) -> None:
        objects = {name.split(".")[0] for name in imports(path, with_types=False)} & OBJECTS_FROM_BYTES
        assert objects == ({"pickle"} if path == CACHES else set())
        for node in nodes(path):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            assert called not in {"pickle.load", "pickle.loads", "pickle.Unpickler"}, called
            assert called not in {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}, called
            assert not any(
                word.arg in {"allow_pickle", "shell"} and ast.unparse(word.value) != "False"
                for word in node.keywords
            ), ast.unparse(node)
            assert called not in {"np.load", "numpy.load"} or "allow_pickle=False" in ast.unparse(node)

    @pytest.mark.parametrize("path", EVERY_MODULE, ids=lambda path: str(path.relative_to(ROOT)))
    def test_no_statement_is_put_together_from_values(self, path: Path) -> None:
        for node in nodes(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in {
                "text",
                "exec_driver_sql",
                "execute",
                "executemany",
            }:
                first = node.args[0] if node.args else None
                # A pragma takes no parameters; those that are asked for are named in the code, and what is
                # set is a number.
                made = isinstance(first, ast.JoinedStr | ast.BinOp)
                pragma = "connection.exec_driver_sql(f'PRAGMA "
                assert not made or ast.unparse(node).startswith(
                    (pragma + "{name}", pragma + "user_version = {last:d}'")
                ), ast.unparse(node)


class TestUrlsAreData:
    @pytest.fixture
    def settings(self, database_url: str) -> dict[str, Any]:
        return {
            "ADDONS": {"neardup.Addon": 500},
            "NEARDUP_DATABASE_URL": database_url,
            "NEARDUP_SNAPSHOT": False,
            "NEARDUP_CONTENT_FIELD": "html",
            "NEARDUP_ACTION": "drop",
        }

    def test_a_hostile_url_of_an_item(
        self,
        settings: dict[str, Any],
        caplog: pytest.LogCaptureFixture,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        class Hostile(scrapy.Spider):
            name = "hostile"

            async def start(self) -> Any:
                yield {"url": HOSTILE, "html": WORDS}
                for number in range(26):  # a flagged cluster
                    yield {"url": HOSTILE.replace("/\x1b", f"/{number}/\x1b"), "html": WORDS}
                yield {"url": "http://a.example/other", "html": OTHER}

        caplog.set_level(logging.DEBUG)
        done = crawl(Hostile, settings)

        assert (done.neardup("new"), done.neardup("duplicates"), done.neardup("flagged")) == (2, 26, 1)
        ours = [
            record
            for record in caplog.records
            if record.name.startswith("neardup") or "near-duplicate of" in record.getMessage()
        ]
        assert sum(record.getMessage().startswith("Near-duplicate: ") for record in ours) == 26
        assert sum("addresses, among" in record.getMessage() for record in ours) == 1
        assert sum("Dropped: near-duplicate of http://a.example/%1B" in r.getMessage() for r in ours) == 26
        for record in ours:
            summary_or_item = record.getMessage().split("\n")
            assert all(line.isprintable() for line in summary_or_item), record.getMessage()
            assert not any(line.startswith("2026-01-01") for line in summary_or_item)

        url = settings["NEARDUP_DATABASE_URL"]
        with Store.open(url, scheme=str(Scheme())) as store, store.reading() as connection:
            stored = list(connection.scalars(sa.select(simhash_values.c.actual_url)))
        assert len(stored) == 28
        assert all(one.isprintable() and one.startswith("http://a.example/") for one in stored)
        for command in (["report"], ["report", "--format", "csv"], ["show", HOSTILE]):
            assert main([*command, "--database", url]) == 0
            shown = capsys.readouterr().out
            assert "http://a.example/%1B[2J%0D%0A2026-01-01 [scrapy] forged%C2%9B" in shown
            assert all(line.isprintable() for line in shown.split("\n"))


class TestOutput:
    """Whatever a database or a file holds."""

    TEXTS = (
        HOSTILE,
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "＝1+1",
        "＋1",
        "－1",
        "＠SUM(A1)",
        "\ud800",
        "\U000e0001",
        "ü – 漢",
    )

    def shown(self, capsys: pytest.CaptureFixture[str], output_format: str) -> str:
        show_sections([Section("s", "Title", ("a",), [(text,) for text in self.TEXTS])], output_format)
        return capsys.readouterr().out

    @pytest.mark.parametrize("output_format", ["table", "csv", "json"])
    def test_no_control_characters(self, output_format: str, capsys: pytest.CaptureFixture[str]) -> None:
        shown = self.shown(capsys, output_format)

        assert all(line.isprintable() for line in shown.split("\n"))
        assert "ü – 漢" in shown

    def test_json_is_what_it_was(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert [row["a"] for row in json.loads(self.shown(capsys, "json"))["s"]] == list(self.TEXTS)
        show_json({HOSTILE: 1})
        assert json.loads(capsys.readouterr().out) == {HOSTILE: 1}

    def test_no_formulas_in_csv(self, capsys: pytest.CaptureFixture[str]) -> None:
        rows = list(csv.DictReader(io.StringIO(self.shown(capsys, "csv"))))

        assert [row["a"] for row in rows[1:11]] == [
            "'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\\t=1", "'\\r=1", "'＝1+1", "'＋1", "'－1", "'＠SUM(A1)"
        ]  # fmt: skip

    def test_no_formulas_in_feeds_in_csv(self) -> None:
        stream = io.BytesIO()
        exporter = SafeCsvItemExporter(stream, encoding="utf-8")
        exporter.export_item(
            {"text": "＝1+1", "bytes": "＝1+1".encode(), "list": ["=1+1", "2"], "number": -1}
        )
        exporter.finish_exporting()

        assert stream.getvalue().decode().splitlines()[1] == "'＝1+1,'＝1+1,\"'=1+1,2\",-1"

    def test_a_message_is_one_line(self, capsys: pytest.CaptureFixture[str]) -> None:
        complain(ValueError(HOSTILE))

        error = capsys.readouterr().err
        assert error.startswith("neardup: http://a.example/\\x1b[2J\\r\\n")
        assert error.removesuffix("\n").isprintable()

    def test_mistakes_of_an_evaluation(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        pairs = tmp_path / "pairs.jsonl"
        texts = (f"{WORDS} \x1b[2J\x9b\u202e one", f"{OTHER} \x1b]0;title\x07 other")
        pairs.write_text(json.dumps({"a_text": texts[0], "b_text": texts[1], "label": 1}) + "\n")
        assert any("\x1b" in line for line in diff(*texts))

        for output_format in ("table", "json"):
            assert main(["evaluate", str(pairs), "--features", "word-tf", "--format", output_format]) == 0
            shown = capsys.readouterr().out
            assert "missed" in shown
            assert all(line.isprintable() for line in shown.split("\n"))


CRAWL = """
import os, sys
os.umask(int(sys.argv[1], 8))
from tests.support.crawling import crawl
from tests.support.spiders import Nothing
database = f"sqlite:///{sys.argv[2]}/made/n.db"
crawl(Nothing, {"ADDONS": {"neardup.Addon": 500}, "NEARDUP_DATABASE_URL": database})
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("umask", "file_mode", "folder_mode"), [("077", 0o600, 0o700), ("022", 0o644, 0o755)]
)
def test_files_have_the_permissions_that_the_umask_gives(
    tmp_path: Path, umask: str, file_mode: int, folder_mode: int
) -> None:
    subprocess.run(
        [sys.executable, "-c", CRAWL, umask, str(tmp_path)], cwd=ROOT, check=True, capture_output=True
    )

    def modes(paths: Iterator[Path]) -> dict[str, int]:
        return {path.name: stat.S_IMODE(path.stat().st_mode) for path in paths}

    assert modes(tmp_path.iterdir()) == {"made": folder_mode}
    made = modes((tmp_path / "made").iterdir())
    assert {"n.db", "n.db.snapshot"} <= set(made)
    assert set(made.values()) == {file_mode}
