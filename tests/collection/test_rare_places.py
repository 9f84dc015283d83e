"""What is rare on hosts in a collection: verdicts as in a crawl, resumption, the tables of the crawl."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from neardup.cli.main import main
from neardup.collection import rare_places
from neardup.collection.dataset import open_collection
from neardup.collection.rare_places import BESIDE, plane_of, planes_of
from neardup.detection.detector import AGAIN, Detector, DetectorOptions
from neardup.detection.document_frequencies import DocumentFrequencies
from neardup.detection.own_text import OwnText
from neardup.fingerprint import hamming
from neardup.store.store import Store
from neardup.text.visible_text import text_of_bytes
from tests.support.collections import build, built, files, rows
from tests.support.real_pages import real_pages

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = DetectorOptions()
HOST = "shop.example"
MENU_WORDS, OWN_WORDS = 740, 60


def pages() -> list[tuple[str, str]]:
    """Addresses and HTML of pages of one menu, two of each text of their own, a few words apart; real texts.

    Titles say nothing: all are those of the site.
    """
    by_name = {path.name: text_of_bytes(path.read_bytes()).split() for path in real_pages()}
    longest, *texts = sorted(by_name.values(), key=len, reverse=True)
    menu = " ".join(longest[:MENU_WORDS])
    made = []
    for number, words in enumerate(text for text in texts if len(text) > 50 + OWN_WORDS):
        for copy in range(2):
            own = words[50 : 50 + OWN_WORDS]
            own[30] += "x" * copy
            html = f"<title>The shop</title><body><p>{menu}</p><h2>Item</h2><p>{' '.join(own)}</p>"
            made.append((f"http://{HOST}/{number}/{copy}", html))
    return made


@pytest.fixture(scope="module")
def made_pages() -> list[tuple[str, str]]:
    return pages()


@pytest.fixture
def feed(made_pages: list[tuple[str, str]], tmp_path: Path) -> Path:
    path = tmp_path / "pages.jsonl"
    path.write_text(
        "".join(json.dumps({"url": url, "html": html}) + "\n" for url, html in made_pages), encoding="utf-8"
    )
    return path


def relations(folder: Path) -> dict[str, tuple[str, str]]:
    """Canonical page and evidence by duplicate."""
    assert main(["collection", "clusters", str(folder)]) == 0
    urls = {row["id"]: row["url"] for row in rows(folder)}
    found = pq.read_table(folder / "clusters" / "relations.parquet").to_pylist()
    return {urls[row["duplicate_hash_id"]]: (urls[row["actual_hash_id"]], row["evidence"]) for row in found}


@pytest.mark.slow
def test_verdicts_are_those_of_a_crawl(made_pages: list[tuple[str, str]], feed: Path, tmp_path: Path) -> None:
    built(tmp_path / "c", feed)
    found = relations(tmp_path / "c")

    crawl = Detector(OPTIONS)
    for url, html in made_pages:
        crawl.examine_html(url, html)
        crawl.judge_again(AGAIN)
    crawl.judge_all_again()
    judged = {url: crawl.canonical_of(url) for url, _ in made_pages}
    # A page that a crawl takes for a copy at first may stay the duplicate of the page that came after it.
    ends = {frozenset((url, canonical)) for url, canonical in judged.items() if canonical}
    assert {frozenset((url, canonical)) for url, (canonical, _) in found.items()} == ends
    assert len(ends) > len(made_pages) // 3
    assert {frozenset(url.rsplit("/", 1)[0] for url in pair) for pair in ends} == {
        frozenset([url.rsplit("/", 1)[0]]) for pair in ends for url in pair
    }
    assert {evidence for _, evidence in found.values()} == {"rare"}

    # What tells them apart is what is rare: without that, pages of one menu are copies as a whole.
    shutil.rmtree(tmp_path / "c" / "rare")
    wrong = relations(tmp_path / "c")
    assert len(wrong) > len(found)
    assert {evidence for _, evidence in wrong.values()} == {"whole"}


def test_planes_are_the_places_of_each_limit(made_pages: list[tuple[str, str]]) -> None:
    reader, known = OPTIONS.make_reader(), DocumentFrequencies()
    readings = [reader.read_html(url, html) for url, html in made_pages]
    for reading in readings:
        host = known.count(HOST, reading.shingles, reading.headline)

    for reading in readings:
        own = OwnText(reading, host)
        reached = np.bitwise_or.accumulate(planes_of(own), axis=0)
        for beside, found in zip(BESIDE, reached, strict=True):
            places = own.places(beside)
            if places is None:
                assert own.is_below(beside)
                assert np.bitwise_count(found).sum() == 1024
            else:
                assert found.tolist() == places.bits.tolist()
                assert 12 <= places.number < 1024
    assert [plane_of(50, 6), plane_of(99, 100), plane_of(5, 6), plane_of(6, 6)] == [5, 0, 0, 1]


def test_nothing_rare_in_a_page_fills_no_plane(made_pages: list[tuple[str, str]]) -> None:
    reader, known = OPTIONS.make_reader(), DocumentFrequencies()
    reading = reader.read_html(*made_pages[0])
    for _ in range(20):
        host = known.count(HOST, reading.shingles, reading.headline)

    planes = planes_of(OwnText(reading, host))

    assert np.bitwise_count(planes).sum(axis=1).tolist() == [0, 0, 0, 1024, 0, 0]


@pytest.mark.parametrize("step", ["_count", "_Placing"])
def test_goes_on_after_each_step(
    feed: Path, tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    built(tmp_path / "whole", feed)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(rare_places, step, full)
        assert build(tmp_path / "c", feed) == 1
    assert "No space left on device; what was done is kept" in capsys.readouterr().err
    assert list((tmp_path / "c" / "shingles").iterdir())

    built(tmp_path / "c", feed)

    assert files(tmp_path / "c") == files(tmp_path / "whole")
    assert not (tmp_path / "c" / "shingles").exists()


@pytest.mark.parametrize("left", [10, 1_000, -1])
def test_shingles_that_are_cut_off_are_named(
    feed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], left: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(rare_places, "_count", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build(tmp_path / "c", feed)
    path = tmp_path / "c" / "shingles" / "000000-0000.shingles"
    path.write_bytes(path.read_bytes()[:left])

    assert build(tmp_path / "c", feed) == 1
    assert f"{path} is cut off; build the collection in another folder" in capsys.readouterr().err


def test_further_inputs_add_to_what_is_known(
    made_pages: list[tuple[str, str]], feed: Path, tmp_path: Path
) -> None:
    built(tmp_path / "c", feed)
    more = tmp_path / "more.jsonl"
    more.write_text(
        "".join(
            json.dumps({"url": f"{url}?again", "html": html.replace("e", "i")}) + "\n"
            for url, html in made_pages[::2]
        )
    )

    built(tmp_path / "c", feed, more)

    known = rare_places.read_frequencies(open_collection(tmp_path / "c"), are_stored=True).of(HOST)
    assert known is not None
    assert known.pages == len(made_pages) + len(made_pages[::2])
    assert len(rows(tmp_path / "c", "rare")) == known.pages


def test_a_text_is_counted_once(made_pages: list[tuple[str, str]], tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    url, html = made_pages[0]
    path.write_text("".join(json.dumps({"url": f"{url}?{n}", "html": html}) + "\n" for n in range(9)))

    built(tmp_path / "c", path)

    known = rare_places.read_frequencies(open_collection(tmp_path / "c"), are_stored=True).of(HOST)
    assert known is not None
    assert known.pages == 1


def test_a_later_crawl_starts_with_the_frequencies(
    made_pages: list[tuple[str, str]], feed: Path, tmp_path: Path, database_url: str
) -> None:
    built(tmp_path / "c", feed)
    assert main(["db", "upgrade", "--database", database_url]) == 0
    given = ["collection", "clusters", str(tmp_path / "c"), "--into-store", "--database", database_url]
    assert main(given) == 0

    crawl = Detector(OPTIONS, first_id=10**12)
    with Store.open(database_url, scheme=str(crawl.reader.scheme), create=False) as store:
        store.load_frequencies(crawl.verifier.frequencies)
        crawl.restore(store.known_pages())
    host = crawl.verifier.frequencies.of(HOST)
    assert host is not None
    assert host.pages == len(made_pages)

    # A further page of the menu, of which a crawl that knew nothing of the site would make a copy.
    words = text_of_bytes(real_pages()[1].read_bytes()).split()[50 : 50 + OWN_WORDS]
    url, html = made_pages[0]
    further = html[: html.index("<h2>")] + f"<h2>Item</h2><p>{' '.join(words)}</p>"
    verdict = crawl.examine_html(f"http://{HOST}/further", further)
    assert verdict.kind == "new"
    alone = Detector(OPTIONS)
    first, second = (alone.examine_html(one, text) for one, text in ((url, html), ("http://x/", further)))
    assert hamming.distance(first.fingerprint.value, second.fingerprint.value) <= alone.rule.max_distance  # type: ignore[union-attr]
    assert second.kind == "duplicate"
