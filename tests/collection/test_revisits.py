"""Revisits: rows of their own with the fingerprint of the page that they refer to."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.support.archives import DATE, Exchange, Revisit, arc, revisiting, unpacked, warc
from tests.support.collections import build, built, exchanges, files, rows

if TYPE_CHECKING:
    from pathlib import Path

PAGES = exchanges()
MISSING = Exchange("http://docs.example/missing", PAGES[0].body, status="404 Not Found")
PICTURE = Exchange("http://docs.example/p.png", b"\x89PNG\r\n", (("Content-Type", "image/png"),))
COMPARED = ("hash_value", "weak_bits", "sketch", "features", "text_digest", "headline")


def facts(data: bytes) -> dict[str, dict[str, str]]:
    """The headers of all responses of an archive by their URLs, as warcio reads them."""
    found = {}
    for record in ArchiveIterator(io.BytesIO(data)):
        if record.rec_type == "response":
            headers = dict(record.rec_headers.headers)
            found[headers["WARC-Target-URI"]] = headers
    return found


@pytest.fixture(scope="module")
def archive() -> bytes:
    return warc([*PAGES, MISSING, PICTURE]).data


def by_record(headers: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return (("WARC-Refers-To", headers["WARC-Record-ID"]),)


def by_address(headers: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return (
        ("WARC-Refers-To-Target-URI", headers["WARC-Target-URI"]),
        ("WARC-Refers-To-Date", headers["WARC-Date"]),
    )


def by_digest(headers: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return (("WARC-Payload-Digest", headers["WARC-Payload-Digest"]),)


def built_with(tmp_path: Path, archive: bytes, revisits: list[Revisit]) -> list[dict[str, Any]]:
    """The rows of a collection of the revisits and, behind them, of the archive that they refer to."""
    (tmp_path / "revisits.warc.gz").write_bytes(revisiting(revisits))
    (tmp_path / "pages.warc.gz").write_bytes(archive)
    return built(tmp_path / "out", tmp_path / "revisits.warc.gz", tmp_path / "pages.warc.gz")


@pytest.mark.parametrize("way", [by_record, by_address, by_digest])
def test_row_has_the_fingerprint_of_what_it_refers_to(tmp_path: Path, archive: bytes, way: Any) -> None:
    known = facts(archive)
    revisits = [Revisit(f"{one.url}?again", way(known[one.url])) for one in PAGES]
    found = built_with(tmp_path, archive, revisits)

    pages = {row["url"]: row for row in found}
    assert len(found) == len(pages) == 2 * len(PAGES)
    texts = {one.body for one in PAGES}
    assert len(texts) == len(PAGES)
    for one in PAGES:
        page, again = pages[one.url], pages[f"{one.url}?again"]
        assert [again[name] for name in COMPARED] == [page[name] for name in COMPARED]
        assert f"{again['date']:%Y-%m-%dT%H:%M:%SZ}" == "2026-03-04T05:06:07Z"
        assert f"{page['date']:%Y-%m-%dT%H:%M:%SZ}" == DATE
        assert again["file"] == str(tmp_path / "revisits.warc.gz")
        assert again["id"] == again["place"]  # the first input
    # Links are those of the page itself.
    assert {row["page_id"] for row in rows(tmp_path / "out", "links")} <= {
        pages[one.url]["id"] for one in PAGES
    }


def test_arc_is_referred_to_by_address(tmp_path: Path) -> None:
    (tmp_path / "r.warc.gz").write_bytes(
        revisiting([Revisit(PAGES[3].url, by_address({"WARC-Target-URI": PAGES[3].url, "WARC-Date": DATE}))])
    )
    (tmp_path / "a.arc.gz").write_bytes(arc(PAGES).data)
    found = built(tmp_path / "out", tmp_path / "a.arc.gz", tmp_path / "r.warc.gz")

    captures = [row for row in found if row["url"] == PAGES[3].url]
    assert len(found) == len(PAGES) + 1
    assert captures[0]["sketch"] == captures[1]["sketch"] is not None


def test_what_has_no_page_is_counted_by_reason_and_named(
    tmp_path: Path, archive: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    known = facts(archive)
    page = known[PAGES[0].url]
    other = dict(by_digest(known[PAGES[1].url]))
    empty = ("WARC-Payload-Digest", "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ")
    not_modified = Revisit("http://a.example/304", (empty,), profile="server-not-modified", status="304 No")
    revisits = [
        Revisit("http://a.example/picture", by_digest(known[PICTURE.url])),
        Revisit("http://a.example/error", by_record(known[MISSING.url])),
        Revisit("http://a.example/own-error", by_digest(page), status="404 Not Found"),
        Revisit("http://a.example/gone", (("WARC-Refers-To", "<urn:uuid:gone>"),)),
        Revisit("http://a.example/nothing", ()),
        # The page at this address had another payload.
        Revisit("http://a.example/other", (*by_address(page), ("WARC-Payload-Digest", "sha1:OTHER"))),
        # An answer without a body says nothing by its digest.
        not_modified,
        replace(not_modified, url="http://a.example/known", headers=(*by_address(page), empty), status=None),
        # Of an error and a page with one payload the page counts, and a digest corrects an address.
        Revisit("http://a.example/both", by_digest(known[MISSING.url])),
        Revisit("http://a.example/corrected", (*by_address(page), *other.items())),
    ]  # fmt: skip
    blank = Exchange("http://docs.example/blank", b"")
    written = built_with(tmp_path, archive + warc([blank]).data, revisits)
    capsys.readouterr()
    assert (
        build(tmp_path / "out", tmp_path / "revisits.warc.gz", tmp_path / "pages.warc.gz", "--format", "json")
        == 0
    )
    told = json.loads(capsys.readouterr().out)

    pages = {row["url"]: row for row in written}
    assert {url for url in pages if url.startswith("http://a.example")} == {
        "http://a.example/known", "http://a.example/both", "http://a.example/corrected",
    }  # fmt: skip
    assert pages["http://a.example/known"]["sketch"] == pages[PAGES[0].url]["sketch"]
    assert pages["http://a.example/both"]["sketch"] == pages[PAGES[0].url]["sketch"]
    assert pages["http://a.example/corrected"]["sketch"] == pages[PAGES[1].url]["sketch"]
    assert told["revisits"] == 3
    assert told["pages"] == len(PAGES) + 1 + 3
    assert told["skipped"] == {"error_page": 3, "not_html": 2, "revisit": 4}
    named = {one["detail"] for one in told["examples"] if one["reason"] == "revisit"}
    assert {"<urn:uuid:gone>", "nothing", f"{PAGES[0].url} of {DATE}"} == named


def test_inputs_that_come_later_have_what_was_missing(tmp_path: Path, archive: bytes) -> None:
    first, second = tmp_path / "r.warc.gz", tmp_path / "pages.warc.gz"
    known = facts(archive)
    first.write_bytes(revisiting([Revisit(one.url, by_record(known[one.url])) for one in PAGES]))
    second.write_bytes(archive)

    assert built(tmp_path / "out", first) == []
    found = built(tmp_path / "out", first, second)
    made = files(tmp_path / "out")

    assert len(found) == 2 * len(PAGES)
    assert built(tmp_path / "out", first, second) == found
    assert files(tmp_path / "out") == made
    assert len(built(tmp_path / "whole", first, second)) == len(found)
    assert files(tmp_path / "whole") == made


def test_packed_in_one_piece_is_referred_to_as_well(tmp_path: Path, archive: bytes) -> None:
    known = facts(archive)
    revisits = [Revisit(f"{one.url}?again", by_record(known[one.url])) for one in PAGES]
    found = built_with(tmp_path, gzip.compress(unpacked(archive)), revisits)

    assert len(found) == 2 * len(PAGES)


def test_url_is_that_of_a_crawl(tmp_path: Path) -> None:
    odd = replace(PAGES[0], url="HTTP://docs.example:80/ä#c")
    data = warc([odd]).data
    found = built_with(tmp_path, data, [Revisit(odd.url, by_record(facts(data)[odd.url]))])

    assert [row["url"] for row in found] == [found[0]["url"]] * 2
    assert "#" not in found[0]["url"]
