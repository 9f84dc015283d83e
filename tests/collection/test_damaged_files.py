"""``neardup collection build`` of many files, some of them damaged, of each form that is no archive."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import zipfile
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup.cli.collection_build import INCOMPLETE
from tests.support.archives import warc
from tests.support.collections import build, built, exchanges, files, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PAGES = exchanges()[:12]
"""Those in the middle are damaged. The last one stands in a file of its own, which is whole."""

ROWS = [{"url": page.url, "html": page.body.decode("utf-8", "replace")} for page in PAGES[:-1]]


def parquet(compression: str = "zstd", rows_of: list[dict[str, str]] = ROWS) -> bytes:
    """A row group a page."""
    out = io.BytesIO()
    table, small = pa.Table.from_pylist(rows_of), {"use_dictionary": False, "write_statistics": False}
    pq.write_table(table, out, row_group_size=1, compression=compression, **small)
    return out.getvalue()


def json_lines() -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in ROWS).encode()


def csv_feed() -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(ROWS[0]))
    writer.writeheader()
    writer.writerows(ROWS)
    return out.getvalue().encode()


def xml_feed() -> bytes:
    """As Scrapy writes it."""
    allowed = {code: " " for code in range(32) if chr(code) not in "\t\n\r"}
    items = "\n".join(
        f"<item><url>{row['url']}</url><html>{escape(row['html'].translate(allowed))}</html></item>"
        for row in ROWS
    )
    return f'<?xml version="1.0" encoding="utf-8"?>\n<items>\n{items}\n</items>'.encode()


def wacz(compression: int = zipfile.ZIP_STORED, archives: int = 1, *, packed: bool = True) -> bytes:
    """The archives, each with a part of the pages, between other files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        file.writestr("datapackage.json", "{}")
        for number in range(archives):
            file.writestr(f"archive/{number}.warc.gz", warc(PAGES[number:-1:archives], packed=packed).data)
        file.writestr("indexes/index.cdx.gz", gzip.compress(b"an index"))
    return out.getvalue()


FORMS: dict[str, Callable[[], bytes]] = {
    "parquet": parquet,
    "jsonl": json_lines,
    "jsonl.gz": lambda: gzip.compress(json_lines()),
    "csv.gz": lambda: gzip.compress(csv_feed()),
    "xml": xml_feed,
    "xml.gz": lambda: gzip.compress(xml_feed()),
    "wacz": wacz,
}
PACKED = {"jsonl.gz", "csv.gz", "xml.gz"}
"""Nothing can be read behind damage of gzip, and it shows later than where it begins."""


