"""``neardup collection build``: parts and processes, interruptions, wrong inputs, WET, links."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, date, datetime
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastwarc import stream_io

from neardup.cli.collection_build import INCOMPLETE
from neardup.cli.main import main
from neardup.collection import build as building
from neardup.collection.dataset import open_collection
from neardup.collection.inputs import archives, tables
from neardup.collection.inputs.tables import Names
from neardup.detection.detector import DetectorOptions
from neardup.errors import ConfigurationError
from neardup.fingerprint.scheme import Scheme
from neardup.scrapy.stored_responses import stored_page
from neardup.text.visible_text import cleaned
from tests.support.archives import Exchange, warc
from tests.support.collections import build, built, exchanges, files, rows
from tests.support.faults import small_disk

if TYPE_CHECKING:
    from collections.abc import Callable

PAGES = exchanges()
PART = 20_000
"""Bytes of a part in these tests, so that a small archive has many."""


STARTED = """
import signal, sys
# A shell has what it starts in the background ignore SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)
from neardup.cli.main import main
sys.exit(main(["collection", "build", *sys.argv[1:]]))
"""


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "PART_BYTES", PART)
    monkeypatch.setattr(tables, "PART_BYTES", PART)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "pages.warc.gz"
    path.write_bytes(warc(PAGES).data)
    return path


def frame(data: bytes, by: str) -> bytes:
    """Data packed by gzip, or by a writer of fastwarc."""
    if by == "gzip":
        return gzip.compress(data, mtime=0)
    out = io.BytesIO()
    writer = getattr(stream_io, by)(out)
    writer.write(data)
    writer.finish()
    writer.flush()
    return out.getvalue()


def fails(capsys: pytest.CaptureFixture[str], out: Path, *arguments: str | Path) -> str:
    """What the command says when it fails."""
    capsys.readouterr()
    assert build(out, *arguments) == 1
    said = capsys.readouterr()
    assert not said.out
    return said.err


class TestParts:
    @pytest.mark.usefixtures("small_parts")
    @pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
    def test_parts_have_the_rows_of_the_whole(
        self, tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "pages.warc"
        path.write_bytes(warc(PAGES, packed=packed).data)
        found = built(tmp_path / "parts", path)
        links = rows(tmp_path / "parts", "links")
        monkeypatch.undo()

        assert found == built(tmp_path / "whole", path)
        assert links == rows(tmp_path / "whole", "links")
        assert len(list((tmp_path / "parts" / "pages").iterdir())) > 3

    @pytest.mark.usefixtures("small_parts")
    @pytest.mark.parametrize("by", ["ZstdWriter", "Lz4Writer", "gzip"])
    @pytest.mark.parametrize("at_once", [1, 7, len(PAGES) + 1])
    def test_no_way_of_packing_costs_a_record(self, tmp_path: Path, by: str, at_once: int) -> None:
        written = warc(PAGES, packed=False)
        begins = [0, 1, *range(1 + at_once, len(PAGES) + 1, at_once)] if at_once <= len(PAGES) else [0]
        pieces = [
            written.data[written.span(first)[0] : written.span(behind - 1)[1]]
            for first, behind in pairwise([*begins, len(PAGES) + 1])
        ]
        path = tmp_path / "pages.warc.packed"
        path.write_bytes(b"".join(frame(piece, by) for piece in pieces))

        found = built(tmp_path / "out", path)

        assert [row["url"] for row in found] == [one.url for one in PAGES]
        assert [row["id"] for row in found] == sorted({row["place"] for row in found})
        if at_once == 1:  # the place is that of the frame
            sizes = [len(frame(piece, by)) for piece in pieces]
            assert [row["place"] for row in found] == list(accumulate(sizes[:-1]))

    @pytest.mark.usefixtures("small_parts")
    def test_lines_are_read_in_parts(self, tmp_path: Path) -> None:
        path = tmp_path / "pages.jsonl"
        lines = [json.dumps({"url": one.url, "html": one.body.decode("utf-8", "replace")}) for one in PAGES]
        path.write_text("\n".join(lines) + "\n")

        assert [row["url"] for row in built(tmp_path / "out", path)] == [one.url for one in PAGES]
        assert len(list((tmp_path / "out" / "pages").iterdir())) > 3

    @pytest.mark.usefixtures("small_parts")
    def test_archive_within_an_archive_is_no_part_of_it(self, tmp_path: Path) -> None:
        # Stored as it is, so that a part begins within the inner archive, at what looks like a record.
        inner = warc([replace(one, url=f"{one.url}?inner") for one in PAGES])
        stored = Exchange("http://a.example/x.warc.gz", inner.data, (("Content-Type", "application/warc"),))
        outer = warc([PAGES[0], stored, PAGES[1]], packed=False)
        path = tmp_path / "outer.warc"
        path.write_bytes(outer.data)
        plain = warc([replace(one, url=f"{one.url}?inner") for one in PAGES], packed=False)
        deeper = replace(stored, body=plain.data)
        path.write_bytes(warc([PAGES[0], deeper, PAGES[1]], packed=False).data)

        found = built(tmp_path / "out", path)

        assert [row["url"] for row in found] == [PAGES[0].url, PAGES[1].url]

    @pytest.mark.slow
    def test_processes_make_the_files_that_one_makes(self, tmp_path: Path) -> None:
        inputs = []
        for number in range(3):
            inputs.append(tmp_path / f"{number}.warc.gz")
            inputs[-1].write_bytes(warc(PAGES[number::3]).data)
        built(tmp_path / "one", *inputs)
        given = ["collection", "build", *map(str, inputs), "--out", str(tmp_path / "two"), "--processes", "2"]

        assert main(given) == 0
        assert files(tmp_path / "two") == files(tmp_path / "one")


class TestGoingOn:
    @pytest.mark.usefixtures("small_parts")
    def test_interrupted_build_goes_on_and_makes_the_same_files(self, tmp_path: Path, archive: Path) -> None:
        built(tmp_path / "whole", archive)
        left = [20]

        def interrupted(*given: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt
            return stored_page(*given)

        def go_on(open_page: Callable[..., Any]) -> building.Built:
            return building.build(
                tmp_path / "out", [str(archive)], Names(), DetectorOptions(), open_page, 1, lambda *_: None
            )

        with pytest.raises(KeyboardInterrupt):
            go_on(interrupted)
        done = files(tmp_path / "out")
        assert 0 < len(done) < len(files(tmp_path / "whole"))
        with pytest.raises(ConfigurationError, match="not complete"):
            open_collection(tmp_path / "out")
        seen: list[str] = []

        def counted(url: str, *given: Any) -> Any:
            seen.append(url)
            return stored_page(url, *given)

        result = go_on(counted)

        assert files(tmp_path / "out") == files(tmp_path / "whole")
        kept = {name: data for name, data in done.items() if not name.startswith("shingles")}
        assert kept.items() <= files(tmp_path / "out").items()
        assert len(seen) < len(PAGES)
        assert result.pages == len(PAGES)
        assert open_collection(tmp_path / "out").scheme == str(Scheme())

    def test_finished_build_reads_nothing_again(self, tmp_path: Path, archive: Path) -> None:
        built(tmp_path / "out", archive)
        before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "pages").iterdir()}

        built(tmp_path / "out", archive)

        assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "pages").iterdir()}

    def test_further_inputs_come_behind(self, tmp_path: Path, archive: Path) -> None:
        other = tmp_path / "a.jsonl"
        other.write_text(json.dumps({"url": "http://b.example/", "html": "<p>one word"}) + "\n")
        first = built(tmp_path / "out", archive)

        both = built(tmp_path / "out", other, archive)

        assert both[:-1] == first
        assert both[-1]["id"] >> building.PLACE_BITS == 1

    def test_what_does_not_belong_to_the_collection_is_refused(
        self, tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "out"
        built(out, archive)
        other = tmp_path / "b.warc.gz"
        other.write_bytes(archive.read_bytes())

        assert "pages.warc.gz as well" in fails(capsys, out, other)
        assert "text-column" not in fails(capsys, out, archive, "--text-column", "body")
        archive.write_bytes(archive.read_bytes() + b"\x00")
        assert "has changed since" in fails(capsys, out, archive)
        (out / "collection.json").write_text("{")
        assert "is damaged" in fails(capsys, out, archive)

    @pytest.mark.slow
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
    def test_killed_build_goes_on(self, tmp_path: Path, how: signal.Signals) -> None:
        inputs = []
        for number in range(8):
            inputs.append(str(tmp_path / f"{number}.warc.gz"))
            many = [replace(one, url=f"{one.url}?{copy}") for copy in range(2) for one in exchanges(200_000)]
            Path(inputs[-1]).write_bytes(warc(many).data)
        command = [sys.executable, "-c", STARTED, *inputs, "--processes", "2", "--out"]
        out = tmp_path / "out"
        process = subprocess.Popen([*command, str(out)], stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while len(list(out.glob("pages/*.parquet"))) < 3:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(how)
        _, said = process.communicate(timeout=60)

        assert process.returncode == (130 if how == signal.SIGINT else -signal.SIGKILL), said
        assert "Traceback" not in said
        done = {
            name: data
            for name, data in files(out).items()
            if not name.endswith("writing") and not name.startswith("shingles")
        }
        assert 3 <= len([name for name in done if name.startswith("pages")]) < len(inputs)
        subprocess.run([*command, str(out)], check=True, capture_output=True)
        subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
        assert files(out) == files(tmp_path / "whole")
        assert done.items() <= files(out).items()

    @pytest.mark.slow
    def test_full_disk_keeps_what_was_done(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], archive: Path
    ) -> None:
        mounted = tmp_path / "mounted"
        mounted.mkdir()
        with small_disk(mounted) as disk:
            out = mounted / "out"
            first = built(out, archive)
            other = tmp_path / "b.warc.gz"
            other.write_bytes(archive.read_bytes())
            disk.fill()
            assert "No space left on device; what was done is kept" in fails(capsys, out, archive, other)
            assert rows(out) == first
            disk.empty()
            assert len(built(out, archive, other)) == 2 * len(first)


class TestInputs:
    def test_wet_gives_texts(self, tmp_path: Path) -> None:
        text = "Visible words of a page, see http://a.example/x for more of them"
        record = (
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a.example/p\r\n"
            f"WARC-Date: 2026-01-02T03:04:05Z\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}"
            f"\r\n\r\n{text}\r\n\r\n"
        )
        path = tmp_path / "a.warc.wet"
        path.write_text(record, newline="")

        found = built(tmp_path / "out", path)

        reading = DetectorOptions().make_reader().read_text(cleaned(text))
        assert reading.fingerprint is not None
        assert [(row["url"], row["hash_value"], row["text_digest"], row["headline"]) for row in found] == [
            ("http://a.example/p", reading.fingerprint.value, reading.text_digest, None)
        ]

    def test_links_are_rows_of_their_pages(self, tmp_path: Path) -> None:
        body = (
            b'<p>some words<a href="b#x">1</a><a href="/c?d=1" rel="ugc nofollow">2</a><a href="#top">3</a>'
            b'<a href="b" rel=nofollow>4</a><area href="http://b.example/"><a href="mailto:x@a.example">5</a>'
        )
        path = tmp_path / "a.warc.gz"
        path.write_bytes(warc([Exchange("http://a.example/x/y", body)]).data)

        found = built(tmp_path / "out", path)

        assert {(row["url"], row["nofollow"]) for row in rows(tmp_path / "out", "links")} == {
            ("http://a.example/x/b", False),
            ("http://a.example/c?d=1", True),
            ("http://b.example/", False),
        }
        assert {row["page_id"] for row in rows(tmp_path / "out", "links")} == {found[0]["id"]}

    def test_folder_has_archives_tables_and_pages(self, tmp_path: Path, archive: Path) -> None:
        folder = tmp_path / "folder"
        (folder / "deep").mkdir(parents=True)
        archive.rename(folder / "deep" / "renamed.bin")
        (folder / "page.html").write_bytes(PAGES[0].body)
        (folder / "notes.json").write_text('{"no": "page"}')
        (folder / "picture.png").write_bytes(os.urandom(100))
        pq.write_table(
            pa.table({"u": ["http://b.example/"], "t": ["words of a text"]}), folder / "table.parquet"
        )

        found = built(tmp_path / "out", folder, "--url-column", "u", "--text-column", "t")

        assert len(found) == len(PAGES) + 2

    def test_collection_in_the_folder_that_it_is_built_of(self, tmp_path: Path, archive: Path) -> None:
        out = tmp_path / "pages"
        site = tmp_path / "site"
        site.mkdir()
        (site / "collection.json").write_text('{"a": "file of a site"}')
        (site / "page.html").write_bytes(PAGES[0].body)
        first = built(out, tmp_path)

        assert len(first) == len(PAGES) + 1
        assert built(out, tmp_path) == first
        assert built(out, tmp_path) == first
        assert built(tmp_path / "other", tmp_path) == first
        shutil.copy(archive, out / "more.warc.gz")
        assert len(built(tmp_path / "another", tmp_path)) == 2 * len(PAGES) + 1

    def test_name_that_is_no_text(self, tmp_path: Path) -> None:
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfebad.html"))
        path.write_bytes(PAGES[0].body)

        (found,) = built(tmp_path / "out", path)

        assert found["file"] == f"{tmp_path}/??bad.html"

    @pytest.mark.parametrize(
        ("ending", "html"), [(".csv", ""), (".csv", " \n"), (".jsonl", "\t"), (".parquet", " ")]
    )
    def test_row_with_empty_html_has_its_text_read(self, tmp_path: Path, ending: str, html: str) -> None:
        text = "Twelve different words of some text stand alone in this one cell"
        path = tmp_path / f"pages{ending}"
        row = {"url": "http://a.example/", "html": html, "text": text}
        if ending == ".parquet":
            pq.write_table(pa.Table.from_pylist([row]), path)
        elif ending == ".jsonl":
            path.write_text(json.dumps(row))
        else:
            path.write_text(f'url,html,text\n{row["url"]},"{html}",{text}\n')

        (page,) = built(tmp_path / "out", path)
        assert page["features"] == 12

    def test_rows_without_pages_are_counted(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "a.jsonl"
        lines = ['{"url": "http://a.example/", "html": "<p>word"}', '{"url": null, "html": ""}', "{", "[1]"]
        path.write_text("\n".join([*lines, '{"url": "http://a.example/2", "html": null}']))

        assert build(tmp_path / "out", path, "--format", "json") == INCOMPLETE
        told = json.loads(capsys.readouterr().out)
        assert told["pages"] == 1
        assert told["skipped"] == {"damaged": 2, "no_content": 1, "no_url": 1}

    def test_dates_that_cannot_be_read_are_counted(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "a.jsonl"
        dates: list[Any] = ["2024-01-02", None, "", "yesterday", {}, 1e99, "03/04/2024"]
        rows_of = [{"url": f"http://a.example/{n}", "text": "t", "date": d} for n, d in enumerate(dates)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows_of))

        found = built(tmp_path / "out", path)
        assert [row["date"] is not None for row in found] == [True] + 6 * [False]
        assert "\n4 pages with a date that cannot be read: without a date here\n" in capsys.readouterr().out
        assert build(tmp_path / "out", path, "--format", "json") == 0
        assert json.loads(capsys.readouterr().out)["undated"] == 4

    def test_days_of_parquet_are_dates(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"url": ["u"], "text": ["t"], "date": [date(2024, 1, 2)]}), path)

        (row,) = built(tmp_path / "out", path)
        assert row["date"] == datetime(2024, 1, 2, tzinfo=UTC)

    def test_one_row_of_another_type_is_named(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        path = tmp_path / "a.jsonl"
        path.write_text('{"url": 7, "text": "t"}\n{"url": "u", "text": {}}\n{"url": "u", "text": "t"}\n')

        assert len(built(tmp_path / "out", path)) == 1
        said = capsys.readouterr().err
        assert f"{path}, 0: no_url (url is int, not text)" in said
        assert "no_content (text is dict, not text)" in said

    def test_text_of_another_type_costs_no_html(self, tmp_path: Path) -> None:
        path = tmp_path / "a.parquet"
        columns = {"url": ["u"], "html": ["<p>words of a page"], "text": [b"t"]}
        dictionary = {name: pa.array(values).dictionary_encode() for name, values in columns.items()}
        pq.write_table(pa.table(dictionary), path)

        assert len(built(tmp_path / "out", path)) == 1

    def test_wrong_inputs_are_refused_by_name(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        table = tmp_path / "t.parquet"
        pq.write_table(pa.table({"link": ["x"], "body": ["y"]}), table)
        said = fails(capsys, tmp_path / "out", table)
        assert "t.parquet has no column 'url'" in said
        assert "it has link, body" in said
        said = fails(capsys, tmp_path / "out", table, "--url-column", "link")
        assert "neither a column 'html'" in said
        unfit: list[tuple[dict[str, list[object]], str]] = [
            ({"url": [7], "html": ["<p>"]}, "has int64 in the column 'url', not text (--url-column)"),
            ({"url": ["u"], "text": [b"t"]}, "has bytes in the column 'text', not text (--text-column)"),
            ({"url": ["u"], "text": [{"a": 1}]}, "has struct<a: int64> in the column 'text', not text"),
            ({"url": ["u"], "html": [None], "text": [True]}, "has bool in the column 'text', not text"),
            (
                {"url": ["u"], "html": [1.5], "text": ["t"]},
                "has double in the column 'html', not text or bytes",
            ),
        ]
        for columns, message in unfit:
            pq.write_table(pa.table(columns), table)
            assert f"t.parquet {message}" in fails(capsys, tmp_path / "out", table)
        table.write_bytes(table.read_bytes()[:50])
        assert "not a Parquet file, or is damaged" in fails(capsys, tmp_path / "out", table)
        lines = tmp_path / "l.jsonl"
        lines.write_text("no json\n")
        assert "no JSON object a line" in fails(capsys, tmp_path / "out", lines)
        lines.write_text('{"url": 7, "html": "<p>"}\n{"url": 8, "html": "<p>"}\n')
        told = "l.jsonl has int in the column 'url', not text (--url-column)"
        assert told in fails(capsys, tmp_path / "out", lines)
        other = tmp_path / "x.txt"
        other.write_text("words")
        assert "x.txt is none of WARC" in fails(capsys, tmp_path / "out", other)
        assert "cannot be read: No such file" in fails(capsys, tmp_path / "out", tmp_path / "missing.warc")
        wacz = tmp_path / "a.wacz"
        wacz.write_text("no zip")
        assert "no WACZ file, or is damaged" in fails(capsys, tmp_path / "out", wacz)
        empty = tmp_path / "empty"
        empty.mkdir()
        assert "has no pages that can be read" in fails(capsys, tmp_path / "out", empty)
        assert not (tmp_path / "out").exists()

    def test_files_need_no_sqlalchemy(self) -> None:
        imported = "import sys, neardup.cli.collection_build; sys.exit('sqlalchemy' in sys.modules)"

        subprocess.run([sys.executable, "-c", imported], check=True)

    def test_warc_without_fastwarc_says_what_to_install(
        self,
        tmp_path: Path,
        archive: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setitem(sys.modules, "fastwarc.warc", None)

        assert "pip install 'neardup[warc]'" in fails(capsys, tmp_path / "out", archive)
