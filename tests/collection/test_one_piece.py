"""Archives that gzip has packed in one piece: parts, going on, damage, memory."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from neardup.collection.inputs import one_piece
from neardup.collection.inputs.archives import Archive
from neardup.collection.inputs.found import End, Page, Skipped, Why
from neardup.collection.inputs.one_piece import OnePiece, Unpacking, is_one_piece
from tests.support.archives import arc, unpacked, warc
from tests.support.collections import built, exchanges, files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PAGES = exchanges()
URLS = [one.url for one in PAGES]
PART = 3_000
"""Bytes of a part in these tests."""

WRITE = pytest.mark.parametrize("write", [warc, arc])


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_piece, "PART_BYTES", PART)


def archive(path: Path, data: bytes, form: str) -> Archive:
    path.write_bytes(data)
    return Archive(path, None, form, packed=True, size=len(data), splits=True)


def parts(found: OnePiece) -> list[tuple[int, int]]:
    return list(pairwise([*found.starts, found.size]))


def read(found: OnePiece, ranges: Sequence[tuple[int, int]]) -> list[list[Any]]:
    """What is found in parts that are read in this order, by one process."""
    with closing(Unpacking(found.archive)) as unpacking:
        return [list(unpacking.records(*part)) for part in ranges]


def pages(found: list[list[Any]]) -> dict[str, bytes]:
    return {one.origin.url: one.body for part in found for one in part if isinstance(one, Page)}


def skips(found: list[list[Any]]) -> list[Skipped]:
    return [one for part in found for one in part if isinstance(one, Skipped)]


def in_one(write: Any) -> bytes:
    return gzip.compress(unpacked(write(PAGES).data))


@WRITE
def test_one_piece_is_told_from_a_member_a_record(tmp_path: Path, write: Any) -> None:
    assert is_one_piece(archive(tmp_path / "a", in_one(write), write.__name__))
    assert not is_one_piece(archive(tmp_path / "b", write(PAGES).data, write.__name__))
    assert not is_one_piece(archive(tmp_path / "c", in_one(write)[:40], write.__name__))


@pytest.mark.usefixtures("small_parts")
@WRITE
def test_parts_have_what_the_whole_has(tmp_path: Path, write: Any) -> None:
    whole = OnePiece(archive(tmp_path / "a", in_one(write), write.__name__))
    ranges = parts(whole)
    (everything,) = read(whole, [(0, whole.size)])
    assert [one.origin.url for one in everything if isinstance(one, Page)] == URLS
    places = [one.origin.place for one in everything if isinstance(one, Page)]
    assert places == sorted(set(places))
    content = unpacked(whole.archive.path.read_bytes())
    assert all(URLS[number].encode() in content[place : place + 300] for number, place in enumerate(places))

    alone = [list(whole.records(*part)) for part in ranges]
    assert len(ranges) > 5
    assert [one for part in alone for one in part if not isinstance(one, End)] == everything[:-1]
    assert read(whole, ranges) == alone
    for one, other in pairwise(alone):  # a part ends where the next record begins
        first: Any = other[0]
        ends: Any = one[-1]
        assert ends.place == (first.origin.place if isinstance(first, Page) else first.place)
    # Two processes have every other part each; a third goes on where many are done.
    for some in (ranges[::2], ranges[1::2], ranges[-2:]):
        assert read(whole, some) == [alone[ranges.index(part)] for part in some]


@pytest.mark.usefixtures("small_parts")
def test_members_with_many_records_follow_each_other(tmp_path: Path) -> None:
    members = [gzip.compress(unpacked(warc(PAGES[at : at + 7]).data)) for at in range(0, len(PAGES), 7)]
    data = b"".join(members)
    whole = OnePiece(archive(tmp_path / "a", data + bytes(512), "warc"))

    assert list(pages(read(whole, parts(whole)))) == URLS
    assert not skips(read(whole, parts(whole)))

    # A damaged member costs no other one. Where deflate tells damage is not where it is.
    hit = members[1][:1500] + bytes(100) + members[1][1600:]
    damaged = b"".join([members[0], hit, *members[2:]])
    found = read(OnePiece(archive(tmp_path / "b", damaged, "warc")), parts(whole))
    assert set(URLS[:7] + URLS[14:]) <= set(pages(found))
    assert {one.why for one in skips(found)} == {Why.DAMAGED}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("by", [-40, 7, 5000])
@WRITE
def test_wrong_length_of_a_record_costs_that_record(tmp_path: Path, write: Any, by: int) -> None:
    written = write(PAGES, packed=False)
    pieces = [written.data[slice(*written.span(number))] for number in range(len(written.ends))]
    head, end, rest = pieces[9].partition(b"\r\n\r\n" if write is warc else b"\n")
    before, length = head.rsplit(b" ", 1) if write is arc else head.rsplit(b"Content-Length: ", 1)
    length, _, after = length.partition(b"\r\n")
    field = b" " if write is arc else b"Content-Length: "
    pieces[9] = (
        before + field + str(int(length) + by).encode() + (b"\r\n" + after if after else b"") + end + rest
    )
    whole = OnePiece(archive(tmp_path / "a", gzip.compress(b"".join(pieces)), write.__name__))
    found = read(whole, parts(whole))

    assert pages(found) == {one.url: one.body for one in PAGES if one is not PAGES[8]}
    assert [one.why for one in skips(found)] == [Why.DAMAGED]


@pytest.mark.usefixtures("small_parts")
@WRITE
def test_is_read_up_to_damage_of_gzip(tmp_path: Path, write: Any) -> None:
    data = in_one(write)
    for cut in (
        data[: len(data) // 2],
        data[:-8],
        data[: len(data) // 2] + b"\xff" * 20_000,
    ):
        whole = OnePiece(archive(tmp_path / "a", cut, write.__name__))
        found = read(whole, parts(whole))
        assert list(pages(found)) == URLS[: len(pages(found))]
        assert len(pages(found)) >= (len(URLS) - 1 if cut == data[:-8] else 5)
        assert {one.why for one in skips(found)} == {Why.DAMAGED}
        assert (" bytes cannot be read" in skips(found)[-1].detail) == (len(cut) > len(data))


@pytest.mark.usefixtures("small_parts")
def test_any_damage_ends(tmp_path: Path) -> None:
    data, chance = in_one(warc), random.Random(4)
    for _ in range(12):
        hit = bytearray(data + data)
        for _ in range(chance.randint(1, 4)):
            first = chance.randrange(len(hit))
            for at in range(first, min(len(hit), first + chance.choice([1, 10, 3000]))):
                hit[at] = chance.randrange(256)
        whole = OnePiece(archive(tmp_path / "a", bytes(hit), "warc"))
        found = read(whole, parts(whole))
        assert all(isinstance(part[-1], End) for part in found)
        assert [one for part in found for one in part[:-1]] == read(whole, [(0, whole.size)])[0][:-1]


@pytest.mark.usefixtures("small_parts")
def test_build_goes_on_with_the_parts_that_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "pages.warc.gz"
    path.write_bytes(in_one(warc))
    assert len(built(tmp_path / "out", path)) == len(PAGES)
    made = files(tmp_path / "out")
    names = sorted(name for name in made if name.startswith("pages"))
    assert len(names) > 5

    for name in names[1::2]:
        (tmp_path / "out" / name).unlink()
    assert len(built(tmp_path / "out", path)) == len(PAGES)
    assert files(tmp_path / "out") == made


def test_memory_is_bounded(tmp_path: Path) -> None:
    # A long record that is no page, between two that are.
    record = (
        b"WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://a.example/\r\n"
        b"WARC-Date: 2026-01-02T03:04:05Z\r\nContent-Length: %d\r\n\r\n" % (64 << 20)
    )
    one, other = (unpacked(warc([page]).data) for page in PAGES[:2])
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    data = packer.compress(one + record)
    for _ in range(64):
        data += packer.compress(bytes(1 << 20))
    data += packer.compress(b"\r\n\r\n" + other) + packer.flush()
    whole = OnePiece(archive(tmp_path / "a", data, "warc"))
    tracemalloc.start()
    try:
        found = read(whole, parts(whole))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert list(pages(found)) == URLS[:2]
    assert not skips(found)
    assert most < 8 << 20