def noise(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + random.Random(7).randbytes(300) + data[middle + 300 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "noise": noise,
    "zeros": lambda data: data[: len(data) // 2] + bytes(300) + data[len(data) // 2 + 300 :],
    "truncated": lambda data: data[: len(data) * 3 // 4],
    "shorter": lambda data: data[: len(data) // 2] + data[len(data) // 2 + 300 :],
}
CASES = [
    pytest.param(form, damage, marks=[pytest.mark.slow] if damage == "zeros" else [])
    for form in FORMS
    for damage in DAMAGES
    if damage != "shorter" or form in {"parquet", "wacz"}  # no one can tell that words of a text are missing
]


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.warc.gz"
    path.write_bytes(warc(PAGES[-1:]).data)
    return path


def contents(found: list[dict[str, Any]]) -> dict[str, int]:
    return {row["url"]: row["text_digest"] for row in found}


@pytest.mark.parametrize(("form", "damage"), CASES)
def test_damaged_file_costs_what_is_damaged(
    tmp_path: Path, good: Path, capsys: pytest.CaptureFixture[str], form: str, damage: str
) -> None:
    path = tmp_path / f"pages.{form}"
    path.write_bytes(FORMS[form]())
    whole = contents(built(tmp_path / "whole", path, good))
    assert len(whole) == len(PAGES)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    capsys.readouterr()

    code = build(tmp_path / "out", path, good, "--format", "json")

    said = capsys.readouterr()
    told, found = json.loads(said.out), contents(rows(tmp_path / "out"))
    assert code == INCOMPLETE
    assert form in PACKED or found.items() <= whole.items()
    assert PAGES[-1].url in found
    assert {one["file"].partition("/archive")[0] for one in told["examples"]} == {str(path)}
    assert all(one["detail"] for one in told["examples"] if one["reason"] == "damaged")
    assert said.err.splitlines()[-1].endswith("is in the collection (exit code 3)")
    has_no_end = form == "parquet" and damage in {"truncated", "shorter"}
    if not has_no_end:  # what tells where the rows of a table stand
        assert set(found) >= {page.url for page in PAGES[:2]}
    if not has_no_end and form not in PACKED and damage != "truncated":
        assert PAGES[-2].url in found
        assert len(found) >= len(PAGES) - 2

    # What is done is not read again, and its damage is told again.
    before = files(tmp_path / "out")
    assert build(tmp_path / "out", path, good, "--format", "json") == INCOMPLETE
    assert json.loads(capsys.readouterr().out) == told
    assert files(tmp_path / "out") == before


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "lz4"])
def test_damaged_row_group_costs_no_other_one(
    tmp_path: Path, good: Path, capsys: pytest.CaptureFixture[str], compression: str, damage: str
) -> None:
    path = tmp_path / "pages.parquet"
    data = parquet(compression)
    with pq.ParquetFile(io.BytesIO(data)) as file:
        column = file.metadata.row_group(5).column(1)
    start = column.dictionary_page_offset or column.data_page_offset
    path.write_bytes(
        data[:start] + DAMAGES[damage](data[start : start + 600]).ljust(600) + data[start + 600 :]
    )

    code = build(tmp_path / "out", path, good, "--format", "json")

    told = json.loads(capsys.readouterr().out)
    left = [row["url"] for number, row in enumerate(ROWS) if number != 5]
    found = [row["url"] for row in rows(tmp_path / "out")]
    assert set(left) <= set(found)
    if code == INCOMPLETE:  # in what is not packed, damage of a text is text
        assert found == [*left, PAGES[-1].url]
        assert [(one["place"], one["reason"]) for one in told["examples"]] == [(5, "damaged")]
        assert "1 rows cannot be read" in told["examples"][0]["detail"]
    else:
        assert compression == "none"


def test_row_that_is_no_text_costs_the_rows_unpacked_with_it(tmp_path: Path) -> None:
    many = [{"url": f"http://a.example/{number}", "html": f"<p>words of {number}"} for number in range(200)]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(many), out, compression="none", use_dictionary=False)
    path = tmp_path / "pages.parquet"
    path.write_bytes(out.getvalue().replace(b"words of 100", b"words \xff\xff 100"))

    assert build(tmp_path / "out", path) == INCOMPLETE
    assert [row["place"] for row in rows(tmp_path / "out")] == [*range(64), *range(128, 200)]


@pytest.mark.parametrize("other", ["parquet", "jsonl", "csv", "xml"])
def test_table_without_the_columns_of_the_others_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: str
) -> None:
    table = tmp_path / "pages.parquet"
    table.write_bytes(parquet())
    without = tmp_path / f"without.{other}"
    link = [{"link": "http://a.example/", "html": "<p>words"}]
    without.write_bytes(
        parquet(rows_of=link)
        if other == "parquet"
        else {
            "jsonl": json.dumps(link[0]).encode(),
            "csv": b"link,html\nhttp://a.example/,<p>words\n",
            "xml": b"<items><item><link>http://a.example/</link></item></items>",
        }[other]
    )

    assert build(tmp_path / "out", without, table) == INCOMPLETE
    said = capsys.readouterr()
    assert "no_columns  1" in said.out
    assert f"neardup: {without}, 0: no_columns (has no column 'url' with URLs" in said.err
    assert len(rows(tmp_path / "out")) == len(ROWS)

    # If no table has the columns, it is the command that names the wrong ones.
    archive = tmp_path / "good.warc.gz"
    archive.write_bytes(warc(PAGES).data)
    assert build(tmp_path / "none", without, archive) == 1
    assert f"neardup: {without} has no column 'url'" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("other", ["parquet", "jsonl", "csv"])
