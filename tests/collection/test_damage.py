"""Damaged archives: what is whole is read, what is skipped is counted and named."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import zipfile
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from neardup.collection.inputs import archives, tables
from neardup.collection.inputs.archives import WARC, Archive
from neardup.collection.inputs.found import End, Page, Skipped, Why
from neardup.text.folders import MOST_BYTES
from tests.support.archives import Written, arc, warc
from tests.support.collections import build, exchanges, rows

if TYPE_CHECKING:
    from pathlib import Path

PAGES = exchanges()
NUMBER = 9
"""Of the record that is damaged, among those of the archive, whose first is no page."""


def read(path: Path, data: bytes, form: str = WARC, *parts: int, packed: bool | None = None) -> list[Any]:
    """What is found in an archive, read in parts that begin at 0 and at ``parts``."""
    path.write_bytes(data)
    is_gzip = data.startswith(b"\x1f\x8b") if packed is None else packed
    archive = Archive(path, None, form, is_gzip, len(data), splits=True)
    found = [list(archive.records(*part)) for part in pairwise([0, *parts, len(data)])]
    assert all(isinstance(one[-1], End) for one in found)
    return [record for one in found for record in one if isinstance(record, Page | Skipped)]


def urls(found: list[Any]) -> list[str]:
    return [one.origin.url for one in found if isinstance(one, Page)]


def bodies(found: list[Any]) -> dict[str, bytes]:
    return {one.origin.url: one.body for one in found if isinstance(one, Page)}


def skips(found: list[Any]) -> list[tuple[int, Why]]:
    return [(one.place, one.why) for one in found if isinstance(one, Skipped)]


@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
@pytest.mark.parametrize("write", [warc, arc])
def test_whole_archive_has_the_bodies_that_warcio_reads(tmp_path: Path, write: Any, packed: bool) -> None:
    path = tmp_path / "a"
    found = read(path, write(PAGES, packed=packed).data, write.__name__)

    with path.open("rb") as file:
        expected = {
            record.rec_headers.get_header("WARC-Target-URI"): record.content_stream().read()
            for record in ArchiveIterator(file, arc2warc=True)
            if record.rec_type == "response"
        }
    assert bodies(found) == expected == {one.url: one.body for one in PAGES}
    assert not skips(found)


def flipped(written: Written, at: int) -> bytes:
    data = bytearray(written.data)
    data[at] ^= 0xFF
    return bytes(data)


def damaged(written: Written, kind: str) -> bytes:
    """The archive with one record damaged."""
    data, (start, end) = written.data, written.span(NUMBER)
    noise = random.Random(5).randbytes(3000)
    return {
        "first byte": lambda: flipped(written, start),
        "middle": lambda: flipped(written, (start + end) // 2),
        "last byte": lambda: flipped(written, end - 6),
        "truncated": lambda: data[: (start + end) // 2] + data[end:],
        "zeros": lambda: data[: start + 30] + bytes(end - start - 60) + data[end - 30 :],
        "gone": lambda: data[:start] + noise[: end - start] + data[end:],
    }[kind]()


@pytest.mark.parametrize("kind", ["first byte", "middle", "last byte", "truncated", "zeros", "gone"])
@pytest.mark.parametrize("write", [warc, arc])
def test_damaged_member_costs_no_other_one(tmp_path: Path, write: Any, kind: str) -> None:
    written = write(PAGES)
    found = read(tmp_path / "a", damaged(written, kind), write.__name__)

    left = [one.url for number, one in enumerate(PAGES, start=1) if number != NUMBER]
    assert urls(found) == left
    assert len(skips(found)) == 1
    place, why = skips(found)[0]
    assert why is Why.DAMAGED
    # Where the beginning of a member is gone, the last place known is that of the record before it.
    assert place in {written.span(NUMBER)[0], written.span(NUMBER - 1)[0] + 1, written.span(NUMBER - 1)[0]}


@pytest.mark.parametrize("write", [warc, arc])
def test_garbage_between_records_costs_none(tmp_path: Path, write: Any) -> None:
    written = write(PAGES)
    start = written.span(NUMBER)[0]
    garbage = random.Random(3).randbytes(50_000) + gzip.compress(b"a member, but no record")
    found = read(tmp_path / "a", written.data[:start] + garbage + written.data[start:], write.__name__)

    assert set(urls(found)) >= {one.url for number, one in enumerate(PAGES, 1) if number != NUMBER - 1}
    assert [why for _, why in skips(found)] == [Why.DAMAGED]


@pytest.mark.parametrize("cut", [20, 300, 2000])
@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
@pytest.mark.parametrize("write", [warc, arc])
def test_truncated_archive_has_all_but_its_last_record(
    tmp_path: Path, write: Any, packed: bool, cut: int
) -> None:
    written = write(PAGES, packed=packed)
    shorter = written.data[: len(written.data) - 4 - cut]
    found = read(tmp_path / "a", shorter, write.__name__)

    assert urls(found) == [one.url for one in PAGES[:-1]]
    assert [why for _, why in skips(found)] == [Why.DAMAGED]


@pytest.mark.parametrize("write", [warc, arc])
@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
@pytest.mark.parametrize("by", [-40, -1, 1, 7, 5000])
def test_wrong_length_of_a_record_costs_that_record(
    tmp_path: Path, write: Any, packed: bool, by: int
) -> None:
    written = write(PAGES, packed=False)
    start, end = written.span(NUMBER)
    record = written.data[start:end]
    head, _, rest = record.partition(b"\r\n\r\n" if write is warc else b"\n")
    length = (
        int(head.rpartition(b"Content-Length: ")[2].split()[0]) if write is warc else int(head.split()[-1])
    )
    old, new = str(length).encode(), str(length + by).encode()
    wrong = head[::-1].replace(old[::-1], new[::-1], 1)[::-1]
    record = wrong + record[len(head) :]
    pieces = [written.data[slice(*written.span(number))] for number in range(len(written.ends))]
    pieces[NUMBER] = record
    data = b"".join(map(gzip.compress, pieces) if packed else pieces)
    found = read(tmp_path / "a", data, write.__name__)

    assert rest  # the record has been taken apart
    expected = {one.url: one.body for number, one in enumerate(PAGES, 1) if number != NUMBER}
    assert {url: body for url, body in bodies(found).items() if url != PAGES[NUMBER - 1].url} == expected
    if by == 1:  # it counts a line end that stands behind the record
        assert bodies(found)[PAGES[NUMBER - 1].url].rstrip() == PAGES[NUMBER - 1].body.rstrip()
    else:
        assert PAGES[NUMBER - 1].url not in urls(found)
        assert [why for _, why in skips(found)] == [Why.DAMAGED]


@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
@pytest.mark.parametrize("write", [warc, arc])
def test_parts_have_what_the_whole_has(tmp_path: Path, write: Any, packed: bool) -> None:
    written = write(PAGES, packed=packed)
    start, end = written.span(NUMBER)
    for data in (written.data, damaged(written, "middle")):
        whole = read(tmp_path / "a", data, write.__name__)
        random_places = sorted(random.Random(2).sample(range(1, len(data)), 12))
        for parts in ([start], [start + 1], [end - 1], [start, start + 1, end], random_places):
            assert read(tmp_path / "a", data, write.__name__, *parts) == whole


def test_any_damage_costs_what_it_hits(tmp_path: Path) -> None:
    written = warc(PAGES)
    chance = random.Random(11)
    for _ in range(40):
        data = bytearray(written.data)
        hit = set()
        for _ in range(chance.randint(1, 4)):
            first = chance.randrange(len(data))
            for at in range(first, min(len(data), first + chance.choice([1, 1, 10, 3000]))):
                data[at] = chance.randrange(256)
                hit.add(next(number for number, end in enumerate(written.ends) if at < end))
        found = read(tmp_path / "a", bytes(data), packed=True)

        whole = {one.url: one.body for number, one in enumerate(PAGES, start=1) if number not in hit}
        assert whole.items() <= bodies(found).items()


@pytest.mark.parametrize("in_wacz", [False, True])
def test_a_packed_archive_whose_first_bytes_are_damaged_is_known_by_its_name(
    tmp_path: Path, in_wacz: bool
) -> None:
    data = bytes(3) + warc(PAGES).data[3:]
    path = tmp_path / ("a.wacz" if in_wacz else "a.warc.gz")
    if in_wacz:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("archive/a.warc.gz", data)
    else:
        path.write_bytes(data)

    assert build(tmp_path / "out", path, "--format", "json") == 3  # the first record is skipped

    assert {row["url"] for row in rows(tmp_path / "out")} == {page.url for page in PAGES}


def test_what_is_no_page_is_counted_by_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGES[0]
    html = ("Content-Type", "text/html")
    chunks = (html, ("Transfer-Encoding", "chunked"))
    odd = [
        replace(page, url="http://a.example/missing", status="404 Not Found"),
        replace(page, url="http://a.example/text", headers=(("Content-Type", "text/plain"),)),
        replace(page, url="http://a.example/empty", body=b""),
        replace(page, url="http://a.example/not-in-chunks", headers=chunks),
        replace(page, url="http://a.example/wrong", headers=chunks, body=b"5\r\nhello\r\n99999\r\nworld"),
        replace(page, url="http://a.example/br", headers=(html, ("Content-Encoding", "br"))),
        replace(page, url="http://a.example/large", body=page.body + b"<b>" * 200_000),
    ]
    path = tmp_path / "odd.warc.gz"
    written = warc(odd)
    path.write_bytes(written.data)

    assert build(tmp_path / "out", path, "--format", "json") == 0
    told = json.loads(capsys.readouterr().out)

    assert told["skipped"] == {
        "error_page": 1, "not_html": 1, "too_large": 1, "undecodable": 2
    }  # fmt: skip
    found = {row["url"]: row for row in rows(tmp_path / "out")}
    assert found["http://a.example/empty"]["hash_value"] is None
    assert found["http://a.example/empty"]["features"] == 0
    assert found["http://a.example/not-in-chunks"]["hash_value"] is not None
    assert {one["place"] for one in told["examples"]} <= set(written.ends)


@pytest.mark.slow
@pytest.mark.parametrize("write", [warc, arc])
def test_huge_record_is_skipped(tmp_path: Path, write: Any) -> None:
    huge = replace(PAGES[0], url="http://a.example/huge", body=bytes(MOST_BYTES + 1))
    written = write([PAGES[1], huge, PAGES[2]])
    found = read(tmp_path / "a", written.data, write.__name__)

    assert urls(found) == [PAGES[1].url, PAGES[2].url]
    assert skips(found) == [(written.span(2)[0], Why.TOO_LARGE)]


@pytest.mark.slow
@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
@pytest.mark.parametrize("write", [warc, arc])
def test_parts_within_a_long_record_look_no_further_than_their_end(
    tmp_path: Path, write: Any, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a record of 10 GB there are 150 such parts; each would read all that follows.
    long = replace(PAGES[0], url="http://a.example/long", body=random.Random(1).randbytes(3_000_000))
    written = write([PAGES[1], long, PAGES[2]], packed=packed)
    path = tmp_path / f"a.{write.__name__}"
    path.write_bytes(written.data)
    monkeypatch.setattr(archives, "PART_BYTES", 100_000)
    archive = Archive(path, None, write.__name__, packed, len(written.data), splits=True)
    start, end = (written.span(2)[0] // 100_000 + 5) * 100_000, (written.span(2)[0] // 100_000 + 6) * 100_000
    read_to: list[int] = []

    class Watched(io.FileIO):
        def readinto(self, into: Any) -> int | None:
            got = super().readinto(into)
            read_to.append(self.tell())
            return got

    monkeypatch.setattr(Archive, "open", lambda self: io.BufferedReader(Watched(self.path), 1 << 12))
    assert list(archive.records(start, end)) == [End(end)]
    assert max(read_to) <= end + (1 << 20) + (1 << 13)
    monkeypatch.undo()

    whole = bodies(read(tmp_path / "whole", written.data, write.__name__))
    monkeypatch.setattr(archives, "PART_BYTES", 100_000)
    assert build(tmp_path / "out", path) == 0
    assert len(list((tmp_path / "out" / "pages").iterdir())) > 25
    html = [url for url in whole if url != long.url]
    assert [row["url"] for row in rows(tmp_path / "out")] == html


@pytest.mark.parametrize("packed", [True, False], ids=["gzip", "plain"])
def test_line_that_is_too_long_is_one_record(
    tmp_path: Path, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_BYTES", 1_000)
    monkeypatch.setattr(tables, "PART_BYTES", 2_500)
    lines = [
        json.dumps({"url": f"http://a.example/{number}", "html": "<p>word " * (2_000 if number == 1 else 2)})
        for number in range(4)
    ]
    data = "".join(f"{line}\n" for line in lines).encode()
    path = tmp_path / "a.jsonl"
    path.write_bytes(gzip.compress(data) if packed else data)
    size = tables.UNKNOWN_SIZE if packed else len(data)
    feed = tables.JsonLines(path, tables.Names(), packed, size)
    found = [one for part in pairwise([*feed.starts, size]) for one in feed.records(*part)]

    read_lines = [one for one in found if not isinstance(one, End)]
    assert urls(read_lines) == [f"http://a.example/{number}" for number in (0, 2, 3)]
    assert skips(read_lines) == [(len(lines[0]) + 1, Why.TOO_LARGE)]


@pytest.mark.parametrize("number", [0, NUMBER])
@pytest.mark.parametrize("length", [99_999_999, 99_999_999_999])
def test_record_that_claims_all_that_follows_hides_nothing(tmp_path: Path, number: int, length: int) -> None:
    """Of a record that is not read, and of one that is a page; both lengths are more than the file has."""
    written = warc(PAGES, packed=False)
    start = written.span(number)[0]
    head, rest = written.data[:start], written.data[start:]
    longer = re.sub(rb"(?<=Content-Length: )\d+", str(length).encode(), rest, count=1)

    whole, found = (read(tmp_path / "a", data) for data in (written.data, head + longer))

    assert longer != rest
    assert [one.detail.partition(" has ")[0] for one in found if isinstance(one, Skipped)] == ["the record"]
    assert skips(found) == [(start, Why.DAMAGED)]
    assert len(urls(whole)) - len(urls(found)) == (number > 0)


@pytest.mark.parametrize("ending", ["\n", ""])
def test_quote_that_is_not_closed_is_named(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "feed.csv"
    rows_of = [
        "url,html",
        "http://a.example/1,<p>one",
        'http://a.example/2,"<p>two',
        "http://a.example/3,<p>3",
    ]
    path.write_text("\n".join(rows_of) + ending)
    feed = tables.Feed(path, tables.Names(), packed=False, form="csv")

    found = list(feed.records(0, tables.UNKNOWN_SIZE))

    assert urls(found) == ["http://a.example/1"]
    assert skips(found) == [(1, Why.DAMAGED)]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("text", ["[\n{0},\n{0},\n", "[\n{0},\n{0}", "[{0},"])
def test_feed_in_json_that_is_cut_off_is_named(tmp_path: Path, text: str, packed: bool) -> None:
    data = text.replace("{0}", json.dumps({"url": "http://a.example/", "html": "<p>one"})).encode()
    found = {}
    for name, content in (("cut", data), ("whole", data.rstrip(b",\n") + b"]\n")):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if packed else content)
        size = tables.UNKNOWN_SIZE if packed else len(content)
        feed = tables.JsonLines(path, tables.Names(), packed, size)
        assert feed.missing() is None
        found[name] = list(feed.records(0, size))

    assert urls(found["cut"]) == urls(found["whole"]) == ["http://a.example/"] * text.count("{0}")
    assert [why for _, why in skips(found["cut"])] == [Why.DAMAGED]
    assert skips(found["whole"]) == []
