"""Clusters and ranks of a collection whose pages have changed since."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from neardup.cli.main import main
from tests.support.archives import warc
from tests.support.collections import build, exchanges
from tests.support.made_pages import Made, make_collection, run_of

if TYPE_CHECKING:
    from pathlib import Path

PAGES = exchanges()
RESULTS = ("clusters/clusters.parquet", "clusters/relations.parquet", "pagerank.parquet")


@pytest.fixture
def archives(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "0.warc.gz", tmp_path / "1.warc.gz"]
    for number, path in enumerate(paths):
        path.write_bytes(warc(PAGES[number::2]).data)
    return paths


def said(capsys: pytest.CaptureFixture[str], verb: str, folder: Path, *arguments: str, code: int = 0) -> str:
    """What a verb of a collection says on standard error."""
    capsys.readouterr()
    assert main(["collection", verb, str(folder), *arguments]) == code
    return capsys.readouterr().err


@pytest.mark.slow
def test_results_of_fewer_pages_are_put_aside(
    tmp_path: Path, archives: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert build(out, archives[0]) == 0
    assert "outdated" not in capsys.readouterr().err
    for verb in ("clusters", "pagerank"):
        said(capsys, verb, out)
    found = [(out / name).read_bytes() for name in RESULTS]

    capsys.readouterr()
    assert build(out, archives[0]) == 0  # nothing new
    assert "outdated" not in capsys.readouterr().err
    assert [(out / name).read_bytes() for name in RESULTS] == found

    assert build(out, *archives) == 0
    told = capsys.readouterr().err
    assert "collection clusters found is of the pages before" in told
    assert "collection pagerank found is of the pages before" in told
    assert not [name for name in RESULTS if (out / name).exists()]
    kept = [(out / "outdated" / name.rpartition("/")[2]).read_bytes() for name in RESULTS]
    assert kept == found

    again = f"run neardup collection clusters {out} again"
    assert again in said(capsys, "mirrors", out, code=1)
    assert again in said(capsys, "elect", out, "--by", "shortest", code=1)
    said(capsys, "clusters", out)
    ranks = f"run neardup collection pagerank {out} again"
    assert ranks in said(capsys, "elect", out, "--by", "pagerank", code=1)
    said(capsys, "elect", out, "--by", "shortest")
    said(capsys, "mirrors", out)
    said(capsys, "pagerank", out)
    said(capsys, "elect", out, "--by", "pagerank")
    assert not (out / "outdated").exists()
    capsys.readouterr()
    assert build(out, *archives) == 0
    assert "outdated" not in capsys.readouterr().err


@pytest.mark.slow
def test_clusters_are_put_aside_when_pages_are_taken_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [Made("a", 1, 2), Made("b", 1, 1), Made("c", 0xFF00)]
    folder = make_collection(tmp_path / "made", pages)
    results = {"q": [page.url for page in pages]}
    run, log = run_of(tmp_path / "r.run", results), tmp_path / "log.tsv"
    log.write_text("q\t1\n")
    said(capsys, "clean", folder, "--queries", str(log), "--results", str(run))

    for change in (["--apply", "parallel"], ["--undo"]):
        said(capsys, "clusters", folder)
        assert "collection clusters found is of the pages before" in said(capsys, "clean", folder, *change)
        assert not list((folder / "clusters").iterdir())
    assert (folder / "pagerank.parquet").exists()