def test_table_in_a_folder_without_the_columns_is_named_and_stops_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], other: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    without = folder / f"without.{other}"
    link = {"link": "http://a.example/", "html": "<p>words"}
    without.write_bytes(
        {
            "parquet": parquet(rows_of=[link]),
            "jsonl": json.dumps(link).encode(),
            "csv": b"link,html\nhttp://a.example/,<p>words\n",
        }[other]
    )

    assert build(tmp_path / "none", folder) == 1  # nothing is left to read
    assert f"neardup: {without} has no column 'url'" in capsys.readouterr().err

    (folder / "good.warc.gz").write_bytes(warc(PAGES).data)
    (folder / "news.xml").write_text("<rss><item><link>http://a.example/</link></item></rss>")
    (folder / "settings.json").write_text('{"no": "page"}')
    assert build(tmp_path / "out", folder) == INCOMPLETE
    said = capsys.readouterr()
    assert "no_columns  1" in said.out
    assert f"neardup: {without}, 0: no_columns (has no column 'url' with URLs" in said.err
    assert len(rows(tmp_path / "out")) == len(PAGES)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("pages.parquet", b""),
        ("pages.parquet", b"PAR1" + bytes(100)),
        ("pages.wacz", b"PK\x03\x04" + bytes(100)),
        ("pages.xml", b"<items><item><url>http://a.example/</ur"),
        ("pages.jsonl", bytes(100)),
        ("pages.jsonl.gz", b"\x1f\x8b\x08" + bytes(100)),
        ("pages.csv.gz", b"\x1f\x8b\x08" + bytes(100)),
    ],
)
@pytest.mark.parametrize("in_folder", [True, False])
def test_file_of_which_nothing_can_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, in_folder: bool
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    good, path = folder / "good.warc.gz", folder / name
    good.write_bytes(warc(PAGES).data)
    path.write_bytes(data)
    given = [folder] if in_folder else [path, good]

    assert build(tmp_path / "out", *given, "--format", "json") == INCOMPLETE
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert [(one["file"], one["place"]) for one in told["examples"]] == [(str(path), 0)]
    assert said.err == (
        "neardup: 1 place in 1 of 2 inputs could not be read; all else is in the collection (exit code 3)\n"
    )
    assert len(rows(tmp_path / "out")) == len(PAGES)

    assert build(tmp_path / "none", path) == 1  # nothing is left to read
    assert f"neardup: {path} " in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_bad_member_of_a_zip_file_costs_no_other_one(
    tmp_path: Path, compression: int, packed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pages.wacz"
    data = wacz(compression, archives=3, packed=packed)
    path.write_bytes(data)
    whole = contents(built(tmp_path / "whole", path))
    with zipfile.ZipFile(path) as file:
        info = file.getinfo("archive/1.warc.gz")
    middle = info.header_offset + 60 + info.compress_size // 2
    path.write_bytes(data[:middle] + random.Random(3).randbytes(40) + data[middle + 40 :])
    capsys.readouterr()

    assert build(tmp_path / "out", path, "--format", "json") in ({INCOMPLETE} if packed else {0, INCOMPLETE})
    found = contents(rows(tmp_path / "out"))
    assert found.keys() <= whole.keys()
    assert set(found) >= {page.url for number, page in enumerate(PAGES[:-1]) if number % 3 != 1}
    if compression == zipfile.ZIP_STORED:
        assert len(found) >= len(whole) - 2
    named = {one["file"] for one in json.loads(capsys.readouterr().out)["examples"]}
    assert named <= {f"{path}/archive/1.warc.gz"}


def test_header_that_is_gone_in_a_zip_file_costs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "pages.wacz"
    path.write_bytes(wacz(archives=3).replace(b"PK\x03\x04", b"PK\x00\x00"))

    assert build(tmp_path / "out", path) == INCOMPLETE
    assert {row["url"] for row in rows(tmp_path / "out")} == {page.url for page in PAGES[:-1]}


def test_damage_of_gzip_in_an_archive_is_told_to_scripts(tmp_path: Path) -> None:
    written = warc(PAGES)
    path = tmp_path / "pages.warc.gz"
    path.write_bytes(written.data)
    assert build(tmp_path / "whole", path) == 0
    path.write_bytes(noise(written.data))

    assert build(tmp_path / "out", path) == INCOMPLETE
    assert len(rows(tmp_path / "out")) >= len(PAGES) - 2


def test_response_without_a_body_costs_no_other_one(tmp_path: Path) -> None:
    for number, page in enumerate(PAGES[:3]):
        folder = tmp_path / "cache" / "spider" / "ab" / f"ab{number}"
        folder.mkdir(parents=True)
        meta = {"timestamp": 1.0, "response_url": page.url, "status": 200}
        (folder / "meta").write_text(repr(meta))
        (folder / "response_headers").write_bytes(b"Content-Type: text/html")
        (folder / "response_body").write_bytes(page.body)
    (tmp_path / "cache" / "spider" / "ab" / "ab1" / "response_body").unlink()

    assert build(tmp_path / "out", tmp_path / "cache") == INCOMPLETE
    assert [row["url"] for row in rows(tmp_path / "out")] == [PAGES[0].url, PAGES[2].url]
