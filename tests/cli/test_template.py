"""``neardup show --template``: which words of a page are marked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from neardup.cli.main import main
from neardup.detection.detector import DetectorOptions
from neardup.detection.document_frequencies import DocumentFrequencies
from neardup.fingerprint.scheme import Scheme
from neardup.store.store import Store
from neardup.text.content import Content
from tests.support.crawling import Site, serve
from tests.support.places import PAGES
from tests.support.stores import upgraded, write
from tests.support.verdicts import page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MENU = "home about contact imprint search help"
HTML = {"Content-Type": "text/html"}


def text_of(number: int) -> str:
    return f"<title>t</title><p>{MENU}<p>" + " ".join(f"page{number}word{at}" for at in range(20))


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as served:
        served.add("/page", text_of(3))
        yield served


@pytest.fixture
def database(tmp_path: Path, site: Site) -> str:
    """A store that knows of nine pages of the host of ``site``, and has one of them."""
    url = upgraded(f"sqlite:///{tmp_path}/n.db")
    reader, frequencies = DetectorOptions().make_reader(), DocumentFrequencies()
    for number in range(9):
        reading = reader.read_html("", text_of(number))
        frequencies.count("127.0.0.1", reading.shingles, reading.headline)
    with Store.open(url, scheme=str(Scheme())) as store:
        write(store, page(1, f"{site.url}/page"), frequencies=frequencies)
    return url


def shown(capsys: pytest.CaptureFixture[str], database: str, *arguments: str) -> Any:
    assert main(["show", "--database", database, "--template", "127.0.0.1", *arguments]) == 0
    out = capsys.readouterr().out
    return json.loads(out) if "json" in arguments else out


def test_a_stored_page_is_fetched_and_its_menu_marked(
    database: str, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    marked = shown(capsys, database, "--format", "json")

    assert (marked["url"], marked["pages"], marked["limit"]) == (f"{site.url}/page", 9, 6)
    assert site.requested == ["/page"]
    template = [run["words"] for run in marked["runs"] if run["template"]]
    assert template == [MENU]
    assert marked["share"] == pytest.approx(6 / 26)


def test_a_file_is_marked_in_plain_lines(
    database: str, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "page.html"
    file.write_text(f"<p>before it stands alpha <p>{MENU.upper()}<p>\x1b[2J after")

    lines = shown(capsys, database, "--page", str(file)).splitlines()

    assert "50.0 % of the words are template" in lines[0]
    assert lines[0].endswith("which is what more than 6 of 9 pages of 127.0.0.1 have")
    assert lines[1:] == ["own       before it stands alpha", f"template  {MENU}", "own       2j after"]
    assert site.requested == []


def test_all_words_of_a_real_page_are_shown_in_their_order(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = PAGES / "clang-13" / "FAQ.html"
    marked = shown(capsys, database, "--page", str(path), "--format", "json")

    features = DetectorOptions().make_reader().features
    words = " ".join(run["words"] for run in marked["runs"]).split()
    assert words == features.words(Content().text_of_html("", path.read_bytes()))
    assert marked["share"] == 0.0


@pytest.mark.parametrize("html", ["<p>", "<p>word", "<p>two words"])
def test_a_page_of_next_to_no_words(
    html: str, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "page.html"
    file.write_text(html)

    marked = shown(capsys, database, "--page", str(file), "--format", "json")

    assert marked["share"] == 0.0
    assert len(marked["runs"]) == (html != "<p>")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--template", "b.example"], "nothing is known of the template of b.example"),
        ([], "show takes either the URL of a page, or --template HOST"),
        (["http://a.example/", "--template", "a.example"], "show takes either"),
        (["http://a.example/", "--page", "file.html"], "--page goes with --template HOST"),
        (["--template", "127.0.0.1", "--page", "ftp://a.example/"], "only http"),
    ],
)
def test_what_cannot_be_shown(
    arguments: list[str], message: str, database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "--database", database, *arguments]) == 1

    assert message in capsys.readouterr().err
